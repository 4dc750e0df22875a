#include "effects.hpp"

int ask_in_another_unit() {
    return haft::perform(Ask{}) + haft::perform<Tell<int>>(2);
}
// SPDX-License-Identifier: MIT
