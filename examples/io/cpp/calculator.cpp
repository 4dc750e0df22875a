// SPDX-License-Identifier: MIT
/*
 * Calculator: a command-line tool and a server from the same function. `calculator -` answers the
 * lines of its standard input, by blocking; `calculator PORT` answers every connection in a task of
 * its own. `answer` does not know which: its reads and writes are effects, which block where no
 * scheduler handles them. Without an argument the program starts itself as the tool, and asks
 * itself as the server.
 */
#include <haft/io.hpp>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <sstream>

namespace io = haft::io;

/* Operators follow their numbers: "6 3 4 + *" is 6 * (3 + 4). */
static std::string calculate(const std::string &line) {
    std::istringstream words(line);
    std::vector<double> stack;
    for (std::string word; words >> word;) {
        char *end;
        double value = std::strtod(word.c_str(), &end);
        if (*end != '\0') {
            if (stack.size() < 2)
                return "error: too few numbers\n";
            double right = stack.back();
            stack.pop_back();
            double left = stack.back();
            stack.pop_back();
            switch (word[0]) {
            case '+':
                value = left + right;
                break;
            case '-':
                value = left - right;
                break;
            case '*':
                value = left * right;
                break;
            case '/':
                value = left / right;
                break;
            default:
                return "error: what is " + word + "?\n";
            }
        }
        stack.push_back(value);
    }
    std::ostringstream text;
    for (double value : stack)
        text << value << ' ';
    return text.str() + '\n';
}

static void answer(const io::descriptor &in, const io::descriptor &out) {
    for (std::string_view line : io::lines(in))
        out.write_all(calculate(std::string(line)));
}

static void serve(const io::listener &listener) {
    for (io::socket connection : listener)
        io::spawn([connection = std::move(connection)] { answer(connection, connection); });
}

static void show(const char *program) {
    auto [tool_reads, to_tool] = io::pipe();
    auto [from_tool, tool_writes] = io::pipe();
    io::process tool({program, "-"}, {.in = &tool_reads, .out = &tool_writes});
    tool_reads.close(), tool_writes.close();
    to_tool.write_all("6 3 4 + *\n1 2 4 / -\n1 +\n1 2 x\n");
    to_tool.close();
    std::cout << "the tool:\n" << from_tool.read_all();
    tool.wait();

    io::listener listener("127.0.0.1", 0);
    auto ask = [port = listener.port()] {
        auto connection = io::socket::connect("127.0.0.1", port);
        connection.write_all("20 22 +\n");
        connection.shutdown();
        return connection.read_all() == "42 \n";
    };
    io::scope([&](io::scope_ref here) {
        io::spawn([&] { serve(listener); });
        std::vector<bool> right = io::all(std::vector(100, ask));
        std::cout << "the server: " << std::count(right.begin(), right.end(), true) << " right\n";
        here.cancel();
    });
}

int main(int count, char **arguments) {
    if (count == 1)
        io::run([&] { show(arguments[0]); });
    else if (arguments[1] == std::string("-"))
        answer(io::descriptor(0), io::descriptor(1));
    else
        io::run([&] { serve({"::", static_cast<std::uint16_t>(std::atoi(arguments[1]))}); });
}
