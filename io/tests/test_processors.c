/* SPDX-License-Identifier: MIT */
/* How many threads a run has whose options leave that open: what control groups leave to the
   process. */
#define _GNU_SOURCE
#include "check_io.h"

#include "../src/processors.h"

#include <limits.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/haft-groups-XXXXXX";

/* Makes the file, and the folders that it lies in, in the root. */
static void put(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s%s", root, name);
    for (char *end = path + sizeof root; (end = strchr(end, '/')) != NULL; end++) {
        *end = '\0';
        mkdir(path, 0700);
        *end = '/';
    }
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}
static void check_limit(const char *groups, unsigned limit) {
    char path[256];
    put("/groups", groups);
    snprintf(path, sizeof path, "%s/groups", root);
    CHECK_EQUAL(hafti_io_processors_of_groups(path, root), limit);
}

static void a_group_and_those_around_it_limit(void) {
    put("/cpu.max", "max 100000\n");
    put("/a/cpu.max", "450000 100000\n");
    put("/a/b/cpu.max", "max 100000\n");
    put("/a/b/c/cpu.max", "200001 100000\n");
    put("/tiny/cpu.max", "1000 100000\n");
    check_limit("0::/\n", UINT_MAX);
    check_limit("0::/a\n", 5);
    check_limit("0::/a/b\n", 5);
    check_limit("0::/a/b/c\n", 3);
    check_limit("0::/tiny\n", 1);
    check_limit("0::/elsewhere/a\n", UINT_MAX); /* The machine's path, seen from inside. */
}

static void groups_of_the_first_version_limit(void) {
    put("/cpu/cpu.cfs_quota_us", "-1\n");
    put("/cpu/cpu.cfs_period_us", "100000\n");
    put("/cpu/a/cpu.cfs_quota_us", "150000\n");
    put("/cpu/a/cpu.cfs_period_us", "50000\n");
    check_limit("2:cpuacct:/a\n1:cpu:/\n0::/\n", UINT_MAX);
    check_limit("3:memory:/a\n2:cpu,cpuacct:/a/b\n", 3);
    check_limit("9:name=systemd:/a\n8:cpuset:/a\n1:cpu:/a\n0::/tiny\n", 1);
}

static void what_says_something_else_does_not_limit(void) {
    put("/odd/cpu.max", "some 100000\n");
    put("/zero/cpu.max", "0 100000\n");
    put("/none/cpu.max", "100000 0\n");
    put("/half/cpu.max", "100000");
    put("/much/cpu.max", "9223372036854775807 1\n");
    put("/empty/cpu.max", "");
    check_limit("0::/odd\n0::/zero\n0::/none\n0::/half\n0::/much\n0::/empty\n", UINT_MAX);
    check_limit("", UINT_MAX);
    check_limit("no colons\n0:/a\n::\n0::a\n", UINT_MAX);
    CHECK_EQUAL(hafti_io_processors_of_groups("/nowhere", root), UINT_MAX);
}

static void the_processors_of_the_thread_limit(void) {
    cpu_set_t all, one;
    CHECK_EQUAL(sched_getaffinity(0, sizeof all, &all), 0);
    CHECK(hafti_io_processors() >= 1 && hafti_io_processors() <= (unsigned)CPU_COUNT(&all));
    int first = 0;
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    CHECK_EQUAL(sched_setaffinity(0, sizeof one, &one), 0);
    CHECK_EQUAL(hafti_io_processors(), 1);
    sched_setaffinity(0, sizeof all, &all);
}

int main(void) {
    CHECK(mkdtemp(root) != NULL);
    RUN(a_group_and_those_around_it_limit);
    RUN(groups_of_the_first_version_limit);
    RUN(what_says_something_else_does_not_limit);
    RUN(the_processors_of_the_thread_limit);
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", root);
    CHECK_EQUAL(system(command), 0);
    return check_end();
}
