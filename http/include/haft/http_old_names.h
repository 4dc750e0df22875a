/* SPDX-License-Identifier: MIT */
/*
 * Haft HTTP: the names that functions had before 0.4, with the order of arguments of then. A call
 * compiles with a warning that names the function to call now. Version 0.5 is without them.
 * Part of haft/http.h, which includes it, unless HAFT_HTTP_NO_OLD_NAMES is defined.
 */
#ifndef HAFT_HTTP_OLD_NAMES_H
#define HAFT_HTTP_OLD_NAMES_H

#include "http.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef haft_http_websocket_message_t haft_http_message_t;
typedef haft_http_websocket_kind_t haft_http_message_kind_t;
#define HAFT_HTTP_TEXT HAFT_HTTP_WEBSOCKET_TEXT
#define HAFT_HTTP_BINARY HAFT_HTTP_WEBSOCKET_BINARY

#define HAFT_HTTP_OLD(name) __attribute__((deprecated("it is called " name " now")))

HAFT_HTTP_OLD("haft_http_server_set_limits")
static inline int haft_http_set_limits(haft_http_server_t *server,
                                       const haft_http_limits_t *limits) {
    return haft_http_server_set_limits(server, limits);
}
HAFT_HTTP_OLD("haft_http_server_set_tls")
static inline int haft_http_set_tls(haft_http_server_t *server, haft_tls_context_t *context) {
    return haft_http_server_set_tls(server, context);
}
HAFT_HTTP_OLD("haft_http_server_trust_proxies")
static inline int haft_http_trust_proxies(haft_http_server_t *server, const char *networks,
                                          const char *field) {
    return haft_http_server_trust_proxies(server, networks, field);
}
HAFT_HTTP_OLD("haft_http_server_expect_proxy_header")
static inline int haft_http_expect_proxy_header(haft_http_server_t *server, int listener) {
    return haft_http_server_expect_proxy_header(server, listener);
}
HAFT_HTTP_OLD("haft_http_server_set_log")
static inline void haft_http_set_log(haft_http_server_t *server, haft_http_log_t *log,
                                     void *argument) {
    haft_http_server_set_log(server, log, argument);
}
HAFT_HTTP_OLD("haft_http_server_on_error")
static inline void haft_http_on_error(haft_http_server_t *server,
                                      haft_http_error_handler_t *handler, void *argument) {
    haft_http_server_on_error(server, handler, argument);
}
HAFT_HTTP_OLD("haft_http_answer_problem")
static inline int haft_http_problem(haft_http_request_t *request, const haft_http_error_t *error,
                                    void *argument) {
    return haft_http_answer_problem(request, error, argument);
}
HAFT_HTTP_OLD("haft_http_server_run_with")
static inline int haft_http_run(haft_http_server_t *server,
                                const haft_http_run_options_t *options) {
    return haft_http_server_run_with(options, server);
}
HAFT_HTTP_OLD("haft_http_server_stop")
static inline void haft_http_stop(haft_http_server_t *server) {
    haft_http_server_stop(server);
}
HAFT_HTTP_OLD("haft_http_server_restart")
static inline int haft_http_restart(haft_http_server_t *server) {
    return haft_http_server_restart(server);
}
HAFT_HTTP_OLD("haft_http_server_port")
static inline uint16_t haft_http_port(const haft_http_server_t *server) {
    return haft_http_server_port(server);
}
HAFT_HTTP_OLD("haft_http_server_route")
static inline int haft_http_route(haft_http_server_t *server, const char *method, const char *path,
                                  haft_http_handler_t *handler, void *argument) {
    return haft_http_server_route(server, method, path, handler, argument);
}
HAFT_HTTP_OLD("haft_http_server_mistake")
static inline const char *haft_http_mistake(const haft_http_server_t *server) {
    return haft_http_server_mistake(server);
}
HAFT_HTTP_OLD("haft_http_server_get")
static inline int haft_http_get(haft_http_server_t *server, const char *path,
                                haft_http_handler_t *handler, void *argument) {
    return haft_http_server_get(server, path, handler, argument);
}
HAFT_HTTP_OLD("haft_http_server_post")
static inline int haft_http_post(haft_http_server_t *server, const char *path,
                                 haft_http_handler_t *handler, void *argument) {
    return haft_http_server_post(server, path, handler, argument);
}
HAFT_HTTP_OLD("haft_http_server_put")
static inline int haft_http_put(haft_http_server_t *server, const char *path,
                                haft_http_handler_t *handler, void *argument) {
    return haft_http_server_put(server, path, handler, argument);
}
HAFT_HTTP_OLD("haft_http_server_patch")
static inline int haft_http_patch(haft_http_server_t *server, const char *path,
                                  haft_http_handler_t *handler, void *argument) {
    return haft_http_server_patch(server, path, handler, argument);
}
HAFT_HTTP_OLD("haft_http_server_delete")
static inline int haft_http_delete(haft_http_server_t *server, const char *path,
                                   haft_http_handler_t *handler, void *argument) {
    return haft_http_server_delete(server, path, handler, argument);
}
HAFT_HTTP_OLD("haft_http_server_use")
static inline int haft_http_use(haft_http_server_t *server, haft_http_around_t *around,
                                void *argument) {
    return haft_http_server_use(server, around, argument);
}
HAFT_HTTP_OLD("haft_http_server_handle")
static inline int haft_http_handle(haft_http_server_t *server, const haft_handler_t *handler,
                                   void *argument) {
    return haft_http_server_handle(server, handler, argument);
}
HAFT_HTTP_OLD("haft_http_server_group")
static inline haft_http_server_t *haft_http_group(haft_http_server_t *server, const char *prefix) {
    return haft_http_server_group(server, prefix);
}
HAFT_HTTP_OLD("haft_http_request_method")
static inline const char *haft_http_method(const haft_http_request_t *request) {
    return haft_http_request_method(request);
}
HAFT_HTTP_OLD("haft_http_request_target")
static inline const char *haft_http_target(const haft_http_request_t *request) {
    return haft_http_request_target(request);
}
HAFT_HTTP_OLD("haft_http_request_version")
static inline const char *haft_http_version(const haft_http_request_t *request) {
    return haft_http_request_version(request);
}
HAFT_HTTP_OLD("haft_http_request_path")
static inline const char *haft_http_path(haft_http_request_t *request, const char *name) {
    return haft_http_request_path(request, name);
}
HAFT_HTTP_OLD("haft_http_request_query")
static inline const char *haft_http_query(haft_http_request_t *request, const char *name) {
    return haft_http_request_query(request, name);
}
HAFT_HTTP_OLD("haft_http_request_header")
static inline const char *haft_http_header(haft_http_request_t *request, const char *name) {
    return haft_http_request_header(request, name);
}
HAFT_HTTP_OLD("haft_http_request_header_at")
static inline bool haft_http_header_at(haft_http_request_t *request, size_t number,
                                       const char **name, const char **value) {
    return haft_http_request_header_at(request, number, name, value);
}
HAFT_HTTP_OLD("haft_http_request_cookie")
static inline const char *haft_http_cookie(haft_http_request_t *request, const char *name) {
    return haft_http_request_cookie(request, name);
}
HAFT_HTTP_OLD("haft_http_request_allocate")
static inline void *haft_http_allocate(haft_http_request_t *request, size_t size) {
    return haft_http_request_allocate(request, size);
}
HAFT_HTTP_OLD("haft_http_request_peer")
static inline const char *haft_http_peer(haft_http_request_t *request) {
    return haft_http_request_peer(request);
}
HAFT_HTTP_OLD("haft_http_request_client_address")
static inline const char *haft_http_client_address(haft_http_request_t *request) {
    return haft_http_request_client_address(request);
}
HAFT_HTTP_OLD("haft_http_request_descriptor")
static inline int haft_http_descriptor(const haft_http_request_t *request) {
    return haft_http_request_descriptor(request);
}
HAFT_HTTP_OLD("haft_http_request_tls")
static inline haft_tls_t *haft_http_tls(const haft_http_request_t *request) {
    return haft_http_request_tls(request);
}
HAFT_HTTP_OLD("haft_http_request_limit_body")
static inline void haft_http_limit_body(haft_http_request_t *request, uint64_t size) {
    haft_http_request_limit_body(request, size);
}
HAFT_HTTP_OLD("haft_http_request_read")
static inline ssize_t haft_http_read(haft_http_request_t *request, void *buffer, size_t size) {
    return haft_http_request_read(request, buffer, size);
}
HAFT_HTTP_OLD("haft_http_request_body")
static inline ssize_t haft_http_body(haft_http_request_t *request, char **body) {
    return haft_http_request_body(request, body);
}
HAFT_HTTP_OLD("haft_http_request_body_error")
static inline int haft_http_body_error(const haft_http_request_t *request) {
    return haft_http_request_body_error(request);
}
HAFT_HTTP_OLD("haft_http_request_form")
static inline const char *haft_http_form(haft_http_request_t *request, const char *name) {
    return haft_http_request_form(request, name);
}
HAFT_HTTP_OLD("haft_http_request_trailer")
static inline const char *haft_http_trailer(haft_http_request_t *request, const char *name) {
    return haft_http_request_trailer(request, name);
}
HAFT_HTTP_OLD("haft_http_answer_set_header")
static inline int haft_http_set_header(haft_http_request_t *request, const char *name,
                                       const char *value) {
    return haft_http_answer_set_header(request, name, value);
}
HAFT_HTTP_OLD("haft_http_answer_set_cookie_with")
static inline int haft_http_set_cookie(haft_http_request_t *request, const char *name,
                                       const char *value,
                                       const haft_http_cookie_options_t *options) {
    return haft_http_answer_set_cookie_with(options, request, name, value);
}
HAFT_HTTP_OLD("haft_http_answer_begin")
static inline int haft_http_begin(haft_http_request_t *request, int status, const char *type,
                                  uint64_t size) {
    return haft_http_answer_begin(request, status, type, size);
}
HAFT_HTTP_OLD("haft_http_answer_write")
static inline int haft_http_write(haft_http_request_t *request, const void *bytes, size_t size) {
    return haft_http_answer_write(request, bytes, size);
}
HAFT_HTTP_OLD("haft_http_answer_flush")
static inline int haft_http_flush(haft_http_request_t *request) {
    return haft_http_answer_flush(request);
}
HAFT_HTTP_OLD("haft_http_answer_set_trailer")
static inline int haft_http_set_trailer(haft_http_request_t *request, const char *name,
                                        const char *value) {
    return haft_http_answer_set_trailer(request, name, value);
}
HAFT_HTTP_OLD("haft_http_answer_status")
static inline int haft_http_status(const haft_http_request_t *request) {
    return haft_http_answer_status(request);
}
HAFT_HTTP_OLD("haft_http_answer_discard")
static inline int haft_http_discard_answer(haft_http_request_t *request) {
    return haft_http_answer_discard(request);
}
HAFT_HTTP_OLD("haft_http_answer_set_lasting_header")
static inline int haft_http_set_lasting_header(haft_http_request_t *request, const char *name,
                                               const char *value) {
    return haft_http_answer_set_lasting_header(request, name, value);
}
HAFT_HTTP_OLD("haft_http_request_refuse")
static inline int haft_http_refuse(haft_http_request_t *request, int status, const char *text) {
    return haft_http_request_refuse(request, status, text);
}
HAFT_HTTP_OLD("haft_http_request_server")
static inline haft_http_server_t *haft_http_server_of(const haft_http_request_t *request) {
    return haft_http_request_server(request);
}
HAFT_HTTP_OLD("haft_http_request_carry")
static inline int haft_http_carry(haft_http_request_t *request, haft_http_thrown_t *thrown) {
    return haft_http_request_carry(request, thrown);
}
HAFT_HTTP_OLD("haft_http_request_take_thrown")
static inline haft_http_thrown_t *haft_http_take_thrown(haft_http_request_t *request) {
    return haft_http_request_take_thrown(request);
}
HAFT_HTTP_OLD("haft_http_request_note_failure")
static inline void haft_http_note_failure(haft_http_request_t *request, const char *text) {
    haft_http_request_note_failure(request, text);
}
HAFT_HTTP_OLD("haft_http_server_serve")
static inline int haft_http_serve(haft_http_server_t *server, int listener) {
    return haft_http_server_serve(server, listener);
}
HAFT_HTTP_OLD("haft_http_server_serve_all")
static inline int haft_http_serve_all(haft_http_server_t *server, const int *listeners,
                                      size_t count) {
    return haft_http_server_serve_all(server, listeners, count);
}
HAFT_HTTP_OLD("haft_http_client_ask")
static inline int haft_http_ask(haft_http_client_t *client, const haft_http_question_t *question,
                                haft_http_reply_t **reply) {
    return haft_http_client_ask(client, question, reply);
}
HAFT_HTTP_OLD("haft_http_server_set_compression")
static inline void haft_http_set_compression(haft_http_server_t *server,
                                             const haft_http_compression_t *options) {
    haft_http_server_set_compression(server, options);
}
HAFT_HTTP_OLD("haft_http_answer_do_not_compress")
static inline void haft_http_do_not_compress(haft_http_request_t *request) {
    haft_http_answer_do_not_compress(request);
}
HAFT_HTTP_OLD("haft_http_request_accepts")
static inline int haft_http_accepts(haft_http_request_t *request, const char *const *types,
                                    size_t count) {
    return haft_http_request_accepts(request, types, count);
}
HAFT_HTTP_OLD("haft_http_server_set_cors")
static inline int haft_http_cors(haft_http_server_t *server,
                                 const haft_http_cors_options_t *options) {
    return haft_http_server_set_cors(server, options);
}
HAFT_HTTP_OLD("haft_http_request_select_until")
static inline int haft_http_select_until(haft_http_request_t *request,
                                         haft_io_select_case_t *choices, size_t count,
                                         int64_t deadline) {
    return haft_http_request_select_until(request, choices, count, deadline);
}
HAFT_HTTP_OLD("haft_http_request_cancel_with_client")
static inline int haft_http_cancel_with_client(haft_http_request_t *request, haft_http_next_t *next,
                                               void *unused) {
    return haft_http_request_cancel_with_client(request, next, unused);
}
HAFT_HTTP_OLD("haft_http_server_serve_files_with")
static inline int haft_http_serve_files(haft_http_server_t *server, const char *prefix,
                                        const char *folder,
                                        const haft_http_files_options_t *options) {
    return haft_http_server_serve_files_with(options, server, prefix, folder);
}
HAFT_HTTP_OLD("haft_http_server_set_access_hook")
static inline void haft_http_set_access_hook(haft_http_server_t *server,
                                             haft_http_access_hook_t *hook, void *argument) {
    haft_http_server_set_access_hook(server, hook, argument);
}
HAFT_HTTP_OLD("haft_http_server_set_access_log")
static inline void haft_http_set_access_log(haft_http_server_t *server,
                                            haft_http_log_format_t format, haft_http_log_t *log,
                                            void *argument) {
    haft_http_server_set_access_log(server, format, log, argument);
}
HAFT_HTTP_OLD("haft_http_server_count")
static inline void haft_http_count(haft_http_server_t *server) {
    haft_http_server_count(server);
}
HAFT_HTTP_OLD("haft_http_server_read_counters")
static inline void haft_http_read_counters(const haft_http_server_t *server,
                                           haft_http_counters_t *counters) {
    haft_http_server_read_counters(server, counters);
}
HAFT_HTTP_OLD("haft_http_server_serve_counters")
static inline int haft_http_serve_counters(haft_http_server_t *server, const char *path) {
    return haft_http_server_serve_counters(server, path);
}
HAFT_HTTP_OLD("haft_http_server_serve_debug_pages")
static inline int haft_http_debug_pages(haft_http_server_t *server, const char *prefix) {
    return haft_http_server_serve_debug_pages(server, prefix);
}
HAFT_HTTP_OLD("haft_http_request_upgrade")
static inline int haft_http_upgrade(haft_http_request_t *request, const char *protocol) {
    return haft_http_request_upgrade(request, protocol);
}
HAFT_HTTP_OLD("haft_http_server_on_connect")
static inline int haft_http_on_connect(haft_http_server_t *server, haft_http_handler_t *handler,
                                       void *argument) {
    return haft_http_server_on_connect(server, handler, argument);
}
HAFT_HTTP_OLD("haft_http_request_tunnel")
static inline int haft_http_tunnel(haft_http_request_t *request) {
    return haft_http_request_tunnel(request);
}
HAFT_HTTP_OLD("haft_http_server_trace_requests")
static inline void haft_http_trace_requests(haft_http_server_t *server) {
    haft_http_server_trace_requests(server);
}

#undef HAFT_HTTP_OLD

#ifdef __cplusplus
}
#endif

#endif
