// SPDX-License-Identifier: MIT
/*
 * Haft HTTP for C++20: a request and its answer, over haft/http.h. haft/http.hpp includes this
 * file.
 *
 * A request is a reference to C's, for as long as the handler runs. Every text that goes to C is a
 * zero-terminated one, so a value that has a '\0' inside is refused, not cut.
 */
#ifndef HAFT_HTTP_REQUEST_HPP
#define HAFT_HTTP_REQUEST_HPP

#include <haft/http.h>
#include <haft/io.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace haft::http {

/* Thrown in a handler, or in middleware: the client gets the status, 400 to 599, and the text, or
   the status's phrase, in the form of server::on_error. Not logged. With a type, the client gets
   the text as it is, as a body of that type. */
class error : public std::runtime_error {
  public:
    explicit error(int status, const std::string &text = "", const std::string &type = "")
        : std::runtime_error(text), code(status), content_type(type) {}
    int status() const { return code; }
    const std::string &type() const { return content_type; }

  private:
    int code;
    std::string content_type;
};

/* Names with their values. */
using fields = std::vector<std::pair<std::string, std::string>>;

/* A whole answer. */
struct response {
    int status = 200;
    std::string body = {};
    std::string type = "text/plain; charset=utf-8"; /* "": none */
    fields headers = {};
};

/* See haft_http_cookie_options_t. */
#define HAFTI_HTTP_FIELDS(FIELD, OWN)                                                              \
    FIELD(std::string, path, {})                                                                   \
    FIELD(std::string, domain, {})                                                                 \
    FIELD(std::chrono::seconds, max_age, {}) /* negative: the cookie is removed */                 \
    FIELD(bool, for_scripts, false)                                                                \
    FIELD(bool, for_http, false)                                                                   \
    FIELD(std::string, same_site, "Lax")
struct cookie_options {
    HAFT_IO_OPTIONS(haft_http_cookie_options_t, HAFTI_HTTP_FIELDS)
};
#undef HAFTI_HTTP_FIELDS

/* A server-sent event; see haft_http_event_t. */
struct event {
    std::string data;
    std::string type = {}, id = {};
    std::chrono::milliseconds retry = {};
};

namespace detail {
template <typename T>
fields all_fields(bool (*field_at)(T *, std::size_t, const char **, const char **), T *message) {
    fields all;
    const char *name, *value;
    while (field_at(message, all.size(), &name, &value))
        all.emplace_back(name, value);
    return all;
}
} // namespace detail

/* The request that a handler gets. It and its string_views live as long as the handler runs. */
class request {
  public:
    explicit request(haft_http_request_t *wrapped) : state(wrapped) {}
    request(const request &) = delete;
    request &operator=(const request &) = delete;

    std::string_view method() const { return haft_http_request_method(state); }
    /* Addresses, or "": see haft_http_request_client_address. */
    std::string_view peer() { return haft_http_request_peer(state); }
    std::string_view client_address() { return haft_http_request_client_address(state); }
    std::string_view target() const { return haft_http_request_target(state); }
    std::string_view version() const { return haft_http_request_version(state); }
    /* "/todo/{id}"; std::nullopt: no route is for this request. */
    std::optional<std::string_view> route() const { return maybe(haft_http_request_route(state)); }
    /* The match of the route's part {name}. A route without such a part is a mistake, which is
       thrown (std::logic_error); "" where no route is for this request. */
    std::string path(const char *name) const {
        if (route().has_value() && !has_path(name))
            throw std::logic_error(std::string("the route ")
                                       .append(*route())
                                       .append(" has no part {")
                                       .append(name)
                                       .append("}"));
        return text_of(haft_http_request_path(state, name));
    }
    /* For middleware that is around several routes. */
    bool has_path(const char *name) const { return haft_http_request_has_path(state, name); }
    std::optional<std::string_view> query(const char *name) const {
        return maybe(haft_http_request_query(state, name));
    }
    std::optional<std::string_view> header(const char *name) const {
        return maybe(haft_http_request_header(state, name));
    }
    /* All fields of the head, in their order. */
    fields headers() const { return detail::all_fields(&haft_http_request_header_at, state); }
    std::optional<std::string_view> cookie(const char *name) const {
        return maybe(haft_http_request_cookie(state, name));
    }
    std::optional<std::string_view> form(const char *name) const {
        return maybe(haft_http_request_form(state, name));
    }
    std::optional<std::string_view> trailer(const char *name) const {
        return maybe(haft_http_request_trailer(state, name));
    }

    /* All of these, in their order; none before the body was read to its end. */
    fields trailers() const { return detail::all_fields(&haft_http_request_trailer_at, state); }

    /* One of HTTP/2 may be without Content-Length, and turn out to be empty. */
    bool has_body() const { return haft_http_request_has_body(state); }
    void limit_body(std::uint64_t size) { haft_http_request_limit_body(state, size); }
    /* How many bytes of the body were read; 0 at its end. */
    std::size_t read(std::span<std::byte> into) {
        return got(haft_http_request_read(state, into.data(), into.size()));
    }
    /* All that is left of the body. */
    std::string_view body() {
        char *bytes = nullptr;
        std::size_t size = got(haft_http_request_body(state, &bytes));
        return {bytes, size};
    }

    void set_header(const char *name, const std::string &value) {
        check_text(value);
        answered(haft_http_answer_set_header(state, name, value.c_str()), "set_header");
    }
    void set_cookie(const char *name, const std::string &value, const cookie_options &how = {}) {
        haft_http_cookie_options_t options = how.as_c();
        check_text(value);
        io::detail::checked(haft_http_answer_set_cookie_with(&options, state, name, value.c_str()),
                            "set_cookie");
    }
    void answer(int status, std::string_view body, const char *type = "text/plain; charset=utf-8") {
        answered(haft_http_answer(state, status, type, body.data(), body.size()), "answer");
    }
    void answer(const response &whole) {
        for (const auto &[name, value] : whole.headers)
            set_header(name.c_str(), value);
        answer(whole.status, whole.body, whole.type.empty() ? nullptr : whole.type.c_str());
    }
    /* Piece by piece: begin, then write; see haft_http_answer_begin. */
    void begin(int status = 200, const char *type = "text/plain; charset=utf-8",
               std::uint64_t size = HAFT_HTTP_UNKNOWN_SIZE) {
        answered(haft_http_answer_begin(state, status, type, size), "begin");
    }
    void write(std::string_view piece) {
        io::detail::checked(haft_http_answer_write(state, piece.data(), piece.size()), "write");
    }
    void flush() { io::detail::checked(haft_http_answer_flush(state), "flush"); }
    /* Leaves this answer uncompressed; see haft/http_compression.h. */
    void do_not_compress() { haft_http_answer_do_not_compress(state); }
    /* The number of the media type that the client wants most; std::nullopt: it wants none. */
    std::optional<std::size_t> accepts(std::initializer_list<const char *> types) {
        int chosen = haft_http_request_accepts(state, types.begin(), types.size());
        return chosen >= 0 ? std::optional<std::size_t>(chosen) : std::nullopt;
    }
    /* With an open file; see haft_http_answer_file. */
    void answer_file(int file, const char *type) {
        io::detail::checked(haft_http_answer_file(state, file, type), "answer_file");
    }
    void set_trailer(const char *name, const std::string &value) {
        check_text(value);
        io::detail::checked(haft_http_answer_set_trailer(state, name, value.c_str()),
                            "set_trailer");
    }

    /* The answer's status; 0: it has not begun. */
    int status() const { return haft_http_answer_status(state); }
    /* Takes back an answer of which nothing was sent; false: some was. See
       haft_http_answer_discard. */
    bool discard_answer() { return haft_http_answer_discard(state) == 0; }
    /* A field that the answer to an error has as well; see haft_http_answer_set_lasting_header. */
    void set_lasting_header(const char *name, const std::string &value) {
        check_text(value);
        io::detail::checked(haft_http_answer_set_lasting_header(state, name, value.c_str()),
                            "set_lasting_header");
    }

    /* Keeps the record of this request, as if it failed; see haft_http_request_keep. */
    bool keep() { return haft_http_request_keep(state); }

    /* Where io::spawn and io::async put tasks of this handler: they end before the answer is sent.
       An exception that leaves one of them cancels the others, and is a failure of the request. The
       handler's own task calls this first; then others may. */
    io::scope_ref scope() {
        haft_io_scope_t *opened = haft_http_request_scope(state);
        if (opened == nullptr)
            throw std::logic_error("haft: a task that is not the handler's calls request::scope() "
                                   "first, or there is no memory");
        return io::scope_ref(opened);
    }
    /* For tasks that outlive the request. An exception that leaves one of them is a line in the log
       and nothing else. A server that stops waits for them up to limits::grace. */
    io::scope_ref server_scope() {
        return io::scope_ref(haft_http_server_scope(haft_http_request_server(state)));
    }

    /* Server-sent events. */
    void begin_events() { io::detail::checked(haft_http_events_begin(state), "begin_events"); }
    void send_event(const event &sent) {
        for (const std::string *text : {&sent.data, &sent.type, &sent.id})
            check_text(*text);
        haft_http_event_t given = {};
        given.data = sent.data.c_str();
        given.type = sent.type.empty() ? nullptr : sent.type.c_str();
        given.id = sent.id.empty() ? nullptr : sent.id.c_str();
        given.retry = std::chrono::nanoseconds(sent.retry).count();
        io::detail::checked(haft_http_events_send(state, &given), "send_event");
    }
    std::optional<std::string_view> last_event_id() {
        return maybe(haft_http_events_last_id(state));
    }

    /* Like io::select: waits until one of the cases is done; false: the client has gone, or the
       server is told to stop, so the handler returns. See haft_http_request_select_until. */
    template <typename... Cases>
    bool select(Cases &&...cases) {
        return select_until(io::forever, std::forward<Cases>(cases)...) == waited::for_a_case;
    }
    /* The next value of a channel; std::nullopt: it is closed, or the client has gone, or the
       server is told to stop. */
    template <typename T>
    std::optional<T> receive(io::channel<T> &from) {
        std::optional<T> value;
        select(io::on_receive(from, [&](std::optional<T> got) { value = std::move(got); }));
        return value;
    }
    /* Waits for a while; false: the client has gone, or the server is told to stop. */
    template <typename Rep, typename Period>
    bool sleep_for(std::chrono::duration<Rep, Period> time) {
        return select_until(io::from_now(time)) == waited::to_the_end;
    }

    /* The connection as a stream: see haft/http_stream.h. False: the client has not asked for
       it. */
    bool upgrade(const char *protocol) {
        return is_supported(haft_http_request_upgrade(state, protocol));
    }
    bool tunnel() { return is_supported(haft_http_request_tunnel(state)); }
    std::size_t stream_read(std::span<std::byte> into) {
        return io::detail::counted(haft_http_stream_read(state, into.data(), into.size()),
                                   "stream_read");
    }
    void stream_write(std::string_view bytes) {
        io::detail::checked(haft_http_stream_write(state, bytes.data(), bytes.size()),
                            "stream_write");
    }
    void stream_shutdown() {
        io::detail::checked(haft_http_stream_shutdown(state), "stream_shutdown");
    }

    haft_http_request_t *get() const { return state; }

  private:
    friend class multipart;
    enum class waited { for_a_case, to_the_end, in_vain };
    template <typename Time, typename... Cases>
    waited select_until(Time time, Cases &&...cases) {
        std::array<haft_io_select_case_t, sizeof...(Cases)> choices = {cases.choice()...};
        int chosen = haft_http_request_select_until(state, choices.data(), choices.size(),
                                                    io::detail::deadline_of(time));
        if (chosen == -ETIMEDOUT)
            return waited::to_the_end;
        if (chosen == -ECONNRESET || chosen == -ESHUTDOWN)
            return waited::in_vain;
        std::size_t index = io::detail::counted(chosen, "select"), at = 0;
        ((at++ == index ? cases.done(choices[index].code) : void()), ...);
        return waited::for_a_case;
    }
    static std::optional<std::string_view> maybe(const char *text) {
        return text != nullptr ? std::optional<std::string_view>(text) : std::nullopt;
    }
    static bool is_supported(int code) {
        return code != -ENOTSUP && io::detail::checked(code, "begin a stream") == 0;
    }
    /* Throws on an error; -EALREADY means that the answer's head can no longer be changed. */
    void answered(int code, const char *what) const {
        io::detail::checked(code, [&] {
            return code == -EALREADY ? std::string(what)
                                           .append(": the request has its answer, of ")
                                           .append("status ")
                                           .append(std::to_string(status()))
                                     : std::string(what);
        });
    }
    static std::string text_of(const char *text) { return text != nullptr ? text : ""; }
    /* A '\0' would end it for haft/http.h. */
    static void check_text(const std::string &value) {
        if (value.find('\0') != std::string::npos)
            io::detail::checked(-EINVAL, "a field's value");
    }
    static std::size_t got(ssize_t size) { return io::detail::counted(size, "read a body"); }

    haft_http_request_t *state;
};

} // namespace haft::http

#endif
