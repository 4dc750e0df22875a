/* Guards where the kernel refuses the cheap way: kernels before 6.13, of which a seccomp filter
   makes this one look like one, memory that is locked, and filters that come late. */
#define _GNU_SOURCE
#include <haft.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "check.h"

HAFT_EFFECT(wait, void, {});

static void *wait_once(void *unused) {
    HAFT_PERFORM(wait);
    return unused;
}
static __attribute__((noinline)) int recurse(int depth) {
    volatile char frame[500];
    frame[0] = 1;
    return depth == 1 << 30 ? 0 : recurse(depth + 1) + frame[0];
}
static void *overflow(void *unused) {
    recurse(0);
    return unused;
}
static __attribute__((noinline)) int fill(int depth) {
    char frame[500];
    memset(frame, 1, sizeof frame);
    __asm__ volatile("" : : "r"(frame) : "memory");
    return depth == 0 ? 0 : fill(depth - 1) + frame[0];
}
static void *fill_and_wait(void *depth) {
    fill((int)(intptr_t)depth);
    HAFT_PERFORM(wait);
    return NULL;
}

enum { GUARD_INSTALL = 102 };
#ifndef SYS_process_madvise
#    define SYS_process_madvise 440
#endif

/* From now on the system call fails, if its argument of this number, from 0 on, is this one. False:
   there are no filters here. */
static bool refuse(int call, size_t number, int argument, int error) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * number),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)argument, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
        return true;
    fprintf(stderr, "no seccomp filters here\n");
    return false;
}
static bool be_an_old_kernel(void) {
    return refuse(SYS_madvise, 2, GUARD_INSTALL, EINVAL) &&
           refuse(SYS_process_madvise, 3, GUARD_INSTALL, EINVAL);
}

static void use_fibers(int count, size_t stack_size) {
    haft_fiber_t **fibers = calloc((size_t)count, sizeof *fibers);
    for (int i = 0; i < count; i++) {
        fibers[i] =
            haft_fiber_new_with(&(haft_fiber_options_t){.stack_size = stack_size}, wait_once, NULL);
        CHECK(haft_resume(fibers[i], HAFT_NO_REPLY, HAFT_HANDLES(wait)).effect == HAFT_ID(wait));
    }
    for (int i = 0; i < count; i++) {
        CHECK(haft_finished(haft_resume(fibers[i], HAFT_NO_REPLY, HAFT_HANDLES(wait))));
        haft_fiber_drop(fibers[i]);
    }
    free(fibers);
}

static void overflow_on_an_old_kernel(void) {
    if (!be_an_old_kernel())
        raise(SIGSEGV);
    haft_resume(haft_fiber_new(overflow, NULL), HAFT_NO_REPLY, HAFT_HANDLES());
}
static void old_kernels_have_guards(void) {
    CHECK_FAULTS(overflow_on_an_old_kernel, "");
}

/* More than an old kernel has mappings for. */
static void many_on_an_old_kernel(void) {
    if (!be_an_old_kernel())
        return;
    use_fibers(40000, 16 * 1024);
    CHECK_EQUAL(haft_pool_report().unguarded, 0);
    use_fibers(40000, 16 * 1024);
    haft_pool_trim();
    use_fibers(40000, 16 * 1024);
}
static void a_kernel_that_becomes_old(void) {
    use_fibers(100, 0);
    many_on_an_old_kernel();
}
static void old_kernels_have_stacks_beyond_their_guards(void) {
    CHECK_SUCCEEDS(many_on_an_old_kernel);
    CHECK_SUCCEEDS(a_kernel_that_becomes_old);
}

/* Guards can be had one at a time, but not several by one call. */
static void many_by_single_calls(void) {
    use_fibers(300, 0);
    if (!refuse(SYS_process_madvise, 3, GUARD_INSTALL, EPERM))
        return;
    use_fibers(600, 0);
    CHECK_EQUAL(haft_pool_report().unguarded, 0);
}
static void overflow_of_one_of_many(void) {
    use_fibers(200, 16 * 1024); /* which leaves some guarded that were never in use */
    for (int i = 0; i < 210; i++)
        haft_fiber_new_with(&(haft_fiber_options_t){.stack_size = 16 * 1024}, wait_once, NULL);
    haft_fiber_options_t options = {.name = "last", .stack_size = 16 * 1024};
    haft_resume(haft_fiber_new_with(&options, overflow, NULL), HAFT_NO_REPLY, HAFT_HANDLES());
}
static void many_guards_are_had_by_one_call_or_singly(void) {
    CHECK_SUCCEEDS(many_by_single_calls);
    CHECK_FAULTS(overflow_of_one_of_many, "the fiber 'last' has overflowed its stack");
}

/* Neither way of making guards. */
static bool refuse_guards(void) {
    return be_an_old_kernel() && refuse(SYS_mprotect, 2, PROT_NONE, EPERM);
}
static void live_without_guards(void) {
    use_fibers(10, 0);
    if (!refuse_guards())
        return;
    use_fibers(100, 0);
    haft_fiber_t *k =
        haft_fiber_new_with(&(haft_fiber_options_t){.stack_size = 16 * 1024}, wait_once, NULL);
    CHECK_EQUAL(haft_pool_report().unguarded, 1);
    haft_fiber_drop(k);
    CHECK_EQUAL(haft_pool_report().unguarded, 0);
}
static void overflow_without_a_guard(void) {
    if (!refuse_guards())
        abort();
    haft_fiber_options_t options = {.name = "bare", .stack_size = 16 * 1024};
    haft_fiber_t *below = haft_fiber_new_with(&options, wait_once, NULL);
    haft_fiber_t *k = haft_fiber_new_with(&options, fill_and_wait, (void *)250);
    haft_resume(below, HAFT_NO_REPLY, HAFT_HANDLES(wait));
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wait));
}
static void without_guards_an_overflow_is_found_by_a_canary(void) {
    CHECK_SUCCEEDS(live_without_guards);
    check_child_t child = check_child(overflow_without_a_guard);
    CHECK_EQUAL(child.signal, SIGABRT);
    if (strstr(child.output, "no seccomp") == NULL)
        CHECK_CONTAINS(child.output, "the fiber 'bare' has overflowed its stack of ");
}

/* ---- Locked memory ---- */

static size_t status_of(const char *field) {
    char line[256];
    size_t kibibytes = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, field, strlen(field)) == 0)
            kibibytes = strtoul(line + strlen(field), NULL, 10);
    fclose(file);
    return kibibytes;
}
static bool lock(int flags) {
    if (mlockall(flags) == 0)
        return true;
    fprintf(stderr, "memory cannot be locked here\n");
    return false;
}
static void lock_after_the_first_fiber(void) {
    use_fibers(20, 64 * 1024);
    if (!lock(MCL_CURRENT))
        return;
    use_fibers(100, 64 * 1024);
    haft_pool_trim();
    use_fibers(100, 64 * 1024);
}
static void lock_before_the_first_fiber(void) {
    if (!lock(MCL_CURRENT | MCL_FUTURE))
        return;
    size_t before = status_of("VmRSS:");
    use_fibers(1000, 0);
    CHECK(status_of("VmRSS:") < before + 32 * 1024);
    haft_pool_trim();
    use_fibers(1000, 0);
    CHECK(status_of("VmRSS:") < before + 32 * 1024);
}
static void fibers_can_be_made_after_memory_was_locked(void) {
    CHECK_SUCCEEDS(lock_after_the_first_fiber);
}
static void of_locked_stacks_only_what_is_used_takes_memory(void) {
    CHECK_SUCCEEDS(lock_before_the_first_fiber);
}

int main(void) {
    if (check_bare()) {
        RUN(old_kernels_have_guards);
        RUN(old_kernels_have_stacks_beyond_their_guards);
        RUN(many_guards_are_had_by_one_call_or_singly);
        RUN(without_guards_an_overflow_is_found_by_a_canary);
        RUN(fibers_can_be_made_after_memory_was_locked);
        RUN(of_locked_stacks_only_what_is_used_takes_memory);
    }
    return check_end();
}
/* SPDX-License-Identifier: MIT */
