/* SPDX-License-Identifier: MIT */
/* The tape for libhaft-posix. The bytes of an answer are the name of the function, which ends with
   '\0', and those that libhaft-posix has given. */
#include <haft/io_binding.h>
#include "tapes.h"

enum haft_io_tape_use haft_io_tape_use(void) {
    const hafti_io_tape_t *tape = hafti_io_work_tape;
    if (tape == NULL) {
        tape = hafti_io_tape_here();
        if (tape == NULL || haft_io_self() == NULL)
            return HAFT_IO_TAPE_NONE;
    }
    return tape->replays ? HAFT_IO_TAPE_ANSWERS : HAFT_IO_TAPE_KEEPS;
}

static hafti_io_tape_t *tape_of_caller(void) {
    return hafti_io_work_tape != NULL ? hafti_io_work_tape : hafti_io_worker()->tape;
}

void haft_io_tape_keep(const char *name, int descriptor, int64_t result, const struct iovec *parts,
                       size_t count) {
    hafti_io_tape_t *tape = tape_of_caller();
    size_t size = strlen(name) + 1;
    for (size_t i = 0; i < count; i++)
        size += parts[i].iov_len;
    hafti_io_keep_head(tape, HAFTI_IO_TAPED_CALL_OF_C, descriptor, result, size);
    hafti_io_keep_bytes(tape, name, strlen(name) + 1);
    for (size_t i = 0; i < count; i++)
        hafti_io_keep_bytes(tape, parts[i].iov_base, parts[i].iov_len);
}

/* A wait for a lock may be above the call, so that others have gone on first. */
static const hafti_io_entry_t *next_answer(hafti_io_tape_t *tape, const char *name,
                                           int descriptor) {
    const hafti_io_entry_t *next = hafti_io_tape_look(tape);
    tape->asked = name;
    if (next->kind == HAFTI_IO_TAPED_CALL_OF_C && next->descriptor == descriptor &&
        strcmp((const char *)next->bytes, name) != 0)
        tape->differs(tape, HAFTI_IO_TAPED_CALL_OF_C, descriptor);
    return hafti_io_work_tape != NULL
               ? hafti_io_tape_answer(tape, HAFTI_IO_TAPED_CALL_OF_C, descriptor)
               : hafti_io_tape_await(hafti_io_worker()->running, HAFTI_IO_TAPED_CALL_OF_C,
                                     descriptor);
}

int64_t haft_io_tape_ask(const char *name, int descriptor, const unsigned char **bytes,
                         size_t *size) {
    hafti_io_tape_t *tape = tape_of_caller();
    const hafti_io_entry_t *entry = next_answer(tape, name, descriptor);
    tape->asked = NULL;
    size_t own = strnlen((const char *)entry->bytes, entry->size) + 1;
    *bytes = entry->bytes + own;
    *size = entry->size > own ? entry->size - own : 0;
    return entry->result;
}

void haft_io_tape_opened(int descriptor) {
    hafti_io_tape_occupy(tape_of_caller(), descriptor);
}

void haft_io_tape_opened_by(const struct msghdr *message) {
    struct msghdr whole = *message;
    for (struct cmsghdr *one = CMSG_FIRSTHDR(&whole); one != NULL; one = CMSG_NXTHDR(&whole, one)) {
        bool passes = one->cmsg_level == SOL_SOCKET && one->cmsg_type == SCM_RIGHTS;
        for (size_t at = CMSG_LEN(0); passes && at + sizeof(int) <= one->cmsg_len;
             at += sizeof(int)) {
            int descriptor;
            memcpy(&descriptor, (const char *)one + at, sizeof descriptor);
            haft_io_tape_opened(descriptor);
        }
    }
}

void haft_io_tape_closed(int descriptor) {
    hafti_io_tape_vacate(tape_of_caller(), descriptor);
}
