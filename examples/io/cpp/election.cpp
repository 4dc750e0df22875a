// SPDX-License-Identifier: MIT
/*
 * Election: five nodes elect a leader for each term, over TCP. A node votes once in a term, and
 * writes its vote to the disk before it gives it. The program checks that no term has two leaders,
 * in simulated worlds with virtual time, a network and files of their own: connections break, files
 * fail, nodes end and restart. A seed repeats each world.
 */
#include <haft/io.hpp>

#include <iostream>
#include <map>
#include <random>
#include <sstream>

namespace io = haft::io;
using namespace std::chrono_literals;

constexpr int nodes = 5;
static bool forgetful;             /* nodes do not keep their votes */
static std::map<int, int> leaders; /* of the terms of this world */

struct vote {
    int term = 0, candidate = -1;
    explicit vote(const std::string &text = "") { std::istringstream(text) >> term >> candidate; }
    std::string text() const { return std::to_string(term) + ' ' + std::to_string(candidate); }
};

struct node {
    int self;
    std::minstd_rand random;
    std::string name = "vote" + std::to_string(self);
    vote given{forgetful ? "" : io::file(name, O_RDONLY | O_CREAT).read_all()};
    io::mutex mutex{};

    /* A reader finds the old vote or the new one, never half of it. */
    void keep(const vote &next) {
        io::file file(name + ".new", O_WRONLY | O_CREAT | O_TRUNC);
        file.write_all(next.text());
        file.fsync();
        io::rename(name + ".new", name);
    }
    bool grants(const vote &asked) {
        std::lock_guard one_at_a_time(mutex);
        if (asked.term > given.term) {
            if (!forgetful)
                keep(asked);
            given = asked;
        }
        return asked.term == given.term && asked.candidate == given.candidate;
    }
    void listen() {
        io::listener listener("::", static_cast<std::uint16_t>(7000 + self));
        for (io::socket peer : listener)
            io::spawn([this, peer = std::move(peer)] {
                for (std::string_view line : io::lines(peer))
                    peer.write_all(grants(vote(std::string(line))) ? "yes" : "no");
            });
    }
    bool asks(int peer, const vote &mine) try {
        return io::with_deadline(20ms, [&] {
            auto to = io::socket::connect("node", static_cast<std::uint16_t>(7000 + peer));
            to.write_all(mine.text() + '\n');
            to.shutdown();
            return to.read_all() == "yes";
        });
    } catch (const std::system_error &) { /* the node is down, or the connection broke */
        return false;
    }
    void elect() {
        for (;;) {
            io::sleep_for(std::chrono::milliseconds(20 + random() % 100));
            vote mine(std::to_string(given.term + 1) + ' ' + std::to_string(self));
            int votes = grants(mine);
            io::scope([&] {
                for (int peer = 0; peer < nodes; peer++)
                    if (peer != self && votes != 0)
                        io::spawn([&, peer] { votes += asks(peer, mine); });
            });
            if (votes > nodes / 2 && leaders.try_emplace(mine.term, self).first->second != self)
                throw std::logic_error("two leaders of one term");
        }
    }
    /* Runs until something fails. */
    void live() {
        io::all([&] { io::scope([&] { listen(); }); }, [&] { elect(); });
    }
};

static void keep_alive(int number, std::uint64_t seed) {
    for (;; seed += 1000) {
        try {
            node{number, std::minstd_rand(seed * nodes + static_cast<unsigned>(number))}.live();
        } catch (const std::system_error &) { /* the node restarts */
        }
        io::sleep_for(5ms);
    }
}

/* Runs a world for a second; throws if a term has had two leaders. */
static void run_world(std::uint64_t seed) {
    leaders.clear();
    io::simulate({.seed = seed, .network = true, .files = true, .faults_one_in = 50}, [&] {
        io::first([] { io::sleep_for(1s); },
                  [&] {
                      io::scope([&] {
                          for (int number = 0; number < nodes; number++)
                              io::spawn([=] { keep_alive(number, seed); });
                      });
                  });
    });
}

int main() {
    std::uint64_t seed = 0;
    while (++seed <= 300)
        run_world(seed);
    std::cout << "300 worlds without two leaders of one term\n";
    forgetful = true;
    try {
        while (++seed <= 1000)
            run_world(seed);
    } catch (const std::logic_error &) {
        std::cout << "nodes that forget their votes are found out\n";
    }
}
