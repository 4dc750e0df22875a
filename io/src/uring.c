/* SPDX-License-Identifier: MIT */
/*
 * The back end on io_uring, through liburing. What a socket receives is asked of the kernel at once, since
 * most often it has not come yet; the kernel takes all that was asked in one system call, the one
 * that waits. What most often can be done at once (sending, accepting) is tried first, and waits for the
 * descriptor to be ready if it cannot.
 *
 * A request lies in the frame of the task that waits. The kernel may write to its buffer until it has
 * completed the request. So a cancelled task asks for the request back, and waits with a second cell
 * until the kernel has answered: with -ECANCELED, or with the result if it had one already.
 *
 * A listener that a task waits for is asked once for all connections (multishot accept), in a run that is
 * alone. The kernel goes on to accept until it is asked to stop, which happens at the next poll without
 * a task that waits for it. What it has accepted by then waits in a queue for the next haft_io_accept, or
 * is closed with the listener. Who waits for a listener by poll, which tells of what the kernel has not accepted,
 * makes it stop, too.
 */
#include "internal.h"

#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Valgrind does not see what the kernel writes by itself. */
#if __has_include(<valgrind/memcheck.h>)
#    include <valgrind/memcheck.h>
#else
#    define VALGRIND_MAKE_MEM_DEFINED(address, size) ((void)(address), (void)(size))
#endif

enum { ENTRIES = 1024, COMPLETIONS = 8192, COMPLETED_AT_ONCE = 256 };

typedef struct request {
    haft_io_waiter_t waiter;
    int result;
    bool done;
} request_t;

/* What the kernel accepts by itself; `entry->accepts` while it may, or while there are some left. */
typedef struct accepts {
    haft_io_link_t link; /* in the state */
    haft_io_descriptor_t *entry;
    int listener;
    bool asked;      /* the kernel has not said that it has stopped */
    bool asked_back; /* but was told to */
    int *queue;      /* a ring */
    size_t first, count, size;
} accepts_t;

typedef struct state {
    struct io_uring ring;
    int waker;
    bool no_multishot;        /* the kernel does not know it */
    haft_io_worker_t *worker; /* whose this is */
    haft_io_link_t accepts;
} state_t;

/* Completions that are nobody's request. */
static int woken, ignored;
/* In the data of a completion that is a listener's. */
enum { OF_LISTENER = 1 };

static void take_completions(state_t *state);

/* The kernel takes no more while it keeps completions that had no room. */
static void submit(state_t *state) {
    if (io_uring_submit(&state->ring) < 0)
        take_completions(state);
}

static struct io_uring_sqe *next_entry(state_t *state) {
    struct io_uring_sqe *entry = io_uring_get_sqe(&state->ring);
    while (entry == NULL) {
        submit(state);
        entry = io_uring_get_sqe(&state->ring);
    }
    return entry;
}

/* The kernel is asked for it with the next poll. Until it has answered, the task stays here. */
static void begin(haft_io_task_t *task, struct io_uring_sqe *entry, request_t *request) {
    request->done = false;
    io_uring_sqe_set_data(entry, request);
    task->worker->waiting++;
    task->stays++;
}

static void ask_back(state_t *state, void *data) {
    struct io_uring_sqe *entry = next_entry(state);
    io_uring_prep_cancel(entry, data, 0);
    io_uring_sqe_set_data(entry, &ignored);
}

/* After a cancel, or when its descriptor was closed: until the kernel has done with the buffer. */
static HAFT_IO_COLD void withdraw(request_t *request, haft_io_task_t *task,
                                  enum haft_io_kind kind) {
    haft_io_cell_t last = {HAFT_IO_WAITING, task};
    request->waiter.cell = &last;
    ask_back(task->worker->backend_state, request);
    haft_io_cell_wait(&last, HAFT_IO_TO_THE_END, HAFT_IO_FOREVER, haft_io_kind_name(kind));
}

static HAFT_IO_COLD void learn_nature(haft_io_descriptor_t *entry, int descriptor) {
    struct stat status;
    if (fstat(descriptor, &status) == 0)
        __atomic_store_n(&entry->nature,
                         S_ISSOCK(status.st_mode)                             ? HAFT_IO_SOCKET
                         : S_ISREG(status.st_mode) || S_ISBLK(status.st_mode) ? HAFT_IO_FILE
                                                                              : HAFT_IO_STREAM,
                         __ATOMIC_RELAXED);
}

static uint8_t nature_of(const haft_io_descriptor_t *entry) {
    return __atomic_load_n(&entry->nature, __ATOMIC_RELAXED);
}

/* As much as a system call transfers at once. */
static unsigned size_of(const haft_io_operation_t *o) {
    enum { MOST = 0x7ffff000 };
    return o->size < MOST ? (unsigned)o->size : MOST;
}

/* What the kernel does itself; anything else is tried, and waited for by poll. */
static bool kernel_does(const haft_io_operation_t *o, int nature) {
    if (nature == HAFT_IO_SOCKET)
        return (o->kind == HAFT_IO_RECEIVE || o->kind == HAFT_IO_READ) && o->address == NULL;
    return nature == HAFT_IO_FILE && (o->kind == HAFT_IO_READ || o->kind == HAFT_IO_WRITE);
}

static void prepare(struct io_uring_sqe *entry, const haft_io_operation_t *o, int nature) {
    if (nature == HAFT_IO_SOCKET)
        io_uring_prep_recv(entry, o->descriptor, o->buffer, size_of(o), o->flags);
    else if (o->kind == HAFT_IO_READ)
        io_uring_prep_read(entry, o->descriptor, o->buffer, size_of(o), (uint64_t)-1);
    else
        io_uring_prep_write(entry, o->descriptor, o->buffer, size_of(o), (uint64_t)-1);
}

/* One request of the kernel: the operation itself, for a descriptor of that nature, or (HAFT_IO_UNKNOWN)
   that the descriptor be ready. Every task that waits has these frames on its stack: they are kept small. */
static __attribute__((noinline)) int ask(haft_io_runner_t *runner, haft_io_descriptor_t *known,
                                         const haft_io_operation_t *operation, uint8_t nature) {
    state_t *state = runner->worker->backend_state;
    if (haft_io_is_cancelled(runner->task->scope))
        return -ECANCELED;
    haft_io_cell_t cell = {HAFT_IO_WAITING, runner->task};
    request_t request;
    int code = haft_io_enlist(known, &request.waiter, &cell, operation);
    if (code != 0)
        return code;
    struct io_uring_sqe *entry = next_entry(state);
    if (nature != HAFT_IO_UNKNOWN)
        prepare(entry, operation, nature);
    else
        io_uring_prep_poll_add(entry, operation->descriptor,
                               (unsigned)haft_io_events_of(operation));
    begin(runner->task, entry, &request);
    haft_io_cell_wait(&cell, HAFT_IO_CANCELLABLE, HAFT_IO_FOREVER,
                      haft_io_kind_name(operation->kind));
    haft_io_delist(&request.waiter);
    if (!request.done)
        withdraw(&request, runner->task, operation->kind);
    /* What the kernel has done it has done with the file that was asked for. */
    if ((nature == HAFT_IO_UNKNOWN || request.result < 0) && haft_io_was_closed(&request.waiter))
        return -EBADF;
    return request.result;
}

/* ---- Connections that the kernel accepts by itself ---- */

static void *data_of(accepts_t *accepts) {
    return (void *)((uintptr_t)accepts | OF_LISTENER);
}

static void ask_to_accept(state_t *state, accepts_t *accepts) {
    struct io_uring_sqe *entry = next_entry(state);
    io_uring_prep_multishot_accept(entry, accepts->listener, NULL, NULL,
                                   SOCK_NONBLOCK | SOCK_CLOEXEC);
    io_uring_sqe_set_data(entry, data_of(accepts));
    accepts->asked = true;
    accepts->asked_back = false;
}

static void ask_to_stop(state_t *state, accepts_t *accepts) {
    if (accepts->asked && !accepts->asked_back) {
        ask_back(state, data_of(accepts));
        accepts->asked_back = true;
    }
}

static void accepts_free(accepts_t *accepts) {
    accepts->entry->accepts = NULL;
    haft_io_unlink(&accepts->link);
    for (; accepts->count != 0; accepts->count--, accepts->first++)
        close(accepts->queue[accepts->first % accepts->size]);
    free(accepts->queue);
    free(accepts);
}

/* Returns when the kernel has stopped. Both answers, to this and to what was asked, are on their way. */
static void stop_accepting(state_t *state, accepts_t *accepts) {
    ask_to_stop(state, accepts);
    while (accepts->asked) {
        io_uring_submit_and_wait(&state->ring, 1);
        take_completions(state);
    }
}

/* Room for one more. */
static bool queue_grows(accepts_t *accepts) {
    if (accepts->count < accepts->size)
        return true;
    size_t size = accepts->size != 0 ? 2 * accepts->size : 16;
    int *queue = malloc(size * sizeof *queue);
    if (queue == NULL)
        return false;
    for (size_t i = 0; i < accepts->count; i++)
        queue[i] = accepts->queue[(accepts->first + i) % accepts->size];
    free(accepts->queue);
    accepts->queue = queue;
    accepts->size = size;
    accepts->first = 0;
    return true;
}

/* What does not tell that the kernel cannot do it at all. */
static bool comes_by_chance(int code) {
    return code == -ECANCELED || code == -EMFILE || code == -ENFILE || code == -ECONNABORTED;
}

static void accepted(state_t *state, accepts_t *accepts, const struct io_uring_cqe *completion) {
    if (completion->res >= 0) {
        if (queue_grows(accepts))
            accepts->queue[(accepts->first + accepts->count++) % accepts->size] = completion->res;
        else
            close(completion->res);
    } else if (!comes_by_chance(completion->res)) {
        state->no_multishot = true;
    }
    if ((completion->flags & IORING_CQE_F_MORE) == 0)
        accepts->asked = false;
    haft_io_wake(accepts->entry, HAFT_IO_INWARD, false, false);
}

/* Before the kernel goes on: nothing more for listeners that nobody waits for. */
static void stop_needless(state_t *state) {
    for (haft_io_link_t *link = state->accepts.next, *next; link != &state->accepts; link = next) {
        next = link->next;
        accepts_t *accepts = HAFT_IO_OWNER(link, accepts_t, link);
        if (!haft_io_ring_empty(&accepts->entry->waiters[HAFT_IO_INWARD]))
            continue;
        if (accepts->asked)
            ask_to_stop(state, accepts);
        else if (accepts->count == 0)
            accepts_free(accepts);
    }
}

/* The kernel is asked, or was. False: the listener is to be polled. */
static bool kernel_accepts(state_t *state, haft_io_descriptor_t *known, int listener) {
    accepts_t *accepts = known->accepts;
    if (accepts != NULL && accepts->asked)
        return true;
    if (state->worker->shared || state->no_multishot ||
        !haft_io_ring_empty(&known->waiters[HAFT_IO_INWARD]))
        return false;
    if (accepts == NULL) {
        accepts = calloc(1, sizeof *accepts);
        if (accepts == NULL)
            return false;
        accepts->entry = known;
        accepts->listener = listener;
        haft_io_append(&state->accepts, &accepts->link);
        known->accepts = accepts;
    }
    ask_to_accept(state, accepts);
    return true;
}

static bool has_accepted(const haft_io_descriptor_t *known) {
    const accepts_t *accepts = known->accepts;
    return accepts != NULL && accepts->count != 0;
}

static int take_accepted(const haft_io_descriptor_t *known) {
    accepts_t *accepts = known->accepts;
    int connection = accepts->queue[accepts->first];
    accepts->first = (accepts->first + 1) % accepts->size;
    accepts->count--;
    return connection;
}

static ssize_t accept_next(haft_io_runner_t *runner, haft_io_descriptor_t *known,
                           const haft_io_operation_t *operation) {
    state_t *state = runner->worker->backend_state;
    for (;;) {
        if (has_accepted(known))
            return take_accepted(known);
        const accepts_t *accepts = known->accepts;
        if (accepts == NULL || !accepts->asked) {
            ssize_t done = haft_io_attempt(operation);
            if (done != -EAGAIN)
                return done;
        }
        int code = haft_io_is_cancelled(runner->task->scope) ? -ECANCELED
                   : kernel_accepts(state, known, operation->descriptor)
                       ? haft_io_wait_on(known, operation, runner->task)
                       : ask(runner, known, operation, HAFT_IO_UNKNOWN);
        if (code < 0 && code != -EINTR)
            return code;
    }
}

/* For one who polls the descriptor: what the kernel gives from now on is told by poll. True: there are some. */
static bool stop_for_poll(state_t *state, const haft_io_descriptor_t *known) {
    if (known == NULL || known->accepts == NULL)
        return false;
    stop_accepting(state, known->accepts);
    return has_accepted(known);
}

/* ---- Operations ---- */

/* In a function of its own: what tells Valgrind takes room on the stack. */
static __attribute__((noinline)) void has_written(void *buffer, size_t size) {
    VALGRIND_MAKE_MEM_DEFINED(buffer, size);
}

static ssize_t operate(haft_io_runner_t *runner, haft_io_operation_t *operation) {
    haft_io_descriptor_t *known =
        haft_io_descriptor(runner->worker->crew->descriptors, operation->descriptor, true);
    if (known == NULL)
        return haft_io_without_entry(operation->descriptor);
    if (nature_of(known) == HAFT_IO_UNKNOWN)
        learn_nature(known, operation->descriptor);
    if (operation->kind == HAFT_IO_ACCEPT)
        return accept_next(runner, known, operation);
    if (operation->kind == HAFT_IO_POLL && (operation->flags & POLLIN) != 0 &&
        stop_for_poll(runner->worker->backend_state, known))
        return POLLIN;
    uint8_t nature = nature_of(known);
    if (kernel_does(operation, nature)) {
        ssize_t done;
        do
            done = ask(runner, known, operation, nature);
        while (done == -EINTR);
        if (done > 0 && operation->kind != HAFT_IO_WRITE)
            has_written(operation->buffer, (size_t)done);
        /* A descriptor that does not block, or that is another file by now. */
        if (done != -EAGAIN && done != -ENOTSOCK)
            return done;
        learn_nature(known, operation->descriptor);
    }
    for (;;) {
        ssize_t done = haft_io_attempt(operation);
        if (done != -EAGAIN)
            return done;
        int ready = ask(runner, known, operation, HAFT_IO_UNKNOWN);
        if (ready < 0 && ready != -EINTR)
            return ready;
    }
}

/* ---- Several descriptors at once ---- */

static int prepare_polls(const struct pollfd *entries, request_t *requests, size_t count,
                         haft_io_cell_t *cell) {
    haft_io_worker_t *worker = cell->task->worker;
    int code = 0;
    for (size_t i = 0; i < count; i++) {
        requests[i] = (request_t){.done = true};
        haft_io_descriptor_t *known =
            haft_io_descriptor(worker->crew->descriptors, entries[i].fd, true);
        if (known == NULL || code != 0)
            continue;
        haft_io_operation_t operation = haft_io_operation_of(&entries[i]);
        code = haft_io_enlist(known, &requests[i].waiter, cell, &operation);
        if (code != 0) {
            requests[i].waiter.closed = code == -EBADF;
            continue;
        }
        struct io_uring_sqe *entry = next_entry(worker->backend_state);
        io_uring_prep_poll_add(entry, entries[i].fd, (unsigned short)entries[i].events);
        begin(cell->task, entry, &requests[i]);
    }
    return code;
}

/* Returns when the kernel has answered them all, and knows none any more. */
static void withdraw_polls(state_t *state, request_t *requests, size_t count,
                           haft_io_task_t *task) {
    for (size_t i = 0; i < count; i++) {
        if (requests[i].waiter.descriptor != NULL)
            haft_io_delist(&requests[i].waiter);
        if (!requests[i].done)
            ask_back(state, &requests[i]);
    }
    for (size_t i = 0; i < count; i++)
        while (!requests[i].done) {
            haft_io_cell_t last = {HAFT_IO_WAITING, task};
            requests[i].waiter.cell = &last;
            haft_io_cell_wait(&last, HAFT_IO_TO_THE_END, HAFT_IO_FOREVER,
                              haft_io_kind_name(HAFT_IO_POLL));
        }
}

static int await_several(haft_io_runner_t *runner, struct pollfd *entries, size_t count,
                         int64_t deadline, bool again) {
    (void)again;
    if (haft_io_is_cancelled(runner->task->scope))
        return -ECANCELED;
    request_t few[HAFT_IO_FEW];
    request_t *requests = count <= HAFT_IO_FEW ? few : malloc(count * sizeof *requests);
    if (requests == NULL)
        return -ENOMEM;
    haft_io_cell_t cell = {HAFT_IO_WAITING, runner->task};
    state_t *state = runner->worker->backend_state;
    int code = prepare_polls(entries, requests, count, &cell);
    if (code == 0)
        code = haft_io_code_of(haft_io_cell_wait(&cell, HAFT_IO_CANCELLABLE, deadline,
                                                 haft_io_kind_name(HAFT_IO_POLL)));
    else
        haft_io_cell_give_up(&cell);
    withdraw_polls(state, requests, count, runner->task);
    int closed = 0;
    for (size_t i = 0; i < count; i++)
        closed += haft_io_mark_closed(&entries[i], &requests[i].waiter);
    if (requests != few)
        free(requests);
    return closed != 0 ? closed : code;
}

static int poll_several(haft_io_runner_t *runner, struct pollfd *entries, size_t count,
                        int64_t deadline) {
    state_t *state = runner->worker->backend_state;
    haft_io_descriptors_t *table = runner->worker->crew->descriptors;
    if (haft_io_ring_empty(&state->accepts))
        return haft_io_poll_by(await_several, runner, entries, count, deadline);
    bool some = false;
    for (size_t i = 0; i < count; i++)
        some |= stop_for_poll(state, haft_io_descriptor(table, entries[i].fd, false)) &&
                (entries[i].events & POLLIN) != 0;
    int ready = haft_io_poll_by(await_several, runner, entries, count,
                                some ? haft_io_worker_now(runner->worker) : deadline);
    for (size_t i = 0; i < count && some && ready >= 0; i++) {
        const haft_io_descriptor_t *known = haft_io_descriptor(table, entries[i].fd, false);
        if (known == NULL || !has_accepted(known) || (entries[i].events & POLLIN) == 0)
            continue;
        ready += entries[i].revents == 0;
        entries[i].revents |= POLLIN;
    }
    return ready;
}

static void watch_for_wakes(state_t *state) {
    struct io_uring_sqe *entry = next_entry(state);
    io_uring_prep_poll_add(entry, state->waker, POLLIN);
    io_uring_sqe_set_data(entry, &woken);
}

static void completed(haft_io_worker_t *worker, const struct io_uring_cqe *completion) {
    state_t *state = worker->backend_state;
    request_t *request = io_uring_cqe_get_data(completion);
    if ((void *)request == &ignored)
        return;
    if ((void *)request == &woken) {
        haft_io_waker_reset(state->waker);
        watch_for_wakes(state);
        return;
    }
    if (((uintptr_t)request & OF_LISTENER) != 0) {
        accepted(state, (accepts_t *)((uintptr_t)request & ~(uintptr_t)OF_LISTENER), completion);
        return;
    }
    request->result = completion->res;
    request->done = true;
    worker->waiting--;
    request->waiter.cell->task->stays--;
    haft_io_cell_win(request->waiter.cell, HAFT_IO_WOKEN);
}

static void take_completions(state_t *state) {
    struct io_uring_cqe *completions[COMPLETED_AT_ONCE];
    for (;;) {
        unsigned count = io_uring_peek_batch_cqe(&state->ring, completions, COMPLETED_AT_ONCE);
        for (unsigned i = 0; i < count; i++) {
            enum { AHEAD = 4 }; /* requests lie on stacks that were not used for long */
            if (i + AHEAD < count)
                __builtin_prefetch(io_uring_cqe_get_data(completions[i + AHEAD]));
            completed(state->worker, completions[i]);
        }
        io_uring_cq_advance(&state->ring, count);
        if (count < COMPLETED_AT_ONCE)
            break;
    }
}

static void poll_completions(haft_io_worker_t *worker, int64_t nanoseconds) {
    state_t *state = worker->backend_state;
    struct io_uring_cqe *first;
    struct __kernel_timespec limit = {nanoseconds / HAFT_IO_SECOND, nanoseconds % HAFT_IO_SECOND};
    int code;
    stop_needless(state);
    if (nanoseconds == 0)
        code = io_uring_submit_and_get_events(&state->ring);
    else
        code = io_uring_submit_and_wait_timeout(&state->ring, &first, 1,
                                                nanoseconds > 0 ? &limit : NULL, NULL);
    if (HAFT_IO_UNLIKELY(code == -EPERM || code == -EACCES || code == -ENOSYS))
        haft_io_misuse("The system refuses io_uring to a run that has begun with it (%s): use "
                       "HAFT_IO_BACKEND=epoll, or filter system calls before the run.",
                       strerror(-code));
    take_completions(state);
}

/* What was asked of a descriptor names it by its number, until the kernel has taken that: which it does
   before the number is another file's. (In a shared run it has been closed by nobody until then.) */
static int close_submitted(haft_io_worker_t *worker, int descriptor) {
    state_t *state = worker->backend_state;
    haft_io_descriptor_t *known = haft_io_descriptor(worker->crew->descriptors, descriptor, false);
    if (known != NULL && known->accepts != NULL) {
        haft_io_wake(known, HAFT_IO_INWARD, true,
                     false); /* before they are told of anything else */
        stop_accepting(state, known->accepts);
        accepts_free(known->accepts);
    }
    if (!worker->shared && haft_io_is_waited_on(worker->crew->descriptors, descriptor))
        while (io_uring_sq_ready(&state->ring) != 0)
            submit(state);
    return haft_io_close_descriptor(worker, descriptor);
}

static void interrupt(haft_io_worker_t *worker) {
    haft_io_waker_wake(((const state_t *)worker->backend_state)->waker);
}

static void stop(haft_io_worker_t *worker) {
    state_t *state = worker->backend_state;
    while (!haft_io_ring_empty(&state->accepts)) {
        accepts_t *accepts = HAFT_IO_OWNER(state->accepts.next, accepts_t, link);
        stop_accepting(state,
                       accepts); /* by itself the kernel does that some time after the exit */
        accepts_free(accepts);
    }
    io_uring_queue_exit(&state->ring);
    if (state->waker >= 0)
        close(state->waker);
    free(state);
}

/* The newest way of setting it up that the kernel takes. */
static int set_up(struct io_uring *ring) {
    static const unsigned ways[] = {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
                                    IORING_SETUP_COOP_TASKRUN, 0};
    int code = -ENOSYS;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct io_uring_params parameters = {.flags = ways[i] | IORING_SETUP_CQSIZE,
                                             .cq_entries = COMPLETIONS};
        code = io_uring_queue_init_params(ENTRIES, ring, &parameters);
        if (code != -EINVAL)
            break;
    }
    if (code != 0)
        return code;
    /* Below that a wait with a limit takes an entry of its own, and completions may be lost. */
    const unsigned needed = IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP;
    if ((ring->features & needed) == needed)
        return 0;
    io_uring_queue_exit(ring);
    return -ENOSYS;
}

static int start(haft_io_worker_t *worker) {
    state_t *state = calloc(1, sizeof *state);
    if (state == NULL)
        return -ENOMEM;
    int code = set_up(&state->ring);
    if (code != 0) {
        free(state);
        return code;
    }
    worker->backend_state = state;
    state->worker = worker;
    haft_io_ring(&state->accepts);
    state->waker = haft_io_waker_open();
    if (state->waker < 0) {
        code = state->waker;
        stop(worker);
        return code;
    }
    watch_for_wakes(state);
    return 0;
}

const haft_io_backend_t haft_io_uring = {
    .name = "io_uring",
    .start = start,
    .stop = stop,
    .operate = operate,
    .close = close_submitted,
    .poll_several = poll_several,
    .poll = poll_completions,
    .interrupt = interrupt,
};
