// SPDX-License-Identifier: MIT
/* Forms with files: `uploads FOLDER 8080` keeps what browsers send, each file under a number, and
   never under the name that the client gives it. Open http://localhost:8080/. */
#include <haft/http.hpp>

#include <cstdlib>
#include <fcntl.h>
#include <iostream>
#include <unistd.h>

namespace http = haft::http;
namespace io = haft::io;

static const char page[] = R"(<!doctype html><title>Uploads</title>
<form method=post enctype=multipart/form-data>
<input name=title> <input name=files type=file multiple> <button>Send</button></form>
)";

/* A file without a name gets one: it is there whole, or not at all. */
static void keep(const io::descriptor &file, const std::string &path) {
    std::string source = "/proc/self/fd/" + std::to_string(file.get());
    if (linkat(AT_FDCWD, source.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) != 0)
        throw std::system_error(errno, std::generic_category(), path);
}

int main(int count, char **arguments) try {
    if (count != 3)
        return std::cerr << "usage: uploads FOLDER PORT\n", 2;
    std::string folder = arguments[1];
    int last = 0;
    http::server server;
    server.get("/", [](http::request &) {
        return http::response{.body = page, .type = "text/html; charset=utf-8"};
    });
    server.post("/", [&](http::request &request) {
        std::string text;
        request.limit_body(100 << 20);
        http::multipart form(request);
        while (auto part = form.next())
            if (part->file_name) {
                std::string called(*part->file_name), path = folder + '/' + std::to_string(++last);
                io::descriptor file = form.store(folder);
                io::call_blocking([&] { keep(file, path); });
                text += called + " is " + path + '\n';
            } else {
                std::string name(part->name);
                text += name + ": " + std::string(form.text()) + '\n';
            }
        return http::response{.status = 201, .body = text};
    });
    return server.run({.port = std::uint16_t(std::atoi(arguments[2]))});
} catch (const std::exception &failure) {
    return std::cerr << failure.what() << '\n', 1;
}
