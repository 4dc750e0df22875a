/* Moves, copies and conversions that throw: the computation that they leave behind is dropped, and
 * the exception goes to the caller that should see it. */
#include "check.hpp"

#include <haft.hpp>
#include <string>

/* Throws when it is moved for the nth time from now. */
struct fragile {
    static inline int moves_left = -1;
    int value = 0;
    counted life;
    explicit fragile(int number) : value(number) {}
    fragile(fragile &&other) : value(other.value) {
        if (moves_left == 0)
            throw std::string("move");
        moves_left--;
    }
};
struct Ask : haft::effect<fragile> {};
struct Tell : haft::effect<> {
    fragile what;
};

/* Runs it with the 1st, the 2nd ... move throwing, until none does; nothing must be left over. */
template <typename F>
static int throws_everywhere(F &&run) {
    int thrown = 0;
    for (int moves = 0;; moves++) {
        fragile::moves_left = moves;
        try {
            run();
            fragile::moves_left = -1;
            CHECK(counted::alive == 0);
            return thrown;
        } catch (const std::string &text) {
            fragile::moves_left = -1;
            CHECK(text == "move");
            CHECK(counted::alive == 0);
            CHECK(std::uncaught_exceptions() == 0);
            thrown++;
        }
    }
}

static int ask() {
    counted local;
    return haft::perform(Ask{}).value;
}
static int tell() {
    counted local;
    haft::perform(Tell{.what = fragile(3)});
    return 3;
}

static void a_value_whose_move_throws_drops_what_it_was_to_resume() {
    CHECK(throws_everywhere([] {
              CHECK(haft::handle(ask).with([](Ask, haft::resumption<int(fragile)> k) {
                  return std::move(k).resume(fragile(1));
              }) == 1);
          }) > 0);
    CHECK(throws_everywhere([] {
              CHECK(haft::handle(ask).with(
                        [](Ask, haft::resumption<int(fragile)> k) -> haft::tail<int> {
                            return std::move(k).tail_resume(fragile(2));
                        }) == 2);
          }) > 0);
    CHECK(throws_everywhere([] {
              CHECK(haft::handle(ask).with([](Ask, haft::resumption<int(fragile)> k) {
                  return std::move(k).resume_with([](Ask) { return fragile(9); }, fragile(3));
              }) == 3);
          }) > 0);
}

static void a_resumption_that_is_kept_is_empty_after_a_move_has_thrown() {
    haft::resumption<int(fragile)> kept;
    haft::handle(ask).with([&](Ask, haft::resumption<int(fragile)> k) {
        kept = std::move(k);
        return 0;
    });
    CHECK(counted::alive == 1);
    fragile value(1);
    fragile::moves_left = 1; /* into the parameter, then into the performer's place */
    thrown_by<std::string>([&] { std::move(kept).resume(std::move(value)); });
    CHECK(!kept && counted::alive == 1); /* `value` */
    fragile::moves_left = -1;
}

static void an_argument_of_wrap_whose_move_throws_drops_the_computation() {
    CHECK(throws_everywhere([] {
              auto k = haft::wrap<fragile>([local = counted()](fragile got) {
                           return got.value;
                       }).with([](Tell, haft::resumption<int()>) { return 0; });
              CHECK(std::move(k).resume(fragile(4)) == 4);
          }) > 0);
}

static void a_payload_whose_move_throws_drops_the_computation() {
    CHECK(throws_everywhere([] {
              CHECK(haft::handle(tell).with([](Tell told, haft::resumption<int()> k) {
                  return std::move(k).resume() + told.what.value;
              }) == 6);
          }) > 0);
    CHECK(throws_everywhere([] {
              CHECK(haft::handle(tell).with([](Tell, haft::resumption<int()> k) -> haft::tail<int> {
                  return std::move(k).tail_resume();
              }) == 3);
          }) > 0);
    CHECK(throws_everywhere([] {
              CHECK(haft::handle(tell).with(
                        haft::never([](Tell told) { return told.what.value + 1; })) == 4);
          }) > 0);
}

struct Number : haft::effect<fragile> {};

/* Its conversion to the result of the effect throws. */
struct refuses {
    operator fragile() const { throw std::string("conversion"); }
};

static void a_conversion_of_what_a_clause_that_does_not_throw_returns_leaves_the_handler() {
    for (bool stack : {false, true}) {
        auto body = [] {
            counted local;
            try {
                return haft::perform(Number{}).value;
            } catch (const std::string &) {
                return -1;
            }
        };
        auto clause = [](Number) noexcept { return refuses(); };
        CHECK(thrown_by<std::string>([&] {
                  if (stack)
                      haft::handle(body).on({}).with(clause);
                  else
                      haft::handle(body).with(clause);
              }) == "conversion");
        CHECK(counted::alive == 0);
    }
}

int main() {
    a_value_whose_move_throws_drops_what_it_was_to_resume();
    a_resumption_that_is_kept_is_empty_after_a_move_has_thrown();
    an_argument_of_wrap_whose_move_throws_drops_the_computation();
    a_payload_whose_move_throws_drops_the_computation();
    a_conversion_of_what_a_clause_that_does_not_throw_returns_leaves_the_handler();
}
// SPDX-License-Identifier: MIT
