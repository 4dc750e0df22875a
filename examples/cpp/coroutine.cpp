// SPDX-License-Identifier: MIT
/* Two coroutines hold a conversation: a parser asks for tokens, a lexer provides them. Neither is
 * written inside out, and both recurse where they like. */
#include <algorithm>
#include <cctype>
#include <haft/coroutine.hpp>
#include <iostream>
#include <string>

/* Is resumed with a line, and yields its value, until it gets an empty one; then it answers how
 * many there were. */
using calculator = haft::coroutine<int, std::string, int>;

/* Yields the tokens of a text: numbers, or characters. */
using lexer = haft::coroutine<std::string>;

static void tokens(const std::string &text, haft::exchanger<std::string> yield) {
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = at + 1;
        if (std::isdigit(static_cast<unsigned char>(text[at])))
            end = std::min(text.find_first_not_of("0123456789", at), text.size());
        if (text[at] != ' ')
            yield(text.substr(at, end - at));
        at = end;
    }
}

class parser {
  public:
    explicit parser(const std::string &text)
        : source([&text](haft::exchanger<std::string> yield) { tokens(text, yield); }) {
        advance();
    }
    int sum() {
        int value = product();
        while (token == "+" || token == "-")
            value += taken() == "+" ? product() : -product();
        return value;
    }

  private:
    int product() {
        int value = factor();
        while (token == "*") {
            advance();
            value *= factor();
        }
        return value;
    }
    int factor() {
        if (token != "(")
            return std::stoi(taken());
        advance();
        int value = sum();
        advance();
        return value;
    }
    std::string taken() {
        std::string before = token;
        advance();
        return before;
    }
    void advance() {
        std::string *next = source.finished() ? nullptr : source.resume();
        token = next == nullptr ? "" : *next;
    }
    lexer source;
    std::string token;
};

int main() {
    calculator calculate([](haft::exchanger<int, std::string> yield, std::string line) {
        int lines = 0;
        for (; !line.empty(); lines++)
            line = yield(parser(line).sum());
        return lines;
    });
    for (const char *line : {"1 + 2 * 3", "(1 + 2) * 3", "2 * (20 - (3 - 4))"})
        std::cout << line << " = " << *calculate.resume(line) << '\n';
    calculate.resume("");
    std::cout << calculate.answer() << " lines\n";
}
