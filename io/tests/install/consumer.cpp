// SPDX-License-Identifier: MIT
// A user's program in C++: prints 42 when a task has returned it.
#include <haft/io.hpp>
#include <iostream>

namespace io = haft::io;

int main() {
    io::run([] {
        io::channel<int> numbers;
        auto asked = io::async({.name = "asked"}, [&] { return numbers.receive().value(); });
        numbers.send(42);
        std::cout << asked.join() << '\n';
    });
}
