/* SPDX-License-Identifier: MIT */
/* The summary of a run: what it counts, and that it stays short; and which sockets for haft-top are
   refused. (traces/top.sh looks at them with haft-top.) */
#include "check_io.h"

#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char text[1 << 18];

static size_t summarize(void) {
    FILE *file = tmpfile();
    CHECK_EQUAL(haft_io_summarize(fileno(file)), 0);
    rewind(file);
    size_t size = fread(text, 1, sizeof text - 1, file);
    text[size] = '\0';
    fclose(file);
    CHECK(size != 0 && strchr(text, '\n') == text + size - 1);
    return size;
}

static haft_io_event_t over;

static void *wait_for_end(void *unused) {
    haft_io_event_wait(&over);
    return unused;
}

static void spawn_named(const char *name) {
    haft_io_task_options_t options = {.name = name};
    CHECK_EQUAL(haft_io_spawn_with(&options, wait_for_end, NULL), 0);
}

/* Until all tasks wait. */
static void await_all(void) {
    do
        haft_io_sleep(HAFT_IO_MILLISECOND);
    while (summarize() != 0 && strstr(text, "\"unwaited\":0,") == NULL);
}

static void *count_alike(void *count) {
    for (long i = 0; i < (long)count; i++)
        spawn_named("one of many");
    summarize();
    CHECK(strstr(text, "\"others\":0,\"unwaited\":") != NULL); /* nobody has waited yet */
    await_all();
    char words[100];
    snprintf(words, sizeof words,
             "{\"name\":\"one of many\",\"waits_for\":\"an event\",\"count\":%ld,\"oldest\":",
             (long)count);
    CHECK(strstr(text, words) != NULL);
    haft_io_event_set(&over);
    return NULL;
}

/* More names than it has places for, of which one has all that JSON must not have. */
static void *count_names(void *unused) {
    static char names[1000][100];
    for (int i = 0; i < 1000; i++) {
        snprintf(names[i], sizeof names[i], "task number %d", i);
        spawn_named(names[i]);
    }
    spawn_named("\"\\\n\x01\xc3\xa9");
    await_all();
    CHECK(strlen(text) < 512 * 200 + 4096);
    long others = strtol(strstr(text, "\"others\":") + 9, NULL, 10);
    CHECK(others >= 1002 - 512 - 1 && others <= 1002 - 512 + 1);
    haft_io_event_set(&over);
    return unused;
}
static void *show_odd_names(void *unused) {
    spawn_named("\"\\\n\x01\xc3\xa9");
    /* 62 bytes, and a character of two of which there is room for one */
    spawn_named("0123456789012345678901234567890123456789012345678901234567890_\xc3\xa9.");
    spawn_named(NULL);
    await_all();
    CHECK(strstr(text, "{\"name\":\"\\u0022\\u005c\\u000a\\u0001\xc3\xa9\",\"waits_for\"") != NULL);
    CHECK(strstr(text, "67890_\",\"waits_for\"") != NULL);
    haft_io_event_set(&over);
    return unused;
}

/* ---- Sockets ---- */

static char folder[] = "/tmp/haft-summary-XXXXXX";
static char path[64];

static int run_with(const char *top) {
    haft_io_run_options_t options = {.threads = 1, .top = top};
    haft_io_event_clear(&over);
    return haft_io_run_with(&options, show_odd_names, NULL);
}

static void *run_elsewhere(void *top) {
    haft_io_run_options_t options = {.threads = 1, .top = top};
    return (void *)(intptr_t)haft_io_run_with(&options, show_odd_names, NULL);
}

static bool is_there(void) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISSOCK(status.st_mode) && (status.st_mode & 0777) == 0600;
}

static void *open_another(void *unused) {
    CHECK(is_there());
    pthread_t thread;
    void *code;
    CHECK_EQUAL(pthread_create(&thread, NULL, run_elsewhere, path), 0);
    pthread_join(thread, &code);
    CHECK_EQUAL((intptr_t)code, -EALREADY);
    pid_t child = fork();
    if (child == 0)
        _exit(summarize() == 0);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(is_there());
    return unused;
}

static void sockets_are_refused(void) {
    char longest[200];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/socket", folder);
    memset(longest, 'x', sizeof longest);
    longest[108] = '\0';
    CHECK_EQUAL(run_with(longest), -ENAMETOOLONG);
    CHECK_EQUAL(run_with("/nowhere/at/all"), -ENOENT);
    close(open(path, O_CREAT | O_WRONLY, 0600)); /* a file of somebody's, which stays */
    CHECK_EQUAL(run_with(path), -EADDRINUSE);
    CHECK_EQUAL(unlink(path), 0);
    haft_io_run_options_t options = {.threads = 1, .top = path};
    CHECK_EQUAL(haft_io_run_with(&options, open_another, NULL), 0);
    CHECK(!is_there());
    CHECK_EQUAL(run_with(folder), 0);
    CHECK_EQUAL(rmdir(folder), 0);
}

int main(void) {
    CHECK_EQUAL(haft_io_summarize(STDERR_FILENO), -ESRCH);
    static const long counts[] = {1, 64, 1000, 100000};
    for (size_t i = 0; i < (check_bare() ? 4 : 3); i++) {
        haft_io_event_clear(&over);
        CHECK_EQUAL(haft_io_run(count_alike, (void *)counts[i]), 0);
    }
    haft_io_event_clear(&over);
    CHECK_EQUAL(haft_io_run(count_names, NULL), 0);
    CHECK_EQUAL(run_with(NULL), 0);
    sockets_are_refused();
    return 0;
}
