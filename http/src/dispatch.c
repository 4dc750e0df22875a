/* SPDX-License-Identifier: MIT */
/*
 * A request, for every version of HTTP: it begins, its handler is found and called inside of the
 * middleware, what that returns or leaves out becomes an answer, and it ends.
 */
#include "internal.h"
#include "trace.h"

#include <haft/scopes.h>

#include <stdio.h>

/* ---- Handlers ---- */

/* The rest of the chain of calls: the middleware of a server or group from `around` on, then that
   of the groups between there and the route, then its handler. */
typedef struct {
    haft_http_next_t next;
    const haft_http_server_t *level;
    const hafti_http_around_t *around;
    const hafti_http_entry_t *entry;
} next_t;

/* The group directly in `level` that is `owner` or is around it. */
static const haft_http_server_t *group_in(const haft_http_server_t *level,
                                          const haft_http_server_t *owner) {
    while (owner->parent != level)
        owner = owner->parent;
    return owner;
}

static int go_on(const hafti_http_around_t *around, const haft_http_server_t *level,
                 const hafti_http_entry_t *entry, haft_http_request_t *request);

static void pop(haft_scope_t *const *scope) {
    haft_scope_pop(*scope);
}

/*
 * Up to four handlers without a function between them are pushed by one function, which costs less
 * than a function for each. To pop the first pops all. A clause leaves to the function that has
 * pushed its handler: everything inside is unwound, that function's frame too, and `landed` is
 * called in its place. The function notes one number for that; the clause finds the rest.
 */
enum { HANDLERS_AT_ONCE = 4 };
typedef struct {
    haft_http_handling_t handling; /* must be first: frame_of casts its address */
    haft_scope_t scope;
} pushed_t;
typedef struct {
    haft_return_t leaving;
    unsigned uncaught; /* exceptions of C++ in flight around the frame */
    pushed_t pushed[HANDLERS_AT_ONCE];
} frame_t;

/* Between handlers of two frames there is at least a return address. */
static frame_t *frame_of(const haft_http_handling_t *handling) {
    pushed_t *first = (pushed_t *)(uintptr_t)handling;
    while (first->scope.outer == &first[-1].scope)
        first--;
    return (frame_t *)((char *)first - offsetof(frame_t, pushed));
}

static intptr_t landed(intptr_t code, intptr_t uncaught) {
    haft_set_exceptions_in_flight((unsigned)uncaught);
    return code != -ECANCELED ? code : haft_io_unwind_cancelled();
}

/* Any address in the frame but its lowest will do for `sp`. */
bool haft_http_handling_is_around(const haft_http_handling_t *handling) {
    haft_landing_t landing = {.sp = (char *)(uintptr_t)handling + 1};
    return haft_can_unwind_to(&landing);
}

void haft_http_handling_leave(const haft_http_handling_t *handling, int code) {
    if (!haft_http_handling_is_around(handling))
        haft_io_fail(code < 0 ? code : -EINVAL, "a clause has left its handler");
    frame_t *frame = frame_of(handling);
    haft_return_t *leaving = &frame->leaving;
    leaving->landing.fiber = NULL;
    leaving->landing.land = NULL;
    leaving->landing.let_go = NULL;
    leaving->landing.sp = (char *)(uintptr_t)handling + 1;
    leaving->instead = landed;
    leaving->words[0] = code;
    leaving->words[1] = (intptr_t)frame->uncaught;
    haft_unwind_to(&leaving->landing);
}

/* Not inlined, since a clause returns from it; and its frame is on the stack. */
#if defined(__clang__) || defined(__SANITIZE_ADDRESS__)
#    define ON_THE_STACK __attribute__((no_sanitize("address")))
#else
#    define ON_THE_STACK
#endif
ON_THE_STACK __attribute__((noinline)) static int go_on_under(const hafti_http_around_t *around,
                                                              const haft_http_server_t *level,
                                                              const hafti_http_entry_t *entry,
                                                              haft_http_request_t *request) {
    frame_t frame;
    frame.uncaught = haft_exceptions_in_flight();
    for (unsigned i = 0; i < HANDLERS_AT_ONCE && around != NULL && around->handler != NULL; i++) {
        pushed_t *pushed = &frame.pushed[i];
        pushed->handling = (haft_http_handling_t){request, around->argument};
        haft_scope_push(&pushed->scope, &around->handler->handles, &pushed->handling);
        around = around->inner;
    }
    __attribute__((cleanup(pop), unused)) haft_scope_t *first = &frame.pushed[0].scope;
    return go_on(around, level, entry, request);
}

static int call_next(haft_http_next_t *self, haft_http_request_t *request) {
    const next_t *here = (const next_t *)self;
    return go_on(here->around, here->level, here->entry, request);
}

static int go_on(const hafti_http_around_t *around, const haft_http_server_t *level,
                 const hafti_http_entry_t *entry, haft_http_request_t *request) {
    while (around == NULL && level != entry->owner) {
        level = group_in(level, entry->owner);
        around = level->around;
    }
    if (around == NULL)
        return entry->handler(request, entry->argument);
    if (around->handler != NULL)
        return go_on_under(around, level, entry, request);
    next_t inner = {{call_next}, level, around->inner, entry};
    return around->function(request, &inner.next, around->argument);
}

/* Answers requests for which the program has no handler; they go through the middleware, too. */
static int answer_not_found(haft_http_request_t *request, void *unused) {
    (void)unused;
    return haft_http_request_refuse(request, 404, NULL);
}

static int answer_with_methods(haft_http_request_t *request, void *unused) {
    (void)unused;
    char allowed[512] = "OPTIONS";
    size_t size = strlen(allowed);
    uint64_t methods = request->match.methods;
    if (methods >> HTTP_GET & 1)
        methods |= UINT64_C(1) << HTTP_HEAD;
    methods &= ~(UINT64_C(1) << HTTP_OPTIONS);
    for (int method = 0; methods >> method != 0 && size < sizeof allowed; method++)
        if (methods >> method & 1)
            size += (size_t)snprintf(allowed + size, sizeof allowed - size, ", %s",
                                     llhttp_method_name((llhttp_method_t)method));
    int code = haft_http_answer_set_header(request, "Allow", allowed);
    if (code != 0)
        return code;
    return request->message.parser.method == HTTP_OPTIONS
               ? haft_http_answer(request, 204, NULL, "", 0)
               : haft_http_request_refuse(request, 405, NULL);
}

/* Turns an exception that nothing has caught into an error. */
static int conclude(haft_http_request_t *request, int code) {
    haft_http_thrown_t *thrown =
        code == HAFT_IO_BY_EXCEPTION ? haft_http_request_take_thrown(request) : NULL;
    if (thrown == NULL)
        return code;
    code = thrown->conclude(thrown, request);
    thrown->free(thrown);
    return code;
}

/* Calls the handler while its task has the route's name, which a task that fails keeps. */
static int call_named(haft_http_request_t *request, const hafti_http_entry_t *entry) {
    const char *name = haft_io_task_name(haft_io_self());
    haft_io_task_set_name(entry->title);
    int code = go_on(request->server->around, request->server, entry, request);
    haft_io_task_set_name(name);
    return code;
}

static int call_handler(haft_http_request_t *request, const hafti_http_entry_t *entry) {
    int code = entry->title != NULL
                   ? call_named(request, entry)
                   : go_on(request->server->around, request->server, entry, request);
    hafti_http_protocol_t *protocol = request->protocol;
    if (protocol != NULL)
        code = protocol->finish(protocol, code);
    if (code != HAFT_IO_BY_EXCEPTION)
        hafti_http_forget_thrown(request); /* middleware of C has kept the error to itself */
    return conclude(request, hafti_http_tasks_end(request, code));
}

static void tell_failure(haft_http_request_t *request, const char *what) {
    hafti_http_log(request->server, "%s %s: %s", request->method, haft_http_request_target(request),
                   what);
}

/* The status for the handler's result, or for an answer that it has not given or completed; a
   failure gets its text. */
static int judged_status(haft_http_request_t *request, int code, bool has_begun) {
    const hafti_http_message_t *message = &request->message;
    if (code == HAFT_HTTP_REFUSED && request->refused != 0)
        return request->refused;
    if (code != 0 && code == haft_http_request_body_error(request))
        return message->status;
    if (code == -EALREADY && has_begun && request->failure == NULL)
        request->failure = "the handler has answered twice, or has set a field of an answer that "
                           "has begun";
    if (code == 0)
        request->failure =
            has_begun ? "the answer lacks bytes of its body" : "the handler has not answered";
    else if (request->failure == NULL)
        request->failure = code < 0
                               ? haft_io_error_text(code)
                               : "the handler has returned a positive number, which is no error";
    return 500;
}

/* Answers for a handler that has failed, or has not answered. */
static void judge(haft_http_request_t *request, int code) {
    bool has_begun = request->answer.progress != HAFTI_HTTP_NOT_BEGUN;
    bool is_lost =
        request->answer.failed && request->failure == NULL; /* by the client, or the network */
    if ((code == 0 && has_begun && !hafti_http_answer_lacks_bytes(&request->answer)) || is_lost)
        return;
    int status = judged_status(request, code, has_begun);
    if (request->failure != NULL)
        tell_failure(request, request->failure);
    if (has_begun && haft_http_answer_discard(request) != 0) {
        request->answer.failed = true;
        request->keeps = false;
        return;
    }
    if (request->failure != NULL)
        hafti_http_answer_discard(request); /* without the fields that the handler has set */
    hafti_http_answer_error(request, status, code);
}

static void dispatch(haft_http_request_t *request) {
    hafti_http_message_t *message = &request->message;
    hafti_http_text_t path = {haft_http_request_target(request), message->target_size};
    const char *mark = memchr(path.bytes, '?', path.size);
    if (mark != NULL)
        path.size = (size_t)(mark - path.bytes);
    if (*path.bytes == '*') {
        haft_http_answer(request, 204, NULL, "", 0);
        return;
    }
    if (message->parser.method == HTTP_CONNECT) {
        judge(request, call_handler(request, &request->server->connect));
        return;
    }
    int code = hafti_http_routes_find(request->server->routes, message, path,
                                      message->parser.method, &request->match);
    if (code != 0) {
        request->keeps = false;
        hafti_http_answer_error(request, code == -EINVAL ? 400 : code == -EMSGSIZE ? 414 : 500, 0);
        return;
    }
    const hafti_http_entry_t *entry = request->match.entry;
    hafti_http_entry_t without = {.handler = answer_not_found, .owner = request->server};
    if (entry == NULL && request->match.entries != NULL) {
        without.handler = answer_with_methods;
        without.owner = request->match.entries->owner;
    }
    judge(request, call_handler(request, entry != NULL ? entry : &without));
}

/* ---- A request ---- */

static void *send_last_words(void *argument) {
    haft_http_request_t *request = argument;
    int code = 0;
    if (request->answer.progress == HAFTI_HTTP_NOT_BEGUN) {
        hafti_http_answer_discard(request);
        code = hafti_http_answer_error(request, 500, 0);
    }
    if (code == 0 && hafti_http_answer_complete(request) == 0)
        haft_http_answer_flush(request);
    return NULL;
}

/* The handler has failed, and its stack is being unwound: answers the client, if no answer has
   begun, or if the middleware has made a whole one since. */
static void unwind_request(haft_http_request_t *request) {
    const hafti_http_answer_t *answer = &request->answer;
    bool is_of_handler = answer->progress != HAFTI_HTTP_NOT_BEGUN &&
                         (!request->is_unwound || hafti_http_answer_lacks_bytes(answer));
    if (is_of_handler || answer->failed || atomic_load(&request->server->cutting))
        return;
    request->keeps = false;
    haft_io_scope_options_t options = {.shielded = true,
                                       .deadline = haft_io_now() + HAFT_IO_SECOND};
    haft_io_scope_with(&options, send_last_words, request, NULL);
}

static void end_span(const haft_http_request_t *request) {
    const hafti_http_match_t *match = &request->match;
    const hafti_http_entry_t *entry = match->entries != NULL ? match->entry : NULL;
    haft_io_trace_end(entry != NULL ? entry->title : request->method, request->answer.status);
}

void hafti_http_request_end(haft_http_request_t *request) {
    if (request->served != NULL)
        request->served->request = NULL;
    hafti_http_tasks_end(request, -ECANCELED);
    if (request->is_running) {
        end_span(request);
        unwind_request(request);
        hafti_http_tasks_end(request, -ECANCELED); /* of the application's function for errors */
        if (request->kept != NULL)
            hafti_http_kept_end(request, true);
        if (request->server->notes_requests)
            hafti_http_note_request(request);
    }
    if (request->is_traced)
        haft_http_trace_end();
    if (request->protocol != NULL)
        request->protocol->free(request->protocol);
    hafti_http_forget_thrown(request);
    hafti_http_answer_end(request);
    hafti_http_message_end(&request->message);
}

void hafti_http_request_begin(haft_http_request_t *request, haft_http_server_t *server,
                              hafti_http_stream_t *stream, hafti_http_served_t *served) {
    memset(request, 0, offsetof(haft_http_request_t, match));
    request->server = server;
    request->served = served;
    request->framing = &hafti_http1_framing;
    request->match.entries = NULL;
    request->match.count = 0;
    request->form = NULL;
    request->failure = NULL;
    request->kept = NULL;
    hafti_http_message_begin(&request->message, stream, &server->limits, HTTP_REQUEST);
    request->message.takes_connect = server->connect.handler != NULL;
}

static void begin_to_watch(haft_http_request_t *request) {
    if (request->server->notes_requests)
        hafti_http_begin_to_note(request);
    if (request->server->traces)
        hafti_http_trace_request(request);
}

/* An answer without a handler to what was no request. */
static void answer_refused(haft_http_request_t *request) {
    hafti_http_message_t *message = &request->message;
    request->method = "?";
    message->field_count = 0;        /* it has no memory for them, or for too few */
    message->target = message->head; /* an empty one */
    message->target_size = 0;
    message->block[message->head] = '\0';
    message->memory = message->head + 1;
    begin_to_watch(request);
    haft_io_trace_begin(request->method);
    request->keeps = false;
    message->parser.http_minor = 1;
    hafti_http_answer_error(request, message->status, 0);
    end_span(request);
}

static void answer_request(haft_http_request_t *request) {
    hafti_http_message_t *message = &request->message;
    message->block[message->target + message->target_size] = '\0'; /* a space */
    request->method = llhttp_method_name((llhttp_method_t)message->parser.method);
    request->is_head = message->parser.method == HTTP_HEAD;
    request->keeps = hafti_http_message_is_kept(message);
    if (request->server->keeping != HAFTI_HTTP_FORGETS)
        hafti_http_kept_begin(request);
    begin_to_watch(request);
    request->is_running = true;
    request->served->request = request;
    haft_io_trace_begin(request->method);
    if (request->is_traced)
        hafti_http_identify_span();
    dispatch(request);
    if (request->kept != NULL)
        hafti_http_kept_end(request, false);
    end_span(request);
    request->served->request = NULL;
    request->is_running = false;
}

void hafti_http_request_answer(haft_http_request_t *request, int code) {
    if (code == 0)
        answer_request(request);
    else
        answer_refused(request);
}
