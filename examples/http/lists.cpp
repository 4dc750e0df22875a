// SPDX-License-Identifier: MIT
/* The service of docs/http.md's tutorial: each user has a list of things to do. `lists FILE 8080`,
   then curl -H 'X-User: Ada' -X PUT localhost:8080/todo/tea and curl -H 'X-User: Ada'
   localhost:8080/todo. `lists FILE 127.0.0.1:9090 8080` has pages for its operator at the former:
   curl 127.0.0.1:9090/debug/tasks */
#include <haft.hpp>
#include <haft/http.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <map>

namespace http = haft::http;
namespace io = haft::io;
using namespace std::chrono_literals;

/* The time since when something is on the list, in seconds since 1970 began. */
using list = std::map<std::string, std::int64_t>;
using lists = std::map<std::string, list>;

/* ---- What the service needs from around it ---- */

struct current_user : haft::effect<std::string> {};
struct now : haft::effect<std::int64_t> {};
struct draft : haft::effect<list *> {}; /* the user's list, in a transaction */
struct note : haft::effect<void> {
    std::string text;
};

/* ---- What it does ---- */

static void add(const std::string &what) {
    list &entries = *haft::perform<draft>();
    if (entries.size() == 100)
        throw http::error(409, "a hundred are enough");
    if (!entries.emplace(what, haft::perform<now>()).second)
        throw http::error(409, "it is on the list already");
    haft::perform<note>(haft::perform<current_user>() + " has added " + what);
}

static void remove(const std::string &what) {
    if (haft::perform<draft>()->erase(what) == 0)
        throw http::error(404, "there is no such thing to do");
}

static std::string show() {
    std::string text;
    for (const auto &[what, since] : *haft::perform<draft>())
        text += what + (haft::perform<now>() - since >= 3600 ? " (old)\n" : "\n");
    return text;
}

/* ---- Where the lists are between two runs ---- */

static lists read_lists(const char *path) {
    return io::call_blocking([path] {
        lists all;
        std::ifstream file(path);
        std::int64_t since = 0;
        for (std::string user, what; std::getline(file, user, '\t') && file >> since &&
                                     file.ignore() && std::getline(file, what);)
            all[user][what] = since;
        return all;
    });
}

/* All of it, or none: a new file takes the place of the one before. */
static void save_lists(const char *path, const lists &all) {
    io::call_blocking([path, all] {
        std::string beside = path + std::string(".new");
        std::ofstream file(beside);
        for (const auto &[user, entries] : all)
            for (const auto &[what, since] : entries)
                file << user << '\t' << since << ' ' << what << '\n';
        if (!file.flush() || std::rename(beside.c_str(), path) != 0)
            throw std::runtime_error("cannot save " + beside);
    });
}

/* ---- The server ---- */

static void add_routes(http::routes &todo, lists &all) {
    todo.put("/{what}", [](http::request &request) {
        add(request.path("what"));
        return http::response{.status = 201};
    });
    todo.del("/{what}", [](http::request &request) {
        remove(request.path("what"));
        return http::response{.status = 204};
    });
    todo.get("", [](http::request &) { return show(); });
    /* A transaction. */
    todo.use([&](http::request &request, const http::next &next) {
        list &kept = all[haft::perform<current_user>()], changed = kept;
        haft::handle(next).with([&](draft) { return &changed; });
        if (request.status() / 100 == 2)
            kept = std::move(changed);
    });
    todo.use([&](http::request &request, const http::next &next) {
        auto user = request.header("X-User");
        if (!user.has_value() || user->find_first_of("\t\n") != user->npos)
            throw http::error(401, "who are you?");
        haft::handle(next).with([&](current_user) { return std::string(*user); });
    });
    todo.handle([](now) { return std::int64_t(std::time(nullptr)); },
                [](note said) { std::clog << said.text << '\n'; });
}

int main(int count, char **arguments) try {
    if (count < 3 || count > 4)
        return std::cerr << "usage: lists FILE [PLACE OF THE OPERATOR'S PAGES] PORT\n", 2;
    const char *path = arguments[1];
    lists all;
    http::server server;
    http::route_group todo = server.group("/todo");
    add_routes(todo, all);
    server.on_error(http::problem);
    server.cors({.origins = {"https://lists.example"}, .methods = "GET, PUT, DELETE"});
    server.serve_readiness("/ready");
    server.serve_counters("/metrics");
    server.set_access_log(HAFT_HTTP_LOG_JSON);
    server.on_listening([&] { all = read_lists(path); });
    server.add_background("save", [&] {
        for (;;) {
            io::sleep_for(1s);
            save_lists(path, all);
        }
    });
    int code = server.run({.port = std::uint16_t(std::atoi(arguments[count - 1])),
                           .restart_signal = SIGUSR2,
                           .watchdog = 1s,
                           .notify = true,
                           .debug_listen = count == 4 ? arguments[2] : nullptr});
    io::run([&] { save_lists(path, all); });
    return code;
} catch (const std::exception &failure) {
    return std::cerr << failure.what() << '\n', 1;
}
