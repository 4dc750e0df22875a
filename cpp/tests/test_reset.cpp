/* shift0 and reset: what is captured, what the answers are, and that continuations are one-shot. */
#include "check.hpp"

#include <haft/reset.hpp>
#include <haft/resource.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using haft::continuation;
using haft::reset;
using haft::shift;
using haft::shift0;

static void a_reset_without_shift_answers_its_body() {
    CHECK(reset([] { return 3; }) == 3);
    int value = 4;
    int &same = reset([&]() -> int & { return value; });
    CHECK(&same == &value);
    bool ran = false;
    reset([&] { ran = true; });
    CHECK(ran);
}

static void a_shift_takes_the_rest_of_the_body() {
    CHECK(reset([] { return 1 + shift0([](continuation<int(int)> k) { return 10 * k(4); }); }) ==
          50);
    /* k may be dropped: the rest does not run, and is unwound. */
    CHECK(reset([] {
              counted local;
              return 1 + shift0([](continuation<int(int)>) { return 7; });
          }) == 7);
    CHECK(counted::alive == 0);
}

static void the_answer_is_that_of_the_reset() {
    std::string text = reset<std::string>([] {
        int number =
            shift0([](continuation<std::string(int)> k) { return std::string("<") + k(5) + ">"; });
        return std::to_string(number);
    });
    CHECK(text == "<5>");
    CHECK(reset<double>([] { return 1; }) == 1.0);
}

static void results_are_of_any_type() {
    CHECK(reset([] {
              shift0([](continuation<int()> k) { return k() + 1; });
              return 1;
          }) == 2);
    int target = 0;
    reset([&] {
        int &same = shift0([&](continuation<void(int &)> k) { k(target); });
        same = 5;
    });
    CHECK(target == 5);
    auto pointer = reset([] {
        return shift0([](continuation<std::unique_ptr<int>(std::unique_ptr<int>)> k) {
            return k(std::make_unique<int>(6));
        });
    });
    CHECK(*pointer == 6);
    CHECK(reset([] { return shift0<int(int)>([](auto k) { return k(8); }); }) == 8);
}

static void a_continuation_runs_under_its_reset_again() {
    CHECK(reset([] {
              std::string text;
              for (int i = 0; i < 3; i++)
                  text += shift0([i](continuation<std::string(char)> k) {
                      return std::to_string(i) + k(char('a' + i));
                  });
              return text;
          }) == "012abc");
}

static void a_shift_reaches_the_innermost_reset_only() {
    CHECK(reset([] {
              return 100 + reset([] {
                         return 1 + shift0([](continuation<int(int)> k) { return 2 * k(3); });
                     });
          }) == 108);
}

static void shift0_under_shift0_reaches_the_next_reset_out() {
    /* The function of the first shift0 runs outside of the inner reset: the second takes what lies
       between the two, "outer(" and all. */
    CHECK(reset([] {
              return std::string("o") + reset([] {
                         return std::string("i") +
                                shift0([](continuation<std::string(std::string)> k) {
                                    return std::string("f") +
                                           shift0([&](continuation<std::string(std::string)> j) {
                                               return std::string("[") + j(k("x")) + "]";
                                           });
                                });
                     });
          }) == "[ofix]");
    /* With shift the function has a reset of its own. */
    CHECK(reset([] {
              return std::string("o") + reset([] {
                         return std::string("i") +
                                shift([](continuation<std::string(std::string)> k) {
                                    return std::string("f") +
                                           shift0([&](continuation<std::string(std::string)> j) {
                                               return std::string("[") + j(k("x")) + "]";
                                           });
                                });
                     });
          }) == "o[fix]");
}

static void a_prompt_shifts_past_inner_resets() {
    CHECK(reset([](haft::prompt<int> out) {
              return 100 + reset([&] {
                         return 1 + out.shift0([](continuation<int(int)> k) { return 2 * k(3); });
                     });
          }) == 208);
    CHECK(reset([](haft::prompt<std::string> out) {
              int number = reset(
                  [&] { return out.shift0<std::string(int)>([](auto k) { return k(3) + "!"; }); });
              return std::to_string(number);
          }) == "3!");
}

static void a_continuation_may_outlive_its_reset() {
    continuation<int(int)> later;
    int first = reset([&] {
        counted local;
        return 1 + shift0([&](continuation<int(int)> k) {
                   later = std::move(k);
                   return 0;
               });
    });
    CHECK(first == 0 && counted::alive == 1 && later);
    CHECK(later(41) == 42 && counted::alive == 0 && !later);
    /* Never called, it is unwound with its owner. */
    reset([&] {
        counted local;
        return shift0([&](continuation<int(int)> k) {
            later = std::move(k);
            return 0;
        });
    });
    CHECK(counted::alive == 1);
    later = {};
    CHECK(counted::alive == 0);
}

static void a_continuation_may_be_called_on_another_thread() {
    continuation<int(int)> later;
    reset([&] {
        return 1 + shift0([&](continuation<int(int)> k) {
                   later = std::move(k);
                   return 0;
               });
    });
    int answer = 0;
    std::thread([&] { answer = later(41); }).join();
    CHECK(answer == 42);
}

static void the_function_outlives_the_frames_that_it_captured() {
    auto text = std::make_shared<std::string>("a text of some length, not in place");
    std::string got = reset([&] {
        shift0([text](continuation<std::string()> k) {
            std::string inner = k(); /* the frame of shift0 is gone by now */
            return inner + *text;
        });
        return std::string("> ");
    });
    CHECK(got == "> " + *text && text.use_count() == 1);
}

static void exceptions_go_to_the_reset_and_to_k() {
    CHECK(thrown_by<int>([] {
              reset([] {
                  counted local;
                  shift0([](continuation<void()>) { throw 5; });
              });
          }) == 5);
    CHECK(counted::alive == 0);
    CHECK(reset([] {
              return shift0([](continuation<int()> k) {
                         try {
                             return k();
                         } catch (int number) {
                             return number;
                         }
                     }),
                     throw 6, 0;
          }) == 6);
    CHECK(reset([]() -> std::string {
              try {
                  return std::to_string(shift0([](continuation<std::string(int)> k) {
                      return k.discontinue(std::string("raised"));
                  }));
              } catch (const std::string &what) {
                  return what;
              }
          }) == "raised");
}

static void tail_calls_of_k_run_in_constant_space() {
    constexpr int steps = check_times(200'000);
    CHECK(reset([] {
              int sum = 0;
              for (int i = 0; i < steps; i++)
                  sum +=
                      shift0([](continuation<int(int)> k) -> haft::tail<int> { return k.tail(1); });
              return sum;
          }) == steps);
}

static void dropping_in_the_middle_releases_resources() {
    std::string trace;
    reset([&] {
        haft::scoped([&] {
            haft::defer([&] { trace += "released,"; });
            shift0([&](continuation<void()> k) {
                k.drop();
                trace += "dropped,";
            });
        });
        trace += "not here";
    });
    CHECK(trace == "released,dropped,");
}

static void a_list_of_all_that_is_shifted() {
    /* The classic: each element is consed onto what the rest answers. */
    std::vector<int> got = reset([] {
        for (int i : {1, 2, 3})
            shift0([i](continuation<std::vector<int>()> k) {
                auto rest = k();
                rest.insert(rest.begin(), i);
                return rest;
            });
        return std::vector<int>();
    });
    CHECK(got == std::vector<int>({1, 2, 3}));
}

static void a_wrong_answer_type_is_refused_at_the_shift() {
    std::string what;
    CHECK(reset([&]() -> std::string {
              counted local;
              try {
                  shift0([](continuation<int()> k) { return k(); });
              } catch (const std::logic_error &error) {
                  what = error.what();
              }
              return "went on";
          }) == "went on");
    CHECK(what.find("answer is int") != std::string::npos &&
          what.find("string") != std::string::npos);
}

static void a_shift_without_reset_is_refused() {
    auto error =
        thrown_by<std::logic_error>([] { shift0([](continuation<int()> k) { return k(); }); });
    CHECK(std::string(error.what()).find("reset") != std::string::npos);
    /* In the function of a shift0 there is no reset any more. */
    (void)thrown_by<std::logic_error>([] {
        reset([] {
            return shift0([](continuation<int()>) {
                return shift0([](continuation<int(int)> k) { return k(1); });
            });
        });
    });
}

struct refused {
    haft_error_code_t code;
    std::string effect;
};
static void a_second_call_is_an_error_that_names_the_effect() {
    auto *before = haft_set_error_handler([](const haft_error_t *error) {
        throw refused{error->code, error->effect->name};
    });
    auto second_use = [](auto use) {
        refused error = thrown_by<refused>([&] {
            reset([&] {
                counted local;
                return 1 + shift0([&](continuation<int(int)> k) {
                           int answer = k(1);
                           use(k);
                           return answer;
                       });
            });
        });
        CHECK(error.code == HAFT_ERROR_USED_RESUMPTION && error.effect == "haft::shifted");
        CHECK(counted::alive == 0);
    };
    second_use([](continuation<int(int)> &k) { k(2); });
    second_use([](continuation<int(int)> &k) { k.discontinue(2); });
    second_use([](continuation<int(int)> &k) { k.drop(); });
    second_use([](continuation<int(int)> &k) { (void)k.tail(2); });
    haft_set_error_handler(before);
}

int main() {
    a_reset_without_shift_answers_its_body();
    a_shift_takes_the_rest_of_the_body();
    the_answer_is_that_of_the_reset();
    results_are_of_any_type();
    a_continuation_runs_under_its_reset_again();
    a_shift_reaches_the_innermost_reset_only();
    shift0_under_shift0_reaches_the_next_reset_out();
    a_prompt_shifts_past_inner_resets();
    a_continuation_may_outlive_its_reset();
    a_continuation_may_be_called_on_another_thread();
    the_function_outlives_the_frames_that_it_captured();
    exceptions_go_to_the_reset_and_to_k();
    tail_calls_of_k_run_in_constant_space();
    dropping_in_the_middle_releases_resources();
    a_list_of_all_that_is_shifted();
    a_wrong_answer_type_is_refused_at_the_shift();
    a_shift_without_reset_is_refused();
    a_second_call_is_an_error_that_names_the_effect();
}
