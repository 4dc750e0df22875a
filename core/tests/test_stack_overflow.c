/* Overflow of each kind of stack, and faults that are none: the message, the signal, other
 * handlers. */
#define _GNU_SOURCE /* getcontext */
#include <haft.h>

#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "check.h"

HAFT_EFFECT(wait, void, {});

static __attribute__((noinline)) int recurse(int depth) {
    volatile char frame[500];
    frame[0] = 1;
    return depth == 1 << 30 ? 0 : recurse(depth + 1) + frame[0];
}
static void *overflow(void *unused) {
    recurse(0);
    return unused;
}
static void run_named(const char *name, size_t stack_size, void *(*function)(void *)) {
    haft_fiber_t *k = haft_fiber_new_with(
        &(haft_fiber_options_t){.name = name, .stack_size = stack_size}, function, NULL);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wait));
}

static void overflow_default(void) {
    run_named("deep", 0, overflow);
}
static void overflow_small(void) {
    run_named("small", 16 * 1024, overflow);
}
static void overflow_unnamed(void) {
    run_named(NULL, 0, overflow);
}

static void overflow_of_a_pool_stack_names_the_fiber(void) {
    CHECK_FAULTS(
        overflow_default,
        "haft: the fiber 'deep' has overflowed its stack of 1024 KiB: too deep a recursion, or "
        "too large a local variable. Give it more with haft_fiber_options_t.stack_size.");
    CHECK_FAULTS(overflow_small, "the fiber 'small' has overflowed its stack of 16 KiB");
    CHECK_FAULTS(overflow_unnamed, "the unnamed fiber 0x");
}

static void *overflow_on_thread(void *unused) {
    overflow_default();
    return unused;
}
static void in_another_thread(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, overflow_on_thread, NULL);
    pthread_join(thread, NULL);
}
static void overflow_on_any_thread_is_named(void) {
    CHECK_FAULTS(in_another_thread, "the fiber 'deep' has overflowed");
}

/* A fiber that was made by one thread, and overflows on another that has made none. */
static haft_fiber_t *made_elsewhere;
static void *resume_made_elsewhere(void *unused) {
    haft_resume(made_elsewhere, HAFT_NO_REPLY, HAFT_HANDLES(wait));
    return unused;
}
static void moved_to_another_thread(void) {
    pthread_t thread;
    made_elsewhere = haft_fiber_new_with(&(haft_fiber_options_t){.name = "moved"}, overflow, NULL);
    pthread_create(&thread, NULL, resume_made_elsewhere, NULL);
    pthread_join(thread, NULL);
}
static void overflow_of_a_moved_fiber_is_named(void) {
    CHECK_FAULTS(moved_to_another_thread, "the fiber 'moved' has overflowed");
}

static void *jump_into_guard(void *unused) {
    char *large = alloca((1024 + 32) * 1024);
    large[0] = 1;
    __asm__ volatile("" : : "r"(large) : "memory");
    return unused;
}
static void large_local(void) {
    run_named("large", 0, jump_into_guard);
}
static void a_large_local_variable_hits_the_guard(void) {
    CHECK_FAULTS(large_local, "the fiber 'large' has overflowed");
}

/* Whatever the size of the stack: from its top over all of it, and most of the guard. */
static void *jump_from_a_small_stack(void *unused) {
    char *large = alloca((16 + 60) * 1024);
    large[0] = 1;
    __asm__ volatile("" : : "r"(large) : "memory");
    return unused;
}
static void large_local_on_a_small_stack(void) {
    run_named("small", 16 * 1024, jump_from_a_small_stack);
}
static void guards_of_small_stacks_are_as_large(void) {
    CHECK_FAULTS(large_local_on_a_small_stack, "the fiber 'small' has overflowed");
}

/* ---- Memory of the caller has no guard, but a canary ---- */

static char fixed_memory[3][16 * 1024];

static __attribute__((noinline)) int fill(int depth) {
    char frame[500];
    memset(frame, 1, sizeof frame);
    __asm__ volatile("" : : "r"(frame) : "memory");
    return depth == 0 ? 0 : fill(depth - 1) + frame[0];
}
static void *overflow_then_wait(void *unused) {
    fill(32);
    HAFT_PERFORM(wait);
    return unused;
}
static void *overflow_then_return(void *unused) {
    fill(32);
    return unused;
}
static void *overflow_by_little(void *unused) {
    fill(3);
    HAFT_PERFORM(wait);
    return unused;
}
static void run_fixed(void *(*function)(void *)) {
    haft_fiber_t *k = haft_fiber_new_with(&(haft_fiber_options_t){.name = "fixed",
                                                                  .memory = fixed_memory[1],
                                                                  .memory_size = 16 * 1024},
                                          function, NULL);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wait));
}
static void wait_after_overflow(void) {
    run_fixed(overflow_then_wait);
}
static void return_after_overflow(void) {
    run_fixed(overflow_then_return);
}

static void overflow_of_memory_of_the_caller_is_found_at_the_next_switch(void) {
    if (CHECK_ADDRESS_SANITIZER)
        return; /* which finds it first */
    CHECK_ABORTS(wait_after_overflow, "the fiber 'fixed' has overflowed its stack of ");
    CHECK_ABORTS(wait_after_overflow, " bytes, which has no guard page, and what lies below is "
                                      "overwritten. Give it more memory.");
    CHECK_ABORTS(return_after_overflow, "the fiber 'fixed' has overflowed its stack of ");
}

/* A frame so large that it skips the canary, hardly written to, into memory of the program's and
   into that of another fiber. */
static char large_memory[4][16 * 1024];
typedef void then_t(void);
static void *use_large_frame(void *then) {
    char *frame = alloca(22 * 1024);
    frame[0] = 1;
    __asm__ volatile("" : : "r"(frame) : "memory");
    (*(then_t **)then)();
    return NULL;
}
static void then_perform(void) {
    HAFT_PERFORM(wait);
}
static void then_throw(void) {
    HAFT_THROW(wait);
}
static void then_make(void) {
    haft_fiber_new_with(&(haft_fiber_options_t){.stack_size = 0}, overflow_then_wait, NULL);
}
static void *wait_here(void *unused) {
    HAFT_PERFORM(wait);
    return unused;
}
static void skip_canary(then_t *then, bool neighbour) {
    if (neighbour)
        haft_resume(haft_fiber_new_with(&(haft_fiber_options_t){.memory = large_memory[1],
                                                                .memory_size = 16 * 1024},
                                        wait_here, NULL),
                    HAFT_NO_REPLY, HAFT_HANDLES(wait));
    haft_fiber_t *k = haft_fiber_new_with(
        &(haft_fiber_options_t){.name = "fixed", .memory = large_memory[3], .memory_size = 4096},
        use_large_frame, &then);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wait));
}
static void skip_and_perform(void) {
    skip_canary(then_perform, false);
}
static void skip_and_throw(void) {
    skip_canary(then_throw, false);
}
static void skip_and_make(void) {
    skip_canary(then_make, false);
}
static void skip_to_neighbour(void) {
    skip_canary(then_perform, true);
}
static void an_overflow_past_the_canary_is_found_where_the_stack_pointer_is_seen(void) {
    if (CHECK_ADDRESS_SANITIZER)
        return;
    static void (*const cases[])(void) = {skip_and_perform, skip_and_throw, skip_and_make,
                                          skip_to_neighbour};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK_ABORTS(cases[i], "the fiber 'fixed' has overflowed its stack of ");
}

static void run_dense(void) {
    haft_fiber_options_t options = {.name = "dense", .stack_size = 2048, .dense = true};
    haft_fiber_t *k[3];
    for (int i = 0; i < 3; i++)
        k[i] = haft_fiber_new_with(&options, overflow_by_little, NULL);
    for (int i = 0; i < 3; i++)
        haft_resume(k[i], HAFT_NO_REPLY, HAFT_HANDLES(wait));
}
static void overflow_of_a_dense_stack_is_found_at_the_next_switch(void) {
    if (check_bare())
        CHECK_ABORTS(run_dense, "the fiber 'dense' has overflowed its stack of ");
}

/* Code that goes on without a switch comes to memory that may not be written. */
static void run_into_fault(void) {
    const size_t size = 128 * 1024, kept = 16 * 1024;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_EQUAL(mprotect(memory, 4096, PROT_NONE), 0);
    haft_fiber_t *k = haft_fiber_new_with(&(haft_fiber_options_t){.name = "bare",
                                                                  .memory = memory + size - kept,
                                                                  .memory_size = kept},
                                          overflow, NULL);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wait));
}
static void an_overflow_without_a_guard_that_faults_is_named(void) {
    CHECK_FAULTS(run_into_fault, "the fiber 'bare' has overflowed its stack of ");
    CHECK_FAULTS(run_into_fault, "has no guard page, and what lies below is overwritten.");
}

/* ---- Other faults ---- */

static volatile uintptr_t nowhere = 8;
static void *crash(void *unused) {
    *(volatile int *)nowhere = 1;
    return unused;
}
static void crash_on_fiber(void) {
    run_named("crashing", 0, crash);
}
static void crash_on_fixed(void) {
    run_fixed(crash);
}
static void crash_on_thread(void) {
    haft_fiber_drop(haft_fiber_new(crash, NULL));
    crash(NULL);
}

/* In a handler of a signal, on a stack for signals. */
static void crash_in_handler(int number) {
    (void)number;
    crash(NULL);
}
static void *raise_there(void *unused) {
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = crash_in_handler, .sa_flags = SA_ONSTACK},
              NULL);
    raise(SIGUSR1);
    return unused;
}
static void crash_in_handler_on_fixed(void) {
    run_fixed(raise_there);
}

/* On a stack of the program's own. */
static ucontext_t here, there;
static void crash_there(void) {
    crash(NULL);
}
static void *switch_and_crash(void *unused) {
    static char stack[64 * 1024];
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = sizeof stack;
    there.uc_link = &here;
    makecontext(&there, crash_there, 0);
    swapcontext(&here, &there);
    return unused;
}
static void crash_elsewhere_on_fixed(void) {
    run_fixed(switch_and_crash);
}

/* Large frames may skip the canary, and overwrite any part of a header: here what leads to its
   language. */
static void *wait_once(void *unused) {
    HAFT_PERFORM(wait);
    return unused;
}
static void crash_beside_overwritten(void) {
    haft_fiber_options_t options = {.name = "dense", .stack_size = 4096, .dense = true};
    haft_fiber_t *k = haft_fiber_new_with(&options, wait_once, NULL);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wait));
    memset(&k->language, 1, sizeof k->language);
    crash(NULL);
}
static void a_fault_beside_an_overwritten_header_is_explained(void) {
    CHECK_FAULTS(crash_beside_overwritten, "a fiber's header has been overwritten");
}

static void an_ordinary_crash_ends_the_process_by_its_signal(void) {
    CHECK_FAULTS(crash_on_fiber, "");
    CHECK_FAULTS(crash_on_thread, "");
    static void (*const cases[])(void) = {crash_on_fiber, crash_on_fixed, crash_in_handler_on_fixed,
                                          crash_elsewhere_on_fixed};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_child_t child = check_child(cases[i]);
        CHECK(strstr(child.output, "overflowed") == NULL);
    }
}

/* A handler for a signal that would end the process. */
static void simple_abort_handler(int number) {
    (void)number;
    _exit(9);
}
static void *stop(void *unused) {
    (void)unused;
    abort();
}
static void abort_on_fiber(void) {
    run_named("stopping", 0, stop);
}
static void abort_on_thread(void) {
    haft_fiber_drop(haft_fiber_new(stop, NULL));
    abort();
}
static void handle_abort(void) {
    signal(SIGABRT, simple_abort_handler);
    abort_on_fiber();
}
static void a_fatal_signal_on_a_fiber_prints_a_backtrace(void) {
    if (!check_bare())
        return;
    check_child_t child = check_child(crash_on_fiber);
    CHECK_EQUAL(child.signal, SIGSEGV);
    CHECK_CONTAINS(child.output, "haft: SIGSEGV at address 0x8 on the ");
    CHECK_CONTAINS(child.output, "test_stack_overflow(");
    child = check_child(abort_on_fiber);
    CHECK_EQUAL(child.signal, SIGABRT);
    CHECK_CONTAINS(child.output, "haft: SIGABRT on the fiber 'stopping'.\n");
    CHECK_CONTAINS(child.output, "(abort+0x");
    child = check_child(abort_on_thread);
    CHECK_EQUAL(child.signal, SIGABRT);
    CHECK(strstr(child.output, "SIGABRT") == NULL);
    child = check_child(handle_abort);
    CHECK_EQUAL(child.status, 9);
    CHECK(strstr(child.output, "SIGABRT") == NULL);
    child = check_child(overflow_default);
    CHECK_CONTAINS(child.output, " more, until\n");
}

static void raise_fault(void) {
    haft_fiber_drop(haft_fiber_new(crash, NULL));
    raise(SIGSEGV);
}
static void raise_ignored_fault(void) {
    signal(SIGSEGV, SIG_IGN);
    raise_fault();
}
static void a_fault_signal_that_is_sent_does_what_it_did(void) {
    CHECK_FAULTS(raise_fault, "");
    CHECK_SUCCEEDS(raise_ignored_fault);
}

static void user_handler(int number, siginfo_t *information, void *context) {
    (void)number, (void)context;
    static const char text[] = "the program's own handler\n";
    if (information->si_addr == (void *)8 && write(STDERR_FILENO, text, sizeof text - 1) > 0)
        _exit(7);
    _exit(8);
}
static void simple_handler(int number) {
    (void)number;
    _exit(9);
}
static void install(void (*handler)(int, siginfo_t *, void *), void (*simple)(int)) {
    struct sigaction action = {.sa_flags = handler != NULL ? SA_SIGINFO | SA_ONSTACK : SA_ONSTACK};
    if (handler != NULL)
        action.sa_sigaction = handler;
    else
        action.sa_handler = simple;
    sigaction(SIGSEGV, &action, NULL);
}
static void handler_before(void) {
    install(user_handler, NULL);
    crash_on_fiber();
}
static void simple_handler_before(void) {
    install(NULL, simple_handler);
    crash_on_fiber();
}
static void handler_after(void) {
    haft_fiber_drop(haft_fiber_new(crash, NULL));
    install(user_handler, NULL);
    crash_on_fiber();
}
static void ignored_before(void) {
    signal(SIGSEGV, SIG_IGN);
    crash_on_fiber();
}
static void handler_before_sees_overflow(void) {
    install(NULL, simple_handler);
    overflow_default();
}

static void the_programs_own_fault_handler_is_called(void) {
    CHECK_EQUAL(check_child(handler_before).status, 7);
    CHECK_EQUAL(check_child(simple_handler_before).status, 9);
    CHECK_EQUAL(check_child(handler_after).status, 7);
    CHECK_EQUAL(check_child(ignored_before).signal, SIGSEGV);
    check_child_t child = check_child(handler_before_sees_overflow);
    CHECK_EQUAL(child.status, 9);
    CHECK_CONTAINS(child.output, "the fiber 'deep' has overflowed");
}

/* A program may recover from its own faults again and again. */
static sigjmp_buf recovery;
static void recover(int number, siginfo_t *information, void *context) {
    (void)number, (void)information, (void)context;
    siglongjmp(recovery, 1);
}
static void recover_many_times(void) {
    install(recover, NULL);
    haft_fiber_drop(haft_fiber_new(crash, NULL));
    for (volatile int i = 0; i < 100; i++)
        if (sigsetjmp(recovery, 1) == 0)
            crash(NULL);
}
static void a_program_that_recovers_from_faults_still_does(void) {
    CHECK_SUCCEEDS(recover_many_times);
}

int main(void) {
    RUN(overflow_of_a_pool_stack_names_the_fiber);
    RUN(overflow_on_any_thread_is_named);
    RUN(overflow_of_a_moved_fiber_is_named);
    RUN(a_large_local_variable_hits_the_guard);
    RUN(overflow_of_memory_of_the_caller_is_found_at_the_next_switch);
    RUN(an_overflow_past_the_canary_is_found_where_the_stack_pointer_is_seen);
    RUN(guards_of_small_stacks_are_as_large);
    RUN(overflow_of_a_dense_stack_is_found_at_the_next_switch);
    RUN(an_overflow_without_a_guard_that_faults_is_named);
    if (check_bare())
        RUN(a_fault_beside_an_overwritten_header_is_explained);
    RUN(an_ordinary_crash_ends_the_process_by_its_signal);
    RUN(a_fatal_signal_on_a_fiber_prints_a_backtrace);
    RUN(a_fault_signal_that_is_sent_does_what_it_did);
    if (!RUNNING_ON_VALGRIND) {
        RUN(the_programs_own_fault_handler_is_called);
        RUN(a_program_that_recovers_from_faults_still_does);
    }
    return check_end();
}
/* SPDX-License-Identifier: MIT */
