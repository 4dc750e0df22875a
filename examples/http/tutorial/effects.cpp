// SPDX-License-Identifier: MIT
/* The third and the fourth step of docs/http.md's tutorial: a list for each user. The service needs
   something from around it: effects, which a test handles, or middleware. */
#include <haft.hpp>
#include <haft/http.hpp>

#include <iostream>
#include <map>
#include <sstream>

namespace http = haft::http;
namespace io = haft::io;
using namespace std::chrono_literals;

using list = std::map<std::string, io::clock::time_point>;

struct current_user : haft::effect<std::string> {};
struct now : haft::effect<io::clock::time_point> {};
struct draft : haft::effect<list *> {}; /* the user's list, in a transaction */
struct note : haft::effect<void> {
    std::string text;
};
struct enabled : haft::effect<bool> {
    std::string_view feature;
};

static void add(const std::string &what) {
    list &entries = *haft::perform<draft>();
    entries.emplace(what, haft::perform<now>());
    if (entries.size() > 2 && haft::perform<enabled>("short lists"))
        throw http::error(409, "two are enough\n");
    haft::perform<note>(haft::perform<current_user>() + " has added " + what);
}

static std::string show() {
    std::string text;
    for (const auto &[what, since] : *haft::perform<draft>())
        text += what + (haft::perform<now>() - since >= 1h ? " (old)\n" : "\n");
    return text;
}

/* ---- Under handlers of a test ---- */

static void test_functions() {
    list entries;
    auto time = io::clock::time_point(0h);
    auto work = [&] {
        add("tea");
        time += 2h;
        add("wine");
        std::cout << show();
        try {
            add("beer");
        } catch (const http::error &refused) {
            std::cout << refused.status() << ": " << refused.what();
        }
    };
    haft::handle(work).with([](current_user) { return std::string("Eve"); },
                            [&](now) { return time; }, [&](draft) { return &entries; },
                            [](note said) { std::cout << said.text << '\n'; },
                            [](enabled) { return true; });
}

/* ---- Under middleware ---- */

static void add_routes(http::server &server, std::map<std::string, list> &lists,
                       std::ostream &log) {
    server.put("/todo/{what}", [](http::request &request) {
        add(request.path("what"));
        return http::response{.status = 201};
    });
    server.get("/todo", [](http::request &) { return show(); });
    server.use([&](http::request &request,
                   const http::next &next) { /* a transaction */
                                             list &kept = lists[haft::perform<current_user>()],
                                                  changed = kept;
                                             haft::handle(next).with(
                                                 [&](draft) { return &changed; });
                                             if (request.status() / 100 == 2)
                                                 kept = std::move(changed);
    });
    server.use([&](http::request &request, const http::next &next) {
        auto user = request.header("X-User");
        if (!user.has_value())
            throw http::error(401, "who are you?\n");
        haft::handle(next).with([&](current_user) { return std::string(*user); });
    });
    server.handle([](now) { return io::clock::now(); },
                  [&](note said) { log << said.text << '\n'; },
                  [](enabled asked) { return asked.feature == "short lists"; });
}

/* The client's side; a request that a fault has cut off is asked again. */
static std::string ask(http::client &client, const http::question &question) {
    for (;;)
        try {
            http::reply reply = client.ask(question);
            return std::to_string(reply.status()) + " " + std::string(reply.body());
        } catch (const std::system_error &) {
            io::sleep_for(1s);
        }
}

static io::listener listen() {
    for (;;)
        try {
            return io::listener("127.0.0.1", 0);
        } catch (const std::system_error &) {
        }
}

static void talk(http::server &server, std::chrono::hours wait, std::ostream &out) {
    io::spawn([&] { server.serve(listen()); });
    while (server.port() == 0)
        io::yield();
    std::string url = "http://localhost:" + std::to_string(server.port()) + "/todo";
    http::client client;
    http::fields ada = {{"X-User", "Ada"}}, bob = {{"X-User", "Bob"}};
    out << ask(client, {.url = url});
    for (const char *what : {"/tea", "/wine", "/beer"})
        out << ask(client, {.url = url + what, .method = "PUT", .headers = ada});
    io::sleep_for(wait);
    out << ask(client, {.url = url, .headers = ada});
    out << ask(client, {.url = url, .headers = bob}) << '\n';
    server.stop();
}

static std::string run_whole(std::uint64_t seed) {
    std::ostringstream out, log;
    std::map<std::string, list> lists;
    http::server server;
    add_routes(server, lists, log);
    if (seed == 0)
        io::run([&] { talk(server, 0h, out); });
    else
        io::simulate({.seed = seed, .short_counts = true, .network = true, .faults_one_in = 20},
                     [&] { talk(server, 1h, out); });
    return out.str();
}

int main() {
    test_functions();
    for (std::uint64_t seed = 1; seed <= 100; seed++)
        if (run_whole(seed) !=
            "401 who are you?\n201 201 409 two are enough\n200 tea (old)\nwine (old)\n200 \n")
            return 1;
    std::cout << "a hundred simulated hours\n" << run_whole(0);
}
