/* State as an effect, and transactions that take it back. */
#include "check.hpp"

#include <haft/generator.hpp>
#include <haft/state.hpp>
#include <memory>
#include <string>
#include <vector>

struct Balance : haft::state<int> {};
struct Owner : haft::state<std::string> {};
struct History : haft::state<std::vector<std::string>> {};
struct Slot : haft::state<std::unique_ptr<int>> {};
struct Pause : haft::effect<> {};

static void states_are_read_and_written() {
    haft::cells<int, std::string> cells(1, "a");
    std::string answer = haft::handle([] {
                             haft::put<int>(haft::get<int>() + 1);
                             haft::modify<std::string>([](std::string text) { return text + "b"; });
                             haft::modify<int>([](int value) { return value * 10; });
                             return haft::get<std::string>();
                         }).with(cells);
    CHECK(answer == "ab" && cells.get<int>() == 20 && cells.get<std::string>() == "ab");
}

static void states_of_one_type_are_told_apart_by_name() {
    struct Left : haft::state<int> {};
    struct Right : haft::state<int> {};
    haft::cells<Left, Right> cells(1, 2);
    haft::handle([] {
        int left = haft::get<Left>();
        haft::put<Left>(haft::get<Right>());
        haft::put<Right>(left);
    }).with(cells);
    CHECK(cells.get<Left>() == 2 && cells.get<Right>() == 1);
}

static void the_innermost_cell_counts() {
    haft::cells<Balance> outer(1), inner(2);
    haft::handle([&] {
        haft::handle([] { haft::put<Balance>(5); }).with(inner);
        CHECK(haft::get<Balance>() == 1);
    }).with(outer);
    CHECK(outer.get<Balance>() == 1 && inner.get<Balance>() == 5);
}

static void values_are_updated_in_place_and_need_not_be_copied() {
    haft::cells<Slot, History> cells(std::make_unique<int>(3), {});
    const void *place = &cells.get<History>();
    haft::handle([&] {
        int seen =
            haft::inspect<Slot>([](const std::unique_ptr<int> &pointer) { return *pointer; });
        haft::update<Slot>([&](std::unique_ptr<int> &pointer) { *pointer = seen + 1; });
        haft::put<Slot>(
            std::make_unique<int>(haft::update<Slot>([](auto &slot) { return *slot; })));
        haft::update<History>([&](auto &lines) {
            CHECK(&lines == place);
            lines.push_back("x");
        });
    }).with(cells);
    CHECK(*cells.get<Slot>() == 4 && cells.get<History>().size() == 1);
}

static void modify_leaves_the_state_alone_if_it_throws() {
    haft::cells<Balance> cells(1);
    haft::handle([] {
        CHECK(thrown_by<int>([] { haft::modify<Balance>([](int) -> int { throw 1; }); }) == 1);
    }).with(cells);
    CHECK(cells.get<Balance>() == 1);
}

static void cells_start_with_default_values() {
    CHECK(haft::handle([] {
              return haft::get<Balance>() + int(haft::get<Owner>().size());
          }).with_new<haft::cells<Balance, Owner>>() == 0);
}

static void fibers_share_a_cell() {
    haft::cells<Balance> cells(0);
    haft::handle([] {
        haft::generator<int> numbers([](haft::yielder<int> yield) {
            for (;;) {
                haft::modify<Balance>([](int value) { return value + 1; });
                yield(haft::get<Balance>());
            }
        });
        CHECK(*numbers.next() == 1);
        haft::put<Balance>(10);
        CHECK(*numbers.next() == 11);
    }).with(cells);
}

/* Runs a body with 100 in the Balance and says what is there afterwards. */
template <typename Body>
static int balance_after(Body body) {
    haft::cells<Balance, History> cells(100, {});
    haft::handle(std::move(body)).with(cells);
    CHECK(cells.get<History>().empty());
    return cells.get<Balance>();
}

static void a_transaction_commits() {
    CHECK(balance_after([] {
              CHECK(haft::transaction<Balance>([] { haft::put<Balance>(70); }));
              CHECK(haft::transaction<Balance>([] { return haft::get<Balance>(); }) == 70);
          }) == 70);
}

static void a_transaction_is_rolled_back_by_request() {
    CHECK(balance_after([] {
              CHECK(!haft::transaction<Balance, History>([] {
                  counted local;
                  haft::put<Balance>(70);
                  haft::put<Balance>(60);
                  haft::update<History>([](auto &lines) { lines.push_back("paid"); });
                  haft::roll_back();
              }));
              CHECK(counted::alive == 0 && haft::get<Balance>() == 100);
              auto answer = haft::transaction<Balance>([]() -> std::string {
                  haft::put<Balance>(1);
                  haft::roll_back();
              });
              CHECK(!answer.has_value());
          }) == 100);
}

static void a_transaction_is_rolled_back_by_an_exception() {
    CHECK(balance_after([] {
              CHECK(thrown_by<std::string>([] {
                        haft::transaction<Balance>([] {
                            haft::put<Balance>(70);
                            throw std::string("no");
                        });
                    }) == "no");
              CHECK(haft::get<Balance>() == 100);
          }) == 100);
}

static void an_exception_inside_of_a_transaction_may_be_caught() {
    CHECK(balance_after([] {
              haft::transaction<Balance>([] {
                  haft::put<Balance>(70);
                  (void)thrown_by<int>([] { throw 1; });
              });
          }) == 70);
}

static void a_transaction_is_rolled_back_when_it_is_dropped() {
    CHECK(balance_after([] {
              haft::handle([] {
                  haft::transaction<Balance>([] {
                      haft::put<Balance>(70);
                      haft::perform(Pause{});
                  });
              }).with([](Pause, haft::resumption<void()> k) {
                  CHECK(haft::get<Balance>() == 70);
                  std::move(k).drop();
                  CHECK(haft::get<Balance>() == 100);
              });
          }) == 100);
}

static void a_suspended_transaction_goes_on_later() {
    haft::resumption<void()> waiting;
    bool rolled_back = false;
    haft::handle([&] {
        haft::cells<Balance> cells(100);
        haft::handle([&] {
            rolled_back = !haft::transaction<Balance>([] {
                haft::put<Balance>(70);
                haft::perform(Pause{});
                haft::roll_back();
            });
        }).with(cells);
        CHECK(cells.get<Balance>() == 100);
    }).with([&](Pause, haft::resumption<void()> k) { waiting = std::move(k); });
    CHECK(!rolled_back);
    std::move(waiting).resume();
    CHECK(rolled_back);
}

static void nested_transactions_go_back_with_the_outer_one() {
    CHECK(balance_after([] {
              CHECK(!haft::transaction<Balance, History>([] {
                  CHECK(haft::transaction<Balance>([] { haft::put<Balance>(50); }));
                  CHECK(haft::get<Balance>() == 50);
                  haft::update<History>([](auto &lines) { lines.push_back("x"); });
                  haft::roll_back();
              }));
          }) == 100);
    CHECK(balance_after([] {
              CHECK(haft::transaction<Balance>([] {
                  haft::put<Balance>(80);
                  CHECK(!haft::transaction<Balance>([] {
                      haft::put<Balance>(50);
                      haft::roll_back();
                  }));
                  CHECK(haft::get<Balance>() == 80);
              }));
          }) == 80);
}

static void an_outer_transaction_is_rolled_back_by_name() {
    CHECK(balance_after([] {
              CHECK(!haft::transaction<Balance>([](haft::rollback all) {
                  haft::put<Balance>(80);
                  haft::transaction<Balance>([&] {
                      counted local;
                      haft::put<Balance>(50);
                      all();
                  });
                  CHECK(false);
              }));
              CHECK(counted::alive == 0);
          }) == 100);
}

static void states_that_are_not_named_keep_their_changes() {
    haft::cells<Balance, Owner> cells(1, "a");
    haft::handle([] {
        haft::transaction<Balance>([] {
            haft::put<Balance>(2);
            haft::put<Owner>("b");
            haft::roll_back();
        });
    }).with(cells);
    CHECK(cells.get<Balance>() == 1 && cells.get<Owner>() == "b");
}

static void cells_inside_of_a_transaction_are_their_own() {
    CHECK(balance_after([] {
              haft::cells<Balance> inner(1);
              CHECK(!haft::transaction<Balance>([&] {
                  haft::handle([] { haft::put<Balance>(2); }).with(inner);
                  haft::roll_back();
              }));
              CHECK(inner.get<Balance>() == 2);
          }) == 100);
}

static void an_update_that_throws_half_way_is_taken_back() {
    haft::cells<History> cells({"old"});
    haft::handle([] {
        (void)thrown_by<int>([] {
            haft::transaction<History>([] {
                haft::update<History>([](auto &lines) {
                    lines.clear();
                    throw 1;
                });
            });
        });
    }).with(cells);
    CHECK(cells.get<History>() == std::vector<std::string>{"old"});
}

/* Leaves a transaction suspended that has written to `cells`, which is not captured with it. */
static haft::resumption<void()> suspended_in(haft::cells<Balance> &cells) {
    haft::resumption<void()> waiting;
    haft::handle([&] {
        haft::handle([] {
            haft::transaction<Balance>([] {
                haft::put<Balance>(70);
                haft::perform(Pause{});
                haft::put<Balance>(60);
            });
        }).with([&](Pause, haft::resumption<void()> k) { waiting = std::move(k); });
    }).with(cells);
    return waiting;
}

static void a_transaction_dropped_late_restores_no_other_cell() {
    haft::cells<Balance> cells(100), others(5);
    /* Nobody is around. */
    suspended_in(cells) = {};
    CHECK(cells.get<Balance>() == 70);
    /* Another cell is around; and another, within which the cell is. */
    auto waiting = suspended_in(cells);
    haft::handle([&] { waiting = {}; }).with(others);
    CHECK(cells.get<Balance>() == 70 && others.get<Balance>() == 5);
    cells.get<Balance>() = 100;
    waiting = suspended_in(cells);
    haft::handle([&] { haft::handle([&] { waiting = {}; }).with(others); }).with(cells);
    CHECK(cells.get<Balance>() == 100 && others.get<Balance>() == 5);
}

static void a_transaction_resumed_in_another_cell_is_refused() {
    haft::cells<Balance> cells(100), others(5);
    auto waiting = suspended_in(cells);
    auto error = thrown_by<std::logic_error>(
        [&] { haft::handle([&] { std::move(waiting).resume(); }).with(others); });
    CHECK(std::string(error.what()).find("Balance") != std::string::npos);
    CHECK(others.get<Balance>() == 5);
}

static void moved_cells_are_new_cells() {
    haft::cells<Balance> first(1);
    haft::cells<Balance> second = std::move(first);
    auto waiting = suspended_in(second);
    haft::handle([&] { waiting = {}; }).with(first);
    CHECK(first.get<Balance>() == 1);
}

static void handlers_between_see_the_writes() {
    int writes = 0;
    haft::cells<Balance> cells(0);
    haft::handle([&] {
        haft::handle([] {
            haft::put<Balance>(1);
            haft::transaction<Balance>([] {
                haft::put<Balance>(2);
                haft::roll_back();
            });
        }).with([&](haft::write_state<Balance> write) -> haft::cell<Balance> & {
            writes++;
            return haft::perform(write);
        });
    }).with(cells);
    CHECK(writes == 2 && cells.get<Balance>() == 1);
}

int main() {
    states_are_read_and_written();
    states_of_one_type_are_told_apart_by_name();
    the_innermost_cell_counts();
    values_are_updated_in_place_and_need_not_be_copied();
    modify_leaves_the_state_alone_if_it_throws();
    cells_start_with_default_values();
    fibers_share_a_cell();
    a_transaction_commits();
    a_transaction_is_rolled_back_by_request();
    a_transaction_is_rolled_back_by_an_exception();
    an_exception_inside_of_a_transaction_may_be_caught();
    a_transaction_is_rolled_back_when_it_is_dropped();
    a_suspended_transaction_goes_on_later();
    nested_transactions_go_back_with_the_outer_one();
    an_outer_transaction_is_rolled_back_by_name();
    states_that_are_not_named_keep_their_changes();
    cells_inside_of_a_transaction_are_their_own();
    an_update_that_throws_half_way_is_taken_back();
    a_transaction_dropped_late_restores_no_other_cell();
    a_transaction_resumed_in_another_cell_is_refused();
    moved_cells_are_new_cells();
    handlers_between_see_the_writes();
}
