// SPDX-License-Identifier: MIT
// haft/io.hpp: descriptors, sockets, lines, files, processes, signals; nothing stays open.
#include <haft/io.hpp>

#include <poll.h>

#include "../check_io.h"

#include <algorithm>
#include <sys/wait.h>
#include <unistd.h>

namespace io = haft::io;
static_assert(std::ranges::input_range<io::listener> && std::ranges::input_range<io::lines>);
using namespace std::chrono_literals;

static std::span<const std::byte> bytes(std::string_view text) {
    return std::as_bytes(std::span(text));
}

static void lines_come_one_by_one() {
    std::vector<std::string> got;
    io::run([&] {
        auto [reader, writer] = io::pipe();
        io::spawn([writer = std::move(writer)] {
            writer.write_all("one\ntw");
            io::yield();
            writer.write_all("o\n\n" + std::string(10000, 'x'));
        });
        io::lines lines(reader);
        for (std::string_view line : lines) {
            got.emplace_back(line);
            break;
        }
        CHECK_EQUAL(got.size(), 1);
        for (std::string_view line : lines) // goes on, after the same line
            if (line != got[0])
                got.emplace_back(line);
    });
    CHECK_EQUAL(got.size(), 4);
    CHECK(got[0] == "one\n" && got[1] == "two\n" && got[2] == "\n" && got[3].size() == 10000);
}

static void a_body_comes_after_its_line() {
    std::vector<std::string> got;
    io::run([&] {
        auto [reader, writer] = io::pipe();
        writer.write_all("5\nfirst7\nsecond\n0\nlast");
        writer.close();
        io::lines lines(reader);
        for (std::string_view line : lines) {
            std::string body(static_cast<std::size_t>(std::atoi(line.data())), ' ');
            got.emplace_back(line);
            for (std::size_t size = 0; size < body.size();)
                size += lines.read(std::as_writable_bytes(std::span(body)).subspan(size));
            got.push_back(body);
        }
    });
    CHECK(got ==
          (std::vector<std::string>{"5\n", "first", "7\n", "second\n", "0\n", "", "last", ""}));
}
static void an_iterator_begins_at_the_line_after_what_was_read() {
    io::run([] {
        auto [reader, writer] = io::pipe();
        writer.write_all("head\n???one\ntwo\n");
        writer.close();
        io::lines lines(reader);
        CHECK(*lines.begin() == "head\n");
        std::byte three[3];
        CHECK_EQUAL(lines.read(three), 3u);
        auto line = lines.begin();
        CHECK(*++line == "two\n");
    });
}
static void after_a_line_that_is_too_long_its_bytes_are_read() {
    io::run([] {
        auto [reader, writer] = io::pipe();
        writer.write_all("abcdefg\nxyz\n");
        writer.close();
        io::lines lines(reader, 4);
        bool caught = false;
        try {
            *lines.begin();
        } catch (const std::length_error &) {
            caught = true;
        }
        CHECK(caught);
        std::byte bytes[5];
        CHECK_EQUAL(lines.read(bytes), 5u);
        auto line = lines.begin();
        CHECK(*line == "fg\n");
        CHECK(*++line == "xyz\n");
    });
}

static void a_line_that_is_too_long_is_an_error() {
    bool caught = false;
    io::run([&] {
        auto [reader, writer] = io::pipe();
        writer.write_all(std::string(9000, 'x'));
        try {
            for (std::string_view line : io::lines(reader, 4096))
                CHECK(line.empty());
        } catch (const std::length_error &) {
            caught = true;
        }
    });
    CHECK(caught);
}

static void a_short_line_that_is_too_long_for_its_limit_is_an_error() {
    auto read_with = [](std::size_t most, std::string_view text) {
        auto [reader, writer] = io::pipe();
        writer.write_all(text);
        writer.close();
        std::string got;
        try {
            for (std::string_view line : io::lines(reader, most))
                got += std::to_string(line.size()) + " ";
        } catch (const std::length_error &) {
            got += "too long";
        }
        return got;
    };
    CHECK(read_with(10, "aaa\naaaaaaaaaa\n") == "4 too long");
    CHECK(read_with(11, "aaa\naaaaaaaaaa\n") == "4 11 ");
    CHECK(read_with(10, "aaa\naaaaaaaaaa") == "4 10 ");
    CHECK(read_with(9, "aaa\naaaaaaaaaa") == "4 too long");
    CHECK(read_with(0, "") == "");
    CHECK(read_with(0, "\n") == "too long");
    CHECK(read_with(std::string::npos, "aaa\naaaaaaaaaa") == "4 10 ");
}

static void a_listener_is_a_range_of_connections() {
    io::run([] {
        io::listener listener("127.0.0.1", 0);
        io::spawn([port = listener.port()] {
            for (int i = 0; i < 3; i++) {
                auto connection = io::socket::connect("127.0.0.1", port);
                connection.write_all("hello");
                connection.shutdown();
                CHECK(connection.read_all() == "hello back");
            }
        });
        int count = 0;
        for (io::socket connection : listener) {
            std::string text = connection.read_all();
            connection.write_all(text + " back");
            if (++count == 3)
                break;
        }
    });
}

static void errors_compare_with_errc() {
    io::run([] {
        int caught = 0;
        try {
            io::file("/nowhere/at/all");
        } catch (const std::system_error &error) {
            caught += error.code() == std::errc::no_such_file_or_directory;
        }
        try {
            io::resolve("127.0.0.1", "no such service");
        } catch (const std::system_error &error) {
            caught += error.code().category().name() == std::string("resolve");
        }
        try {
            io::listener("no address", 0);
        } catch (const std::system_error &error) {
            caught += error.code().category().name() == std::string("resolve") &&
                      std::string(error.what()).find("listen at no address, port 0: ") == 0;
        }
        io::pipe_ends pipe = io::pipe();
        io::spawn([&] { pipe.read.close(); });
        try {
            char letter[1];
            pipe.read.read(letter);
        } catch (const std::system_error &error) {
            caught += error.code() == std::errc::bad_file_descriptor;
        }
        CHECK_EQUAL(caught, 4);
    });
}

static void datagrams_know_where_they_come_from() {
    auto body = [] {
        io::datagrams one("127.0.0.1", 0), other("127.0.0.1", 0);
        io::address to = io::resolve("127.0.0.1", std::to_string(other.port()), SOCK_DGRAM).at(0);
        one.send(bytes("a datagram"), to);
        std::array<std::byte, 64> room;
        io::address from;
        CHECK_EQUAL(other.receive(room, &from), 10);
        CHECK(from.port() == one.port() && from.host() == "127.0.0.1");
    };
    io::run(body);
    io::simulate({.seed = 1, .network = true}, body);
}

static void a_unix_socket_passes_descriptors() {
    auto body = [] {
        std::string path = "/tmp/haft-io-cpp." + std::to_string(getpid());
        auto listener = io::listener::unix_path(path);
        io::spawn([&] {
            auto sender = io::socket::connect_unix(path);
            auto [reader, writer] = io::pipe();
            writer.write_all("through a passed pipe");
            sender.send_descriptor(reader);
        });
        io::socket receiver = listener.accept();
        io::descriptor passed = receiver.receive_descriptor().value();
        CHECK(passed.read_all() == "through a passed pipe");
        CHECK(!receiver.receive_descriptor());
        unlink(path.c_str());
        auto [left, right] = io::socket::pair();
        left.send(bytes("x"));
        std::array<std::byte, 4> room;
        CHECK_EQUAL(right.receive(room), 1);
    };
    io::run(body);
    io::simulate({.seed = 1, .network = true}, body);
}

static void files_are_read_and_written_at_offsets() {
    std::string path = "/tmp/haft-io-cpp-file." + std::to_string(getpid());
    io::run([&] {
        io::file file(path, O_RDWR | O_CREAT | O_TRUNC);
        CHECK_EQUAL(file.pwrite(2, bytes("cd")), 2);
        CHECK_EQUAL(file.pwrite(0, bytes("ab")), 2);
        file.fsync();
        std::array<std::byte, 8> room;
        CHECK_EQUAL(file.pread(1, room), 3);
        CHECK(room[0] == std::byte('b'));
        auto [left, right] = io::socket::pair();
        std::int64_t offset = 1;
        CHECK_EQUAL(file.send_to(left, offset, 100), 3);
        CHECK_EQUAL(offset, 4);
        left.close();
        CHECK(right.read_all() == "bcd");
    });
    unlink(path.c_str());
}

static void names_are_made_listed_moved_and_removed() {
    io::simulate({.seed = 1, .files = true}, [] {
        io::mkdir("kept");
        for (auto name : {"kept/one", "kept/another"})
            io::file(name, O_WRONLY | O_CREAT).write_all("text");
        CHECK(io::list_directory("kept") == std::vector<std::string>({"another", "one"}));
        io::rename("kept/one", "kept/two");
        CHECK_EQUAL(io::stat("kept/two").st_size, 4);
        io::remove("kept/two");
        int missing = 0;
        for (void (*use)() :
             {+[] { io::stat("kept/two"); }, +[] { io::remove("kept/two"); },
              +[] { io::rename("kept/two", "three"); }, +[] { io::list_directory("never"); }})
            try {
                use();
            } catch (const std::system_error &error) {
                missing += error.code() == std::errc::no_such_file_or_directory;
            }
        CHECK_EQUAL(missing, 4);
    });
}

static void a_wait_for_readiness_ends_at_its_time() {
    auto waits = [] {
        auto [left, right] = io::socket::pair();
        CHECK_EQUAL(left.wait_ready_until(POLLIN, io::from_now(1ms)), 0);
        right.write_all("x");
        CHECK_EQUAL(left.wait_ready_until(POLLIN, io::from_now(1h)), POLLIN);
        CHECK_EQUAL(left.wait_ready_until(POLLIN, std::chrono::system_clock::now() + 1h), POLLIN);
    };
    io::run(waits);
    io::simulate({.seed = 1, .network = true}, waits);
}

static void blocking_work_returns_and_throws() {
    io::run([] {
        CHECK_EQUAL(*io::call_blocking([] { return std::make_unique<int>(4); }), 4);
        bool caught = false;
        try {
            io::call_blocking([] { throw std::out_of_range("in the pool"); });
        } catch (const std::out_of_range &) {
            caught = true;
        }
        CHECK(caught);
    });
}

static void processes_run_and_signals_are_waited_for() {
    io::signals signals{SIGUSR1};
    io::run([&] {
        auto [reader, writer] = io::pipe();
        io::process child({"sh", "-c", "echo from a child; exit 3"}, {.out = &writer});
        writer.close();
        CHECK(reader.read_all() == "from a child\n");
        CHECK_EQUAL(WEXITSTATUS(child.wait()), 3);
        auto [output, input] = io::pipe();
        io::process with_options({"sh", "-c", "echo $ANIMAL; pwd; sleep 1000 & wait"},
                                 {.out = &input},
                                 {.environment = {{"ANIMAL=cat"}}, .folder = "/", .group = true});
        input.close();
        auto lines = io::lines(output);
        auto line = lines.begin();
        CHECK(*line == "cat\n" && *++line == "/\n");
        with_options.kill_group(SIGTERM);
        CHECK_EQUAL(WTERMSIG(with_options.wait()), SIGTERM);
        CHECK(++line == lines.end());
        io::process sleeper({"sleep", "1000"});
        sleeper.kill(SIGTERM);
        CHECK_EQUAL(WTERMSIG(sleeper.wait()), SIGTERM);
        kill(getpid(), SIGUSR1);
        CHECK_EQUAL(signals.wait(), SIGUSR1);
    });
}

template <typename F>
static bool fails_at(std::string_view what, F call) {
    try {
        call();
        return false;
    } catch (const std::system_error &error) {
        return std::string_view(error.what()).starts_with(what);
    }
}
static void an_error_says_where() {
    io::run([] {
        std::uint16_t port = io::listener("127.0.0.1", 0).port();
        CHECK(fails_at("connect to 127.0.0.1, port " + std::to_string(port) + ":",
                       [&] { io::socket::connect("127.0.0.1", port); }));
        CHECK(fails_at("connect to /nowhere:", [] { io::socket::connect_unix("/nowhere"); }));
        CHECK(fails_at("listen at here, port 7:", [] { io::listener("here", 7); }));
        io::listener one("127.0.0.1", 0, {.reuse_port = true});
        io::listener other("127.0.0.1", one.port(), {.backlog = 7, .reuse_port = true});
        CHECK(other.port() == one.port());
        CHECK(fails_at("listen at 127.0.0.1, port ",
                       [&] { io::listener("127.0.0.1", one.port(), io::listen_options{}); }));
        CHECK(fails_at("listen at /no/where:", [] { io::listener::unix_path("/no/where"); }));
        CHECK(fails_at("/nowhere:", [] { io::file("/nowhere"); }));
        CHECK(fails_at("haft_io_process_start: there are no arguments: ", [] { io::process({}); }));
    });
}

static void bytes_are_read_into_memory_that_is_lent() {
    io::run([] {
        io::listener listener("127.0.0.1", 0);
        io::spawn([port = listener.port()] {
            auto connection = io::socket::connect("127.0.0.1", port);
            for (std::string_view text : {"one", "two"}) {
                connection.write_all(text);
                char back[3];
                CHECK_EQUAL(connection.read(back), 3u);
                CHECK(std::string_view(back, 3) == text);
            }
        });
        io::socket connection = listener.accept();
        io::lent bytes, first;
        while (connection.read(bytes)) {
            CHECK(!bytes.empty() && bytes.end() - bytes.begin() == 3);
            connection.write_all(bytes);
            if (first.empty())
                first = std::move(bytes);
        }
        CHECK(bytes.empty() && bytes.data() == nullptr);
        CHECK(first.text() == "one");
        bytes = std::move(first);
        CHECK(bytes.text() == "one" && first.empty());
        connection.close();
        try {
            connection.read(bytes);
            CHECK(false);
        } catch (const std::system_error &error) {
            CHECK(error.code() == std::errc::bad_file_descriptor && bytes.empty());
        }
    });
}

static void an_answer_is_written_and_the_next_is_read() {
    io::run([] {
        io::listener listener("127.0.0.1", 0);
        io::spawn([port = listener.port()] {
            auto connection = io::socket::connect("127.0.0.1", port);
            for (std::string_view text : {"one", "two"}) {
                char back[3];
                connection.write_all(text);
                CHECK_EQUAL(connection.read(back), 3u);
                CHECK(std::string_view(back, 3) == text);
            }
        });
        io::socket connection = listener.accept();
        io::lent bytes;
        CHECK(connection.read(bytes) && bytes.text() == "one");
        connection.write_all(bytes);
        CHECK(connection.read(bytes) && bytes.text() == "two");
        connection.write_all(bytes);
        CHECK(!connection.read(bytes) && bytes.data() == nullptr);
        connection.close();
        try {
            connection.read(bytes);
            CHECK(false);
        } catch (const std::system_error &error) {
            CHECK(error.code() == std::errc::bad_file_descriptor && bytes.empty());
        }
    });
}

static void descriptors_work_without_a_scheduler() {
    auto [reader, writer] = io::pipe();
    writer.write_all("plain");
    writer.close();
    CHECK(reader.read_all() == "plain");
}

static void a_writer_gathers_and_parts_are_read_whole() {
    io::run([] {
        io::pipe_ends pipe = io::pipe();
        io::writer out(pipe.write, 8);
        for (int i = 0; i < 10; i++)
            out.write(std::to_string(i) + ",");
        out.write("\nand a line that is longer than the memory\n");
        out.flush();
        CHECK_EQUAL(out.gathered(), 0u);
        pipe.write.close();
        std::byte first[20], rest[100];
        CHECK_EQUAL(pipe.read.read_all(std::span(first)), 20u);
        io::lines lines(pipe.read);
        std::string_view line = *lines.begin();
        CHECK(line == "\n");
        CHECK_EQUAL(lines.read_all(std::span(rest)), 42u);
    });
}

static void one_wait_is_for_channels_events_descriptors_and_signals() {
    io::signals signals({SIGUSR2});
    io::run([&] {
        io::channel<int> numbers(1);
        io::event event;
        io::pipe_ends pipe = io::pipe();
        std::string came;
        auto once = [&] {
            return io::select_for(
                1ms,
                io::on_receive(numbers,
                               [&](std::optional<int> n) { came += n ? "number " : "end "; }),
                io::on_event(event, [&] { came += "event "; }),
                io::on_ready(pipe.read, POLLIN,
                             [&](short events) { came += events == POLLIN ? "byte " : "? "; }),
                io::on_signal(signals, [&](int n) { came += n == SIGUSR2 ? "signal " : "? "; }));
        };
        CHECK(!once());
        numbers.send(1);
        CHECK(once() == 0u);
        event.set();
        CHECK(once() == 1u);
        event.clear();
        pipe.write.write_all("x");
        CHECK(once() == 2u);
        char byte[1];
        pipe.read.read(std::span(byte));
        kill(getpid(), SIGUSR2);
        CHECK(once() == 3u);
        CHECK(came == "number event byte signal ");
        io::deadline limit(1ms);
        bool late = false;
        try {
            io::select(io::on_event(event, [] {}));
        } catch (const std::system_error &error) {
            late = error.code() == std::errc::timed_out;
        }
        CHECK(late);
    });
}

int main() {
    check_backend();
    RUN(one_wait_is_for_channels_events_descriptors_and_signals);
    RUN(a_writer_gathers_and_parts_are_read_whole);
    int before = check_descriptors();
    RUN(lines_come_one_by_one);
    RUN(a_body_comes_after_its_line);
    RUN(an_iterator_begins_at_the_line_after_what_was_read);
    RUN(after_a_line_that_is_too_long_its_bytes_are_read);
    RUN(a_line_that_is_too_long_is_an_error);
    RUN(a_short_line_that_is_too_long_for_its_limit_is_an_error);
    RUN(a_listener_is_a_range_of_connections);
    RUN(errors_compare_with_errc);
    RUN(datagrams_know_where_they_come_from);
    RUN(a_unix_socket_passes_descriptors);
    RUN(files_are_read_and_written_at_offsets);
    RUN(names_are_made_listed_moved_and_removed);
    RUN(a_wait_for_readiness_ends_at_its_time);
    RUN(blocking_work_returns_and_throws);
    RUN(an_error_says_where);
    RUN(bytes_are_read_into_memory_that_is_lent);
    RUN(an_answer_is_written_and_the_next_is_read);
    RUN(descriptors_work_without_a_scheduler);
    CHECK_EQUAL(check_descriptors(), before);
    RUN(processes_run_and_signals_are_waited_for); // whose descriptor for signals stays
    return check_end();
}
