// SPDX-License-Identifier: MIT
/* Copies of computations whose frames are those of C++. */
#include <haft.h>

#include "check.h"

#include <stdexcept>
#include <string>
#include <vector>

HAFT_EFFECT(keep, int, { int number; });

namespace {

std::vector<haft_resumption_t> kept;

haft_answer_t keep_it(void *, HAFT_PAYLOAD(keep) *, haft_resumption_t k) {
    kept.push_back(k);
    return haft_answer(nullptr);
}
HAFT_HANDLER(keeping, nullptr, HAFT_GENERAL(keep, keep_it));

void *number(intptr_t value) {
    return reinterpret_cast<void *>(value);
}

haft_resumption_t suspended(void *(*body)(void *)) {
    kept.clear();
    haft_handle(&keeping, nullptr, body, nullptr);
    return kept.back();
}
intptr_t go_on(haft_resumption_t k, int value) {
    return reinterpret_cast<intptr_t>(haft_resumption_resume(k, HAFT_REPLY(keep, value)));
}

struct refused : std::runtime_error {
    using runtime_error::runtime_error;
    haft_error_code_t code = HAFT_ERROR_NOT_COPYABLE;
};
void refuse(const haft_error_t *error) {
    refused thrown(error->message);
    thrown.code = error->code;
    throw thrown;
}
std::string refusal_of_copy(haft_resumption_t k) {
    haft_error_handler_t *before = haft_set_error_handler(refuse);
    std::string message;
    try {
        (void)haft_resumption_copy(k);
    } catch (const refused &error) {
        CHECK_EQUAL(error.code, HAFT_ERROR_NOT_COPYABLE);
        message = error.what();
    }
    haft_set_error_handler(before);
    return message;
}

int length_of(int value) {
    std::string text(static_cast<std::size_t>(value), 'x');
    return static_cast<int>(text.size());
}
template <typename Function>
int twice(Function function) {
    int first = function(1);
    return first * 100 + function(2);
}
void *without_destructors(void *) {
    int before = length_of(40);
    int both = twice([&](int which) { return HAFT_PERFORM(keep, which) + before; });
    return number(length_of(both));
}

void frames_without_destructors_are_copied() {
    haft_resumption_t first = suspended(without_destructors);
    haft_resumption_t copy = haft_resumption_copy(first);
    go_on(first, 1);
    haft_resumption_t second = kept.back();
    haft_resumption_t second_again = haft_resumption_copy(second);
    CHECK_EQUAL(go_on(second, 2), 4142);
    CHECK_EQUAL(go_on(second_again, 3), 4143);
    go_on(copy, 5);
    CHECK_EQUAL(go_on(kept.back(), 6), 4546);
}

void *with_a_string(void *) {
    std::string text(100, 'x');
    int result = HAFT_PERFORM(keep, 1) + static_cast<int>(text.size());
    return number(result);
}
void *after_a_string(void *) {
    int result;
    {
        std::string text(100, 'x');
        result = static_cast<int>(text.size());
    }
    return number(HAFT_PERFORM(keep, 1) + result);
}
int caught_once;
void *throws_and_catches(void *) {
    int result = 0;
    for (int i = 0; i < 2; i++)
        try {
            int got = HAFT_PERFORM(keep, i);
            if (got % 2 != 0)
                throw got;
            result = result * 10 + got;
        } catch (int odd) {
            result = result * 10 + odd * 3;
        } catch (const std::exception &) {
            result = -1;
        }
    return number(result);
}
haft_reply_t throw_one(void *) {
    throw 1;
}
void frames_that_catch_exceptions_of_some_types_are_copied() {
    haft_resumption_t first = suspended(throws_and_catches);
#if defined(__clang__) && defined(__OPTIMIZE__)
    /* The ends of variables' lives are cleanups to it, wherever an exception is caught. */
    haft_may_copy_frames(reinterpret_cast<haft_function_t *>(throws_and_catches));
#endif
    for (int i = 0; i < 4; i++) {
        go_on(haft_resumption_copy(first), i);
        haft_resumption_t second = kept.back();
        for (int j = 0; j < 4; j++)
            CHECK_EQUAL(go_on(haft_resumption_copy(second), j),
                        (i % 2 == 0 ? i : i * 3) * 10 + (j % 2 == 0 ? j : j * 3));
        CHECK_EQUAL(reinterpret_cast<intptr_t>(haft_resumption_discontinue(
                        haft_resumption_copy(second), throw_one, nullptr)),
                    (i % 2 == 0 ? i : i * 3) * 10 + 3);
        haft_resumption_drop(second);
    }
    haft_resumption_drop(first);
}
void *catches_everything(void *) {
    int result = 0;
    try {
        result = HAFT_PERFORM(keep, 1);
    } catch (int thrown) {
        result = thrown;
    } catch (...) {
        caught_once++;
        throw;
    }
    return number(result);
}
void a_catch_of_everything_is_a_cleanup() {
    if (CHECK_ADDRESS_SANITIZER)
        return; /* whose own cleanups cannot be told from others */
    haft_resumption_t k = suspended(catches_everything);
    CHECK_CONTAINS(refusal_of_copy(k).c_str(), "in a frame with cleanups or destructors");
    haft_resumption_drop(k);
    CHECK_EQUAL(caught_once, 1);
}
void *in_a_catch(void *) {
    int result = 0;
    try {
        throw 7;
    } catch (int thrown) {
        result = thrown + HAFT_PERFORM(keep, 1);
    }
    return number(result);
}
struct performs {
    int *result;
    ~performs() noexcept(false) { *result = HAFT_PERFORM(keep, 1); }
};
void *while_an_exception_is_thrown(void *) {
    int result = 0;
    try {
        performs last{&result};
        throw 7;
    } catch (int thrown) {
        result += thrown;
    }
    return number(result);
}

void frames_with_destructors_are_not_copied() {
    if (CHECK_ADDRESS_SANITIZER)
        return; /* whose own cleanups cannot be told from others */
    haft_resumption_t k = suspended(with_a_string);
    CHECK_CONTAINS(refusal_of_copy(k).c_str(), "in a frame with cleanups or destructors");
    CHECK_EQUAL(go_on(k, 1), 101);
    k = suspended(after_a_string);
    haft_resumption_t copy = haft_resumption_copy(k);
    CHECK_EQUAL(go_on(k, 1), 101);
    CHECK_EQUAL(go_on(copy, 2), 102);
}

__attribute__((noinline)) int keep_noexcept() noexcept {
    return HAFT_PERFORM(keep, 1);
}
void *through_noexcept(void *) {
    return number(keep_noexcept());
}
void noexcept_functions_are_not_copied() {
    if (CHECK_ADDRESS_SANITIZER)
        return;
    haft_resumption_t k = suspended(through_noexcept);
    CHECK_CONTAINS(refusal_of_copy(k).c_str(), "in a frame with cleanups or destructors");
    CHECK_EQUAL(go_on(k, 7), 7);
}

void code_that_handles_an_exception_is_not_copied() {
    haft_resumption_t k = suspended(in_a_catch);
    CHECK_CONTAINS(refusal_of_copy(k).c_str(), "it is handling an exception");
    CHECK_EQUAL(go_on(k, 1), 8);
    k = suspended(while_an_exception_is_thrown);
    CHECK_CONTAINS(refusal_of_copy(k).c_str(), "it is handling an exception");
    CHECK_EQUAL(go_on(k, 1), 8);
}

void *throws(void *) {
    if (HAFT_PERFORM(keep, 1) == 1)
        throw std::runtime_error("one");
    return number(2);
}
void an_exception_leaves_each_copy_on_its_own() {
    haft_resumption_t k = suspended(throws);
    haft_resumption_t copies[3] = {haft_resumption_copy(k), haft_resumption_copy(k),
                                   haft_resumption_copy(k)};
    int thrown = 0;
    for (haft_resumption_t one : {copies[0], k, copies[1]})
        try {
            go_on(one, 1);
        } catch (const std::runtime_error &) {
            thrown++;
        }
    CHECK_EQUAL(thrown, 3);
    CHECK_EQUAL(go_on(copies[2], 2), 2);
    CHECK_EQUAL(haft_pool_report().stacks, 0);
}

} // namespace

int main() {
    if (CHECK_THREAD_SANITIZER)
        return 77;
    RUN(frames_without_destructors_are_copied);
    RUN(frames_that_catch_exceptions_of_some_types_are_copied);
    RUN(a_catch_of_everything_is_a_cleanup);
    RUN(frames_with_destructors_are_not_copied);
    RUN(noexcept_functions_are_not_copied);
    RUN(code_that_handles_an_exception_is_not_copied);
    RUN(an_exception_leaves_each_copy_on_its_own);
    return check_end();
}
