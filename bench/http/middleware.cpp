// SPDX-License-Identifier: MIT
/*
 * What middleware costs: ten middleware functions around a request, each of which handles an
 * effect. Prints two figures, in nanoseconds a request: how much longer the time from before the
 * outermost one to the end of the route's handler and back is with them, if that handler performs
 * no effect; and if it performs each of the ten once. A client in the same run asks the servers in
 * turn, a hundred requests each.
 *
 *     middleware [REQUESTS]
 */
#include <haft.hpp>
#include <haft/http.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

namespace http = haft::http;
namespace io = haft::io;

namespace {

using numbers = std::make_integer_sequence<int, 10>;
constexpr int batch = 100;

template <int Number>
struct asked : haft::effect<int> {};

template <int Number>
void add(http::server &server) {
    server.use([](http::request &, const http::next &next) {
        haft::handle(next).with([](asked<Number>) { return Number; });
    });
}

template <int... Number>
void add_all(http::server &server, std::integer_sequence<int, Number...>) {
    (add<Number>(server), ...);
}

template <int... Number>
int perform_all(std::integer_sequence<int, Number...>) {
    return (haft::perform<asked<Number>>() + ...);
}

/* A server that adds up the nanoseconds of its requests. */
struct measured {
    http::server server;
    double nanoseconds = 0;
    int count = 0;

    measured(bool handles, bool performs) {
        server.get("/", [performs](http::request &) {
            return std::to_string(performs ? perform_all(numbers()) : 45);
        });
        if (handles)
            add_all(server, numbers());
        server.use([this](http::request &, const http::next &next) {
            auto begin = std::chrono::steady_clock::now();
            next();
            nanoseconds +=
                std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin)
                    .count();
            count++;
        });
    }
    double each() const { return nanoseconds / count; }
};

void ask(http::client &client, const measured &one) {
    std::string url = "http://127.0.0.1:" + std::to_string(one.server.port()) + "/";
    for (int i = 0; i < batch; i++)
        if (client.get(url).body() != "45")
            std::exit(1);
}

} // namespace

int main(int count, char **arguments) {
    int requests = count > 1 ? std::atoi(arguments[1]) : 50000;
    measured plain(false, false), handled(true, false), performed(true, true);
    measured *all[] = {&plain, &handled, &performed};
    io::run([&] {
        for (measured *one : all) {
            io::spawn([one] { one->server.serve(io::listener("127.0.0.1", 0)); });
            while (one->server.port() == 0)
                io::yield();
        }
        http::client client;
        for (int i = 0; i < requests; i += batch)
            for (measured *one : all)
                ask(client, *one);
        for (measured *one : all)
            one->server.stop();
    });
    std::printf("%.1f %.1f\n", handled.each() - plain.each(), performed.each() - plain.each());
}
