/* SPDX-License-Identifier: MIT */
/* Waits of haft/io.hpp take no processor time, whatever the state of the descriptor, and end when
   they should. */
#include <haft/io.hpp>

#include "../waits.h"

namespace io = haft::io;

/* Calls a member of the descriptor, which stays its owner's. */
template <typename Descriptor, typename F>
static ssize_t with(const cell_t *cell, F function) {
    struct lent_descriptor {
        Descriptor descriptor;
        ~lent_descriptor() { descriptor.release(); }
    } lent{Descriptor(cell->ours)};
    try {
        return static_cast<ssize_t>(function(lent.descriptor));
    } catch (const std::system_error &failed) {
        return -failed.code().value();
    }
}
template <typename F>
static ssize_t on_descriptor(const cell_t *cell, F function) {
    return with<io::descriptor>(cell, function);
}
template <typename F>
static ssize_t on_socket(const cell_t *cell, F function) {
    return with<io::socket>(cell, function);
}

static std::byte into[4096];

static std::span<const std::byte> bytes_of(const cell_t *cell) {
    static const std::uint64_t one = 1;
    return cell->state->kind == IS_NUMBER ? std::as_bytes(std::span(&one, 1))
                                          : std::as_bytes(std::span(waits_bytes, 4096));
}

static ssize_t by_read(cell_t *cell) {
    return on_descriptor(cell, [](auto &from) { return from.read(into); });
}
static ssize_t by_read_parts(cell_t *cell) {
    const iovec parts[] = {{into, 8}, {into + 8, 8}};
    return on_descriptor(cell, [&](auto &from) { return from.read(parts); });
}
static ssize_t by_read_lent(cell_t *cell) {
    io::lent bytes;
    return on_descriptor(cell, [&](auto &from) { return from.read(bytes) ? bytes.size() : 0; });
}
static ssize_t by_lines(cell_t *cell) {
    return on_descriptor(cell, [](auto &from) { return io::lines(from).read(into); });
}
static ssize_t by_receive(cell_t *cell) {
    return on_socket(cell, [](auto &from) { return from.receive(into); });
}
static ssize_t by_receive_errors(cell_t *cell) {
    return on_socket(cell, [](auto &from) { return from.receive(into, MSG_ERRQUEUE); });
}
static ssize_t by_write(cell_t *cell) {
    return on_descriptor(cell, [&](auto &to) { return to.write(bytes_of(cell)); });
}
static ssize_t by_write_parts(cell_t *cell) {
    const auto bytes = bytes_of(cell);
    const iovec part = {const_cast<std::byte *>(bytes.data()), bytes.size()};
    return on_descriptor(cell, [&](auto &to) { return to.write(std::span(&part, 1)); });
}
static ssize_t by_write_all(cell_t *cell) {
    return on_descriptor(cell, [&](auto &to) {
        to.write_all(bytes_of(cell));
        return 1;
    });
}
static ssize_t by_writer(cell_t *cell) {
    return on_descriptor(cell, [&](auto &to) {
        io::writer writer(to);
        writer.write(bytes_of(cell));
        writer.flush();
        return 1;
    });
}
static ssize_t by_send(cell_t *cell) {
    return on_socket(cell, [&](auto &to) { return to.send(bytes_of(cell)); });
}
template <short events>
static ssize_t by_wait_ready(cell_t *cell) {
    return on_descriptor(cell, [](auto &awaited) { return awaited.wait_ready(events); });
}
template <short events>
static ssize_t by_select(cell_t *cell) {
    return on_descriptor(cell, [](auto &awaited) {
        short came = 0;
        io::select(io::on_ready(awaited, events, [&](short ready) { came = ready; }));
        return came;
    });
}

static const way_t ways[] = {
    {"read", READS, 0, by_read},
    {"read of parts", READS, 0, by_read_parts},
    {"read of lent memory", READS, 0, by_read_lent},
    {"lines", READS, 0, by_lines},
    {"receive", READS, IS_SOCKET, by_receive},
    {"receive(MSG_ERRQUEUE)", ERRORS, IS_SOCKET, by_receive_errors},
    {"write", WRITES, 0, by_write},
    {"write of parts", WRITES, 0, by_write_parts},
    {"write_all", WRITES, 0, by_write_all},
    {"writer", WRITES, 0, by_writer},
    {"send", WRITES, IS_SOCKET, by_send},
    {"wait_ready(POLLIN)", POLLS_IN, 0, by_wait_ready<POLLIN>},
    {"select(POLLIN)", POLLS_IN, 0, by_select<POLLIN>},
    {"wait_ready(POLLOUT)", POLLS_OUT, 0, by_wait_ready<POLLOUT>},
    {"select(POLLOUT)", POLLS_OUT, 0, by_select<POLLOUT>},
    {"wait_ready(POLLPRI)", POLLS_OTHERS, 0, by_wait_ready<POLLPRI>},
    {"select(POLLPRI)", POLLS_OTHERS, 0, by_select<POLLPRI>},
    {"wait_ready(0)", POLLS_OTHERS, 0, by_wait_ready<0>},
};

static void waits_sleep_until_something_comes() {
    waits_table(ways, std::size(ways), false, BY_EVENT);
}
static void waits_sleep_until_they_are_cancelled() {
    waits_table(ways, std::size(ways), true, BY_CANCEL);
}

int main() {
    check_backend();
    RUN(waits_sleep_until_something_comes);
    RUN(waits_sleep_until_they_are_cancelled);
    setenv("HAFT_IO_BACKEND", "epoll", 1);
    RUN(waits_sleep_until_something_comes);
    RUN(waits_sleep_until_they_are_cancelled);
    return check_end();
}
