// SPDX-License-Identifier: MIT
// A seed repeats: a program of C and C++ that knows nothing of simulations sees the same for the
// same seed, in the same process and in another, and something else for another seed.
#include "../../tests/check_io.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <chrono>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

/* ---- What a program sees ---- */

struct trace_t {
    std::uint64_t sum = 0xcbf29ce484222325;
    void add(const void *bytes, std::size_t size) {
        for (std::size_t i = 0; i < size; i++)
            sum = (sum ^ static_cast<const unsigned char *>(bytes)[i]) * 0x100000001b3;
    }
    template <typename T>
    void add(T value) {
        add(&value, sizeof value);
    }
};

static void see_chance(trace_t &trace) {
    unsigned char bytes[16];
    CHECK_EQUAL(getrandom(bytes, sizeof bytes, 0), sizeof bytes);
    trace.add(bytes, sizeof bytes);
    CHECK_EQUAL(getentropy(bytes, sizeof bytes), 0);
    trace.add(bytes, sizeof bytes);
    CHECK_EQUAL(syscall(SYS_getrandom, bytes, sizeof bytes, 0), sizeof bytes);
    trace.add(bytes, sizeof bytes);
    CHECK_EQUAL(haft_io_random(bytes, sizeof bytes), 0);
    trace.add(bytes, sizeof bytes);
#if __GLIBC_PREREQ(2, 36)
    trace.add(arc4random());
    arc4random_buf(bytes, sizeof bytes);
    trace.add(bytes, sizeof bytes);
    for (uint32_t bound : {0U, 1U, 7U, 0x80000001U}) {
        uint32_t drawn = arc4random_uniform(bound);
        CHECK(bound < 2 ? drawn == 0 : drawn < bound);
        trace.add(drawn);
    }
#endif
    std::random_device device;
    trace.add(device());
    trace.add(std::uniform_int_distribution<int>(0, 1000)(device));
    std::mt19937 generator(std::random_device{}());
    trace.add(generator());
}

static void see_devices(trace_t &trace) {
    for (const char *path : {"/dev/urandom", "/dev/random"}) {
        unsigned char bytes[100];
        struct stat status;
        int device = open(path, O_RDONLY | O_CLOEXEC);
        CHECK_EQUAL(read(device, bytes, sizeof bytes), sizeof bytes);
        CHECK(fstat(device, &status) == 0 && S_ISCHR(status.st_mode));
        CHECK_EQUAL(lseek(device, 5, SEEK_SET), 0);
        CHECK(fsync(device) == -1 && errno == EINVAL);
        CHECK_EQUAL(close(device), 0);
        trace.add(bytes, sizeof bytes);
        FILE *file = fopen(path, "r");
        CHECK_EQUAL(fread(bytes, 1, sizeof bytes, file), sizeof bytes);
        CHECK_EQUAL(fclose(file), 0);
        trace.add(bytes, sizeof bytes);
    }
}

static void see_clocks(trace_t &trace) {
    timespec time;
    trace.add(std::chrono::system_clock::now().time_since_epoch().count());
    trace.add(std::chrono::steady_clock::now().time_since_epoch().count());
    CHECK_EQUAL(syscall(SYS_clock_gettime, CLOCK_REALTIME, &time), 0);
    trace.add(time);
    CHECK_EQUAL(clock_gettime(CLOCK_MONOTONIC_RAW, &time), 0);
    trace.add(time);
    trace.add(haft_io_date());
}

/* (With .files.) */
static void see_files(trace_t &trace) {
    CHECK_EQUAL(mkdir("/tmp", 0700), 0);
    std::string names[3];
    for (std::string &name : names) {
        char path[] = "/tmp/nameXXXXXX";
        int file = mkstemp(path);
        CHECK(file >= 0);
        trace.add(file);
        CHECK_EQUAL(close(file), 0);
        name = path;
        std::ofstream(name) << name << time(nullptr);
    }
    DIR *folder = opendir("/tmp");
    while (const dirent *entry = readdir(folder)) {
        trace.add(entry->d_name, strlen(entry->d_name));
        trace.add(entry->d_ino);
    }
    CHECK_EQUAL(closedir(folder), 0);
    for (const std::string &name : names) {
        struct stat status;
        CHECK_EQUAL(stat(name.c_str(), &status), 0);
        trace.add(status.st_mtim);
        trace.add(status.st_size);
        trace.add(status.st_ino);
    }
}

static void *answer(void *listener) {
    int connection = accept(*static_cast<int *>(listener), nullptr, nullptr);
    char text[64];
    ssize_t size;
    while ((size = read(connection, text, sizeof text)) > 0)
        CHECK(write(connection, text, static_cast<std::size_t>(size)) > 0);
    close(connection);
    return nullptr;
}
static void see_network(trace_t &trace) {
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQUAL(listen(listener, 3), 0);
    sockaddr_in place;
    socklen_t size = sizeof place;
    CHECK_EQUAL(getsockname(listener, reinterpret_cast<sockaddr *>(&place), &size), 0);
    trace.add(place);
    haft_io_task_t *server = haft_io_async(answer, &listener);
    int client = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQUAL(connect(client, reinterpret_cast<sockaddr *>(&place), size), 0);
    CHECK_EQUAL(write(client, "as many parts as the seed says", 30) > 0, 1);
    CHECK_EQUAL(shutdown(client, SHUT_WR), 0);
    char text[64];
    ssize_t got;
    while ((got = read(client, text, sizeof text)) > 0)
        trace.add(text, static_cast<std::size_t>(got)), trace.add(got);
    haft_io_join(server, nullptr);
    trace.add(client);
    CHECK_EQUAL(close(client) + close(listener), 0);
}

/* The order of tasks. */
static trace_t *shared;
static void *take_part(void *number) {
    for (int i = 0; i < 5; i++) {
        shared->add(number);
        std::this_thread::sleep_for(std::chrono::milliseconds(i % 2));
        see_clocks(*shared);
    }
    return nullptr;
}

static void *see_all(void *argument) {
    auto *trace = static_cast<trace_t *>(argument);
    shared = trace;
    haft_io_task_t *tasks[6];
    for (std::uintptr_t i = 0; i < 6; i++)
        tasks[i] = haft_io_async(take_part, reinterpret_cast<void *>(i));
    see_chance(*trace);
    see_devices(*trace);
    see_files(*trace);
    see_network(*trace);
    for (haft_io_task_t *task : tasks)
        haft_io_join(task, nullptr);
    trace->add(haft_io_now());
    return nullptr;
}

static std::uint64_t trace_of(std::uint64_t seed) {
    trace_t trace;
    haft_io_simulation_options_t how{};
    how.seed = seed;
    how.short_counts = how.network = how.files = true;
    how.switches_one_in = 3;
    CHECK_EQUAL(check_io_simulate_with(&how, see_all, &trace), 0);
    return trace.sum;
}

/* ---- The seeds ---- */

enum { SEEDS = 200 };

static std::string own_path() {
    char path[4096] = "";
    CHECK(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
    return path;
}

static void a_seed_repeats_in_this_process_and_in_another() {
    FILE *other = popen((own_path() + " traces").c_str(), "re");
    std::map<std::uint64_t, int> different;
    for (std::uint64_t seed = 1; seed <= SEEDS; seed++) {
        unsigned long long there = 0;
        std::uint64_t trace = trace_of(seed);
        CHECK_EQUAL(trace_of(seed), trace);
        CHECK(fscanf(other, "%llx", &there) == 1 && there == trace);
        different[trace]++;
    }
    CHECK_EQUAL(pclose(other), 0);
    CHECK_EQUAL(different.size(), SEEDS);
}

/* Not in a simulation, and on no task of one. */
static void *see_another_device(void *) {
    std::random_device device;
    std::map<unsigned, int> drawn;
    for (int i = 0; i < 8; i++)
        drawn[device()]++;
    CHECK(drawn.size() > 1);
    return nullptr;
}
static void chance_is_the_systems_elsewhere() {
    see_another_device(nullptr);
    CHECK_RUNS(see_another_device);
    trace_t one, two;
    see_chance(one);
    see_chance(two);
    CHECK(one.sum != two.sum);
}

int main(int count, char **) {
    if (count > 1) { /* the other process */
        for (std::uint64_t seed = 1; seed <= SEEDS; seed++)
            printf("%llx\n", static_cast<unsigned long long>(trace_of(seed)));
        return 0;
    }
    RUN(a_seed_repeats_in_this_process_and_in_another);
    RUN(chance_is_the_systems_elsewhere);
    return check_end();
}
