#include "effects.hpp"

int ask_in_a_library() {
    return haft::perform(Ask{}) + haft::perform<Tell<int>>(3);
}

int answer_in_a_library(int (*body)()) {
    return haft::handle(body).with([](Ask) { return 10; },
                                   [](Tell<int> t, haft::resumption<int(int)> k) {
                                       return std::move(k).resume(t.value * 10);
                                   });
}
// SPDX-License-Identifier: MIT
