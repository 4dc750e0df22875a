// SPDX-License-Identifier: MIT
/* A server in a program whose thread is another loop's, as that of a toolkit or a game: the run goes
   on in steps of that loop, which waits for the run's descriptor and time beside its own. Here a
   task asks the server; ../io/loops has GLib and libuv. */
#include <haft/http.hpp>

#include <algorithm>
#include <iostream>
#include <poll.h>

namespace http = haft::http;
namespace io = haft::io;
using namespace std::chrono_literals;

/* Plays the toolkit, which draws a picture every 10 ms. */
struct toolkit {
    int pictures = 0;
    io::clock::time_point next = io::clock::now();

    void turn(int descriptor, io::clock::time_point deadline) {
        auto left = std::min(next, deadline) - io::clock::now();
        pollfd entry = {descriptor, POLLIN, 0};
        poll(&entry, 1,
             std::max(0, int(std::chrono::ceil<std::chrono::milliseconds>(left).count())));
        if (io::clock::now() >= next) {
            pictures++;
            next = io::clock::now() + 10ms;
        }
    }
};

int main() {
    toolkit screen;
    http::server server;
    server.get("/", [&](http::request &) {
        for (int seen = screen.pictures; screen.pictures == seen;)
            io::sleep_for(1ms);
        return "a picture was drawn\n";
    });
    io::stepper tasks([&] {
        io::spawn([&] { server.serve({.listen = "127.0.0.1:0"}); });
        while (server.port() == 0)
            io::sleep_for(1ms);
        http::client client;
        for (int i = 0; i < 2; i++)
            std::cout << client.get("http://127.0.0.1:" + std::to_string(server.port())).body();
        server.stop();
    });
    while (tasks.step())
        screen.turn(tasks.descriptor(), tasks.deadline());
    tasks.end();
}
