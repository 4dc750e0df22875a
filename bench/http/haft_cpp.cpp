// SPDX-License-Identifier: MIT
/* `haft_cpp PORT`: the answer of load.c by haft::http::server. */
#include <haft/http.hpp>

#include <cstdlib>
#include <string>

int main(int count, char **arguments) {
    haft::http::server server;
    server.set_limits({.connections = 20000});
    server.get("/bench", [body = std::string(1024, 'x')](haft::http::request &) { return body; });
    return server.run(
        {.host = "127.0.0.1", .port = std::uint16_t(std::atoi(arguments[count - 1]))});
}
