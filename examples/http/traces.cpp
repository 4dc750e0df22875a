// SPDX-License-Identifier: MIT
/* Traces: a request of a trace asks another service, which gets the same trace with a span of its
   own, also where another task of the handler asks. Both are one server here, in a simulation. */
#include <haft/http.hpp>

#include <iostream>

namespace http = haft::http;
namespace io = haft::io;

static void add_all(http::server &server, http::client &client) {
    server.trace_requests();
    server.get("/stock", [](http::request &request) {
        std::cout << "stock: " << request.header("traceparent")->substr(0, 36) << "...\n";
        return "3 pieces\n";
    });
    server.get("/order", [&](http::request &) {
        std::cout << "order: " << http::trace()->id << ", asked by " << http::trace()->parent
                  << '\n';
        auto ask = [&] { return std::string(client.get("http://127.0.0.1:8080/stock").body()); };
        return io::async(ask).join(); /* the trace is a value of the task, which the new one gets */
    });
}

int main() {
    http::server server;
    io::simulate({.seed = 1, .network = true}, [&] {
        http::client client;
        add_all(server, client);
        io::scope([&] {
            io::listener listener("127.0.0.1", 8080);
            io::spawn([&] { server.serve(std::move(listener)); });
            http::fields trace = {
                {"traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}};
            std::cout
                << client.ask({.url = "http://127.0.0.1:8080/order", .headers = trace}).body();
            server.stop();
        });
    });
}
