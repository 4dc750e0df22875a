// SPDX-License-Identifier: MIT
/* Threads, actors and futures that read sockets: clients send words, each is served by a thread,
   and an actor counts. A thread of the system knows when to stop. */
#include <haft/actor.hpp>
#include <haft/io_threads.hpp>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace io = haft::io;

struct word {
    std::string text;
};
struct report {
    haft::promise<std::map<std::string, int>> reply;
};
using counter = haft::address<word, report>;

static void run_counter(haft::actor<word, report> &self) {
    std::map<std::string, int> counts;
    for (;;)
        self.receive([&](word message) { counts[message.text]++; },
                     [&](report message) { message.reply.set_value(counts); });
}

/* Its thread waits for the next line; the others go on meanwhile. */
static void serve(const io::socket &connection, const counter &words) {
    for (std::string_view line : io::lines(connection))
        words.send(word{std::string(line.substr(0, line.find('\n')))});
}

static void send(std::uint16_t port, const std::string &text) {
    io::socket::connect("127.0.0.1", port).write_all(text);
}

int main() {
    haft::promise<int> enough;
    haft::future<int> clients = enough.get_future();
    std::thread other([&] { enough.set_value(3); });

    io::run(haft::by_priority(), [&] {
        io::listener listener("127.0.0.1", 0);
        counter words = haft::spawn<word, report>({.name = "counter", .priority = 1}, run_counter);
        int count = haft::await(clients);
        for (int i = 0; i < count; i++)
            haft::fork({.name = "client"}, [port = listener.port(), i] {
                send(port, i == 0 ? "tea\nmilk\n" : "tea\n");
            });
        std::vector<haft::thread<>> served;
        for (int i = 0; i < count; i++)
            served.push_back(
                haft::fork({.name = "server"},
                           [connection = listener.accept(), &words] { serve(connection, words); }));
        for (haft::thread<> &one : served)
            one.join();
        for (const auto &[text, times] : haft::await(haft::ask<report>(words)))
            std::cout << text << ' ' << times << '\n';
    });
    other.join();
}
