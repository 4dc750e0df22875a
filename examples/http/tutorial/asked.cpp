// SPDX-License-Identifier: MIT
/* The second step of docs/http.md's tutorial: the list, and a client that asks for it. Both run in a
   simulation, whose network exists in this program only. */
#include <haft/http.hpp>

#include <iostream>
#include <map>

namespace http = haft::http;
namespace io = haft::io;

using list = std::map<std::string, bool>;

static void add_routes(http::server &server, list &todo) {
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
}

static void ask(http::client &client, const http::question &question) {
    http::reply reply = client.ask(question);
    std::cout << reply.status() << '\n' << reply.body();
}

int main() {
    list todo;
    http::server server;
    add_routes(server, todo);
    io::simulate({.seed = 1, .network = true}, [&] {
        io::listener listener("127.0.0.1", 8080);
        io::spawn([&] { server.serve(std::move(listener)); });
        http::client client;
        ask(client, {.url = "http://127.0.0.1:8080/todo/tea", .method = "PUT"});
        ask(client, {.url = "http://127.0.0.1:8080/todo/wine?done=yes", .method = "PUT"});
        ask(client, {.url = "http://127.0.0.1:8080/todo"});
        ask(client, {.url = "http://127.0.0.1:8080/tofu"});
        server.stop();
    });
}
