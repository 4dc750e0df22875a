// SPDX-License-Identifier: MIT
/* CONNECT: `tunnel 8080` passes bytes to services of this machine, and of no other:
   curl -p -x localhost:8080 http://localhost:8000/ */
#include <haft/http.hpp>

#include <array>
#include <cstdlib>

namespace http = haft::http;
namespace io = haft::io;

static void pass_on(http::request &request, const io::socket &service) {
    io::scope([&](io::scope_ref both) {
        io::spawn([&] {
            std::array<std::byte, 16384> bytes;
            while (std::size_t size = request.stream_read(bytes))
                service.write_all(std::span(bytes).first(size));
            service.shutdown();
        });
        for (io::lent bytes; service.read(bytes);)
            request.stream_write(bytes.text());
        both.cancel(); /* a service that has ended reads nothing more */
    });
}

int main(int count, char **arguments) {
    http::server server;
    server.on_connect([](http::request &request) {
        std::string target(request.target()); /* host:port */
        std::size_t colon = target.rfind(':');
        if (target.substr(0, colon) != "localhost")
            throw http::error(403, "to localhost only\n");
        auto port = std::uint16_t(std::stoi(target.substr(colon + 1)));
        io::socket service = io::socket::connect("localhost", port);
        request.tunnel();
        pass_on(request, service);
    });
    return server.run(
        {.port = count > 1 ? std::uint16_t(std::atoi(arguments[1])) : std::uint16_t(8080)});
}
