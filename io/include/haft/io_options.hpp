// SPDX-License-Identifier: MIT
/*
 * Haft I/O for C++20: how a header declares an option struct and turns it into C's, both from one
 * list of its fields. Part of haft/io.hpp, for it and for the headers of libraries on it; not for
 * programs.
 *
 *     #define HAFTI_IO_FIELDS(FIELD, OWN)                                  \
 *         FIELD(int, threads, 1)                                           \
 *         FIELD(std::chrono::nanoseconds, watchdog, {})                    \
 *         OWN(std::vector<std::exception_ptr> *, failures, nullptr)
 *     struct run_options {
 *         HAFT_IO_OPTIONS(haft_io_run_options_t, HAFTI_IO_FIELDS)
 *     };
 *     #undef HAFTI_IO_FIELDS
 *
 * FIELD(type, name, default) is a field of both structs, under one name; OWN is one of C++ alone.
 * The order of the list is the order in which programs write designators. Each field has a default,
 * so that a program names only those which it sets, without a warning of gcc's -Wextra: this is why
 * C's own structs do not serve as they are.
 *
 * as_c() returns C's struct, in which fields that the list does not have are 0. It refers to the
 * texts of the C++ struct, which must live as long. A value whose conversion would lose something
 * does not compile.
 */
#ifndef HAFT_IO_OPTIONS_HPP
#define HAFT_IO_OPTIONS_HPP

#include <chrono>
#include <optional>
#include <string>

namespace haft::io::detail {

/* A value as C has it: a duration as its number, an empty text as NULL. */
template <typename T>
constexpr T in_c(T value) {
    return value;
}
template <typename Rep, typename Period>
constexpr Rep in_c(std::chrono::duration<Rep, Period> time) {
    return time.count();
}
inline const char *in_c(const std::string &text) {
    return text.empty() ? nullptr : text.c_str();
}
/* An empty text stays one here: it differs from none. */
inline const char *in_c(const std::optional<std::string> &text) {
    return text.has_value() ? text->c_str() : nullptr;
}

} // namespace haft::io::detail

#define HAFTI_IO_DECLARED_FIELD(type, name, standard) type name = standard;
#define HAFTI_IO_COPIED_FIELD(type, name, standard) given.name = decltype(given.name){in_c(name)};
#define HAFTI_IO_LEFT_OUT_FIELD(type, name, standard)

#define HAFT_IO_OPTIONS(c_struct, fields)                                                          \
    fields(HAFTI_IO_DECLARED_FIELD, HAFTI_IO_DECLARED_FIELD) c_struct as_c() const {               \
        using haft::io::detail::in_c;                                                              \
        c_struct given = {};                                                                       \
        fields(HAFTI_IO_COPIED_FIELD, HAFTI_IO_LEFT_OUT_FIELD) return given;                       \
    }

#endif
