// SPDX-License-Identifier: MIT
// haft/io.hpp with the types and names of users: values that are odd to copy or to address,
// functions of the same names beside the user's own types, and objects that are assigned over.
#include <haft/io.hpp>

#include "../check_io.h"

#include <set>

namespace io = haft::io;
using namespace std::chrono_literals;

/* Templates that take anything, with the names of the library's, found for the types of this
   namespace. */
namespace app {
#define TAKES_ANYTHING(name)                                                                       \
    template <typename... Any>                                                                     \
    void name(Any &&...) = delete;
TAKES_ANYTHING(call)
TAKES_ANYTHING(run)
TAKES_ANYTHING(scope)
TAKES_ANYTHING(with_deadline)
TAKES_ANYTHING(shield)
TAKES_ANYTHING(select_until)
TAKES_ANYTHING(deadline_of)
TAKES_ANYTHING(move)
TAKES_ANYTHING(swap)

struct value {
    int number = 7;
};

struct clock {
    using duration = std::chrono::milliseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<clock>;
    static time_point now() { return time_point(5ms); }
};

static int sum_of_values() {
    static io::local<value> of_tasks;
    return io::run([] {
        int sum = io::async([] { return value{}; }).join().number;
        std::vector<std::function<value()>> calls(2, [] { return value{}; });
        sum += io::all(calls)[1].number + io::first(calls).second.number;
        sum += std::get<0>(io::all([] { return value{}; })).number;
        sum += std::get<0>(io::first([] { return value{}; })).number;
        sum += io::with_deadline(1h, [] { return value{}; }).number;
        sum += io::with_deadline(clock::now() + 1h, [] { return value{}; }).number;
        sum += io::shield([] { return value{}; }).number;
        sum += io::with_stop({}, [] { return value{}; }).number;
        sum += io::with_stop({}, [](io::scope_ref) { return value{}; }).number;
        sum += io::with_stop_token([](std::stop_token) { return value{}; }).number;
        sum += io::call_blocking([] { return value{}; }).number;
        sum += io::call_or_leave([] { return value{}; }).number;
        sum += of_tasks.with(value{}, [] { return *of_tasks; }).number;
        io::channel<value> values(1);
        values.send_until(clock::now() + 1h, value{});
        io::select_for(1h, io::on_receive(values, [&](auto got) { sum += got->number; }));
        return sum;
    });
}
} // namespace app

static void functions_of_the_same_name_beside_the_users_types_are_not_called() {
    CHECK_EQUAL(app::sum_of_values(), 15 * 7);
}

struct moved_only {
    moved_only() = default;
    moved_only(moved_only &&) = default;
    moved_only &operator=(moved_only &&) = default;
    int number;
};
struct never_assigned {
    never_assigned() = default;
    never_assigned(const never_assigned &) = default;
    never_assigned &operator=(const never_assigned &) = delete;
    int number;
};
struct not_addressed {
    int number;
    void operator&() const = delete;
};
struct explicitly_made {
    explicit explicitly_made() = default;
    int number;
};
struct constant {
    const std::string text = "constant";
};
struct alignas(256) aligned {
    int number;
};

template <typename T>
static int through_a_channel() {
    io::channel<T> channel(3);
    T value{};
    value.number = 1;
    channel.send(std::move(value));
    T another{};
    another.number = 2;
    CHECK(channel.try_send(another));
    T last{};
    last.number = 3;
    io::select(io::on_send(channel, std::move(last), [](bool sent) { CHECK(sent); }));
    std::optional<T> first = channel.receive();
    CHECK(reinterpret_cast<std::uintptr_t>(std::addressof(*first)) % alignof(T) == 0);
    int sum = first->number + channel.try_receive()->number;
    io::select(io::on_receive(channel, [&](std::optional<T> got) { sum += got->number; }));
    T closing{};
    closing.number = 4;
    channel.send(std::move(closing));
    channel.close();
    for (auto &&received : channel)
        sum += received.number;
    return sum;
}

static void a_channel_carries_bytes_that_cannot_be_copied_assigned_or_addressed() {
    io::run([] {
        CHECK_EQUAL(through_a_channel<moved_only>(), 10);
        CHECK_EQUAL(through_a_channel<never_assigned>(), 10);
        CHECK_EQUAL(through_a_channel<not_addressed>(), 10);
        CHECK_EQUAL(through_a_channel<explicitly_made>(), 10);
        CHECK_EQUAL(through_a_channel<aligned>(), 10);
    });
}

static void a_channel_is_a_range_of_what_cannot_be_assigned() {
    io::run([] {
        io::channel<constant> channel(1);
        channel.send(constant{});
        channel.close();
        int count = 0;
        for (constant received : channel)
            count += received.text == "constant";
        CHECK_EQUAL(count, 1);
    });
}

static void what_is_assigned_over_ends_at_once() {
    auto [first, other] = io::socket::pair();
    auto [second, another] = io::socket::pair();
    first = std::move(second);
    CHECK(!second && other.read_all().empty());
    another.write_all("it is the second");
    auto &same = first;
    first = std::move(same);
    io::lent bytes, more;
    CHECK(first.read(bytes) && bytes.text() == "it is the second");
    more = std::move(bytes);
    CHECK(bytes.empty() && more.text() == "it is the second");

    io::promise<int> broken, kept;
    auto never = broken.get_future(), future = kept.get_future();
    broken = std::move(kept);
    CHECK(never.wait_for(0s) == std::future_status::ready);
    broken.set_value(42);
    CHECK_EQUAL(future.get(), 42);
    int caught = 0;
    try {
        kept.get_future();
    } catch (const std::future_error &error) {
        caught += error.code() == std::future_errc::no_state;
    }
    CHECK_EQUAL(caught, 1);

    io::run([] {
        auto task = io::async([] { return 1; }), next = io::async([] { return 2; });
        task = std::move(next);
        CHECK(!next.joinable());
        CHECK_EQUAL(task.join(), 2);
    });
}

/* A value or a stream that two could take is refused when compiled. */
static_assert(!std::is_copy_constructible_v<io::future<int>>);
static_assert(!std::is_copy_constructible_v<io::task<int>>);
static_assert(!std::is_constructible_v<io::lines, io::descriptor>); /* it would be gone */
static_assert(std::is_constructible_v<io::lines, const io::socket &>);

static void a_connection_knows_both_ends() {
    io::run([] {
        io::listener listener("127.0.0.1", 0);
        auto client = io::socket::connect("127.0.0.1", listener.port());
        auto server = listener.accept();
        CHECK(server.peer() == client.own_address() && client.peer() == server.own_address());
        CHECK(client.peer() == listener.own_address());
        CHECK_EQUAL(client.peer().port(), listener.port());
        io::datagrams asked("127.0.0.1", 0), asking("127.0.0.1", 0);
        io::address from;
        std::byte room[4];
        asking.send(std::as_bytes(std::span("who")), asked.own_address());
        CHECK_EQUAL(asked.receive(room, &from), 4);
        CHECK(from == asking.own_address());
        CHECK(server.peer().host() == "127.0.0.1");
        std::set<io::address> known{server.peer(), client.peer(), client.own_address()};
        CHECK_EQUAL(known.size(), 2);
        bool refused = false;
        try {
            io::socket(dup(0)).peer();
        } catch (const std::system_error &error) {
            refused = error.code() == std::errc::not_a_socket;
        }
        CHECK(refused);
    });
}

static void options_become_those_of_c() {
    io::run_options run = {.stack_size = 65536, .watchdog = 3ms, .own_thread_locals = true};
    CHECK_EQUAL(run.as_c().threads, 1);
    CHECK_EQUAL(run.as_c().stack_size, 65536);
    CHECK_EQUAL(run.as_c().watchdog, 3000000);
    CHECK(run.as_c().own_thread_locals && !run.as_c().dense && run.as_c().backend == nullptr);
    CHECK_EQUAL(io::scope_options{}.as_c().deadline, HAFT_IO_FOREVER);
    io::scope_options long_ago = {.name = "a scope", .deadline = {}, .moves = true};
    CHECK_EQUAL(long_ago.as_c().deadline, 1); /* 0 would be none */
    CHECK(long_ago.as_c().name == long_ago.name && long_ago.as_c().moves);
    io::task_options task = {.name = "a task", .spread = true, .stack_size = 1};
    CHECK(task.as_c().spread && !task.as_c().moves && task.as_c().scope == nullptr);
    io::process_options process = {.folder = "/", .group = true};
    CHECK(process.as_c().folder == process.folder.c_str() && process.as_c().group);
    CHECK(io::process_options{}.as_c().folder == nullptr);
}

int main() {
    check_backend();
    RUN(options_become_those_of_c);
    RUN(functions_of_the_same_name_beside_the_users_types_are_not_called);
    RUN(a_channel_carries_bytes_that_cannot_be_copied_assigned_or_addressed);
    RUN(a_channel_is_a_range_of_what_cannot_be_assigned);
    RUN(what_is_assigned_over_ends_at_once);
    RUN(a_connection_knows_both_ends);
    return check_end();
}
