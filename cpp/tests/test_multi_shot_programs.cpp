// SPDX-License-Identifier: MIT
/* Whole programs of C++ that go on twice, with what such programs have in their frames. */
#include "../../core/tests/sanitizers.h"
#include "check.hpp"

#include <algorithm>
#include <array>
#include <bitset>
#include <chrono>
#include <deque>
#include <functional>
#include <haft/multi_shot.hpp>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <queue>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

namespace {

struct Choose : haft::effect<int> {
    int count;
};
struct Fail : haft::effect<> {};
struct Get : haft::effect<int> {};

int choose(int count) {
    return haft::perform<Choose>(count);
}

/* The answers of all choices, in order. */
template <typename Body>
auto all_of(Body body) {
    using answers = std::vector<std::invoke_result_t<Body &>>;
    return haft::handle_multi_shot(
        [body] {
            auto one = body();
            return answers{one};
        },
        [](Choose choose, haft::multi_shot<answers(int)> k) {
            answers all;
            for (int i = 0; i < choose.count; i++)
                for (auto &answer : k.resume(i))
                    all.push_back(std::move(answer));
            return all;
        },
        [](Fail, haft::multi_shot<answers()>) { return answers(); });
}
template <typename Body>
int sum_of(Body body) {
    return haft::handle_multi_shot(
        body,
        [](Choose choose, haft::multi_shot<int(int)> k) {
            int sum = 0;
            for (int i = 0; i < choose.count; i++)
                sum += k.resume(i);
            return sum;
        },
        [](Fail, haft::multi_shot<int()>) { return 0; });
}

/* ---- What frames may have ---- */

struct shape {
    virtual int corners() const = 0;

  protected:
    ~shape() = default;
};
struct chosen_shape final : shape {
    int most;
    explicit chosen_shape(int of) : most(of) {}
    int corners() const override { return choose(most); }
};

template <typename T>
struct doubled {
    T value;
    T get() const { return value + static_cast<T>(choose(2)); }
};

void frames_of_values_are_copied() {
    const std::vector<int> outside{3, 1, 2};
    const std::string text = "some text";
    const std::function<int(int)> called = [](int most) { return choose(most); };
    std::map<std::string, int> named{{"two", 2}};
    int sum = sum_of([&] {
        std::array<int, 4> digits{};
        for (int &digit : digits)
            digit = choose(2);
        std::span<int> view(digits);
        std::string_view word = text;
        std::optional<int> maybe;
        if (choose(2) == 1)
            maybe = 5;
        std::bitset<81> bits;
        bits.set(static_cast<std::size_t>(choose(3)));
        auto [one, two] = std::pair(choose(2), 2.5);
        std::variant<int, double> either = one == 1 ? std::variant<int, double>(1.5) : 2;
        std::tuple<int, char> both{choose(1), 'x'};
        std::chrono::seconds seconds(choose(2));
        int total = std::accumulate(view.begin(), view.end(), 0);
        for (int number : outside)
            total += number * choose(1);
        for (int number : {1, 2})
            total += number * choose(1);
        for (auto &[name, number] : named)
            total += number * choose(1);
        total += chosen_shape(1).corners() + doubled<long>{0}.get() > 0;
        total += called(1) + std::invoke(called, 1);
        return total + maybe.value_or(0) + static_cast<int>(bits.count()) +
               static_cast<int>(word.size()) + static_cast<int>(either.index()) +
               std::get<0>(both) + static_cast<int>(two) + static_cast<int>(seconds.count());
    });
    /* Over 16 x 2 x 3 x 2 x 2 x 2 = 768 choices. */
    CHECK(sum == 768 * (2 + 1 + 9 + 2) + 384 * (5 + 1 + 1 + 1));
    CHECK(haft_pool_report().stacks == 0);
}

/* Algorithms of the standard library that call what chooses. */
void algorithms_call_what_chooses() {
    int sum = sum_of([] {
        std::array<int, 3> digits{1, 2, 3};
        std::for_each(digits.begin(), digits.end(), [](int &digit) { digit += choose(2); });
        std::sort(digits.begin(), digits.end(),
                  [](int left, int right) { return choose(1) == 0 && left > right; });
        int all = std::accumulate(digits.begin(), digits.end(), 0,
                                  [](int before, int digit) { return before * 10 + digit; });
        if (std::any_of(digits.begin(), digits.end(), [](int digit) { return digit == 4; }))
            haft::perform<Fail>();
        return all;
    });
    /* 1 or 2, 2 or 3, and 3, in falling order. */
    CHECK(sum == 321 + 322 + 331 + 332);
}

/* Functions that are tried in turn: a parser, as a beginner writes it. */
int parse_sum(std::string_view &rest);
int parse_digit(std::string_view &rest) {
    if (rest.empty() || rest[0] < '0' || rest[0] > '9')
        haft::perform<Fail>();
    int digit = rest[0] - '0';
    rest.remove_prefix(1);
    return digit;
}
int parse_number(std::string_view &rest) {
    int number = parse_digit(rest);
    while (choose(2) == 1)
        number = number * 10 + parse_digit(rest);
    return number;
}
void expect(std::string_view &rest, char expected) {
    if (rest.empty() || rest[0] != expected)
        haft::perform<Fail>();
    rest.remove_prefix(1);
}
int parse_factor(std::string_view &rest) {
    if (choose(2) == 0)
        return parse_number(rest);
    expect(rest, '(');
    int inside = parse_sum(rest);
    expect(rest, ')');
    return inside;
}
int parse_sum(std::string_view &rest) {
    int sum = parse_factor(rest);
    while (choose(2) == 1) {
        expect(rest, '+');
        sum += parse_factor(rest);
    }
    return sum;
}
void a_parser_backtracks() {
    auto parsed = [](std::string_view text) {
        return all_of([text] {
            std::string_view rest = text;
            int value = parse_sum(rest);
            if (!rest.empty())
                haft::perform<Fail>();
            return value;
        });
    };
    CHECK(parsed("12+(3+40)+5") == std::vector<int>{60});
    CHECK(parsed("(1+2").empty());
    CHECK(haft_pool_report().stacks == 0);
}

/* ---- Resumptions that are kept ---- */

/* The way out of a maze, by the best of many that wait. */
struct Step : haft::effect<int> {
    int steps, x, y;
};
void the_best_of_many_goes_on_first() {
    static constexpr std::array<std::string_view, 6> maze = {"..#...", ".##.#.", "....#.",
                                                             ".##.#.", "..#.#.", "#...#."};
    static std::bitset<36> visited;
    using waiting = haft::multi_shot<int(int)>;
    struct entry {
        int cost, direction;
        waiting k;
        bool operator<(const entry &other) const { return cost > other.cost; }
    };
    std::priority_queue<entry> open;
    visited.reset();
    auto walk = [] {
        int x = 0, y = 0;
        for (int steps = 0;; steps++) {
            auto place = static_cast<std::size_t>(y * 6 + x);
            if (x == 5 && y == 5)
                return steps;
            if (visited[place])
                return -1;
            visited.set(place);
            int direction = haft::perform<Step>(steps, x, y);
            x += direction == 0 ? 1 : direction == 1 ? -1 : 0;
            y += direction == 2 ? 1 : direction == 3 ? -1 : 0;
            if (x < 0 || y < 0 || x > 5 || y > 5 ||
                maze[static_cast<std::size_t>(y)][static_cast<std::size_t>(x)] == '#')
                return -1;
        }
    };
    int found = haft::handle_multi_shot(walk, [&](Step step, waiting k) {
        for (int direction = 0; direction < 4; direction++)
            open.push({step.steps + (5 - step.x) + (5 - step.y), direction, k});
        return -1;
    });
    while (found < 0 && !open.empty()) {
        entry best = open.top();
        open.pop();
        found = std::move(best.k).resume(best.direction);
    }
    CHECK(found == 14);
    CHECK(!open.empty());
    open = {};
    CHECK(haft_pool_report().stacks == 0);
}

void resumptions_lie_in_containers() {
    using waiting = haft::multi_shot<int(int)>;
    std::deque<waiting> kept;
    auto keep = [&](Choose, waiting k) {
        kept.push_back(std::move(k));
        return -1;
    };
    (void)haft::handle_multi_shot([] { return choose(1) * 100 + choose(1) * 10 + choose(1); },
                                  keep);
    for (int i = 0; i < 2; i++) {
        std::vector<waiting> level(std::make_move_iterator(kept.begin()),
                                   std::make_move_iterator(kept.end()));
        kept.clear();
        std::vector<waiting> again = level; /* copies of copies */
        level.insert(level.end(), again.begin(), again.end());
        std::reverse(level.begin(), level.end());
        again.erase(again.begin());
        for (std::size_t at = 0; at < level.size(); at++)
            CHECK(level[at].resume(static_cast<int>(at)) == -1);
    }
    std::list<std::optional<waiting>> last(kept.begin(), kept.end());
    kept.clear();
    int sum = 0;
    for (auto &one : last) {
        sum += one->resume(3);
        sum += std::move(*one).resume(4);
        one.reset();
    }
    /* The first choice is 0 or 1; the second one of 0 to 3. */
    CHECK(sum == 2 * (2 * 100 + 6 * 10) + 4 * 7);
    CHECK(haft_pool_report().stacks == 0);
}

/* ---- Clauses, captures and answers of other kinds ---- */

int add_all(Choose choose, haft::multi_shot<int(int)> k) noexcept(false) {
    int sum = 0;
    for (int i = 0; i < choose.count; i++)
        sum += k.resume(i);
    return sum;
}
void clauses_are_functions_and_objects() {
    auto body = [] { return choose(2) * 10 + choose(3) + haft::perform(Get{}); };
    int asked = 0;
    CHECK(haft::handle_multi_shot(body, add_all,
                                  [&asked](Get, haft::multi_shot<int(int)> k) mutable noexcept {
                                      asked++;
                                      return std::move(k).resume(1);
                                  }) == 3 * 10 + 2 * 3 + 6);
    CHECK(asked == 6);
}
void bodies_and_answers_are_moved_only() {
    using answers = std::unique_ptr<std::vector<int>>;
    auto all = haft::handle_multi_shot(
        [base = std::make_unique<int>(100)] { /* one for all copies */
                                              int chosen = choose(3);
                                              ++*base;
                                              auto made = std::make_unique<std::vector<int>>();
                                              made->push_back(*base + chosen * 10);
                                              return made;
        },
        [](Choose choose, haft::multi_shot<answers(int)> k) {
            auto found = std::make_unique<std::vector<int>>();
            for (int i = 0; i < choose.count; i++) {
                answers more = k.resume(i);
                found->insert(found->end(), more->begin(), more->end());
            }
            return found;
        });
    CHECK(*all == (std::vector<int>{101, 112, 123}));
    CHECK(haft_pool_report().stacks == 0);
}

/* ---- Recursion ---- */

int choose_below(int depth) {
    volatile int here[16] = {depth};
    return depth == 0 ? choose(3) : choose_below(depth - 1) + (here[0] - depth);
}
void deep_recursion_is_copied() {
    CHECK(sum_of([] { return choose_below(500) + choose_below(200); }) == 2 * 9);
    CHECK(haft_pool_report().stacks == 0);
}

/* ---- What is refused ---- */

struct refused {
    std::string message;
};
void refuse(const haft_error_t *error) {
    throw refused{error->message};
}
template <typename Body>
bool is_refused(Body body) {
    haft_error_handler_t *before = haft_set_error_handler(refuse);
    std::string message;
    try {
        (void)sum_of(body);
    } catch (const refused &error) {
        message = error.message;
    }
    haft_set_error_handler(before);
    CHECK(haft_pool_report().stacks == 0);
    return message.find("waits in a frame with cleanups or destructors") != std::string::npos;
}
struct counted_object {
    static inline int alive = 0;
    counted_object() { alive++; }
    counted_object(const counted_object &) = delete;
    int one() const { return alive != 0; }
    ~counted_object() { alive--; }
};

void what_owns_something_is_refused() {
#if CHECK_ADDRESS_SANITIZER
    return; /* whose own cleanups cannot be told from others */
#endif
    std::mutex lock;
    std::shared_mutex shared;
    CHECK(is_refused([&] {
        std::lock_guard<std::mutex> held(lock);
        return choose(2);
    }));
    CHECK(lock.try_lock()); /* the refused computation was unwound */
    lock.unlock();
    CHECK(is_refused([&] {
        std::unique_lock<std::mutex> held(lock);
        return choose(2);
    }));
    CHECK(is_refused([&] {
        std::scoped_lock held(lock);
        return choose(2);
    }));
    CHECK(is_refused([&] {
        std::shared_lock<std::shared_mutex> held(shared);
        return choose(2);
    }));
    CHECK(is_refused([] {
        auto owned = std::make_unique<counted_object>();
        return choose(2) + (owned != nullptr);
    }));
    CHECK(is_refused([] {
        auto owned = std::make_shared<counted_object>();
        return choose(2) + (owned != nullptr);
    }));
    CHECK(is_refused([] {
        std::vector<counted_object> owned(3);
        return choose(2) + owned.empty();
    }));
    CHECK(is_refused([] {
        std::optional<counted_object> owned(std::in_place);
        return choose(2) + owned.has_value();
    }));
    CHECK(is_refused([] {
        counted_object object;
        return choose(2);
    }));
    CHECK(counted_object::alive == 0);
    CHECK(is_refused([] {
        return haft::handle_multi_shot(
            [] { return choose(2); },
            [](Get, haft::multi_shot<int(int)> k) { return k.resume(choose(2)); });
    }));
    CHECK(
        is_refused([] { /* the temporary object lives as long as the braces */
                        auto [one, chosen] = std::pair<int, int>{counted_object().one(), choose(2)};
                        return one + chosen;
        }));
    CHECK(lock.try_lock());
    lock.unlock();
    CHECK(shared.try_lock());
    shared.unlock();
}

/* ---- An object that may be copied ---- */

/* Counts the frames that have it, in a variable that each frame's copy counts down once. */
struct depth_of_calls {
    int *depth;
    explicit depth_of_calls(int &of) : depth(&of) { ++*depth; }
    ~depth_of_calls() { --*depth; }
};
__attribute__((noinline)) int choose_with_depth(int &depth) {
    depth_of_calls call(depth);
    int chosen = choose(3);
    return chosen;
}
void frames_of_promised_functions_are_copied_with_their_objects() {
    haft_may_copy_frames(reinterpret_cast<haft_function_t *>(choose_with_depth));
    int depth = 0;
    CHECK(sum_of([&] { return choose_with_depth(depth); }) == 3);
    /* The original was dropped, and three copies have ended: each has run the destructor. */
    CHECK(depth == 1 - 4);
    CHECK(haft_pool_report().stacks == 0);
}

/* ---- Handlers on stacks of their own ---- */

void handlers_with_names_are_copied() {
    auto body = [] { return choose(2) * 10 + haft::perform(Get{}); };
    CHECK(sum_of([=] {
              return haft::handle(body).on({.name = "own"}).with([](Get) { return 1; });
          }) == 12);
    CHECK(sum_of([=] {
              int state = 1;
              return haft::handle(body).on({.stack_size = 65536, .name = "own"}).with([&](Get) {
                  return state++;
              });
          }) == 12);
    CHECK(sum_of([=] {
              int sum = 0;
              for (int i = 0; i < 2; i++) {
                  haft_fiber_options_t options = {};
                  options.name = "own";
                  sum += haft::handle(body).on(options).with(
                      [=](Get) { return i; }, haft::on_return([](int result) { return result; }));
              }
              return sum;
          }) == 4 * (0 + 1) + 2 * 2 * 10);
    CHECK(sum_of([=] {
              auto prepared = haft::handle(body).on({.name = "own"});
              return std::move(prepared).with([](Get) { return 1; });
          }) == 12);
    CHECK(haft_pool_report().stacks == 0);
}

/* The handled body returns an object, which is made when the body has chosen. */
void handlers_inside_answer_by_objects() {
    auto words = [](auto body) {
        using answers = std::vector<std::string>;
        return haft::handle_multi_shot(
            [=] {
                std::string word = body();
                return answers{word};
            },
            [](Choose choose, haft::multi_shot<answers(int)> k) {
                answers all;
                for (int i = 0; i < choose.count; i++)
                    for (auto &word : k.resume(i))
                        all.push_back(word);
                return all;
            });
    };
    auto chosen = [] {
        int first = choose(2), second = choose(2);
        return std::to_string(first * 10 + second + haft::perform(Get{}));
    };
    const std::vector<std::string> expected{"1", "2", "11", "12"};
    CHECK(words([=] { return haft::handle(chosen).with([](Get) { return 1; }); }) == expected);
    CHECK(words([=] {
              return haft::handle(chosen).on({.name = "own"}).with([](Get) { return 1; });
          }) == expected);
    CHECK(words([=] {
              return haft::handle(chosen).with([](Get, haft::resumption<std::string(int)> k) {
                  return std::move(k).tail_resume(1);
              });
          }) == expected);
    CHECK(haft_pool_report().stacks == 0);
}

} // namespace

int main() {
#if CHECK_THREAD_SANITIZER
    return 77; /* it knows no copies of stacks */
#endif
    frames_of_values_are_copied();
    algorithms_call_what_chooses();
    a_parser_backtracks();
    the_best_of_many_goes_on_first();
    resumptions_lie_in_containers();
    clauses_are_functions_and_objects();
    bodies_and_answers_are_moved_only();
    deep_recursion_is_copied();
    what_owns_something_is_refused();
    frames_of_promised_functions_are_copied_with_their_objects();
    handlers_with_names_are_copied();
    handlers_inside_answer_by_objects();
}
