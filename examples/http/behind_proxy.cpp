// SPDX-License-Identifier: MIT
/* Behind a proxy: whose address a request has, before the proxy is trusted and after. It asks
   itself, as the proxy at 127.0.0.1. */
#include <haft/http.hpp>

#include <iostream>

namespace http = haft::http;
namespace io = haft::io;

static void talk(http::server &server) {
    io::spawn([&] { server.serve(io::listener("127.0.0.1", 0)); });
    while (server.port() == 0)
        io::yield();
    http::client client;
    /* The client has written the first address itself, proxies the others. */
    http::fields forwarded = {{"X-Forwarded-For", "192.0.2.1, 203.0.113.7, 10.0.0.2"}};
    std::string url = "http://127.0.0.1:" + std::to_string(server.port());
    std::cout << client.ask({.url = url, .headers = forwarded}).body();
    server.stop();
}

int main() {
    http::server server;
    server.get("/",
               [](http::request &request) { return std::string(request.client_address()) + '\n'; });
    io::run([&] { talk(server); });
    server.trust_proxies("127.0.0.1 10.0.0.0/8", "X-Forwarded-For");
    io::run([&] { talk(server); });
}
