// SPDX-License-Identifier: MIT
/*
 * Web server: HTTP/1.1 with persistent connections and pipelined requests, parsed by http-parser, a
 * C library that knows nothing of tasks. The parser calls back in the middle of its input. The
 * callback answers there, and waits if it has to: its task is suspended with the parser's frames on
 * the stack. (An exception passes these frames, too, because compilers for x86-64 and AArch64 emit
 * unwind tables for C.) With a port as its argument the program serves until it is killed; without
 * one it talks to itself: two hundred clients with a hundred requests each.
 */
#include <haft/io.hpp>

#include <http_parser.h>

#include <charconv>
#include <cstdlib>
#include <functional>
#include <iostream>

namespace io = haft::io;
using namespace std::chrono_literals;

/* A request, or its answer. */
struct message {
    std::string target, body;
    unsigned status = 0;
    bool keeps_connection = false;
};

class parser {
  public:
    /* parse() calls `complete` for each complete message. It may wait, and throw. */
    parser(http_parser_type type, std::function<void(const message &)> complete)
        : call(std::move(complete)) {
        http_parser_init(&machine, type);
        machine.data = this;
    }
    parser(const parser &) = delete;
    parser &operator=(const parser &) = delete;

    /* False: the input was not HTTP. */
    bool parse(std::span<const std::byte> bytes) {
        static const http_parser_settings callbacks = settings();
        std::size_t parsed = http_parser_execute(
            &machine, &callbacks, reinterpret_cast<const char *>(bytes.data()), bytes.size());
        return parsed == bytes.size() && HTTP_PARSER_ERRNO(&machine) == HPE_OK;
    }

  private:
    static parser &of(http_parser *state) { return *static_cast<parser *>(state->data); }

    static http_parser_settings settings() {
        http_parser_settings made;
        http_parser_settings_init(&made);
        made.on_message_begin = [](http_parser *state) {
            of(state).current = {};
            return 0;
        };
        made.on_url = [](http_parser *state, const char *bytes, std::size_t size) {
            of(state).current.target.append(bytes, size);
            return 0;
        };
        made.on_body = [](http_parser *state, const char *bytes, std::size_t size) {
            of(state).current.body.append(bytes, size);
            return 0;
        };
        made.on_message_complete = [](http_parser *state) {
            message &done = of(state).current;
            done.status = state->status_code;
            done.keeps_connection = http_should_keep_alive(state) != 0;
            of(state).call(done);
            return 0;
        };
        return made;
    }

    std::function<void(const message &)> call;
    http_parser machine;
    message current;
};

static std::string with_length(std::string_view head, std::string_view body) {
    return std::string(head) + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
           std::string(body);
}

/* /square/N: its square. POST of anything: the same. */
static std::string answer_to(const message &request) {
    static constexpr std::string_view squares = "/square/";
    if (request.target.starts_with(squares)) {
        int number = 0; /* whose square fits in a long */
        const char *end = request.target.data() + request.target.size();
        auto [rest, error] = std::from_chars(request.target.data() + squares.size(), end, number);
        if (rest == end && error == std::errc())
            return with_length("HTTP/1.1 200 OK", std::to_string(long(number) * number));
    }
    if (request.target == "/echo")
        return with_length("HTTP/1.1 200 OK", request.body);
    return with_length("HTTP/1.1 404 Not Found", "There is no " + request.target + ".\n");
}

/* A client that is silent for half a minute is dropped. */
static void serve_one(const io::socket &connection) {
    bool ends = false;
    parser requests(HTTP_REQUEST, [&](const message &request) {
        if (!ends)
            connection.write_all(answer_to(request));
        ends |= !request.keeps_connection;
    });
    io::lent bytes;
    while (!ends && io::with_deadline(30s, [&] { return connection.read(bytes); }))
        if (!requests.parse(bytes)) {
            connection.write_all(with_length("HTTP/1.1 400 Bad Request\r\nConnection: close", ""));
            return;
        }
}

static void serve(const io::listener &listener) {
    for (io::socket connection : listener)
        io::spawn([connection = std::move(connection)] {
            try {
                serve_one(connection);
            } catch (const std::system_error
                         &) { /* The client is gone or silent, which is not a failure of the
                                 server. */
            }
        });
}

/* ---- The clients ---- */

/* The client sends all requests at once, before it reads an answer. */
static int ask(std::uint16_t port, int requests) {
    io::socket connection = io::socket::connect("127.0.0.1", port);
    std::string all;
    for (int i = 0; i < requests; i++)
        all += "GET /square/" + std::to_string(i) + " HTTP/1.1\r\nHost: here\r\n\r\n";
    int answered = 0;
    parser answers(HTTP_RESPONSE, [&](const message &answer) {
        answered +=
            answer.status == 200 && answer.body == std::to_string(long(answered) * answered);
    });
    connection.write_all(all);
    for (io::lent bytes; answered < requests && connection.read(bytes);)
        if (!answers.parse(bytes))
            break;
    return answered;
}

static std::string first_answer(std::uint16_t port, std::string_view request) {
    io::socket connection = io::socket::connect("127.0.0.1", port);
    std::optional<message> first;
    parser answers(HTTP_RESPONSE, [&](const message &answer) { first = answer; });
    connection.write_all(request);
    for (io::lent bytes; !first.has_value() && connection.read(bytes);)
        answers.parse(bytes);
    return first.has_value() ? std::to_string(first->status) + " " + first->body : "nothing";
}

static void talk_to(std::uint16_t port) {
    int answered = 0;
    io::scope([&] {
        for (int i = 0; i < 200; i++)
            io::spawn([&] { answered += ask(port, 100); });
    });
    std::cout << answered << " requests were answered\n";
    std::cout << first_answer(
                     port, "POST /echo HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"
                           "5\r\nhello\r\n8\r\n, chunks\r\n0\r\n\r\n")
              << '\n';
    std::cout << first_answer(port, "GET /cakes HTTP/1.1\r\nHost: here\r\n\r\n");
    std::cout << first_answer(port, "Is anybody there?\r\n\r\n") << '\n';
}

int main(int count, char **arguments) try {
    if (count > 1)
        io::run({.threads = 0}, [&] {
            serve(io::listener("::", static_cast<std::uint16_t>(std::atoi(arguments[1]))));
        });
    io::run([] {
        io::listener listener("127.0.0.1", 0);
        std::uint16_t port = listener.port();
        io::spawn([listener = std::move(listener)] { serve(listener); });
        talk_to(port);
        io::cancel(); // the server, too
    });
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
