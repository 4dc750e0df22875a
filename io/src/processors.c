/* SPDX-License-Identifier: MIT */
/*
 * How many processors a program may use. A container sees all of the machine's, and is given the
 * time of some: with a thread for each it would use its time up at once, and stand still for the
 * rest of each period. Control groups (cgroups(7)) lie in one another, and each may have a limit:
 *
 *   a line of /proc/self/cgroup | limits are in
 *   0::/a/b                     | ROOT/a/b/cpu.max, ROOT/a/cpu.max, ROOT/cpu.max: "QUOTA PERIOD",
 *                               |   or "max PERIOD"
 *   4:cpu,cpuacct:/a/b          | ROOT/cpu/a/b/cpu.cfs_quota_us and cpu.cfs_period_us, and so on;
 *                               |   -1: none
 *
 * Seen from inside a container the path may be the machine's, and what is mounted at ROOT its last
 * part: a file that is not there limits nothing.
 */
#include "processors.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool read_text(const char *path, char *text, size_t size) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t got = read(file, text, size - 1);
    close(file);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

/* Two numbers of a file of the group. How many were read. */
static int read_numbers(const char *group, const char *name, long long *first, long long *second) {
    char path[PATH_MAX], text[64];
    int length = snprintf(path, sizeof path, "%s/%s", group, name);
    if (length >= (int)sizeof path || !read_text(path, text, sizeof text))
        return 0;
    return sscanf(text, "%lld %lld", first, second);
}

static unsigned limit_of(const char *group) {
    long long quota = -1, period = -1, none;
    if (read_numbers(group, "cpu.max", &quota, &period) < 2) {
        read_numbers(group, "cpu.cfs_quota_us", &quota, &none);
        read_numbers(group, "cpu.cfs_period_us", &period, &none);
    }
    if (quota <= 0 || period <= 0 || quota / period >= UINT_MAX)
        return UINT_MAX;
    return (unsigned)(quota / period + (quota % period != 0));
}

static unsigned least(unsigned a, unsigned b) {
    return a < b ? a : b;
}

/* The least limit of the group and those that it lies in. */
static unsigned least_limit(const char *root, const char *folder, const char *path) {
    char group[PATH_MAX];
    size_t end = strlen(root) + strlen(folder);
    if (snprintf(group, sizeof group, "%s%s%s", root, folder, path) >= (int)sizeof group)
        return UINT_MAX;
    unsigned limit = limit_of(group);
    while (strlen(group) > end) {
        *strrchr(group, '/') = '\0';
        limit = least(limit, limit_of(group));
    }
    return limit;
}

static bool names_cpu(char *controllers) {
    char *rest;
    for (char *name = strtok_r(controllers, ",", &rest); name != NULL;
         name = strtok_r(NULL, ",", &rest))
        if (strcmp(name, "cpu") == 0)
            return true;
    return false;
}

unsigned hafti_io_processors_of_groups(const char *groups, const char *root) {
    char text[4096], *rest;
    unsigned limit = UINT_MAX;
    if (!read_text(groups, text, sizeof text))
        return limit;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *controllers = strchr(line, ':');
        char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (path == NULL || path[1] != '/')
            continue;
        *path++ = '\0';
        if (controllers[1] == '\0')
            limit = least(limit, least_limit(root, "", path));
        else if (names_cpu(controllers + 1))
            limit = least(limit, least_limit(root, "/cpu", path));
    }
    return limit;
}

unsigned hafti_io_processors(void) {
    cpu_set_t set; /* for the first thousand: on a larger machine, all that it has */
    long count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                             : sysconf(_SC_NPROCESSORS_ONLN);
    return least(count < 1 ? 1 : (unsigned)count,
                 hafti_io_processors_of_groups("/proc/self/cgroup", "/sys/fs/cgroup"));
}
