// SPDX-License-Identifier: MIT
/* A to-do list: JSON by nlohmann's library, kept by SQLite. `todo_cpp FILE PORT`, then
   curl localhost:8080/todo --json '{"what": "tea"}' and curl localhost:8080/todo and
   curl localhost:8080/todo/1 --json '{"done": true}' -X PATCH */
#include <haft/http.hpp>

#include <nlohmann/json.hpp>
#include <sqlite3.h>

#include <cstdlib>
#include <iostream>

namespace http = haft::http;
namespace io = haft::io;
using nlohmann::json;

class database {
  public:
    explicit database(const char *path) {
        check(sqlite3_open(path, &connection));
        query("create table if not exists todo (id integer primary key, what text, done boolean)");
    }
    ~database() { sqlite3_close(connection); }

    /* Returns the rows. SQLite waits for the disk, so a thread of the pool runs it. */
    json query(const char *text, const std::vector<std::string> &values = {}) {
        return io::call_blocking([&] { return run(text, values); });
    }

  private:
    json run(const char *text, const std::vector<std::string> &values) {
        sqlite3_stmt *made = nullptr;
        check(sqlite3_prepare_v2(connection, text, -1, &made, nullptr));
        std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> owned(made, &sqlite3_finalize);
        for (int number = 0; const std::string &value : values)
            sqlite3_bind_text(made, ++number, value.data(), int(value.size()), SQLITE_STATIC);
        json rows = json::array();
        int code;
        while ((code = sqlite3_step(made)) == SQLITE_ROW)
            rows.push_back({{"id", sqlite3_column_int64(made, 0)},
                            {"what", text_of(made, 1)},
                            {"done", sqlite3_column_int(made, 2) != 0}});
        check(code == SQLITE_DONE ? SQLITE_OK : code);
        return rows;
    }
    static std::string text_of(sqlite3_stmt *row, int column) {
        const void *bytes = sqlite3_column_blob(row, column);
        return {static_cast<const char *>(bytes), std::size_t(sqlite3_column_bytes(row, column))};
    }
    void check(int code) const {
        if (code != SQLITE_OK)
            throw std::runtime_error(sqlite3_errmsg(connection));
    }

    sqlite3 *connection = nullptr;
};

/* A member of the body, which is an object; the client's mistakes get 400. */
template <typename T>
static T read(http::request &request, const char *name) try {
    return json::parse(request.body()).at(name).get<T>();
} catch (const json::exception &mistake) {
    throw http::error(400, mistake.what());
}

static http::response answer(int status, const json &value) {
    return {.status = status, .body = value.dump() + '\n', .type = "application/json"};
}

/* The row, or 404 if the query has found none. */
static http::response answer_one(int status, const json &rows) {
    return rows.empty() ? throw http::error(404, "no such entry\n") : answer(status, rows[0]);
}

int main(int count, char **arguments) try {
    database todo(count > 1 ? arguments[1] : "todo.db");
    http::server server;
    server.get("/todo", [&](http::request &) {
        return answer(200, todo.query("select id, what, done from todo"));
    });
    server.post("/todo", [&](http::request &request) {
        return answer_one(201, todo.query("insert into todo (what, done) values (?, 0) returning *",
                                          {read<std::string>(request, "what")}));
    });
    server.patch("/todo/{id}", [&](http::request &request) {
        return answer_one(
            200, todo.query("update todo set done = ? where id = ? returning *",
                            {read<bool>(request, "done") ? "1" : "0", request.path("id")}));
    });
    server.del("/todo/{id}", [&](http::request &request) {
        return answer_one(
            200, todo.query("delete from todo where id = ? returning *", {request.path("id")}));
    });
    return server.run({.port = std::uint16_t(count > 2 ? std::atoi(arguments[2]) : 8080)});
} catch (const std::exception &failure) {
    return std::cerr << failure.what() << '\n', 1;
}
