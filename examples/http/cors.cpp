// SPDX-License-Identifier: MIT
/* Pages of another origin use one group of routes: what a browser asks before a PUT, and what it
   sees of the answer. It asks itself, in a simulation. */
#include <haft/http.hpp>

#include <iostream>

namespace http = haft::http;
namespace io = haft::io;

static void add_all(http::server &server) {
    server.get("/", [](http::request &) { return "for pages of this origin"; });
    http::route_group api = server.group("/api");
    api.cors({.origins = {"https://app.example"},
              .methods = "GET, PUT",
              .fields = "Content-Type",
              .credentials = true,
              .max_age = std::chrono::hours(1)});
    api.put("/lists/{name}", [](http::request &request) {
        if (request.path("name") == "cakes")
            throw http::error(409, "it is there already\n");
        return "made\n";
    });
}

static void talk(http::server &server) {
    io::listener listener("127.0.0.1", 8080);
    io::spawn([&] { server.serve(std::move(listener)); });
    http::client client;
    auto ask = [&](const char *method, const std::string &path, const std::string &origin) {
        http::reply reply =
            client.ask({.url = "http://127.0.0.1:8080" + path,
                        .method = method,
                        .headers = {{"Origin", origin}, {"Access-Control-Request-Method", "PUT"}}});
        std::cout << method << ' ' << path << " of " << origin << ": " << reply.status() << '\n';
        for (const auto &[name, value] : reply.headers())
            if (name.starts_with("Access-Control-") || name == "Vary")
                std::cout << "  " << name << ": " << value << '\n';
    };
    ask("OPTIONS", "/api/lists/cakes", "https://app.example");
    ask("PUT", "/api/lists/tea", "https://app.example");
    ask("PUT", "/api/lists/cakes", "https://app.example"); /* its script sees the error, too */
    ask("OPTIONS", "/api/lists/cakes", "https://evil.example");
    ask("GET", "/", "https://app.example");
    server.stop();
}

int main() {
    http::server server;
    add_all(server);
    io::simulate({.seed = 1, .network = true}, [&] { talk(server); });
}
