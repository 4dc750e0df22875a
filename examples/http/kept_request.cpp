// SPDX-License-Identifier: MIT
/*
 * A bug that comes with certain data of another service, as in kept_request.c: the shop asks the
 * warehouse for the lines of an order, such as "3 x 250", and adds them up.
 *
 *     kept_request_cpp http://warehouse.example requests 8080
 *     HAFT_IO_REPLAY=requests/request-....haft kept_request_cpp http://warehouse.example r 8080
 *
 * With a port alone, the program is the warehouse.
 */
#include <haft/http.hpp>

#include <cstdlib>
#include <sstream>
#include <string>

namespace http = haft::http;
namespace io = haft::io;

class shop {
  public:
    explicit shop(std::string url) : warehouse(std::move(url)) {}

    std::string sum(const std::string &order) {
        std::istringstream lines(ask("/lines/" + order));
        long sum = 0;
        for (std::string line; std::getline(lines, line);)
            sum += price(line);
        return std::to_string(sum) + "\n";
    }

  private:
    long price(const std::string &line) {
        std::size_t times = line.find('x');
        long price =
            std::stol(line.substr(times + 1)); /* which throws for a line without: the bug */
        return std::stol(line) * price;
    }
    std::string ask(const std::string &path) {
        http::reply reply = client.get(warehouse + path);
        return std::string(reply.body());
    }
    std::string warehouse;
    http::client client;
};

int main(int count, char **arguments) {
    http::server server;
    shop shop(count > 1 ? arguments[1] : "");
    if (count == 2)
        server.get("/lines/{order}", [](http::request &request) {
            return request.path("order") == "7" ? "1 x 990\nwrapping\n" : "3 x 250\n1 x 990\n";
        });
    else
        server.get("/orders/{order}",
                   [&](http::request &request) { return shop.sum(request.path("order")); });
    const char *port = count > 1 ? arguments[count - 1] : "8080";
    return server.run({.host = "127.0.0.1",
                       .port = std::uint16_t(std::atoi(port)),
                       .keep_requests = count > 3 ? arguments[2] : nullptr});
}
