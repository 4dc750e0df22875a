// SPDX-License-Identifier: MIT
/* haft/http.hpp: what a clause of server.handle throws leaves the handler, as it leaves
   haft::handle; what a raising one throws leaves the perform. A table of functions that perform is
   asked in both ways, over HTTP/1.1 and HTTP/2. */
#include <haft/http.hpp>

#ifdef CHECK_HTTP2
#    include "check_http2.h"
#else
#    include "check_http.h"
#endif

namespace http = haft::http;
namespace io = haft::io;
using namespace std::chrono_literals;

struct user : haft::effect<std::string> {};
struct price : haft::effect<int> {
    int of;
};
struct slow : haft::effect<void> {};

static std::string trace;

struct noting {
    ~noting() { trace += "unwound "; }
};

/* ---- The performer, which does not name a handler ---- */

static std::string greet() {
    noting here;
    try {
        return "Hello, " + haft::perform<user>();
    } catch (const std::exception &) {
        return trace += "caught by the performer ", "nobody";
    }
}
static std::string sum() {
    noting here;
    int total = haft::perform<price>(1);
    try {
        total += haft::perform<price>(-1);
    } catch (const std::out_of_range &caught) {
        trace += "caught by the performer ";
    }
    return std::to_string(total);
}
/* In a catch block, and in a computation of its own. */
static std::string nested() {
    try {
        throw 1;
    } catch (int) {
        return haft::handle(greet).with(
            [](slow, haft::resumption<std::string()> k) { return std::move(k).resume(); });
    }
}
static std::string spawning() {
    io::spawn([] {
        noting here;
        io::sleep_for(1000s);
    });
    io::yield();
    return greet();
}

/* In a task with the same handlers a clause's exception is the performer's. */
static std::string spawned() {
    return io::scope([] { return io::async_handled([] { return greet() + sum(); }).join(); });
}

/* ---- Clauses ---- */

static auto unknown = [](user) -> std::string { throw std::out_of_range("no such user"); };
static auto priced = haft::raising(
    [](price asked) { return asked.of > 0 ? 7 : throw std::out_of_range("no such price"); });

template <typename F>
static std::string told(F function) {
    try {
        return function();
    } catch (const std::out_of_range &caught) {
        return caught.what();
    }
}

static void add_routes(http::server &server) {
    auto add = [&](const char *path, std::string (*function)()) {
        server.get(path, [function](http::request &) { return function(); });
    };
    add("/greet", greet);
    add("/sum", sum);
    add("/nested", nested);
    add("/spawning", spawning);
    add("/spawned", spawned);
    server.get("/slow", [](http::request &) {
        noting here;
        haft::perform<slow>();
        return "never seen";
    });
    http::route_group api = server.group("/api");
    api.get("/greet", [](http::request &) { return greet(); });
    api.handle([](http::request &in, user) -> std::string {
        throw http::error(401, "who asks " + std::string(in.target()) + '?');
    });
    server.handle(unknown, priced);
    server.handle([](slow) { io::with_deadline(1ms, [] { io::sleep_for(1000s); }); });
    server.use([](http::request &in, const http::next &next) {
        try {
            next();
        } catch (const std::out_of_range &caught) {
            if (in.target() == "/spawning")
                throw http::error(410, caught.what()); /* else its task would go on */
            in.answer(404, caught.what());
        }
    });
}

struct row {
    std::string (*function)();
    const char *path;
    int status;
    const char *answer, *traced;
};
static const row rows[] = {
    {greet, "/greet", 404, "no such user", "unwound "},
    {sum, "/sum", 200, "7", "caught by the performer unwound "},
    {nested, "/nested", 404, "no such user", "unwound "},
    {spawned, "/spawned", 200, "nobody7",
     "caught by the performer unwound caught by the performer unwound "},
    {spawning, "/spawning", 410, "no such user", "unwound unwound "},
};

/* The handlers of a test, and those of the server. */
static void mean_the_same() {
    for (const row &each : rows) {
        trace.clear();
        CHECK(told([&] {
                  return io::scope(
                      [&] { return haft::handle(each.function).with(unknown, priced); });
              }) == each.answer);
        CHECK(trace == each.traced);
    }
    http::server server;
    server.set_log([](std::string_view) {});
    add_routes(server);
    io::scope([&] {
        io::spawn([&] { server.serve({.host = "127.0.0.1"}); });
        while (server.port() == 0)
            io::sleep_for(1ms);
        std::string base = "http://127.0.0.1:" + std::to_string(server.port());
        http::client client;
        for (const row &each : rows) {
            trace.clear();
            http::reply reply = client.get(base + each.path);
            CHECK(reply.body() == each.answer && trace == each.traced);
            CHECK(reply.status() == each.status);
        }
        http::reply refused = client.get(base + "/api/greet");
        CHECK(refused.status() == 401 && refused.body() == "who asks /api/greet?");
        trace.clear();
        CHECK(client.get(base + "/slow").status() == 500 && trace == "unwound ");
#ifdef CHECK_HTTP2
        static client_t two;
        open_client(&two, server.port(), nullptr, 0);
        for (const row &each : rows) {
            trace.clear();
            const answer_t *answer = hear_whole(&two, ask(&two, "GET", each.path));
            CHECK(std::string(answer->body, answer->size) == each.answer && trace == each.traced);
        }
        CHECK(std::string(hear_whole(&two, ask(&two, "GET", "/api/greet"))->status) == "401");
        close_client(&two);
#endif
        server.stop();
    });
}

/* A request that is cancelled while a clause waits is unwound. */
static void cancel() {
    http::server server;
    int ended = 0;
    server.set_log([](std::string_view) {});
    server.get("/slow", [](http::request &) {
        noting here;
        haft::perform<slow>();
        return "never seen";
    });
    server.handle([&](slow) {
        try {
            io::sleep_for(1000s);
        } catch (const io::cancelled &) {
            ended++;
            throw;
        }
    });
    server.cancel_with_client();
    trace.clear();
    io::scope([&] {
        io::spawn([&] { server.serve({.host = "127.0.0.1"}); });
        while (server.port() == 0)
            io::sleep_for(1ms);
        {
            HAFT_IO_SCOPED_DESCRIPTOR int connection =
                haft_io_connect_tcp("127.0.0.1", server.port());
            const std::string says = "GET /slow" END;
            CHECK(haft_io_write_all(connection, says.data(), says.size()) == 0);
            io::sleep_for(20ms);
        }
        while (trace.empty())
            io::sleep_for(1ms);
        server.stop();
    });
    CHECK(ended == 1 && trace == "unwound ");
}

int main() {
    for (void (*body)() : {mean_the_same, cancel}) {
        for (std::uint64_t seed = 1; seed <= 4; seed++)
            io::simulate({.seed = seed, .short_counts = seed % 2 == 0, .network = true}, body);
        for (int threads : {1, 2})
            io::run({.threads = threads}, body);
    }
}
