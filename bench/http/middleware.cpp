// SPDX-License-Identifier: MIT
/*
 * The cost of middleware: ten handlers of an effect around a request, in nanoseconds a request.
 * They are functions with haft::handle (server.use), or handlers alone (server.handle); and the
 * handler of the route performs nothing, or each of the ten effects once. Or they are functions that
 * catch, which handle nothing. For each of these five, in this order, prints how much longer the time from before the outermost one to the end of the
 * route's handler and back is with them: once a request, behind the system calls by which that has
 * come, and at once again, as the mean of a hundred times; medians of all requests. A client in the
 * same run asks the servers in turn, a hundred requests each.
 *
 *     middleware [REQUESTS]
 */
#include <haft.hpp>
#include <haft/http.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace http = haft::http;
namespace io = haft::io;

namespace {

using numbers = std::make_integer_sequence<int, 10>;
constexpr int batch = 100, again = 100;

template <int Number>
struct asked : haft::effect<int> {};

enum kind { none, functions, handlers, catching };

template <int Number>
void add(http::server &server, kind how) {
    if (how == functions)
        server.use([](http::request &, const http::next &next) {
            haft::handle(next).with([](asked<Number>) { return Number; });
        });
    else if (how == handlers)
        server.handle([](asked<Number>) { return Number; });
    else if (how == catching)
        server.use([](http::request &, const http::next &next) {
            try {
                next();
            } catch (const std::domain_error &mistake) { /* which nothing throws */
                throw http::error(400 + Number, mistake.what());
            }
        });
}

template <int... Number>
void add_all(http::server &server, kind how, std::integer_sequence<int, Number...>) {
    (add<Number>(server, how), ...);
}

template <int... Number>
int perform_all(std::integer_sequence<int, Number...>) {
    return (haft::perform<asked<Number>>() + ...);
}

double now() {
    return std::chrono::duration<double, std::nano>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/* A server that notes the nanoseconds of its requests. Its handler only answers the last time. */
struct measured {
    http::server server;
    std::vector<double> first, later;
    int left = 0, sum = 0;

    measured(kind how, bool performs) {
        server.get("/", [this, performs](http::request &in) {
            sum = performs ? perform_all(numbers()) : 45;
            if (left == 0)
                in.answer(200, std::to_string(sum));
        });
        add_all(server, how, numbers());
        server.use([this](http::request &, const http::next &next) {
            left = again + 1;
            double begin = now();
            next();
            double middle = now();
            for (left = again; left != 1; left--)
                next();
            double end = now();
            first.push_back(middle - begin);
            later.push_back((end - middle) / (again - 1));
            left = 0;
            next();
        });
    }
};

double median(std::vector<double> values) {
    auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

void ask(http::client &client, const measured &one) {
    std::string url = "http://127.0.0.1:" + std::to_string(one.server.port()) + "/";
    for (int i = 0; i < batch; i++)
        if (client.get(url).body() != "45")
            std::exit(1);
}

} // namespace

int main(int count, char **arguments) {
    int requests = count > 1 ? std::atoi(arguments[1]) : 50000;
    measured plain(none, false);
    measured kinds[] = {{functions, false},
                        {functions, true},
                        {handlers, false},
                        {handlers, true},
                        {catching, false}};
    std::vector<measured *> all = {&plain};
    for (measured &one : kinds)
        all.push_back(&one);
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
    for (const measured &one : kinds)
        std::printf("%.1f %.1f ", median(one.first) - median(plain.first),
                    median(one.later) - median(plain.later));
    std::printf("\n");
}
