/* SPDX-License-Identifier: MIT */
/*
 * Channels.
 *
 * A channel is a ring of values, the senders that wait because it is full, and the receivers that
 * wait because it is empty. Values go from sender to receiver directly where one of them waits.
 *
 * A value is copied between claiming the waiter's cell and waking the waiter. Earlier, another case
 * of its select may be chosen and have its value in the same place; later its frame may be gone. It
 * is woken after the locks have been released, because it may free the channel.
 */
#include "returns.h"
#include "objects.h"

#include <stdlib.h>
#include <string.h>

struct haft_io_channel {
    uint32_t lock;
    bool closed;
    size_t size, capacity;
    size_t first, count; /* of the values in the ring */
    haft_io_waiting_t senders, receivers;
    char values[];
};

haft_io_channel_t *haft_io_channel_new(size_t size, size_t capacity) {
    if (size != 0 && capacity > (SIZE_MAX - sizeof(haft_io_channel_t)) / size)
        return NULL;
    haft_io_channel_t *channel = malloc(sizeof *channel + size * capacity);
    if (channel != NULL)
        *channel = (haft_io_channel_t){.size = size, .capacity = capacity};
    return channel;
}

void haft_io_channel_free(haft_io_channel_t *channel) {
    if (channel != NULL && (channel->senders.first != NULL || channel->receivers.first != NULL))
        hafti_io_misuse("A channel was freed while somebody waits for it.");
    free(channel);
}

/* The place of a value; `index` is at most the capacity. */
static char *slot(haft_io_channel_t *channel, size_t index) {
    size_t at = channel->first + index;
    if (at >= channel->capacity)
        at -= channel->capacity;
    return channel->values + at * channel->size;
}

/* Most values are a pointer or a number: no call for these. */
static inline void copy(void *to, const void *from, size_t size) {
    if (size == sizeof(uint64_t))
        memcpy(to, from, sizeof(uint64_t));
    else if (size == sizeof(uint32_t))
        memcpy(to, from, sizeof(uint32_t));
    else if (size != 0) /* otherwise there may be no memory */
        memcpy(to, from, size);
}

/* ---- Under the lock: what can be done at once; -EAGAIN if it has to wait ---- */

/* `*other` becomes the place of the waiter that is to be woken, if there is one. */

static int send_now(haft_io_channel_t *channel, const void *value, hafti_io_place_t **other) {
    if (channel->closed)
        return -EPIPE;
    hafti_io_place_t *receiver = hafti_io_claim_first(&channel->receivers);
    if (receiver != NULL) {
        copy(receiver->value, value, channel->size);
        *other = receiver;
        return 0;
    }
    if (channel->count == channel->capacity)
        return -EAGAIN;
    copy(slot(channel, channel->count++), value, channel->size);
    return 0;
}

/* Takes what the first sender has, if there is one that still wants to send. */
static __attribute__((noinline)) hafti_io_place_t *take_from_sender(haft_io_channel_t *channel,
                                                                    void *value) {
    hafti_io_place_t *sender = hafti_io_claim_first(&channel->senders);
    if (sender != NULL)
        copy(value, sender->value, channel->size);
    return sender;
}

static inline void remove_first(haft_io_channel_t *channel) {
    channel->first = channel->first + 1 == channel->capacity ? 0 : channel->first + 1;
    channel->count--;
}

static int receive_now(haft_io_channel_t *channel, void *value, hafti_io_place_t **other) {
    if (channel->count != 0) {
        copy(value, slot(channel, 0), channel->size);
        remove_first(channel);
        if (channel->senders.first != NULL) {
            *other = take_from_sender(channel, slot(channel, channel->count));
            channel->count += *other != NULL;
        }
        return 0;
    }
    if (channel->senders.first != NULL) {
        *other = take_from_sender(channel, value);
        if (*other != NULL)
            return 0;
    }
    return channel->closed ? -EPIPE : -EAGAIN;
}

/* `value` is the value to send, or where the received one goes. */
static inline int do_now(haft_io_channel_t *channel, bool sends, void *value,
                         hafti_io_place_t **other) {
    return sends ? send_now(channel, value, other) : receive_now(channel, value, other);
}

static inline void take_place(haft_io_channel_t *channel, bool sends, void *value,
                              hafti_io_place_t *place) {
    place->value = value;
    hafti_io_take_place(sends ? &channel->senders : &channel->receivers, place);
}

/* ---- One channel ---- */

/* Called under the lock, or where none is needed; returns without. */
static inline __attribute__((always_inline)) int wait_for(haft_io_channel_t *channel, bool sends,
                                                          void *value, int64_t deadline) {
    hafti_io_cell_t cell = hafti_io_cell_to_wait(&channel->lock);
    hafti_io_place_t place;
    hafti_io_make_place(&place, &cell, HAFTI_IO_WOKEN);
    take_place(channel, sends, value, &place);
    hafti_io_unguard(&channel->lock);
    uint32_t outcome =
        hafti_io_wait_here(&cell, HAFTI_IO_CANCELLABLE, deadline,
                           sends ? "a channel to send to" : "a channel to receive from");
    if (HAFTI_IO_LIKELY(outcome == HAFTI_IO_WOKEN))
        return place.closed ? -EPIPE : 0;
    hafti_io_guard(&channel->lock);
    hafti_io_leave_place(&place);
    hafti_io_unguard(&channel->lock);
    return outcome == HAFTI_IO_CANCELLED ? haft_io_unwind_cancelled() : -ETIMEDOUT;
}
static HAFTI_IO_RETURNS_BY_JUMP __attribute__((noinline)) int
wait_to_send(haft_io_channel_t *channel, void *value, int64_t deadline) {
    return wait_for(channel, true, value, deadline);
}
static HAFTI_IO_RETURNS_BY_JUMP __attribute__((noinline)) int
wait_to_receive(haft_io_channel_t *channel, void *value, int64_t deadline) {
    return wait_for(channel, false, value, deadline);
}

static inline __attribute__((always_inline)) int do_any(haft_io_channel_t *channel, bool sends,
                                                        void *value, int64_t deadline) {
    if (HAFTI_IO_UNLIKELY(!hafti_io_has_its_turn(HAFTI_IO_CANCELLABLE)))
        return haft_io_unwind_cancelled();
    hafti_io_place_t *other = NULL;
    hafti_io_guard(&channel->lock);
    int code = do_now(channel, sends, value, &other);
    if (code == -EAGAIN)
        return sends ? wait_to_send(channel, value, deadline)
                     : wait_to_receive(channel, value, deadline);
    hafti_io_unguard(&channel->lock);
    hafti_io_let_go(other);
    return code;
}
static __attribute__((noinline)) int send_any(haft_io_channel_t *channel, void *value,
                                              int64_t deadline) {
    return do_any(channel, true, value, deadline);
}
static __attribute__((noinline)) int receive_any(haft_io_channel_t *channel, void *value,
                                                 int64_t deadline) {
    return do_any(channel, false, value, deadline);
}

/*
 * The common path in a process of one thread. No other thread can interfere, so there is no lock.
 * The only calls are tail calls, so no register has to be saved.
 */

static inline bool is_simple(const haft_io_channel_t *channel) {
    return __libc_single_threaded &&
           (channel->size == sizeof(uint64_t) || channel->size == sizeof(uint32_t));
}

/* Whether the caller is on a thread of a run, in a turn that is not over. */
static inline bool is_in_turn(hafti_io_worker_t *worker) {
    return HAFTI_IO_LIKELY(worker != NULL) && hafti_io_is_in_turn(worker, HAFTI_IO_LIGHT);
}

static inline void copy_simply(const haft_io_channel_t *channel, void *to, const void *from) {
    if (channel->size == sizeof(uint64_t))
        memcpy(to, from, sizeof(uint64_t));
    else
        memcpy(to, from, sizeof(uint32_t));
}

/* Hands the value to a receiver that waits; called by the thread of that worker, which is plain.
   False: it cannot be done so. */
static inline bool hand_to_receiver(haft_io_channel_t *channel, const void *value,
                                    const hafti_io_worker_t *worker) {
    const hafti_io_place_t *receiver = channel->receivers.first;
    hafti_io_cell_t *cell = receiver->cell;
    haft_io_task_t *task = cell->task;
    if (HAFTI_IO_UNLIKELY(cell->word != HAFTI_IO_WAITING || task == NULL || task->worker != worker))
        return false;
    hafti_io_first_leaves(&channel->receivers);
    copy_simply(channel, receiver->value, value);
    cell->word = receiver->outcome;
    hafti_io_let_go_on(task->worker, task);
    return true;
}

static inline __attribute__((always_inline)) int do_send(haft_io_channel_t *channel,
                                                         const void *value, int64_t deadline) {
    hafti_io_worker_t *worker = hafti_io_worker();
    if (HAFTI_IO_LIKELY(is_simple(channel) && is_in_turn(worker))) {
        if (HAFTI_IO_LIKELY(channel->receivers.first != NULL)) {
            if (HAFTI_IO_LIKELY(worker->plain && hand_to_receiver(channel, value, worker)))
                return 0;
        } else if (channel->count != channel->capacity && !channel->closed) {
            copy_simply(channel, slot(channel, channel->count++), value);
            return 0;
        }
    }
    return send_any(channel, (void *)(uintptr_t)value, deadline);
}

static inline __attribute__((always_inline)) int do_receive(haft_io_channel_t *channel, void *value,
                                                            int64_t deadline) {
    if (HAFTI_IO_LIKELY(is_simple(channel) && channel->senders.first == NULL &&
                        is_in_turn(hafti_io_worker()))) {
        if (channel->count != 0) {
            copy_simply(channel, value, slot(channel, 0));
            remove_first(channel);
            return 0;
        }
        if (HAFTI_IO_LIKELY(!channel->closed))
            return wait_to_receive(channel, value, deadline);
    }
    return receive_any(channel, value, deadline);
}

int haft_io_channel_send_until(haft_io_channel_t *channel, const void *value, int64_t deadline) {
    return do_send(channel, value, deadline);
}

int haft_io_channel_send(haft_io_channel_t *channel, const void *value) {
    return do_send(channel, value, HAFT_IO_FOREVER);
}

int haft_io_channel_receive_until(haft_io_channel_t *channel, void *value, int64_t deadline) {
    return do_receive(channel, value, deadline);
}

int haft_io_channel_receive(haft_io_channel_t *channel, void *value) {
    return do_receive(channel, value, HAFT_IO_FOREVER);
}

static int try_one(haft_io_channel_t *channel, bool sends, void *value) {
    hafti_io_has_its_turn(HAFTI_IO_TO_THE_END);
    hafti_io_place_t *other = NULL;
    hafti_io_guard(&channel->lock);
    int code = do_now(channel, sends, value, &other);
    hafti_io_unguard(&channel->lock);
    hafti_io_let_go(other);
    return code;
}

int haft_io_channel_try_send(haft_io_channel_t *channel, const void *value) {
    return try_one(channel, true, (void *)(uintptr_t)value);
}

int haft_io_channel_try_receive(haft_io_channel_t *channel, void *value) {
    return try_one(channel, false, value);
}

static hafti_io_place_t *close_places(haft_io_waiting_t *list) {
    hafti_io_place_t *all = hafti_io_claim_all(list);
    for (hafti_io_place_t *place = all; place != NULL; place = place->next)
        place->closed = true;
    return all;
}

void haft_io_channel_close(haft_io_channel_t *channel) {
    hafti_io_guard(&channel->lock);
    channel->closed = true;
    hafti_io_place_t *senders = close_places(&channel->senders);
    hafti_io_place_t *receivers = close_places(&channel->receivers);
    hafti_io_unguard(&channel->lock);
    hafti_io_let_all_go(senders);
    hafti_io_let_all_go(receivers);
}

/* ---- A channel as one of several that are waited for (select.c) ---- */

uint32_t *hafti_io_channel_lock(haft_io_channel_t *channel) {
    return &channel->lock;
}

int hafti_io_channel_do_now(haft_io_channel_t *channel, bool sends, void *value,
                            hafti_io_place_t **other) {
    return do_now(channel, sends, value, other);
}

void hafti_io_channel_take_place(haft_io_channel_t *channel, bool sends, void *value,
                                 hafti_io_place_t *place) {
    take_place(channel, sends, value, place);
}

const haft_shown_t hafti_io_shown_channels[] = {
    HAFT_SHOWN_SIZE("channel", haft_io_channel_t),
    HAFT_SHOWN_FIELD("channel", haft_io_channel_t, closed),
    HAFT_SHOWN_FIELD("channel", haft_io_channel_t, size),
    HAFT_SHOWN_FIELD("channel", haft_io_channel_t, capacity),
    HAFT_SHOWN_FIELD("channel", haft_io_channel_t, count),
    HAFT_SHOWN_FIELD("channel", haft_io_channel_t, senders),
    HAFT_SHOWN_FIELD("channel", haft_io_channel_t, receivers),
    HAFT_SHOWN_END};
