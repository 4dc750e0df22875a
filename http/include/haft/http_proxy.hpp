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
struct proxy_options {
    const char *strip = nullptr, *name = nullptr;
    bool keeps_host = false;
    haft_http_forward_t forwarded = HAFT_HTTP_FORWARD_BOTH;
    unsigned attempts = 0, failures = 0;
    std::chrono::nanoseconds out_of_use = {}, connect_time = {}, answer_time = {};
    std::uint64_t body = 0;
    const char *health = nullptr;
    std::chrono::nanoseconds health_pause = {}, health_time = {};
    std::size_t kept = 0, connections = 0;
    haft_tls_context_t *tls = nullptr;
};

/* A handler, whose copies are one proxy; see haft_http_proxy_pass. */
class proxy {
  public:
    /* Throws std::system_error where an upstream is no URL. */
    explicit proxy(const std::vector<std::string> &upstreams, const proxy_options &how = {}) {
        std::vector<const char *> urls;
        for (const std::string &upstream : upstreams)
            urls.push_back(upstream.c_str());
        haft_http_proxy_options_t options = {};
        options.upstreams = urls.data();
        options.upstream_count = urls.size();
        options.strip = how.strip;
        options.name = how.name;
        options.keeps_host = how.keeps_host;
        options.forwarded = how.forwarded;
        options.attempts = how.attempts;
        options.failures = how.failures;
        options.out_of_use = how.out_of_use.count();
        options.connect_time = how.connect_time.count();
        options.answer_time = how.answer_time.count();
        options.body = how.body;
        options.health = how.health;
        options.health_pause = how.health_pause.count();
        options.health_time = how.health_time.count();
        options.kept = how.kept;
        options.connections = how.connections;
        options.tls = how.tls;
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
