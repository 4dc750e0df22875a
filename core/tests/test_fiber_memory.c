/* Stacks of a chosen size, fibers in memory of the caller, reset. */
#include <haft.h>

#include <setjmp.h>

#include "check.h"

HAFT_EFFECT(ask, int, { int question; });

static void *ask_ten(void *unused) {
    int sum = 0;
    for (int i = 0; i < 10; i++)
        sum += HAFT_PERFORM(ask, i);
    (void)unused;
    return (void *)(intptr_t)sum;
}

static int drive(haft_fiber_t *k) {
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask));
    while (!haft_finished(request)) {
        int reply = ((HAFT_PAYLOAD(ask) *)request.payload)->question * 2;
        request = haft_resume(k, HAFT_REPLY(ask, reply), HAFT_HANDLES(ask));
    }
    return (int)(intptr_t)((HAFT_PAYLOAD(return ) *)request.payload)->result;
}

static int deep(int depth) {
    volatile char frame[1000];
    frame[0] = (char)depth;
    return depth == 0 ? 0 : deep(depth - 1) + (frame[0] != (char)depth) + 1;
}
static void *go_deep(void *depth) {
    return (void *)(intptr_t)deep((int)(intptr_t)depth);
}

static void a_fiber_gets_the_stack_size_it_asks_for(void) {
    static const size_t sizes[] = {1, 16 * 1024, 100 * 1000, 1 << 20, 64 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        HAFT_SCOPED haft_fiber_t *k =
            haft_fiber_new_with(&(haft_fiber_options_t){.stack_size = sizes[i]}, ask_ten, NULL);
        CHECK_EQUAL(drive(k), 90);
    }
    /* A frame takes more than its thousand bytes. */
    int depth = check_bare() ? 20000 : 5000;
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new_with(
        &(haft_fiber_options_t){.stack_size = 64 << 20}, go_deep, (void *)(intptr_t)depth);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES());
    CHECK_EQUAL((intptr_t)((HAFT_PAYLOAD(return ) *)request.payload)->result, depth);
}

static void the_default_size_can_be_set(void) {
    size_t before = haft_stack_size();
    CHECK_EQUAL(before, 1 << 20);
    haft_set_stack_size(5 << 20);
    CHECK_EQUAL(haft_stack_size(), 8 << 20);
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(go_deep, (void *)4000);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES());
    CHECK_EQUAL((intptr_t)((HAFT_PAYLOAD(return ) *)request.payload)->result, 4000);
    haft_set_stack_size(1);
    CHECK_EQUAL(haft_stack_size(), 16 * 1024);
    haft_set_stack_size(before);
}

/* At default settings of the compiler a perform needs a few hundred bytes; without optimisation,
   and under the sanitizers, more. */
static void a_kibibyte_is_enough_for_a_fiber(void) {
    enum { SIZE = HAFT_FIBER_MINIMUM };
    static _Alignas(64) char memory[3 * SIZE];
    memset(memory, 0x77, sizeof memory);
#ifdef __OPTIMIZE__
    if (check_bare()) {
        haft_fiber_t *k = haft_fiber_new_with(
            &(haft_fiber_options_t){.memory = memory + SIZE, .memory_size = SIZE}, ask_ten, NULL);
        CHECK_EQUAL(drive(k), 90);
        haft_fiber_drop(k);
    }
#endif
    for (int i = 0; i < SIZE; i++)
        CHECK(memory[i] == 0x77 && memory[2 * SIZE + i] == 0x77);
}

static void memory_of_any_alignment_and_size_will_do(void) {
    static char memory[32 * 1024 + 64];
    for (size_t offset = 0; offset < 64; offset += 7)
        for (size_t size = 16 * 1024; size < 32 * 1024; size += 3001) {
            memset(memory, 0x77, sizeof memory);
            haft_fiber_t *k = haft_fiber_new_with(
                &(haft_fiber_options_t){.memory = memory + offset, .memory_size = size}, ask_ten,
                NULL);
            CHECK_EQUAL(drive(k), 90);
            haft_fiber_drop(k);
            for (size_t i = 0; i < offset; i++)
                CHECK(memory[i] == 0x77);
            for (size_t i = offset + size; i < sizeof memory; i++)
                CHECK(memory[i] == 0x77);
        }
}

static void memory_of_the_caller_is_the_callers_after_free(void) {
    enum { SIZE = 16 * 1024 };
    char *memory = malloc(SIZE);
    for (int i = 0; i < 10; i++) {
        haft_fiber_t *k = haft_fiber_new_with(
            &(haft_fiber_options_t){.memory = memory, .memory_size = SIZE}, ask_ten, NULL);
        CHECK_EQUAL(drive(k), 90);
        haft_fiber_drop(k);
        memset(memory, 0, SIZE);
    }
    free(memory);
}

static int freed;
static void count_freed(int *unused) {
    freed += *unused;
}
static void *ask_with_cleanup(void *unused) {
    __attribute__((cleanup(count_freed), unused)) int one = 1;
    (void)unused;
    return (void *)(intptr_t)HAFT_PERFORM(ask, 5);
}

static void a_reset_fiber_drops_what_it_did_and_starts_anew(void) {
    haft_fiber_t *k = haft_fiber_new(ask_with_cleanup, NULL);
    freed = 0;
    for (int i = 0; i < 100; i++) {
        haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask));
        haft_fiber_reset(k, i % 2 ? ask_with_cleanup : ask_ten, NULL);
        CHECK_EQUAL(haft_fiber_state(k), HAFT_FIBER_NEW);
        if (i % 2 == 0) {
            CHECK_EQUAL(drive(k), 90);
            haft_fiber_reset(k, ask_with_cleanup, NULL);
        }
    }
    CHECK_EQUAL(freed, 100);
    haft_fiber_reset(k, ask_ten, NULL);
    haft_fiber_drop(k);
}

static void a_fiber_in_memory_of_the_caller_can_be_reset(void) {
    static char memory[16 * 1024];
    haft_fiber_t *k = haft_fiber_new_with(
        &(haft_fiber_options_t){.memory = memory, .memory_size = sizeof memory}, ask_ten, NULL);
    for (int i = 0; i < 10; i++) {
        CHECK_EQUAL(drive(k), 90);
        haft_fiber_reset(k, ask_ten, NULL);
    }
    haft_fiber_drop(k);
}

/* ---- Memory of the caller that serves again ---- */

HAFT_EFFECT(stop, void, { int64_t words[4]; });

enum { ROOM = 16 * 1024 };
static _Alignas(64) char room[2 * ROOM];

static haft_fiber_t *make_in(char *memory, size_t size, const char *name,
                             void *(*function)(void *)) {
    return haft_fiber_new_with(
        &(haft_fiber_options_t){.name = name, .memory = memory, .memory_size = size}, function,
        NULL);
}

static void *return_at_once(void *unused) {
    return unused;
}
static void *throw_words(void *unused) {
    __attribute__((cleanup(count_freed), unused)) int one = 1;
    (void)unused;
    HAFT_THROW(stop, {1, 2, 3, 4});
}
static void *throw_without_cleanups(void *unused) {
    (void)unused;
    HAFT_THROW(stop, {1, 2, 3, 4});
}

static void run_in_room(void *(*function)(void *)) {
    haft_fiber_t *k = make_in(room, ROOM, NULL, function);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(stop));
    CHECK_EQUAL(haft_fiber_state(k), HAFT_FIBER_FINISHED);
    if (request.effect == HAFT_ID(stop))
        for (int i = 0; i < 4; i++)
            CHECK_EQUAL(((HAFT_PAYLOAD(stop) *)request.payload)->words[i], i + 1);
}

static void the_memory_of_a_finished_fiber_can_be_used_again_without_free(void) {
    for (int i = 0; i < 3; i++) {
        run_in_room(return_at_once);
        run_in_room(throw_words);
        run_in_room(throw_without_cleanups);
        memset(room, 0x5a, sizeof room);
    }
    haft_fiber_drop(make_in(room, sizeof room, NULL, return_at_once));
    haft_fiber_t *first = make_in(room, ROOM, NULL, ask_ten);
    haft_fiber_t *second = make_in(room + ROOM, ROOM, NULL, ask_ten);
    CHECK_EQUAL(drive(first), 90);
    CHECK_EQUAL(drive(second), 90);
    haft_fiber_drop(first);
    haft_fiber_drop(second);
}

static void *finish_inside(void *unused) {
    haft_fiber_t *inner = make_in(room, ROOM, "inner", ask_ten);
    haft_resume(inner, HAFT_NO_REPLY, HAFT_HANDLES());
    return unused;
}
static void a_fiber_that_is_left_by_a_throw_leaves_its_memory(void) {
    for (int i = 0; i < 3; i++) {
        haft_fiber_t *k =
            haft_fiber_new_with(&(haft_fiber_options_t){.no_cleanups = true}, finish_inside, NULL);
        haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask));
        haft_fiber_drop(k); /* which abandons the inner one */
    }
}

static void *host(void *size) {
    char memory[ROOM];
    haft_fiber_t *k = make_in(memory + 64, (size_t)(intptr_t)size, "guest", ask_ten);
    int sum = drive(k);
    haft_fiber_drop(k);
    return (void *)(intptr_t)sum;
}
static void a_frame_of_a_fiber_may_hold_another(void) {
    if (RUNNING_ON_VALGRIND)
        return; /* it takes a stack within another for that one */
    static char memory[8 * ROOM];
    for (int i = 0; i < 3; i++) {
        haft_fiber_t *k = haft_fiber_new_with(
            &(haft_fiber_options_t){.memory = memory, .memory_size = sizeof memory}, host,
            (void *)(ROOM - 64));
        haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES());
        CHECK_EQUAL((intptr_t)((HAFT_PAYLOAD(return ) *)request.payload)->result, 90);
    }
}

static void overlap_the_same(void) {
    haft_resume(make_in(room, ROOM, "first", ask_ten), HAFT_NO_REPLY, HAFT_HANDLES(ask));
    make_in(room, ROOM, "second", ask_ten);
}
static void overlap_its_end(void) {
    make_in(room, ROOM, "first", ask_ten);
    make_in(room + ROOM - 512, ROOM, "second", ask_ten);
}
static void overlap_its_beginning(void) {
    make_in(room + ROOM, ROOM, "first", ask_ten);
    make_in(room, ROOM + 1, NULL, ask_ten);
}
static void overlap_inside(void) {
    haft_resume(make_in(room, sizeof room, "first", ask_ten), HAFT_NO_REPLY, HAFT_HANDLES(ask));
    make_in(room + 1024, ROOM, "second", ask_ten);
}
static void overlap_around(void) {
    make_in(room + 4096, 4096, "first", ask_ten);
    make_in(room, sizeof room, "second", ask_ten);
}
static void *make_below_itself(void *unused) {
    make_in(room + 1024, 4096, "second", ask_ten);
    return unused;
}
static void overlap_what_runs(void) {
    haft_resume(make_in(room, sizeof room, "first", make_below_itself), HAFT_NO_REPLY,
                HAFT_HANDLES());
}
static void overlap_by_reset(void) {
    haft_fiber_t *second = make_in(room, ROOM, "second", return_at_once);
    haft_resume(second, HAFT_NO_REPLY, HAFT_HANDLES());
    make_in(room + 512, 4096, "first", ask_ten);
    haft_fiber_reset(second, return_at_once, NULL);
}
static void overlap_what_was_overwritten(void) {
    haft_resume(make_in(room, ROOM, "first", ask_ten), HAFT_NO_REPLY, HAFT_HANDLES(ask));
    memset(room, 0x5a, sizeof room);
    make_in(room, ROOM, "second", ask_ten);
}

static void memory_of_a_live_fiber_is_refused(void) {
    static void (*const overlaps[])(void) = {overlap_the_same, overlap_its_end,   overlap_inside,
                                             overlap_around,   overlap_what_runs, overlap_by_reset};
    for (size_t i = 0; i < sizeof overlaps / sizeof overlaps[0]; i++)
        CHECK_ABORTS(overlaps[i],
                     "haft: The memory for the fiber 'second' overlaps that of the fiber 'first', "
                     "which has not finished: free that one before its memory is used for "
                     "something else.");
    CHECK_ABORTS(overlap_its_beginning, "haft: The memory for a fiber overlaps that of the fiber "
                                        "'first', which has not finished");
    if (!CHECK_ADDRESS_SANITIZER && !RUNNING_ON_VALGRIND) /* which find the overwriting first */
        CHECK_ABORTS(overlap_what_was_overwritten,
                     "overlaps that of another fiber, overwritten since, which has not finished");
}

/* Random memory out of a large block: what is refused is what a model refuses, and from every fiber
   what it throws arrives. */
enum { PIECES = 512, PIECE = 4096 };
static void *throw_later(void *unused) {
    HAFT_PERFORM(ask, 0);
    HAFT_THROW(stop, {1, 2, 3, 4});
    return unused;
}
static jmp_buf after_refusal;
static void refuse(const haft_error_t *error) {
    CHECK_EQUAL(error->code, HAFT_ERROR_BAD_ARGUMENT);
    longjmp(after_refusal, 1);
}
static __attribute__((noinline)) haft_fiber_t *start_in(char *memory, size_t size) {
    haft_fiber_t *k = make_in(memory, size, NULL, throw_later);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask));
    return k;
}
static __attribute__((noinline)) haft_fiber_t *unless_refused(char *memory, size_t size) {
    return setjmp(after_refusal) == 0 ? start_in(memory, size) : NULL;
}
static void any_number_of_fibers_is_told_apart_by_their_memory(void) {
    static _Alignas(64) char memory[PIECES * PIECE];
    static haft_fiber_t *owners[PIECES];
    static int sizes[PIECES];
    static uint32_t random = 1;
    haft_error_handler_t *before = haft_set_error_handler(refuse);
    for (int round = 0; round < check_times(40000); round++) {
        random = random * 1664525 + 1013904223;
        int at = (int)(random >> 8) % PIECES, size = 4 + (int)(random >> 20) % 12;
        if (owners[at] != NULL && sizes[at] != 0) {
            haft_fiber_t *k = owners[at];
            if (random & 1)
                CHECK(haft_resume(k, HAFT_REPLY(ask, 0), HAFT_HANDLES(stop)).effect ==
                      HAFT_ID(stop));
            else
                haft_fiber_drop(k);
            for (int i = at + sizes[at] - 1; i >= at; i--)
                owners[i] = NULL;
            sizes[at] = 0;
            continue;
        }
        if (at + size > PIECES)
            continue;
        bool taken = false;
        for (int i = at; i < at + size; i++)
            taken |= owners[i] != NULL;
        haft_fiber_t *k = unless_refused(memory + at * PIECE, (size_t)size * PIECE);
        CHECK_EQUAL(k == NULL, taken);
        for (int i = at; i < at + size && k != NULL; i++)
            owners[i] = k;
        sizes[at] = k != NULL ? size : sizes[at];
    }
    for (int i = 0; i < PIECES; i++)
        if (sizes[i] != 0)
            haft_fiber_drop(owners[i]);
    haft_set_error_handler(before);
}

static void a_fiber_has_the_name_it_was_given(void) {
    HAFT_SCOPED haft_fiber_t *k =
        haft_fiber_new_with(&(haft_fiber_options_t){.name = "reader"}, ask_ten, NULL);
    CHECK_SAME_TEXT(haft_fiber_name(k), "reader");
    haft_fiber_set_name(k, "writer");
    CHECK_SAME_TEXT(haft_fiber_name(k), "writer");
    haft_fiber_set_name(k, NULL);
    CHECK_SAME_TEXT(haft_fiber_name(k), "");
}

static void thousands_of_fibers_live_side_by_side(void) {
    enum { COUNT = 20000 };
    static haft_fiber_t *fibers[COUNT];
    int count = check_bare() ? COUNT : 100;
    for (int i = 0; i < count; i++) {
        fibers[i] = haft_fiber_new(ask_ten, NULL);
        haft_resume(fibers[i], HAFT_NO_REPLY, HAFT_HANDLES(ask));
    }
    for (int i = 1; i < 10; i++)
        for (int j = 0; j < count; j++)
            haft_resume(fibers[j], HAFT_REPLY(ask, i), HAFT_HANDLES(ask));
    for (int i = 0; i < count; i++) {
        haft_request_t request = haft_resume(fibers[i], HAFT_REPLY(ask, i), HAFT_HANDLES(ask));
        CHECK_EQUAL((intptr_t)((HAFT_PAYLOAD(return ) *)request.payload)->result, 45 + i);
        haft_fiber_drop(fibers[i]);
    }
}

int main(void) {
    RUN(a_fiber_gets_the_stack_size_it_asks_for);
    RUN(the_default_size_can_be_set);
    RUN(a_kibibyte_is_enough_for_a_fiber);
    RUN(memory_of_any_alignment_and_size_will_do);
    RUN(memory_of_the_caller_is_the_callers_after_free);
    RUN(a_reset_fiber_drops_what_it_did_and_starts_anew);
    RUN(a_fiber_in_memory_of_the_caller_can_be_reset);
    RUN(the_memory_of_a_finished_fiber_can_be_used_again_without_free);
    RUN(a_fiber_that_is_left_by_a_throw_leaves_its_memory);
    RUN(a_frame_of_a_fiber_may_hold_another);
    RUN(memory_of_a_live_fiber_is_refused);
    RUN(any_number_of_fibers_is_told_apart_by_their_memory);
    RUN(a_fiber_has_the_name_it_was_given);
    RUN(thousands_of_fibers_live_side_by_side);
    return check_end();
}
/* SPDX-License-Identifier: MIT */
