/* SPDX-License-Identifier: MIT */
/* Gives the functions of entry_list.h the names under which they are compiled. Included before the
   declarations. */
#if defined(__x86_64__) && defined(__linux__) && !defined(HAFT_FREESTANDING)
#    define HAFT_ENTRY_RENAMED(what) _Pragma(#    what)
#    define HAFT_ENTRY_FOREIGN(name) HAFT_ENTRY_RENAMED(redefine_extname name name##_entry)
#    define HAFT_ENTRY_STAYS(name, room) HAFT_ENTRY_FOREIGN(name)
#    include "entry_list.h"
#endif
