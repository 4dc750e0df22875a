// SPDX-License-Identifier: MIT
/* Computations of C++ that go on more than once: haft/multi_shot.hpp. */
#include "check.hpp"

#include <haft/multi_shot.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#ifdef __has_feature
#    if __has_feature(address_sanitizer)
#        define HAFT_TEST_ADDRESS_SANITIZER
#    endif
#    if __has_feature(thread_sanitizer)
#        define HAFT_TEST_THREAD_SANITIZER
#    endif
#endif
#ifdef __SANITIZE_ADDRESS__
#    define HAFT_TEST_ADDRESS_SANITIZER
#endif
#ifdef __SANITIZE_THREAD__
#    define HAFT_TEST_THREAD_SANITIZER
#endif

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
#ifdef HAFT_TEST_ADDRESS_SANITIZER
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

} // namespace

int main() {
#ifdef HAFT_TEST_THREAD_SANITIZER
    return 77; /* it knows no copies of stacks */
#endif
    a_computation_answers_for_each_choice();
    a_resumption_may_be_kept_and_copied();
    exceptions_leave_body_and_clauses();
    a_frame_with_a_destructor_is_refused();
}
