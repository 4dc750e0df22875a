// SPDX-License-Identifier: MIT
/*
 * WebSocket for C++20: haft/http_websocket.h with values and exceptions. Part of haft/http.hpp,
 * which includes it.
 *
 *     server.get("/echo", [](haft::http::request &request) {
 *         auto socket = haft::http::websocket::accept(request);
 *         while (auto message = socket.receive())
 *             socket.send(*message);
 *     });
 */
#ifndef HAFT_HTTP_WEBSOCKET_HPP
#define HAFT_HTTP_WEBSOCKET_HPP

#include <haft/http.hpp>

namespace haft::http {

/* 0, and "", mean the default: see haft_http_websocket_options_t. */
#define HAFTI_HTTP_FIELDS(FIELD, OWN)                                                              \
    FIELD(std::string, origins, {})                                                                \
    FIELD(std::string, protocols, {})                                                              \
    FIELD(std::size_t, message_size, 0)                                                            \
    FIELD(std::chrono::nanoseconds, ping_time, {})                                                 \
    FIELD(std::chrono::nanoseconds, pong_time, {})                                                 \
    FIELD(std::chrono::nanoseconds, close_time, {})                                                \
    FIELD(bool, uncompressed, false)                                                               \
    FIELD(bool, keeps_context, false)
struct websocket_options {
    HAFT_IO_OPTIONS(haft_http_websocket_options_t, HAFTI_HTTP_FIELDS)
};
#undef HAFTI_HTTP_FIELDS

/* A message. Its bytes are valid until the next receive. */
struct websocket_message {
    std::string_view bytes;
    bool is_text = true;
};

/* An open WebSocket. It may be copied into tasks that send. The server's is closed by the return
   of the handler, before which these tasks must end; the client's when the last copy ends, in the
   run. */
class websocket {
  public:
    /* If the client may not have it, it has been answered with an error: then the first receive
       returns nothing. */
    static websocket accept(request &from, const websocket_options &how = {}) {
        haft_http_websocket_options_t options = how.as_c();
        return websocket({haft_http_websocket_accept_with(&options, from.get()), leave});
    }
    /* Connects to the WebSocket of a server (ws://..., wss://...); see
       haft_http_websocket_connect. */
    static websocket connect(client &by, const question &what, const websocket_options &how = {}) {
        haft_http_websocket_options_t options = how.as_c();
        haft_http_websocket_t *made = nullptr;
        by.call(what, [&](const haft_http_question_t &given) {
            return haft_http_websocket_connect_with(&options, by.get(), &given, &made);
        });
        return websocket({made, haft_http_websocket_free});
    }
    explicit operator bool() const { return state != nullptr; }
    /* The subprotocol that was chosen; "": none. */
    std::string_view protocol() const {
        const char *name = state != nullptr ? haft_http_websocket_protocol(state.get()) : nullptr;
        return name != nullptr ? name : "";
    }
    /* The next message; nothing if the connection is closed. */
    std::optional<websocket_message> receive() {
        haft_http_websocket_message_t message;
        int code = state != nullptr ? haft_http_websocket_receive(state.get(), &message) : -EPIPE;
        if (code == -EPIPE)
            return std::nullopt;
        io::detail::checked(code, "receive a message");
        return websocket_message{{message.bytes, message.size},
                                 message.kind == HAFT_HTTP_WEBSOCKET_TEXT};
    }
    /* False: the connection is closed, or the client has gone. A text that is not UTF-8 throws. */
    bool send(const websocket_message &message) {
        haft_http_websocket_kind_t kind =
            message.is_text ? HAFT_HTTP_WEBSOCKET_TEXT : HAFT_HTTP_WEBSOCKET_BINARY;
        int code = state == nullptr
                       ? -EPIPE
                       : haft_http_websocket_send(state.get(), kind, message.bytes.data(),
                                                  message.bytes.size());
        return is_open(code, "send a message");
    }
    bool send(std::string_view text) { return send(websocket_message{text, true}); }
    /* False: it was closed before. */
    bool close(int code = 1000, const std::string &reason = "") {
        int result = state == nullptr
                         ? -EPIPE
                         : haft_http_websocket_close(state.get(), code, reason.c_str());
        return is_open(result, "close a WebSocket");
    }
    int close_code() const {
        return state != nullptr ? haft_http_websocket_close_code(state.get()) : 0;
    }
    std::string_view close_reason() const {
        return state != nullptr ? haft_http_websocket_close_reason(state.get()) : "";
    }

  private:
    explicit websocket(std::shared_ptr<haft_http_websocket_t> owned) : state(std::move(owned)) {}
    static void leave(haft_http_websocket_t *) {} /* it is the request's */
    static bool is_open(int code, const char *what) {
        return code != -EPIPE && code != -ECONNRESET && io::detail::checked(code, what) == 0;
    }
    std::shared_ptr<haft_http_websocket_t> state;
};

} // namespace haft::http

#endif
