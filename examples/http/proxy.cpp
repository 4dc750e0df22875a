// SPDX-License-Identifier: MIT
/* A reverse proxy: `proxy URL... PORT` passes requests on to these services in turn, piece by
   piece in both directions. A service is left out while it does not answer GET /health. */
#include <haft/http.hpp>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <iostream>

namespace http = haft::http;
namespace io = haft::io;

/* All fields but those that are of one connection only (RFC 9110, 7.6.1) or are written anew. */
static http::fields pass_on(http::fields all) {
    std::string dropped = " connection proxy-connection keep-alive te trailer transfer-encoding "
                          "upgrade content-length host date expect ";
    for (const auto &[name, value] : all)
        if (strcasecmp(name.c_str(), "connection") == 0)
            dropped += value + ' ';
    std::ranges::replace(dropped, ',', ' ');
    std::erase_if(all, [&](const auto &field) {
        return strcasestr(dropped.c_str(), (' ' + field.first + ' ').c_str()) != nullptr;
    });
    return all;
}

struct proxy {
    void pass(http::request &request) {
        request.limit_body(UINT64_MAX); /* that is the services' concern */
        http::reply reply = ask(request);
        for (const auto &[name, value] : pass_on(reply.headers()))
            request.set_header(name.c_str(), value);
        request.begin(reply.status(), nullptr);
        std::array<char, 16384> piece;
        while (auto size = reply.read(std::as_writable_bytes(std::span(piece))))
            request.write({piece.data(), size}), request.flush();
    }
    void watch_health() {
        for (;; io::sleep_for(std::chrono::seconds(1)))
            for (service &each : services)
                if (bool now = is_well(each.url); std::exchange(each.well, now) != now)
                    std::cerr << each.url << (now ? " is back\n" : " is down\n");
    }

    struct service {
        service(const char *at) : url(at) {}
        std::string url;
        bool well = true;
    };
    http::reply ask(http::request &request) try {
        http::question question = {.url = choose().url + std::string(request.target()),
                                   .method = std::string(request.method()),
                                   .headers = pass_on(request.headers())};
        question.headers.emplace_back("X-Forwarded-For", request.peer());
        if (request.header("Content-Length") || request.header("Transfer-Encoding"))
            question.produce = [&](auto into) {
                return request.read(std::as_writable_bytes(into));
            };
        return client.ask(question);
    } catch (const std::system_error &error) {
        throw http::error(502, std::string(error.what()) + '\n');
    }
    bool is_well(const std::string &url) try {
        io::deadline soon(std::chrono::seconds(2));
        return client.get(url + "/health").status() == 200;
    } catch (const std::system_error &) {
        return false;
    }
    const service &choose() {
        for (std::size_t i = 0; i < services.size(); i++)
            if (const service &next = services[++last % services.size()]; next.well)
                return next;
        throw http::error(503, "no service is well\n");
    }

    std::vector<service> services;
    std::size_t last = 0;
    http::client client{{.kept = 100, .redirects = -1, .uncompressed = true, .proxy = ""}};
};

int main(int count, char **arguments) try {
    if (count < 3)
        return std::cerr << "usage: proxy URL... PORT\n", 2;
    proxy proxy{.services = std::vector<proxy::service>(arguments + 1, arguments + count - 1)};
    http::server server;
    server.cancel_with_client();
    for (const char *method : {"GET", "POST", "PUT", "PATCH", "DELETE"})
        server.route(method, "/{path...}", [&](http::request &request) { proxy.pass(request); });
    io::signals stop{SIGINT, SIGTERM};
    io::run([&](io::scope_ref run) {
        run.spawn([&] { proxy.watch_health(); });
        run.spawn([&] { stop.wait(), server.stop(); });
        server.serve(io::listener("::", std::uint16_t(std::stoi(arguments[count - 1]))));
        run.cancel();
    });
} catch (const std::exception &failure) {
    return std::cerr << "proxy: " << failure.what() << '\n', 1;
}
