/* SPDX-License-Identifier: MIT */
/*
 * The state of each descriptor in a run: the lists of waiters, and the operations that keep it from
 * being closed.
 *
 * In a shared run the lists of an entry are guarded by its lock; a waiter is woken under it, and
 * leaves its list under it, so its cell is alive until then.
 *
 * An operation on another thread, of the run or of its pool, counts itself in `uses`, and so does
 * one that makes more than one system call with the number, or a call of several operations, from
 * the second on. The last of them closes the descriptor, or the closing thread does if there is
 * none. So no operation still uses the number when the system gives it to another file. In a run
 * that is alone the others count themselves only while a close is put off
 * (hafti_io_uses_uncounted).
 *
 *   uses           | the number is                    | an operation, or a close, that comes now
 *   n              | a file's; n operations use it    | uses it, too; closes it
 *   n + CLOSING    | still that file's                | gets -EBADF
 *   RELEASING      | nobody's, or the next file's:   | waits until that has ended: it cannot know
 *                  | the system's close is running   | whether it has the old file or the next
 */
#include "descriptors.h"
#include "tape/tape.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLOSING HAFTI_IO_CLOSING

/* ---- Waiters ---- */

static void lock(hafti_io_descriptor_t *entry, bool shared) {
    if (shared)
        hafti_io_guard(&entry->lock);
}
static void unlock(hafti_io_descriptor_t *entry, bool shared) {
    if (shared)
        hafti_io_unguard(&entry->lock);
}

bool hafti_io_is_stream(int descriptor) {
    int type = SOCK_STREAM;
    socklen_t size = sizeof type;
    int code =
        hafti_io_calls_of(descriptor)->getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size);
    return code < 0 || type == SOCK_STREAM;
}

bool hafti_io_is_tcp(int descriptor) {
    return hafti_io_socket_option(descriptor, SO_PROTOCOL) == IPPROTO_TCP;
}

bool hafti_io_transfers(const hafti_io_descriptor_t *entry, enum hafti_io_direction direction) {
    const hafti_io_link_t *head = &entry->waiters[direction];
    for (const hafti_io_link_t *link = head->next; link != head; link = link->next)
        if (HAFTI_IO_OWNER(link, hafti_io_waiter_t, links[direction])->transfers)
            return true;
    return false;
}

static void take_out(hafti_io_waiter_t *waiter) {
    for (int d = HAFTI_IO_INWARD; d <= HAFTI_IO_OUTWARD; d++)
        if (hafti_io_linked(&waiter->links[d]))
            hafti_io_unlink(&waiter->links[d]);
}

int hafti_io_enlist(hafti_io_descriptor_t *entry, hafti_io_waiter_t *waiter, hafti_io_cell_t *cell,
                    const hafti_io_operation_t *operation, bool transfers, bool asks) {
    static const short events_of[] = {POLLIN | POLLPRI | POLLRDHUP, POLLOUT};
    bool shared = cell->task->worker->shared;
    short events = hafti_io_events_of(operation);
    if (operation->kind == HAFTI_IO_POLL)
        events = (short)hafti_io_operation_of(&(struct pollfd){.events = events}).flags;
    *waiter = (hafti_io_waiter_t){.descriptor = entry,
                                  .cell = cell,
                                  .life = __atomic_load_n(&entry->life, __ATOMIC_RELAXED),
                                  .transfers = transfers,
                                  .asks = asks};
    int code = hafti_io_begin_to_wait_on(entry, operation->descriptor);
    lock(entry, shared);
    if ((__atomic_load_n(&entry->uses, __ATOMIC_RELAXED) & CLOSING) != 0)
        code = -EBADF;
    for (int d = HAFTI_IO_INWARD; d <= HAFTI_IO_OUTWARD && code == 0; d++) {
        if ((events & events_of[d]) == 0)
            continue;
        if (transfers && hafti_io_transfers(entry, d) && hafti_io_is_stream(operation->descriptor))
            code = -EBUSY;
        else
            hafti_io_append(&entry->waiters[d], &waiter->links[d]);
    }
    if (code != 0)
        take_out(waiter);
    unlock(entry, shared);
    return code;
}

void hafti_io_delist(hafti_io_waiter_t *waiter) {
    bool shared = waiter->cell->task->worker->shared;
    lock(waiter->descriptor, shared);
    take_out(waiter);
    unlock(waiter->descriptor, shared);
}

bool hafti_io_is_waited_on(hafti_io_descriptors_t *table, int descriptor) {
    const hafti_io_descriptor_t *entry = hafti_io_descriptor(table, descriptor, false);
    return entry != NULL && (!hafti_io_ring_empty(&entry->waiters[HAFTI_IO_INWARD]) ||
                             !hafti_io_ring_empty(&entry->waiters[HAFTI_IO_OUTWARD]));
}

static void visit_waiters(hafti_io_descriptor_t *entry, int descriptor, hafti_io_visit_t *visit,
                          void *state) {
    for (int d = HAFTI_IO_INWARD; d <= HAFTI_IO_OUTWARD; d++) {
        const hafti_io_link_t *head = &entry->waiters[d];
        for (const hafti_io_link_t *link = head->next; link != head; link = link->next) {
            const hafti_io_waiter_t *waiter = HAFTI_IO_OWNER(link, hafti_io_waiter_t, links[d]);
            if (d == HAFTI_IO_INWARD || !hafti_io_linked(&waiter->links[HAFTI_IO_INWARD]))
                visit(state, descriptor, waiter->cell->task);
        }
    }
}

static void visit_block(hafti_io_descriptors_t *table, int first, hafti_io_visit_t *visit,
                        void *state) {
    for (int i = first; i < first + (1 << HAFTI_IO_BLOCK_BITS); i++) {
        hafti_io_descriptor_t *entry = hafti_io_descriptor(table, i, false);
        if (entry == NULL)
            return;
        lock(entry, table->shared);
        visit_waiters(entry, i, visit, state);
        unlock(entry, table->shared);
    }
}

void hafti_io_visit_waiters(hafti_io_descriptors_t *table, hafti_io_visit_t *visit, void *state) {
    for (int i = 0; i < HAFTI_IO_TOP; i++)
        for (int j = 0; j < 1 << HAFTI_IO_MIDDLE_BITS &&
                        __atomic_load_n(&table->top[i], __ATOMIC_ACQUIRE) != NULL;
             j++)
            visit_block(table, (i << HAFTI_IO_MIDDLE_BITS | j) << HAFTI_IO_BLOCK_BITS, visit,
                        state);
}

int hafti_io_wait_on(hafti_io_descriptor_t *entry, const hafti_io_operation_t *operation,
                     haft_io_task_t *task) {
    hafti_io_cell_t cell = {HAFTI_IO_WAITING, task};
    hafti_io_waiter_t waiter;
    int code =
        hafti_io_enlist(entry, &waiter, &cell, operation, operation->kind <= HAFTI_IO_SEND, false);
    if (code != 0)
        return code;
    hafti_io_count_in(task);
    uint32_t outcome = hafti_io_cell_wait(&cell, HAFTI_IO_CANCELLABLE, HAFT_IO_FOREVER,
                                          hafti_io_kind_name(operation->kind));
    hafti_io_count_out(task);
    hafti_io_delist(&waiter);
    return outcome == HAFTI_IO_CANCELLED ? -ECANCELED : hafti_io_was_closed(&waiter) ? -EBADF : 0;
}

static void wake(hafti_io_descriptor_t *entry, enum hafti_io_direction direction, bool closed) {
    hafti_io_link_t *head = &entry->waiters[direction], *next;
    for (hafti_io_link_t *link = head->next; link != head; link = next) {
        hafti_io_waiter_t *waiter = HAFTI_IO_OWNER(link, hafti_io_waiter_t, links[direction]);
        next = link->next;
        if (!closed && waiter->asks)
            continue;
        take_out(waiter);
        waiter->closed = closed;
        hafti_io_cell_win(waiter->cell, HAFTI_IO_WOKEN);
    }
}

void hafti_io_wake(hafti_io_descriptor_t *entry, enum hafti_io_direction direction, bool closed,
                   bool shared) {
    lock(entry, shared);
    wake(entry, direction, closed);
    unlock(entry, shared);
}

/* ---- Operations and closing ---- */

/* `uses`, when no thread is calling the system's close. */
static uint32_t settled_uses(const hafti_io_descriptor_t *entry) {
    uint32_t uses;
    unsigned turns = 0;
    while (HAFTI_IO_UNLIKELY(
        ((uses = __atomic_load_n(&entry->uses, __ATOMIC_SEQ_CST)) & HAFTI_IO_RELEASING) != 0))
        hafti_io_relax(&turns);
    return uses;
}

/* Called by the last user. (The order matters: so an asker that finds a close under way is told,
   too.) */
static int close_now(hafti_io_worker_t *worker, hafti_io_descriptor_t *entry, int descriptor) {
    HAFTI_IO_SHOW(&entry->uses, HAFTI_IO_RELEASING);
    uint64_t registered = entry->registered;
    for (; registered != 0; registered &= registered - 1) {
        hafti_io_worker_t *one = worker->crew->workers[__builtin_ctzll(registered)];
        one->backend->forget(one, descriptor);
    }
    entry->registered = 0;
    __atomic_store_n(&entry->nature, HAFTI_IO_UNKNOWN, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->ended, false, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->waited_on, false, __ATOMIC_RELEASE); /* after `uses` */
    __atomic_store_n(&entry->life, entry->life + 1, __ATOMIC_RELAXED);
    int code = hafti_io_close_elsewhere(worker->crew, descriptor);
    __atomic_store_n(&entry->uses, 0, __ATOMIC_RELEASE);
    return code;
}

static void put_off(hafti_io_worker_t *worker, unsigned count) {
    if (worker->shared)
        return;
    worker->put_off = count;
    hafti_io_set_plain(worker);
}

/* Ends a use. (A child of fork has one thread, and may have been made while another was
   closing.) */
static void end_use(hafti_io_worker_t *worker, hafti_io_descriptor_t *entry, int descriptor) {
    if (worker->forked)
        return;
    if (__atomic_sub_fetch(&entry->uses, 1, __ATOMIC_ACQ_REL) != CLOSING)
        return;
    close_now(worker, entry, descriptor);
    put_off(worker, worker->put_off - 1);
}

static int begin_use(const hafti_io_worker_t *worker, hafti_io_descriptor_t *entry) {
    if (worker->forked)
        return 0;
    uint32_t uses;
    do {
        uses = settled_uses(entry);
        if ((uses & CLOSING) != 0)
            return -EBADF;
    } while (!__atomic_compare_exchange_n(&entry->uses, &uses, uses + 1, true, __ATOMIC_SEQ_CST,
                                          __ATOMIC_RELAXED));
    return 0;
}

ssize_t hafti_io_operate_counted(hafti_io_runner_t *runner, hafti_io_operation_t *operation) {
    hafti_io_worker_t *worker = runner->worker;
    int descriptor = operation->descriptor;
    hafti_io_descriptor_t *entry = hafti_io_descriptor(worker->crew->descriptors, descriptor, true);
    if (entry == NULL)
        return hafti_io_without_entry(descriptor);
    int code = begin_use(worker, entry);
    if (code != 0)
        return code;
    ssize_t done = worker->backend->operate(runner, operation);
    end_use(worker, entry, descriptor);
    return done;
}

int hafti_io_begin_use(hafti_io_worker_t *worker, int descriptor) {
    hafti_io_descriptor_t *entry = hafti_io_descriptor(worker->crew->descriptors, descriptor, true);
    if (entry == NULL)
        return hafti_io_without_entry(descriptor);
    int code = begin_use(worker, entry);
    if (code == 0 && (code = hafti_io_let_closes_end(descriptor)) != 0)
        end_use(worker, entry, descriptor);
    return code;
}

void hafti_io_end_use(hafti_io_worker_t *worker, int descriptor) {
    hafti_io_descriptor_t *entry =
        hafti_io_descriptor(worker->crew->descriptors, descriptor, false);
    if (entry != NULL)
        end_use(worker, entry, descriptor);
}

int hafti_io_use(hafti_io_use_t *use) {
    const haft_io_task_t *task = hafti_io_this_task();
    if (task == NULL)
        return 0;
    int code = hafti_io_begin_use(task->worker, use->descriptor);
    if (code == 0)
        use->run = task->worker->crew->number;
    return code;
}

void hafti_io_end_use_begun(hafti_io_use_t *use) {
    hafti_io_worker_t *worker = hafti_io_worker();
    if (worker != NULL && worker->crew->number == use->run)
        hafti_io_end_use(worker, use->descriptor);
    use->run = 0;
}

static int next_part(hafti_io_use_t *use) {
    if (use->run == 0) {
        int code = hafti_io_use(use);
        return code == 0 && hafti_io_life_of(use->descriptor) != use->life ? -EBADF : code;
    }
    const hafti_io_descriptor_t *entry = hafti_io_known_here(use->descriptor);
    return entry != NULL && hafti_io_is_closing(entry) ? -EBADF : 0;
}

int hafti_io_next_part(hafti_io_use_t *use) {
    int code = next_part(use);
    hafti_io_tape_t *tape = hafti_io_tape_here();
    return tape == NULL ? code : (int)hafti_io_tape_number(tape, HAFTI_IO_TAPED_NEXT_PART, code);
}

/* Marks the descriptor as closing; returns the previous `uses`. */
static uint32_t begin_close(hafti_io_descriptor_t *entry) {
    uint32_t uses;
    do
        uses = settled_uses(entry);
    while ((uses & CLOSING) == 0 &&
           !__atomic_compare_exchange_n(&entry->uses, &uses, uses | CLOSING, true, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED));
    return uses;
}

int hafti_io_close_descriptor(hafti_io_worker_t *worker, int descriptor) {
    hafti_io_descriptor_t *entry =
        hafti_io_descriptor(worker->crew->descriptors, descriptor, worker->shared);
    if (entry == NULL)
        return hafti_io_close_elsewhere(worker->crew, descriptor);
    if (HAFTI_IO_UNLIKELY(__atomic_load_n(&entry->handed_over, __ATOMIC_RELAXED)))
        return -EBADF; /* It is being closed. */
    uint32_t uses = 0;
    /* No task waits for the next file before all waiters of this one are woken. */
    lock(entry, worker->shared);
    if (worker->shared || __atomic_load_n(&entry->uses, __ATOMIC_RELAXED) != 0)
        uses = begin_close(entry);
    if ((uses & CLOSING) == 0) {
        wake(entry, HAFTI_IO_INWARD, true);
        wake(entry, HAFTI_IO_OUTWARD, true);
    }
    unlock(entry, worker->shared);
    if ((uses & CLOSING) != 0)
        return -EBADF;
    if (uses == 0)
        return close_now(worker, entry, descriptor);
    put_off(worker, worker->put_off + 1);
    return 0;
}

/* The lists of a descriptor distinguish reading and writing. Events by other names, and those that
   are reported unasked (errors), count as reading. */
hafti_io_operation_t hafti_io_operation_of(const struct pollfd *entry) {
    short events = entry->events & (POLLIN | POLLPRI | POLLRDHUP | POLLOUT);
    if ((entry->events & (POLLWRNORM | POLLWRBAND)) != 0)
        events |= POLLOUT;
    if (events == 0 || (entry->events & (POLLRDNORM | POLLRDBAND)) != 0)
        events |= POLLIN;
    return (hafti_io_operation_t){.kind = HAFTI_IO_POLL, .descriptor = entry->fd, .flags = events};
}
