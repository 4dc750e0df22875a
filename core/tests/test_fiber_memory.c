/* Stacks of a chosen size, fibers in memory of the caller, reset. */
#include <haft.h>

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
    haft_request_t request = haft_resume(k, NULL, HAFT_HANDLES(ask));
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
            haft_fiber_create(&(haft_fiber_options_t){.stack_size = sizes[i]}, ask_ten, NULL);
        CHECK_EQUAL(drive(k), 90);
    }
    /* A frame takes more than its thousand bytes. */
    int depth = check_bare() ? 20000 : 5000;
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_create(&(haft_fiber_options_t){.stack_size = 64 << 20},
                                                    go_deep, (void *)(intptr_t)depth);
    haft_request_t request = haft_resume(k, NULL, HAFT_HANDLES());
    CHECK_EQUAL((intptr_t)((HAFT_PAYLOAD(return ) *)request.payload)->result, depth);
}

static void the_default_size_can_be_set(void) {
    size_t before = haft_stack_size();
    CHECK_EQUAL(before, 1 << 20);
    haft_set_stack_size(5 << 20);
    CHECK_EQUAL(haft_stack_size(), 8 << 20);
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(go_deep, (void *)4000);
    haft_request_t request = haft_resume(k, NULL, HAFT_HANDLES());
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
        haft_fiber_t *k = haft_fiber_create(
            &(haft_fiber_options_t){.memory = memory + SIZE, .memory_size = SIZE}, ask_ten, NULL);
        CHECK_EQUAL(drive(k), 90);
        haft_fiber_free(k);
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
            haft_fiber_t *k = haft_fiber_create(
                &(haft_fiber_options_t){.memory = memory + offset, .memory_size = size}, ask_ten,
                NULL);
            CHECK_EQUAL(drive(k), 90);
            haft_fiber_free(k);
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
        haft_fiber_t *k = haft_fiber_create(
            &(haft_fiber_options_t){.memory = memory, .memory_size = SIZE}, ask_ten, NULL);
        CHECK_EQUAL(drive(k), 90);
        haft_fiber_free(k);
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
        haft_resume(k, NULL, HAFT_HANDLES(ask));
        haft_fiber_reset(k, i % 2 ? ask_with_cleanup : ask_ten, NULL);
        CHECK_EQUAL(haft_fiber_state(k), HAFT_FIBER_NEW);
        if (i % 2 == 0) {
            CHECK_EQUAL(drive(k), 90);
            haft_fiber_reset(k, ask_with_cleanup, NULL);
        }
    }
    CHECK_EQUAL(freed, 100);
    haft_fiber_reset(k, ask_ten, NULL);
    haft_fiber_free(k);
}

static void a_fiber_in_memory_of_the_caller_can_be_reset(void) {
    static char memory[16 * 1024];
    haft_fiber_t *k = haft_fiber_create(
        &(haft_fiber_options_t){.memory = memory, .memory_size = sizeof memory}, ask_ten, NULL);
    for (int i = 0; i < 10; i++) {
        CHECK_EQUAL(drive(k), 90);
        haft_fiber_reset(k, ask_ten, NULL);
    }
    haft_fiber_free(k);
}

static void a_fiber_has_the_name_it_was_given(void) {
    HAFT_SCOPED haft_fiber_t *k =
        haft_fiber_create(&(haft_fiber_options_t){.name = "reader"}, ask_ten, NULL);
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
        haft_resume(fibers[i], NULL, HAFT_HANDLES(ask));
    }
    for (int i = 1; i < 10; i++)
        for (int j = 0; j < count; j++)
            haft_resume(fibers[j], HAFT_REPLY(ask, i), HAFT_HANDLES(ask));
    for (int i = 0; i < count; i++) {
        haft_request_t request = haft_resume(fibers[i], HAFT_REPLY(ask, i), HAFT_HANDLES(ask));
        CHECK_EQUAL((intptr_t)((HAFT_PAYLOAD(return ) *)request.payload)->result, 45 + i);
        haft_fiber_free(fibers[i]);
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
    RUN(a_fiber_has_the_name_it_was_given);
    RUN(thousands_of_fibers_live_side_by_side);
    return check_end();
}
