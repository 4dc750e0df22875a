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
 *
 * Routes and the server are in this file. It includes http_request.hpp (a request and its answer)
 * and http_handlers.hpp (how functions become handlers, middleware and clauses), and behind the
 * server http_client.hpp, http_metrics.hpp, http_multipart.hpp, http_proxy.hpp and
 * http_websocket.hpp.
 */
#ifndef HAFT_HTTP_HPP
#define HAFT_HTTP_HPP

#include <haft/http_handlers.hpp>
#include <haft/http_request.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace haft::http {

/* See haft_http_limits_t. */
#define HAFTI_HTTP_FIELDS(FIELD, OWN)                                                              \
    FIELD(std::size_t, request_line, 0)                                                            \
    FIELD(std::size_t, head, 0)                                                                    \
    FIELD(std::size_t, fields, 0)                                                                  \
    FIELD(std::uint64_t, body, 0)                                                                  \
    FIELD(std::size_t, connections, 0)                                                             \
    FIELD(std::size_t, connections_of_client, 0)                                                   \
    FIELD(std::size_t, streams, 0)                                                                 \
    FIELD(std::chrono::nanoseconds, idle_time, {})                                                 \
    FIELD(std::chrono::nanoseconds, head_time, {})                                                 \
    FIELD(std::chrono::nanoseconds, body_time, {})                                                 \
    FIELD(std::chrono::nanoseconds, write_time, {})                                                \
    FIELD(std::uint64_t, least_rate, 0)                                                            \
    FIELD(std::chrono::nanoseconds, grace, {})                                                     \
    FIELD(std::chrono::nanoseconds, events_time, {})
struct limits {
    HAFT_IO_OPTIONS(haft_http_limits_t, HAFTI_HTTP_FIELDS)
};
#undef HAFTI_HTTP_FIELDS

/* See haft_http_files_options_t. */
#define HAFTI_HTTP_FIELDS(FIELD, OWN)                                                              \
    FIELD(const char *, index, nullptr) /* nullptr: "index.html"; "": none */                      \
    FIELD(const char *, cache_control, nullptr)                                                    \
    FIELD(bool, precompressed, false)                                                              \
    FIELD(bool, dot_files, false)                                                                  \
    FIELD(decltype(haft_http_files_options_t::type_of), type_of, nullptr)
struct files_options {
    HAFT_IO_OPTIONS(haft_http_files_options_t, HAFTI_HTTP_FIELDS)
};
#undef HAFTI_HTTP_FIELDS

/* See haft_http_cors_options_t. */
#define HAFTI_HTTP_FIELDS(FIELD, OWN)                                                              \
    OWN(std::vector<std::string>, origins, {}) /* empty: any */                                    \
    FIELD(const char *, methods, nullptr)                                                          \
    FIELD(const char *, fields, nullptr)                                                           \
    FIELD(const char *, exposed, nullptr)                                                          \
    FIELD(bool, credentials, false)                                                                \
    FIELD(std::chrono::seconds, max_age, {})
struct cors_options {
    HAFT_IO_OPTIONS(haft_http_cors_options_t, HAFTI_HTTP_FIELDS)
};
#undef HAFTI_HTTP_FIELDS

/* See haft_http_run_options_t. */
#define HAFTI_HTTP_FIELDS(FIELD, OWN)                                                              \
    FIELD(const char *, host, nullptr)                                                             \
    FIELD(std::uint16_t, port, 0)                                                                  \
    FIELD(int, backlog, 0)                                                                         \
    FIELD(int, threads, 0) /* 0: one; HAFT_HTTP_EACH_PROCESSOR */                                  \
    FIELD(const char *, backend, nullptr)                                                          \
    FIELD(const char *, listen, nullptr) /* instead of host and port */                            \
    FIELD(bool, reuse_port, false)                                                                 \
    FIELD(int, restart_signal, 0) /* such as SIGUSR2: see haft_http_server_restart */              \
    FIELD(std::size_t, stack_size, 0)                                                              \
    FIELD(std::chrono::nanoseconds, watchdog, {})                                                  \
    FIELD(int, dump_signal, 0)                                                                     \
    FIELD(bool, notify, false) /* systemd, as Type=notify */                                       \
    FIELD(std::chrono::nanoseconds, unready_time, {})                                              \
    FIELD(bool, stop_signals, false) /* for server::serve */                                       \
    /* pages for the operator, on a thread of their own */                                         \
    FIELD(const char *, debug_listen, nullptr)                                                     \
    FIELD(const char *, keep_requests, nullptr) /* a folder for requests that fail */
struct run_options {
    HAFT_IO_OPTIONS(haft_http_run_options_t, HAFTI_HTTP_FIELDS)
};
#undef HAFTI_HTTP_FIELDS

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
        haft_http_cors_options_t options = how.as_c();
        options.origins = origins.data();
        options.origin_count = origins.size();
        io::detail::checked(haft_http_server_set_cors(own, &options), "cors");
    }
    /* Static files: see haft_http_server_serve_files. */
    void files(const std::string &prefix, const std::string &folder,
               const files_options &how = {}) {
        haft_http_files_options_t options = how.as_c();
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
    /* Lets the server keep the function; `into` registers the function of C that calls it. */
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
    /* With nullptr for the field only the PROXY protocol is trusted. */
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
        haft_http_limits_t set = given.as_c();
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
        haft_http_run_options_t options = how.as_c();
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
    /* The same, at the places of the options; see haft_http_server_serve_with. */
    bool serve(const run_options &how) {
        haft_http_run_options_t options = how.as_c();
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

} // namespace haft::http

#include <haft/http_client.hpp>
#include <haft/http_metrics.hpp>
#include <haft/http_multipart.hpp>
#include <haft/http_proxy.hpp>
#include <haft/http_websocket.hpp>

#endif
