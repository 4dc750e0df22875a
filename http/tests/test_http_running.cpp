// SPDX-License-Identifier: MIT
/* haft/http.hpp: the options of a server, the function that is called when it listens, its
   background; what these throw. */
#include <haft/http.hpp>

#include "check_http.h"

namespace http = haft::http;
namespace io = haft::io;
using namespace std::chrono_literals;

static std::string log_lines;

static int status_of(http::server &server, const char *path) {
    http::client client;
    return client.get("http://127.0.0.1:" + std::to_string(server.port()) + path).status();
}

static void add_all(http::server &server) {
    log_lines.clear();
    server.set_log([](std::string_view line) { log_lines.append(line).append("\n"); });
    server.serve_readiness("/ready");
}

/* The body runs beside the server, once that listens. */
template <typename F>
static void beside(http::server &server, const http::run_options &how, F function) {
    io::scope([&] {
        io::spawn([&] { server.serve(how); });
        while (server.port() == 0)
            io::sleep_for(1ms);
        function();
        server.stop();
    });
}

static void run_to_its_end() {
    http::server server;
    add_all(server);
    int rounds = 0, ended = 0;
    std::string order;
    server.on_listening([&] {
        io::spawn([&] { /* before the server is ready */
                        io::sleep_for(5ms);
                        order += "warm ";
        });
        order += "listens ";
    });
    server.add_background("rounds", [&] {
        struct at_end {
            int &count;
            ~at_end() { count++; }
        } noting{ended};
        order += "rounds";
        for (;; io::sleep_for(1ms))
            rounds++;
    });
    server.add_background("fails", [] { throw std::runtime_error("the mail is gone"); });
    beside(server, {.host = "127.0.0.1", .unready_time = 100ms}, [&] {
        CHECK(status_of(server, "/ready") == 200 && order == "listens warm rounds");
        while (rounds < 3)
            io::sleep_for(1ms);
        CHECK(ended == 0 && !server.is_stopping());
        server.stop();
        CHECK(status_of(server, "/ready") == 503 && server.is_stopping());
    });
    CHECK(ended == 1 && !server.is_stopping());
    CHECK(log_lines.find("the mail is gone") != std::string::npos);
}

static void fail_to_begin() {
    http::server server;
    add_all(server);
    server.on_listening([] { throw std::out_of_range("no cache"); });
    try {
        server.serve({.listen = "127.0.0.1:0"});
        CHECK(false);
    } catch (const std::out_of_range &) {
    }
    server.on_listening([] { io::spawn([] { throw std::out_of_range("no cache in a task"); }); });
    try {
        server.serve({.listen = "127.0.0.1:0"});
        CHECK(false);
    } catch (const std::system_error &failed) {
        CHECK(log_lines.find("cannot serve") != std::string::npos);
    }
    server.on_listening([&] { server.stop(), io::sleep_for(1h); });
    CHECK(server.serve({.listen = "127.0.0.1:0"})); /* the wait is cancelled */
}

static void teach() {
    http::server server;
    add_all(server);
    try {
        server.serve({.threads = 2});
        CHECK(false);
    } catch (const std::system_error &wrong) {
        CHECK(std::string_view(wrong.what()).find("give them to haft_io_run_with") !=
              std::string_view::npos);
    }
}

/* Each field has come where it belongs. */
static void run_by_options() {
    http::server server;
    add_all(server);
    int begun = 0;
    server.on_listening([&] { begun++, server.stop(); });
    CHECK(server.run({.host = "127.0.0.1",
                      .backlog = 5,
                      .threads = 2,
                      .backend = "epoll",
                      .reuse_port = true,
                      .restart_signal = SIGUSR2,
                      .stack_size = 65536,
                      .watchdog = 1h,
                      .dump_signal = SIGUSR1,
                      .notify = true,
                      .unready_time = 1ns,
                      .stop_signals = true}) == 0);
    CHECK(begun == 1);
    CHECK(server.run({.backend = "none such"}) == 1);
    CHECK(server.run({.threads = -2}) == 1 && server.run({.unready_time = -1ns}) == 1);
    server.on_listening([] { throw std::out_of_range("no cache"); });
    try {
        server.run({.listen = "127.0.0.1:0"});
        CHECK(false);
    } catch (const std::out_of_range &) {
    }
}

int main() {
    for (void (*body)() : {run_to_its_end, fail_to_begin, teach}) {
        for (std::uint64_t seed = 1; seed <= 4; seed++)
            io::simulate({.seed = seed, .short_counts = seed % 2 == 0, .network = true}, body);
        for (int threads : {1, 2})
            io::run({.threads = threads}, body);
    }
    run_by_options();
}
