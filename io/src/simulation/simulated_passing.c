/* SPDX-License-Identifier: MIT */
/*
 * Passing descriptors over the streams of a simulation, with the first byte of a message. A
 * simulated object gets another number where it arrives; a real descriptor is duplicated when it is
 * sent.
 */
#include "simulation.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

typedef hafti_io_simulated_state_t state_t;
typedef hafti_io_passed_t passed_t;

static size_t numbers_in(const struct cmsghdr *header) {
    return (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
}

enum { MOST_PASSED = 253 }; /* with one message, as by Linux */

/* How many; -EOPNOTSUPP for control data of another kind. */
static int count_in(const struct msghdr *message) {
    size_t count = 0;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header != NULL;
         header = CMSG_NXTHDR((struct msghdr *)(uintptr_t)message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            return -EOPNOTSUPP;
        size_t before = (size_t)((char *)header - (char *)message->msg_control);
        if (header->cmsg_len < CMSG_LEN(0) || header->cmsg_len > message->msg_controllen - before)
            return -EINVAL;
        count += numbers_in(header);
    }
    return count <= MOST_PASSED ? (int)count : -EINVAL;
}

/* One more; 0, or -EBADF, or why the system has none. */
static int add(state_t *state, passed_t *passed, int descriptor) {
    hafti_io_object_t *object = hafti_io_object_of(state, descriptor);
    int real = -1;
    if (object != NULL)
        object->uses++;
    else
        real = HAFTI_IO_RESULT(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
    if (object == NULL && real < 0)
        return real;
    passed->files[passed->count].object = object;
    passed->files[passed->count++].real = real;
    return 0;
}

int hafti_io_passed_of(state_t *state, const struct msghdr *message, passed_t **passed) {
    int count = count_in(message);
    if (count <= 0)
        return count;
    passed_t *all = calloc(1, sizeof *all + (size_t)count * sizeof all->files[0]);
    if (all == NULL)
        return -ENOMEM;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header != NULL;
         header = CMSG_NXTHDR((struct msghdr *)(uintptr_t)message, header))
        for (size_t i = 0; i < numbers_in(header); i++) {
            int descriptor;
            memcpy(&descriptor, CMSG_DATA(header) + i * sizeof descriptor, sizeof descriptor);
            int code = add(state, all, descriptor);
            if (code != 0) {
                hafti_io_passed_drop(state, all);
                return code;
            }
        }
    *passed = all;
    return 0;
}

void hafti_io_passed_forget(passed_t *passed) {
    for (size_t i = 0; i < passed->count; i++)
        if (passed->files[i].object == NULL)
            hafti_io_close_file(passed->files[i].real);
    free(passed);
}

void hafti_io_passed_drop(state_t *state, passed_t *passed) {
    for (size_t i = 0; i < passed->count; i++)
        if (passed->files[i].object != NULL)
            hafti_io_object_drop(state, passed->files[i].object);
    hafti_io_passed_forget(passed);
}

void hafti_io_passed_arrive(state_t *state, passed_t *passed, struct msghdr *message, size_t room) {
    size_t space = room > CMSG_LEN(0) ? (room - CMSG_LEN(0)) / sizeof(int) : 0, count = 0;
    struct cmsghdr *header = message->msg_control;
    for (; count < space && count < passed->count; count++) {
        int number = passed->files[count].real;
        if (passed->files[count].object != NULL)
            number = hafti_io_object_number(state, passed->files[count].object);
        if (number < 0)
            break;
        passed->files[count].real = -1; /* the receiver's */
        memcpy(CMSG_DATA(header) + count * sizeof number, &number, sizeof number);
    }
    if (count < passed->count)
        message->msg_flags |= MSG_CTRUNC;
    if (count != 0) {
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(count * sizeof(int));
        message->msg_controllen =
            room < CMSG_SPACE(count * sizeof(int)) ? room : CMSG_SPACE(count * sizeof(int));
    }
    hafti_io_passed_drop(state, passed);
}

void hafti_io_passed_stay(state_t *state, const struct msghdr *message) {
    const struct cmsghdr *header = CMSG_FIRSTHDR(message);
    for (size_t i = 0; header != NULL && i < numbers_in(header); i++) {
        int number;
        memcpy(&number, CMSG_DATA(header) + i * sizeof number, sizeof number);
        if (hafti_io_object_of(state, number) != NULL)
            hafti_io_number_of(state, number)->closes_at_exec = false;
        else
            fcntl(number, F_SETFD, 0);
    }
}
