/* SPDX-License-Identifier: MIT */
/*
 * One wait for several things: channels, events, descriptors, signals.
 *
 * Objects with a lock (channels, events) are looked at under the locks of all, which are taken in
 * the order of their addresses; under the same locks the task takes a place in each, with one cell.
 * So its cell cannot be won yet while the task wins that of another.
 *
 * Descriptors are waited for by the back end's poll, with the same cell
 * (hafti_io_runner_t.poll_cell): winning it ends the wait. A signal is a descriptor, too: a
 * signalfd that is made for the call.
 */
#include "objects.h"
#include "tape/tape.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/signalfd.h>

/* Bytes of the stack; many choices do not fit on a small one. */
enum { MEMORY_OF_FEW = 1024 };

typedef struct polled {
    size_t choice; /* its index */
    bool is_signal;
} polled_t;

typedef struct selection {
    haft_io_select_case_t *choices;
    size_t count;
    uint32_t **locks; /* sorted; an object may be there twice */
    size_t locked;
    hafti_io_place_t *places; /* one a choice */
    struct pollfd *entries;
    polled_t *polled; /* likewise */
    size_t polled_count;
} selection_t;

/* ---- Channels and events ---- */

static uint32_t *lock_of(const haft_io_select_case_t *choice) {
    return choice->channel != NULL ? hafti_io_channel_lock(choice->channel)
           : choice->event != NULL ? &choice->event->lock
                                   : NULL;
}

static int by_address(const void *one, const void *other) {
    uintptr_t a = (uintptr_t) * (uint32_t *const *)one, b = (uintptr_t) * (uint32_t *const *)other;
    return (a > b) - (a < b);
}

static void list_locks(selection_t *s) {
    s->locked = 0;
    for (size_t i = 0; i < s->count; i++) {
        uint32_t *lock = lock_of(&s->choices[i]);
        if (lock != NULL)
            s->locks[s->locked++] = lock;
    }
    qsort(s->locks, s->locked, sizeof *s->locks, by_address);
}

static void guard_all(const selection_t *s) {
    for (size_t i = 0; i < s->locked; i++)
        if (i == 0 || s->locks[i] != s->locks[i - 1])
            hafti_io_guard(s->locks[i]);
}

static void unguard_all(const selection_t *s) {
    for (size_t i = 0; i < s->locked; i++)
        if (i == 0 || s->locks[i] != s->locks[i - 1])
            hafti_io_unguard(s->locks[i]);
}

static bool sends(const haft_io_select_case_t *choice) {
    return choice->send != NULL;
}

static void *value_of(const haft_io_select_case_t *choice) {
    return sends(choice) ? (void *)(uintptr_t)choice->send : choice->receive;
}

static int do_now(const haft_io_select_case_t *choice, hafti_io_place_t **other) {
    if (choice->channel != NULL)
        return hafti_io_channel_do_now(choice->channel, sends(choice), value_of(choice), other);
    return choice->event != NULL && choice->event->set ? 0 : -EAGAIN;
}

/* Does one that can be done, from that index on; -EAGAIN: none can. */
static int do_one(const selection_t *s, size_t from, hafti_io_place_t **other) {
    for (size_t i = 0; i < s->count; i++) {
        size_t index = (from + i) % s->count;
        int code = do_now(&s->choices[index], other);
        if (code != -EAGAIN) {
            s->choices[index].code = code;
            return (int)index;
        }
    }
    return -EAGAIN;
}

static void take_places(const selection_t *s, hafti_io_cell_t *cell) {
    for (size_t i = 0; i < s->count; i++) {
        const haft_io_select_case_t *choice = &s->choices[i];
        s->places[i] = (hafti_io_place_t){.cell = cell, .outcome = HAFTI_IO_ARMS + (uint32_t)i};
        if (choice->channel != NULL)
            hafti_io_channel_take_place(choice->channel, sends(choice), value_of(choice),
                                        &s->places[i]);
        else if (choice->event != NULL)
            hafti_io_take_place(&choice->event->waiting, &s->places[i]);
    }
}

static void leave_places(const selection_t *s) {
    guard_all(s);
    for (size_t i = 0; i < s->count; i++)
        hafti_io_leave_place(&s->places[i]);
    unguard_all(s);
}

static int done_by_other(const selection_t *s, uint32_t outcome) {
    size_t index = outcome - HAFTI_IO_ARMS;
    s->choices[index].code = s->places[index].closed ? -EPIPE : 0;
    return (int)index;
}

/*
 * Returns where to begin to look, so that no choice is passed over again and again: the multiples
 * of the golden ratio lie evenly in every part of their sequence, also for one of several tasks
 * that choose in turn. In a simulation the seed decides.
 */
static size_t next_real_turn(size_t count) {
    static uint64_t multiple; /* without its whole part */
    hafti_io_simulated_t *simulated = hafti_io_simulated();
    if (simulated != NULL && simulated->seed != 0) /* no replay */
        return hafti_io_random(simulated, count);
    uint64_t turn = __atomic_fetch_add(&multiple, UINT64_C(0x9e3779b97f4a7c15), __ATOMIC_RELAXED);
    return (size_t)((turn >> 32) * count >> 32);
}
static size_t next_turn(size_t count) {
    size_t turn = next_real_turn(count);
    hafti_io_tape_t *tape = hafti_io_tape_here();
    if (HAFTI_IO_LIKELY(tape == NULL))
        return turn;
    return (size_t)hafti_io_tape_number(tape, HAFTI_IO_TAPED_TURN, (int64_t)turn) % count;
}

/* Like hafti_io_cell_to_wait, but with all locks. */
static hafti_io_cell_t cell_to_wait(const selection_t *s) {
    haft_io_task_t *task = hafti_io_this_task();
    if (HAFTI_IO_UNLIKELY(hafti_io_is_in_child(task))) {
        unguard_all(s);
        hafti_io_waits_in_child(task);
    }
    return (hafti_io_cell_t){HAFTI_IO_WAITING, task};
}

/* Called under the locks, returns without. */
static int wait_for_objects(const selection_t *s, int64_t deadline) {
    hafti_io_cell_t cell = cell_to_wait(s);
    take_places(s, &cell);
    unguard_all(s);
    uint32_t outcome =
        hafti_io_cell_wait(&cell, HAFTI_IO_CANCELLABLE, deadline, "one of several channels");
    leave_places(s);
    return outcome >= HAFTI_IO_ARMS ? done_by_other(s, outcome) : hafti_io_code_of(outcome);
}

static int select_objects(selection_t *s, int64_t deadline) {
    hafti_io_place_t *other = NULL;
    guard_all(s);
    int index = do_one(s, next_turn(s->count), &other);
    if (index == -EAGAIN)
        return wait_for_objects(s, deadline);
    unguard_all(s);
    hafti_io_let_go(other);
    return index;
}

/* ---- Descriptors and signals ---- */

static int poll_entries(hafti_io_runner_t *runner, const selection_t *s, int64_t deadline,
                        unsigned turn) {
    return runner->worker->backend->poll_several(runner, s->entries, s->polled_count, deadline,
                                                 turn);
}

/* Reads one signal, unless another thread was faster (-EAGAIN). */
static int read_signal(int descriptor) {
    hafti_io_tape_t *tape = hafti_io_tape_here();
    if (tape != NULL && tape->replays)
        return (int)hafti_io_tape_number(tape, HAFTI_IO_TAPED_SIGNAL, 0);
    HAFTI_IO_UNTAPED;
    struct signalfd_siginfo information;
    hafti_io_operation_t operation = {.kind = HAFTI_IO_READ,
                                      .descriptor = descriptor,
                                      .buffer = &information,
                                      .size = sizeof information};
    ssize_t got = hafti_io_attempt(&operation);
    int code = got < 0 ? (int)got : (int)information.ssi_signo;
    return tape == NULL ? code : (int)hafti_io_tape_number(tape, HAFTI_IO_TAPED_SIGNAL, code);
}

/* Takes the first choice, from that one on, of those that poll has found ready; -EAGAIN: none is,
   after all. */
static int take_ready(const selection_t *s, size_t from) {
    for (size_t i = 0; i < s->polled_count; i++) {
        size_t at = (from + i) % s->polled_count;
        const struct pollfd *entry = &s->entries[at];
        int code = entry->revents;
        if (code != 0 && s->polled[at].is_signal)
            code = read_signal(entry->fd);
        if (code == 0 || code == -EAGAIN)
            continue;
        s->choices[s->polled[at].choice].code = code;
        return (int)s->polled[at].choice;
    }
    return -EAGAIN;
}

/* Takes a choice that poll has marked as closed. Another look would not find it: the number may be
   another file's. */
static int take_closed(const selection_t *s) {
    for (size_t i = 0; i < s->polled_count; i++)
        if ((s->entries[i].revents & POLLNVAL) != 0)
            return take_ready(s, i);
    return -EAGAIN;
}

/* Waits for objects and descriptors. Returns an index; or -EAGAIN: something has happened, and all
   are to be looked at again; or an error. Called under the locks, returns without. */
static int wait_for_all(hafti_io_runner_t *runner, const selection_t *s, int64_t deadline,
                        unsigned turn) {
    hafti_io_cell_t cell = cell_to_wait(s);
    take_places(s, &cell);
    unguard_all(s);
    runner->poll_cell = &cell;
    int code = poll_entries(runner, s, deadline, turn);
    bool has_waited = runner->poll_cell == NULL;
    runner->poll_cell = NULL;
    leave_places(s);
    /* The winner wakes the task, which must have waited. */
    if (!has_waited)
        hafti_io_cell_give_up(&cell);
    uint32_t outcome = __atomic_load_n(&cell.word, __ATOMIC_ACQUIRE);
    if (outcome >= HAFTI_IO_ARMS)
        return done_by_other(s, outcome);
    return code > 0 ? take_closed(s) : code == 0 ? -ETIMEDOUT : code;
}

static int select_all(hafti_io_runner_t *runner, selection_t *s, int64_t deadline) {
    int closed = hafti_io_is_in_turn(runner->worker, HAFTI_IO_LIGHT)
                     ? 0
                     : hafti_io_let_others_close(runner->worker->crew, s->entries, s->polled_count);
    if (HAFTI_IO_UNLIKELY(closed != 0))
        return closed > 0 ? take_closed(s) : closed;
    for (unsigned turn = 0;; turn++) {
        int ready = poll_entries(runner, s, 0, 0);
        if (ready < 0)
            return ready;
        size_t from = next_turn(s->count);
        bool polled_first = lock_of(&s->choices[from]) == NULL;
        int index = ready != 0 && polled_first ? take_ready(s, from % s->polled_count) : -EAGAIN;
        if (index != -EAGAIN)
            return index;
        hafti_io_place_t *other = NULL;
        guard_all(s);
        index = do_one(s, from, &other);
        if (index == -EAGAIN && ready != 0 && !polled_first)
            index = take_ready(s, from % s->polled_count);
        if (index != -EAGAIN) {
            unguard_all(s);
            hafti_io_let_go(other);
            return index;
        }
        index = wait_for_all(runner, s, deadline, turn);
        if (index != -EAGAIN)
            return index;
    }
}

/* ---- The call ---- */

static void close_signals(selection_t *const *of) {
    const selection_t *s = *of;
    for (size_t i = 0; i < s->polled_count; i++)
        if (s->polled[i].is_signal)
            haft_io_close(s->entries[i].fd);
}

static bool is_polled(const haft_io_select_case_t *choice) {
    return lock_of(choice) == NULL && (choice->signals != NULL || choice->events != 0);
}

/* Makes the list of descriptors. Returns a negative error number where there is none for a
   signal. */
static int list_polled(selection_t *s) {
    for (size_t i = 0; i < s->count; i++) {
        const haft_io_select_case_t *choice = &s->choices[i];
        if (!is_polled(choice))
            continue;
        bool is_signal = choice->signals != NULL;
        int descriptor = is_signal ? hafti_io_open_signals(choice->signals) : choice->descriptor;
        if (is_signal && descriptor < 0)
            return descriptor;
        s->entries[s->polled_count] =
            (struct pollfd){descriptor, is_signal ? POLLIN : choice->events, 0};
        s->polled[s->polled_count++] = (polled_t){i, is_signal};
    }
    return 0;
}

static int select_listed(selection_t *s, int64_t deadline) {
    __attribute__((cleanup(close_signals), unused)) selection_t *own = s;
    list_locks(s);
    int code = list_polled(s);
    if (code != 0 || s->polled_count == 0)
        return code != 0 ? code : select_objects(s, deadline);
    haft_io_task_t *task = hafti_io_this_task();
    return task != NULL ? select_all(task->runner, s, deadline) : -EOPNOTSUPP;
}

static void free_memory(void **memory) {
    free(*memory);
}

static bool polls(const haft_io_select_case_t *choices, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (is_polled(&choices[i]))
            return true;
    return false;
}

static int choose(haft_io_select_case_t *choices, size_t count, int64_t deadline) {
    const bool has_polled = polls(choices, count);
    if (!has_polled && HAFTI_IO_UNLIKELY(!hafti_io_has_its_turn(HAFTI_IO_CANCELLABLE)))
        return -ECANCELED;
    selection_t s = {.choices = choices, .count = count};
    const size_t each = sizeof *s.places + sizeof *s.locks +
                        (has_polled ? sizeof *s.polled + sizeof *s.entries : 0);
    hafti_io_place_t few[MEMORY_OF_FEW / sizeof(hafti_io_place_t)];
    __attribute__((cleanup(free_memory))) void *many = NULL;
    if (count > sizeof few / each && (many = calloc(count, each)) == NULL)
        return -ENOMEM;
    s.places = many != NULL ? many : few;
    s.locks = (uint32_t **)(s.places + count);
    if (!has_polled) {
        list_locks(&s);
        return select_objects(&s, deadline);
    }
    s.polled = (polled_t *)(s.locks + count);
    s.entries = (struct pollfd *)(s.polled + count);
    return select_listed(&s, deadline);
}

int haft_io_select_until(haft_io_select_case_t *choices, size_t count, int64_t deadline) {
    if (count == 0)
        hafti_io_misuse("haft_io_select needs a choice.");
    int chosen = choose(choices, count, deadline);
    return chosen != -ECANCELED ? chosen : haft_io_unwind_cancelled();
}

int haft_io_select(haft_io_select_case_t *choices, size_t count) {
    return haft_io_select_until(choices, count, HAFT_IO_FOREVER);
}
