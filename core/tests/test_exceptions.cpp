/* C++ on fibers: destructors, exceptions that cross fibers, and the exceptions being handled. */
#include <haft.h>

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.h"

struct three {
    unsigned char bytes[3];
};
HAFT_EFFECT(ask, int, { int question; });
HAFT_EFFECT(other, void, {});
HAFT_EFFECT(give_three, three, {
    const char *text;
    double number;
});

namespace {

std::vector<int> order;
struct noted {
    int value;
    ~noted() { order.push_back(value); }
};

struct error_with_text : std::runtime_error {
    int code;
    error_with_text(const char *text, int number) : std::runtime_error(text), code(number) {}
};

void payloads_and_results_are_typed_as_in_c() {
    haft_fiber_t *k = haft_fiber_new(
        [](void *) -> void * {
            three got = HAFT_PERFORM(give_three, "text", 2.5);
            CHECK(got.bytes[0] == 1 && got.bytes[2] == 3);
            HAFT_PERFORM(other);
            return nullptr;
        },
        nullptr);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(give_three, other));
    HAFT_MATCH(request) {
        HAFT_CASE(other, payload) {
            (void)payload;
            CHECK(!"the first request is the other one");
        }
        HAFT_CASE(give_three, payload) {
            CHECK_SAME_TEXT(payload->text, "text");
            three reply{{1, 2, 3}};
            request = haft_resume(k, HAFT_REPLY(give_three, reply), HAFT_HANDLES(other));
        }
    }
    CHECK(request.effect == HAFT_ID(other));
    CHECK_EQUAL(HAFT_ID(other)->payload_size, 0);
    CHECK(haft_finished(haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES())));
    haft_fiber_drop(k);
}

void *chain(void *level_word) {
    auto level = reinterpret_cast<intptr_t>(level_word);
    noted here{static_cast<int>(level)};
    if (level == 10) {
        HAFT_PERFORM(ask, 1);
    } else {
        HAFT_SCOPED haft_fiber_t *inner =
            haft_fiber_new(chain, reinterpret_cast<void *>(level + 1));
        haft_resume(inner, HAFT_NO_REPLY, HAFT_HANDLES(other));
    }
    return nullptr;
}

void dropping_runs_destructors_innermost_first_through_the_chain() {
    order.clear();
    size_t before = haft_pool_report().stacks;
    haft_fiber_t *k = haft_fiber_new(chain, reinterpret_cast<void *>(1));
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask));
    CHECK(order.empty());
    haft_fiber_drop(k);
    CHECK_EQUAL(order.size(), 10);
    for (int i = 0; i < 10; i++)
        CHECK_EQUAL(order[static_cast<size_t>(i)], 10 - i);
    CHECK_EQUAL(haft_pool_report().stacks, before);
}

const std::exception *thrown_object;
void *throw_error(void *) {
    noted here{1};
    try {
        throw error_with_text("from the fiber", 42);
    } catch (std::exception &caught) {
        thrown_object = &caught;
        throw;
    }
}

void an_exception_that_leaves_a_fiber_keeps_its_type_and_identity() {
    order.clear();
    haft_fiber_t *k = haft_fiber_new(throw_error, nullptr);
    bool caught_it = false;
    try {
        haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask));
        CHECK(!"thrown");
    } catch (error_with_text &caught) {
        caught_it = true;
        CHECK(&caught == thrown_object);
        CHECK_EQUAL(caught.code, 42);
        CHECK_SAME_TEXT(caught.what(), "from the fiber");
    }
    CHECK(caught_it);
    CHECK_EQUAL(order.size(), 1);
    CHECK_EQUAL(haft_fiber_state(k), HAFT_FIBER_FINISHED);
    CHECK_EQUAL(std::uncaught_exceptions(), 0);
    CHECK(!std::current_exception());
    haft_fiber_drop(k);
}

void *throw_through(void *level_word) {
    auto level = reinterpret_cast<intptr_t>(level_word);
    noted here{static_cast<int>(level)};
    if (level == 5)
        throw error_with_text("deep", 5);
    HAFT_SCOPED haft_fiber_t *inner =
        haft_fiber_new(throw_through, reinterpret_cast<void *>(level + 1));
    haft_resume(inner, HAFT_NO_REPLY, HAFT_HANDLES());
    return nullptr;
}

void an_exception_passes_through_fibers_to_the_catch_around_them() {
    order.clear();
    size_t before = haft_pool_report().stacks;
    haft_fiber_t *k = haft_fiber_new(throw_through, reinterpret_cast<void *>(1));
    int code = 0;
    try {
        haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES());
    } catch (error_with_text &caught) {
        code = caught.code;
    }
    CHECK_EQUAL(code, 5);
    CHECK_EQUAL(order.size(), 5);
    haft_fiber_drop(k);
    CHECK_EQUAL(haft_pool_report().stacks, before);
}

haft_reply_t rethrow_pointer(void *pointer) {
    std::rethrow_exception(*static_cast<std::exception_ptr *>(pointer));
}

void discontinue_raises_an_exception_at_the_perform() {
    static bool caught_it;
    haft_fiber_t *k = haft_fiber_new(
        [](void *) -> void * {
            try {
                HAFT_PERFORM(ask, 1);
            } catch (error_with_text &caught) {
                caught_it = caught.code == 7;
            }
            return nullptr;
        },
        nullptr);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask));
    auto pointer = std::make_exception_ptr(error_with_text("raised", 7));
    CHECK(haft_finished(haft_discontinue(k, rethrow_pointer, &pointer, HAFT_HANDLES(ask))));
    CHECK(caught_it);
    haft_fiber_drop(k);
}

/* Suspends inside a catch block, with a caught exception of its own. */
void *suspend_in_catch(void *name) {
    try {
        throw std::string(static_cast<const char *>(name));
    } catch (std::string &mine) {
        for (int i = 0; i < 3; i++) {
            HAFT_PERFORM(other);
            try {
                throw; /* the one that this fiber handles */
            } catch (std::string &again) {
                CHECK(&again == &mine);
                CHECK_SAME_TEXT(again.c_str(), static_cast<const char *>(name));
            }
        }
    }
    CHECK(!std::current_exception());
    return nullptr;
}

void each_fiber_handles_its_own_exception() {
    haft_fiber_t *a = haft_fiber_new(suspend_in_catch, const_cast<char *>("of fiber a"));
    haft_fiber_t *b = haft_fiber_new(suspend_in_catch, const_cast<char *>("of fiber b"));
    for (int i = 0; i < 3; i++) {
        haft_resume(a, HAFT_NO_REPLY, HAFT_HANDLES(other));
        CHECK(!std::current_exception());
        haft_resume(b, HAFT_NO_REPLY, HAFT_HANDLES(other));
        CHECK(!std::current_exception());
    }
    try {
        throw 1;
    } catch (int) {
        CHECK(haft_finished(haft_resume(a, HAFT_NO_REPLY, HAFT_HANDLES(other))));
        CHECK(std::current_exception() != nullptr);
        CHECK(haft_finished(haft_resume(b, HAFT_NO_REPLY, HAFT_HANDLES(other))));
        try {
            throw;
        } catch (int one) {
            CHECK_EQUAL(one, 1);
        }
    }
    haft_fiber_drop(a);
    haft_fiber_drop(b);
}

struct performs_in_destructor {
    ~performs_in_destructor() {
        CHECK_EQUAL(std::uncaught_exceptions(), 1);
        HAFT_PERFORM(other);
        CHECK_EQUAL(std::uncaught_exceptions(), 1);
    }
};
void *suspend_while_unwinding(void *) {
    try {
        performs_in_destructor object;
        throw 1;
    } catch (int) {
    }
    CHECK_EQUAL(std::uncaught_exceptions(), 0);
    return nullptr;
}

void exceptions_in_flight_are_counted_per_fiber() {
    haft_fiber_t *a = haft_fiber_new(suspend_while_unwinding, nullptr);
    haft_fiber_t *b = haft_fiber_new(suspend_while_unwinding, nullptr);
    CHECK(haft_resume(a, HAFT_NO_REPLY, HAFT_HANDLES(other)).effect == HAFT_ID(other));
    CHECK_EQUAL(std::uncaught_exceptions(), 0);
    CHECK(haft_resume(b, HAFT_NO_REPLY, HAFT_HANDLES(other)).effect == HAFT_ID(other));
    CHECK_EQUAL(std::uncaught_exceptions(), 0);
    CHECK(haft_finished(haft_resume(a, HAFT_NO_REPLY, HAFT_HANDLES(other))));
    CHECK(haft_finished(haft_resume(b, HAFT_NO_REPLY, HAFT_HANDLES(other))));
    CHECK_EQUAL(std::uncaught_exceptions(), 0);
    haft_fiber_drop(a);
    haft_fiber_drop(b);
}

void a_fiber_dropped_in_a_catch_block_leaves_no_exception_behind() {
    haft_fiber_t *k = haft_fiber_new(suspend_in_catch, const_cast<char *>("dropped"));
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(other));
    haft_fiber_drop(k);
    CHECK(!std::current_exception());
    CHECK_EQUAL(std::uncaught_exceptions(), 0);
}

void *catch_all_and_rethrow(void *) {
    try {
        HAFT_PERFORM(ask, 1);
    } catch (...) {
        order.push_back(1);
        throw;
    }
    return nullptr;
}

void a_catch_all_that_rethrows_lets_the_fiber_be_dropped() {
    order.clear();
    haft_fiber_t *k = haft_fiber_new(catch_all_and_rethrow, nullptr);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask));
    haft_fiber_drop(k);
    CHECK_EQUAL(order.size(), 1);
}

void *swallow_everything(void *) {
    try {
        HAFT_PERFORM(ask, 1);
    } catch (...) {
        order.push_back(1);
    }
    order.push_back(2);
    return nullptr;
}
void a_catch_all_that_swallows_the_dropping_rethrows_where_it_ends() {
    order.clear();
    haft_fiber_t *k = haft_fiber_new(swallow_everything, nullptr);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask));
    haft_fiber_drop(k);
    CHECK_EQUAL(order.size(), 1);
    CHECK_EQUAL(std::uncaught_exceptions(), 0);
}

void let_escape() {
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(throw_error, nullptr);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES());
}
void an_exception_that_nobody_catches_terminates_as_without_fibers() {
    CHECK_ABORTS(let_escape, "from the fiber");
}

/* Deep handlers: an exception from the body passes haft_handle; from a clause too, and the
   computation that the clause had captured is dropped. */
haft_answer_t throw_clause(void *, HAFT_PAYLOAD(ask) *, haft_resumption_t) {
    throw error_with_text("from the clause", 9);
}
int throw_in_place(void *, HAFT_PAYLOAD(ask) *) {
    throw error_with_text("in place", 10);
}
HAFT_HANDLER(throwing, nullptr, HAFT_GENERAL(ask, throw_clause));
HAFT_HANDLER(throwing_in_place, nullptr, HAFT_TAIL(ask, throw_in_place));
void *ask_with_destructor(void *) {
    noted here{1};
    HAFT_PERFORM(ask, 1);
    return nullptr;
}

void an_exception_from_a_clause_drops_what_it_had_captured() {
    order.clear();
    size_t before = haft_pool_report().stacks;
    int code = 0;
    try {
        haft_handle(&throwing, nullptr, ask_with_destructor, nullptr);
    } catch (error_with_text &caught) {
        code = caught.code;
    }
    CHECK_EQUAL(code, 9);
    CHECK_EQUAL(order.size(), 1);
    CHECK_EQUAL(haft_pool_report().stacks, before);
}

void an_exception_from_a_clause_in_place_passes_the_perform() {
    order.clear();
    int code = 0;
    try {
        haft_handle(&throwing_in_place, nullptr, ask_with_destructor, nullptr);
    } catch (error_with_text &caught) {
        code = caught.code;
    }
    CHECK_EQUAL(code, 10);
    CHECK_EQUAL(order.size(), 1);
    /* The chain of handlers is what it was: the effect is unhandled again. */
    CHECK(haft_locate(HAFT_ID(ask)) == nullptr);
    haft_fiber_t *k = haft_fiber_new(swallow_everything, nullptr);
    CHECK(haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask)).effect == HAFT_ID(ask));
    CHECK(haft_finished(haft_resume(k, HAFT_REPLY(ask, 1), HAFT_HANDLES(ask))));
    haft_fiber_drop(k);
}

/* An error handler may throw: nothing has happened yet. */
struct haft_exception {
    haft_error_code_t code;
};
void throw_the_error(const haft_error_t *error) {
    throw haft_exception{error->code};
}

void an_error_handler_may_throw_and_the_program_goes_on() {
    haft_set_error_handler(throw_the_error);
    haft_error_code_t code{};
    try {
        HAFT_PERFORM(ask, 1);
    } catch (haft_exception &caught) {
        code = caught.code;
    }
    CHECK_EQUAL(code, HAFT_ERROR_UNHANDLED);
    haft_fiber_t *k = haft_fiber_new(swallow_everything, nullptr);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask));
    haft_resume(k, HAFT_REPLY(ask, 1), HAFT_HANDLES(ask));
    try {
        haft_resume(k, HAFT_REPLY(ask, 1), HAFT_HANDLES(ask));
    } catch (haft_exception &caught) {
        code = caught.code;
    }
    CHECK_EQUAL(code, HAFT_ERROR_NOT_RESUMABLE);
    haft_fiber_drop(k);
    haft_set_error_handler(nullptr);
}

} // namespace

int main() {
    RUN(payloads_and_results_are_typed_as_in_c);
    RUN(dropping_runs_destructors_innermost_first_through_the_chain);
    RUN(an_exception_that_leaves_a_fiber_keeps_its_type_and_identity);
    RUN(an_exception_passes_through_fibers_to_the_catch_around_them);
    RUN(discontinue_raises_an_exception_at_the_perform);
    RUN(each_fiber_handles_its_own_exception);
    RUN(exceptions_in_flight_are_counted_per_fiber);
    RUN(a_fiber_dropped_in_a_catch_block_leaves_no_exception_behind);
    RUN(a_catch_all_that_rethrows_lets_the_fiber_be_dropped);
    RUN(a_catch_all_that_swallows_the_dropping_rethrows_where_it_ends);
    RUN(an_exception_that_nobody_catches_terminates_as_without_fibers);
    RUN(an_exception_from_a_clause_drops_what_it_had_captured);
    RUN(an_exception_from_a_clause_in_place_passes_the_perform);
    RUN(an_error_handler_may_throw_and_the_program_goes_on);
    return check_end();
}
// SPDX-License-Identifier: MIT
