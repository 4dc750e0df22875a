// SPDX-License-Identifier: MIT
/* haft/http.hpp: handlers and what they return, exceptions, middleware that handles effects, under
   test handlers and whole, over the simulated network and over sockets. */
#include <haft/http.hpp>

#include <haft.hpp>

#include "check_http.h"

#include <filesystem>
#include <fstream>
#include <thread>

namespace http = haft::http;
namespace io = haft::io;

/* Effects that the service needs handled around it. */
struct current_user : haft::effect<std::string> {};

struct place : haft::effect<std::string> {};
struct counted : haft::effect<int> {};

static std::string greet() {
    return "Hello, " + haft::perform<current_user>();
}

static std::string ask(std::uint16_t port, std::string_view says) {
    static char heard[100000];
    return {heard, say_and_hear(port, says.data(), says.size(), false, heard, sizeof heard)};
}

static std::string get(std::uint16_t port, const std::string &path,
                       const std::string &fields = "") {
    return ask(port, "GET " + path + " HTTP/1.1\r\nHost: here\r\n" + fields + "\r\n");
}

/* Clients that do not end their side. */
static int open_and_ask(std::uint16_t port, const std::string &path) {
    std::string says = "GET " + path + " HTTP/1.1\r\nHost: here\r\nLast-Event-ID: 6\r\n\r\n";
    int connection = haft_io_connect_tcp("127.0.0.1", port);
    CHECK(haft_io_write_all(connection, says.data(), says.size()) == 0);
    return connection;
}
static std::string hear_until(std::uint16_t port, const std::string &path, std::string_view word) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection = open_and_ask(port, path);
    std::string heard;
    for (char byte; heard.find(word) == std::string::npos; heard += byte)
        CHECK(haft_io_read(connection, &byte, 1) == 1);
    return heard;
}

static bool has(const std::string &text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

/* A folder with one file. */
struct temporary_folder {
    std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("haft_http_cpp_" + std::to_string(getpid()));
    temporary_folder() {
        std::filesystem::create_directory(path);
        std::ofstream(path / "file.txt") << "from a file";
    }
    ~temporary_folder() { std::filesystem::remove_all(path); }
};
static const temporary_folder folder;

static io::channel<int> numbers;

static void add_routes(http::server &server) {
    server.get("/text", [](http::request &) { return "text"; });
    server.get("/string/{name}", [](http::request &in) { return in.path("name"); });
    server.get("/whole", [](http::request &) {
        return http::response{
            .status = 201, .body = "{}", .type = "application/json", .headers = {{"X-A", "b"}}};
    });
    server.get("/pieces", [](http::request &in) {
        in.begin();
        for (int i = 0; i < 3; i++)
            in.write("piece ");
        in.set_trailer("X-Count", "3");
    });
    server.get("/throws",
               [](http::request &) -> std::string { throw std::runtime_error("no luck"); });
    server.get("/throws/int", [](http::request &) -> std::string { throw 7; });
    server.get("/teapot",
               [](http::request &) -> std::string { throw http::error(418, "short and stout"); });
    server.get("/split", [](http::request &in) -> std::string {
        in.set_header("X-A", "b\r\nX-Evil: 1");
        return "";
    });
    server.get("/nul", [](http::request &in) -> std::string {
        in.set_header("X-A", std::string("b\0c", 3));
        return "";
    });
    server.post("/echo", [](http::request &in) { return std::string(in.body()); });
    haft_http_server_get(
        server.get(), "/by/c",
        [](haft_http_request_t *in, void *) { return haft_http_answer_text(in, 200, "by C"); },
        nullptr);
    server.get("/greet", [](http::request &) { return greet(); });
    server.get("/stop", [&server](http::request &) {
        server.stop();
        return "stopped";
    });
    server.get("/events", [](http::request &in) {
        in.begin_events();
        in.send_event({.data = std::string(in.last_event_id().value_or("none"))});
        while (std::optional<int> number = in.receive(numbers))
            in.send_event({.data = "number " + std::to_string(*number), .type = "number"});
    });
    server.get("/wait", [](http::request &in) {
        return in.sleep_for(std::chrono::milliseconds(1)) ? "to the end" : "in vain";
    });
    auto echo = [](http::request &in) {
        std::byte bytes[10];
        while (std::size_t size = in.stream_read(bytes))
            in.stream_write({reinterpret_cast<const char *>(bytes), size});
        in.stream_shutdown();
    };
    server.on_connect([echo](http::request &in) {
        if (in.tunnel())
            echo(in);
    });
    server.get("/upgrade", [echo](http::request &in) {
        if (!in.upgrade("echo"))
            throw http::error(426);
        echo(in);
    });
    server.get("/socket", [](http::request &in) {
        auto socket = http::websocket::accept(in, {.protocols = "a, b"});
        while (auto message = socket.receive())
            CHECK(socket.send(*message) && socket.send(socket.protocol()));
        CHECK(!socket.send("too late") && !socket.close());
        CHECK(!socket || (socket.close_code() == 1000 && socket.close_reason() == "bye"));
    });
    server.post("/form", [](http::request &in) {
        std::string said;
        http::multipart form(in, {.part = 20});
        while (auto part = form.next()) {
            said += part->name;
            if (!part->file_name) {
                said.append("=").append(form.text());
                continue;
            }
            io::file stored = form.store("/tmp");
            std::byte first[1];
            said += stored.pread(0, first) == 1 ? static_cast<char>(first[0]) : '?';
        }
        return said;
    });
    server.get("/cookie", [](http::request &in) {
        in.set_cookie("set", "2", {.for_http = true});
        const haft_http_trace_t *trace = http::trace();
        bool is_passed_on = *trace->parent != '\0';
        return std::string(in.header("Cookie").value_or("")) + ' ' +
               (is_passed_on ? trace->id : "no trace");
    });
    server.trace_requests();
    server.get("/much", [](http::request &in) {
        auto chosen = in.accepts({"text/html", "text/plain"});
        if (in.query("plain"))
            in.do_not_compress();
        in.answer(200, std::string(5000, static_cast<char>('0' + chosen.value_or(9))));
    });
    http::route_group api = server.group("/api");
    api.get("/greet", [](http::request &) { return greet(); });
    http::route_group v1 = api.group("/v1");
    v1.get("/greet", [](http::request &) { return greet(); });
    v1.use([](http::request &, const http::next &next) {
        haft::handle(next).with([](current_user) { return std::string("v1"); });
    });
    auto tell_place = [](http::request &) { return haft::perform<place>(); };
    server.get("/place", tell_place);
    http::route_group inner = server.group("/inner");
    inner.get("/place", tell_place);
    inner.get("/refused", tell_place);
    inner.get("/counted", [](http::request &) {
        std::string first = std::to_string(haft::perform<counted>());
        return first + std::to_string(haft::perform<counted>());
    });
    /* Effects that it performs go further out. */
    inner.handle([](http::request &in, place) {
        if (in.target() == "/inner/refused")
            throw http::error(403, "not here");
        return "in " + haft::perform<place>();
    });
    inner.handle([count = 0](counted) mutable {
        io::sleep_for(std::chrono::milliseconds(1));
        count = 1 - count;
        return count + 10 * haft::perform<counted>();
    });
    inner.use([](http::request &, const http::next &next) {
        haft::handle(next).with([](counted) { return 4; });
    });
    server.handle([](http::request &in, place) { return std::string(in.target()); },
                  [](counted) { return 7; });
    server.files("/files", folder.path, {.cache_control = "no-cache"});
    server.use([](http::request &in, const http::next &next) {
        auto user = in.header("X-User");
        if (in.target() == "/greet" && !user.has_value())
            throw http::error(401, "who are you?");
        haft::handle(next).with([&](current_user) { return std::string(user.value_or("nobody")); });
    });
}

static void ask_by_client(const std::string &base) {
    http::client client;
    CHECK(client.get(base + "/text").body() == "text");
    CHECK(client.post(base + "/echo", "hello", "text/plain").body() == "hello");
    http::reply whole = client.ask({.url = base + "/whole", .headers = {{"A", "b"}}});
    CHECK(whole.status() == 201 && whole.header("x-a") == "b" && whole.body() == "{}");
    int pieces = 3;
    http::question question{.url = base + "/echo"};
    question.produce = [&](std::span<char> into) -> std::size_t {
        into[0] = 'x';
        return pieces-- > 0 ? 1 : 0;
    };
    CHECK(client.ask(question).body() == "xxx");
    question.produce = [](std::span<char>) -> std::size_t { throw std::runtime_error("empty"); };
    try {
        client.ask(question);
        CHECK(false);
    } catch (const std::runtime_error &) {
    }
    try {
        client.get("ftp://here/");
        CHECK(false);
    } catch (const std::system_error &error) {
        CHECK(error.code() == std::errc::protocol_not_supported &&
              error.what() ==
                  std::string("ask ftp://here/: write it as http://host:port/path, or with https: "
                              "Protocol not supported"));
    }
}

static void ask_with_cookies_and_traces(const std::string &base) {
    http::cookie_jar jar;
    CHECK(jar.set(base, "own=1") && !jar.set(base, "own=1; Domain=com"));
    http::client client({.proxy = "", .connections = 1, .cookies = &jar});
    CHECK(client.get(base + "/cookie").body() == "own=1 no trace");
    CHECK(client.get(base + "/cookie").body() == "own=1; set=2 no trace");
    CHECK(jar.get(base) == "own=1; set=2");
    CHECK(haft_http_trace_begin(nullptr, nullptr) == 0);
    std::string id = http::trace()->id;
    CHECK(client.get(base + "/cookie").body() == "own=1; set=2 " + id);
    haft_http_trace_end();
    jar.clear();
    CHECK(jar.get(base).empty() && http::trace() == nullptr);
    http::client proxied({.proxy = base});
    CHECK(proxied.get("http://elsewhere.example/text").body() == "text");
}

static void talk_by_websocket(const std::string &base) {
    http::client client;
    try {
        auto socket = http::websocket::connect(client, {.url = "ws" + base.substr(4) + "/socket"},
                                               {.protocols = "b", .keeps_context = true});
        std::string long_text(1000, 'x');
        CHECK(socket.send(long_text) && socket.receive()->bytes == long_text);
        CHECK(socket.receive()->bytes == "b" && socket.protocol() == "b");
        CHECK(socket.close(1000, "bye") && !socket.receive() && socket.close_code() == 1000);
        http::websocket::connect(client, {.url = base + "/text"});
        CHECK(false);
    } catch (const std::system_error &failure) {
        CHECK(has(failure.what(), "status 200") ||
              failure.code() == std::errc::operation_not_supported);
    }
}

static void post_forms(const std::string &base) {
    http::client client;
    const char *type = "multipart/form-data; boundary=X";
    std::string part = "--X\r\nContent-Disposition: form-data; name=a\r\n\r\nhello\r\n";
    std::string file = "--X\r\nContent-Disposition: form-data; name=f; filename=g\r\n\r\nhello\r\n";
    CHECK(client.post(base + "/form", part + file + "--X--", type).body() == "a=hellofh");
    CHECK(client.post(base + "/form", part, type).status() == 400);
    CHECK(client.post(base + "/form", part + "--X--", "text/plain").status() == 415);
    part.insert(part.size() - 2, 16, 'x');
    CHECK(client.post(base + "/form", part + "--X--", type).status() == 413);
}

static void talk(http::server &server, std::string &log) {
    io::spawn([&] { CHECK(server.serve(io::listener("127.0.0.1", 0))); });
    while (server.port() == 0)
        io::sleep_for(std::chrono::milliseconds(1));
    std::uint16_t port = server.port();
    CHECK(has(get(port, "/text"), "\r\n\r\ntext"));
    CHECK(has(get(port, "/string/a%20b"), "\r\n\r\na b"));
    CHECK(has(get(port, "/by/c"), "\r\n\r\nby C"));
    std::string whole = get(port, "/whole");
    CHECK(has(whole, "201 Created") && has(whole, "Content-Type: application/json") &&
          has(whole, "X-A: b\r\n"));
    std::string pieces = get(port, "/pieces");
    CHECK(has(pieces, "6\r\npiece \r\n") && has(pieces, "\r\n0\r\nX-Count: 3\r\n\r\n"));
    CHECK(has(get(port, "/throws"), "500 Internal") &&
          has(log, "GET /throws: std::runtime_error: no luck\n"));
    CHECK(has(get(port, "/throws/int"), "500 Internal") && has(log, "GET /throws/int: int\n"));
    CHECK(has(get(port, "/teapot"), "HTTP/1.1 418 \r\n") && !has(log, "teapot"));
    io::spawn([] { numbers.send(7); });
    CHECK(has(hear_until(port, "/events", "event: number\ndata: number 7\n\n"), "data: 6\n\n"));
    hear_until(port, "/wait", "to the end");
    CHECK(has(get(port, "/upgrade"), "426"));
    CHECK(has(ask(port, "GET /upgrade HTTP/1.1\r\nHost: here\r\nConnection: upgrade\r\nUpgrade: "
                        "echo\r\n\r\nhello over there"),
              "\r\n\r\nhello over there"));
    std::string frames("\x81\x82\0\0\0\0hi\x88\x85\0\0\0\0\x03\xe8"
                       "bye",
                       19);
    std::string socket =
        ask(port, "GET /socket HTTP/1.1\r\nHost: here\r\nConnection: upgrade\r\nUpgrade: "
                  "websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: b, a\r\n"
                  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n" +
                      frames);
    CHECK(has(socket, "501 Not") || has(socket, "\r\n\r\n\x81\x02hi\x81\x01"
                                                "a\x88\x02\x03\xe8"));
    CHECK(has(get(port, "/socket"), "426 Upgrade") || has(socket, "501 Not"));
    CHECK(has(ask(port, "CONNECT here:1 HTTP/1.1\r\nHost: here:1\r\n\r\nhello"), "\r\n\r\nhello"));
    CHECK(has(get(port, "/api/greet", "X-User: Ada\r\n"), "Hello, Ada"));
    CHECK(has(get(port, "/api/v1/greet", "X-User: Ada\r\n"), "Hello, v1"));
    CHECK(has(get(port, "/place"), "\r\n\r\n/place"));
    CHECK(has(get(port, "/inner/place"), "\r\n\r\nin /inner/place"));
    CHECK(has(get(port, "/inner/refused"), "403 Forbidden") && !has(log, "not here"));
    CHECK(has(get(port, "/inner/counted"), "\r\n\r\n4140"));
    std::string file = get(port, "/files/file.txt", "Range: bytes=5-\r\n");
    CHECK(has(file, "Cache-Control: no-cache\r\n") && has(file, "\r\n\r\na file"));
    CHECK(has(get(port, "/split"), "500 Internal") && !has(get(port, "/split"), "Evil"));
    CHECK(has(get(port, "/nul"), "500 Internal"));
    CHECK(has(get(port, "/greet"), "401 Unauthorized"));
    CHECK(has(get(port, "/greet", "X-User: Ada\r\n"), "\r\n\r\nHello, Ada"));
    CHECK(has(ask(port, "POST /echo HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n\r\nhi"),
              "\r\n\r\nhi"));
    CHECK(has(ask(port, "POST /echo HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n\r\nh"),
              "400 Bad Request"));
    ask_by_client("http://127.0.0.1:" + std::to_string(port));
    ask_with_cookies_and_traces("http://127.0.0.1:" + std::to_string(port));
    talk_by_websocket("http://127.0.0.1:" + std::to_string(port));
    post_forms("http://127.0.0.1:" + std::to_string(port));
    std::string zipped = get(port, "/much", "Accept-Encoding: gzip\r\nAccept: text/plain\r\n");
    CHECK(zipped.size() < 1000 || !has(zipped, "Content-Encoding"));
    CHECK(has(get(port, "/much?plain", "Accept-Encoding: gzip\r\nAccept: text/plain\r\n"), "1111"));
    CHECK(has(get(port, "/stop"), "stopped"));
}

/* A client that leaves cancels its handler, which waits in a scope of its own. */
static void leave(http::server &server, bool &left) {
    io::spawn([&] { CHECK(server.serve(io::listener("127.0.0.1", 0))); });
    while (server.port() == 0)
        io::sleep_for(std::chrono::milliseconds(1));
    {
        io::descriptor connection(open_and_ask(server.port(), "/leave"));
        io::sleep_for(std::chrono::milliseconds(5));
    }
    while (!left)
        io::sleep_for(std::chrono::milliseconds(1));
    CHECK(has(get(server.port(), "/text"), "\r\n\r\ntext"));
    server.stop();
}

static void test_leaving() {
    bool left = false;
    std::string log;
    http::server server;
    server.set_log([&](std::string_view line) { log.append(line) += '\n'; });
    server.get("/text", [](http::request &) { return "text"; });
    server.get("/leave", [&](http::request &) {
        struct note_end {
            bool &to;
            ~note_end() { to = true; }
        } note{left};
        io::scope([] { io::sleep_for(std::chrono::hours(1)); });
        return "too late";
    });
    server.cancel_with_client();
    io::simulate({.seed = 1, .network = true}, [&] { leave(server, left); });
    left = false;
    io::run([&] { leave(server, left); });
    CHECK(log.empty());
}

/* A proxy as a handler, and in a handler that looks at the request first. */
static void pass_on(http::server &inner, http::server &server, const http::proxy &proxy) {
    for (http::server *each : {&inner, &server}) {
        io::spawn([&, each] {
            CHECK(each->serve(io::listener("127.0.0.1", each == &inner ? 4021 : 0)));
        });
        while (each->port() == 0)
            io::sleep_for(std::chrono::milliseconds(1));
    }
    std::string answer = get(server.port(), "/api/greet?a=b", "X-A: 1\r\n");
    CHECK(has(answer, "\r\n\r\nGET /greet?a=b [1]") && has(answer, "Via: 1.1 haft-"));
    CHECK(has(get(server.port(), "/looked/at"), "\r\n\r\nGET /looked/at"));
    CHECK(proxy.upstream(0)->requests == 2 && !proxy.upstream(1).has_value());
    inner.stop();
    while (inner.port() != 0)
        io::sleep_for(std::chrono::milliseconds(1));
    CHECK(has(get(server.port(), "/api/greet"), "502 Bad Gateway"));
    CHECK(has(get(server.port(), "/looked/at"), "502 Bad Gateway"));
    CHECK(has(get(server.port(), "/looked/away"), "403 Forbidden"));
    server.stop();
}

static void test_proxy() {
    for (std::uint64_t seed = 1; seed <= 2; seed++) {
        http::server inner, server;
        server.set_log([](std::string_view) {});
        inner.any("/{path...}", [](http::request &in) {
            return std::string(in.method()) + " " + std::string(in.target()) + " [" +
                   std::string(in.header("X-A").value_or("")) + "]";
        });
        http::proxy proxy = http::proxy_to({"http://127.0.0.1:4021"}, {.strip = "/api"});
        server.any("/{path...}", proxy);
        server.get("/looked/{how}", [proxy](http::request &in) {
            if (in.path("how") != "at")
                throw http::error(403);
            proxy(in);
        });
        io::simulate({.seed = seed, .network = true}, [&] { pass_on(inner, server, proxy); });
    }
    try {
        http::proxy_to({"ftp://here"});
        CHECK(false);
    } catch (const std::system_error &) {
    }
}

static void test_metrics() {
    http::server server;
    http::counter sold(server, "shop_sold", "Things that were sold.", {"route"});
    http::gauge carts(server, "shop_carts");
    http::histogram packing(server, "shop_packing_seconds", "", {"who"}, {0.5, 2});
    server.serve_counters("/counters");
    server.get("/sell/{id}", [&](http::request &in) {
        sold.with(in.route().value_or("")).add(3);
        carts.add(-0.5);
        packing.with("Ada").observe(std::chrono::milliseconds(750));
        packing.with(std::string("Ada")).observe(7);
        return "sold";
    });
    for (const char *name : {"shop_sold", "a b"})
        try {
            http::counter again(server, name);
            CHECK(false);
        } catch (const std::invalid_argument &wrong) {
            CHECK(has(wrong.what(), "no metric "));
        }
    try {
        sold.add();
        CHECK(false);
    } catch (const std::logic_error &) {
    }
    carts.set(2);
    io::simulate({.seed = 1, .network = true}, [&] {
        io::spawn([&] { CHECK(server.serve(io::listener("127.0.0.1", 0))); });
        while (server.port() == 0)
            io::sleep_for(std::chrono::milliseconds(1));
        CHECK(has(get(server.port(), "/sell/7"), "sold"));
        std::string page = ask(server.port(), "GET /counters HTTP/1.0\r\n\r\n");
        CHECK(has(page, "\nshop_sold_total{route=\"/sell/{id}\"} 3\n"));
        CHECK(has(page, "\nshop_carts 1.5\n"));
        CHECK(has(page, "\nshop_packing_seconds_bucket{who=\"Ada\",le=\"2\"} 1\n"));
        CHECK(has(page, "\nshop_packing_seconds_sum{who=\"Ada\"} 7.75\n"));
        server.stop();
    });
}

/* The handler uses more than a stack has by default. */
static void test_stack_size(std::size_t size) {
    http::server server;
    server.get("/deep", [&server](http::request &) {
        volatile char deep[2 << 20];
        deep[0] = 'd';
        server.stop();
        return std::string(1, deep[0]) + "eep";
    });
    std::thread client([&server] {
        while (server.port() == 0)
            usleep(1000);
        CHECK(has(get(server.port(), "/deep"), "\r\n\r\ndeep"));
    });
    CHECK(server.run({.host = "127.0.0.1", .stack_size = size}) == 0);
    client.join();
}

static void test_options() {
    http::cookie_options cookie = {.path = "/", .max_age = std::chrono::seconds(-1)};
    CHECK(cookie.as_c().path == cookie.path.c_str() && cookie.as_c().domain == nullptr);
    CHECK(cookie.as_c().max_age == -1 && std::string_view(cookie.as_c().same_site) == "Lax");
    http::cookie_jar jar;
    http::client_options client = {.kept_time = std::chrono::seconds(2), .cookies = &jar};
    CHECK(client.as_c().kept_time == 2000000000 && client.as_c().cookies == jar.get());
    CHECK(client.as_c().proxy == nullptr);
    client.proxy = ""; /* none, where nullptr is the one of the environment */
    CHECK(client.as_c().proxy != nullptr && *client.as_c().proxy == '\0');
    http::limits limits = {.body = 7, .grace = std::chrono::milliseconds(1)};
    CHECK(limits.as_c().body == 7 && limits.as_c().grace == 1000000 && limits.as_c().head == 0);
    CHECK(http::proxy_options{}.as_c().forwarded == HAFT_HTTP_FORWARD_BOTH);
    CHECK(http::websocket_options{}.as_c().origins == nullptr);
}

int main() {
    /* Its functions under handlers of the test. */
    CHECK(haft::handle(greet).with([](current_user) { return std::string("test"); }) ==
          "Hello, test");

    test_options();
    test_leaving();
    test_proxy();
    test_metrics();
    test_stack_size(4 << 20);
    http::server server;
    std::string log;
    server.set_log([&](std::string_view line) { log.append(line) += '\n'; });
    add_routes(server);
    for (std::uint64_t seed = 1; seed <= 4; seed++) {
        log.clear();
        io::simulate({.seed = seed, .short_counts = seed % 2 == 0, .network = true},
                     [&] { talk(server, log); });
    }
    log.clear();
    io::run([&] { talk(server, log); });
}
