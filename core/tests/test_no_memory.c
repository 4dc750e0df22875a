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

static __thread bool is_empty; /* there is no memory for this thread */

#define WITH_NONE(type, name, parameters, arguments, none)                                         \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters {                                                                \
        if (!is_empty)                                                                             \
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

int main(void) {
    RUN(a_throw_whose_payload_cannot_be_kept_has_changed_nothing);
    RUN(a_throw_of_a_word_needs_no_memory);
#ifndef __clang__
    RUN(a_throw_from_a_cleanup_needs_none_either);
#endif
    RUN(a_resumption_whose_reply_cannot_be_kept_is_not_used_up);
    RUN(a_thread_without_memory_for_its_state_may_try_again);
    RUN(a_fiber_without_memory_for_what_belongs_to_it_is_not_made);
    return check_end();
}
