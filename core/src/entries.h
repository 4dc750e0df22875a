/* SPDX-License-Identifier: MIT */
/* Gives the functions of entry_list.h the names under which they are compiled. Included before the
   declarations. */
#if defined(__x86_64__) && defined(__linux__) && !defined(HAFT_FREESTANDING)
#    define HAFT_ENTRY_RENAMED(what) _Pragma(#    what)
#    define HAFT_ENTRY_FOREIGN(name) HAFT_ENTRY_RENAMED(redefine_extname name name##_entry)
#    define HAFT_ENTRY_STAYS(name, room) HAFT_ENTRY_FOREIGN(name)
#    define HAFT_ENTRY_RESUMES(name, in_short, roomy, room) HAFT_ENTRY_FOREIGN(name)
#    define HAFT_ENTRY_ENDS(name, room) HAFT_ENTRY_FOREIGN(name)
#    include "entry_list.h"
/* To be written in a file whose functions make do with the slack of a segment, or are never called
   on one. Otherwise gold gives 64 KiB to each function of -fsplit-stack code that calls one. */
#    define HAFT_NEEDS_NO_ROOM                                                                     \
        __asm__(".pushsection .note.GNU-split-stack, \"\", @progbits\n\t"                          \
                ".popsection\n\t"                                                                  \
                ".pushsection .note.GNU-no-split-stack, \"\", @progbits\n\t"                       \
                ".popsection");
#else
#    define HAFT_NEEDS_NO_ROOM
#endif
