// SPDX-License-Identifier: MIT
/* Checks for the tests of this folder: the first that fails prints its line and ends the
   program. */
#ifndef HAFT_TESTS_CHECK_HPP
#define HAFT_TESTS_CHECK_HPP

#include <cstdio>
#include <cstdlib>
#include <utility>

#define CHECK(...)                                                                                 \
    ((__VA_ARGS__)                                                                                 \
         ? (void)0                                                                                 \
         : (std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #__VA_ARGS__),         \
            std::exit(1)))

/* How often to do what shows more the more often it is done: fewer times where a tool makes
   everything slow. */
constexpr int check_times(int times) {
#ifdef HAFT_TEST_FEW
    return times / 20;
#else
    return times;
#endif
}

/* Calls `function` and returns what it throws as an Exception; it must. */
template <typename Exception, typename F>
Exception thrown_by(F &&function) {
    try {
        std::forward<F>(function)();
    } catch (Exception &exception) {
        return std::move(exception);
    }
    std::fprintf(stderr, "nothing was thrown\n");
    std::exit(1);
}

/* Counts the objects that are alive. */
struct counted {
    static inline int alive = 0;
    counted() { alive++; }
    counted(const counted &) { alive++; }
    counted(counted &&) noexcept { alive++; }
    counted &operator=(const counted &) = default;
    ~counted() { alive--; }
};

#endif
