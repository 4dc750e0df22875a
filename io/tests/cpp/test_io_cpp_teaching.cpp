// SPDX-License-Identifier: MIT
// The exception of a call that is a mistake of the program has the words of the refusal, and one of
// the system's errors has none of an earlier refusal.
#include <haft/io.hpp>

#include "../check_io.h"

#include <string>

namespace io = haft::io;

namespace {

std::string told;

void note(const haft_error_t *error) {
    if (error->code == HAFT_ERROR_REFUSED)
        told = error->message;
}

/* Returns the text of the exception, and its number in `number`. */
template <typename F>
std::string what_of(F mistake, int &number) {
    try {
        mistake();
    } catch (const std::system_error &error) {
        number = error.code().value();
        return error.what();
    }
    return "no exception";
}

void an_exception_has_the_words() {
    int number = 0;
    std::string what = what_of([] { io::listener::unix_path(""); }, number);
    CHECK_EQUAL(number, EINVAL);
    CHECK_SAME_TEXT(what.c_str(), "haft_io_listen_unix: '' is no path of a local socket: write one "
                                  "of 1 to 107 bytes: Invalid argument");
    what = what_of([] { io::run([] { io::run([] {}); }); }, number);
    CHECK_EQUAL(number, EBUSY);
    CHECK_SAME_TEXT(what.c_str(),
                    "haft_io_run: the caller is in a run already: spawn a task there "
                    "(haft_io_spawn), or begin the run on another thread: Device or resource busy");
}

void an_error_of_the_system_has_its_own() {
    int number = 0;
    CHECK_EQUAL(haft_io_connect_unix(""), -EINVAL); /* by code in C, which asks for no words */
    std::string what = what_of([] { io::file("/no/such/file", O_RDONLY); }, number);
    CHECK_EQUAL(number, ENOENT);
    CHECK(what.find("haft_io_connect_unix") == std::string::npos);
    CHECK_CONTAINS(told.c_str(), "haft_io_connect_unix: '' is no path");
}

struct left {};
void leave(const haft_error_t *) {
    throw left();
}

void an_error_handler_may_leave_a_refused_call() {
    haft_set_error_handler(leave);
    for (int i = 0; i < 3; i++) {
        bool has_left = false;
        try {
            io::run([&] {
                try {
                    haft_io_process_wait(0, nullptr);
                } catch (const left &) {
                    has_left = true;
                }
            });
        } catch (const left &) {
        }
        CHECK(has_left);
    }
    haft_set_error_handler(note);
}

} // namespace

int main() {
    haft_set_error_handler(note);
    RUN(an_exception_has_the_words);
    RUN(an_error_of_the_system_has_its_own);
    RUN(an_error_handler_may_leave_a_refused_call);
    return check_end();
}
