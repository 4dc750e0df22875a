// SPDX-License-Identifier: MIT
/* Copies know the frames of handlers also where haft/multi_shot.hpp is included after haft.hpp. The
   handlers are small, and few: with -O3 gcc makes the loop of such a one a part of the function
   around it. */
#include <haft.hpp>

#include <haft/multi_shot.hpp>

#include "check.hpp"

namespace {

struct Choose : haft::effect<int> {
    int count;
};
struct Get : haft::effect<int> {};

int sum_of(Choose choose, const haft::multi_shot<int(int)> &k) {
    int sum = 0;
    for (int i = 0; i < choose.count; i++)
        sum += k.resume(i);
    return sum;
}
template <typename Body>
int all_of(Body body) {
    return haft::handle_multi_shot(
        body, [](Choose choose, haft::multi_shot<int(int)> k) { return sum_of(choose, k); });
}
int picked_and_got() {
    return haft::perform<Choose>(3) + haft::perform(Get{});
}

} // namespace

int main() {
#ifdef __SANITIZE_THREAD__
    return 77; /* it knows no copies of stacks */
#endif
#ifdef __has_feature
#    if __has_feature(thread_sanitizer)
    return 77;
#    endif
#endif
    CHECK(all_of([] {
              return haft::handle(picked_and_got).on({.name = "own"}).with([](Get) { return 1; });
          }) == 1 + 2 + 3);
    CHECK(all_of([] {
              return haft::handle(picked_and_got).with([](Get, haft::resumption<int(int)> k) {
                  return std::move(k).tail_resume(1);
              });
          }) == 1 + 2 + 3);
    CHECK(haft_pool_report().stacks == 0);
}
