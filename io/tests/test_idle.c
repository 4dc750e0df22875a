/* SPDX-License-Identifier: MIT */
/* A run that has nothing to do: no thread of it is ever woken. The system counts. */
#define _GNU_SOURCE
#include "check_io.h"

#include <dirent.h>
#include <pthread.h>
#include <unistd.h>

/* How often all threads but the calling one have given up the processor to wait. */
static long count_waits(void) {
    DIR *threads = opendir("/proc/self/task");
    long count = 0;
    if (threads == NULL)
        return -1;
    for (struct dirent *entry; (entry = readdir(threads)) != NULL;) {
        char path[300], line[200];
        long waits;
        if (entry->d_name[0] == '.' || atoi(entry->d_name) == (int)gettid())
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        FILE *file = fopen(path, "re");
        while (file != NULL && fgets(line, sizeof line, file) != NULL)
            if (sscanf(line, "voluntary_ctxt_switches: %ld", &waits) == 1)
                count += waits;
        if (file != NULL)
            fclose(file);
    }
    closedir(threads);
    return count;
}

static int ends[2];
static haft_io_event_t seen;
static long waits, waits_later;

/* Looks until nothing has happened between two looks. A task that is woken regularly never sees
   that. */
static void *observe(void *unused) {
    for (int look = 0; look < 30; look++) {
        waits = count_waits();
        usleep(300 * 1000);
        waits_later = count_waits();
        if (waits == waits_later)
            break;
    }
    haft_io_event_set(&seen);
    return unused;
}

static void *read_byte(void *unused) {
    char byte;
    haft_io_read(ends[0], &byte, 1);
    return unused;
}
static void *sleep_for_an_hour(void *unused) {
    haft_io_sleep(3600 * HAFT_IO_SECOND);
    return unused;
}
BODY(be_idle) {
    CHECK_EQUAL(haft_io_pipe(ends), 0);
    haft_io_spawn(read_byte, NULL);
    haft_io_spawn(sleep_for_an_hour, NULL);
    haft_io_join(haft_io_async(check_nothing, NULL), NULL);
    haft_io_event_wait(&seen);
    haft_io_close(ends[0]);
    haft_io_close(ends[1]);
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
static void who_has_nothing_to_do_is_not_woken(void) {
    for (int threads = 1; threads <= 3; threads += 2) {
        pthread_t observer;
        haft_io_event_clear(&seen);
        CHECK_EQUAL(pthread_create(&observer, NULL, observe, NULL), 0);
        haft_io_run_options_t options = {.threads = threads};
        CHECK_EQUAL(haft_io_run_with(&options, be_idle, NULL), -ECANCELED);
        pthread_join(observer, NULL);
        CHECK(waits >= 0);
        CHECK_EQUAL(waits_later, waits);
    }
}

int main(void) {
    if (!check_bare()) /* sanitizers have threads of their own */
        return 77;
    check_backend();
    RUN(who_has_nothing_to_do_is_not_woken);
    return check_end();
}
