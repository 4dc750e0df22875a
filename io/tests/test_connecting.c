/* SPDX-License-Identifier: MIT */
/* Connecting to a name of several addresses: which of them is connected to, and that nothing of the
   others is left. */
#define _GNU_SOURCE
#include "check_io.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- A name's addresses ---- */

static struct addrinfo addresses[4];
static int servers_answer[2]; /* a pipe that the server of names waits for */
static struct sockaddr_un nowhere = {AF_UNIX, "/nowhere/at all"};

int __real_getaddrinfo(const char *, const char *, const struct addrinfo *, struct addrinfo **);
int __wrap_getaddrinfo(const char *, const char *, const struct addrinfo *, struct addrinfo **);
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **result) {
    char byte;
    if (strcmp(host, "slow") == 0 && read(servers_answer[0], &byte, 1) == 1)
        return __real_getaddrinfo("127.0.0.1", service, hints, result);
    if (strcmp(host, "unknown") == 0)
        return EAI_NONAME;
    if (strcmp(host, "several") != 0)
        return __real_getaddrinfo(host, service, hints, result);
    *result = addresses;
    return 0;
}
void __real_freeaddrinfo(struct addrinfo *);
void __wrap_freeaddrinfo(struct addrinfo *);
void __wrap_freeaddrinfo(struct addrinfo *list) {
    if (list != addresses)
        __real_freeaddrinfo(list);
}

/* In this order; NULL ends them. */
static void name_has(const struct sockaddr *first, const struct sockaddr *second,
                     const struct sockaddr *third) {
    const struct sockaddr *all[] = {first, second, third, NULL};
    for (int i = 0; all[i] != NULL; i++)
        addresses[i] = (struct addrinfo){.ai_family = all[i]->sa_family,
                                         .ai_addr = (struct sockaddr *)(uintptr_t)all[i],
                                         .ai_addrlen = all[i]->sa_family == AF_UNIX
                                                           ? sizeof(struct sockaddr_un)
                                                           : sizeof(struct sockaddr_in),
                                         .ai_next = all[i + 1] != NULL ? &addresses[i + 1] : NULL};
}

/* ---- Listeners that answer, refuse, or are silent ---- */

typedef struct place {
    int listener, fillers[4];
    struct sockaddr_in address;
} place_t;

static void listen_at(place_t *place, int backlog) {
    socklen_t size = sizeof place->address;
    place->address = (struct sockaddr_in){AF_INET, 0, {htonl(INADDR_LOOPBACK)}, {0}};
    place->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQUAL(bind(place->listener, (struct sockaddr *)&place->address, size), 0);
    CHECK_EQUAL(getsockname(place->listener, (struct sockaddr *)&place->address, &size), 0);
    if (backlog >= 0)
        CHECK_EQUAL(listen(place->listener, backlog), 0);
}
/* Its queue is full, so the kernel ignores clients that connect. */
static void listen_silently(place_t *place) {
    listen_at(place, 0);
    for (int i = 0; i < 4; i++) {
        place->fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        connect(place->fillers[i], (struct sockaddr *)&place->address, sizeof place->address);
    }
}
static void stop_listening(place_t *place) {
    close(place->listener);
    for (int i = 0; i < 4; i++)
        if (place->fillers[i] > 0)
            close(place->fillers[i]);
    *place = (place_t){0};
}

static place_t good, refusing, silent, other_silent;
static const struct sockaddr *const at_good = (struct sockaddr *)&good.address;
static const struct sockaddr *const at_refusing = (struct sockaddr *)&refusing.address;
static const struct sockaddr *const at_silent = (struct sockaddr *)&silent.address;
static const struct sockaddr *const at_other_silent = (struct sockaddr *)&other_silent.address;
static struct sockaddr_in free_address = {AF_INET, 0, {0}, {0}};
static const struct sockaddr *const at_free = (struct sockaddr *)&free_address;
static const struct sockaddr *const at_nowhere = (struct sockaddr *)&nowhere;

static bool is_connected_to(int connection, const place_t *place) {
    struct sockaddr_in peer;
    socklen_t size = sizeof peer;
    return getpeername(connection, (struct sockaddr *)&peer, &size) == 0 &&
           peer.sin_port == place->address.sin_port;
}

/* ---- Tests ---- */

static void connect_to(const place_t *place) {
    int before = check_descriptors();
    int connection = haft_io_connect_tcp("several", 1);
    CHECK(connection >= 0 && is_connected_to(connection, place));
    haft_io_close(connection);
    CHECK_EQUAL(check_descriptors(), before);
}

BODY(connect_to_the_good_one) {
    name_has(at_good, at_refusing, NULL);
    connect_to(&good);
    name_has(at_refusing, at_good, NULL);
    connect_to(&good);
    name_has(at_refusing, at_nowhere, at_good);
    connect_to(&good);
    name_has(at_silent, at_good, at_silent);
    connect_to(&good);
    name_has(at_silent, at_other_silent, at_good);
    connect_to(&good);
    name_has(at_good, at_good, at_good);
    connect_to(&good);
    return NULL;
}
static void the_first_that_answers_is_connected_to(void) {
    CHECK_RUNS(connect_to_the_good_one);
    int code =
        haft_io_run_with(&(haft_io_run_options_t){.threads = 2}, connect_to_the_good_one, NULL);
    CHECK_EQUAL(code, 0);
}

BODY(connect_to_nobody) {
    name_has(at_refusing, at_nowhere, NULL);
    CHECK_EQUAL(haft_io_connect_tcp("several", 1), -ECONNREFUSED);
    name_has(at_nowhere, at_refusing, at_refusing);
    CHECK_EQUAL(haft_io_connect_tcp("several", 1), -ENOENT);
    return NULL;
}
static void the_first_ones_error_is_returned_if_all_fail(void) {
    int before = check_descriptors();
    CHECK_RUNS(connect_to_nobody);
    /* An attempt may have failed before the task that started it goes on. */
    for (int i = 0; i < 200; i++)
        CHECK_EQUAL(
            haft_io_run_with(&(haft_io_run_options_t){.threads = 2}, connect_to_nobody, NULL), 0);
    CHECK_EQUAL(check_descriptors(), before);
    connect_to_nobody(NULL); /* outside of a run, too */
    name_has(at_refusing, at_good, NULL);
    connect_to(&good);
    CHECK_EQUAL(check_descriptors(), before);
}

/* Accepts all connections that have filled its queue. The kernel repeats a connect that waits
   within a second. */
BODY(answer_at_last) {
    haft_io_sleep(400 * HAFT_IO_MILLISECOND);
    for (;;) {
        int connection = accept4(silent.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (connection >= 0)
            close(connection);
        else
            haft_io_sleep(HAFT_IO_MILLISECOND);
    }
    return NULL;
}
BODY(connect_to_who_answers_late) {
    fcntl(silent.listener, F_SETFL, O_NONBLOCK);
    haft_io_spawn(answer_at_last, NULL);
    name_has(at_silent, at_other_silent, NULL);
    connect_to(&silent);
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
static void who_was_tried_first_may_answer_late(void) {
    CHECK_EQUAL(haft_io_run(connect_to_who_answers_late, NULL), -ECANCELED);
    stop_listening(&silent);
    listen_silently(&silent);
}

/* Is cancelled after so many steps and such a time: before it connects, while it does, or when it
   has. */
static int steps;
static int64_t pause_before;
BODY(connect_and_close) {
    haft_io_close(haft_io_connect_tcp("several", 1));
    return NULL;
}
BODY(connect_for_a_while) {
    haft_io_spawn(connect_and_close, NULL);
    for (int i = 0; i < steps; i++)
        haft_io_yield();
    if (pause_before != 0)
        haft_io_sleep(pause_before);
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
static void check_cancel(const struct sockaddr *first) {
    int before = check_descriptors();
    name_has(first, at_good, at_silent);
    CHECK_EQUAL(haft_io_run(connect_for_a_while, NULL), -ECANCELED);
    CHECK_EQUAL(check_descriptors(), before);
}
static void a_cancel_leaves_nothing_behind(void) {
    for (steps = 0; steps < 100; steps++) {
        check_cancel(at_refusing);
        check_cancel(at_silent);
        check_cancel(at_good);
    }
    for (int64_t pause = 248; pause <= 252; pause++) { /* the second address is tried after 250 */
        pause_before = pause * HAFT_IO_MILLISECOND;
        check_cancel(at_silent);
    }
}

BODY(connect_to_the_silent) {
    haft_io_connect_tcp("several", 1);
    CHECK(!"all are silent");
    return NULL;
}
BODY(connect_until_a_deadline) {
    for (int64_t limit = 1; limit <= 1000; limit *= 10) {
        haft_io_scope_options_t options = {.deadline = haft_io_now() + limit * HAFT_IO_MILLISECOND};
        CHECK_EQUAL(haft_io_scope_with(&options, connect_to_the_silent, NULL, NULL), -ETIMEDOUT);
    }
    return NULL;
}
static void nobody_waits_for_the_silent_after_a_deadline(void) {
    int before = check_descriptors();
    name_has(at_silent, at_other_silent, at_silent);
    CHECK_RUNS(connect_until_a_deadline);
    CHECK_EQUAL(check_descriptors(), before);
}

BODY(connect_to_the_slow) {
    haft_io_connect_tcp("slow", 1);
    CHECK(!"no server has answered");
    return NULL;
}
BODY(connect_until_no_server_has_answered) {
    haft_io_scope_options_t options = {.deadline = haft_io_now() + HAFT_IO_MILLISECOND};
    CHECK_EQUAL(haft_io_scope_with(&options, connect_to_the_slow, NULL, NULL), -ETIMEDOUT);
    CHECK_EQUAL(write(servers_answer[1], "", 1), 1);
    return NULL;
}
static void nobody_waits_for_a_server_of_names_after_a_deadline(void) {
    CHECK_EQUAL(pipe2(servers_answer, O_CLOEXEC), 0);
    CHECK_RUNS(connect_until_no_server_has_answered);
}

/* ---- Names in place of addresses ---- */

BODY(use_unknown_name) {
    int code = haft_io_connect_tcp("unknown", 80);
    CHECK_EQUAL(code, HAFT_IO_ERROR_OF_RESOLVER + EAI_NONAME);
    CHECK_SAME_TEXT(haft_io_error_text(code), gai_strerror(EAI_NONAME));
    CHECK_EQUAL(haft_io_listen_tcp("unknown", 0, 0), code);
    struct addrinfo *found = NULL;
    CHECK_EQUAL(haft_io_resolve("unknown", NULL, NULL, &found), code);
    return NULL;
}
static void an_unknown_name_is_called_so(void) {
    CHECK_RUNS(use_unknown_name);
    use_unknown_name(NULL);
    CHECK_SAME_TEXT(haft_io_error_text(-ECONNREFUSED), "Connection refused");
    CHECK_SAME_TEXT(haft_io_error_text(0), "Success");
    CHECK_SAME_TEXT(haft_io_error_text(7), "Success");
    CHECK_SAME_TEXT(haft_io_error_text(-4095), "Unknown error");
}

static void connect_and_accept(int listener) {
    HAFT_IO_SCOPED_DESCRIPTOR int other =
        haft_io_connect_tcp("localhost", (uint16_t)haft_io_port(listener));
    HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_accept(listener);
    CHECK(other >= 0 && connection >= 0);
}
BODY(listen_by_name) {
    HAFT_IO_SCOPED_DESCRIPTOR int listener = haft_io_listen_tcp("localhost", 0, 0);
    CHECK(listener >= 0);
    connect_and_accept(listener);
    return NULL;
}
BODY(listen_at_the_second) {
    name_has(at_nowhere, at_free, NULL);
    HAFT_IO_SCOPED_DESCRIPTOR int listener = haft_io_listen_tcp("several", 0, 0);
    CHECK(listener >= 0);
    name_has(at_nowhere, NULL, NULL);
    CHECK_EQUAL(haft_io_listen_tcp("several", 0, 0), -ENOENT);
    return NULL;
}
static void a_listener_has_the_first_address_of_its_name_that_is_here(void) {
    CHECK_RUNS(listen_by_name);
    listen_by_name(NULL);
    CHECK_RUNS(listen_at_the_second);
}

int main(void) {
    check_backend();
    listen_at(&good, 1000);
    listen_at(&refusing, -1);
    listen_silently(&silent);
    listen_silently(&other_silent);
    RUN(the_first_that_answers_is_connected_to);
    RUN(the_first_ones_error_is_returned_if_all_fail);
    RUN(who_was_tried_first_may_answer_late);
    RUN(a_cancel_leaves_nothing_behind);
    RUN(nobody_waits_for_the_silent_after_a_deadline);
    RUN(nobody_waits_for_a_server_of_names_after_a_deadline);
    RUN(an_unknown_name_is_called_so);
    RUN(a_listener_has_the_first_address_of_its_name_that_is_here);
    return check_end();
}
