// SPDX-License-Identifier: MIT
/* Metrics of the application's own, beside the library's. It sells to itself, in a simulation, and
   shows its part of /metrics. */
#include <haft/http.hpp>

#include <iostream>
#include <sstream>

namespace http = haft::http;
namespace io = haft::io;
using namespace std::chrono_literals;

struct shop {
    explicit shop(http::server &server)
        : sold(server, "shop_sold", "Things that were sold.", {"route"}),
          open_carts(server, "shop_open_carts"), packing(server, "shop_packing_seconds") {
        server.serve_counters("/metrics");
        server.post("/shop/{id}/cart", [this](http::request &request) {
            open_carts.add(1);
            io::sleep_for(20ms);
            packing.observe(20ms);
            sold.with(request.route().value_or("")).add(1);
            open_carts.add(-1);
            return http::response{.status = 204};
        });
    }
    http::counter sold;
    http::gauge open_carts;
    http::histogram packing;
};

static void talk(http::server &server) {
    io::listener listener("127.0.0.1", 8080);
    io::spawn([&] { server.serve(std::move(listener)); });
    http::client client;
    for (const char *id : {"tea", "wine"})
        client.post(std::string("http://127.0.0.1:8080/shop/") + id + "/cart", "", "text/plain");
    std::istringstream page{std::string(client.get("http://127.0.0.1:8080/metrics").body())};
    for (std::string line; std::getline(page, line);)
        if (line.starts_with("shop_") && line.find("bucket") == line.npos)
            std::cout << line << '\n';
    server.stop();
}

int main() {
    http::server server;
    shop metrics(server);
    io::simulate({.seed = 1, .network = true}, [&] { talk(server); });
}
