/* SPDX-License-Identifier: MIT */
/*
 * The client of libhaft-http for OCaml, and its WebSockets. A question is work of a task of C, in a
 * scope of its own, by which OCaml code cancels it.
 */
#include "http_stubs.h"

#include <errno.h>

value haft_ocaml_http_client(value options);
/* `options`: kept, connections, redirects, body, whether it keeps cookies. 0: no memory. It lives
   as long as the process. */
value haft_ocaml_http_client(value options) {
    const haft_http_client_options_t given = {
        .kept = (size_t)Long_val(Field(options, 0)),
        .connections = (size_t)Long_val(Field(options, 1)),
        .redirects = (int)Long_val(Field(options, 2)),
        .body = (uint64_t)Long_val(Field(options, 3)),
        .cookies = Bool_val(Field(options, 4)) ? haft_http_cookie_jar_new() : NULL,
    };
    return haft_ocaml_of_pointer(haft_http_client_new_with(&given));
}

/* Work in a scope of its own, by which OCaml code cancels it. */
typedef struct stoppable stoppable_t;
struct stoppable {
    haft_ocaml_work_t work; /* must be first, as this in what has one: addresses are cast */
    haft_io_scope_t *scope; /* while it works */
    bool cancelled;
    intptr_t (*function)(stoppable_t *self);
    intptr_t result;
};

static void *call_in_scope(void *argument) {
    stoppable_t *it = argument;
    it->scope = haft_io_this_scope();
    if (it->cancelled)
        haft_io_scope_cancel(it->scope);
    it->result = it->function(it);
    return NULL;
}

static intptr_t work_in_scope(haft_ocaml_work_t *work) {
    stoppable_t *it = (stoppable_t *)(void *)work;
    it->result = -ECANCELED;
    haft_io_scope_with(&(haft_io_scope_options_t){.name = "question"}, call_in_scope, it, NULL);
    it->scope = NULL;
    return it->result;
}

/* Returns what haft_ocaml_http_cancel takes, or, as an error, 0: no memory. */
static value begin_stoppable(stoppable_t *it, intptr_t (*function)(stoppable_t *self), value slot) {
    it->work.work = work_in_scope;
    it->function = function;
    return haft_ocaml_io_begin(&it->work, Long_val(slot)) == 0 ? haft_ocaml_of_pointer(it)
                                                               : Val_long(0);
}

value haft_ocaml_http_cancel(value work);
/* While its end has not been taken. */
value haft_ocaml_http_cancel(value work) {
    stoppable_t *it = haft_ocaml_to_pointer(work);
    it->cancelled = true;
    if (it->scope != NULL)
        haft_io_scope_cancel(it->scope);
    return Val_unit;
}

typedef struct asking {
    stoppable_t stoppable;
    haft_http_client_t *client;
    bool connects; /* to a WebSocket */
    bool whole;    /* reads the body, too */
    char *method, *url, *type, *body, *protocols;
    size_t size;
    haft_http_header_t *headers;
    size_t header_count;
    haft_http_reply_t *reply;
    haft_http_websocket_t *socket;
    bool is_taken; /* OCaml code frees the reply or the socket */
    char *answer;
    ssize_t answer_size;
    char failure[200];
} asking_t;

static intptr_t ask(stoppable_t *self) {
    asking_t *asking = (asking_t *)(void *)self;
    const haft_http_question_t question = {
        .method = asking->method[0] == '\0' ? NULL : asking->method,
        .url = asking->url,
        .headers = asking->headers,
        .header_count = asking->header_count,
        .type = asking->type[0] == '\0' ? NULL : asking->type,
        .body = asking->size == 0 ? NULL : asking->body,
        .size = asking->size,
        .failure = asking->failure,
        .failure_size = sizeof asking->failure,
    };
    if (asking->connects) {
        const haft_http_websocket_options_t options = {
            .protocols = asking->protocols[0] == '\0' ? NULL : asking->protocols};
        return haft_http_websocket_connect_with(&options, asking->client, &question,
                                                &asking->socket);
    }
    int code = haft_http_client_ask(asking->client, &question, &asking->reply);
    if (code == 0 && asking->whole) {
        asking->answer_size = haft_http_reply_body(asking->reply, &asking->answer);
        code = asking->answer_size < 0 ? (int)asking->answer_size : 0;
    }
    return code;
}

static void free_asking(haft_ocaml_work_t *work) {
    asking_t *asking = (asking_t *)(void *)work;
    if (!asking->is_taken) {
        haft_http_reply_free(asking->reply);
        haft_http_websocket_free(asking->socket);
    }
    for (size_t i = 0; i < asking->header_count; i++) {
        free((char *)asking->headers[i].name);
        free((char *)asking->headers[i].value);
    }
    free(asking->headers);
    free(asking->method);
    free(asking->url);
    free(asking->type);
    free(asking->body);
    free(asking->protocols);
    free(asking);
}

value haft_ocaml_http_ask(value client, value question, value slot);
/* `question`: method, URL, type, body, headers, protocols, kind: 0: a reply with its body; 1: a
   reply whose body is read afterwards; 2: a WebSocket. */
value haft_ocaml_http_ask(value client, value question, value slot) {
    asking_t *asking = calloc(1, sizeof *asking);
    if (asking == NULL)
        return Val_long(0);
    asking->stoppable.work.free = free_asking;
    asking->client = haft_ocaml_to_pointer(client);
    asking->method = haft_ocaml_bytes_of(Field(question, 0));
    asking->url = haft_ocaml_bytes_of(Field(question, 1));
    asking->type = haft_ocaml_bytes_of(Field(question, 2));
    asking->body = haft_ocaml_bytes_of(Field(question, 3));
    asking->size = caml_string_length(Field(question, 3));
    asking->protocols = haft_ocaml_bytes_of(Field(question, 5));
    asking->whole = Field(question, 6) == Val_long(0);
    asking->connects = Field(question, 6) == Val_long(2);
    value headers = Field(question, 4);
    asking->headers = calloc(Wosize_val(headers) + 1, sizeof *asking->headers);
    bool enough = asking->method != NULL && asking->url != NULL && asking->type != NULL &&
                  asking->body != NULL && asking->headers != NULL && asking->protocols != NULL;
    for (size_t i = 0; enough && i < Wosize_val(headers); i++) {
        asking->header_count++;
        asking->headers[i].name = haft_ocaml_bytes_of(Field(Field(headers, i), 0));
        asking->headers[i].value = haft_ocaml_bytes_of(Field(Field(headers, i), 1));
        enough = asking->headers[i].name != NULL && asking->headers[i].value != NULL;
    }
    if (!enough) {
        free_asking(&asking->stoppable.work);
        return Val_long(0);
    }
    return begin_stoppable(&asking->stoppable, ask, slot);
}

value haft_ocaml_http_taken_reply(value unit);
/* The status, the fields and the body. */
value haft_ocaml_http_taken_reply(value unit) {
    CAMLparam1(unit);
    CAMLlocal5(result, headers, pair, text, cell);
    const asking_t *asking = (const asking_t *)(const void *)haft_ocaml_io_taken();
    const char *name, *content;
    headers = Val_emptylist;
    for (size_t i = 0; haft_http_reply_header_at(asking->reply, i, &name, &content); i++) {
        pair = caml_alloc_tuple(2);
        text = caml_copy_string(name);
        Store_field(pair, 0, text);
        text = caml_copy_string(content);
        Store_field(pair, 1, text);
        cell = caml_alloc_small(2, Tag_cons);
        Field(cell, 0) = pair;
        Field(cell, 1) = headers;
        headers = cell;
    }
    text = asking->whole
               ? caml_alloc_initialized_string((mlsize_t)asking->answer_size, asking->answer)
               : caml_copy_string("");
    result = caml_alloc_tuple(3);
    Store_field(result, 0, Val_long(haft_http_reply_status(asking->reply)));
    Store_field(result, 1, headers); /* the last first */
    Store_field(result, 2, text);
    CAMLreturn(result);
}

value haft_ocaml_http_taken_failure(value unit);
value haft_ocaml_http_taken_failure(value unit) {
    (void)unit;
    return caml_copy_string(((const asking_t *)(const void *)haft_ocaml_io_taken())->failure);
}

value haft_ocaml_http_taken_object(value unit);
/* The reply whose body is to be read, or the socket: to be freed by OCaml code. The same, if it is
   called once more, because a signal handler has raised. */
value haft_ocaml_http_taken_object(value unit) {
    (void)unit;
    asking_t *asking = (asking_t *)(void *)haft_ocaml_io_taken();
    asking->is_taken = true;
    return haft_ocaml_of_pointer(asking->connects ? (void *)asking->socket : (void *)asking->reply);
}

typedef struct reading {
    stoppable_t stoppable;
    haft_http_reply_t *reply;
    haft_http_websocket_t *socket;
    char *memory; /* of the task that waits for it */
    size_t size;
    haft_http_websocket_message_t message;
} reading_t;

static intptr_t read_reply(stoppable_t *self) {
    const reading_t *reading = (const reading_t *)(const void *)self;
    return haft_http_reply_read(reading->reply, reading->memory, reading->size);
}

value haft_ocaml_http_reply_read(value reply, value memory, value at, value size, value slot);
value haft_ocaml_http_reply_read(value reply, value memory, value at, value size, value slot) {
    reading_t *reading = calloc(1, sizeof *reading);
    if (reading == NULL)
        return Val_long(0);
    reading->reply = haft_ocaml_to_pointer(reply);
    reading->memory = HAFT_OCAML_MEMORY(memory) + Long_val(at);
    reading->size = (size_t)Long_val(size);
    return begin_stoppable(&reading->stoppable, read_reply, slot);
}

value haft_ocaml_http_reply_free(value reply);
value haft_ocaml_http_reply_free(value reply) {
    haft_http_reply_free(haft_ocaml_to_pointer(reply));
    return Val_unit;
}

static intptr_t receive_message(stoppable_t *self) {
    reading_t *reading = (reading_t *)(void *)self;
    return haft_http_websocket_receive(reading->socket, &reading->message);
}

value haft_ocaml_http_client_socket_receive(value socket, value slot);
value haft_ocaml_http_client_socket_receive(value socket, value slot) {
    reading_t *reading = calloc(1, sizeof *reading);
    if (reading == NULL)
        return Val_long(0);
    reading->socket = haft_ocaml_to_pointer(socket);
    return begin_stoppable(&reading->stoppable, receive_message, slot);
}

value haft_ocaml_http_taken_message(value unit);
/* Whether it is binary, and the bytes. */
value haft_ocaml_http_taken_message(value unit) {
    CAMLparam1(unit);
    CAMLlocal2(pair, bytes);
    const reading_t *reading = (const reading_t *)(const void *)haft_ocaml_io_taken();
    bytes = caml_alloc_initialized_string(reading->message.size, reading->message.bytes);
    pair = caml_alloc_tuple(2);
    Store_field(pair, 0, Val_bool(reading->message.kind == HAFT_HTTP_WEBSOCKET_BINARY));
    Store_field(pair, 1, bytes);
    CAMLreturn(pair);
}

value haft_ocaml_http_client_socket_free(value socket);
value haft_ocaml_http_client_socket_free(value socket) {
    haft_http_websocket_free(haft_ocaml_to_pointer(socket));
    return Val_unit;
}
