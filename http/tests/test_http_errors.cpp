// SPDX-License-Identifier: MIT
/* haft/http.hpp: exceptions go out through the middleware, which may catch them; the application's
   form of errors; CORS; tasks that handlers start, for the request and for the server. */
#include <haft/http.hpp>

#include "check_http.h"

#include <atomic>

namespace http = haft::http;
namespace io = haft::io;
using namespace std::chrono_literals;

static bool has_memory = true; /* of C++ */
/* Not inlined: gcc takes one without the other for a mistake. */
__attribute__((noinline)) void *operator new(std::size_t size, const std::nothrow_t &) noexcept {
    return has_memory ? std::malloc(size) : nullptr;
}
__attribute__((noinline)) void *operator new(std::size_t size) {
    void *memory = operator new(size, std::nothrow);
    if (memory == nullptr)
        throw std::bad_alloc();
    return memory;
}
__attribute__((noinline)) void operator delete(void *memory) noexcept {
    std::free(memory);
}
void operator delete(void *memory, std::size_t) noexcept {
    operator delete(memory);
}

struct not_found : std::runtime_error {
    using std::runtime_error::runtime_error;
};

static std::string log_lines;
static std::string order;
static std::atomic<int> later, unwound;

static std::string ask(std::uint16_t port, const std::string &line,
                       const std::string &fields = "") {
    static char heard[100000];
    std::string says = line + " HTTP/1.1\r\nHost: here\r\n" + fields + "\r\n";
    return {heard, say_and_hear(port, says.data(), says.size(), false, heard, sizeof heard)};
}
static bool has(const std::string &text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

/* Notes that the task is unwound. */
struct noting {
    ~noting() { unwound++; }
};

static void add_routes(http::server &server) {
    server.use([](http::request &, const http::next &next) {
        order += "[";
        try {
            next();
        } catch (const std::out_of_range &range) {
            order += "!";
            throw not_found(std::string("out of range: ") + range.what());
        } catch (const std::exception &) {
            order += "?";
            throw;
        }
        order += "]";
    });
    server.use([](http::request &in, const http::next &next) {
        order += "(";
        try {
            next();
        } catch (const not_found &missing) {
            in.answer({.status = 404, .body = missing.what(), .headers = {{"X-Caught", "yes"}}});
        }
        order += ")";
    });
    server.get("/missing", [](http::request &) -> std::string { throw not_found("no such todo"); });
    server.get("/range", [](http::request &) -> std::string { throw std::out_of_range("7"); });
    server.get("/refused", [](http::request &) -> std::string { throw http::error(403); });
    server.get("/typed", [](http::request &) -> std::string {
        throw http::error(422, "{\"why\":\"x\"}", "application/json");
    });
    server.get("/late", [](http::request &in) {
        in.answer(200, "committed");
        throw std::runtime_error("the commit has failed");
    });
    server.get("/twice", [](http::request &in) {
        in.answer(201, "first");
        return "second";
    });
    server.get("/part/{name}", [](http::request &in) {
        CHECK(in.route() == "/part/{name}" && in.has_path("name") && !in.has_path("nmae"));
        return in.path("nmae");
    });
    server.get("/discard", [](http::request &in) {
        in.answer(200, "first");
        CHECK(in.discard_answer());
        return "second";
    });
    server.get("/cancel", [](http::request &) -> std::string {
        io::spawn([] { io::sleep_for(1h); });
        io::cancel();
        return "never";
    });
    server.get("/spawn", [](http::request &) {
        auto sum = std::make_shared<int>(0);
        io::task<int> one = io::async([] { return 1; }), two = io::async([] {
                                                             io::sleep_for(2ms);
                                                             return 2;
                                                         });
        io::spawn([] { io::sleep_for(5ms), later++; });
        return std::to_string(one.join() + two.join());
    });
    server.get("/spawn/throw", [](http::request &) {
        io::spawn([] { throw not_found("in a task"); });
        io::spawn([] {
            noting here;
            io::sleep_for(1000s);
        });
        return "never seen";
    });
    server.get("/spawn/scope", [](http::request &in) {
        int done = 0;
        io::scope([&] {
            io::spawn([&] { done++; });
            in.scope().spawn([] { io::sleep_for(1ms), later++; });
            in.server_scope().spawn([] { io::sleep_for(20ms), later += 100; });
        });
        return std::to_string(done);
    });
    server.get("/background/throw", [](http::request &in) {
        in.server_scope().spawn([] { throw std::runtime_error("no mail"); });
        return "sent";
    });
    http::route_group open = server.group("/open");
    open.cors({.origins = {"https://app.example"}, .max_age = 1h});
    open.get("/item", [](http::request &) -> std::string { throw http::error(409, "no"); });
}

static void check_errors(std::uint16_t port) {
    order.clear();
    std::string missing = ask(port, "GET /missing");
    CHECK(has(missing, "404 Not Found") && has(missing, "X-Caught: yes\r\n") &&
          has(missing, "\r\n\r\nno such todo"));
    CHECK(order == "([?)");
    order.clear();
    CHECK(has(ask(port, "GET /range"), "\r\n\r\nout of range: 7") && order == "([!)");
    order.clear();
    CHECK(has(ask(port, "GET /refused"), "\r\n\r\n403 Forbidden\n") && order == "([?");
    std::string typed = ask(port, "GET /typed");
    CHECK(has(typed, "422 ") && has(typed, "Content-Type: application/json\r\n") &&
          has(typed, "\r\n\r\n{\"why\":\"x\"}"));
    CHECK(has(ask(port, "GET /late"), "500 Internal"));
    CHECK(has(log_lines, "GET /late: std::runtime_error: the commit has failed"));
    CHECK(has(ask(port, "GET /twice"), "500 Internal"));
    CHECK(has(log_lines, "GET /twice: ") &&
          has(log_lines, "answer: the request has its answer, of status 201"));
    CHECK(has(ask(port, "GET /part/x"), "500 Internal"));
    CHECK(has(log_lines, "the route /part/{name} has no part {nmae}"));
    CHECK(has(ask(port, "GET /part/x"), "500 Internal"));
    CHECK(has(ask(port, "GET /cancel"), "500 Internal")); /* and nobody else is cancelled */
    order.clear();
    CHECK(has(ask(port, "GET /nowhere"), "404 Not Found") && order == "([])");
    std::string shared = ask(port, "GET /open/item", "Origin: https://app.example\r\n");
    CHECK(has(shared, "409 Conflict") &&
          has(shared, "Access-Control-Allow-Origin: https://app.example\r\n"));
    CHECK(has(ask(port, "OPTIONS /open/item",
                  "Origin: https://app.example\r\nAccess-Control-Request-Method: PUT\r\n"),
              "Access-Control-Max-Age: 3600\r\n"));
}

static void check_tasks(std::uint16_t port) {
    int before = later;
    CHECK(has(ask(port, "GET /spawn"), "\r\n\r\n3") && later == before + 1);
    int unwound_before = unwound;
    CHECK(has(ask(port, "GET /spawn/throw"), "500 Internal") && unwound == unwound_before + 1);
    CHECK(has(log_lines, "not_found: in a task"));
    before = later;
    CHECK(has(ask(port, "GET /spawn/scope"), "\r\n\r\n1") && later >= before + 1);
    CHECK(has(ask(port, "GET /background/throw"), "\r\n\r\nsent"));
    while (!has(log_lines, "a task of the server has failed: std::runtime_error: no mail"))
        io::sleep_for(1ms);
    CHECK(has(ask(port, "GET /discard"), "\r\n\r\nsecond")); /* the server goes on */
}

/* A program with a run of its own does so: a task of a handler that throws is not its run's. */
static void serve_and_check(http::server &server) {
    int before = later;
    auto serving = io::async([&] { CHECK(server.serve(io::listener("127.0.0.1", 0))); });
    while (server.port() == 0)
        io::sleep_for(1ms);
    check_errors(server.port());
    check_tasks(server.port());
    server.stop();
    serving.join();
    CHECK(later >= before + 102); /* the task of the server was waited for */
    try {
        server.scope();
        CHECK(false);
    } catch (const std::logic_error &) {
    }
}

static int fail_in_c(haft_http_request_t *, void *) {
    haft_io_fail(-EIO, "fails");
}

static void check_forms() {
    http::server server;
    server.on_error([](http::request &, const haft_http_error_t &error) {
        if (error.status == 500)
            throw std::runtime_error("the page is broken, too");
        std::string body = "<";
        return http::response{.status = error.status, .body = body.append(error.text).append(">")};
    });
    server.get("/refused", [](http::request &) -> std::string { throw http::error(403, "no"); });
    server.get("/throws", [](http::request &) -> std::string { throw 7; });
    server.set_log([](std::string_view) {});
    auto serving = io::async([&] { server.serve(io::listener("127.0.0.1", 0)); });
    while (server.port() == 0)
        io::sleep_for(1ms);
    CHECK(has(ask(server.port(), "GET /refused"), "\r\n\r\n<no>"));
    CHECK(has(ask(server.port(), "GET /nowhere"), "\r\n\r\n<Not Found>"));
    CHECK(has(ask(server.port(), "GET /throws"), "\r\n\r\n500 Internal Server Error\n"));
    server.stop();
    serving.join();
    server.on_error(http::problem);
    auto again = io::async([&] { server.serve(io::listener("127.0.0.1", 0)); });
    while (server.port() == 0)
        io::sleep_for(1ms);
    CHECK(has(ask(server.port(), "GET /refused"),
              "{\"title\":\"Forbidden\",\"status\":403,\"detail\":\"no\"}"));
    server.stop();
    again.join();
}

/* Tasks that the function for errors starts end with the request, whatever the request was. */
static void check_tasks_of_forms() {
    http::server server;
    std::atomic<int> ended = 0;
    server.on_error([&](http::request &in, const haft_http_error_t &error) {
        io::spawn([&] { io::sleep_for(1ms), ended++; });
        in.scope().spawn([&] { io::sleep_for(1ms), ended++; });
        return http::response{.status = error.status, .body = "mine"};
    });
    server.get("/throws", [](http::request &) -> std::string { throw 7; });
    haft_http_server_get(server.get(), "/fails", fail_in_c, nullptr);
    server.set_log([](std::string_view) {});
    auto serving = io::async([&] { CHECK(server.serve(io::listener("127.0.0.1", 0))); });
    while (server.port() == 0)
        io::sleep_for(1ms);
    for (const char *line : {"GET /throws", "GET /nowhere", "GET"}) {
        int before = ended;
        CHECK(has(ask(server.port(), line), "\r\n\r\nmine") && ended == before + 2);
    }
    CHECK(has(ask(server.port(), "GET /fails"), "\r\n\r\nmine"));
    server.stop();
    serving.join();
}

/* A cancel is an exception for middleware that catches all of them. */
static void check_cancels_in_catch_all(bool with_client) {
    http::server server;
    int caught = 0;
    server.set_limits({.grace = 1ms});
    for (bool is_inner : {true, false})
        server.use([&, is_inner](http::request &in, const http::next &next) {
            try {
                next();
            } catch (...) {
                caught++;
                in.discard_answer();
                in.answer(500, "caught");
                if (is_inner)
                    throw;
            }
        });
    if (with_client)
        server.cancel_with_client();
    std::string lines;
    server.set_log([&](std::string_view line) { lines += line; });
    server.get("/slow", [](http::request &) { io::sleep_for(1h); });
    auto serving = io::async([&] { return server.serve(io::listener("127.0.0.1", 0)); });
    while (server.port() == 0)
        io::sleep_for(1ms);
    if (with_client) { /* which sends no more, and so is taken for one that has gone */
        ask(server.port(), "GET /slow");
    } else {
        io::spawn([port = server.port()] { ask(port, "GET /slow"); });
        io::sleep_for(2ms);
    }
    server.stop();
    CHECK(serving.join() == with_client && caught == 2 && lines.empty());
}

/* An effect that nobody handles, and a failure of C, pass middleware that catches all; what that has
   answered is the answer, and what it throws in their place goes on. */
struct forgotten : haft::effect<int> {};
static void check_unwinding_in_catch_all() {
    http::server server;
    int caught = 0, behind = 0;
    std::string lines;
    server.set_log([&](std::string_view line) { lines.append(line).append("\n"); });
    server.use([](http::request &, const http::next &next) { next(); }); /* outside of all */
    http::route_group answering = server.group("/answering"), other = server.group("/other"),
                      silent = server.group("/silent");
    answering.use([&](http::request &in, const http::next &next) {
        try {
            next();
        } catch (...) {
            caught++;
            in.answer(503, "in its place");
        }
        behind++;
    });
    for (http::route_group *group : {&other, &silent})
        group->use([&](http::request &, const http::next &next) {
            try {
                next();
            } catch (...) {
                caught++;
            }
            behind++;
        });
    other.use([&](http::request &, const http::next &next) {
        try {
            next();
        } catch (...) {
            caught++;
            throw http::error(503, "in its place");
        }
        behind++;
    });
    for (http::route_group *group : {&answering, &other, &silent}) {
        group->get("/effect",
                   [](http::request &) { return std::to_string(haft::perform(forgotten{})); });
        group->get("/failure", [](http::request &in) {
            in.answer(200, "taken back");
            haft_io_fail(-EIO, "the disk is gone");
        });
        group->get("/begun", [](http::request &in) {
            haft_http_answer_begin(in.get(), 200, "text/plain", HAFT_HTTP_UNKNOWN_SIZE);
            haft_http_answer_write(in.get(), "a part", 6);
            haft_http_answer_flush(in.get());
            haft_io_fail(-EIO, "the disk is gone");
        });
        group->get("/well", [](http::request &) { return "well"; });
    }
    auto serving = io::async([&] { return server.serve(io::listener("127.0.0.1", 0)); });
    while (server.port() == 0)
        io::sleep_for(1ms);
    for (const char *line : {"GET /answering/effect", "GET /answering/failure", "GET /other/effect",
                             "GET /other/failure"})
        CHECK(has(ask(server.port(), line), "\r\n\r\nin its place"));
    for (const char *line : {"GET /silent/effect", "GET /silent/failure"})
        CHECK(has(ask(server.port(), line), "\r\n\r\n500 Internal Server Error\n"));
    CHECK(caught == 8 && behind == 0);
    for (const char *line : {"GET /answering/begun", "GET /silent/begun"}) {
        std::string begun = ask(server.port(), line);
        CHECK(has(begun, "a part") && !has(begun, "\r\n0\r\n\r\n"));
    }
    for (const char *line : {"GET /answering/well", "GET /other/well"})
        CHECK(has(ask(server.port(), line), "\r\n\r\nwell"));
    server.stop();
    CHECK(serving.join() && behind == 3);
    CHECK(has(lines, "GET /answering/effect: a handler has failed: Nobody handles the effect "));
    CHECK(has(lines, "GET /answering/failure: a handler has failed: the disk is gone"));
}

static int keep_to_itself(haft_http_request_t *request, haft_http_next_t *next, void *) {
    return next->call(next, request) == 0 ? 0 : haft_http_answer_text(request, 200, "kept");
}

static void check_corners() {
    http::server server;
    haft_http_server_use(server.get(), keep_to_itself, nullptr);
    server.get("/kept", [](http::request &) -> std::string { throw http::error(404); });
    server.get("/kept/task", [](http::request &) -> std::string {
        io::spawn([] { throw 7; });
        io::sleep_for(1ms);
        throw http::error(404);
    });
    http::server typed;
    typed.get("/fields", [](http::request &in) -> std::string {
        in.set_header("WWW-Authenticate", "Basic");
        throw http::error(401, "{}", "application/json");
    });
    typed.get("/status", [](http::request &) -> std::string {
        throw http::error(200, "{}", "application/json");
    });
    typed.get("/child", [](http::request &in) {
        io::scope([&] { io::spawn([&] { in.scope().spawn([] {}); }); });
        return "never";
    });
    typed.cors();
    http::route_group both = typed.group("/both");
    both.cors({.origins = {"https://app.example"}, .credentials = true});
    both.get("/item", [](http::request &) { return "item"; });
    typed.get("/memory", [](http::request &) {
        io::spawn([] {
            std::runtime_error failure("a text that is too long for the words to need no memory");
            has_memory = false;
            throw failure;
        });
        return "never";
    });
    std::string lines;
    for (http::server *each : {&server, &typed}) {
        each->set_log([&](std::string_view line) {
            has_memory = true;
            lines += line;
        });
        auto serving = io::async([=] { CHECK(each->serve(io::listener("127.0.0.1", 0))); });
        while (each->port() == 0)
            io::sleep_for(1ms);
        std::uint16_t port = each->port();
        if (each == &server) {
            CHECK(has(ask(port, "GET /kept"), "\r\n\r\nkept"));
            CHECK(has(ask(port, "GET /kept/task"), "500 Internal"));
        } else {
            CHECK(has(ask(port, "GET /fields"), "WWW-Authenticate: Basic\r\n"));
            CHECK(has(ask(port, "GET /status"), "500 Internal"));
            CHECK(has(ask(port, "GET /child"), "500 Internal") &&
                  has(lines, "a task that is not the handler's calls request::scope()"));
            std::string item = ask(port, "GET /both/item", "Origin: https://app.example\r\n");
            CHECK(has(item, "Access-Control-Allow-Origin: *\r\n") &&
                  !has(item, "Access-Control-Allow-Origin: https") && !has(item, "Credentials"));
            CHECK(has(ask(port, "GET /memory"), "500 Internal") &&
                  has(lines, "a task of a request has failed: out of memory"));
        }
        each->stop();
        serving.join();
    }
}

static void check_mistakes() {
    http::server server;
    server.set_log([](std::string_view) {});
    server.get("/todo", [](http::request &) { return "there"; });
    const std::pair<const char *, const char *> wrong[] = {
        {"/todo/:id", "no route GET /todo/:id: a part that captures is written {name}"},
        {"/todo/*", "no route GET /todo/*: a part that takes the rest is written {name...}"},
        {"todo", "no route GET todo: a path begins with '/'"},
        {"/todo/x{id}", "braces stand around a whole part"},
        {"/todo", "no route GET /todo: the path has a handler for that method already"}};
    for (const auto &[path, words] : wrong)
        try {
            server.get(path, [](http::request &) { return "never"; });
            CHECK(false);
        } catch (const std::system_error &mistake) {
            CHECK(has(mistake.what(), words));
        }
}

int main() {
    check_mistakes();
    http::server server;
    server.set_log([](std::string_view line) { log_lines.append(line).append("\n"); });
    add_routes(server);
    io::run([&] { serve_and_check(server); });
    io::simulate({.seed = 1, .network = true}, [&] { serve_and_check(server); });
    io::simulate({.seed = 2, .short_counts = true, .network = true},
                 [&] { serve_and_check(server); });
    void (*const others[])() = {check_forms,
                                check_tasks_of_forms,
                                check_corners,
                                check_unwinding_in_catch_all,
                                [] { check_cancels_in_catch_all(false); },
                                [] { check_cancels_in_catch_all(true); }};
    for (auto *check : others) {
        io::run(check);
        io::simulate({.seed = 3, .network = true}, check);
    }
}
