/* SPDX-License-Identifier: MIT */
/* Descriptors that are passed along over streams of a simulation. */
#define _GNU_SOURCE /* pipe2 */
#include "check_io.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static const haft_io_simulation_options_t with_all = {.network = true, .files = true};

/* In simulations, and where the system has to agree. */
static void check_both(void *(*body)(void *)) {
    int descriptors = check_descriptors();
    check_seeds(body, 20, with_all);
    CHECK_RUNS(body);
    CHECK_EQUAL(check_descriptors(), descriptors);
}

static int pair[2], pipe_ends[2];
static void make_pair_and_pipe(void) {
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    CHECK_EQUAL(haft_io_pipe(pipe_ends), 0);
}
static void close_all(const int *descriptors, int count) {
    for (int i = 0; i < count; i++)
        CHECK_EQUAL(haft_io_close(descriptors[i]), 0);
}
static void check_count(size_t count) {
    if (haft_io_seed() != 0)
        CHECK_EQUAL(haft_io_simulated_count(), count);
}

/* Sends the byte, with so many descriptors. */
static ssize_t send_with(int socket, char byte, const int *descriptors, size_t count) {
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(4 * sizeof(int))];
    } control;
    memset(&control, 0, sizeof control);
    control.header = (struct cmsghdr){CMSG_LEN(count * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.header), descriptors, count * sizeof(int));
    struct msghdr message = {.msg_iov = &(struct iovec){&byte, 1},
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = CMSG_SPACE(count * sizeof(int))};
    return haft_io_send_message(socket, &message, 0);
}

/* ---- One more of the same ---- */

BODY(pass_an_end) {
    char byte;
    make_pair_and_pipe();
    CHECK_EQUAL(haft_io_send_descriptor(pair[0], pipe_ends[1]), 0);
    int received = haft_io_receive_descriptor(pair[1]);
    CHECK(received >= 0 && received != pipe_ends[1]);
    check_count(5);
    CHECK_EQUAL(haft_io_write(received, "a", 1), 1);
    CHECK_EQUAL(haft_io_close(pipe_ends[1]), 0); /* which leaves the other open */
    CHECK_EQUAL(haft_io_write(received, "b", 1), 1);
    CHECK_EQUAL(haft_io_read(pipe_ends[0], &byte, 1), 1);
    CHECK_EQUAL(haft_io_read(pipe_ends[0], &byte, 1), 1);
    CHECK_EQUAL(byte, 'b');
    CHECK_EQUAL(haft_io_receive(pipe_ends[0], &byte, 1, MSG_DONTWAIT), -ENOTSOCK);
    CHECK_EQUAL(haft_io_close(received), 0);
    CHECK_EQUAL(haft_io_read(pipe_ends[0], &byte, 1), 0);
    CHECK_EQUAL(haft_io_send_descriptor(pair[0], received), -EBADF);
    CHECK_EQUAL(haft_io_send_descriptor(pair[0], -1), -EBADF);
    close_all((int[]){pair[0], pipe_ends[0]}, 2);
    CHECK_EQUAL(haft_io_receive_descriptor(pair[1]), -EPIPE);
    close_all(&pair[1], 1);
    check_count(0);
    return NULL;
}
static void who_gets_a_descriptor_has_one_more_of_the_same(void) {
    check_both(pass_an_end);
}

BODY(pass_a_file) {
    char byte;
    int ends[2], file = haft_io_open("text", O_RDWR | O_CREAT, 0600);
    CHECK_EQUAL(haft_io_simulated_pair(ends), 0);
    CHECK_EQUAL(haft_io_write(file, "ab", 1), 1);
    CHECK_EQUAL(haft_io_send_descriptor(ends[0], file), 0);
    int received = haft_io_receive_descriptor(ends[1]);
    CHECK_EQUAL(haft_io_write(received, "c", 1), 1);
    CHECK_EQUAL(haft_io_pread(file, &byte, 1, 1), 1);
    CHECK_EQUAL(byte, 'c');
    CHECK_EQUAL(haft_io_write(file, "d", 1), 1); /* the position is that of both */
    CHECK_EQUAL(haft_io_pread(received, &byte, 1, 2), 1);
    CHECK_EQUAL(haft_io_close(file), 0);
    CHECK_EQUAL(haft_io_fsync(received), 0);
    close_all((int[]){ends[0], ends[1], received}, 3);
    check_count(0);
    return NULL;
}
BODY(pass_a_listener) {
    make_pair_and_pipe();
    int listener = haft_io_listen_tcp("::", 80, 0);
    CHECK_EQUAL(haft_io_send_descriptor(pair[0], listener), 0);
    CHECK_EQUAL(haft_io_close(listener), 0);
    CHECK_EQUAL(haft_io_listen_tcp("::", 80, 0), -EADDRINUSE); /* it is under way */
    listener = haft_io_receive_descriptor(pair[1]);
    int client = haft_io_connect_tcp("::1", 80), server = haft_io_accept(listener);
    CHECK(client >= 0 && server >= 0);
    close_all((int[]){client, server, listener, pair[0], pair[1], pipe_ends[0], pipe_ends[1]}, 7);
    CHECK_EQUAL(haft_io_connect_tcp("::1", 80), -ECONNREFUSED);
    check_count(0);
    return NULL;
}
/* And one of the system's. */
BODY(pass_a_real_one) {
    int real[2];
    char byte;
    make_pair_and_pipe();
    CHECK_EQUAL(pipe2(real, O_CLOEXEC), 0);
    CHECK_EQUAL(haft_io_send_descriptor(pair[0], real[1]), 0);
    close_all(&real[1], 1);
    int received = haft_io_receive_descriptor(pair[1]);
    CHECK(received >= 0 && received < 1 << 28 && (fcntl(received, F_GETFD) & FD_CLOEXEC) != 0);
    CHECK_EQUAL(haft_io_write(received, "x", 1), 1);
    CHECK_EQUAL(haft_io_read(real[0], &byte, 1), 1);
    CHECK_EQUAL(haft_io_send_descriptor(pair[0], received), 0); /* which nobody receives */
    close_all((int[]){received, real[0], pipe_ends[0], pipe_ends[1]}, 4);
    if (haft_io_seed() % 2 == 0)
        close_all(pair, 2); /* otherwise the end of the run does it */
    return NULL;
}
static void files_listeners_and_real_ones_are_passed(void) {
    int descriptors = check_descriptors();
    check_seeds(pass_a_file, 20, with_all);
    check_seeds(pass_a_listener, 20, with_all);
    check_seeds(pass_a_real_one, 20, with_all);
    CHECK_EQUAL(check_descriptors(), descriptors);
}

/* ---- Messages ---- */

BODY(pass_with_bytes) {
    char bytes[10];
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(4 * sizeof(int))];
    } control;
    make_pair_and_pipe();
    CHECK_EQUAL(haft_io_write(pair[0], "x", 1), 1);
    CHECK_EQUAL(send_with(pair[0], 'a', pipe_ends, 2), 1);
    CHECK_EQUAL(haft_io_write(pair[0], "z", 1), 1);
    CHECK_EQUAL(haft_io_read(pair[1], bytes, 1), 1);
    struct msghdr message = {.msg_iov = &(struct iovec){bytes, sizeof bytes},
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    CHECK_EQUAL(haft_io_receive_message(pair[1], &message, 0), 1); /* and not what comes after */
    CHECK_EQUAL(bytes[0], 'a');
    CHECK_EQUAL(message.msg_controllen, CMSG_SPACE(2 * sizeof(int)));
    CHECK_EQUAL(control.header.cmsg_len, CMSG_LEN(2 * sizeof(int)));
    CHECK(control.header.cmsg_level == SOL_SOCKET && control.header.cmsg_type == SCM_RIGHTS);
    int received[2];
    memcpy(received, CMSG_DATA(&control.header), sizeof received);
    CHECK_EQUAL(haft_io_write(received[1], "q", 1), 1);
    CHECK_EQUAL(haft_io_read(received[0], bytes, 1), 1);
    message.msg_controllen = sizeof control;
    CHECK_EQUAL(haft_io_receive_message(pair[1], &message, 0), 1);
    CHECK_EQUAL(bytes[0], 'z');
    CHECK_EQUAL(message.msg_controllen, 0);
    close_all(received, 2);

    CHECK_EQUAL(send_with(pair[0], 'a', pipe_ends, 2), 1); /* of which one is taken */
    int one = haft_io_receive_descriptor(pair[1]);
    CHECK(one >= 0);
    check_count(5);
    CHECK_EQUAL(haft_io_close(one), 0);

    CHECK_EQUAL(send_with(pair[0], 'a', pipe_ends, 2), 1); /* for which there is no room */
    message.msg_control = NULL;
    message.msg_controllen = 0;
    CHECK_EQUAL(haft_io_receive_message(pair[1], &message, 0), 1);
    CHECK_EQUAL(message.msg_flags & MSG_CTRUNC, MSG_CTRUNC);

    CHECK_EQUAL(send_with(pair[0], 'a', pipe_ends, 2), 1); /* which a read loses */
    CHECK_EQUAL(haft_io_read(pair[1], bytes, 10), 1);
    CHECK_EQUAL(send_with(pair[0], 'a', pipe_ends, 2), 1); /* and so does a close */
    CHECK_EQUAL(haft_io_close(pair[1]), 0);
    CHECK_EQUAL(haft_io_close(pipe_ends[1]), 0);
    CHECK_EQUAL(haft_io_read(pipe_ends[0], bytes, 1), 0);
    close_all((int[]){pair[0], pipe_ends[0]}, 2);
    check_count(0);
    return NULL;
}
static void descriptors_come_with_their_byte(void) {
    check_both(pass_with_bytes);
}

BODY(wait_for_a_message) {
    int received = haft_io_receive_descriptor(pair[1]);
    CHECK(received >= 0);
    CHECK_EQUAL(haft_io_close(received), 0);
    return NULL;
}
BODY(pass_to_who_waits) {
    make_pair_and_pipe();
    haft_io_task_t *waiting = haft_io_async(wait_for_a_message, NULL);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(haft_io_send_descriptor(pair[0], pipe_ends[0]), 0);
    CHECK_EQUAL(haft_io_join(waiting, NULL), 0);
    close_all((int[]){pair[0], pair[1], pipe_ends[0], pipe_ends[1]}, 4);
    check_count(0);
    return NULL;
}
static void who_waits_for_a_descriptor_gets_it(void) {
    check_both(pass_to_who_waits);
}

/* ---- Waits at two numbers ---- */

static void *read_there(void *number) {
    char byte;
    return check_number(haft_io_read((int)(intptr_t)number, &byte, 1));
}
BODY(wait_at_both) {
    make_pair_and_pipe();
    CHECK_EQUAL(haft_io_send_descriptor(pair[0], pipe_ends[0]), 0);
    int other = haft_io_receive_descriptor(pair[1]);
    haft_io_task_t *one = haft_io_async(read_there, check_number(pipe_ends[0]));
    haft_io_task_t *two = haft_io_async(read_there, check_number(other));
    haft_io_sleep(HAFT_IO_MILLISECOND);
    void *result;
    CHECK_EQUAL(haft_io_close(other), 0); /* which ends the wait at this number alone */
    CHECK_EQUAL(haft_io_join(two, &result), 0);
    CHECK_EQUAL((intptr_t)result, -EBADF);
    CHECK_EQUAL(haft_io_write(pipe_ends[1], "x", 1), 1);
    CHECK_EQUAL(haft_io_join(one, &result), 0);
    CHECK_EQUAL((intptr_t)result, 1);
    close_all((int[]){pair[0], pair[1], pipe_ends[0], pipe_ends[1]}, 4);
    return NULL;
}
BODY(end_at_both) {
    make_pair_and_pipe();
    CHECK_EQUAL(haft_io_send_descriptor(pair[0], pipe_ends[0]), 0);
    int other = haft_io_receive_descriptor(pair[1]);
    haft_io_task_t *tasks[] = {haft_io_async(read_there, check_number(pipe_ends[0])),
                               haft_io_async(read_there, check_number(other))};
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(haft_io_close(pipe_ends[1]), 0);
    for (int i = 0; i < 2; i++) {
        void *result;
        CHECK_EQUAL(haft_io_join(tasks[i], &result), 0);
        CHECK_EQUAL((intptr_t)result, 0);
    }
    close_all((int[]){pair[0], pair[1], pipe_ends[0], other}, 4);
    return NULL;
}
static void a_close_ends_the_waits_at_its_number(void) {
    check_both(wait_at_both);
    check_both(end_at_both);
}

BODY(refuse_other_control) {
    make_pair_and_pipe();
    struct cmsghdr other = {CMSG_LEN(0), SOL_SOCKET, SO_TIMESTAMP};
    struct msghdr message = {.msg_iov = &(struct iovec){"x", 1},
                             .msg_iovlen = 1,
                             .msg_control = &other,
                             .msg_controllen = sizeof other};
    CHECK_EQUAL(haft_io_send_message(pair[0], &message, 0), -EOPNOTSUPP);
    int datagrams[2];
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_DGRAM, 0, datagrams), 0);
    CHECK_EQUAL(haft_io_send_descriptor(datagrams[0], pair[0]), -EOPNOTSUPP);
    /* A pair that carries itself ends with the run. */
    CHECK_EQUAL(haft_io_send_descriptor(pair[0], pair[1]), 0);
    CHECK_EQUAL(haft_io_send_descriptor(pair[1], pair[0]), 0);
    close_all((int[]){datagrams[0], datagrams[1], pair[0], pair[1], pipe_ends[0], pipe_ends[1]}, 6);
    check_count(0);
    return NULL;
}
enum { MANY = 5000 };
BODY(pass_pairs_in_pairs) {
    int outer[2];
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, outer), 0);
    for (int i = 0; i < MANY; i++) { /* each carries the one before */
        CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        CHECK_EQUAL(haft_io_send_descriptor(pair[0], outer[0]), 0);
        CHECK_EQUAL(haft_io_send_descriptor(pair[0], outer[1]), 0);
        close_all(outer, 2);
        memcpy(outer, pair, sizeof outer);
    }
    close_all(outer, 2);
    return NULL;
}
static void pairs_that_carry_pairs_take_no_stack(void) {
    size_t before = haft_stack_size();
    haft_set_stack_size(65536);
    check_seeds(pass_pairs_in_pairs, 1, with_all);
    haft_set_stack_size(before);
}

static void other_control_data_is_refused(void) {
    check_seeds(refuse_other_control, 5, with_all);
}

/* ---- Bytes of a file ---- */

BODY(send_a_file) {
    static const char name[] = "haft-io-file-that-is-sent";
    enum { SIZE = 6000 };
    static char text[SIZE], received[SIZE + 1];
    for (int i = 0; i < SIZE; i++)
        text[i] = (char)('a' + i % 26);
    make_pair_and_pipe();
    int file = haft_io_open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0);
    CHECK_EQUAL(haft_io_write_all(file, text, SIZE), 0);
    int64_t offset = 0;
    size_t got = 0;
    for (ssize_t sent; (sent = haft_io_send_file(pair[0], file, &offset, SIZE)) > 0;)
        for (ssize_t more = 0; sent > 0; sent -= more, got += (size_t)more)
            more = haft_io_read(pair[1], received + got, (size_t)sent);
    CHECK(got == SIZE && offset == SIZE && memcmp(text, received, SIZE) == 0);
    CHECK_EQUAL(haft_io_send_file(pair[0], file, NULL, 10), 0); /* where the writes have ended */
    CHECK_EQUAL(haft_io_pwrite(file, "x", 1, SIZE), 1);
    CHECK_EQUAL(haft_io_send_file(pair[0], file, NULL, 10), 1);
    CHECK_EQUAL(haft_io_send_file(pair[0], file, NULL, 10), 0);
    CHECK_EQUAL(haft_io_read(pair[1], received, 10), 1);
    CHECK_EQUAL(received[0], 'x');
    CHECK_EQUAL(haft_io_send_file(pair[0], -1, NULL, 10), -EBADF);
    offset = 0;
    haft_io_close(pair[1]);
    CHECK_EQUAL(haft_io_send_file(pair[0], file, &offset, 10), -EPIPE);
    CHECK_EQUAL(offset, 0);
    close_all((int[]){file, pair[0], pipe_ends[0], pipe_ends[1]}, 4);
    CHECK_EQUAL(haft_io_remove(name), 0);
    check_count(0);
    return NULL;
}
static void a_file_is_sent(void) {
    check_both(send_a_file);
}

int main(void) {
    RUN(who_gets_a_descriptor_has_one_more_of_the_same);
    RUN(files_listeners_and_real_ones_are_passed);
    RUN(descriptors_come_with_their_byte);
    RUN(who_waits_for_a_descriptor_gets_it);
    RUN(a_close_ends_the_waits_at_its_number);
    RUN(other_control_data_is_refused);
    RUN(a_file_is_sent);
    RUN(pairs_that_carry_pairs_take_no_stack);
    return check_end();
}
