/* SPDX-License-Identifier: MIT */
/* Which version of the library a program runs with, and the symbol that it needs for that. */
#include "ground.h"

const char haft_abi_0_4 = 0;

const char *haft_version(void) {
    return HAFTI_TEXT(HAFT_VERSION_MAJOR) "." HAFTI_TEXT(HAFT_VERSION_MINOR) "." HAFTI_TEXT(
        HAFT_VERSION_PATCH);
}
