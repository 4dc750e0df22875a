// SPDX-License-Identifier: MIT
/* Failures, and the end: a handler that throws is a 500 and a line in the log, and the others go
   on; a server that stops answers what has come, and cancels what takes longer than `grace`. It
   asks itself, in a simulation. */
#include <haft/http.hpp>

#include <iostream>

namespace http = haft::http;
namespace io = haft::io;
using namespace std::chrono_literals;

struct unwound {
    ~unwound() { std::cout << "what took an hour is unwound\n"; }
};

static void add_all(http::server &server) {
    server.set_limits({.grace = 10s});
    server.get("/broken", [](http::request &) -> std::string {
        throw std::runtime_error("the disk is full");
    });
    server.get("/slow", [](http::request &) {
        io::sleep_for(5s);
        return "slow, but whole";
    });
    server.get("/endless", [](http::request &) {
        unwound noting;
        io::sleep_for(1h);
        return "never";
    });
}

static void ask(const std::string &path) {
    http::client client;
    try {
        http::reply reply = client.get("http://127.0.0.1:8080" + path);
        std::cout << path << ": " << reply.status() << '\n';
    } catch (const std::system_error &) {
        std::cout << path << ": no answer\n";
    }
}

int main() {
    http::server server;
    server.set_log([](std::string_view line) { std::cout << "log: " << line << '\n'; });
    add_all(server);
    io::simulate({.seed = 1, .network = true}, [&] {
        io::listener listener("127.0.0.1", 8080);
        auto serving = io::async([&] { return server.serve(std::move(listener)); });
        for (const char *path : {"/slow", "/endless", "/broken"})
            io::spawn([path] { ask(path); });
        io::sleep_for(1s);
        server.stop();
        io::sleep_for(1ms);
        std::cout << "stopped\n";
        ask("/late"); /* nobody listens any more */
        std::cout << (serving.join() ? "all was answered\n" : "something was cut off\n");
    });
}
