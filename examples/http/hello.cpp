// SPDX-License-Identifier: MIT
/* Hello: the first web server. `hello_cpp`, then: curl http://localhost:8080/hello/you. Its
   argument is another port. */
#include <haft/http.hpp>

#include <cstdlib>

int main(int count, char **arguments) {
    haft::http::server server;
    server.get("/hello/{name}", [](haft::http::request &request) {
        return "Hello, " + request.path("name") + "\n";
    });
    return server.run(
        {.port = count > 1 ? std::uint16_t(std::atoi(arguments[1])) : std::uint16_t(8080)});
}
