/* SPDX-License-Identifier: MIT */
/* What a back end knows of each descriptor: a table by number, and the lists of those who wait. */
#include "internal.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { DESCRIPTORS_IN_BLOCK = 256 };

static HAFT_IO_COLD haft_io_descriptor_t *make_block(haft_io_descriptors_t *table, size_t block) {
    if (block >= table->block_count) {
        size_t count = block * 2 + 1;
        haft_io_descriptor_t **blocks = realloc(table->blocks, count * sizeof *blocks);
        if (blocks == NULL)
            return NULL;
        memset(blocks + table->block_count, 0, (count - table->block_count) * sizeof *blocks);
        table->blocks = blocks;
        table->block_count = count;
    }
    haft_io_descriptor_t *entries = calloc(DESCRIPTORS_IN_BLOCK, sizeof *entries);
    if (entries == NULL)
        return NULL;
    for (int i = 0; i < DESCRIPTORS_IN_BLOCK; i++) {
        haft_io_ring(&entries[i].waiters[HAFT_IO_INWARD]);
        haft_io_ring(&entries[i].waiters[HAFT_IO_OUTWARD]);
    }
    table->blocks[block] = entries;
    return entries;
}

haft_io_descriptor_t *haft_io_descriptor(haft_io_descriptors_t *table, int descriptor, bool make) {
    if (descriptor < 0)
        return NULL;
    size_t block = (size_t)descriptor / DESCRIPTORS_IN_BLOCK;
    haft_io_descriptor_t *entries = block < table->block_count ? table->blocks[block] : NULL;
    if (entries == NULL && make)
        entries = make_block(table, block);
    return entries != NULL ? &entries[(size_t)descriptor % DESCRIPTORS_IN_BLOCK] : NULL;
}

void haft_io_descriptors_free(haft_io_descriptors_t *table) {
    for (size_t i = 0; i < table->block_count; i++)
        free(table->blocks[i]);
    free(table->blocks);
}

static bool is_stream(int descriptor) {
    int type;
    socklen_t size = sizeof type;
    return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type == SOCK_STREAM;
}

static bool transfers_already(const haft_io_descriptor_t *entry, enum haft_io_direction direction) {
    const haft_io_link_t *head = &entry->waiters[direction];
    for (const haft_io_link_t *link = head->next; link != head; link = link->next)
        if (HAFT_IO_OWNER(link, haft_io_waiter_t, links[direction])->transfers)
            return true;
    return false;
}

int haft_io_enlist(haft_io_descriptor_t *entry, haft_io_waiter_t *waiter, haft_io_cell_t *cell,
                   const haft_io_operation_t *operation) {
    static const short events_of[] = {POLLIN | POLLPRI | POLLRDHUP, POLLOUT};
    short events = haft_io_events_of(operation);
    *waiter = (haft_io_waiter_t){.cell = cell, .transfers = operation->kind <= HAFT_IO_SEND};
    for (int d = HAFT_IO_INWARD; d <= HAFT_IO_OUTWARD; d++) {
        if ((events & events_of[d]) == 0)
            continue;
        if (waiter->transfers && transfers_already(entry, d) && is_stream(operation->descriptor))
            return -EBUSY;
        haft_io_append(&entry->waiters[d], &waiter->links[d]);
    }
    return 0;
}

void haft_io_delist(haft_io_waiter_t *waiter) {
    for (int d = HAFT_IO_INWARD; d <= HAFT_IO_OUTWARD; d++)
        if (haft_io_linked(&waiter->links[d]))
            haft_io_unlink(&waiter->links[d]);
}

haft_io_waiter_t *haft_io_first_waiter(haft_io_descriptor_t *entry,
                                       enum haft_io_direction direction) {
    haft_io_link_t *head = &entry->waiters[direction];
    return haft_io_ring_empty(head) ? NULL
                                    : HAFT_IO_OWNER(head->next, haft_io_waiter_t, links[direction]);
}

int haft_io_wait_on(haft_io_descriptor_t *entry, const haft_io_operation_t *operation,
                    haft_io_task_t *task) {
    haft_io_worker_t *worker = task->worker;
    haft_io_cell_t cell = {HAFT_IO_WAITING, task};
    haft_io_waiter_t waiter;
    int code = haft_io_enlist(entry, &waiter, &cell, operation);
    if (code != 0)
        return code;
    worker->waiting++;
    uint32_t outcome = haft_io_cell_wait(&cell, HAFT_IO_CANCELLABLE, HAFT_IO_FOREVER,
                                         haft_io_kind_name(operation->kind));
    worker->waiting--;
    haft_io_delist(&waiter);
    return outcome == HAFT_IO_CANCELLED ? -ECANCELED : waiter.closed ? -EBADF : 0;
}

void haft_io_wake(haft_io_descriptor_t *entry, enum haft_io_direction direction, bool closed) {
    for (haft_io_waiter_t *waiter; (waiter = haft_io_first_waiter(entry, direction)) != NULL;) {
        haft_io_delist(waiter);
        waiter->closed = closed;
        haft_io_cell_win(waiter->cell, HAFT_IO_WOKEN);
    }
}
