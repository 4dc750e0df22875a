// SPDX-License-Identifier: MIT
/*
 * HTTPS. `https_cpp chain.pem key.pem`, then: curl --cacert chain.pem https://localhost:8443/.
 * A third argument is another port. On SIGHUP the server reads the certificate again, for
 * connections that come then; it ends on SIGTERM.
 */
#include <haft/http.hpp>
#include <haft/tls.hpp>

#include <iostream>

namespace io = haft::io;
namespace tls = haft::tls;

int main(int count, char **arguments) {
    if (count < 3) {
        std::cerr << "usage: https_cpp CHAIN KEY [PORT]\n";
        return 2;
    }
    try {
        tls::server_context context;
        context.add_certificate(arguments[1], arguments[2]);
        haft::http::server server;
        server.set_tls(context.get());
        server.get("/", [](haft::http::request &request) {
            return std::string("Hello over ") +
                   haft_tls_version(haft_http_request_tls(request.get())) + "\n";
        });
        io::signals signals{SIGHUP, SIGTERM};
        io::run([&] {
            io::listener listener("::", count > 3 ? static_cast<uint16_t>(std::stoi(arguments[3]))
                                                  : 8443);
            io::spawn([&] {
                while (signals.wait() == SIGHUP)
                    try {
                        context.reload();
                        std::cerr << "reloaded\n";
                    } catch (const std::system_error &error) {
                        std::cerr << error.what() << "\n";
                    }
                server.stop();
            });
            server.serve(std::move(listener));
        });
    } catch (const std::exception &error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
}
