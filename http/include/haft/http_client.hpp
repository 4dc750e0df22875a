// SPDX-License-Identifier: MIT
/*
 * Haft HTTP for C++20: a client, over haft/http_client.h. haft/http.hpp includes this file.
 *
 *     haft::http::client client;
 *     haft::http::reply reply = client.get("http://localhost:8080/hello/Ada");
 *     std::cout << reply.body();
 *
 * A question is C++'s until it is asked: C sees its texts during the call alone.
 */
#ifndef HAFT_HTTP_CLIENT_HPP
#define HAFT_HTTP_CLIENT_HPP

#include <haft/http_request.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace haft::http {

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
    /* For client_options::cookies. */
    friend haft_http_cookie_jar_t *in_c(cookie_jar *jar) {
        return jar != nullptr ? jar->get() : nullptr;
    }
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
    /* In place of a body: fills a part of the span, and returns how much; 0 at the end. */
    std::function<std::size_t(std::span<char>)> produce = {};
};

/* See haft_http_client_options_t. */
#define HAFTI_HTTP_FIELDS(FIELD, OWN)                                                              \
    FIELD(std::size_t, kept, 0)                                                                    \
    FIELD(std::size_t, kept_in_all, 0)                                                             \
    FIELD(std::chrono::nanoseconds, kept_time, {})                                                 \
    FIELD(int, redirects, 0)                                                                       \
    FIELD(std::uint64_t, body, 0)                                                                  \
    /* for https; nullptr: one that trusts the system's authorities */                             \
    FIELD(haft_tls_context_t *, tls, nullptr)                                                      \
    FIELD(bool, uncompressed, false)                                                               \
    FIELD(std::uint64_t, decompressed, 0)                                                          \
    /* std::nullopt: those of the environment; "": none */                                         \
    FIELD(std::optional<std::string>, proxy, {})                                                   \
    FIELD(std::size_t, connections, 0)    /* to an origin at a time; 0: any number */              \
    FIELD(cookie_jar *, cookies, nullptr) /* which outlives the client */                          \
    FIELD(bool, untraced, false)
struct client_options {
    HAFT_IO_OPTIONS(haft_http_client_options_t, HAFTI_HTTP_FIELDS)
};
#undef HAFTI_HTTP_FIELDS

/* See haft/http_client.h. Errors are std::system_error, those of TLS std::errc::protocol_error;
   deadlines are those of the task (io::deadline, io::with_deadline). */
class client {
  public:
    explicit client(const client_options &how = {}) {
        haft_http_client_options_t options = how.as_c();
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

#endif
