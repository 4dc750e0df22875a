/* Guards that commit or roll back at the end of a scope, by std::uncaught_exceptions(): a
 * computation that is unwound by Haft has failed. */
#include "check.hpp"

#include <exception>
#include <haft.hpp>
#include <haft/generator.hpp>
#include <string>

struct Get : haft::effect<int> {};
struct Stop : haft::effect<> {};
struct Pause : haft::effect<> {};

static std::string trace;

/* A guard that acts like SCOPE_FAIL and SCOPE_SUCCESS. */
struct guard {
    char name;
    int before = std::uncaught_exceptions();
    explicit guard(char letter) : name(letter) {}
    ~guard() {
        trace += std::uncaught_exceptions() > before ? '-' : '+';
        trace += name;
    }
};

static std::string traced(void (*function)()) {
    trace = "";
    function();
    CHECK(std::uncaught_exceptions() == 0);
    CHECK(std::current_exception() == nullptr);
    return trace;
}

static void stop() {
    guard a('a');
    { guard b('b'); }
    guard c('c');
    haft::perform(Stop{});
}
static void drop(Stop, haft::resumption<void()>) {}

static void dropping_rolls_back() {
    CHECK(traced([] { haft::handle(stop).with(&drop); }) == "+b-c-a");
    CHECK(traced([] { haft::handle(stop).with(haft::never([](Stop) {})); }) == "+b-c-a");
    CHECK(traced([] {
              guard outside('o');
              haft::handle(stop).with(&drop);
          }) == "+b-c-a+o");
}

static void a_clause_in_place_that_throws_rolls_back_its_performer() {
    auto run = [](auto with) {
        try {
            with([](Stop) { throw 1; });
        } catch (int) {
            return;
        }
        CHECK(false);
    };
    static auto &runner = run;
    CHECK(traced([] { runner([](auto clause) { haft::handle(stop).with(clause); }); }) == "+b-c-a");
    CHECK(traced([] { runner([](auto clause) { haft::handle(stop).on({}).with(clause); }); }) ==
          "+b-c-a");
}

static void computations_inside_roll_back_with_the_one_that_is_dropped() {
    CHECK(traced([] {
              haft::handle([] {
                  guard o('o');
                  haft::handle([] {
                      guard m('m');
                      try {
                          throw 1;
                      } catch (int) {
                          haft::handle(stop).with([](Get, haft::resumption<void(int)>) {});
                      }
                  }).with([](Pause, haft::resumption<void()>) {});
              }).with(&drop);
          }) == "+b-c-a-m-o");
    CHECK(traced([] {
              haft::handle([] {
                  haft::handle([] {
                      guard m('m');
                      haft::perform(Get{}); /* a clause in place that is dropped itself */
                  }).with([](Get) {
                      stop();
                      return 1;
                  });
              }).with(&drop);
          }) == "+b-c-a-m");
}

static void a_catch_all_that_rethrows_changes_nothing() {
    CHECK(traced([] {
              haft::handle([] {
                  guard o('o');
                  try {
                      guard i('i');
                      haft::perform(Stop{});
                  } catch (...) {
                      { guard c('c'); }
                      guard d('d');
                      throw;
                  }
              }).with(&drop);
          }) == "-i+c-d-o");
}

static void cleanups_that_perform_and_handle_see_their_own() {
    /* A destructor that runs while its computation is dropped handles, and performs to a handler
     * further out, which finds nothing in flight. */
    struct performer {
        ~performer() {
            CHECK(haft::handle([] {
                      guard n('n');
                      return haft::perform(Get{});
                  }).with([](Get, haft::resumption<int(int)> k) {
                CHECK(std::uncaught_exceptions() == 1);
                return std::move(k).resume(4);
            }) == 4);
            { guard k('k'); }
            haft::perform(Pause{});
            { guard l('l'); }
            CHECK(std::uncaught_exceptions() == 1);
        }
    };
    CHECK(traced([] {
              haft::handle([] {
                  haft::handle([] {
                      guard o('o');
                      performer p;
                      haft::perform(Stop{});
                  }).with(&drop);
                  guard after('f');
              }).with([](Pause, haft::resumption<void()> k) {
                  CHECK(std::uncaught_exceptions() == 0);
                  std::move(k).resume();
              });
          }) == "+n+k+l-o+f");
    CHECK(traced([] {
              haft::handle([] {
                  haft::handle([] {
                      guard o('o');
                      performer p;
                      haft::perform(Stop{});
                  }).with(&drop);
              }).with([](Pause) { CHECK(std::uncaught_exceptions() == 0); });
          }) == "+n+k+l-o");
}

static void a_generator_that_is_left_early_rolls_back_its_producer() {
    CHECK(traced([] {
              guard o('o');
              haft::generator<int> numbers([](haft::yielder<int> yield) {
                  guard p('p');
                  for (int i = 0;; i++)
                      yield(i);
              });
              numbers.next();
          }) == "-p+o");
}

static void dropping_while_an_exception_is_in_flight_is_counted_apart() {
    CHECK(traced([] {
              try {
                  haft::resumption<void()> kept;
                  haft::handle(stop).with(
                      [&](Stop, haft::resumption<void()> k) { kept = std::move(k); });
                  throw 1; /* drops it */
              } catch (int) {
              }
          }) == "+b-c-a");
}

static void what_ends_well_commits() {
    CHECK(traced([] { haft::handle(stop).with([](Stop) {}); }) == "+b+c+a");
    CHECK(traced([] {
              haft::handle(stop).with(
                  [](Stop, haft::resumption<void()> k) { std::move(k).resume(); });
          }) == "+b+c+a");
}

int main() {
    dropping_rolls_back();
    a_clause_in_place_that_throws_rolls_back_its_performer();
    computations_inside_roll_back_with_the_one_that_is_dropped();
    a_catch_all_that_rethrows_changes_nothing();
    cleanups_that_perform_and_handle_see_their_own();
    a_generator_that_is_left_early_rolls_back_its_producer();
    dropping_while_an_exception_is_in_flight_is_counted_apart();
    what_ends_well_commits();
}
// SPDX-License-Identifier: MIT
