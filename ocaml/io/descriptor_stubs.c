/* SPDX-License-Identifier: MIT */
/*
 * Operations on descriptors that do not wait: -EAGAIN if they cannot be done at once, after which
 * the OCaml task waits until the descriptor is ready. They are functions of libhaft-io, as the back
 * end may have bytes or connections in hand, and a simulation has descriptors of its own.
 * Operations without such a form get a deadline that has passed.
 */
#include "stubs.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <caml/socketaddr.h>
#include <caml/unixsupport.h>

static void allow_no_wait(haft_io_deadline_t *deadline) {
    haft_io_deadline_set(deadline, haft_io_now_roughly() - HAFT_IO_SECOND);
}

static intptr_t not_at_once(intptr_t result) {
    return result == -ETIMEDOUT ? -EAGAIN : result;
}

static intptr_t try_read(int descriptor, void *memory, size_t size) {
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t deadline = {0};
    allow_no_wait(&deadline);
    return not_at_once(haft_io_read(descriptor, memory, size));
}

static intptr_t try_write(int descriptor, const void *memory, size_t size) {
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t deadline = {0};
    allow_no_wait(&deadline);
    return not_at_once(haft_io_write(descriptor, memory, size));
}

value haft_ocaml_io_read(value descriptor, value memory, value at, value size);
value haft_ocaml_io_read(value descriptor, value memory, value at, value size) {
    CAMLparam1(memory); /* other tasks may go first */
    char *place = HAFT_OCAML_MEMORY(memory) + Long_val(at);
    int from = (int)Long_val(descriptor);
    intptr_t got = haft_io_receive(from, place, (size_t)Long_val(size), MSG_DONTWAIT);
    if (got == -ENOTSOCK)
        got = try_read(from, place, (size_t)Long_val(size));
    CAMLreturn(Val_long(got));
}

value haft_ocaml_io_write(value descriptor, value memory, value at, value size);
value haft_ocaml_io_write(value descriptor, value memory, value at, value size) {
    CAMLparam1(memory);
    const char *place = HAFT_OCAML_MEMORY(memory) + Long_val(at);
    int to = (int)Long_val(descriptor);
    intptr_t sent = haft_io_send(to, place, (size_t)Long_val(size), MSG_DONTWAIT);
    if (sent == -ENOTSOCK)
        sent = try_write(to, place, (size_t)Long_val(size));
    CAMLreturn(Val_long(sent));
}

value haft_ocaml_io_accept(value listener);
value haft_ocaml_io_accept(value listener) {
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t deadline = {0};
    allow_no_wait(&deadline);
    return Val_long(not_at_once(haft_io_accept((int)Long_val(listener))));
}

value haft_ocaml_io_close(value descriptor);
value haft_ocaml_io_close(value descriptor) {
    return Val_long(haft_io_close((int)Long_val(descriptor)));
}

value haft_ocaml_io_shutdown(value descriptor, value how);
value haft_ocaml_io_shutdown(value descriptor, value how) {
    return Val_long(haft_io_shutdown((int)Long_val(descriptor), (int)Long_val(how)));
}

/* ---- Sockets ---- */

value haft_ocaml_io_listen_tcp(value host, value port, value backlog, value reuse_port);
value haft_ocaml_io_listen_tcp(value host, value port, value backlog, value reuse_port) {
    const haft_io_listen_options_t options = {.backlog = (int)Long_val(backlog),
                                              .reuse_port = Bool_val(reuse_port)};
    char *name = caml_stat_strdup(String_val(host));
    int code = haft_io_listen_tcp_with(&options, name, (uint16_t)Long_val(port));
    caml_stat_free(name);
    return Val_long(code);
}

value haft_ocaml_io_listen_unix(value path, value backlog);
value haft_ocaml_io_listen_unix(value path, value backlog) {
    char *name = caml_stat_strdup(String_val(path));
    int code = haft_io_listen_unix(name, (int)Long_val(backlog));
    caml_stat_free(name);
    return Val_long(code);
}

value haft_ocaml_io_port(value descriptor);
value haft_ocaml_io_port(value descriptor) {
    return Val_long(haft_io_port((int)Long_val(descriptor)));
}

/* Kinds of sockets: 0: a stream; 1: datagrams. Families: 0: Unix; 1: IPv4; 2: IPv6. */
static int family_of(value family) {
    static const int families[] = {AF_UNIX, AF_INET, AF_INET6};
    return families[Long_val(family)];
}

value haft_ocaml_io_socket(value family, value datagrams);
value haft_ocaml_io_socket(value family, value datagrams) {
    return Val_long(
        haft_io_socket(family_of(family), Bool_val(datagrams) ? SOCK_DGRAM : SOCK_STREAM, 0));
}

value haft_ocaml_io_socket_pair(value datagrams);
value haft_ocaml_io_socket_pair(value datagrams) {
    int ends[2];
    int code =
        haft_io_socket_pair(AF_UNIX, Bool_val(datagrams) ? SOCK_DGRAM : SOCK_STREAM, 0, ends);
    if (code < 0)
        return Val_long(code);
    value pair = caml_alloc_tuple(2);
    Store_field(pair, 0, Val_long(ends[0]));
    Store_field(pair, 1, Val_long(ends[1]));
    return pair;
}

value haft_ocaml_io_pipe(value unit);
value haft_ocaml_io_pipe(value unit) {
    (void)unit;
    int ends[2];
    int code = haft_io_pipe(ends);
    if (code < 0)
        return Val_long(code);
    value pair = caml_alloc_tuple(2);
    Store_field(pair, 0, Val_long(ends[0]));
    Store_field(pair, 1, Val_long(ends[1]));
    return pair;
}

value haft_ocaml_io_bind(value descriptor, value address);
value haft_ocaml_io_bind(value descriptor, value address) {
    union sock_addr_union it;
    socklen_param_type size;
    get_sockaddr(address, &it, &size);
    return Val_long(haft_io_bind((int)Long_val(descriptor), &it.s_gen, size));
}

/* The peer of a connection that was accepted; a simulation has no names of peers. */
value haft_ocaml_io_peer(value descriptor);
value haft_ocaml_io_peer(value descriptor) {
    union sock_addr_union it = {.s_inet = {.sin_family = AF_INET}};
    socklen_param_type size = sizeof it;
    if (getpeername((int)Long_val(descriptor), &it.s_gen, &size) != 0) {
        it.s_inet.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        size = sizeof it.s_inet;
    }
    return alloc_sockaddr(&it, size, -1);
}

value haft_ocaml_io_receive_from(value descriptor, value memory, value at, value size);
/* A negative error, or the number of bytes and the sender. */
value haft_ocaml_io_receive_from(value descriptor, value memory, value at, value size) {
    CAMLparam1(memory);
    CAMLlocal2(result, address);
    union sock_addr_union it;
    memset(&it, 0, sizeof it);
    socklen_t address_size = sizeof it;
    ssize_t got =
        haft_io_receive_from((int)Long_val(descriptor), HAFT_OCAML_MEMORY(memory) + Long_val(at),
                             (size_t)Long_val(size), MSG_DONTWAIT, &it.s_gen, &address_size);
    if (got < 0)
        CAMLreturn(Val_long(got));
    if (address_size == 0) { /* of a Unix socket without a name */
        it.s_unix.sun_family = AF_UNIX;
        address_size = offsetof(struct sockaddr_un, sun_path);
    }
    address = alloc_sockaddr(&it, address_size, -1);
    result = caml_alloc_tuple(2);
    Store_field(result, 0, Val_long(got));
    Store_field(result, 1, address);
    CAMLreturn(result);
}

value haft_ocaml_io_send_to(value descriptor, value memory, value size, value address);
value haft_ocaml_io_send_to(value descriptor, value memory, value size, value address) {
    CAMLparam1(memory);
    union sock_addr_union it;
    socklen_param_type address_size;
    get_sockaddr(address, &it, &address_size);
    ssize_t sent = haft_io_send_to((int)Long_val(descriptor), HAFT_OCAML_MEMORY(memory),
                                   (size_t)Long_val(size), MSG_DONTWAIT, &it.s_gen, address_size);
    CAMLreturn(Val_long(sent));
}

/* ---- Others ---- */

value haft_ocaml_io_is_file(value descriptor);
/* Whether reads and writes are work for the pool. */
value haft_ocaml_io_is_file(value descriptor) {
    struct stat status;
    return Val_bool(fstat((int)Long_val(descriptor), &status) == 0 && S_ISREG(status.st_mode));
}

value haft_ocaml_io_random(value memory, value at, value size);
value haft_ocaml_io_random(value memory, value at, value size) {
    return Val_long(getrandom(HAFT_OCAML_MEMORY(memory) + Long_val(at), (size_t)Long_val(size), 0));
}

value haft_ocaml_io_refusal(value code);
/* The words of the library, if it has just refused a call with this number; or "". */
value haft_ocaml_io_refusal(value code) {
    char words[400] = "";
    haft_take_refusal((int)Long_val(code), words, sizeof words);
    return caml_copy_string(words);
}

value haft_ocaml_io_error(value code);
/* The Unix.error of a negative error number. */
value haft_ocaml_io_error(value code) {
    return unix_error_of_code((int)-Long_val(code));
}
