/* SPDX-License-Identifier: MIT */
/* Files and directories with new names. In a simulation its seed decides the names. */
#include "internal.h"

#include <string.h>

enum { LETTERS = 6, TRIES = 100 };

/* Returns the place of the letters that are to be replaced. NULL, and errno: there are none. */
static char *letters_of(char *name, int suffix) {
    size_t size = strlen(name);
    char *letters = NULL;
    if (suffix >= 0 && size >= (size_t)suffix + LETTERS)
        letters = name + size - (size_t)suffix - LETTERS;
    if (letters != NULL && strncmp(letters, "XXXXXX", LETTERS) == 0)
        return letters;
    hafti_posix_set_error(EINVAL);
    return NULL;
}

static int make_file(const char *name, int flags) {
    return open(name, (flags & ~O_ACCMODE) | O_RDWR | O_CREAT | O_EXCL, 0600);
}
static int make_directory(const char *name, int unused) {
    (void)unused;
    return mkdir(name, 0700);
}

static int make(char *name, int suffix, int (*make_one)(const char *name, int flags), int flags) {
    static const char all[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    int before = hafti_posix_error();
    char *letters = letters_of(name, suffix);
    int made = -1;
    for (int i = 0; letters != NULL && made < 0 && i < TRIES; i++) {
        unsigned char drawn[LETTERS];
        haft_io_simulated_calls()->random(drawn, sizeof drawn);
        for (int j = 0; j < LETTERS; j++)
            letters[j] = all[drawn[j] % (sizeof all - 1)];
        hafti_posix_set_error(before);
        made = make_one(name, flags);
        if (made < 0 && hafti_posix_error() != EEXIST)
            break;
    }
    return made;
}

HAFT_POSIX_EXPORT int mkostemps(char *name, int suffix, int flags) {
    return hafti_posix_path_system(AT_FDCWD, name) == hafti_posix_system()
               ? SYSTEM(mkostemps)(name, suffix, flags)
               : make(name, suffix, make_file, flags);
}
HAFT_POSIX_EXPORT int mkostemp(char *name, int flags) {
    return mkostemps(name, 0, flags);
}
HAFT_POSIX_EXPORT int mkstemps(char *name, int suffix) {
    return mkostemps(name, suffix, 0);
}
HAFT_POSIX_EXPORT int mkstemp(char *name) {
    return mkostemps(name, 0, 0);
}

HAFT_POSIX_EXPORT char *mkdtemp(char *name) {
    if (hafti_posix_path_system(AT_FDCWD, name) == hafti_posix_system())
        return SYSTEM(mkdtemp)(name);
    return make(name, 0, make_directory, 0) == 0 ? name : NULL;
}

HAFT_POSIX_ALSO_64(mkostemps)
HAFT_POSIX_ALSO_64(mkostemp)
HAFT_POSIX_ALSO_64(mkstemps)
HAFT_POSIX_ALSO_64(mkstemp)
