// SPDX-License-Identifier: MIT
/* The first step of docs/http.md's tutorial: a list of things to do. `list 8080`, then
   curl -X PUT localhost:8080/todo/tea and curl localhost:8080/todo. */
#include <haft/http.hpp>

#include <cstdlib>
#include <map>

namespace http = haft::http;

int main(int count, char **arguments) {
    std::map<std::string, bool> todo; /* and whether it is done */
    http::server server;
    server.get("/todo", [&](http::request &) {
        std::string text;
        for (const auto &[what, is_done] : todo)
            text += (is_done ? "[x] " : "[ ] ") + what + '\n';
        return text;
    });
    server.put("/todo/{what}", [&](http::request &request) {
        todo[request.path("what")] = request.query("done") == "yes";
        return http::response{.status = 201};
    });
    server.del("/todo/{what}", [&](http::request &request) {
        if (todo.erase(request.path("what")) == 0)
            throw http::error(404, "there is no such thing to do\n");
        return http::response{.status = 204};
    });
    return server.run({.port = std::uint16_t(count > 1 ? std::atoi(arguments[1]) : 8080)});
}
