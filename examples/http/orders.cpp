// SPDX-License-Identifier: MIT
/* Tasks of a handler: those of the request end before the answer is sent, one of the server's
   outlives it, and a server that stops waits for that. It asks itself, in a simulation. */
#include <haft/http.hpp>

#include <iostream>

namespace http = haft::http;
namespace io = haft::io;
using namespace std::chrono_literals;

static int ask(int answer) { /* a service that takes its time */
    io::sleep_for(10ms);
    return answer;
}

static void add_all(http::server &server) {
    server.post("/orders", [](http::request &in) {
        io::task<int> pieces = io::async([] { return ask(3); });
        io::task<int> price = io::async([] { return ask(5); });
        in.server_scope().spawn([order = std::string(in.body())] {
            io::sleep_for(50ms);
            std::cout << "a mail about " << order << '\n';
        });
        return std::to_string(pieces.join() * price.join()) + '\n';
    });
    server.post("/broken", [](http::request &) {
        io::spawn([] { io::sleep_for(1h); }); /* is cancelled, since the other one fails */
        io::spawn([] { throw std::runtime_error("the stock is unknown"); });
        return "never";
    });
}

static void talk(http::server &server) {
    io::listener listener("127.0.0.1", 8080);
    io::spawn([&] { server.serve(std::move(listener)); });
    http::client client;
    for (const char *path : {"/orders", "/broken"}) {
        http::reply reply =
            client.post(std::string("http://127.0.0.1:8080") + path, "cakes", "text/plain");
        std::cout << reply.status() << ' ' << reply.body();
    }
    std::cout << "to be stopped\n";
    server.stop();
}

int main() {
    http::server server;
    server.set_log([](std::string_view line) {
        if (!line.starts_with(' ')) /* of a backtrace */
            std::cout << "log: " << line << '\n';
    });
    add_all(server);
    io::simulate({.seed = 1, .network = true}, [&] {
        io::scope([&] { talk(server); });
        std::cout << "stopped\n";
    });
}
