// SPDX-License-Identifier: MIT
/*
 * Election: five nodes elect a leader for each term, over TCP. A node votes once in a term: its vote is on the disk before
 * it is given. Whether two can lead one term is asked of worlds in virtual time, with a network and files of their own:
 * connections break, files fail, nodes end and begin anew. A seed brings back each world.
 */
#include <haft/io.hpp>

#include <iostream>
#include <map>
#include <random>
#include <sstream>

namespace io = haft::io;
using namespace std::chrono_literals;

constexpr int nodes = 5;
struct vote {
    int term = 0, candidate = -1;
};
struct world {
    bool forgetful;            /* votes are not kept */
    std::map<int, int> leader; /* of each term */
};

class node {
  public:
    node(world &in, int number, std::uint64_t seed) : around(in), self(number), random(seed) {
        std::istringstream(around.forgetful ? "" : read_vote()) >> given.term >> given.candidate;
    }
    /* Until something fails. */
    void live() {
        io::all([&] { io::scope([&] { listen(); }); }, [&] { elect(); });
    }

  private:
    std::string name() const { return "vote" + std::to_string(self); }
    std::string read_vote() const { return io::file(name(), O_RDONLY | O_CREAT).read_all(); }
    /* A reader finds the old one or the new one, never half of it. */
    void keep(vote next) {
        std::string whole = std::to_string(next.term) + ' ' + std::to_string(next.candidate);
        io::file file(name() + ".new", O_WRONLY | O_CREAT | O_TRUNC);
        file.write_all(whole);
        file.sync();
        io::rename(name() + ".new", name());
    }
    bool grants(vote asked) {
        std::lock_guard one_at_a_time(mutex);
        if (asked.term > given.term) {
            if (!around.forgetful)
                keep(asked);
            given = asked;
        }
        return asked.term == given.term && asked.candidate == given.candidate;
    }

    void listen() {
        io::listener listener("::", static_cast<std::uint16_t>(7000 + self));
        for (io::socket peer : listener)
            io::spawn([this, peer = std::move(peer)] {
                vote asked;
                for (std::string_view line : io::lines(peer)) {
                    std::istringstream(std::string(line)) >> asked.term >> asked.candidate;
                    peer.write_all(grants(asked) ? "yes\n" : "no\n");
                }
            });
    }
    bool asks(int peer, vote mine) {
        try {
            return io::with_deadline(20ms, [&] {
                auto to = io::socket::connect("node", static_cast<std::uint16_t>(7000 + peer));
                to.write_all(std::to_string(mine.term) + ' ' + std::to_string(self) + '\n');
                to.end_output();
                return to.read_all() == "yes\n";
            });
        } catch (const std::system_error &) { /* it is down, or the connection broke */
            return false;
        }
    }
    void elect() {
        for (;;) {
            io::sleep_for(std::chrono::milliseconds(20 + random() % 100));
            vote mine{given.term + 1, self};
            if (!grants(mine))
                continue;
            int votes = 1;
            io::scope([&] {
                for (int peer = 0; peer < nodes; peer++)
                    if (peer != self)
                        io::spawn([&, peer] { votes += asks(peer, mine); });
            });
            if (votes > nodes / 2 &&
                around.leader.try_emplace(mine.term, self).first->second != self)
                throw std::logic_error("two leaders of one term");
        }
    }

    world &around;
    int self;
    std::minstd_rand random;
    vote given;
    io::mutex mutex;
};

static void keep_alive(world &around, int number, std::uint64_t seed) {
    for (;; seed += 1000) {
        try {
            node(around, number, seed * nodes + static_cast<unsigned>(number)).live();
        } catch (const std::system_error &) { /* it begins anew */
        }
        io::sleep_for(5ms);
    }
}

/* A second of it; throws if a term has had two leaders. */
static void run_world(std::uint64_t seed, bool forgetful) {
    world around{forgetful, {}};
    io::simulate({.seed = seed, .network = true, .files = true, .faults_one_in = 50}, [&] {
        io::first([] { io::sleep_for(1s); },
                  [&] {
                      io::scope([&] {
                          for (int number = 0; number < nodes; number++)
                              io::spawn([&, number] { keep_alive(around, number, seed); });
                      });
                  });
    });
}

int main() {
    std::uint64_t seed = 0;
    while (++seed <= 300)
        run_world(seed, false);
    std::cout << "300 worlds without two leaders of one term\n";
    try {
        while (++seed <= 1000)
            run_world(seed, true);
    } catch (const std::logic_error &) {
        std::cout << "nodes that forget their votes are found out\n";
    }
}
