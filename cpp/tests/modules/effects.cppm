/* A module whose implementation performs and handles, and that passes names of haft.h on. */
module;
#include <haft.hpp>
export module effects;

struct Get : haft::effect<int> {};
export using ::haft_finished;
export int get() {
    return haft::perform(Get{});
}
export int with(int (*body)(), int value) {
    return haft::handle([=] {
               return body();
           }).with([=](Get, haft::resumption<int(int)> k) { return std::move(k).resume(value); });
}
// SPDX-License-Identifier: MIT
