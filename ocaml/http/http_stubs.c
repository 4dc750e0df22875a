/* SPDX-License-Identifier: MIT */
/*
 * Servers of libhaft-http for OCaml; the client is in client_stubs.c. A request's handler is a task
 * of C that calls OCaml code back, which runs there as a task of OCaml (run_in_c in
 * haft_io__loop.ml): while it waits, so does the task of C. It uses the request on that task's
 * stack. No stack with OCaml's frames is unwound: cancels are returned.
 */
#include "http_stubs.h"

#ifdef HAFT_OCAML_TLS
#    include <haft/tls.h>
#endif

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static value copy_text(const char *text) {
    return caml_copy_string(text != NULL ? text : "");
}
static value some_text(const char *text) {
    CAMLparam0();
    CAMLlocal2(copy, some);
    if (text == NULL)
        CAMLreturn(Val_none);
    copy = caml_copy_string(text);
    some = caml_alloc_some(copy);
    CAMLreturn(some);
}

/* ---- The server ---- */

typedef struct server {
    haft_http_server_t *http;
    haft_tls_context_t *tls;
    value handler; /* a root */
} server_t;

static int answer(haft_http_request_t *request, void *argument) {
    const server_t *server = argument;
    bool before = haft_io_return_cancels(true);
    value code = caml_callback_exn(server->handler, haft_ocaml_of_pointer(request));
    haft_io_return_cancels(before);
    return Is_exception_result(code) ? -EIO : (int)Long_val(code);
}

static int route_all(server_t *server) {
    static const char *const methods[] = {"GET",   "HEAD",   "POST",   "PUT",
                                          "PATCH", "DELETE", "OPTIONS"};
    int code = 0;
    for (size_t i = 0; i < sizeof methods / sizeof methods[0] && code == 0; i++) {
        code = haft_http_server_route(server->http, methods[i], "/{path...}", answer, server);
        if (code == 0)
            code = haft_http_server_route(server->http, methods[i], "/", answer, server);
        if (code == -EEXIST) /* the program has its own handler there */
            code = 0;
    }
    return code;
}

value haft_ocaml_http_server(value handler);
/* 0: no memory. */
value haft_ocaml_http_server(value handler) {
    CAMLparam1(handler);
    server_t *server = calloc(1, sizeof *server);
    if (server == NULL)
        CAMLreturn(Val_long(0));
    server->http = haft_http_server_new();
    if (server->http == NULL) {
        free(server);
        CAMLreturn(Val_long(0));
    }
    server->handler = handler;
    caml_register_generational_global_root(&server->handler);
    CAMLreturn(haft_ocaml_of_pointer(server));
}

value haft_ocaml_http_server_free(value pointer);
value haft_ocaml_http_server_free(value pointer) {
    server_t *server = haft_ocaml_to_pointer(pointer);
    haft_http_server_free(server->http);
#ifdef HAFT_OCAML_TLS
    haft_tls_context_free(server->tls);
#endif
    caml_remove_generational_global_root(&server->handler);
    free(server);
    return Val_unit;
}

value haft_ocaml_http_set_limits(value pointer, value limits);
/* In the order of Limits.t in haft_http__serving.ml; 0: the default. */
value haft_ocaml_http_set_limits(value pointer, value limits) {
    const server_t *server = haft_ocaml_to_pointer(pointer);
    const haft_http_limits_t all = {
        .body = (uint64_t)Long_val(Field(limits, 0)),
        .connections = (size_t)Long_val(Field(limits, 1)),
        .connections_of_client = (size_t)Long_val(Field(limits, 2)),
        .idle_time = Long_val(Field(limits, 3)),
        .head_time = Long_val(Field(limits, 4)),
        .body_time = Long_val(Field(limits, 5)),
        .write_time = Long_val(Field(limits, 6)),
        .grace = Long_val(Field(limits, 7)),
    };
    return Val_long(haft_http_server_set_limits(server->http, &all));
}

value haft_ocaml_http_serve_files(value pointer, value prefix, value folder);
value haft_ocaml_http_serve_files(value pointer, value prefix, value folder) {
    const server_t *server = haft_ocaml_to_pointer(pointer);
    return Val_long(
        haft_http_server_serve_files(server->http, String_val(prefix), String_val(folder)));
}

value haft_ocaml_http_serve_counters(value pointer, value path);
value haft_ocaml_http_serve_counters(value pointer, value path) {
    const server_t *server = haft_ocaml_to_pointer(pointer);
    return Val_long(haft_http_server_serve_counters(server->http, String_val(path)));
}

value haft_ocaml_http_debug_pages(value pointer, value prefix);
value haft_ocaml_http_debug_pages(value pointer, value prefix) {
    const server_t *server = haft_ocaml_to_pointer(pointer);
    return Val_long(haft_http_server_serve_debug_pages(server->http, String_val(prefix)));
}

value haft_ocaml_http_compress(value pointer, value compresses);
value haft_ocaml_http_compress(value pointer, value compresses) {
    const server_t *server = haft_ocaml_to_pointer(pointer);
    haft_http_server_set_compression(server->http,
                                     &(haft_http_compression_t){.off = !Bool_val(compresses)});
    return Val_unit;
}

value haft_ocaml_http_access_log(value pointer, value format);
value haft_ocaml_http_access_log(value pointer, value format) {
    static const haft_http_log_format_t formats[] = {HAFT_HTTP_LOG_COMMON, HAFT_HTTP_LOG_COMBINED,
                                                     HAFT_HTTP_LOG_JSON};
    const server_t *server = haft_ocaml_to_pointer(pointer);
    haft_http_server_set_access_log(server->http, formats[Long_val(format)], NULL, NULL);
    return Val_unit;
}

value haft_ocaml_http_trust_proxies(value pointer, value networks, value field);
value haft_ocaml_http_trust_proxies(value pointer, value networks, value field) {
    const server_t *server = haft_ocaml_to_pointer(pointer);
    return Val_long(
        haft_http_server_trust_proxies(server->http, String_val(networks), String_val(field)));
}

value haft_ocaml_http_tls(value pointer, value chain, value key);
value haft_ocaml_http_tls(value pointer, value chain, value key) {
#ifdef HAFT_OCAML_TLS
    server_t *server = haft_ocaml_to_pointer(pointer);
    server->tls = haft_tls_server_context();
    if (server->tls == NULL)
        return Val_long(-ENOMEM);
    int code = haft_tls_add_certificate(server->tls, String_val(chain), String_val(key));
    return Val_long(code != 0 ? code : haft_http_server_set_tls(server->http, server->tls));
#else
    (void)pointer, (void)chain, (void)key;
    return Val_long(-EPROTONOSUPPORT);
#endif
}

value haft_ocaml_http_stop(value pointer);
value haft_ocaml_http_stop(value pointer) {
    const server_t *server = haft_ocaml_to_pointer(pointer);
    haft_http_server_stop(server->http);
    return Val_unit;
}

typedef struct {
    haft_ocaml_work_t work;
    server_t *server;
    int listener;
} serving_t;

static intptr_t serve(haft_ocaml_work_t *work) {
    const serving_t *serving = (const serving_t *)(const void *)work;
    return haft_http_server_serve(serving->server->http, serving->listener);
}

value haft_ocaml_http_serve(value pointer, value listener, value slot);
value haft_ocaml_http_serve(value pointer, value listener, value slot) {
    server_t *server = haft_ocaml_to_pointer(pointer);
    int code = route_all(server);
    serving_t *serving = code == 0 ? calloc(1, sizeof *serving) : NULL;
    if (serving == NULL) {
        haft_io_close((int)Long_val(listener));
        return Val_long(code != 0 ? code : -ENOMEM);
    }
    serving->work.work = serve;
    serving->server = server;
    serving->listener = (int)Long_val(listener);
    return Val_long(haft_ocaml_io_begin(&serving->work, Long_val(slot)));
}

/* ---- The request ---- */

#define TEXT_OF_REQUEST(name, function)                                                            \
    value haft_ocaml_http_##name(value request);                                                   \
    value haft_ocaml_http_##name(value request) {                                                  \
        return copy_text(function(haft_ocaml_to_pointer(request)));                                \
    }
TEXT_OF_REQUEST(method, haft_http_request_method)
TEXT_OF_REQUEST(target, haft_http_request_target)
TEXT_OF_REQUEST(version, haft_http_request_version)
TEXT_OF_REQUEST(peer, haft_http_request_peer)
TEXT_OF_REQUEST(client_address, haft_http_request_client_address)

#define NAMED_TEXT_OF_REQUEST(name, function)                                                      \
    value haft_ocaml_http_##name(value request, value of);                                         \
    value haft_ocaml_http_##name(value request, value of) {                                        \
        return some_text(function(haft_ocaml_to_pointer(request), String_val(of)));                \
    }
NAMED_TEXT_OF_REQUEST(header, haft_http_request_header)
NAMED_TEXT_OF_REQUEST(query, haft_http_request_query)
NAMED_TEXT_OF_REQUEST(cookie, haft_http_request_cookie)

value haft_ocaml_http_header_at(value request, value number);
/* The name and the value, or 0. */
value haft_ocaml_http_header_at(value request, value number) {
    CAMLparam0();
    CAMLlocal3(pair, name, text);
    const char *key, *content;
    if (!haft_http_request_header_at(haft_ocaml_to_pointer(request), (size_t)Long_val(number), &key,
                                     &content))
        CAMLreturn(Val_long(0));
    name = caml_copy_string(key);
    text = caml_copy_string(content);
    pair = caml_alloc_tuple(2);
    Store_field(pair, 0, name);
    Store_field(pair, 1, text);
    CAMLreturn(pair);
}

/* ---- Its body ---- */

value haft_ocaml_http_limit_body(value request, value size);
value haft_ocaml_http_limit_body(value request, value size) {
    haft_http_request_limit_body(haft_ocaml_to_pointer(request), (uint64_t)Long_val(size));
    return Val_unit;
}

value haft_ocaml_http_read(value request, value memory, value at, value size);
value haft_ocaml_http_read(value request, value memory, value at, value size) {
    CAMLparam1(memory);
    ssize_t got =
        haft_http_request_read(haft_ocaml_to_pointer(request),
                               HAFT_OCAML_MEMORY(memory) + Long_val(at), (size_t)Long_val(size));
    CAMLreturn(Val_long(got));
}

value haft_ocaml_http_body(value request);
/* A text, or an error. */
value haft_ocaml_http_body(value request) {
    char *body;
    ssize_t size = haft_http_request_body(haft_ocaml_to_pointer(request), &body);
    return size < 0 ? Val_long(size) : caml_alloc_initialized_string((mlsize_t)size, body);
}

value haft_ocaml_http_multipart(value request);
/* The multipart reader of the body; or an error, below 0. */
value haft_ocaml_http_multipart(value request) {
    haft_http_multipart_t *multipart;
    int code = haft_http_multipart_begin(haft_ocaml_to_pointer(request), &multipart);
    return code < 0 ? Val_long(code) : haft_ocaml_of_pointer(multipart);
}

value haft_ocaml_http_next_part(value multipart);
/* Name, name of the file, type; or an error, or 0: there are no more. */
value haft_ocaml_http_next_part(value multipart) {
    CAMLparam0();
    CAMLlocal2(result, text);
    haft_http_part_t part;
    int code = haft_http_multipart_next(haft_ocaml_to_pointer(multipart), &part);
    if (code != 1)
        CAMLreturn(Val_long(code));
    result = caml_alloc_tuple(3);
    text = copy_text(part.name);
    Store_field(result, 0, text);
    text = some_text(part.file_name);
    Store_field(result, 1, text);
    text = some_text(part.type);
    Store_field(result, 2, text);
    CAMLreturn(result);
}

value haft_ocaml_http_read_part(value multipart, value memory, value at, value size);
value haft_ocaml_http_read_part(value multipart, value memory, value at, value size) {
    CAMLparam1(memory);
    ssize_t got =
        haft_http_multipart_read(haft_ocaml_to_pointer(multipart),
                                 HAFT_OCAML_MEMORY(memory) + Long_val(at), (size_t)Long_val(size));
    CAMLreturn(Val_long(got));
}

/* ---- The answer ---- */

value haft_ocaml_http_set_header(value request, value name, value text);
value haft_ocaml_http_set_header(value request, value name, value text) {
    return Val_long(haft_http_answer_set_header(haft_ocaml_to_pointer(request), String_val(name),
                                                String_val(text)));
}

value haft_ocaml_http_set_cookie(value request, value name, value text, value options);
/* `options`: path, domain, max_age, for_scripts, for_http, same_site. */
value haft_ocaml_http_set_cookie(value request, value name, value text, value options) {
    const char *domain = String_val(Field(options, 1)), *site = String_val(Field(options, 5));
    const haft_http_cookie_options_t given = {
        .path = String_val(Field(options, 0)),
        .domain = domain[0] == '\0' ? NULL : domain,
        .max_age = Long_val(Field(options, 2)),
        .for_scripts = Bool_val(Field(options, 3)),
        .for_http = Bool_val(Field(options, 4)),
        .same_site = site[0] == '\0' ? NULL : site,
    };
    return Val_long(haft_http_answer_set_cookie_with(&given, haft_ocaml_to_pointer(request),
                                                     String_val(name), String_val(text)));
}

value haft_ocaml_http_answer(value request, value status, value type, value body);
value haft_ocaml_http_answer(value request, value status, value type, value body) {
    size_t size = caml_string_length(body);
    char *text = haft_ocaml_bytes_of(body), *kind = haft_ocaml_bytes_of(type);
    int code = -ENOMEM;
    if (text != NULL && kind != NULL)
        code = haft_http_answer(haft_ocaml_to_pointer(request), (int)Long_val(status),
                                kind[0] == '\0' ? NULL : kind, text, size);
    free(text);
    free(kind);
    return Val_long(code);
}

value haft_ocaml_http_answer_file(value request, value path, value type);
value haft_ocaml_http_answer_file(value request, value path, value type) {
    char *name = haft_ocaml_bytes_of(path), *kind = haft_ocaml_bytes_of(type);
    int code = -ENOMEM;
    if (name != NULL && kind != NULL) {
        int file = haft_io_open(name, O_RDONLY | O_CLOEXEC, 0);
        code = file;
        if (file >= 0) {
            code = haft_http_answer_file(haft_ocaml_to_pointer(request), file,
                                         kind[0] == '\0' ? NULL : kind);
            haft_io_close(file);
        }
    }
    free(name);
    free(kind);
    return Val_long(code);
}

value haft_ocaml_http_begin(value request, value status, value type, value size);
/* `size` -1: it is not known. */
value haft_ocaml_http_begin(value request, value status, value type, value size) {
    char *kind = haft_ocaml_bytes_of(type);
    int code = -ENOMEM;
    if (kind != NULL)
        code = haft_http_answer_begin(
            haft_ocaml_to_pointer(request), (int)Long_val(status), kind[0] == '\0' ? NULL : kind,
            Long_val(size) < 0 ? HAFT_HTTP_UNKNOWN_SIZE : (uint64_t)Long_val(size));
    free(kind);
    return Val_long(code);
}

value haft_ocaml_http_write(value request, value text);
value haft_ocaml_http_write(value request, value text) {
    size_t size = caml_string_length(text);
    char *bytes = haft_ocaml_bytes_of(text);
    int code = bytes == NULL ? -ENOMEM
                             : haft_http_answer_write(haft_ocaml_to_pointer(request), bytes, size);
    free(bytes);
    return Val_long(code);
}

value haft_ocaml_http_flush(value request);
value haft_ocaml_http_flush(value request) {
    return Val_long(haft_http_answer_flush(haft_ocaml_to_pointer(request)));
}

value haft_ocaml_http_note_failure(value request, value text);
value haft_ocaml_http_note_failure(value request, value text) {
    haft_http_request_note_failure(haft_ocaml_to_pointer(request), String_val(text));
    return Val_unit;
}

/* ---- Events ---- */

value haft_ocaml_http_events_begin(value request);
value haft_ocaml_http_events_begin(value request) {
    return Val_long(haft_http_events_begin(haft_ocaml_to_pointer(request)));
}

value haft_ocaml_http_events_send(value request, value type, value id, value data);
value haft_ocaml_http_events_send(value request, value type, value id, value data) {
    char *texts[] = {haft_ocaml_bytes_of(type), haft_ocaml_bytes_of(id), haft_ocaml_bytes_of(data)};
    int code = -ENOMEM;
    if (texts[0] != NULL && texts[1] != NULL && texts[2] != NULL)
        code = haft_http_events_send(
            haft_ocaml_to_pointer(request),
            &(haft_http_event_t){.type = texts[0][0] == '\0' ? NULL : texts[0],
                                 .id = texts[1][0] == '\0' ? NULL : texts[1],
                                 .data = texts[2]});
    for (int i = 0; i < 3; i++)
        free(texts[i]);
    return Val_long(code);
}

/* ---- WebSocket ---- */

value haft_ocaml_http_websocket(value request, value origins);
/* 0: the request has been answered with an error. */
value haft_ocaml_http_websocket(value request, value origins) {
    char *copy = haft_ocaml_bytes_of(origins);
    const haft_http_websocket_options_t options = {
        .origins = copy == NULL || copy[0] == '\0' ? NULL : copy};
    haft_http_websocket_t *socket =
        haft_http_websocket_accept_with(&options, haft_ocaml_to_pointer(request));
    free(copy);
    return haft_ocaml_of_pointer(socket);
}

value haft_ocaml_http_websocket_receive(value socket);
/* An error, or whether it is binary, and the bytes. */
value haft_ocaml_http_websocket_receive(value socket) {
    CAMLparam0();
    CAMLlocal2(pair, bytes);
    haft_http_websocket_message_t message;
    int code = haft_http_websocket_receive(haft_ocaml_to_pointer(socket), &message);
    if (code != 0)
        CAMLreturn(Val_long(code));
    bytes = caml_alloc_initialized_string(message.size, message.bytes);
    pair = caml_alloc_tuple(2);
    Store_field(pair, 0, Val_bool(message.kind == HAFT_HTTP_WEBSOCKET_BINARY));
    Store_field(pair, 1, bytes);
    CAMLreturn(pair);
}

typedef struct {
    haft_ocaml_work_t work;
    haft_http_websocket_t *socket;
    haft_http_websocket_kind_t kind;
    int close_code; /* 0: a message */
    size_t size;
    char bytes[];
} sending_t;

static intptr_t send_message(haft_ocaml_work_t *work) {
    const sending_t *it = (const sending_t *)(const void *)work;
    return it->close_code != 0
               ? haft_http_websocket_close(it->socket, it->close_code, it->bytes)
               : haft_http_websocket_send(it->socket, it->kind, it->bytes, it->size);
}

value haft_ocaml_http_websocket_send(value socket, value kind, value text, value slot);
/* `kind`: 1: text; 2: binary; others: closes with this code, for this reason. */
value haft_ocaml_http_websocket_send(value socket, value kind, value text, value slot) {
    size_t size = caml_string_length(text);
    sending_t *sending = calloc(1, sizeof *sending + size + 1);
    if (sending == NULL)
        return Val_long(-ENOMEM);
    sending->work.work = send_message;
    sending->socket = haft_ocaml_to_pointer(socket);
    int number = (int)Long_val(kind);
    if (number == HAFT_HTTP_WEBSOCKET_TEXT || number == HAFT_HTTP_WEBSOCKET_BINARY)
        sending->kind = (haft_http_websocket_kind_t)number;
    else
        sending->close_code = number;
    sending->size = size;
    memcpy(sending->bytes, String_val(text), size);
    return Val_long(haft_ocaml_io_begin(&sending->work, Long_val(slot)));
}
