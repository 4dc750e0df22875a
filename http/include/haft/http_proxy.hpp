// SPDX-License-Identifier: MIT
/*
 * Haft HTTP for C++20: a reverse proxy as a handler, over haft/http_proxy.h. haft/http.hpp includes
 * this file.
 *
 *     server.any("/{path...}",
 *                haft::http::proxy_to({"http://10.0.0.1:8080", "http://10.0.0.2:8080"}));
 */
#ifndef HAFT_HTTP_PROXY_HPP
#define HAFT_HTTP_PROXY_HPP

#include <haft/http.hpp>

namespace haft::http {

/* See haft_http_proxy_options_t. */
#define HAFTI_HTTP_FIELDS(FIELD, OWN)                                                              \
    FIELD(const char *, strip, nullptr)                                                            \
    FIELD(const char *, name, nullptr)                                                             \
    FIELD(bool, keeps_host, false)                                                                 \
    FIELD(haft_http_forward_t, forwarded, HAFT_HTTP_FORWARD_BOTH)                                  \
    FIELD(unsigned, attempts, 0)                                                                   \
    FIELD(unsigned, failures, 0)                                                                   \
    FIELD(std::chrono::nanoseconds, out_of_use, {})                                                \
    FIELD(std::chrono::nanoseconds, connect_time, {})                                              \
    FIELD(std::chrono::nanoseconds, answer_time, {})                                               \
    FIELD(std::uint64_t, body, 0)                                                                  \
    FIELD(const char *, health, nullptr)                                                           \
    FIELD(std::chrono::nanoseconds, health_pause, {})                                              \
    FIELD(std::chrono::nanoseconds, health_time, {})                                               \
    FIELD(std::size_t, kept, 0)                                                                    \
    FIELD(std::size_t, connections, 0)                                                             \
    FIELD(haft_tls_context_t *, tls, nullptr)
struct proxy_options {
    HAFT_IO_OPTIONS(haft_http_proxy_options_t, HAFTI_HTTP_FIELDS)
};
#undef HAFTI_HTTP_FIELDS

/* A handler, whose copies are one proxy; see haft_http_proxy_pass. */
class proxy {
  public:
    /* Throws std::system_error where an upstream is no URL. */
    explicit proxy(const std::vector<std::string> &upstreams, const proxy_options &how = {}) {
        std::vector<const char *> urls;
        for (const std::string &upstream : upstreams)
            urls.push_back(upstream.c_str());
        haft_http_proxy_options_t options = how.as_c();
        options.upstreams = urls.data();
        options.upstream_count = urls.size();
        haft_http_proxy_t *made = nullptr;
        io::detail::checked(haft_http_proxy_new_with(&options, &made), "proxy_to");
        state.reset(made, &haft_http_proxy_free);
    }
    /* For a handler of your own, which first looks at the request. */
    void operator()(request &in) const {
        const char *text = nullptr;
        int code = haft_http_proxy_pass(in.get(), state.get());
        if (code == HAFT_HTTP_REFUSED) {
            int status = haft_http_request_refused(in.get(), &text);
            throw error(status, text != nullptr ? text : "");
        }
        io::detail::checked(code, "pass a request on");
    }
    /* The state of the upstream of this number; std::nullopt: there is none. */
    std::optional<haft_http_upstream_t> upstream(std::size_t number) const {
        haft_http_upstream_t known = {};
        return haft_http_proxy_upstream(state.get(), number, &known) ? std::optional(known)
                                                                     : std::nullopt;
    }
    haft_http_proxy_t *get() const { return state.get(); }

    /* Routes call this one, without an exception between. */
    static constexpr haft_http_handler_t *c_handler = &haft_http_proxy_pass;

  private:
    std::shared_ptr<haft_http_proxy_t> state;
};

/* A handler that passes requests on to these services in turn. */
inline proxy proxy_to(const std::vector<std::string> &upstreams, const proxy_options &how = {}) {
    return proxy(upstreams, how);
}

} // namespace haft::http

#endif
