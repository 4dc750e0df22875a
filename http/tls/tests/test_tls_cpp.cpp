// SPDX-License-Identifier: MIT
/* haft/tls.hpp: streams, their errors as exceptions, and cancels that unwind C++. */
#include <haft/tls.hpp>

#include <openssl/x509_vfy.h>

extern "C" {
#include "check_tls.h"
}

namespace io = haft::io;
namespace tls = haft::tls;

static issued_t server, other;

static void echo(const tls::stream &stream) {
    std::array<char, 1000> buffer;
    while (std::size_t size = stream.read(buffer))
        stream.write_all({buffer.data(), size});
    stream.shutdown();
}

static void echoes_what_it_gets() {
    tls::server_context servers;
    servers.add_certificate(server.chain_file, server.key_file);
    servers.set_protocols({"one", "two"});
    tls::client_context clients;
    clients.trust(server.chain_file);
    clients.set_protocols({"two"});
    io::listener listener("127.0.0.1", 0);
    io::scope([&] {
        io::spawn([&] { echo(tls::stream(servers, listener.accept())); });
        auto stream = tls::stream::connect(clients, "127.0.0.1", listener.port());
        CHECK(stream.protocol() == "two" && stream.peer() == "CN=server");
        CHECK(stream.version() == "TLSv1.3" && !stream.resumed() && !stream.server_name());
        stream.write_all("over ");
        stream.write_all("TLS");
        stream.shutdown();
        CHECK(stream.read_all() == "over TLS");
    });
}

static void says_what_is_wrong() {
    tls::server_context servers;
    tls::client_context clients;
    servers.add_certificate(other.chain_file, other.key_file);
    clients.trust(other.chain_file);
    try {
        servers.add_certificate("/nowhere", server.key_file);
        CHECK(false);
    } catch (const std::system_error &error) {
        CHECK(error.code() == std::errc::no_such_file_or_directory);
        CHECK(error.what() == std::string("/nowhere: No such file or directory"));
    }
    io::listener listener("127.0.0.1", 0);
    io::scope([&] {
        auto serving = io::async([&] {
            tls::stream stream(servers, listener.accept());
            stream.handshake();
        });
        try {
            tls::stream::connect(clients, "127.0.0.1", listener.port());
            CHECK(false);
        } catch (const std::system_error &error) {
            CHECK(error.code() ==
                  std::error_code(HAFT_TLS_ERROR_OF_CERTIFICATE - X509_V_ERR_IP_ADDRESS_MISMATCH,
                                  tls::category()));
            CHECK(std::string(error.what())
                      .find("is for other.example, not for the host "
                            "127.0.0.1") != std::string::npos);
        }
        try {
            serving.join();
            CHECK(false);
        } catch (const std::system_error &error) {
            CHECK(error.code().category() == tls::category());
        }
    });
}

static void is_cancelled() {
    tls::server_context servers;
    servers.add_certificate(server.chain_file, server.key_file);
    auto [near, far] = io::socket::pair();
    bool unwound = false;
    struct notes_end {
        bool &unwound;
        ~notes_end() { unwound = true; }
    };
    tls::stream stream(servers, std::move(near));
    io::scope([&] {
        io::spawn([&] {
            notes_end end{unwound};
            stream.handshake();
        });
        io::yield();
        io::cancel();
    });
    CHECK(unwound);
}

int main() {
    CHECK(mkdtemp(folder) != nullptr);
    server = issue({"server", "IP:127.0.0.1", nullptr, 0, 0});
    other = issue({"other", "DNS:other.example", nullptr, 0, 0});
    for (auto body : {echoes_what_it_gets, says_what_is_wrong, is_cancelled})
        io::run(body);
    forget(&server);
    forget(&other);
    rmdir(folder);
    return check_end();
}
