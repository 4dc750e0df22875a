// SPDX-License-Identifier: MIT
/* How much of the stack a level of something nested takes. */
#ifndef HAFT_TESTS_STACK_USE_HPP
#define HAFT_TESTS_STACK_USE_HPP

#include "check.hpp"

namespace stack_use {

enum { LEVELS = 1000 };
inline char *highest, *lowest;

/* Called once a level, in its frame. */
__attribute__((noinline)) inline void level() {
    auto *here = static_cast<char *>(__builtin_frame_address(0));
    if (highest == nullptr)
        highest = here;
    lowest = here;
}

/* Bytes a level, of a function that calls level() LEVELS times, each time further in. */
template <typename F>
long bytes_a_level(F &&function) {
    highest = nullptr;
    function();
    return (highest - lowest) / (LEVELS - 1);
}

/* The bounds are for x86-64, and for code as users compile it. */
inline void at_most(const char *what, long bound, long bytes) {
    std::printf("%-40s %4ld bytes a level\n", what, bytes);
#if defined(__OPTIMIZE__) && defined(__x86_64__)
    CHECK(bytes <= bound);
#else
    (void)bound;
#endif
}

} // namespace stack_use

#endif
