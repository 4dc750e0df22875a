/* Looking at fibers: backtraces of suspended and of running ones, and the list of all. */
#include <haft.h>

#include <execinfo.h>

#include "check.h"

HAFT_EFFECT(wait, void, {});
HAFT_EFFECT(other, void, {});

int call_innermost(void *(*then)(void));
void *innermost_body(void *unused);
void *middle_body(void *memory);
void *outer_body(void *memory);

static void *(*then_function)(void);

__attribute__((noinline)) int call_innermost(void *(*then)(void)) {
    void *result = then();
    __asm__ volatile("" ::: "memory");
    return result != NULL;
}
__attribute__((noinline)) void *innermost_body(void *unused) {
    int result = call_innermost(then_function);
    __asm__ volatile("" ::: "memory");
    return result ? &then_function : unused;
}
__attribute__((noinline)) void *middle_body(void *memory) {
    haft_fiber_options_t options = {.memory = memory,
                                    .memory_size = memory != NULL ? 64 * 1024 : 0};
    HAFT_SCOPED haft_fiber_t *inner = haft_fiber_new_with(&options, innermost_body, NULL);
    haft_fiber_set_name(inner, "inner");
    haft_resume(inner, HAFT_NO_REPLY, HAFT_HANDLES(other));
    return NULL;
}
__attribute__((noinline)) void *outer_body(void *memory) {
    HAFT_SCOPED haft_fiber_t *middle = haft_fiber_new(middle_body, memory);
    haft_fiber_set_name(middle, "middle");
    haft_resume(middle, HAFT_NO_REPLY, HAFT_HANDLES(other));
    return NULL;
}

/* Whether the names appear among the symbols of the addresses, in this order. */
static void check_names(void **addresses, int count, const char *const *names, int length) {
    char **symbols = backtrace_symbols(addresses, count);
    int next = 0;
    for (int i = 0; i < count && next < length; i++)
        if (strstr(symbols[i], names[next]) != NULL)
            next++;
    if (next != length) {
        check_failed(__FILE__, __LINE__, "missing in the backtrace: ");
        fprintf(stderr, "%s, in\n", names[next]);
        for (int i = 0; i < count; i++)
            fprintf(stderr, "  %s\n", symbols[i]);
    }
    free(symbols);
}

static const char *const names_on_fibers[] = {"call_innermost", "innermost_body", "middle_body",
                                              "outer_body"};
static const char *const names_to_main[] = {"call_innermost", "innermost_body", "middle_body",
                                            "outer_body", "main"};

static void *wait_here(void) {
    HAFT_PERFORM(wait);
    return NULL;
}

static haft_fiber_t *waiting_chain(void *memory) {
    then_function = wait_here;
    haft_fiber_t *k = haft_fiber_new(outer_body, memory);
    haft_fiber_set_name(k, "outer");
    CHECK(haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wait)).effect == HAFT_ID(wait));
    return k;
}

static char static_memory[64 * 1024];

static void the_backtrace_of_a_suspended_fiber_shows_its_whole_chain(void) {
    void *addresses[100];
    for (int fixed = 0; fixed < 2; fixed++) {
        haft_fiber_t *k = waiting_chain(fixed ? static_memory : NULL);
        int count = haft_fiber_backtrace(k, addresses, 100);
        CHECK(count >= 4);
        check_names(addresses, count, names_on_fibers, 4);
        /* It ends with the chain, and at most where it is told to. */
        char **symbols = backtrace_symbols(addresses, count);
        for (int i = 0; i < count; i++)
            CHECK(strstr(symbols[i], "(main") == NULL);
        free(symbols);
        CHECK_EQUAL(haft_fiber_backtrace(k, addresses, 3), 3);
        CHECK_EQUAL(haft_fiber_backtrace(k, addresses, 0), 0);
        /* And the fiber goes on as if nothing had been. */
        CHECK(haft_finished(haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wait))));
        CHECK_EQUAL(haft_fiber_backtrace(k, addresses, 100), 0);
        haft_fiber_drop(k);
    }
}

static void *self_backtrace(void) {
    void *addresses[100];
    CHECK_EQUAL(haft_fiber_backtrace(haft_fiber_current(), addresses, 100), 0);
    int count = backtrace(addresses, 100);
    check_names(addresses, count, names_to_main, 5);
    return NULL;
}
static void run_chain(void *(*then)(void), void *memory) {
    then_function = then;
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(outer_body, memory);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES());
}

static void backtrace_leads_from_the_innermost_fiber_to_main(void) {
    char on_the_stack[64 * 1024];
    run_chain(self_backtrace, NULL);
    run_chain(self_backtrace, static_memory);
    run_chain(self_backtrace, on_the_stack);
}

static __attribute__((no_sanitize("address"))) void *walk_frame_pointers(void) {
    void *addresses[100];
    int count = 0;
    void **frame = __builtin_frame_address(0);
    while (frame != NULL && count < 100) {
        addresses[count++] = frame[1];
        frame = frame[0];
        /* The C library's frames below main have no frame pointers. */
        char **symbol = backtrace_symbols(&addresses[count - 1], 1);
        bool is_main = strstr(*symbol, "(main") != NULL;
        free(symbol);
        if (is_main)
            break;
    }
    check_names(addresses, count, names_to_main, 5);
    return NULL;
}

static void frame_pointers_lead_from_the_innermost_fiber_to_main(void) {
    char on_the_stack[64 * 1024];
    run_chain(walk_frame_pointers, NULL);
    run_chain(walk_frame_pointers, static_memory);
    run_chain(walk_frame_pointers, on_the_stack);
}

/* ---- Dump ---- */

static char dumped[1 << 16];
static const char *dump(void) {
    FILE *stream = tmpfile();
    CHECK_EQUAL(haft_fibers_dump(fileno(stream)), 0);
    rewind(stream);
    dumped[fread(dumped, 1, sizeof dumped - 1, stream)] = '\0';
    fclose(stream);
    return dumped;
}

static void the_dump_shows_every_fiber_with_state_effect_and_stack(void) {
    haft_fiber_t *k = waiting_chain(NULL);
    haft_fiber_t *made =
        haft_fiber_new_with(&(haft_fiber_options_t){.name = "made"}, outer_body, NULL);
    haft_fiber_t *fixed = haft_fiber_new_with(
        &(haft_fiber_options_t){
            .name = "fixed", .memory = static_memory, .memory_size = sizeof static_memory},
        outer_body, NULL);
    const char *text = dump();
    CHECK_CONTAINS(text, "suspended  waits on wait  'outer'  stack ");
    CHECK_CONTAINS(text, "running    'middle'");
    CHECK_CONTAINS(text, "running    'inner'");
    CHECK_CONTAINS(text, "new        'made'");
    CHECK_CONTAINS(text, "new        'fixed'");
    CHECK_CONTAINS(text, " resident\n");
    CHECK_CONTAINS(text, "\n5 fibers\n");
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wait));
    CHECK_CONTAINS(dump(), "finished   'outer'");
    haft_fiber_drop(k);
    haft_fiber_drop(made);
    haft_fiber_drop(fixed);
    CHECK_SAME_TEXT(dump(), "0 fibers\n");
}

static void dump_by_signal(void) {
    haft_fiber_t *k = waiting_chain(NULL);
    CHECK_EQUAL(haft_dump_on_signal(SIGUSR1), 0);
    raise(SIGUSR1);
    haft_fiber_drop(k);
}
static void the_dump_comes_on_a_signal(void) {
    check_child_t child = check_child(dump_by_signal);
    CHECK_EQUAL(child.signal, 0);
    CHECK_CONTAINS(child.output, "waits on wait  'outer'");
    CHECK_CONTAINS(child.output, "3 fibers\n");
    CHECK_EQUAL(haft_dump_on_signal(-1), -1);
}

int main(void) {
    RUN(the_backtrace_of_a_suspended_fiber_shows_its_whole_chain);
    RUN(backtrace_leads_from_the_innermost_fiber_to_main);
    RUN(frame_pointers_lead_from_the_innermost_fiber_to_main);
    RUN(the_dump_shows_every_fiber_with_state_effect_and_stack);
    /* ThreadSanitizer does not follow fibers into a forked child. */
    if (!CHECK_THREAD_SANITIZER)
        RUN(the_dump_comes_on_a_signal);
    return check_end();
}
/* SPDX-License-Identifier: MIT */
