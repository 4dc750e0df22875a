// SPDX-License-Identifier: MIT
/* Commands that the translation units and the library of this test share. */
#include "cpp-effects/clause-modifiers.h"
#include "cpp-effects/cpp-effects.h"

struct HAFT_SHARED Number : cpp_effects::command<int> {};
struct HAFT_SHARED Sum : cpp_effects::command<int> {
    int left, right;
};

class HAFT_SHARED Adder : public cpp_effects::flat_handler<int, cpp_effects::plain<Number>, Sum> {
    int number = 0;
    int handle_command(Number) override { return ++number; }
    int handle_command(Sum s, cpp_effects::resumption<int(int)> r) override {
        return std::move(r).tail_resume(s.left + s.right);
    }
};

int sum_in_other_unit(std::int64_t label);
HAFT_SHARED int sum_in_library(std::int64_t label);
HAFT_SHARED int handle_in_library(int (*body)());
