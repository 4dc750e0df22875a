// SPDX-License-Identifier: MIT
/* Computations of C++ that go on more than once: haft/multi_shot.hpp. */
#include "../../core/tests/sanitizers.h"
#include "check.hpp"

#include <haft/multi_shot.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Choose : haft::effect<int> {
    int count;
};
struct Fail : haft::effect<void> {};

using texts = std::vector<std::string>;
using choice = haft::multi_shot<texts(int)>;

texts each(Choose choose, choice k) {
    texts all;
    for (int i = 0; i < choose.count; i++)
        for (auto &text : i < choose.count - 1 ? k.resume(i) : std::move(k).resume(i))
            all.push_back(std::move(text));
    return all;
}

void a_computation_answers_for_each_choice() {
    auto all = haft::handle_multi_shot(
        [] {
            int a = haft::perform<Choose>(4);
            int b = haft::perform<Choose>(4);
            if ((a + b) % 3 != 0)
                haft::perform<Fail>();
            return texts{std::to_string(a) + std::to_string(b)};
        },
        [](Choose choose, choice k) { return each(choose, std::move(k)); },
        [](Fail, haft::multi_shot<texts()>) { return texts(); });
    CHECK(all == (texts{"00", "03", "12", "21", "30", "33"}));
    CHECK(haft_pool_report().stacks == 0);
}

void a_resumption_may_be_kept_and_copied() {
    std::vector<haft::multi_shot<int(int)>> kept;
    int answer = haft::handle_multi_shot(
        [] { return haft::perform<Choose>(1) * 10 + haft::perform<Choose>(2); },
        [&](Choose, haft::multi_shot<int(int)> k) {
            kept.push_back(k);
            return -1;
        });
    CHECK(answer == -1);
    auto first = kept[0];
    CHECK(first.resume(1) == -1);
    CHECK(first.resume(2) == -1);
    CHECK(kept[1].resume(5) == 15);
    CHECK(kept[2].resume(6) == 26);
    CHECK(std::move(kept[1]).resume(7) == 17);
    CHECK(!kept[1]);
    CHECK(static_cast<bool>(kept[2]));
    kept.clear();
    CHECK(std::move(first).resume(3) == -1);
    kept.clear();
    CHECK(haft_pool_report().stacks == 0);
}

void exceptions_leave_body_and_clauses() {
    int thrown = 0;
    auto run = [&](bool in_clause) {
        return haft::handle_multi_shot(
            [] {
                if (haft::perform<Choose>(2) == 1)
                    throw std::runtime_error("one");
                return 0;
            },
            [&](Choose choose, haft::multi_shot<int(int)> k) {
                for (int i = 0; i < choose.count; i++)
                    try {
                        k.resume(i);
                    } catch (const std::runtime_error &) {
                        thrown++;
                    }
                if (in_clause)
                    throw std::logic_error("clause");
                return thrown;
            });
    };
    CHECK(run(false) == 1);
    try {
        run(true);
        CHECK(false);
    } catch (const std::logic_error &) {
    }
    CHECK(thrown == 2);
    CHECK(haft_pool_report().stacks == 0);
}

struct refused {
    std::string message;
};
void refuse(const haft_error_t *error) {
    throw refused{error->message};
}

void a_frame_with_a_destructor_is_refused() {
#if CHECK_ADDRESS_SANITIZER
    return; /* whose own cleanups cannot be told from others */
#endif
    haft_error_handler_t *before = haft_set_error_handler(refuse);
    std::string message;
    try {
        haft::handle_multi_shot(
            [] {
                std::string text(100, 'x');
                return haft::perform<Choose>(2) + static_cast<int>(text.size());
            },
            [](Choose, haft::multi_shot<int(int)> k) { return k.resume(1); });
    } catch (const refused &error) {
        message = error.message;
    }
    haft_set_error_handler(before);
    CHECK(message.find("in a frame with cleanups or destructors") != std::string::npos);
    CHECK(haft_pool_report().stacks == 0);
}

/* ---- Handlers of haft.hpp inside ---- */

struct Get : haft::effect<int> {};
struct Put : haft::effect<> {
    int value;
};
struct Stop : haft::effect<> {
    int answer;
};

struct Cell : haft::handler<Get, Put> {
    int value;
    explicit Cell(int first) : value(first) {}
    int operator()(Get) { return value; }
    void operator()(Put put) { value = put.value; }
};
/* The same, with a fiber. */
struct FiberCell : haft::handler<Get, Put, haft::never<Stop>> {
    int value;
    explicit FiberCell(int first) : value(first) {}
    haft::tail<int> operator()(Get, haft::resumption<int(int)> k) {
        return std::move(k).tail_resume(value);
    }
    haft::tail<int> operator()(Put put, haft::resumption<int()> k) {
        value = put.value;
        return std::move(k).tail_resume();
    }
    int operator()(Stop stop) { return stop.answer + value; }
};

using chosen = haft::multi_shot<int(int)>;

constexpr auto sum_of_all = [](Choose choose, const chosen &k) {
    int sum = 0;
    for (int i = 0; i < choose.count; i++)
        sum += k.resume(i);
    return sum;
};

/* Counts up by what is chosen, twice. */
int count_up() {
    for (int i = 0; i < 2; i++) {
        int by = haft::perform<Choose>(3);
        haft::perform<Put>(haft::perform(Get{}) * 10 + by);
    }
    return haft::perform(Get{});
}

/* 100 + 11, over all pairs of digits up to 2. */
constexpr int sum_of_pairs = 9 * 100 + (0 + 1 + 2) * 3 * 11;

template <typename Handler>
void each_copy_has_state_of_its_own() {
    CHECK(haft::handle_multi_shot([] { return haft::handle(count_up).with(Handler(1)); },
                                  sum_of_all) == sum_of_pairs);
    CHECK(haft_pool_report().stacks == 0);
}

void handlers_nest_inside() {
    int shared = 0;
    int sum = haft::handle_multi_shot(
        [&] {
            return haft::handle([] {
                       return haft::handle([] {
                                  return haft::handle(count_up).on({.name = "own"}).with(Cell(1));
                              })
                           .with([](Fail, haft::resumption<int()> k) {
                               return std::move(k).resume();
                           });
                   })
                .with([&](Fail) { shared++; }, haft::on_return([&](int result) {
                          shared++;
                          haft::perform<Choose>(2);
                          return result;
                      }));
        },
        sum_of_all);
    CHECK(sum == 2 * sum_of_pairs);
    CHECK(shared == 9);
    CHECK(haft_pool_report().stacks == 0);
}

template <typename Handler>
void state_by_reference_is_one_for_all() {
    Handler cell(0);
    int sum = haft::handle_multi_shot(
        [&] {
            return haft::handle([] {
                       haft::perform<Choose>(3);
                       haft::perform<Put>(haft::perform(Get{}) + 1);
                       return haft::perform(Get{});
                   })
                .with(cell);
        },
        sum_of_all);
    CHECK(sum == 1 + 2 + 3);
    CHECK(cell.value == 3);
}

template <typename Handler>
void copies_of_copies_go_on_after_the_original_has_ended() {
    std::vector<chosen> kept;
    auto keep = [&](Choose, chosen k) {
        kept.push_back(std::move(k));
        return -1;
    };
    CHECK(haft::handle_multi_shot([] { return haft::handle(count_up).with(Handler(4)); }, keep) ==
          -1);
    chosen first = std::move(kept[0]), again = first;
    kept.clear();
    CHECK(std::move(first).resume(1) == -1);
    chosen second = std::move(kept[0]);
    kept.clear();
    CHECK(second.resume(5) == 415);
    CHECK(std::move(second).resume(6) == 416);
    CHECK(!second);
    chosen third = again;
    CHECK(third.resume(2) == -1);
    CHECK(std::move(again).resume(3) == -1);
    CHECK(kept.size() == 2);
    CHECK(kept[1].resume(8) == 438);
    CHECK(kept[0].resume(7) == 427);
    chosen last = kept[0];
    kept.clear();
    CHECK(last.resume(9) == 429);
    std::move(last).drop();
    CHECK(third.resume(1) == -1);
    CHECK(std::move(kept[0]).resume(1) == 411);
}
template <typename Handler>
void nothing_is_left_of_copies() {
    copies_of_copies_go_on_after_the_original_has_ended<Handler>();
    CHECK(haft_pool_report().stacks == 0);
}

template <typename Handler>
void exceptions_pass_the_handlers_inside() {
    int caught = 0;
    auto run = [&](auto body) {
        return haft::handle_multi_shot(
            [&] {
                return haft::handle([&] {
                           try {
                               return body();
                           } catch (const std::logic_error &) {
                               return 1000;
                           }
                       })
                    .with(Handler(1));
            },
            [&](Choose choose, chosen k) {
                int sum = 0;
                for (int i = 0; i < choose.count; i++)
                    try {
                        sum += k.resume(i);
                    } catch (const std::runtime_error &) {
                        caught++;
                    }
                try {
                    sum += k.discontinue(std::logic_error("from the clause"));
                    sum += k.discontinue(std::make_exception_ptr(std::runtime_error("pointer")));
                } catch (const std::runtime_error &) {
                    caught++;
                }
                return sum;
            });
    };
    CHECK(run([] {
              int picked = haft::perform<Choose>(4);
              if (picked == 1)
                  throw std::runtime_error("one");
              if (picked == 2)
                  throw std::logic_error("two");
              return picked + haft::perform(Get{});
          }) == 1 + 1000 + 4 + 1000);
    CHECK(caught == 2);
    CHECK(haft_pool_report().stacks == 0);
}

void clauses_that_never_resume_end_one_copy() {
    int sum = haft::handle_multi_shot(
        [] {
            return haft::handle([] {
                       int picked = haft::perform<Choose>(3);
                       haft::perform<Put>(picked);
                       if (picked == 1)
                           haft::perform<Stop>(100);
                       return haft::perform(Get{}) + haft::perform<Choose>(2);
                   })
                .with(FiberCell(0));
        },
        sum_of_all);
    CHECK(sum == (0 + 1) + 101 + (2 + 3));
    CHECK(haft_pool_report().stacks == 0);
}

/* ---- Results and payloads that no word holds ---- */

struct place {
    long x, y, z;
};
struct Where : haft::effect<place> {
    place from;
    double scale;
};
void large_results_and_payloads_are_copied() {
    long sum = haft::handle_multi_shot(
        [] {
            return haft::handle([]() -> long {
                       place one = haft::perform(Where{.from = {1, 2, 3}, .scale = 2});
                       place two = haft::perform(Where{.from = one, .scale = 1});
                       return two.x * 100 + two.y * 10 + two.z + haft::perform(Get{});
                   })
                .on({.name = "own"})
                .with(Cell(0));
        },
        [](Where where, haft::multi_shot<long(place)> k) {
            long all = 0;
            for (long i = 0; i < 2; i++) {
                place to = where.from;
                to.x += i * static_cast<long>(where.scale);
                all += k.resume(to);
            }
            return all + std::move(k).resume({0, 0, 0});
        });
    long expected = 0;
    for (long first : {1, 3}) {
        for (long second : {0, 1})
            expected += (first + second) * 100 + 23;
    }
    for (long second : {0, 1})
        expected += second * 100;
    CHECK(sum == expected);
    CHECK(haft_pool_report().stacks == 0);
}

/* ---- What is refused ---- */

template <typename Body>
std::string refusal(Body body) {
#if CHECK_ADDRESS_SANITIZER
    (void)body;
    return "in a frame with cleanups or destructors"; /* it cannot be told from its own cleanups */
#else
    haft_error_handler_t *before = haft_set_error_handler(refuse);
    std::string message;
    try {
        (void)haft::handle_multi_shot(body, [](Choose, chosen k) { return k.resume(1); });
    } catch (const refused &error) {
        message = error.message;
    }
    haft_set_error_handler(before);
    CHECK(haft_pool_report().stacks == 0);
    return message;
#endif
}
bool is_refused(const std::string &message) {
    return message.find("in a frame with cleanups or destructors") != std::string::npos;
}

struct Named : FiberCell {
    std::string name = "a name that is too long for a small string";
    Named() : FiberCell(0) {}
};
struct NamedInPlace : Cell {
    std::string name = "a name that is too long for a small string";
    NamedInPlace() : Cell(0) {}
};
void what_cannot_be_copied_is_refused_in_words() {
    CHECK(is_refused(refusal([] { return haft::handle(count_up).with(Named()); })));
    CHECK(is_refused(refusal([] { return haft::handle(count_up).with(NamedInPlace()); })));
    CHECK(is_refused(refusal([] {
        return haft::handle([text = std::string(100, 'x')] {
                   return haft::perform<Choose>(2) + static_cast<int>(text.size());
               })
            .with(FiberCell(0));
    })));
    CHECK(is_refused(refusal([] {
        return haft::handle([] { return haft::perform(Get{}); })
            .with([](Get, haft::resumption<int(int)> k) {
                int picked = haft::perform<Choose>(2);
                return std::move(k).resume(picked);
            });
    })));
    CHECK(is_refused(refusal([] {
        return haft::handle([] {
                   std::string text(100, 'x');
                   return haft::perform<Choose>(2) + static_cast<int>(text.size());
               })
            .with(Cell(0));
    })));
}

/* ---- Random programs ---- */

enum step { choose, add, handle_in_place, handle_on_fiber, fail, end };
struct instruction {
    step kind;
    int number;
};
const instruction *program;

/* Runs from there on, and then what is handled around, by effects. */
__attribute__((noinline)) int run_from(int at) {
    for (;; at++) {
        int number = program[at].number;
        switch (program[at].kind) {
        case choose:
            haft::perform<Put>(haft::perform(Get{}) + haft::perform<Choose>(number));
            break;
        case add:
            haft::perform<Put>(haft::perform(Get{}) * 3 + number);
            break;
        case handle_in_place:
            return haft::perform(Get{}) +
                   2 * haft::handle([at] { return run_from(at + 1); }).with(Cell(number));
        case handle_on_fiber:
            return haft::perform(Get{}) +
                   2 * haft::handle([at] { return run_from(at + 1); }).with(FiberCell(number));
        case fail:
            if (haft::perform(Get{}) % 3 == number % 3)
                haft::perform(Fail{});
            break;
        case end:
            return haft::perform(Get{});
        }
    }
}
/* The same by a search over all choices, with the states of the handlers around in a list. */
int expect_from(int at, std::vector<int> around, int state) {
    int number = program[at].number;
    int sum = 0;
    switch (program[at].kind) {
    case choose:
        for (int i = 0; i < number; i++)
            sum += expect_from(at + 1, around, state + i);
        return sum;
    case add:
        return expect_from(at + 1, around, state * 3 + number);
    case handle_in_place:
    case handle_on_fiber:
        around.push_back(state);
        return expect_from(at + 1, around, number);
    case fail:
        return state % 3 == number % 3 ? 0 : expect_from(at + 1, around, state);
    case end:
        for (; !around.empty(); around.pop_back())
            state = around.back() + 2 * state;
        return state;
    }
    return sum;
}

void random_programs_have_the_answers_of_a_search() {
    unsigned seed = 1;
    auto random = [&](unsigned below) {
        seed = seed * 1103515245u + 12345u;
        return (seed >> 16) % below;
    };
    for (int i = 0; i < check_times(4000); i++) {
        std::vector<instruction> made;
        int choices = 0;
        for (unsigned left = 2 + random(10); left != 0; left--) {
            auto kind = static_cast<step>(random(end));
            if (kind == choose && ++choices > 4)
                kind = add;
            made.push_back({kind, static_cast<int>(1 + random(3))});
        }
        made.push_back({end, 0});
        program = made.data();
        int answer = haft::handle_multi_shot(
            [] { return haft::handle([] { return run_from(0); }).with(Cell(1)); }, sum_of_all,
            [](Fail, haft::multi_shot<int()>) { return 0; });
        CHECK(answer == expect_from(0, {}, 1));
        CHECK(haft_pool_report().stacks == 0);
    }
}

struct shared_failure {
    static inline int alive = 0;
    shared_failure() { alive++; }
    shared_failure(const shared_failure &) { alive++; }
    ~shared_failure() { alive--; }
};
void catch_what_replaces_an_unwinding() {
    try {
        try {
            haft::perform(Stop{});
        } catch (...) {
            throw std::runtime_error("instead");
        }
    } catch (const std::exception &) {
    }
}

/* A clause in place has thrown, and another exception took the place of the unwinding. */
template <typename Options>
void what_a_clause_has_thrown_in_vain_is_not_copied(Options on) {
    int all = haft::handle_multi_shot(
        [=] {
            auto body = [] {
                catch_what_replaces_an_unwinding();
                return haft::perform<Choose>(3);
            };
            return on(haft::handle(body)).with([](Stop) { throw shared_failure(); });
        },
        [](Choose choose, haft::multi_shot<int(int)> k) {
            CHECK(shared_failure::alive == 0);
            int sum = 0;
            for (int i = 0; i < choose.count; i++)
                sum += k.resume(i);
            return sum;
        });
    CHECK(all == 3 && haft_pool_report().stacks == 0);
}

} // namespace

int main() {
#if CHECK_THREAD_SANITIZER
    return 77; /* it knows no copies of stacks */
#endif
    a_computation_answers_for_each_choice();
    a_resumption_may_be_kept_and_copied();
    exceptions_leave_body_and_clauses();
    a_frame_with_a_destructor_is_refused();
    each_copy_has_state_of_its_own<Cell>();
    each_copy_has_state_of_its_own<FiberCell>();
    handlers_nest_inside();
    state_by_reference_is_one_for_all<Cell>();
    state_by_reference_is_one_for_all<FiberCell>();
    nothing_is_left_of_copies<Cell>();
    nothing_is_left_of_copies<FiberCell>();
    exceptions_pass_the_handlers_inside<Cell>();
    exceptions_pass_the_handlers_inside<FiberCell>();
    clauses_that_never_resume_end_one_copy();
    large_results_and_payloads_are_copied();
    what_cannot_be_copied_is_refused_in_words();
    what_a_clause_has_thrown_in_vain_is_not_copied([](auto &&made) { return std::move(made); });
    what_a_clause_has_thrown_in_vain_is_not_copied(
        [](auto &&made) { return std::move(made).on({.name = "own"}); });
    random_programs_have_the_answers_of_a_search();
}
