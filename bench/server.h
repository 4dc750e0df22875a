/* SPDX-License-Identifier: MIT */
/* Code for programs that put load on a server in a process of its own: its processor, its
   clocks, its memory. */
#ifndef HAFT_BENCH_SERVER_H
#define HAFT_BENCH_SERVER_H

#include <linux/perf_event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static inline void give_up(const char *doing) {
    perror(doing);
    exit(1);
}

static inline void pin(int processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static inline void no_delay(int connection) {
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
}

/* Descriptors for so many connections, here and in processes that are started. */
static inline void allow_connections(int connections) {
    struct rlimit most;
    getrlimit(RLIMIT_NOFILE, &most);
    if (most.rlim_max < (rlim_t)connections + 100)
        most.rlim_max = (rlim_t)connections + 100;
    most.rlim_cur = most.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &most) != 0)
        give_up("the limit of descriptors");
}

/* Resident memory with its page tables. */
static inline double kibibytes_of(pid_t process) {
    char path[64], line[128];
    snprintf(path, sizeof path, "/proc/%d/status", process);
    FILE *status = fopen(path, "r");
    double all = 0, one;
    while (fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "VmRSS: %lf", &one) == 1 || sscanf(line, "VmPTE: %lf", &one) == 1)
            all += one;
    fclose(status);
    return all;
}

/* Linux's clock of another process: what clock_getcpuclockid(3) makes is the last kind of three. */
enum { TICKS, USER_TICKS, ALL };
static inline double clock_of(pid_t process, int kind) {
    struct timespec time;
    if (clock_gettime((clockid_t)(~(unsigned)process << 3 | (unsigned)kind), &time) != 0)
        give_up("the server's clock");
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

/* Samples of a process in user mode, taken by the kernel every tenth of a millisecond of its time
   on that processor; NULL where the kernel refuses. */
enum { SAMPLE_MICROSECONDS = 100, SAMPLE_PAGES = 64 };
static inline struct perf_event_mmap_page *sample(pid_t process, int processor) {
    struct perf_event_attr event = {.type = PERF_TYPE_SOFTWARE,
                                    .size = sizeof event,
                                    .config = PERF_COUNT_SW_CPU_CLOCK,
                                    .sample_period = SAMPLE_MICROSECONDS * 1000,
                                    .inherit = 1,
                                    .exclude_kernel = 1,
                                    .exclude_hv = 1};
    int descriptor =
        (int)syscall(SYS_perf_event_open, &event, process, processor, -1, PERF_FLAG_FD_CLOEXEC);
    void *pages = MAP_FAILED;
    if (descriptor >= 0)
        pages = mmap(NULL, (size_t)(1 + SAMPLE_PAGES) * (size_t)sysconf(_SC_PAGESIZE),
                     PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

/* Microseconds of processor time, as the scheduler counts it. The share of user mode is known by
   samples, or else by the ticks of a clock, most of them too few. */
typedef struct {
    double all, ticks, user_ticks;
    uint64_t samples;
} used_t;

static inline used_t used_by(pid_t process, const struct perf_event_mmap_page *samples) {
    uint64_t bytes = samples == NULL ? 0 : __atomic_load_n(&samples->data_head, __ATOMIC_ACQUIRE);
    return (used_t){clock_of(process, ALL), clock_of(process, TICKS), clock_of(process, USER_TICKS),
                    bytes / sizeof(struct perf_event_header)};
}

static inline used_t used_between(used_t before, used_t after) {
    return (used_t){after.all - before.all, after.ticks - before.ticks,
                    after.user_ticks - before.user_ticks, after.samples - before.samples};
}

/* Microseconds in user mode. */
static inline double user_mode_of(used_t used, bool sampled) {
    if (sampled)
        return (double)used.samples * SAMPLE_MICROSECONDS;
    return used.ticks > 0 ? used.all * used.user_ticks / used.ticks : 0;
}

#endif
