/* SPDX-License-Identifier: MIT */
/*
 * How an answer lies on a tape: the result, or the negative error number; and what the function has
 * written, each part after its size (4 bytes). The functions that make the calls are in taped.c.
 */
#include "taped.h"
#include "../../src/system_call.h"

#include <alloca.h>
#include <string.h>

static size_t least(size_t one, size_t other) {
    return one < other ? one : other;
}

/* Adds the parts up to `size` bytes. */
static size_t list_parts(struct iovec *list, size_t used, const struct iovec *parts, size_t count,
                         size_t size) {
    for (size_t i = 0; i < count && size != 0; i++) {
        list[used] = (struct iovec){parts[i].iov_base, least(parts[i].iov_len, size)};
        size -= list[used++].iov_len;
    }
    return used;
}

static size_t count_parts(const hafti_posix_out_t *out) {
    return out->how == HAFTI_POSIX_PARTS     ? out->size
           : out->how == HAFTI_POSIX_MESSAGE ? ((const struct msghdr *)out->at)->msg_iovlen + 3
                                             : 2;
}

static size_t size_of_parts(const struct iovec *parts, size_t count) {
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += parts[i].iov_len;
    return size;
}

typedef struct message_head {
    uint32_t name, control;
    int32_t flags;
} message_head_t;

/* Lists the pieces of an out, after its size, which is the first. */
static size_t list_out(const hafti_posix_out_t *out, int64_t result, struct iovec *list,
                       uint32_t *size, message_head_t *head) {
    size_t used = 1;
    if (result >= 0)
        switch (out->how) {
        case HAFTI_POSIX_AS_MANY:
            list[used++] = (struct iovec){out->at, least((size_t)result, out->size)};
            break;
        case HAFTI_POSIX_WHOLE:
            if (out->at != NULL)
                list[used++] = (struct iovec){out->at, out->size};
            break;
        case HAFTI_POSIX_SIZED:
            if (out->at != NULL && out->of != NULL) {
                list[used++] = (struct iovec){out->of, sizeof *out->of};
                list[used++] = (struct iovec){out->at, least(*out->of, out->room)};
            }
            break;
        case HAFTI_POSIX_PARTS:
            used = list_parts(list, used, out->at, out->size, (size_t)result);
            break;
        case HAFTI_POSIX_MESSAGE: {
            const struct msghdr *message = out->at;
            *head = (message_head_t){
                message->msg_name != NULL ? message->msg_namelen : 0,
                message->msg_control != NULL ? (uint32_t)message->msg_controllen : 0,
                message->msg_flags};
            list[used++] = (struct iovec){head, sizeof *head};
            list[used++] = (struct iovec){message->msg_name, least(head->name, out->room)};
            list[used++] = (struct iovec){message->msg_control, head->control};
            used = list_parts(list, used, message->msg_iov, message->msg_iovlen, (size_t)result);
            break;
        }
        case HAFTI_POSIX_NOTHING:
            break;
        }
    *size = (uint32_t)size_of_parts(list + 1, used - 1);
    list[0] = (struct iovec){size, sizeof *size};
    return used;
}

int64_t hafti_posix_tape_keep(const char *name, int descriptor, int64_t result, bool error,
                              const hafti_posix_out_t *outs, size_t count) {
    int64_t kept = error && result < 0 ? -hafti_posix_error() : result;
    size_t room = 0, used = 0;
    for (size_t i = 0; i < count; i++) /* A list that was refused may be none at all. */
        room += 1 + (result >= 0 ? count_parts(&outs[i]) : 0);
    struct iovec *list = alloca((room + 1) * sizeof *list);
    list[0] = (struct iovec){NULL, 0};
    uint32_t sizes[HAFTI_POSIX_MOST_OUTS];
    message_head_t heads[HAFTI_POSIX_MOST_OUTS];
    for (size_t i = 0; i < count; i++)
        used += list_out(&outs[i], result, list + used, &sizes[i], &heads[i]);
    haft_io_tape_keep(name, descriptor, kept, list, used);
    return result;
}

static void scatter(const unsigned char *bytes, size_t size, const struct iovec *parts,
                    size_t count) {
    for (size_t i = 0; i < count && size != 0; i++) {
        size_t now = least(parts[i].iov_len, size);
        memcpy(parts[i].iov_base, bytes, now);
        bytes += now;
        size -= now;
    }
}

static void give_message(const unsigned char *bytes, size_t size, struct msghdr *message,
                         socklen_t room) {
    message_head_t head;
    if (size < sizeof head)
        return;
    memcpy(&head, bytes, sizeof head);
    size_t name = least(head.name, room);
    if (size - sizeof head < name + head.control)
        return;
    const unsigned char *at = bytes + sizeof head;
    if (name != 0 && message->msg_name != NULL)
        memcpy(message->msg_name, at, name);
    at += name;
    if (head.control != 0 && message->msg_control != NULL)
        memcpy(message->msg_control, at, least(head.control, message->msg_controllen));
    at += head.control;
    message->msg_namelen = head.name;
    message->msg_controllen = head.control;
    message->msg_flags = head.flags;
    haft_io_tape_opened_by(message);
    scatter(at, size - (size_t)(at - bytes), message->msg_iov, message->msg_iovlen);
}

static void give_out(const hafti_posix_out_t *out, const unsigned char *bytes, size_t size) {
    switch (out->how) {
    case HAFTI_POSIX_AS_MANY:
    case HAFTI_POSIX_WHOLE:
        if (out->at != NULL && size != 0)
            memcpy(out->at, bytes, least(size, out->size));
        break;
    case HAFTI_POSIX_SIZED:
        if (out->at == NULL || out->of == NULL || size < sizeof *out->of)
            break;
        memcpy(out->of, bytes, sizeof *out->of);
        memcpy(out->at, bytes + sizeof *out->of, least(size - sizeof *out->of, out->room));
        break;
    case HAFTI_POSIX_PARTS:
        scatter(bytes, size, out->at, out->size);
        break;
    case HAFTI_POSIX_MESSAGE:
        give_message(bytes, size, out->at, out->room);
        break;
    case HAFTI_POSIX_NOTHING:
        break;
    }
}

int64_t hafti_posix_tape_answer(const char *name, int descriptor, bool error,
                                const hafti_posix_out_t *outs, size_t count) {
    const unsigned char *bytes;
    size_t left;
    int64_t result = haft_io_tape_ask(name, descriptor, &bytes, &left);
    for (size_t i = 0; i < count; i++) {
        uint32_t size = 0;
        if (left >= sizeof size)
            memcpy(&size, bytes, sizeof size);
        if (left < sizeof size || left - sizeof size < size)
            break;
        if (result >= 0 || !error)
            give_out(&outs[i], bytes + sizeof size, size);
        bytes += sizeof size + size;
        left -= sizeof size + size;
    }
    return error ? hafti_posix_result(result) : result;
}

int64_t hafti_posix_tape_show(int descriptor, int64_t done, const struct iovec *parts,
                              size_t count) {
    int64_t left = descriptor == STDOUT_FILENO || descriptor == STDERR_FILENO ? done : 0;
    for (size_t i = 0; i < count && left > 0; i++) {
        size_t now = least(parts[i].iov_len, (size_t)left);
        hafti_io_system_call(SYS_write, descriptor, (long)parts[i].iov_base, (long)now, 0, 0, 0);
        left -= (int64_t)now;
    }
    return done;
}
