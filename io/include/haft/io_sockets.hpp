// SPDX-License-Identifier: MIT
/*
 * Haft I/O for C++20: addresses, connections, listeners and datagrams. Part of haft/io.hpp, which
 * includes it.
 */
#ifndef HAFT_IO_SOCKETS_HPP
#define HAFT_IO_SOCKETS_HPP

#include "io_descriptors.hpp"
#include "io_options.hpp"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>
#include <utility>
#include <vector>

namespace haft::io {

/* An address of the Internet, or the path of a Unix socket. May be the key of a map. */
class address {
  public:
    address() = default;
    address(const sockaddr *from, socklen_t length) : used(length) {
        if (length > sizeof store)
            throw std::invalid_argument("haft: an address is too long");
        std::memcpy(&store, from, length);
    }
    const sockaddr *get() const { return reinterpret_cast<const sockaddr *>(&store); }
    sockaddr *get() { return reinterpret_cast<sockaddr *>(&store); }
    socklen_t size() const { return used; }
    socklen_t *room() {
        used = sizeof store;
        return &used;
    }
    int family() const { return store.ss_family; }
    bool operator==(const address &other) const { return bytes() == other.bytes(); }
    auto operator<=>(const address &other) const { return bytes() <=> other.bytes(); }
    std::uint16_t port() const {
        if (family() == AF_INET)
            return ntohs(reinterpret_cast<const sockaddr_in *>(&store)->sin_port);
        return family() == AF_INET6
                   ? ntohs(reinterpret_cast<const sockaddr_in6 *>(&store)->sin6_port)
                   : 0;
    }
    /* The host without the port: "127.0.0.1". */
    std::string host() const {
        char name[NI_MAXHOST] = "";
        getnameinfo(get(), used, name, sizeof name, nullptr, 0, NI_NUMERICHOST);
        return name;
    }

  private:
    std::string_view bytes() const {
        return {reinterpret_cast<const char *>(&store), std::min<std::size_t>(used, sizeof store)};
    }
    sockaddr_storage store = {};
    socklen_t used = 0;
};

namespace detail {
template <typename Call>
address address_by(Call call, const descriptor &of, const char *what) {
    address result;
    if (call(of.get(), result.get(), result.room()) != 0)
        checked(-errno, what);
    return result;
}
inline address own_address_of(const descriptor &socket) {
    return address_by(&::getsockname, socket, "own_address");
}
} // namespace detail

/* The addresses of a host and a service or port, either of which may be empty. If it is unknown,
   this throws a std::system_error with a code EAI_... of netdb.h, in the category "resolve". So do
   sockets that connect, and listeners that listen, by name. */
inline std::vector<address> resolve(const std::string &host, const std::string &service,
                                    int type = SOCK_STREAM) {
    addrinfo hints = {}, *found = nullptr;
    hints.ai_socktype = type;
    hints.ai_flags = host.empty() ? AI_PASSIVE : 0;
    int code = haft_io_resolve(host.empty() ? nullptr : host.c_str(),
                               service.empty() ? nullptr : service.c_str(), &hints, &found);
    detail::checked(code, host.c_str());
    std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, &freeaddrinfo);
    std::vector<address> result;
    for (; found != nullptr; found = found->ai_next)
        result.emplace_back(found->ai_addr, found->ai_addrlen);
    return result;
}

/* A connection. */
class socket : public descriptor {
  public:
    using descriptor::descriptor;
    static socket connect(const std::string &host, std::uint16_t port) {
        return socket(detail::checked(haft_io_connect_tcp(host.c_str(), port), [&] {
            return "connect to " + host + ", port " + std::to_string(port);
        }));
    }
    static socket connect_unix(const std::string &path) {
        return socket(detail::checked(haft_io_connect_unix(path.c_str()),
                                      [&] { return "connect to " + path; }));
    }
    /* The two ends of a pair of Unix sockets. */
    static std::pair<socket, socket> pair(int type = SOCK_STREAM) {
        int ends[2];
        detail::checked(haft_io_socket_pair(AF_UNIX, type, 0, ends), "pair");
        return {socket(ends[0]), socket(ends[1])};
    }

    /* Like recv(2) and send(2), with their flags. */
    std::size_t receive(std::span<std::byte> into, int flags = 0) const {
        return detail::counted(haft_io_receive(get(), into.data(), into.size(), flags), "receive");
    }
    std::size_t send(std::span<const std::byte> bytes, int flags = 0) const {
        return detail::counted(haft_io_send(get(), bytes.data(), bytes.size(), flags), "send");
    }
    /* The addresses of the peer and of this end. Not for simulated sockets. */
    address peer() const { return detail::address_by(&::getpeername, *this, "peer"); }
    address own_address() const { return detail::own_address_of(*this); }
    /* Ends the output: the peer reads the end of the stream. */
    void shutdown(int how = SHUT_WR) const {
        detail::checked(haft_io_shutdown(get(), how), "shutdown");
    }
    /* Pass a descriptor over a Unix socket. The sender keeps its own; the receiver gets a new one
       for the same file, or std::nullopt at the end of the stream. */
    void send_descriptor(const descriptor &passed) const {
        detail::checked(haft_io_send_descriptor(get(), passed.get()), "send_descriptor");
    }
    std::optional<descriptor> receive_descriptor() const {
        int got = haft_io_receive_descriptor(get());
        if (got == -EPIPE)
            return std::nullopt;
        return descriptor(detail::checked(got, "receive_descriptor"));
    }
};

/* See haft_io_listen_options_t. */
#define HAFTI_IO_FIELDS(FIELD, OWN)                                                                \
    FIELD(int, backlog, 0)                                                                         \
    FIELD(bool, reuse_port, false)
struct listen_options {
    HAFT_IO_OPTIONS(haft_io_listen_options_t, HAFTI_IO_FIELDS)
};
#undef HAFTI_IO_FIELDS

/* A listening socket, which is also the endless range of the connections that it accepts. */
class listener : public descriptor {
  public:
    /* `host` is a numeric address ("::" for all addresses) or a name. For `port` 0 the system
       chooses a port. `backlog` 0 means the system's maximum. */
    listener(const std::string &host, std::uint16_t port, int backlog = 0)
        : descriptor(detail::checked(haft_io_listen_tcp(host.c_str(), port, backlog), [&] {
              return "listen at " + host + ", port " + std::to_string(port);
          })) {}
    listener(const std::string &host, std::uint16_t port, const listen_options &how)
        : descriptor(listen_with(how, host, port)) {}
    static listener unix_path(const std::string &path, int backlog = 0) {
        return listener(detail::checked(haft_io_listen_unix(path.c_str(), backlog),
                                        [&] { return "listen at " + path; }));
    }
    std::uint16_t port() const {
        return static_cast<std::uint16_t>(detail::checked(haft_io_port(get()), "port"));
    }
    address own_address() const { return detail::own_address_of(*this); }
    socket accept() const { return socket(detail::checked(haft_io_accept(get()), "accept")); }

    /* Accepts only when it is asked for a connection. */
    class iterator {
      public:
        using iterator_concept = std::input_iterator_tag;
        using value_type = socket;
        using difference_type = std::ptrdiff_t;
        explicit iterator(const listener &in) : of(&in) {}
        socket &&operator*() const {
            if (!accepted.has_value())
                accepted = of->accept();
            return std::move(*accepted);
        }
        iterator &operator++() {
            accepted.reset();
            return *this;
        }
        void operator++(int) { ++*this; }
        bool operator==(std::default_sentinel_t) const { return false; }

      private:
        const listener *of;
        mutable std::optional<socket> accepted;
    };
    iterator begin() const { return iterator(*this); }
    std::default_sentinel_t end() const { return {}; }

  private:
    explicit listener(int owned) : descriptor(owned) {}
    static int listen_with(const listen_options &how, const std::string &host, std::uint16_t port) {
        haft_io_listen_options_t options = how.as_c();
        return detail::checked(haft_io_listen_tcp_with(&options, host.c_str(), port), [&] {
            return "listen at " + host + ", port " + std::to_string(port);
        });
    }
};

/* A UDP socket. */
class datagrams : public descriptor {
  public:
    /* Binds it to this local address; for port 0 the system chooses a port. */
    explicit datagrams(const address &local)
        : descriptor(detail::checked(haft_io_socket(local.family(), SOCK_DGRAM, 0), "datagrams")) {
        detail::checked(haft_io_bind(get(), local.get(), local.size()), "datagrams");
    }
    datagrams(const std::string &host, std::uint16_t port)
        : datagrams(resolve(host, std::to_string(port), SOCK_DGRAM).at(0)) {}
    std::uint16_t port() const {
        return static_cast<std::uint16_t>(detail::checked(haft_io_port(get()), "port"));
    }
    address own_address() const { return detail::own_address_of(*this); }
    /* Returns how many bytes were received, and stores the sender if that is wanted. The rest of a
       datagram longer than the buffer is lost. */
    std::size_t receive(std::span<std::byte> into, address *from = nullptr) const {
        return detail::counted(haft_io_receive_from(get(), into.data(), into.size(), 0,
                                                    from != nullptr ? from->get() : nullptr,
                                                    from != nullptr ? from->room() : nullptr),
                               "receive");
    }
    void send(std::span<const std::byte> bytes, const address &to) const {
        detail::checked(haft_io_send_to(get(), bytes.data(), bytes.size(), 0, to.get(), to.size()),
                        "send");
    }
};

} // namespace haft::io

#endif
