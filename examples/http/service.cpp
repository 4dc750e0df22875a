// SPDX-License-Identifier: MIT
/* A service as it is deployed: `service_cpp FILE PLACE` answers with a line of the file, which it
   reads before it is ready and again every second. PLACE is where to listen, such as ":8080",
   "systemd" or "unix:/run/motto.sock". Balancers ask /ready. SIGUSR1 dumps its tasks, SIGUSR2
   restarts it. deploy/ has a unit of systemd and a container for it. */
#include <haft/http.hpp>

#include <csignal>
#include <fstream>
#include <iostream>

namespace http = haft::http;
namespace io = haft::io;
using namespace std::chrono_literals;

/* A thread of the pool waits for the disk. */
static std::string read_motto(const char *path) {
    return io::call_blocking([path] {
        std::string line;
        std::ifstream file(path);
        if (!std::getline(file, line))
            throw std::runtime_error(std::string("cannot read ") + path);
        return line;
    });
}

int main(int count, char **arguments) try {
    if (count != 3)
        return std::cerr << "usage: service_cpp FILE PLACE\n", 2;
    const char *path = arguments[1];
    std::string motto;
    http::server server;
    server.get("/", [&](http::request &) { return motto + '\n'; });
    server.serve_readiness("/ready");
    /* Before the first connection is accepted: an exception ends the program. */
    server.on_listening([&] { motto = read_motto(path); });
    /* In the background, until the last request has ended. */
    server.add_background("refresh", [&] {
        for (;;) {
            io::sleep_for(1s);
            try {
                motto = read_motto(path);
            } catch (const std::exception &failure) { /* the last one stays */
                std::cerr << failure.what() << '\n';
            }
        }
    });
    server.set_access_log(HAFT_HTTP_LOG_JSON);
    return server.run({.listen = arguments[2],
                       .restart_signal = SIGUSR2,
                       .watchdog = 1s,
                       .dump_signal = SIGUSR1,
                       .notify = true,
                       .unready_time = 3s});
} catch (const std::exception &failure) {
    return std::cerr << failure.what() << '\n', 1;
}
