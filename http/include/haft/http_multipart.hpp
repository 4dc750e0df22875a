// SPDX-License-Identifier: MIT
/*
 * Forms with files for C++20: haft/http_multipart.h with values and exceptions. Part of
 * haft/http.hpp, which includes it.
 *
 *     server.post("/upload", [](haft::http::request &request) {
 *         request.limit_body(100 << 20);
 *         haft::http::multipart form(request);
 *         while (auto part = form.next())
 *             if (part->file_name)
 *                 keep(form.store("/srv/uploads"), part->name);
 *         return "thanks\n";
 *     });
 */
#ifndef HAFT_HTTP_MULTIPART_HPP
#define HAFT_HTTP_MULTIPART_HPP

#include <haft/http.hpp>

namespace haft::http {

/* 0 means the default: see haft_http_multipart_limits_t. */
#define HAFTI_HTTP_FIELDS(FIELD, OWN)                                                              \
    FIELD(std::size_t, parts, 0)                                                                   \
    FIELD(std::size_t, head, 0)                                                                    \
    FIELD(std::uint64_t, part, 0)
struct multipart_limits {
    HAFT_IO_OPTIONS(haft_http_multipart_limits_t, HAFTI_HTTP_FIELDS)
};
#undef HAFTI_HTTP_FIELDS

/* The headers of a part, valid until the next one. The file's name is the client's: never use it as
   a path. */
struct part {
    std::string_view name;
    std::optional<std::string_view> file_name = {}, type = {};
};

/* The parts of a body. A body of another type throws http::error with status 415; one that is
   malformed, or exceeds a limit, throws, and the client gets 400 or 413. */
class multipart {
  public:
    explicit multipart(request &from, const multipart_limits &limits = {}) : of(from) {
        haft_http_multipart_limits_t given = limits.as_c();
        int code = haft_http_multipart_begin_with(&given, of.get(), &state);
        if (code == -ENOTSUP)
            throw error(415, "multipart/form-data, please\n");
        of.got(code);
    }
    /* The next part; nothing: there are no more. */
    std::optional<part> next() {
        haft_http_part_t found = {};
        if (of.got(haft_http_multipart_next(state, &found)) == 0)
            return std::nullopt;
        return part{found.name, request::maybe(found.file_name), request::maybe(found.type)};
    }
    std::optional<std::string_view> header(const char *name) {
        return request::maybe(haft_http_multipart_header(state, name));
    }
    /* How many bytes of the part were read; 0 at its end. */
    std::size_t read(std::span<std::byte> into) {
        return of.got(haft_http_multipart_read(state, into.data(), into.size()));
    }
    /* The rest of the part, as long as the request lives. */
    std::string_view text() {
        char *bytes = nullptr;
        std::size_t size = of.got(haft_http_multipart_text(state, &bytes));
        return {bytes, size};
    }
    /* The rest of the part, in a file that has no name: see haft_http_multipart_store. */
    io::file store(const std::string &folder) {
        return io::file(static_cast<int>(of.got(haft_http_multipart_store(state, folder.c_str()))));
    }

  private:
    request &of;
    haft_http_multipart_t *state = nullptr;
};

} // namespace haft::http

#endif
