// SPDX-License-Identifier: MIT
/*
 * Haft HTTP for C++20: haft/http.h with values, exceptions and lambdas. Header only, over
 * libhaft-http.
 *
 *     #include <haft/http.hpp>
 *     int main() {
 *         haft::http::server server;
 *         server.get("/hello/{name}", [](haft::http::request &request) {
 *             return "Hello, " + request.path("name");
 *         });
 *         return server.run({.port = 8080});
 *     }
 *
 * A handler gets the request, and returns a text, or a response, or nothing when it has answered by
 * itself. An exception that leaves it goes out through the middleware, which may catch it. One that
 * nobody catches is a line in the log and status 500 for the client, or the status of an
 * http::error. The rules of haft/http.h about threads, limits, routes, answers and tasks of
 * handlers hold here.
 */
#ifndef HAFT_HTTP_HPP
#define HAFT_HTTP_HPP

#include <haft.hpp>
#include <haft/http.h>
#include <haft/io.hpp>

#include <array>
#include <bit>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace haft::http {

/* Thrown in a handler, or in middleware: the client gets the status, 400 to 599, and the text, or
   what the status is called, in the form of server::on_error. Not logged. With a type, the client
   gets the text as it is, as a body of that type. */
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

struct cookie_options {
    std::string path = {}, domain = {};
    std::chrono::seconds max_age = {}; /* negative: the cookie is removed */
    bool for_scripts = false, for_http = false;
    std::string same_site = "Lax";
};

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
        haft_http_cookie_options_t options = {};
        options.path = how.path.empty() ? nullptr : how.path.c_str();
        options.domain = how.domain.empty() ? nullptr : how.domain.c_str();
        options.max_age = how.max_age.count();
        options.for_scripts = how.for_scripts;
        options.for_http = how.for_http;
        options.same_site = how.same_site.c_str();
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

namespace detail {

inline void answer_with(request &, std::monostate) {}
inline void answer_with(request &in, const response &whole) {
    in.answer(whole);
}
inline void answer_with(request &in, std::string_view text) {
    in.answer(200, text);
}
inline void answer_with(request &in, const char *text) {
    in.answer(200, text);
}

template <typename T>
concept answers = std::is_void_v<T> || requires(request &in, T value) {
    answer_with(in, value);
};

/* An exception on its way out through the middleware, as haft/http.h carries it. */
struct thrown : haft_http_thrown_t {
    explicit thrown(std::exception_ptr leaving)
        : haft_http_thrown_t{&conclude, &free}, exception(std::move(leaving)) {}

    static int conclude(haft_http_thrown_t *carried, haft_http_request_t *in) {
        auto *self = static_cast<thrown *>(carried);
        try {
            std::rethrow_exception(self->exception);
        } catch (const error &refused) {
            int status = refused.status();
            if (refused.type().empty() || status < 400 || status > 599)
                return haft_http_request_refuse(in, status,
                                                *refused.what() != '\0' ? refused.what() : nullptr);
            if (haft_http_answer_status(in) != 0) /* otherwise the fields that were set stay */
                haft_http_answer_discard(in);
            return haft_http_answer(in, status, refused.type().c_str(), refused.what(),
                                    std::strlen(refused.what()));
        } catch (...) {
            if (int of_body = haft_http_request_body_error(in))
                return of_body;
            haft_http_request_note_failure(in, io::detail::words_of(self->exception).c_str());
            return HAFT_IO_BY_EXCEPTION;
        }
    }
    static void free(haft_http_thrown_t *carried) { delete static_cast<thrown *>(carried); }

    std::exception_ptr exception;
};

/* While the object lives, a cancelled wait throws io::cancelled, which a catch (...) may catch. */
class throwing_cancels {
  public:
    throwing_cancels() : before(haft_io_return_cancels(true)) {}
    ~throwing_cancels() { haft_io_return_cancels(before); }
    throwing_cancels(const throwing_cancels &) = delete;
    throwing_cancels &operator=(const throwing_cancels &) = delete;

  private:
    bool before;
};

/* Calls the function, and gives what it throws to the middleware around, or to the server. A cancel
   goes out as -ECANCELED up to the outermost call, which lets the task be unwound. */
template <typename F>
int call(haft_http_request_t *state, F &&function) {
    request in(state);
    try {
        throwing_cancels here;
        function(in);
        return 0;
    } catch (const io::cancelled &) { /* goes on below, since no exception may leave the handler */
    } catch (...) {
        std::exception_ptr leaving = std::current_exception();
        if (leaving == nullptr) /* no exception: a task is unwound */
            throw;
        if (auto *carried = new (std::nothrow) thrown(std::move(leaving)))
            return haft_http_request_carry(state, carried);
        return -ENOMEM;
    }
    return haft_io_unwind_cancelled();
}

/* The server with the functions that it owns; it outlives the routes. */
struct server_state {
    server_state() : state(haft_http_server_new()) {
        if (state == nullptr)
            throw std::bad_alloc();
    }
    struct free {
        void operator()(haft_http_server_t *owned) const { haft_http_server_free(owned); }
    };
    std::unique_ptr<haft_http_server_t, free> state;
    std::vector<std::shared_ptr<void>> functions;
};

} // namespace detail

/* A function of the request that returns an answer, or nothing. */
template <typename F>
concept handler =
    std::invocable<F &, request &> && detail::answers<std::invoke_result_t<F &, request &>>;

/* The rest of the handlers, for middleware: next() answers the request, and throws what a handler,
   or middleware further in, has thrown. Where a handler of C has returned an error, next() returns,
   and the error goes on outwards when the middleware does. A copy is used, as it is, while the
   middleware runs. A cancel is io::cancelled; an effect that nobody handles, and haft_io_fail, are
   no exceptions, so a catch (...) has to let them pass: catch std::exception & instead, or end it
   in `throw;`. */
class next {
  public:
    void operator()() const {
        *code = inner->call(inner, wrapped);
        if (*code == -ECANCELED) {
            *code = 0;
            throw io::cancelled();
        }
        haft_http_thrown_t *carried =
            *code == HAFT_IO_BY_EXCEPTION ? haft_http_request_take_thrown(wrapped) : nullptr;
        if (carried == nullptr)
            return;
        *code = 0;
        std::exception_ptr exception = static_cast<detail::thrown *>(carried)->exception;
        detail::thrown::free(carried);
        std::rethrow_exception(std::move(exception));
    }

  private:
    friend class routes;
    next(haft_http_next_t *further, haft_http_request_t *request, int *result)
        : inner(further), wrapped(request), code(result) {}
    haft_http_next_t *inner;
    haft_http_request_t *wrapped;
    int *code;
};

namespace detail {

/* The effect that a function for routes::handle takes. */
template <typename Parameters>
struct taken_by {};
template <typename E>
requires is_effect<std::remove_cvref_t<E>>
struct taken_by<effects<E>> {
    using effect = std::remove_cvref_t<E>;
    template <typename F>
    static decltype(auto) call(F &function, haft_http_request_t *, effect &performed) {
        return function(haft::detail::passed<effect>::on(performed));
    }
};
template <typename E>
requires is_effect<std::remove_cvref_t<E>>
struct taken_by<effects<request &, E>> {
    using effect = std::remove_cvref_t<E>;
    template <typename F>
    static decltype(auto) call(F &function, haft_http_request_t *wrapped, effect &performed) {
        request in(wrapped);
        return function(in, haft::detail::passed<effect>::on(performed));
    }
};
template <typename F>
using taken = taken_by<typename haft::detail::signature_of<decltype(&F::operator())>::parameters>;
template <typename F>
inline constexpr bool is_raising = false;
template <typename F>
inline constexpr bool is_raising<raising<F>> = true;

/* In a clause: what it has thrown goes out through the middleware around the handler. */
[[noreturn]] inline void leave_handling(const haft_http_handling_t *handling,
                                        std::exception_ptr thrown_by_clause) {
    auto *carried = new (std::nothrow) thrown(std::move(thrown_by_clause));
    haft_http_handling_leave(handling, carried != nullptr
                                           ? haft_http_request_carry(handling->request, carried)
                                           : -ENOMEM);
}

} // namespace detail

/* A function object that handles an effect around handlers: it takes the effect, or `request &` and
   the effect, and returns the result of the perform. */
template <typename F>
concept clause = requires {
    typename detail::taken<F>::effect;
};

namespace detail {

/* The functions of routes::handle, and the table for haft_http_server_handle. */
template <clause... F>
struct clauses {
    std::tuple<F...> functions;

    template <typename Function, typename E = typename taken<Function>::effect>
    static result_of<E> call_plainly(const haft_http_handling_t *handling, E *performed) {
        auto &function = std::get<Function>(static_cast<clauses *>(handling->argument)->functions);
        return static_cast<result_of<E>>(
            taken<Function>::call(function, handling->request, *performed));
    }
    template <typename Function, typename E = typename taken<Function>::effect>
    static result_of<E> call(void *state, E *performed) {
        const auto *handling = static_cast<const haft_http_handling_t *>(state);
        if constexpr (is_raising<Function>) {
            return call_plainly<Function>(handling, performed);
        } else {
            if (hafti_exceptions_in(hafti_thread()->globals)) /* of the performer */
                return haft::detail::without_exceptions(&call<Function>, state, performed);
            std::exception_ptr leaving;
            int code = 0;
            try {
                return call_plainly<Function>(handling, performed);
            } catch (const io::cancelled &) {
                code = -ECANCELED;
                if (!haft_http_handling_is_around(handling))
                    throw;
            } catch (...) {
                leaving = haft::detail::caught_exception();
                if (!haft_http_handling_is_around(handling)) /* as io::spawn_handled has it */
                    throw;
            }
            if (code != 0)
                haft_http_handling_leave(handling, code);
            leave_handling(handling, std::move(leaving));
        }
    }
    template <typename Function, typename E = typename taken<Function>::effect>
    static haft_clause_t entry() {
        return {effect_traits<E>::id(), reinterpret_cast<haft_function_t *>(&call<Function>),
                HAFT_CLAUSE_TAIL, haft::detail::shape_of<E>};
    }
    static const haft_handler_t &handler() {
        static const haft_clause_t table[] = {entry<F>()...};
        static const haft_handler_t made = {
            {sizeof...(F), 0, HAFTI_SET_FIXED, table}, nullptr, "haft::http"};
        return made;
    }
};

} // namespace detail

struct limits {
    std::size_t request_line = 0, head = 0, fields = 0;
    std::uint64_t body = 0;
    std::size_t connections = 0, connections_of_client = 0, streams = 0;
    std::chrono::nanoseconds idle_time = {}, head_time = {}, body_time = {}, write_time = {};
    std::uint64_t least_rate = 0;
    std::chrono::nanoseconds grace = {}, events_time = {};
};

struct files_options {
    const char *index = nullptr; /* nullptr: "index.html"; "": none */
    const char *cache_control = nullptr;
    bool precompressed = false, dot_files = false;
    const char *(*type_of)(const char *name) = nullptr;
};

/* See haft_http_cors_options_t. */
struct cors_options {
    std::vector<std::string> origins = {}; /* empty: any */
    const char *methods = nullptr, *fields = nullptr, *exposed = nullptr;
    bool credentials = false;
    std::chrono::seconds max_age = {};
};

/* haft_http_run_options_t with durations, field by field: another order would not compile, or not
   be bit-cast. */
struct run_options {
    const char *host = nullptr;
    std::uint16_t port = 0;
    int backlog = 0;
    int threads = 0; /* 0: one; HAFT_HTTP_EACH_PROCESSOR */
    const char *backend = nullptr;
    const char *listen = nullptr; /* instead of host and port */
    bool reuse_port = false;
    int restart_signal = 0; /* such as SIGUSR2: see haft_http_server_restart */
    std::size_t stack_size = 0;
    std::chrono::nanoseconds watchdog = {};
    int dump_signal = 0;
    bool notify = false; /* systemd, as Type=notify */
    std::chrono::nanoseconds unready_time = {};
    bool stop_signals = false;          /* for server::serve */
    const char *debug_listen = nullptr; /* pages for the operator, on a thread of their own */
};

class route_group;

/* The common base of a server and of a group of its routes. */
class routes {
  public:
    routes(const routes &) = delete;
    routes &operator=(const routes &) = delete;

    /* For what haft/http.h has besides, such as haft_http_server_set_access_hook. */
    haft_http_server_t *get() const { return own; }

    template <typename F>
    void route(const char *method, const std::string &path, F function) {
        static_assert(handler<F>, "a handler takes haft::http::request &, and returns a text, a "
                                  "haft::http::response, or nothing");
        if constexpr (handler<F>) {
            add(std::move(function), [&](haft_http_handler_t *called, void *argument) {
                return haft_http_server_route(own, method, path.c_str(), called, argument);
            });
        }
    }
    /* For every method but CONNECT; see haft_http_server_any. */
    template <typename F>
    void any(const std::string &path, F function) {
        static_assert(handler<F>, "a handler takes haft::http::request &, and returns a text, a "
                                  "haft::http::response, or nothing");
        if constexpr (handler<F>) {
            add(std::move(function), [&](haft_http_handler_t *called, void *argument) {
                return haft_http_server_any(own, path.c_str(), called, argument);
            });
        }
    }
    template <typename F>
    void get(const std::string &path, F function) {
        route("GET", path, std::move(function));
    }
    template <typename F>
    void post(const std::string &path, F function) {
        route("POST", path, std::move(function));
    }
    template <typename F>
    void put(const std::string &path, F function) {
        route("PUT", path, std::move(function));
    }
    template <typename F>
    void patch(const std::string &path, F function) {
        route("PATCH", path, std::move(function));
    }
    template <typename F>
    void del(const std::string &path, F function) {
        route("DELETE", path, std::move(function));
    }
    /*
     * Middleware, around every handler: function(request, next). It may handle effects of next(),
     * and catch what that throws: then it answers itself, or throws something else.
     *
     *     server.use([&](haft::http::request &, const haft::http::next &next) {
     *         haft::handle(next).with([](now) { return clock(); });
     *     });
     */
    template <typename F>
    void use(F function) {
        constexpr bool is_middleware = std::invocable<F &, request &, const next &>;
        static_assert(is_middleware, "middleware takes haft::http::request &, and const "
                                     "haft::http::next &, which it calls");
        if constexpr (is_middleware) {
            auto kept = std::make_shared<F>(std::move(function));
            io::detail::checked(haft_http_server_use(own, &call_around<F>, kept.get()), "use");
            kept_functions.push_back(std::move(kept));
        }
    }

    /*
     * Middleware that only handles effects, by functions that take an effect, or the request and an
     * effect. It costs a small part of what a function around the handlers does; see
     * haft_http_server_handle. An exception that a function throws leaves the handler, as it leaves
     * haft::handle(): the request's handler is unwound, and the exception goes out through the
     * middleware around. An exception of a haft::raising(function) leaves the perform.
     *
     *     server.handle([](now) { return clock(); },
     *                   [](haft::http::request &in, user) { return in.header("X-User"); });
     */
    template <typename... F>
    void handle(F... functions) {
        constexpr bool are_clauses = (clause<F> && ...);
        static_assert(are_clauses, "what handles an effect takes the effect, or "
                                   "haft::http::request & and the effect, and no auto");
        if constexpr (are_clauses) {
            using all = detail::clauses<F...>;
            auto kept = std::make_shared<all>(all{std::tuple<F...>(std::move(functions)...)});
            io::detail::checked(haft_http_server_handle(own, &all::handler(), kept.get()),
                                "handle");
            kept_functions.push_back(std::move(kept));
        }
    }

    /* Middleware: a client that goes away cancels its handler; see
       haft_http_request_cancel_with_client. */
    void cancel_with_client() {
        io::detail::checked(
            haft_http_server_use(own, &haft_http_request_cancel_with_client, nullptr), "use");
    }
    /* Pages of other origins may use the routes; see haft_http_server_set_cors. Throws
       std::system_error where an option is none. */
    void cors(const cors_options &how = {}) {
        std::vector<const char *> origins;
        for (const std::string &origin : how.origins)
            origins.push_back(origin.c_str());
        haft_http_cors_options_t options = {};
        options.origins = origins.data();
        options.origin_count = origins.size();
        options.methods = how.methods;
        options.fields = how.fields;
        options.exposed = how.exposed;
        options.credentials = how.credentials;
        options.max_age = how.max_age.count();
        io::detail::checked(haft_http_server_set_cors(own, &options), "cors");
    }
    /* Static files: see haft_http_server_serve_files. */
    void files(const std::string &prefix, const std::string &folder,
               const files_options &how = {}) {
        haft_http_files_options_t options = {};
        options.index = how.index;
        options.cache_control = how.cache_control;
        options.precompressed = how.precompressed;
        options.dot_files = how.dot_files;
        options.type_of = how.type_of;
        io::detail::checked(
            haft_http_server_serve_files_with(&options, own, prefix.c_str(), folder.c_str()),
            [&] { return "serve files of " + folder; });
    }

    /* Counts requests, and shows the counters: see haft_http_server_serve_counters. */
    void serve_counters(const std::string &path) {
        io::detail::checked(haft_http_server_serve_counters(own, path.c_str()), "serve_counters");
    }
    /* 200, or 503 from when the server is told to stop: see haft_http_server_serve_readiness. */
    void serve_readiness(const std::string &path) {
        io::detail::checked(haft_http_server_serve_readiness(own, path.c_str()),
                            [&] { return std::string(haft_http_server_mistake(own)); });
    }
    /* Pages for the operator, with the tree of tasks and the counters: see
       haft_http_server_serve_debug_pages. */
    void debug_pages(const std::string &prefix) {
        io::detail::checked(haft_http_server_serve_debug_pages(own, prefix.c_str()), "debug_pages");
    }

    /* Routes whose paths begin with the prefix, with middleware of their own, inside of this
       one's. The group lives as long as the server, and is used before that serves. See
       haft_http_server_group. */
    inline route_group group(const std::string &prefix);

  protected:
    routes(haft_http_server_t *server_or_group, std::vector<std::shared_ptr<void>> &all)
        : own(server_or_group), kept_functions(all) {}

    template <typename F>
    static int call_handler(haft_http_request_t *wrapped, void *function) {
        return detail::call(wrapped, [&](request &in) {
            detail::answer_with(in, io::detail::call(*static_cast<F *>(function), in));
        });
    }

  private:
    /* Has the function kept by the server, for which `into` is to say what is called. */
    template <handler F, typename Into>
    void add(F function, Into &&into) {
        auto kept = std::make_shared<F>(std::move(function));
        int code;
        if constexpr (requires { F::c_handler; })
            code = into(F::c_handler, kept->get());
        else
            code = into(&call_handler<F>, kept.get());
        kept_functions.push_back(std::move(kept)); /* of several routes some may be there */
        io::detail::checked(code, [&] { return std::string(haft_http_server_mistake(own)); });
    }

    template <typename F>
    static int call_around(haft_http_request_t *wrapped, haft_http_next_t *inner, void *function) {
        int code = 0;
        int thrown = detail::call(wrapped, [&](request &in) {
            (*static_cast<F *>(function))(in, next(inner, wrapped, &code));
        });
        return thrown != 0 ? thrown : code;
    }

    haft_http_server_t *own;
    std::vector<std::shared_ptr<void>> &kept_functions; /* all of the server's */
};

class route_group : public routes {
  private:
    friend class routes;
    route_group(haft_http_server_t *made, std::vector<std::shared_ptr<void>> &all)
        : routes(made, all) {}
};

inline route_group routes::group(const std::string &prefix) {
    haft_http_server_t *made = haft_http_server_group(own, prefix.c_str());
    if (made == nullptr)
        throw std::bad_alloc();
    return route_group(made, kept_functions);
}

class server : private detail::server_state, public routes {
  public:
    server() : routes(state.get(), functions) {}

    /* See haft_http_server_trust_proxies. */
    void expect_proxy_header(const io::listener &listener) {
        io::detail::checked(haft_http_server_expect_proxy_header(state.get(), listener.get()),
                            "expect_proxy_header");
    }
    /* With nullptr for the field only the PROXY protocol is believed. */
    void trust_proxies(const std::string &networks, const char *field = "X-Forwarded-For") {
        io::detail::checked(haft_http_server_trust_proxies(state.get(), networks.c_str(), field),
                            [&] { return "trust proxies at " + networks; });
    }
    /* For CONNECT; see haft_http_server_on_connect. */
    template <typename F>
    void on_connect(F function) {
        static_assert(handler<F>, "a handler takes haft::http::request &, and returns a text, a "
                                  "haft::http::response, or nothing");
        if constexpr (handler<F>) {
            auto kept = std::make_shared<F>(std::move(function));
            io::detail::checked(
                haft_http_server_on_connect(state.get(), &routes::call_handler<F>, kept.get()),
                "on_connect");
            functions.push_back(std::move(kept));
        }
    }
    void set_limits(const limits &given) {
        haft_http_limits_t set = {};
        set.request_line = given.request_line;
        set.head = given.head;
        set.fields = given.fields;
        set.body = given.body;
        set.connections = given.connections;
        set.connections_of_client = given.connections_of_client;
        set.streams = given.streams;
        set.idle_time = given.idle_time.count();
        set.head_time = given.head_time.count();
        set.body_time = given.body_time.count();
        set.write_time = given.write_time.count();
        set.least_rate = given.least_rate;
        set.grace = given.grace.count();
        set.events_time = given.events_time.count();
        io::detail::checked(haft_http_server_set_limits(state.get(), &set), "set_limits");
    }
    void set_compression(const haft_http_compression_t &options) {
        haft_http_server_set_compression(state.get(), &options);
    }
    /*
     * Makes the answers to errors, instead of lines of text: function(request, error) gets a
     * haft_http_error_t, and returns or gives an answer as a handler does. If it throws, the
     * library answers the error in its own form. See haft_http_server_on_error; http::problem is
     * such a function.
     *
     *     server.on_error([](haft::http::request &, const haft_http_error_t &error) {
     *         return haft::http::response{.status = error.status, .body = page(error.text)};
     *     });
     */
    template <typename F>
    void on_error(F function) {
        constexpr bool is_for_errors = std::invocable<F &, request &, const haft_http_error_t &>;
        static_assert(is_for_errors, "what answers errors takes haft::http::request &, and const "
                                     "haft_http_error_t &");
        if constexpr (is_for_errors) {
            auto kept = std::make_shared<F>(std::move(function));
            haft_http_server_on_error(state.get(), &call_on_error<F>, kept.get());
            functions.push_back(std::move(kept));
        }
    }
    /* Where tasks go that outlive requests, while it serves; see request::server_scope. */
    io::scope_ref scope() {
        haft_io_scope_t *opened = haft_http_server_scope(state.get());
        if (opened == nullptr)
            throw std::logic_error("haft: a task is started in the scope of an http::server that "
                                   "does not serve");
        return io::scope_ref(opened);
    }
    /* Gets each line of the log; must not wait, nor throw. */
    void set_log(std::function<void(std::string_view)> function) {
        log = std::move(function);
        haft_http_server_set_log(
            state.get(),
            [](void *self, const char *line) { static_cast<server *>(self)->log(line); }, this);
    }

    /* Each request belongs to a trace; see haft_http_server_trace_requests, and trace(). */
    void trace_requests() { haft_http_server_trace_requests(state.get()); }
    /* Over TLS, with a context of haft/tls.hpp or haft/tls.h, which outlives the server; see
       haft_http_server_set_tls. */
    void set_tls(haft_tls_context_t *context) {
        io::detail::checked(haft_http_server_set_tls(state.get(), context), "set_tls");
    }
    /* See haft_http_server_set_access_log. */
    void set_access_log(haft_http_log_format_t format) {
        haft_http_server_set_access_log(state.get(), format, nullptr, nullptr);
    }
    void set_access_log(haft_http_log_format_t format,
                        std::function<void(std::string_view)> function) {
        access_log = std::move(function);
        haft_http_server_set_access_log(
            state.get(), format,
            [](void *self, const char *line) { static_cast<server *>(self)->access_log(line); },
            this);
    }
    haft_http_counters_t counters() const {
        haft_http_counters_t read = {};
        haft_http_server_read_counters(state.get(), &read);
        return read;
    }

    /* Serves until a signal or stop(). Returns 0, or 1 after an error, which was logged: main() may
       return it. Throws the exception of the on_listening function. */
    int run(const run_options &how = {}) {
        haft_http_run_options_t options = options_of(how);
        int code = haft_http_server_run_with(&options, state.get());
        throw_start_failure();
        return code == 0 ? 0 : 1;
    }
    /* In a task of a run, or of a simulation, of your own. False: requests were cut off at its
       end. */
    bool serve(io::listener listener) {
        int code = haft_http_server_serve(state.get(), listener.release());
        throw_start_failure();
        if (code == -EINVAL)
            io::detail::checked(code, [&] { return std::string(mistake()); });
        return io::detail::in_time(code, "serve");
    }
    /* The same, where the options say; see haft_http_server_serve_with. */
    bool serve(const run_options &how) {
        haft_http_run_options_t options = options_of(how);
        int code = haft_http_server_serve_with(&options, state.get());
        throw_start_failure();
        if (code == -EINVAL)
            io::detail::checked(code, [&] { return std::string(mistake()); });
        return io::detail::in_time(code, "serve");
    }
    /* Calls the function when the server listens, before it accepts. run() and serve() throw its
       exceptions. See haft_http_server_on_listening. */
    template <std::invocable F>
    void on_listening(F function) {
        auto kept = std::make_shared<F>(std::move(function));
        listening = [kept = std::move(kept)] { std::invoke(*kept); };
        haft_http_server_on_listening(state.get(), &call_on_listening, this);
    }
    /* A task for as long as the server is served, which is cancelled at the end. An exception that
       leaves it is a line in the log, and nothing else. See haft_http_server_add_background. */
    template <std::invocable F>
    void add_background(const char *name, F function) {
        auto kept = std::make_shared<F>(std::move(function));
        io::detail::checked(
            haft_http_server_add_background(state.get(), name, &call_background<F>, kept.get()),
            "add_background");
        functions.push_back(std::move(kept));
    }
    /* The last mistake in the use of the server; see haft_http_server_mistake. */
    std::string_view mistake() const { return haft_http_server_mistake(state.get()); }
    void stop() { haft_http_server_stop(state.get()); }
    bool is_stopping() const { return haft_http_server_is_stopping(state.get()); }
    /* Hands over to a new process; see haft_http_server_restart. */
    void restart() { io::detail::checked(haft_http_server_restart(state.get()), "restart"); }
    std::uint16_t port() const { return haft_http_server_port(state.get()); }

  private:
    template <typename F>
    static int call_on_error(haft_http_request_t *wrapped, const haft_http_error_t *error,
                             void *function) {
        return detail::call(wrapped, [&](request &in) {
            auto answer = [&] { return (*static_cast<F *>(function))(in, *error); };
            detail::answer_with(in, io::detail::call(answer));
        });
    }
    static haft_http_run_options_t options_of(const run_options &how) {
        static_assert(offsetof(run_options, debug_listen) ==
                          offsetof(haft_http_run_options_t, debug_listen),
                      "run_options has other fields than haft_http_run_options_t");
        return std::bit_cast<haft_http_run_options_t>(how);
    }
    static int call_on_listening(haft_http_server_t *, void *self) {
        auto &here = *static_cast<server *>(self);
        io::detail::outcome<void> done;
        {
            detail::throwing_cancels throwing;
            done.take_from(here.listening);
        }
        if (done.was_cancelled)
            return haft_io_unwind_cancelled();
        here.start_failure = done.failure;
        return done.failed ? HAFT_IO_BY_EXCEPTION : 0;
    }
    void throw_start_failure() {
        if (start_failure != nullptr)
            std::rethrow_exception(std::exchange(start_failure, nullptr));
    }
    template <typename F>
    static void *call_background(void *function) {
        io::detail::outcome<std::invoke_result_t<F &>> done;
        haft_io_return_cancels(true);
        done.take_from(*static_cast<F *>(function));
        if (done.failed)
            haft_io_note_failure(HAFT_IO_BY_EXCEPTION, io::detail::words_of(done.failure).c_str());
        return nullptr;
    }
    std::function<void(std::string_view)> log, access_log;
    std::function<void()> listening;
    std::exception_ptr start_failure; /* what `listening` has thrown */
};

/* For server::on_error: application/problem+json (RFC 9457). */
inline constexpr auto problem = [](request &in, const haft_http_error_t &error) {
    io::detail::checked(haft_http_answer_problem(in.get(), &error, nullptr), "problem");
};

/* The trace of the current task; nullptr: none. See haft_http_trace_get. */
inline const haft_http_trace_t *trace() {
    return haft_http_trace_get();
}

/* ---- The client ----------------------------------------------------------------------------- */

/* The cookies that servers have set; see haft/http_cookies.h. */
class cookie_jar {
  public:
    cookie_jar() : state(haft_http_cookie_jar_new()) {
        if (state == nullptr)
            throw std::bad_alloc();
    }
    /* Takes the field Set-Cookie of an answer of this URL; returns whether it is kept. */
    bool set(const std::string &url, const std::string &field) {
        int code = haft_http_cookie_jar_set(state.get(), url.c_str(), field.c_str());
        return code != -EINVAL && io::detail::checked(code, "set a cookie") == 0;
    }
    /* The field Cookie of a question for this URL; "": none. */
    std::string get(const std::string &url) const {
        char *text = nullptr;
        io::detail::checked(haft_http_cookie_jar_get(state.get(), url.c_str(), &text),
                            [&] { return "cookies for " + url; });
        std::unique_ptr<char, decltype(&std::free)> owned(text, &std::free);
        return text != nullptr ? text : "";
    }
    void clear() { haft_http_cookie_jar_clear(state.get()); }
    haft_http_cookie_jar_t *get() const { return state.get(); }

  private:
    struct free {
        void operator()(haft_http_cookie_jar_t *owned) const { haft_http_cookie_jar_free(owned); }
    };
    std::unique_ptr<haft_http_cookie_jar_t, free> state;
};

/* The answer of a server. The connection is kept if the body is read to its end. */
class reply {
  public:
    explicit reply(haft_http_reply_t *owned) : state(owned) {}

    int status() const { return haft_http_reply_status(state.get()); }
    std::optional<std::string_view> header(const char *name) const {
        const char *text = haft_http_reply_header(state.get(), name);
        return text != nullptr ? std::optional<std::string_view>(text) : std::nullopt;
    }
    /* All fields of the head, in their order. */
    fields headers() const { return detail::all_fields(&haft_http_reply_header_at, state.get()); }
    /* How many bytes of the body were read; 0 at its end. */
    std::size_t read(std::span<std::byte> into) {
        return io::detail::counted(haft_http_reply_read(state.get(), into.data(), into.size()),
                                   "read an answer");
    }
    /* All that is left of it; as long as the reply lives. */
    std::string_view body() {
        char *bytes = nullptr;
        std::size_t size =
            io::detail::counted(haft_http_reply_body(state.get(), &bytes), "read an answer");
        return {bytes, size};
    }

  private:
    struct free {
        void operator()(haft_http_reply_t *owned) const { haft_http_reply_free(owned); }
    };
    std::unique_ptr<haft_http_reply_t, free> state;
};

struct question {
    std::string url;
    std::string method = {}; /* "": GET, or POST if there is a body */
    std::optional<std::string> body = {};
    std::string type = {}; /* of the body */
    fields headers = {};
    /* In place of a body: fills a part of the span, and says how much; 0 at the end. */
    std::function<std::size_t(std::span<char>)> produce = {};
};

struct client_options {
    std::size_t kept = 0;
    int redirects = 0;
    std::uint64_t body = 0;
    haft_tls_context_t *tls =
        nullptr;               /* for https; nullptr: one that trusts whom the system trusts */
    bool uncompressed = false; /* see haft_http_client_options_t */
    std::uint64_t decompressed = 0;
    std::optional<std::string> proxy = {}; /* std::nullopt: what the environment says; "": none */
    std::size_t connections = 0;           /* to an origin at a time; 0: any number */
    cookie_jar *cookies = nullptr;         /* which outlives the client */
    bool untraced = false;
};

/* See haft/http_client.h. Errors are std::system_error, those of TLS std::errc::protocol_error;
   deadlines are those of the task (io::deadline, io::with_deadline). */
class client {
  public:
    explicit client(const client_options &how = {}) {
        haft_http_client_options_t options = {};
        options.kept = how.kept;
        options.redirects = how.redirects;
        options.body = how.body;
        options.tls = how.tls;
        options.uncompressed = how.uncompressed;
        options.decompressed = how.decompressed;
        options.proxy = how.proxy.has_value() ? how.proxy->c_str() : nullptr;
        options.connections = how.connections;
        options.cookies = how.cookies != nullptr ? how.cookies->get() : nullptr;
        options.untraced = how.untraced;
        state.reset(haft_http_client_new_with(&options));
        if (state == nullptr)
            throw std::bad_alloc();
    }
    reply get(const std::string &url) { return ask({.url = url}); }
    reply post(const std::string &url, std::string body, const std::string &type) {
        return ask({.url = url, .body = std::move(body), .type = type});
    }
    reply ask(const question &what) {
        haft_http_reply_t *answer = nullptr;
        call(what, [&](const haft_http_question_t &given) {
            return haft_http_client_ask(state.get(), &given, &answer);
        });
        return reply(answer);
    }

    haft_http_client_t *get() const { return state.get(); }

  private:
    friend class websocket;
    /* Calls the function with the question as haft/http_client.h has it, and throws what it
       returns. */
    template <typename F>
    static void call(const question &what, F &&function) {
        std::vector<haft_http_header_t> headers;
        for (const auto &[name, value] : what.headers)
            headers.push_back({name.c_str(), value.c_str()});
        haft_http_question_t given = {};
        given.url = what.url.c_str();
        given.method = what.method.empty() ? nullptr : what.method.c_str();
        given.headers = headers.data();
        given.header_count = headers.size();
        given.type = what.type.empty() ? nullptr : what.type.c_str();
        given.body = what.body.has_value() ? what.body->data() : nullptr;
        given.size = what.body.has_value() ? what.body->size() : 0;
        if (what.produce) {
            given.produce = &call_producer;
            given.argument = const_cast<question *>(&what);
        }
        std::array<char, 512> failure = {};
        given.failure = failure.data();
        given.failure_size = failure.size();
        int code = function(given);
        if (code <= of_tls && code > HAFT_IO_ERROR_OF_RESOLVER)
            code = -EPROTO;
        io::detail::checked(code, [&] {
            return io::detail::without_error("ask " + what.url + ": " + failure.data(), code);
        });
    }
    static constexpr int of_tls = -20000; /* HAFT_TLS_ERROR_OF_CERTIFICATE */
    static ssize_t call_producer(void *asked, void *buffer, std::size_t size) {
        const auto &produce = static_cast<const question *>(asked)->produce;
        return static_cast<ssize_t>(produce(std::span(static_cast<char *>(buffer), size)));
    }
    struct free {
        void operator()(haft_http_client_t *owned) const { haft_http_client_free(owned); }
    };
    std::unique_ptr<haft_http_client_t, free> state;
};

} // namespace haft::http

#include <haft/http_metrics.hpp>
#include <haft/http_multipart.hpp>
#include <haft/http_proxy.hpp>
#include <haft/http_websocket.hpp>

#endif
