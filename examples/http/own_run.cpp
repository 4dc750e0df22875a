// SPDX-License-Identifier: MIT
/* A server in a run of the program's own, beside its other tasks: `own_run PLACE 8080` listens at
   both, such as unix:/run/own.sock and port 8080, until SIGINT or SIGTERM, and restarts on
   SIGUSR2. */
#include <haft/http.hpp>

#include <csignal>
#include <iostream>

namespace http = haft::http;
namespace io = haft::io;
using namespace std::chrono_literals;

int main(int count, char **arguments) try {
    if (count != 3)
        return std::cerr << "usage: own_run PLACE PORT\n", 2;
    std::string places = std::string(arguments[1]) + " 127.0.0.1:" + arguments[2];
    io::signals blocked({SIGINT, SIGTERM, SIGUSR2}); /* before the run begins */
    bool is_whole = false;
    int ticks = 0;
    http::server server;
    server.get("/", [&](http::request &) { return std::to_string(ticks) + " ticks\n"; });
    /* The program does something else, too. */
    auto tick = [&] {
        for (;; ticks++)
            io::sleep_for(10ms);
    };
    io::run([&](io::scope_ref all) {
        io::spawn(tick);
        is_whole = server.serve(
            {.listen = places.c_str(), .restart_signal = SIGUSR2, .stop_signals = true});
        all.cancel();
    });
    return is_whole ? 0 : 1;
} catch (const std::exception &failure) {
    return std::cerr << failure.what() << '\n', 1;
}
