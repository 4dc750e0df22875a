// SPDX-License-Identifier: MIT
/*
 * Echo server in C++: every connection has a task, a plain loop over its lines. With a port as its
 * argument the program serves until it is killed; without one it talks to itself: a thousand
 * clients, two hundred at once, on one thread.
 */
#include <haft/io.hpp>

#include <cstdlib>
#include <iostream>

namespace io = haft::io;
using namespace std::chrono_literals;

static void serve(const io::listener &listener) {
    io::supervise([&] { // a connection that is reset does not end the others
        for (io::socket connection : listener)
            io::spawn([connection = std::move(connection)] {
                for (std::string_view line : io::lines(connection))
                    connection.write_all(line);
            });
    });
}

static bool ask(std::uint16_t port, int number) {
    io::socket connection = io::socket::connect("127.0.0.1", port);
    std::string question = "hello " + std::to_string(number) + "\n";
    connection.write_all(question);
    for (std::string_view answer : io::lines(connection))
        return answer == question;
    return false;
}

static int talk_to(std::uint16_t port) {
    int answered = 0;
    for (int first = 0; first < 1000; first += 200)
        io::with_deadline(10s, [&] {
            for (int i = first; i < first + 200; i++)
                io::spawn([&, i] { answered += ask(port, i); });
        });
    return answered;
}

int main(int count, char **arguments) try {
    io::run([&] {
        if (count > 1)
            serve(io::listener("::", static_cast<std::uint16_t>(std::atoi(arguments[1]))));
        io::listener listener("127.0.0.1", 0);
        std::uint16_t port = listener.port();
        io::spawn([listener = std::move(listener)] { serve(listener); });
        std::cout << talk_to(port) << " clients were answered\n";
        io::cancel(); // the server, too
    });
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
