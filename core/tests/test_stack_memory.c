/* The pool of stacks: memory of deep fibers is given back, the pool reports and trims itself, and
   memory that runs out is an error that a program can survive. */
#include <haft.h>

#include <errno.h>
#include <pthread.h>

#include "check.h"

HAFT_EFFECT(wait, void, {});

static __attribute__((noinline)) int recurse(int depth) {
    char frame[4000];
    memset(frame, 1, sizeof frame);
    __asm__ volatile("" : : "r"(frame) : "memory");
    return depth == 0 ? 0 : recurse(depth - 1) + frame[0];
}
static void *go_deep(void *unused) {
    recurse(200);
    HAFT_PERFORM(wait);
    return unused;
}
static void *stay_shallow(void *unused) {
    HAFT_PERFORM(wait);
    return unused;
}

static void run_to_the_end(void *(*function)(void *)) {
    haft_fiber_t *k = haft_fiber_new(function, NULL);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wait));
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wait));
    haft_fiber_drop(k);
}

static void the_pool_counts_its_stacks(void) {
    haft_pool_report_t before = haft_pool_report();
    haft_fiber_t *fibers[10];
    for (int i = 0; i < 10; i++)
        fibers[i] = haft_fiber_new(stay_shallow, NULL);
    haft_pool_report_t during = haft_pool_report();
    CHECK_EQUAL(during.stacks, before.stacks + 10);
    CHECK(during.mappings >= 1);
    CHECK(during.reserved >= 10 * haft_stack_size());
    for (int i = 0; i < 10; i++)
        haft_fiber_drop(fibers[i]);
    haft_pool_report_t after = haft_pool_report();
    CHECK_EQUAL(after.stacks, before.stacks);
    CHECK(after.idle >= 10);
    CHECK_EQUAL(after.stacks + after.idle, during.stacks + during.idle);
}

static void a_shallow_fiber_has_one_page_resident(void) {
    enum { COUNT = 256 };
    haft_fiber_t *fibers[COUNT];
    haft_pool_trim();
    size_t before = haft_pool_report().resident;
    for (int i = 0; i < COUNT; i++) {
        fibers[i] = haft_fiber_new(stay_shallow, NULL);
        haft_resume(fibers[i], HAFT_NO_REPLY, HAFT_HANDLES(wait));
    }
    size_t each = (haft_pool_report().resident - before) / COUNT;
#ifdef __OPTIMIZE__
    CHECK(each <= 4096);
#else
    CHECK(each <= 8192);    /* frames are larger */
#endif
    for (int i = 0; i < COUNT; i++)
        haft_fiber_drop(fibers[i]);
}

static void a_new_stack_costs_one_page_fault(void) {
    enum { COUNT = 1000, STACK = 128 * 1024 }; /* of which no other test has any */
    haft_fiber_t *fibers[COUNT];
    struct rusage before, after;
    haft_fiber_drop(
        haft_fiber_new_with(&(haft_fiber_options_t){.stack_size = STACK}, stay_shallow, NULL));
    getrusage(RUSAGE_SELF, &before);
    for (int i = 0; i < COUNT; i++)
        fibers[i] =
            haft_fiber_new_with(&(haft_fiber_options_t){.stack_size = STACK}, stay_shallow, NULL);
    getrusage(RUSAGE_SELF, &after);
    CHECK(after.ru_minflt - before.ru_minflt < COUNT + COUNT / 4);
    for (int i = 0; i < COUNT; i++)
        haft_fiber_drop(fibers[i]);
}

static void the_memory_of_fibers_that_went_deep_is_given_back(void) {
    enum { DEPTH = 200 * 4000 };
    run_to_the_end(stay_shallow);
    haft_pool_trim();
    size_t before = haft_pool_report().resident;
    haft_fiber_t *k = haft_fiber_new(go_deep, NULL);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wait));
    CHECK(haft_pool_report().resident >= before + DEPTH);
    haft_fiber_drop(k);
    for (int i = 0; i < 1000; i++)
        run_to_the_end(stay_shallow);
    CHECK(haft_pool_report().resident < before + DEPTH / 2);
}

static void many_deep_fibers_do_not_keep_their_memory(void) {
    enum { COUNT = 50, DEPTH = 200 * 4000 };
    haft_fiber_t *fibers[COUNT];
    haft_pool_trim();
    size_t before = haft_pool_report().resident;
    for (int i = 0; i < COUNT; i++) {
        fibers[i] = haft_fiber_new(go_deep, NULL);
        haft_resume(fibers[i], HAFT_NO_REPLY, HAFT_HANDLES(wait));
    }
    CHECK(haft_pool_report().resident >= before + COUNT * DEPTH);
    for (int i = 0; i < COUNT; i++)
        haft_fiber_drop(fibers[i]);
    for (int i = 0; i < 10000; i++)
        run_to_the_end(stay_shallow);
    CHECK(haft_pool_report().resident < before + COUNT * DEPTH / 2);
    haft_pool_trim();
    CHECK(haft_pool_report().resident < before + COUNT * DEPTH / 20);
}

/* Where only shallow stacks have been freed, most are not looked at. */
static void deep_fibers_are_noticed_among_shallow_ones(void) {
    enum { SHALLOW = 2000, DEEP = 100, DEPTH = 200 * 4000 };
    static haft_fiber_t *fibers[SHALLOW + DEEP];
    haft_fiber_options_t options = {.stack_size = 1 << 20};
    size_t before = haft_pool_report().resident;
    for (int i = 0; i < SHALLOW + DEEP; i++) {
        fibers[i] = haft_fiber_new_with(&options, i < SHALLOW ? stay_shallow : go_deep, NULL);
        haft_resume(fibers[i], HAFT_NO_REPLY, HAFT_HANDLES(wait));
    }
    CHECK(haft_pool_report().resident >= before + DEEP * DEPTH);
    for (int i = 0; i < SHALLOW + DEEP; i++)
        haft_fiber_drop(fibers[i]);
    CHECK(haft_pool_report().resident < before + SHALLOW * (size_t)8192 + DEEP * DEPTH / 2);
    haft_pool_trim();
}

static void trim_gives_back_what_idle_stacks_hold(void) {
    run_to_the_end(go_deep);
    haft_pool_report_t report = haft_pool_report();
    size_t given = haft_pool_trim();
    CHECK_EQUAL(haft_pool_report().resident, report.resident - given);
    CHECK_EQUAL(haft_pool_report().idle, report.idle);
    CHECK_EQUAL(haft_pool_trim(), 0);
    run_to_the_end(go_deep);
}

static size_t page_tables(void) {
    char line[256];
    size_t kibibytes = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        (void)sscanf(line, "VmPTE: %zu", &kibibytes);
    fclose(file);
    return kibibytes * 1024;
}

enum { MANY = 50000 };
static haft_fiber_t *many[MANY];
static void make_many(void) {
    for (int i = 0; i < MANY; i++) {
        many[i] = haft_fiber_new(stay_shallow, NULL);
        haft_resume(many[i], HAFT_NO_REPLY, HAFT_HANDLES(wait));
    }
}
static void free_many(void) {
    for (int i = 0; i < MANY; i++) {
        haft_resume(many[i], HAFT_NO_REPLY, HAFT_HANDLES(wait));
        haft_fiber_drop(many[i]);
    }
}

static void count_freed(const haft_error_t *error) {
    CHECK_CONTAINS(error->message, "it has been dropped");
    exit(check_failures == 0 ? 0 : 1);
}
static void resume_what_was_trimmed(void) {
    make_many();
    free_many();
    haft_pool_trim();
    CHECK_EQUAL(haft_fiber_state(many[MANY / 2]), HAFT_FIBER_DROPPED);
    haft_set_error_handler(count_freed);
    haft_resume(many[MANY / 2], HAFT_NO_REPLY, HAFT_HANDLES(wait));
    CHECK(!"to be reached");
}
static void a_freed_fiber_is_recognised_when_its_memory_is_gone(void) {
    CHECK_SUCCEEDS(resume_what_was_trimmed);
}

static void trim_gives_back_page_tables_too(void) {
    haft_pool_trim();
    size_t resident = haft_pool_report().resident, tables = page_tables();
    for (int round = 0; round < 2; round++) {
        make_many();
        CHECK(page_tables() > tables + MANY * (size_t)1024);
        free_many();
        size_t held = haft_pool_report().resident; /* less, if freeing them took over a second */
        size_t given = haft_pool_trim(), left = haft_pool_report().resident;
        CHECK(given >= held - left);
        CHECK(left <= resident);
        CHECK(page_tables() < tables + MANY * (size_t)100);
    }
}

/* Fibers are made and freed all the time, but not as many as before. */
static void idle_memory_goes_back_by_itself(void) {
    size_t resident = haft_pool_report().resident, tables = page_tables();
    make_many();
    free_many();
    while (haft_pool_report().resident > resident + 256 * (size_t)4096 ||
           page_tables() > tables + MANY * (size_t)200)
        for (int i = 0; i < 100000; i++)
            run_to_the_end(stay_shallow);
}

static void *free_half(void *first) {
    haft_fiber_t **fibers = first;
    for (int i = 0; i < MANY / 2; i++) {
        haft_resume(fibers[i], HAFT_NO_REPLY, HAFT_HANDLES(wait));
        haft_fiber_drop(fibers[i]);
    }
    return NULL;
}
static void stacks_freed_on_another_thread_are_used_again(void) {
    size_t stacks = 0;
    for (int round = 0; round < 4; round++) {
        pthread_t threads[2];
        make_many();
        for (int i = 0; i < 2; i++)
            pthread_create(&threads[i], NULL, free_half, many + i * (MANY / 2));
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        haft_pool_report_t report = haft_pool_report();
        CHECK_EQUAL(report.stacks, 0);
        CHECK(round == 0 || report.idle == stacks);
        stacks = report.idle;
    }
}

/* ---- Dense stacks ---- */

static void dense_stacks_share_their_pages(void) {
    enum { COUNT = 1000 };
    static haft_fiber_t *fibers[COUNT];
#ifdef __OPTIMIZE__
    size_t smallest = 1024;
#else
    size_t smallest = 4096; /* frames are larger */
#endif
    for (size_t size = smallest; size <= 8192; size *= 2)
        for (int round = 0; round < 2; round++) {
            haft_pool_report_t before = haft_pool_report();
            haft_fiber_options_t options = {.stack_size = size, .dense = true};
            for (int i = 0; i < COUNT; i++) {
                fibers[i] = haft_fiber_new_with(&options, stay_shallow, NULL);
                haft_resume(fibers[i], HAFT_NO_REPLY, HAFT_HANDLES(wait));
            }
            haft_pool_report_t during = haft_pool_report();
            CHECK_EQUAL(during.unguarded, before.unguarded + COUNT);
            CHECK_EQUAL(during.stacks, before.stacks + COUNT);
            CHECK(during.resident <= before.resident + COUNT * (size + 64));
            for (int i = 0; i < COUNT; i++) {
                CHECK(haft_finished(haft_resume(fibers[i], HAFT_NO_REPLY, HAFT_HANDLES(wait))));
                haft_fiber_drop(fibers[i]);
            }
            haft_pool_trim();
            CHECK_EQUAL(haft_pool_report().unguarded, before.unguarded);
            CHECK(haft_pool_report().resident <= before.resident);
        }
}

static size_t dense_size;
static void ask_for_a_dense_size(void) {
    (void)haft_fiber_new_with(&(haft_fiber_options_t){.stack_size = dense_size, .dense = true},
                              stay_shallow, NULL);
}
static void ask_for_dense_in_memory(void) {
    static char memory[8192];
    (void)haft_fiber_new_with(
        &(haft_fiber_options_t){.memory = memory, .memory_size = sizeof memory, .dense = true},
        stay_shallow, NULL);
}
static void ask_for_dense_segments(void) {
    (void)haft_fiber_new_with(&(haft_fiber_options_t){.segmented = true, .dense = true},
                              stay_shallow, NULL);
}
static void a_dense_stack_that_cannot_be_is_refused(void) {
    static const size_t sizes[] = {1, 1000, 1152, 3000, 8191};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        dense_size = sizes[i];
        CHECK_ABORTS(ask_for_a_dense_size, "there are such of 1024, 2048 (or 0), 4096 and 8192");
    }
    CHECK_ABORTS(ask_for_dense_in_memory, "leave out .dense, or .memory and .memory_size.");
    CHECK_ABORTS(ask_for_dense_segments, "leave out .dense, or .segmented.");
}

static void a_large_dense_stack_is_an_ordinary_one(void) {
    haft_fiber_options_t options = {.stack_size = 100000, .dense = true};
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new_with(&options, stay_shallow, NULL);
    CHECK_EQUAL(haft_pool_report().unguarded, 0);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wait));
}

/* ---- Exhaustion ---- */

/* Half a gibibyte more than there is. */
static void limit_addresses(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%ld", &pages) == 1);
    rlim_t bytes = (rlim_t)pages * 4096 + (512 << 20);
    struct rlimit limit = {bytes, bytes};
    CHECK_EQUAL(setrlimit(RLIMIT_AS, &limit), 0);
}
static haft_fiber_t *newest;
static void exhaust(void) {
    limit_addresses();
    for (int i = 0; i < 100000; i++)
        newest = haft_fiber_new_with(&(haft_fiber_options_t){.stack_size = 16 << 20}, stay_shallow,
                                     NULL);
}
static int errors;
static void count_error(const haft_error_t *error) {
    CHECK_EQUAL(error->code, HAFT_ERROR_NO_MEMORY);
    CHECK_CONTAINS(error->message, "No memory for a fiber's stack of 16777216 bytes: ");
    errors++;
}
static void survive(void) {
    static haft_fiber_t *fibers[100000];
    int count = 0;
    haft_set_error_handler(count_error);
    limit_addresses();
    for (; count < 100000; count++) {
        errno = 0;
        fibers[count] = haft_fiber_new_with(&(haft_fiber_options_t){.stack_size = 16 << 20},
                                            stay_shallow, NULL);
        if (fibers[count] == NULL)
            break;
    }
    CHECK(count > 0 && count < 100000);
    CHECK_EQUAL(errors, 1);
    CHECK_EQUAL(errno, ENOMEM);
    for (int i = 0; i < count; i++) {
        CHECK(haft_resume(fibers[i], HAFT_NO_REPLY, HAFT_HANDLES(wait)).effect == HAFT_ID(wait));
        haft_fiber_drop(fibers[i]);
    }
    /* And there is memory again. */
    CHECK(haft_fiber_new_with(&(haft_fiber_options_t){.stack_size = 16 << 20}, stay_shallow,
                              NULL) != NULL);
}
static haft_answer_t keep_state(void *state, HAFT_PAYLOAD(wait) * payload, haft_resumption_t k) {
    (void)payload, (void)k;
    return haft_answer(state);
}
HAFT_HANDLER(keeping, NULL, HAFT_GENERAL(wait, keep_state));
static void handle_without_memory(void) {
    haft_set_error_handler(count_error);
    limit_addresses();
    while (errors == 0)
        if (haft_handle_with(&(haft_fiber_options_t){.stack_size = 16 << 20}, &keeping, &errors,
                             stay_shallow, NULL) == HAFT_NO_ANSWER)
            CHECK_EQUAL(errors, 1);
}

static void exhausted_memory_is_reported(void) {
    check_child_t child = check_child(exhaust);
    CHECK_CONTAINS(child.output, "haft: No memory for a fiber's stack of 16777216 bytes: Cannot "
                                 "allocate memory.");
    CHECK_EQUAL(child.signal, 0);
}
static void a_program_survives_the_want_of_a_stack(void) {
    CHECK_SUCCEEDS(survive);
}
static void haft_handle_tells_when_no_stack_can_be_had(void) {
    CHECK_SUCCEEDS(handle_without_memory);
}

static void impossible(void) {
    CHECK(haft_fiber_new_with(&(haft_fiber_options_t){.stack_size = SIZE_MAX}, stay_shallow,
                              NULL) == NULL);
    CHECK_EQUAL(errno, ENOMEM);
}
static int refused;
static void count_refused(const haft_error_t *error) {
    CHECK_EQUAL(error->code, HAFT_ERROR_NO_MEMORY);
    refused++;
}
/* Sizes that can be had cost what is used of them. */
static void absurd(void) {
    size_t tables = page_tables();
    haft_set_error_handler(count_refused);
    for (int shift = 30; shift < 64; shift++) {
        int before = refused;
        haft_fiber_options_t options = {.stack_size = (size_t)1 << shift};
        haft_fiber_t *k = haft_fiber_new_with(&options, stay_shallow, NULL);
        CHECK_EQUAL(refused, before + (k == NULL));
        CHECK(k != NULL || shift > 40);
        if (k == NULL)
            continue;
        haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wait));
        haft_fiber_drop(k);
    }
    CHECK(haft_pool_report().resident < 1 << 20);
    CHECK(page_tables() < tables + (4 << 20));
    haft_pool_trim();
}
static void an_absurd_stack_size_is_cheap_or_an_error(void) {
    CHECK_SUCCEEDS(absurd);
}

/* The program's own needs come first. */
static void share_addresses(void) {
    struct rlimit limit = {(rlim_t)4000000 << 10, (rlim_t)4000000 << 10};
    CHECK_EQUAL(setrlimit(RLIMIT_AS, &limit), 0);
    for (int i = 0; i < 80; i++)
        CHECK(haft_fiber_new_with(&(haft_fiber_options_t){.stack_size = 16 << 20}, stay_shallow,
                                  NULL) != NULL);
    void *memory = malloc((size_t)2 << 30);
    CHECK(memory != NULL);
    free(memory);
}
static void few_addresses_are_shared_with_the_program(void) {
    CHECK_SUCCEEDS(share_addresses);
}
static void an_impossible_stack_size_is_out_of_memory(void) {
    check_child_t child = check_child(impossible);
    CHECK_CONTAINS(child.output,
                   "haft: No memory for a fiber's stack of 18446744073709551615 bytes");
    CHECK_EQUAL(child.status, 0);
}

int main(void) {
    if (check_bare())
        RUN(few_addresses_are_shared_with_the_program); /* first: here none are taken yet */
    RUN(the_pool_counts_its_stacks);
    RUN(trim_gives_back_what_idle_stacks_hold);
    RUN(an_impossible_stack_size_is_out_of_memory);
    RUN(a_dense_stack_that_cannot_be_is_refused);
    RUN(a_large_dense_stack_is_an_ordinary_one);
    if (check_bare()) {
        RUN(a_shallow_fiber_has_one_page_resident);
        RUN(a_new_stack_costs_one_page_fault);
        RUN(the_memory_of_fibers_that_went_deep_is_given_back);
        RUN(many_deep_fibers_do_not_keep_their_memory);
        RUN(deep_fibers_are_noticed_among_shallow_ones);
        RUN(trim_gives_back_page_tables_too);
        RUN(a_freed_fiber_is_recognised_when_its_memory_is_gone);
        RUN(stacks_freed_on_another_thread_are_used_again);
        RUN(idle_memory_goes_back_by_itself);
        RUN(dense_stacks_share_their_pages);
        RUN(an_absurd_stack_size_is_cheap_or_an_error);
        RUN(exhausted_memory_is_reported);
        RUN(a_program_survives_the_want_of_a_stack);
        RUN(haft_handle_tells_when_no_stack_can_be_had);
    }
    return check_end();
}
/* SPDX-License-Identifier: MIT */
