/* SPDX-License-Identifier: MIT */
/*
 * Futexes, which programs reach by the C library's `syscall`: the locks of Rust's std, C++'s
 * std::atomic<T>::wait, and others. A task that waits is listed by the address (waiters.c); a
 * thread that is no task waits in the kernel. A wake wakes tasks first, and then asks the kernel
 * for the rest of its count.
 *
 * A word in a thread-local variable shows that its thread waits, and not which task of it. With two
 * tasks in such a wait, each would be mistaken for the other: parking_lot lists the thread twice,
 * and rayon lets one task go on before its job is done, with a frame that others still use. So the
 * thread waits there, with all its tasks. A task with thread-locals of its own is the only one in
 * such a word, and waits as in any other.
 *
 * Callers do not expect a cancel, so none ends the wait. The kernel reports wrong arguments, and
 * serves everything else: other operations of futexes, and all other system calls, except those for
 * time and chance in a simulation (clocks.c).
 */
#include "internal.h"
#include "../../src/system_call.h"

#include <link.h>

/* The arguments in the kernel's order; `limit` is also a count. */
typedef struct futex_call {
    long word, operation, value, limit, other, third;
} futex_call_t;

static long ask_kernel(const void *argument) {
    const futex_call_t *c = argument;
    return hafti_io_system_call(SYS_futex, c->word, c->operation, c->value, c->limit, c->other,
                                c->third);
}

static uintptr_t key_at(const futex_call_t *c, long word) {
    return (uintptr_t)word +
           ((c->operation & FUTEX_PRIVATE_FLAG) != 0 ? HAFT_POSIX_FUTEX : HAFT_POSIX_SHARED_FUTEX);
}

static void *let_others_go_first(void *unused) {
    HAFT_PERFORM(haft_io_yield);
    return unused;
}

/* Like hafti_posix_deadline, also for a limit that is a point in time. */
static int64_t deadline_of(const futex_call_t *c, bool is_point_in_time) {
    const struct timespec *limit = (const struct timespec *)c->limit;
    if (limit == NULL || !is_point_in_time)
        return hafti_posix_deadline(limit);
    bool is_real = (c->operation & FUTEX_CLOCK_REALTIME) != 0;
    return hafti_posix_deadline_at(is_real ? CLOCK_REALTIME : CLOCK_MONOTONIC, limit);
}

static bool is_word(long address) {
    return address != 0 && address % (long)sizeof(uint32_t) == 0;
}

static int has_in_variables(struct dl_phdr_info *object, size_t size, void *word) {
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type == PT_TLS && object->dlpi_tls_data != NULL &&
            (uintptr_t)word - (uintptr_t)object->dlpi_tls_data < segment->p_memsz)
            return true;
    }
    return false;
}

/* Whether the word is a thread-local variable, which all tasks of the thread without thread-locals
   of their own share. */
static bool is_of_thread(long word) {
    return haft_io_own_thread_id() == 0 && dl_iterate_phdr(has_in_variables, (void *)word) != 0;
}

static long wait_on_task(const futex_call_t *c, int64_t deadline, uint32_t bits) {
    bool parks = haft_io_own_thread_id() == 0 &&
                 hafti_posix_is_park((const uint32_t *)c->word, (uint32_t)c->value);
    hafti_posix_waiter_t waiter = {.key = key_at(c, c->word), .bits = bits, .parks = parks};
    if (parks)
        waiter.task = hafti_posix_begin_park(waiter.key);
    bool waits = hafti_posix_list(&waiter, (const uint32_t *)c->word, (uint32_t)c->value);
    bool woken = waits && hafti_posix_await(&waiter, deadline);
    if (parks)
        hafti_posix_end_park();
    if (waits)
        return woken || deadline == HAFT_IO_FOREVER ? 0 : -ETIMEDOUT;
    haft_io_shield(let_others_go_first, NULL); /* what changes the word has to run */
    return -EAGAIN;
}

static long wait_for_word(const futex_call_t *c, bool is_point_in_time, uint32_t bits) {
    if (!hafti_posix_on_task() || !is_word(c->word) || bits == 0 || is_of_thread(c->word))
        return ask_kernel(c);
    int before = hafti_posix_error();
    int64_t deadline = deadline_of(c, is_point_in_time);
    long result = deadline < 0 ? ask_kernel(c) : wait_on_task(c, deadline, bits);
    hafti_posix_set_error(before);
    return result;
}

/* Wakes tasks, then threads. For a count of 0 the kernel wakes one. */
static long wake(const futex_call_t *c, uint32_t bits) {
    int most = (int)c->value > 1 ? (int)c->value : 1;
    int woken = hafti_posix_wake(key_at(c, c->word), most, bits);
    if (woken == most)
        return woken;
    futex_call_t rest = *c;
    rest.value = most - woken;
    long threads = ask_kernel(&rest);
    return woken == 0 ? threads : woken + (threads > 0 ? threads : 0);
}

static long requeue(const futex_call_t *c) {
    int most_woken = (int)c->value, most_moved = (int)c->limit;
    if (most_woken < 0 || most_moved < 0)
        return ask_kernel(c);
    return hafti_posix_requeue(key_at(c, c->word), key_at(c, c->other), most_woken, most_moved,
                               ask_kernel, c);
}

static long futex(const futex_call_t *c) {
    switch (c->operation & ~FUTEX_PRIVATE_FLAG) {
    case FUTEX_WAIT:
    case FUTEX_WAIT | FUTEX_CLOCK_REALTIME:
        return wait_for_word(c, false, FUTEX_BITSET_MATCH_ANY);
    case FUTEX_WAIT_BITSET:
    case FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME:
        return wait_for_word(c, true, (uint32_t)c->third);
    case FUTEX_WAKE:
        return wake(c, FUTEX_BITSET_MATCH_ANY);
    case FUTEX_WAKE_BITSET:
        return wake(c, (uint32_t)c->third);
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:
        return requeue(c);
    default:
        return ask_kernel(c);
    }
}

static bool may_change_modes(long number) {
    switch (number) {
    case SYS_fcntl:
    case SYS_ioctl:
    case SYS_setsockopt:
    case SYS_close:
    case SYS_close_range:
    case SYS_dup3:
#ifdef SYS_dup2
    case SYS_dup2:
#endif
        return true;
    default:
        return false;
    }
}

/* The C library's `syscall`, whose arguments are in the same places as if there were always six. */
long hafti_posix_syscall(long number, long first, long second, long third, long fourth, long fifth,
                         long sixth) __asm__("syscall");

HAFT_POSIX_EXPORT long hafti_posix_syscall(long number, long first, long second, long third,
                                           long fourth, long fifth, long sixth) {
    enum { LARGEST_ERROR = 4095 };
    long result;
    if (hafti_posix_simulated_call(number, first, second, third, &result))
        return result;
    if (number == SYS_futex)
        result = futex(&(futex_call_t){first, (int)second, third, fourth, fifth, sixth});
    else
        result = hafti_io_system_call(number, first, second, third, fourth, fifth, sixth);
    if (may_change_modes(number))
        hafti_posix_mode_has_changed();
    if (result >= 0 || result < -LARGEST_ERROR)
        return result;
    hafti_posix_set_error((int)-result);
    return -1;
}
