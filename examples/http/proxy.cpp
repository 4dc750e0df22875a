// SPDX-License-Identifier: MIT
/* A reverse proxy: `proxy URL... PORT` passes requests on to these services in turn, piece by
   piece in both directions. A service is left out while it does not answer GET /health. */
#include <haft/http.hpp>

#include <iostream>

namespace http = haft::http;

int main(int count, char **arguments) try {
    if (count < 3)
        return std::cerr << "usage: proxy URL... PORT\n", 2;
    std::vector<std::string> services(arguments + 1, arguments + count - 1);
    http::server server;
    server.cancel_with_client();
    server.any("/{path...}", http::proxy_to(services, {.health = "/health",
                                                       .health_pause = std::chrono::seconds(1)}));
    return server.run({.port = std::uint16_t(std::stoi(arguments[count - 1]))});
} catch (const std::exception &failure) {
    return std::cerr << "proxy: " << failure.what() << '\n', 1;
}
