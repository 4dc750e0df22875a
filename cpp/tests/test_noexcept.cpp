/* A computation that is dropped inside a function that nothing can leave: both compilers' programs
 * end with one message. */
#include "last_words.hpp"

#include <haft.hpp>
#include <string>

struct Get : haft::effect<int> {};
struct Stop : haft::effect<> {};

static void stopping() noexcept {
    haft::perform(Stop{});
}
static int getting() noexcept {
    return haft::perform(Get{});
}

static const char expected[] =
    " was being unwound when the program was terminated: a function on it is noexcept, which "
    "nothing can leave. Let it perform only what is always resumed.";

static void dropping_through_noexcept_says_so() {
    CHECK(last_words([] {
              haft::handle([] { stopping(); }).with([](Stop, haft::resumption<void()>) {});
          }).find(expected) != std::string::npos);
    CHECK(last_words([] {
              haft::handle([] { stopping(); }).with(haft::never([](Stop) {}));
          }).find(expected) != std::string::npos);
}

static void a_clause_in_place_that_throws_through_noexcept_says_so() {
    CHECK(last_words([] {
              haft::handle([] { return getting(); }).with([](Get) -> int { throw 1; });
          }).find(expected) != std::string::npos);
}

static void other_ends_are_as_before() {
    CHECK(last_words([] {
              haft::handle([] {
                  counted local;
                  haft::perform(Stop{});
              }).with([](Stop, haft::resumption<void()>) {}); /* from now on Haft watches */
              std::terminate();
          }).find(expected) == std::string::npos);
}

static void what_is_resumed_returns_through_noexcept() {
    CHECK(haft::handle(getting).with(
              [](Get, haft::resumption<int(int)> k) { return std::move(k).resume(3); }) == 3);
}

int main() {
    dropping_through_noexcept_says_so();
    a_clause_in_place_that_throws_through_noexcept_says_so();
    other_ends_are_as_before();
    what_is_resumed_returns_through_noexcept();
}
// SPDX-License-Identifier: MIT
