/* SPDX-License-Identifier: MIT */
/* Errors for want of memory. The linker leads the library's calls of malloc and the like to this
   file. */
#define _GNU_SOURCE
#include <haft.h>

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "check.h"

typedef struct large {
    int64_t words[4];
} large_t;
HAFT_EFFECT(stop, void, { int64_t number, further; });
HAFT_EFFECT(stop_with_word, void, { int64_t number; });
#ifndef __clang__
HAFT_EFFECT(stop_with_nothing, void, {});
#endif
HAFT_EFFECT(ask_large, large_t, {});
HAFT_EFFECT(wait, void, {});

static __thread bool is_empty;             /* there is no memory for this thread */
static __thread int allocations_left = -1; /* until it is so; -1: it never is */

static bool has_none(void) {
    if (allocations_left > 0)
        allocations_left--;
    else if (allocations_left == 0)
        is_empty = true;
    return is_empty;
}

#define WITH_NONE(type, name, parameters, arguments, none)                                         \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters {                                                                \
        if (!has_none())                                                                           \
            return __real_##name arguments;                                                        \
        errno = ENOMEM;                                                                            \
        return none;                                                                               \
    }
WITH_NONE(void *, malloc, (size_t size), (size), NULL)
WITH_NONE(void *, calloc, (size_t count, size_t size), (count, size), NULL)
WITH_NONE(void *, mmap, (void *where, size_t size, int access, int flags, int file, off_t offset),
          (where, size, access, flags, file, offset), MAP_FAILED)

static __thread jmp_buf place;
static __thread int reported;

static void leave(const haft_error_t *error) {
    CHECK_EQUAL(error->code, HAFT_ERROR_NO_MEMORY);
    is_empty = false;
    allocations_left = -1;
    reported++;
    longjmp(place, 1);
}
static void note(const haft_error_t *error) {
    CHECK_EQUAL(error->code, HAFT_ERROR_NO_MEMORY);
    is_empty = false;
    reported++;
}

/* ---- A payload that is thrown ---- */

static void count(int **cleaned) {
    ++**cleaned;
}

static __attribute__((noinline, noreturn)) void throw_two_words(int64_t number) {
    HAFT_THROW(stop, number, number);
}
static void *throw_twice(void *argument) {
    __attribute__((cleanup(count))) int *cleaned = argument;
    (void)cleaned;
    if (setjmp(place) == 0) {
        is_empty = true;
        throw_two_words(1);
    }
    HAFT_PERFORM(wait);
    throw_two_words(2);
}

static void a_throw_whose_payload_cannot_be_kept_has_changed_nothing(void) {
    haft_set_error_handler(leave);
    reported = 0;
    int cleaned = 0;
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(throw_twice, &cleaned);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(stop, wait));
    CHECK_EQUAL(reported, 1);
    CHECK(request.effect == HAFT_ID(wait));
    CHECK_EQUAL(cleaned, 0);
    request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(stop, wait));
    CHECK(request.effect == HAFT_ID(stop));
    CHECK_EQUAL(((HAFT_PAYLOAD(stop) *)request.payload)->number, 2);
    CHECK_EQUAL(cleaned, 1);
    haft_set_error_handler(NULL);
}

static void *throw_words(void *argument) {
    __attribute__((cleanup(count))) int *cleaned = argument;
    (void)cleaned;
    is_empty = true;
    HAFT_THROW(stop_with_word, 3);
}
static char memory[64 << 10] __attribute__((aligned(16)));
static void a_throw_of_a_word_needs_no_memory(void) {
    int cleaned = 0;
    for (int in_own_memory = 0; in_own_memory < 2; in_own_memory++) {
        haft_fiber_options_t options = {.memory = in_own_memory ? memory : NULL,
                                        .memory_size = in_own_memory ? sizeof memory : 0};
        HAFT_SCOPED haft_fiber_t *k = haft_fiber_new_with(&options, throw_words, &cleaned);
        for (int i = 0; i < 2; i++) {
            haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(stop_with_word));
            is_empty = false;
            CHECK(request.effect == HAFT_ID(stop_with_word));
            CHECK_EQUAL(((HAFT_PAYLOAD(stop_with_word) *)request.payload)->number, 3);
            haft_fiber_reset(k, throw_words, &cleaned);
        }
    }
    CHECK_EQUAL(cleaned, 4);
}

/* The cleanup's throw takes the place of the first. (C compiled by clang cannot be unwound a second
   time.) */
#ifndef __clang__
static void throw_again(int **cleaned) {
    ++**cleaned;
    HAFT_THROW(stop_with_nothing);
}
static void *throw_twice_at_once(void *argument) {
    __attribute__((cleanup(throw_again))) int *cleaned = argument;
    (void)cleaned;
    is_empty = true;
    HAFT_THROW(stop_with_word, 4);
}
static void a_throw_from_a_cleanup_needs_none_either(void) {
    int cleaned = 0;
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(throw_twice_at_once, &cleaned);
    haft_request_t request =
        haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(stop_with_word, stop_with_nothing));
    is_empty = false;
    CHECK(request.effect == HAFT_ID(stop_with_nothing));
    CHECK_EQUAL(cleaned, 1);
}
#endif

/* ---- A reply that does not fit a word ---- */

static void *ask_for_it(void *unused) {
    (void)unused;
    return (void *)(intptr_t)HAFT_PERFORM(ask_large).words[3];
}
static haft_answer_t reply_twice(void *state, HAFT_PAYLOAD(ask_large) * payload,
                                 haft_resumption_t k) {
    (void)state, (void)payload;
    large_t reply = {{1, 2, 3, 4}};
    if (setjmp(place) == 0) {
        is_empty = true;
        return haft_tail_resume(k, HAFT_REPLY(ask_large, reply));
    }
    reply.words[3] = 5;
    return haft_tail_resume(k, HAFT_REPLY(ask_large, reply));
}
HAFT_HANDLER(replying, NULL, HAFT_GENERAL(ask_large, reply_twice));

static void a_resumption_whose_reply_cannot_be_kept_is_not_used_up(void) {
    haft_set_error_handler(leave);
    reported = 0;
    CHECK(haft_handle(&replying, NULL, ask_for_it, NULL) == (void *)5);
    CHECK_EQUAL(reported, 1);
    haft_set_error_handler(NULL);
}

/* ---- A thread's first use ---- */

static void *use_for_the_first_time(void *unused) {
    for (volatile int i = 0; i < 3; i++)
        if (setjmp(place) == 0) {
            is_empty = true;
            haft_fiber_current();
        }
    CHECK_EQUAL(reported, 3);
    CHECK(haft_fiber_current() == NULL);
    CHECK(haft_handle(&replying, NULL, ask_for_it, NULL) == (void *)5);
    return unused;
}

static void a_thread_without_memory_for_its_state_may_try_again(void) {
    haft_set_error_handler(leave);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, use_for_the_first_time, NULL) == 0);
    pthread_join(thread, NULL);
    haft_set_error_handler(NULL);
}

/* ---- A fiber ---- */

static void *nothing(void *unused) {
    return unused;
}

#ifdef __x86_64__
static void *make_a_segmented_one(void *unused) {
    haft_fiber_drop(haft_fiber_new(nothing, NULL)); /* the thread is ready, and has stacks */
    haft_fiber_options_t options = {.segmented = true};
    is_empty = true;
    errno = 0;
    haft_fiber_t *k = haft_fiber_new_with(&options, nothing, NULL);
    CHECK(k == NULL);
    CHECK_EQUAL(errno, ENOMEM);
    CHECK_EQUAL(reported, 1);
    is_empty = false;
    k = haft_fiber_new_with(&options, nothing, NULL);
    CHECK(haft_finished(haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wait))));
    haft_fiber_drop(k);
    return unused;
}
#endif

static void a_fiber_without_memory_for_what_belongs_to_it_is_not_made(void) {
    haft_set_error_handler(note);
    haft_fiber_drop(haft_fiber_new(nothing, NULL)); /* its stack is kept */
    if (CHECK_ADDRESS_SANITIZER || CHECK_THREAD_SANITIZER) {
        reported = 0;
        is_empty = true;
        CHECK(haft_fiber_new(nothing, NULL) == NULL);
        CHECK_EQUAL(errno, ENOMEM);
        CHECK_EQUAL(reported, 1);
        is_empty = false;
    }
#ifdef __x86_64__
    haft_fiber_drop(haft_fiber_new_with(&(haft_fiber_options_t){.segmented = true}, nothing, NULL));
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, make_a_segmented_one, NULL) == 0);
    pthread_join(thread, NULL);
#endif
    haft_set_error_handler(NULL);
}

/* ---- Copies ---- */

HAFT_EFFECT(choose, int, {});
HAFT_EFFECT(get, int, {});
enum { COPIES = 12 };
static haft_resumption_t kept[2 * COPIES + 2];
static int kept_count;
static haft_answer_t keep(void *state, HAFT_PAYLOAD(choose) * payload, haft_resumption_t k) {
    (void)state, (void)payload;
    kept[kept_count++] = k;
    return haft_answer(NULL);
}
static haft_answer_t give_one(void *state, HAFT_PAYLOAD(get) * payload, haft_resumption_t k) {
    (void)state, (void)payload;
    return haft_tail_resume(k, HAFT_REPLY(get, 1));
}
HAFT_HANDLER(keeping, NULL, HAFT_GENERAL(choose, keep));
HAFT_HANDLER(giving, NULL, HAFT_GENERAL(get, give_one));
static void *choose_twice(void *unused) {
    (void)unused;
    int first = HAFT_PERFORM(choose) * 10 + HAFT_PERFORM(get);
    return (void *)(intptr_t)(first * 10 + HAFT_PERFORM(choose));
}
static void *choose_inside(void *unused) {
    return haft_handle(&giving, NULL, choose_twice, unused);
}

static void copy_all(int unused) {
    (void)unused;
    while (kept_count < COPIES) {
        haft_resumption_t copy = haft_resumption_copy(kept[0]);
        kept[kept_count++] = copy;
    }
}
static void resume_kept(int at) {
    CHECK(haft_resumption_resume(kept[at], HAFT_REPLY(choose, at)) == NULL);
}
static __attribute__((noinline)) bool succeeds(void (*action)(int), int argument, int allocations) {
    if (setjmp(place) != 0)
        return false;
    allocations_left = allocations;
    action(argument);
    allocations_left = -1;
    is_empty = false;
    return true;
}
/* Resumes one of those that wait, which sets aside what the one before has left. */
static void go_on(int at, int allocations) {
    int before = kept_count;
    if (!succeeds(resume_kept, at, allocations)) {
        CHECK_EQUAL(kept_count, before);
        resume_kept(at);
    }
    CHECK_EQUAL(kept_count, before + 1);
}
static void a_copy_for_which_there_is_no_memory_has_changed_nothing(void) {
    haft_set_error_handler(leave);
    int failed = 0;
    for (int allocations = 0, before = 1; before != 0; allocations++) {
        reported = 0;
        kept_count = 0;
        haft_handle(&keeping, NULL, choose_inside, NULL);
        (void)succeeds(copy_all, 0, allocations);
        before = reported;
        failed += before;
        int copies = kept_count;
        for (int i = copies - 1; i >= 0; i--)
            go_on(i, allocations % 3);
        for (int i = 0; i < copies; i++) {
            void *answer = haft_resumption_resume(kept[copies + i], HAFT_REPLY(choose, 5));
            CHECK_EQUAL((intptr_t)answer, (copies - 1 - i) * 100 + 15);
        }
        CHECK_EQUAL(haft_pool_report().stacks, 0);
    }
    CHECK(failed >= 3); /* the stages, the image, the table */
    haft_set_error_handler(NULL);
}

int main(void) {
    RUN(a_throw_whose_payload_cannot_be_kept_has_changed_nothing);
    RUN(a_throw_of_a_word_needs_no_memory);
#ifndef __clang__
    RUN(a_throw_from_a_cleanup_needs_none_either);
#endif
    RUN(a_resumption_whose_reply_cannot_be_kept_is_not_used_up);
    RUN(a_thread_without_memory_for_its_state_may_try_again);
    RUN(a_fiber_without_memory_for_what_belongs_to_it_is_not_made);
    if (!CHECK_THREAD_SANITIZER)
        RUN(a_copy_for_which_there_is_no_memory_has_changed_nothing);
    return check_end();
}
