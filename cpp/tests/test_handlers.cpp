/* Handlers: kinds of clauses, classes, references, instances, and what a clause's own code can see.
 */
#include "check.hpp"

#include <haft.hpp>
#include <memory>
#include <string>
#include <vector>

struct Get : haft::effect<int> {};
struct Put : haft::effect<> {
    int value;
};
struct Stop : haft::effect<> {
    std::string reason;
};
struct Yield : haft::effect<> {
    int value;
};

static int increment() {
    haft::perform(Put{.value = haft::perform(Get{}) + 1});
    return haft::perform(Get{});
}

template <typename Answer>
class Stateful : public haft::handler<Put, Get, haft::never<Stop>> {
  public:
    explicit Stateful(int initial) : state(initial) {}
    Stateful(Stateful &&) = delete;
    int state;
    haft::tail<Answer> operator()(Put p, haft::resumption<Answer()> k) {
        state = p.value;
        return std::move(k).tail_resume();
    }
    int operator()(Get) { return state; }
    Answer operator()(Stop s) { return static_cast<Answer>(s.reason.size()); }
};

class Plain : public haft::handler<Put, Get> {
  public:
    int state = 0;
    int operator()(Get) noexcept { return state; }
    void operator()(Put p) noexcept { state = p.value; }
};

static void classes_are_made_in_place() {
    CHECK(haft::handle(increment).with_new<Stateful<int>>(100) == 101);
}

static void handlers_are_used_by_reference() {
    Stateful<int> handler(5);
    CHECK(haft::handle(increment).with(handler) == 6);
    CHECK(haft::handle(increment).with(handler) == 7);
    CHECK(handler.state == 7);
    Plain plain;
    CHECK(haft::handle(increment).with(plain) == 1);
    CHECK(plain.state == 1);
    CHECK(haft::handle(increment).with(Plain{}) == 1);
}

static void handlers_are_owned_by_smart_pointers() {
    auto shared = std::make_shared<Stateful<int>>(7);
    CHECK(haft::handle(increment).with(shared) == 8);
    CHECK(shared->state == 8 && shared.use_count() == 1);
    CHECK(haft::handle(increment).with(std::make_unique<Stateful<int>>(8)) == 9);
    CHECK(haft::handle(increment).with(std::make_unique<Plain>()) == 1);
}

static void a_never_resuming_clause_unwinds_first() {
    int alive = -1;
    int answer = haft::handle([] {
                     counted local;
                     std::string reason = "why";
                     haft::perform(Stop{.reason = reason});
                     return 0;
                 }).with(haft::never([&](Stop s) {
        alive = counted::alive;
        return static_cast<int>(s.reason.size());
    }));
    CHECK(answer == 3 && alive == 0);
    CHECK(haft::handle([] {
              haft::perform(Stop{.reason = "four"});
              return 0;
          }).with_new<Stateful<int>>(1) == 4);
}

static void a_return_clause_changes_the_answer() {
    auto text = haft::on_return([](int number) { return std::to_string(number); });
    CHECK(haft::handle([] { return 1 + 1; }).with(text) == "2");
    CHECK(haft::handle([] { return haft::perform(Get{}); }).with([](Get) { return 3; }, text) ==
          "3");
    CHECK(
        haft::handle([] { return haft::perform(Get{}); })
            .with([](Get,
                     haft::resumption<std::string(int)> k) { return std::move(k).resume(4) + "!"; },
                  text) == "4!");
    CHECK(haft::handle([] {
              haft::perform(Get{});
          }).with([](Get, haft::resumption<int(int)>) { return 1; }, haft::on_return([] {
                      return 2;
                  })) == 1);
    CHECK(haft::handle([] {}).with([](Get, haft::resumption<int(int)>) { return 1; },
                                   haft::on_return([] { return 2; })) == 2);
    haft::handle([] {
        return 1;
    }).with([](Get, haft::resumption<void(int)>) {}, haft::on_return([](int) {}));
}

static void functions_can_be_clauses() {
    struct f {
        static int get(Get) { return 8; }
        static int stop(Stop) { return 9; }
    };
    CHECK(haft::handle([] { return haft::perform(Get{}); }).with(&f::get) == 8);
    CHECK(haft::handle([] { return haft::perform(Stop{}), 1; }).with(haft::never(&f::stop)) == 9);
}

static void a_clause_runs_outside_its_own_handler() {
    auto inner_in_place = [](Get) { return haft::perform(Get{}) + 1; };
    auto body = [] { return haft::perform(Get{}); };
    CHECK(haft::handle([&] { return haft::handle(body).with(inner_in_place); }).with([](Get) {
        return 10;
    }) == 11);
    CHECK(haft::handle([&] {
              return haft::handle(body).with(inner_in_place,
                                             [](Put, haft::resumption<int()>) { return 0; });
          }).with([](Get, haft::resumption<int(int)> k) { return std::move(k).resume(20); }) == 21);
    CHECK(haft::handle([&] {
              return haft::handle(body).with([](Get, haft::resumption<int(int)> k) {
                  return std::move(k).resume(haft::perform(Get{}) + 2);
              });
          }).with([](Get, haft::resumption<int(int)> k) { return std::move(k).resume(30); }) == 32);
}

static int deep(int depth) {
    if (depth == 0)
        return haft::perform(Get{});
    return haft::handle([=] { return deep(depth - 1); }).with([](Get) {
        return haft::perform(Get{}) + 1;
    });
}
static void handlers_in_place_nest_deeply() {
    /* Sanitizers make frames of kilobytes. */
    CHECK(haft::handle([] { return deep(500); }).with([](Get) { return 1; }) == 501);
}

static void an_instance_is_performed_to_across_others() {
    auto inner = [](haft::instance<Get> outer) {
        int sum = 0;
        for (int i = 0; i < 3; i++)
            sum += haft::perform(Get{}) + outer.perform(Get{});
        return sum;
    };
    for (int fiber = 0; fiber < 2; fiber++) {
        auto middle = [&](haft::instance<Get> outer) {
            if (fiber)
                return haft::handle([&] { return inner(outer); })
                    .with([](Get, haft::resumption<int(int)> k) { return std::move(k).resume(1); });
            return haft::handle([&] { return inner(outer); }).with([](Get) { return 1; });
        };
        CHECK(haft::handle(middle).with([](Get) { return 10; }) == 33);
        CHECK(haft::handle(middle).with(
                  [](Get, haft::resumption<int(int)> k) { return std::move(k).resume(20); }) == 63);
    }
}

static void an_instance_is_usable_only_inside() {
    haft_set_error_handler([](const haft_error_t *error) { throw error->code; });
    std::vector<haft::instance<Get>> kept;
    haft::handle([&](haft::instance<Get> self) {
        kept.push_back(self);
    }).with([](Get, haft::resumption<void(int)>) {});
    CHECK(thrown_by<haft_error_code_t>([&] { kept[0].perform(Get{}); }) == HAFT_ERROR_NOT_AROUND);
    haft_set_error_handler(nullptr);
}

static int next(haft::may<Get, Put> can) {
    int value = can.perform(Get{});
    can.perform(Put{.value = value + 1});
    return value;
}
static int peek(haft::may<Get> can) {
    return can.perform(Get{});
}

static void functions_state_their_effects() {
    Plain cell;
    CHECK(haft::handle([](haft::may<Put, Get> can) {
              next(can);
              return peek(can) + haft::handle(can, [](haft::may<Get, Put, Yield> more) {
                                     more.perform(Yield{.value = 1});
                                     return next(more);
                                 }).with([](Yield) {});
          }).with(cell) == 2);
    CHECK(cell.state == 2);
}

static void wrap_makes_a_resumption_that_is_not_started() {
    bool ran = false;
    {
        auto k = haft::wrap([&] { ran = true; }).with([](Get) { return 1; });
        CHECK(k);
    }
    CHECK(!ran);
    auto k = haft::wrap([&] { return haft::perform(Get{}); }).with([](Get) { return 5; });
    CHECK(std::move(k).resume() == 5);
    CHECK(!k);
    auto with_argument =
        haft::wrap<int>([](int number) {
            return number + haft::perform(Get{});
        }).with([](Get, haft::resumption<int(int)> r) { return std::move(r).resume(2); });
    CHECK(std::move(with_argument).resume(40) == 42);
    auto with_text = haft::wrap<std::string>([](std::string text) {
                         return text + "!";
                     }).with([](Get) { return 2; });
    CHECK(std::move(with_text).resume("hey") == "hey!");
}

/* ---- Every way to start a wrapped computation, and every kind of value to start it with ---- */

struct large {
    long words[16];
    bool operator==(const large &) const = default;
};
struct empty {
    bool operator==(const empty &) const = default;
};
struct Answers : haft::handler<Get> {
    int answer = 1;
    int operator()(Get) { return answer; }
};

/* Starts, in one way, a computation that is given `value`; the answer is the sum of what its
   handlers reply, or -1 if the value that the body got was not `right`. */
template <typename Value, typename Right>
static auto started(const Right &right) {
    return haft::wrap<Value>([&right](Value got) {
        int first = haft::perform(Get{});
        return right(got) ? first + haft::perform(Get{}) : -1;
    });
}
template <typename Value, typename Make, typename Right>
static void is_given_in_every_way(Make make, Right right) {
    auto general = [](Get, haft::resumption<int(int)> k) { return std::move(k).resume(100); };
    auto started_by = [&](auto way) { return way(started<Value>(right).with(Answers())); };
    CHECK(started_by([&](auto k) { return std::move(k).resume(make()); }) == 2);
    CHECK(started_by([&](auto k) {
              return haft::handle([] { return haft::perform(Put{.value = 1}), 0; })
                  .with([&](Put, haft::resumption<int()> other) -> haft::tail<int> {
                      std::move(other).drop();
                      return std::move(k).tail_resume(make());
                  });
          }) == 2);
    CHECK(started_by([&](auto k) { return std::move(k).resume_with(general, make()); }) == 200);
    CHECK(started_by([&](auto k) {
              return std::move(k).resume_with([](Get) { return 5; }, make());
          }) == 10);
    Answers ten;
    ten.answer = 10;
    CHECK(started_by([&](auto k) { return std::move(k).resume_with(ten, make()); }) == 20);
    CHECK(started_by([&](auto k) { return std::move(k).resume_with(Answers(ten), make()); }) == 20);
    CHECK(started_by([&](auto k) {
              return std::move(k).resume_with(std::make_shared<Answers>(ten), make());
          }) == 20);
    CHECK(started_by([&](auto k) {
              return std::move(k).resume_with(
                  [](Get, haft::resumption<int(int)> second) {
                      return std::move(second).resume_with([](Get) { return 30; }, 3);
                  },
                  make());
          }) == 33);
    /* The handler of the wrap is referred to, and the other is of its type. */
    Answers one;
    CHECK(started<Value>(right).with(one).resume(make()) == 2);
    CHECK(started<Value>(right).with(one).resume_with(ten, make()) == 20);
    CHECK(started<Value>(right).with(one).resume_with(general, make()) == 200);
    CHECK(started<Value>(right).with(std::make_unique<Answers>()).resume_with(ten, make()) == 20);
}

static void a_wrapped_computation_is_given_its_value_however_it_is_started() {
    is_given_in_every_way<int>([] { return 40; }, [](int got) { return got == 40; });
    is_given_in_every_way<double>([] { return 0.5; }, [](double got) { return got == 0.5; });
    static int cell;
    is_given_in_every_way<int *>([] { return &cell; }, [](int *got) { return got == &cell; });
    is_given_in_every_way<int &>([]() -> int & { return cell; },
                                 [](int &got) { return &got == &cell; });
    is_given_in_every_way<const large &>(
        []() -> const large & {
            static const large value = {{1, 2}};
            return value;
        },
        [](const large &got) { return got.words[1] == 2; });
    is_given_in_every_way<large>(
        [] {
            return large{{7, 8, 9}};
        },
        [](const large &got) {
            return got == large{{7, 8, 9}};
        });
    is_given_in_every_way<empty>([] { return empty(); }, [](empty got) { return got == empty(); });
    is_given_in_every_way<std::string>([] { return std::string(100, 'x'); },
                                       [](const std::string &got) { return got.size() == 100; });
    is_given_in_every_way<std::unique_ptr<int>>(
        [] { return std::make_unique<int>(3); },
        [](const std::unique_ptr<int> &got) { return got != nullptr && *got == 3; });
    /* And one that takes none. */
    auto body = [] { return haft::perform(Get{}) + haft::perform(Get{}); };
    CHECK(haft::wrap(body).with(Answers()).resume_with([](Get) { return 5; }) == 10);
    CHECK(haft::wrap(body).with(Answers()).resume_with(
              [](Get, haft::resumption<int(int)> k) { return std::move(k).resume(100); }) == 200);
}

static void threads_take_turns() {
    std::vector<haft::resumption<void()>> queue;
    std::string trace;
    auto scheduler =
        haft::clauses([&](Yield, haft::resumption<void()> k) { queue.push_back(std::move(k)); });
    for (int i = 0; i < 3; i++)
        queue.push_back(haft::wrap([&trace, i] {
                            for (int turn = 0; turn < 3; turn++) {
                                trace += static_cast<char>('0' + i);
                                haft::perform(Yield{});
                            }
                        }).with(scheduler));
    while (!queue.empty()) {
        auto k = std::move(queue.front());
        queue.erase(queue.begin());
        std::move(k).resume();
    }
    CHECK(trace == "012012012");
}

static void a_resumption_used_twice_is_an_error_that_names_the_effect() {
    haft_set_error_handler([](const haft_error_t *error) {
        CHECK(std::string(error->message).find("Get") != std::string::npos);
        throw error->code;
    });
    CHECK(thrown_by<haft_error_code_t>([] {
              haft::handle([] {
                  return haft::perform(Get{});
              }).with([](Get, haft::resumption<int(int)> k) {
                  std::move(k).resume(1);
                  return std::move(k).resume(1);
              });
          }) == HAFT_ERROR_USED_RESUMPTION);
    haft_set_error_handler(nullptr);
}

static void an_empty_resumption_is_an_error_that_says_so() {
    haft_set_error_handler([](const haft_error_t *error) {
        CHECK(std::string(error->message).find("it is empty") != std::string::npos);
        throw error->code;
    });
    CHECK(thrown_by<haft_error_code_t>([] {
              haft::resumption<int(int)> none;
              std::move(none).resume(1);
          }) == HAFT_ERROR_USED_RESUMPTION);
    haft_set_error_handler(nullptr);
}

int main() {
    classes_are_made_in_place();
    handlers_are_used_by_reference();
    handlers_are_owned_by_smart_pointers();
    a_never_resuming_clause_unwinds_first();
    a_return_clause_changes_the_answer();
    functions_can_be_clauses();
    a_clause_runs_outside_its_own_handler();
    handlers_in_place_nest_deeply();
    an_instance_is_performed_to_across_others();
    an_instance_is_usable_only_inside();
    functions_state_their_effects();
    wrap_makes_a_resumption_that_is_not_started();
    a_wrapped_computation_is_given_its_value_however_it_is_started();
    threads_take_turns();
    a_resumption_used_twice_is_an_error_that_names_the_effect();
    an_empty_resumption_is_an_error_that_says_so();
}
// SPDX-License-Identifier: MIT
