// SPDX-License-Identifier: MIT
/* Errors in one form: an exception of the application becomes an http::error in middleware, and all
   answers to errors are problem+json, those of the library included. It asks itself, in a
   simulation. */
#include <haft/http.hpp>

#include <iostream>

namespace http = haft::http;
namespace io = haft::io;

struct no_such_list : std::runtime_error {
    using std::runtime_error::runtime_error;
};

static std::string show(const std::string &name) {
    throw no_such_list("no list is called " + name);
}

static void add_all(http::server &server) {
    server.on_error(http::problem); /* or a function of yours: (request, error) */
    server.use([](http::request &, const http::next &next) {
        try {
            next();
        } catch (const no_such_list &missing) {
            throw http::error(404, missing.what());
        }
    });
    server.get("/lists/{name}", [](http::request &in) { return show(in.path("name")); });
    server.put("/lists/{name}", [](http::request &) {
        throw http::error(422, "{\"size\":\"is 0\"}\n", "application/json"); /* is sent as it is */
    });
}

static void talk(http::server &server) {
    io::listener listener("127.0.0.1", 8080);
    io::spawn([&] { server.serve(std::move(listener)); });
    http::client client;
    auto ask = [&](const char *method, const std::string &path) {
        http::reply reply = client.ask({.url = "http://127.0.0.1:8080" + path, .method = method});
        std::cout << reply.status() << ' ' << reply.header("Content-Type").value_or("") << ' '
                  << reply.body();
    };
    ask("GET", "/lists/cakes");
    ask("PUT", "/lists/cakes");
    ask("GET", "/nowhere");
    ask("DELETE", "/lists/cakes");
    server.stop();
}

int main() {
    http::server server;
    add_all(server);
    io::simulate({.seed = 1, .network = true}, [&] { talk(server); });
}
