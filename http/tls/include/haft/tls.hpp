// SPDX-License-Identifier: MIT
/*
 * Haft TLS for C++20: haft/tls.h with values and exceptions. Header only, over libhaft-tls.
 *
 *     #include <haft/tls.hpp>
 *     namespace io = haft::io;
 *     namespace tls = haft::tls;
 *
 *     int main() {
 *         tls::server_context context;
 *         context.add_certificate("chain.pem", "key.pem");
 *         io::listener listener("::", 7443);
 *         io::run([&] {
 *             io::supervise([&] {
 *                 for (io::socket connection : listener)
 *                     io::spawn([stream = tls::stream(context, std::move(connection))] {
 *                         std::array<char, 4096> buffer;
 *                         while (std::size_t size = stream.read(buffer))
 *                             stream.write_all({buffer.data(), size});
 *                         stream.shutdown();
 *                     });
 *             });
 *         });
 *     }
 *
 * Errors are std::system_error, whose text is that of haft_tls_failure. Codes of TLS are of
 * tls::category(): they are the numbers of haft/tls.h. Its rules for threads and for ends of
 * streams hold here, too.
 */
#ifndef HAFT_TLS_HPP
#define HAFT_TLS_HPP

#include <haft/io.hpp>
#include <haft/tls.h>

#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace haft::tls {

namespace detail {

struct category_of_tls final : std::error_category {
    const char *name() const noexcept override { return "tls"; }
    std::string message(int code) const override { return haft_tls_error_text(code); }
};
inline const category_of_tls errors;

template <std::signed_integral N>
N checked(N result, const char *failure) {
    if (result <= HAFT_TLS_ERROR_OF_CERTIFICATE && result > HAFT_IO_ERROR_OF_RESOLVER)
        throw std::system_error(std::error_code(static_cast<int>(result), errors), failure);
    return io::detail::checked(
        result, [&] { return io::detail::without_error(failure, static_cast<int>(result)); });
}

} // namespace detail

inline const std::error_category &category() {
    return detail::errors;
}

/* Move-only; streams that were made with it may outlive it. */
class context {
  public:
    void add_certificate(const std::string &chain, const std::string &key) {
        check(haft_tls_add_certificate(get(), chain.c_str(), key.c_str()));
    }
    void reload() { check(haft_tls_reload(get())); }
    void trust(const std::string &authorities) {
        check(haft_tls_trust(get(), authorities.c_str()));
    }
    void trust_nobody() { check(haft_tls_trust_nobody(get())); }
    void set_verify(haft_tls_verify_t verify) { haft_tls_set_verify(get(), verify); }
    void set_protocols(std::initializer_list<const char *> protocols) {
        io::detail::checked(haft_tls_set_protocols(get(), protocols.begin(), protocols.size()),
                            "set_protocols");
    }
    haft_tls_context_t *get() const { return state.get(); }

  protected:
    explicit context(haft_tls_context_t *made) : state(made) {
        if (made == nullptr)
            throw std::bad_alloc();
    }

  private:
    void check(int code) const { detail::checked(code, haft_tls_context_failure(get())); }
    struct free {
        void operator()(haft_tls_context_t *owned) const { haft_tls_context_free(owned); }
    };
    std::unique_ptr<haft_tls_context_t, free> state;
};

struct server_context : context {
    server_context() : context(haft_tls_server_context()) {}
};
struct client_context : context {
    client_context() : context(haft_tls_client_context()) {}
};

/* Move-only. Closed without a notice to the peer, unless shutdown() was called. */
class stream {
  public:
    /* A server's stream. */
    stream(const context &with, io::socket connection)
        : state(haft_tls_new(with.get(), connection.release(), nullptr)) {
        check_made();
    }
    /* A client's stream: `host` is the server's. */
    stream(const context &with, io::socket connection, const std::string &host)
        : state(haft_tls_new(with.get(), connection.release(), host.c_str())) {
        check_made();
    }
    /* Connects, and does the handshake. */
    static stream connect(const context &with, const std::string &host, std::uint16_t port) {
        stream made(with, io::socket::connect(host, port), host);
        made.handshake();
        return made;
    }

    void handshake() const { check(haft_tls_handshake(get())); }
    /* 0 at the end of the stream, of which the peer has told. */
    std::size_t read(std::span<std::byte> into) const {
        return static_cast<std::size_t>(check(haft_tls_read(get(), into.data(), into.size())));
    }
    std::size_t read(std::span<char> into) const { return read(std::as_writable_bytes(into)); }
    std::string read_all() const {
        std::string text;
        std::array<char, 4096> buffer;
        while (std::size_t size = read(buffer))
            text.append(buffer.data(), size);
        return text;
    }
    void write_all(std::string_view bytes) const {
        check(haft_tls_write_all(get(), bytes.data(), bytes.size()));
    }
    void shutdown() const { check(haft_tls_shutdown(get())); }
    void close() { state.reset(); }

    std::optional<std::string_view> protocol() const { return maybe(haft_tls_protocol(get())); }
    std::optional<std::string_view> server_name() const {
        return maybe(haft_tls_server_name(get()));
    }
    std::optional<std::string_view> peer() const { return maybe(haft_tls_peer(get())); }
    std::optional<std::string_view> version() const { return maybe(haft_tls_version(get())); }
    bool resumed() const { return haft_tls_resumed(get()); }
    haft_tls_t *get() const { return state.get(); }

  private:
    static std::optional<std::string_view> maybe(const char *text) {
        return text != nullptr ? std::optional<std::string_view>(text) : std::nullopt;
    }
    void check_made() const {
        if (state == nullptr)
            throw std::system_error(ENOMEM, std::generic_category(), "stream");
    }
    template <std::signed_integral N>
    N check(N result) const {
        return detail::checked(result, haft_tls_failure(get()));
    }
    struct close_stream {
        void operator()(haft_tls_t *owned) const { haft_tls_close(owned); }
    };
    std::unique_ptr<haft_tls_t, close_stream> state;
};

} // namespace haft::tls

#endif
