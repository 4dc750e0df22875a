/* Exceptions for the interpreter, which is C so that its cleanups may be unwound while they run. */
#include "program.h"

namespace {
struct misuse {
    int code;
};
struct raised {
    int64_t number;
};
} // namespace

int guarded_by_catch(void (*call)(void *), void *argument) {
    try {
        call(argument);
        return 0;
    } catch (const misuse &caught) {
        return caught.code;
    }
}

bool catching(void (*call)(void *), void *argument, int64_t *number) {
    try {
        call(argument);
        return false;
    } catch (const raised &caught) {
        *number = caught.number;
        return true;
    }
}

void raise_exception(int64_t number) {
    throw raised{number};
}

void raise_error(int code) {
    throw misuse{code};
}
// SPDX-License-Identifier: MIT
