// SPDX-License-Identifier: MIT
/* Effects that the parts of this test share. */
#ifndef HAFT_TESTS_UNITS_HPP
#define HAFT_TESTS_UNITS_HPP

#include <haft.hpp>

struct HAFT_SHARED Ask : haft::effect<int> {};
template <typename T>
struct HAFT_SHARED Tell : haft::effect<T> {
    T value;
};

int ask_in_another_unit();
__attribute__((visibility("default"))) int ask_in_a_library();
__attribute__((visibility("default"))) int answer_in_a_library(int (*body)());

#endif
