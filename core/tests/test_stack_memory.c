/* The pool of stacks: memory of deep fibers is given back, the pool reports and trims itself, and
   memory that runs out is an error that a program can survive. */
#include <haft.h>

#include <errno.h>

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
    haft_resume(k, NULL, HAFT_HANDLES(wait));
    haft_resume(k, NULL, HAFT_HANDLES(wait));
    haft_fiber_free(k);
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
        haft_fiber_free(fibers[i]);
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
        haft_resume(fibers[i], NULL, HAFT_HANDLES(wait));
    }
    size_t each = (haft_pool_report().resident - before) / COUNT;
    CHECK(each <= 4096);
    for (int i = 0; i < COUNT; i++)
        haft_fiber_free(fibers[i]);
}

static void the_memory_of_fibers_that_went_deep_is_given_back(void) {
    enum { DEPTH = 200 * 4000 };
    run_to_the_end(stay_shallow);
    haft_pool_trim();
    size_t before = haft_pool_report().resident;
    haft_fiber_t *k = haft_fiber_new(go_deep, NULL);
    haft_resume(k, NULL, HAFT_HANDLES(wait));
    CHECK(haft_pool_report().resident >= before + DEPTH);
    haft_fiber_free(k);
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
        haft_resume(fibers[i], NULL, HAFT_HANDLES(wait));
    }
    CHECK(haft_pool_report().resident >= before + COUNT * DEPTH);
    for (int i = 0; i < COUNT; i++)
        haft_fiber_free(fibers[i]);
    for (int i = 0; i < 10000; i++)
        run_to_the_end(stay_shallow);
    CHECK(haft_pool_report().resident < before + COUNT * DEPTH / 2);
    haft_pool_trim();
    CHECK(haft_pool_report().resident < before + COUNT * DEPTH / 20);
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
        newest =
            haft_fiber_create(&(haft_fiber_options_t){.stack_size = 16 << 20}, stay_shallow, NULL);
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
        fibers[count] =
            haft_fiber_create(&(haft_fiber_options_t){.stack_size = 16 << 20}, stay_shallow, NULL);
        if (fibers[count] == NULL)
            break;
    }
    CHECK(count > 0 && count < 100000);
    CHECK_EQUAL(errors, 1);
    CHECK_EQUAL(errno, ENOMEM);
    for (int i = 0; i < count; i++) {
        CHECK(haft_resume(fibers[i], NULL, HAFT_HANDLES(wait)).effect == HAFT_ID(wait));
        haft_fiber_free(fibers[i]);
    }
    /* And there is memory again. */
    CHECK(haft_fiber_create(&(haft_fiber_options_t){.stack_size = 16 << 20}, stay_shallow, NULL) !=
          NULL);
}
static void *keep_state(void *state, HAFT_PAYLOAD(wait) * payload, haft_resumption_t k) {
    (void)payload, (void)k;
    return state;
}
HAFT_HANDLER(keeping, NULL, HAFT_GENERAL(wait, keep_state));
static void handle_without_memory(void) {
    haft_set_error_handler(count_error);
    limit_addresses();
    while (errors == 0)
        if (haft_handle_with(&(haft_fiber_options_t){.stack_size = 16 << 20}, &keeping, &errors,
                             stay_shallow, NULL) == NULL)
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
static void haft_handle_returns_null_when_no_stack_can_be_had(void) {
    CHECK_SUCCEEDS(handle_without_memory);
}

static void impossible(void) {
    CHECK(haft_fiber_create(&(haft_fiber_options_t){.stack_size = SIZE_MAX}, stay_shallow, NULL) ==
          NULL);
    CHECK_EQUAL(errno, ENOMEM);
}
static void an_impossible_stack_size_is_out_of_memory(void) {
    check_child_t child = check_child(impossible);
    CHECK_CONTAINS(child.output,
                   "haft: No memory for a fiber's stack of 18446744073709551615 bytes");
    CHECK_EQUAL(child.status, 0);
}

int main(void) {
    RUN(the_pool_counts_its_stacks);
    RUN(trim_gives_back_what_idle_stacks_hold);
    RUN(an_impossible_stack_size_is_out_of_memory);
    if (check_bare()) {
        RUN(a_shallow_fiber_has_one_page_resident);
        RUN(the_memory_of_fibers_that_went_deep_is_given_back);
        RUN(many_deep_fibers_do_not_keep_their_memory);
        RUN(exhausted_memory_is_reported);
        RUN(a_program_survives_the_want_of_a_stack);
        RUN(haft_handle_returns_null_when_no_stack_can_be_had);
    }
    return check_end();
}
