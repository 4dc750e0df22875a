/* SPDX-License-Identifier: MIT */
/*
 * Requests that fail are kept, and their handlers answer them again: over HTTP/1.1 and HTTP/2, on
 * one thread and on two, with questions to another service over connections that earlier requests
 * have opened, or to a name of several addresses, with tasks of their own, with a body, with a
 * failure that unwinds, with an answer that is larger than what may be kept. A request that is cut
 * off at the end of the time of grace is not kept, and neither is one whose handler has learned
 * that its client has gone. A corrupt record is answered otherwise. The folder has to be writable
 * for the effective user. The program serves and asks itself in a child, and starts itself once
 * more for each replay. Files of an earlier process stay.
 */
#define _GNU_SOURCE /* memmem, setresuid */
#ifdef CHECK_HTTP2
#    include "check_http2.h"
#else
#    include "check_http.h"
#endif

#include <dirent.h>
#include <fcntl.h>
#include <netdb.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static haft_http_client_t *client;
static char folder[100];
static const char *program;
static uint16_t port = 1; /* in a replay there is nobody */

/* ---- The handlers ---- */

static struct sockaddr_in loopback[2];
static struct addrinfo addresses[2];
int __real_getaddrinfo(const char *, const char *, const struct addrinfo *, struct addrinfo **);
int __wrap_getaddrinfo(const char *, const char *, const struct addrinfo *, struct addrinfo **);
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **result) {
    if (strcmp(host, "several") != 0)
        return __real_getaddrinfo(host, service, hints, result);
    for (unsigned i = 0; i < 2; i++) { /* nobody listens at the first */
        loopback[i] = (struct sockaddr_in){.sin_family = AF_INET,
                                           .sin_port = htons((uint16_t)atoi(service)),
                                           .sin_addr = {htonl(INADDR_LOOPBACK + 8 * (1 - i))}};
        addresses[i] = (struct addrinfo){.ai_family = AF_INET,
                                         .ai_socktype = SOCK_STREAM,
                                         .ai_addr = (struct sockaddr *)&loopback[i],
                                         .ai_addrlen = sizeof loopback[i],
                                         .ai_next = i == 0 ? &addresses[1] : NULL};
    }
    *result = addresses;
    return 0;
}
void __real_freeaddrinfo(struct addrinfo *);
void __wrap_freeaddrinfo(struct addrinfo *);
void __wrap_freeaddrinfo(struct addrinfo *list) {
    if (list != addresses)
        __real_freeaddrinfo(list);
}

/* Another service, as it were: its answers change. */
static int tell_data(haft_http_request_t *request, void *unused) {
    (void)unused;
    uint32_t drawn;
    CHECK(haft_io_random(&drawn, sizeof drawn) == 0);
    return haft_http_answer_format(request, 200, "%s %u", haft_http_request_path(request, "number"),
                                   (unsigned)drawn);
}

static int ask_data_at(const char *host, const char *number, char *said, size_t size) {
    HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *reply = NULL;
    char url[100], *body;
    snprintf(url, sizeof url, "http://%s:%d/data/%s", host, port, number);
    haft_http_question_t question = {.url = url};
    int code = haft_http_client_ask(client, &question, &reply);
    if (code != 0)
        return code;
    ssize_t got = haft_http_reply_body(reply, &body);
    snprintf(said, size, "%s", got >= 0 ? body : "nothing");
    return got < 0 ? (int)got : 0;
}

static int ask_data(const char *number, char *said, size_t size) {
    return ask_data_at("127.0.0.1", number, said, size);
}

static int fail_by_data(haft_http_request_t *request, void *unused) {
    (void)unused;
    char first[100], second[100];
    int code = ask_data("1", first, sizeof first);
    code = code == 0 ? ask_data("2", second, sizeof second) : code;
    return code == 0 ? haft_http_answer_format(request, 503, "%s and %s, said %s", first, second,
                                               haft_http_request_header(request, "X-Who"))
                     : code;
}

typedef struct {
    unsigned drawn;
    char said[100];
} part_t;
static void *ask_apart(void *argument) {
    part_t *part = argument;
    char said[100];
    CHECK(haft_io_random(&part->drawn, sizeof part->drawn) == 0);
    haft_io_sleep(part->drawn % 3 * HAFT_IO_MILLISECOND);
    if (ask_data("3", part->said, sizeof part->said) != 0 ||
        ask_data_at("several", "4", said, sizeof said) != 0)
        haft_io_fail(-EIO, "no data");
    return NULL;
}
static void add(void *argument) {
    *(int *)argument += 41;
}
/* Keeps itself: it does not fail. */
static int use_all(haft_http_request_t *request, void *unused) {
    (void)unused;
    part_t parts[3];
    haft_io_task_t *tasks[3];
    bool is_kept = haft_http_request_keep(request);
    for (int i = 0; i < 3; i++)
        tasks[i] = haft_io_async(ask_apart, &parts[i]);
    for (int i = 0; i < 3; i++)
        haft_io_join(tasks[i], NULL);
    int number = 1;
    CHECK(haft_io_call_blocking(add, &number) == 0 && number == 42);
    char bytes[40];
    HAFT_IO_SCOPED_DESCRIPTOR int file = haft_io_open("/proc/sys/kernel/random/uuid", O_RDONLY, 0);
    ssize_t got = haft_io_read(file, bytes, sizeof bytes);
    CHECK(is_kept);
    return haft_http_answer_format(request, 200, "%s %s %s %u at %lld: %.*s", parts[0].said,
                                   parts[1].said, parts[2].said, parts[2].drawn,
                                   (long long)haft_io_now(), (int)(got > 0 ? got : 0), bytes);
}

static int fail_with_body(haft_http_request_t *request, void *unused) {
    (void)unused;
    char *body;
    ssize_t size = haft_http_request_body(request, &body);
    CHECK(size == 30000 && body[29999] == 'x');
    haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_fail(-EIO, "the disk is gone");
}

static int fail_at_length(haft_http_request_t *request, void *unused) {
    (void)unused;
    static char body[40000];
    uint32_t drawn;
    CHECK(haft_io_random(&drawn, sizeof drawn) == 0);
    memset(body, 'a' + drawn % 16, sizeof body);
    return haft_http_answer(request, 500, "text/plain", body, sizeof body);
}

/* It is unwound, or catches its cancel and answers. */
static haft_io_event_t cut_off_waits;
static int be_cut_off(haft_http_request_t *request, void *unused) {
    (void)unused;
    CHECK(haft_http_request_keep(request));
    haft_io_event_set(&cut_off_waits);
    haft_io_return_cancels(haft_http_request_query(request, "catches") != NULL);
    CHECK(haft_io_sleep(3600 * HAFT_IO_SECOND) == -ECANCELED);
    return haft_http_answer_text(request, 503, "not now");
}

/* Another request decides by what it has left what this one asks for. */
static int use_memory(haft_http_request_t *request, void *unused) {
    (void)unused;
    static int asked;
    if (asked++ == 0 && getenv("HAFT_ASKS") == NULL)
        return haft_http_answer_text(request, 200, "nothing yet");
    if (getenv("HAFT_ASKS") != NULL)
        haft_io_now();
    haft_io_sleep(HAFT_IO_MILLISECOND);
    HAFT_IO_SCOPED_DESCRIPTOR int file = haft_io_open("/dev/null", O_RDONLY, 0);
    return file >= 0 ? -EIO : file;
}

/* Its client goes while the handler reads, writes, or is at something else. */
static int be_left(haft_http_request_t *request, void *unused) {
    const char *how = haft_http_request_query(request, "how");
    static char bytes[16000];
    (void)unused;
    if (strcmp(how, "unaware") == 0) {
        haft_io_sleep(20 * HAFT_IO_MILLISECOND);
        return -EIO;
    }
    if (strcmp(how, "writes") == 0) {
        CHECK(haft_http_answer_begin(request, 200, NULL, HAFT_HTTP_UNKNOWN_SIZE) == 0);
        while (haft_http_answer_write(request, bytes, sizeof bytes) == 0)
            continue;
        haft_io_fail(-EIO, "half of an answer");
    }
    if (strcmp(how, "wished") == 0)
        CHECK(haft_http_request_keep(request) || getenv("HAFT_IO_REPLAY") != NULL);
    while (haft_http_request_read(request, bytes, sizeof bytes) > 0)
        continue;
    if (strcmp(how, "fails") == 0)
        haft_io_fail(-EIO, "half of a body");
    return strcmp(how, "answers") == 0 ? haft_http_answer_text(request, 500, "half of a body")
                                       : -EIO;
}

/* A stream is on no record. */
static int become_stream(haft_http_request_t *request, void *unused) {
    (void)unused;
    CHECK(haft_http_request_keep(request));
    CHECK(haft_http_request_upgrade(request, "echo") == 0 && !haft_http_request_keep(request));
    return 0;
}

static int be_quiet(haft_http_request_t *request, void *unused) {
    (void)unused;
    return haft_http_answer_text(request, 200, "quiet");
}

static void say_nothing_of(void *unused, const char *line) {
    (void)unused, (void)line;
}

static haft_http_server_t *make_server(void) {
    haft_http_server_t *server = haft_http_server_new();
    client = haft_http_client_new();
    if (getenv("HAFT_IO_REPLAY") == NULL)
        haft_http_server_set_log(server, say_nothing_of, NULL);
    haft_http_server_get(server, "/data/{number}", tell_data, NULL);
    haft_http_server_get(server, "/fails", fail_by_data, NULL);
    haft_http_server_get(server, "/all", use_all, NULL);
    haft_http_server_post(server, "/body", fail_with_body, NULL);
    haft_http_server_get(server, "/long", fail_at_length, NULL);
    haft_http_server_get(server, "/cut", be_cut_off, NULL);
    haft_http_server_get(server, "/memory", use_memory, NULL);
    haft_http_server_get(server, "/quiet", be_quiet, NULL);
    haft_http_server_get(server, "/stream", become_stream, NULL);
    haft_http_server_get(server, "/left", be_left, NULL);
    haft_http_server_post(server, "/left", be_left, NULL);
    return server;
}

/* ---- Serving and asking ---- */

static void *ask_http1(void *unused) {
    static const char begin[] =
        "GET /quiet HTTP/1.1\r\nHost: here\r\n\r\n"
        "GET /fails HTTP/1.1\r\nHost: here\r\nX-Who: me\r\n\r\n"
        "GET /all HTTP/1.1\r\nHost: here\r\n\r\n"
        "GET /memory HTTP/1.1\r\nHost: here\r\n\r\n"
        "GET /memory HTTP/1.1\r\nHost: here\r\n\r\n"
        "GET /long HTTP/1.1\r\nHost: here\r\n\r\n"
        "POST /body HTTP/1.1\r\nHost: here\r\nContent-Length: 30000\r\n\r\n";
    static char question[sizeof begin + 30000], heard[1 << 17];
    memcpy(question, begin, sizeof begin - 1);
    memset(question + sizeof begin - 1, 'x', 30000);
    say_and_hear(port, question, sizeof begin - 1 + 30000, false, heard, sizeof heard);
    CHECK(strstr(heard, " 503 ") != NULL && strstr(heard, "said me") != NULL);
    CHECK(strstr(heard, " at ") != NULL);
    return unused;
}

static void *ask_http2(void *unused) {
#ifdef CHECK_HTTP2
    static client_t of_http2;
    static char body[30000];
    memset(body, 'x', sizeof body);
    open_client(&of_http2, port, NULL, 0);
    hear_whole(&of_http2, ask_with(&of_http2, "GET", "/fails", "x-who: me\n", NULL, 0, NULL));
    hear_whole(&of_http2, ask(&of_http2, "GET", "/all"));
    hear_whole(&of_http2, ask(&of_http2, "GET", "/memory"));
    hear_whole(&of_http2, ask_with(&of_http2, "POST", "/body", "", body, sizeof body, NULL));
    close_client(&of_http2);
#endif
    return unused;
}

static const char *const left_while_reading[] = {"fails", "returns", "answers", "wished"};
enum { LEFT_WHILE_READING = sizeof left_while_reading / sizeof left_while_reading[0] };

static void leave(const char *question, bool stays_a_while) {
    char heard[1000];
    HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_connect_tcp("127.0.0.1", port);
    haft_io_write_all(connection, question, strlen(question));
    if (stays_a_while)
        CHECK(haft_io_read(connection, heard, sizeof heard) > 0);
}
static void *ask_http1_and_leave(void *unused) {
    char question[200];
    for (int i = 0; i < LEFT_WHILE_READING; i++) {
        snprintf(question, sizeof question,
                 "POST /left?how=%s HTTP/1.1\r\nHost: here\r\nContent-Length: 10\r\n\r\nhalf",
                 left_while_reading[i]);
        leave(question, false);
    }
    leave("GET /left?how=writes HTTP/1.1\r\nHost: here\r\n\r\n", true);
    leave("GET /left?how=unaware HTTP/1.1\r\nHost: here\r\n\r\n", false);
    return unused;
}

static void *ask_http2_and_leave(void *unused) {
#ifdef CHECK_HTTP2
    static client_t of_http2;
    static const char body[100000]; /* more than what the window lets through */
    static const char *const without_body[] = {"/left?how=writes", "/left?how=unaware"};
    open_client(&of_http2, port, NULL, 0);
    for (int i = 0; i < LEFT_WHILE_READING + 2; i++) {
        char path[40];
        int32_t id;
        snprintf(path, sizeof path, "/left?how=%s", left_while_reading[i % LEFT_WHILE_READING]);
        if (i < LEFT_WHILE_READING)
            id = ask_with(&of_http2, "POST", path, "", body, sizeof body, NULL);
        else
            id = ask(&of_http2, "GET", without_body[i - LEFT_WHILE_READING]);
        say(&of_http2);
        if (i >= LEFT_WHILE_READING)
            hear_whole(&of_http2, ask(&of_http2, "GET", "/quiet"));
        nghttp2_submit_rst_stream(of_http2.session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
        hear_whole(&of_http2, ask(&of_http2, "GET", "/quiet"));
    }
    close_client(&of_http2);
#endif
    return unused;
}

static void *ask_for_stream(void *unused) {
    static const char question[] = "GET /stream HTTP/1.1\r\nHost: here\r\n"
                                   "Connection: upgrade\r\nUpgrade: echo\r\n\r\n";
    char heard[1000];
    say_and_hear(port, question, sizeof question - 1, false, heard, sizeof heard);
    CHECK(strstr(heard, " 101 ") != NULL);
    return unused;
}

static void *serve_and_ask(void *asking) {
    haft_http_server_t *server = make_server();
    port = start_server(server);
    ((void *(*)(void *))(uintptr_t)asking)(NULL);
    haft_http_server_stop(server);
    return server;
}

static void *serve_for_long(void *server) {
    haft_http_server_set_limits(server, &(haft_http_limits_t){.grace = HAFT_IO_MILLISECOND});
    CHECK(haft_http_server_serve(server, haft_io_listen_tcp("127.0.0.1", 0, 0)) == -ETIMEDOUT);
    return NULL;
}
static void *ask_to_be_cut_off(void *target) {
    char question[100], heard[1000];
    int size = snprintf(question, sizeof question, "GET %s HTTP/1.1\r\nHost: here\r\n\r\n",
                        (const char *)target);
    say_and_hear(port, question, (size_t)size, true, heard, sizeof heard);
    return NULL;
}
static void *serve_and_cut_off(void *unused) {
    haft_http_server_t *server = make_server();
    haft_io_spawn(serve_for_long, server);
    while ((port = haft_http_server_port(server)) == 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_spawn(ask_to_be_cut_off, "/cut");
    haft_io_event_wait(&cut_off_waits);
    haft_io_event_clear(&cut_off_waits);
    haft_io_spawn(ask_to_be_cut_off, "/cut?catches=1");
    haft_io_event_wait(&cut_off_waits);
    haft_http_server_stop(server);
    return unused;
}

/* A process of another container has left such a file on the same day. */
static void make_earlier_file(void) {
    time_t now = time(NULL);
    char day[20], path[200];
    strftime(day, sizeof day, "%Y%m%d", gmtime(&now));
    snprintf(path, sizeof path, "%s/request-%s-%d-1.haft", folder, day, (int)getpid());
    mkdir(folder, 0700);
    close(open(path, O_WRONLY | O_CREAT, 0600));
}

static void serve_in_child(void *(*serving)(void *), void *(*asking)(void *), int threads,
                           size_t size) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        haft_io_run_options_t how = {
            .threads = threads, .keep_requests = folder, .kept_size = size};
        make_earlier_file();
        _exit(haft_io_run_with(&how, serving, (void *)(uintptr_t)asking) == 0 ? 0 : 1);
    }
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- Replays ---- */

/* Returns the exit status, and the words. */
static int replay(const char *path, const char *expects, char *words, size_t size) {
    int ends[2], status;
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        setenv("HAFT_IO_REPLAY", path, 1);
        setenv("HAFT_IO_REPLAY_EXPECTS", expects, 1);
        dup2(ends[1], STDERR_FILENO);
        execl(program, program, "replay", NULL);
        _exit(127);
    }
    close(ends[1]);
    size_t got = 0;
    for (ssize_t more = 1; more > 0 && got<size - 1; got += more> 0 ? (size_t)more : 0)
        more = read(ends[0], words + got, size - 1 - got);
    words[got] = '\0';
    close(ends[0]);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static void check_words(bool is_so, const char *path, const char *words) {
    if (!is_so)
        fprintf(stderr, "%s:\n%s\n", path, words);
    CHECK(is_so);
}

/* ---- Corrupt records ---- */

typedef struct {
    char bytes[1 << 17];
    size_t size;
} record_t;

/* The place behind the entry of a request, its answer or its command (io/src/tape/tape.c). */
static char *behind(char *entry) {
    size_t size = 0;
    char *at = entry + 3;
    for (unsigned shift = 0;; shift += 7, at++) {
        size |= (size_t)(*at & 0x7f) << shift;
        if ((*at & 0x80) == 0)
            return at + 1 + size;
    }
}

static void take_out(record_t *record, char *from, const char *to) {
    memmove(from, to, (size_t)(record->bytes + record->size - to));
    record->size -= (size_t)(to - from);
}

static size_t replay_corrupt(const record_t *record) {
    static char words[1 << 17];
    char path[200];
    snprintf(path, sizeof path, "%s/.corrupt", folder);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(write(file, record->bytes, record->size) == (ssize_t)record->size);
    close(file);
    int code = replay(path, "same", words, sizeof words);
    check_words(code == 1 && strstr(words, "answered otherwise: not as expected") != NULL, path,
                words);
    unlink(path);
    return strlen(words);
}

/* The record has an answer of which only a part was kept, behind the head of an entry: three bytes,
   and three of the size. */
static void check_corrupt(const char *path) {
    static record_t whole, record;
    int file = open(path, O_RDONLY);
    whole.size = (size_t)read(file, whole.bytes, sizeof whole.bytes);
    close(file);
    const char *found = memmem(whole.bytes, whole.size, "500 cut\n", 8);
    CHECK(found != NULL);
    char *answer = record.bytes + (found - whole.bytes), *entry = answer - 6;
    record = whole;
    memcpy(answer, "500 put\n", 8); /* so it is compared with the whole answer */
    CHECK(replay_corrupt(&record) > 29999 + 40000);
    memcpy(answer, "\n00 cut\n", 8);
    replay_corrupt(&record);
    record = whole;
    take_out(&record, answer, behind(entry));
    answer[-3] = 0;
    take_out(&record, answer - 2, answer);
    replay_corrupt(&record);
    record = whole;
    take_out(&record, entry, behind(behind(entry))); /* the command, too */
    replay_corrupt(&record);
}

static bool checks_corrupt;

/* Which of the requests it is: a bit. */
static unsigned check_file(const char *path, int threads) {
    static const char *const targets[] = {"/fails", "/all",    "/body", "/memory",
                                          "/long",  "unaware", "wished"};
    char words[1 << 17];
    unsigned seen = 0;
    int code = replay(path, "same", words, sizeof words);
    for (unsigned i = 0; i < sizeof targets / sizeof *targets; i++)
        seen |= (unsigned)(strstr(words, targets[i]) != NULL) << i;
    if (seen == 1 << 3) { /* it has not been asked before there, so it answers otherwise */
        check_words(code == 1 && strstr(words, "answered otherwise: not as expected") != NULL &&
                        strstr(words, "the record still has the time") != NULL,
                    path, words);
        setenv("HAFT_ASKS", "1", 1);
        code = replay(path, "same", words, sizeof words);
        unsetenv("HAFT_ASKS");
        check_words(code == 3 && strstr(words, "asks for the time, where the record has") != NULL &&
                        strstr(words, "is here:\n") != NULL,
                    path, words);
        return seen;
    }
    if (threads > 1 && seen == 1 << 1 && code == 3) { /* a task has gone on at another thread */
        check_words(strstr(words, "is not the request that was kept") != NULL, path, words);
        return seen;
    }
    check_words(code == 0 && strstr(words, "as it was: as expected") != NULL, path, words);
    bool fails = seen != 1 << 1;
    code = replay(path, "success", words, sizeof words);
    check_words(code == (fails ? 1 : 0), path, words);
    if (checks_corrupt && seen == 1 << 4)
        check_corrupt(path);
    code = replay(path, seen == 1 ? "503" : fails ? "500" : "200", words, sizeof words);
    check_words(code == 0, path, words);
    return seen;
}

static unsigned check_files(int threads) {
    unsigned seen = 0, empty = 0;
    DIR *opened = opendir(folder);
    CHECK(opened != NULL);
    for (const struct dirent *entry; (entry = readdir(opened)) != NULL;) {
        char path[400];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        struct stat status;
        CHECK(stat(path, &status) == 0 && (status.st_mode & 0777) == 0600);
        if (status.st_size == 0)
            empty++;
        else
            seen |= check_file(path, threads);
        unlink(path);
    }
    closedir(opened);
    CHECK(empty == 1);
    return seen;
}

static void check(void *(*asking)(void *), int threads, size_t size, unsigned expected) {
    serve_in_child(serve_and_ask, asking, threads, size);
    CHECK(check_files(threads) == expected);
}

/* ---- The folder ---- */

static void *do_nothing(void *unused) {
    return unused;
}

/* How a run that keeps requests ends, in a folder of root's alone; 77: the users cannot be had. */
static int run_as(uid_t real, uid_t effective) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        haft_io_run_options_t how = {.keep_requests = folder};
        _exit(setresuid(real, effective, effective) != 0
                  ? 77
                  : -haft_io_run_with(&how, do_nothing, NULL));
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static void check_users(void) {
    enum { NOBODY = 65534 };
    if (geteuid() != 0 || mkdir(folder, 0700) != 0)
        return;
    int code = run_as(0, NOBODY);
    CHECK(code == 77 || code == EACCES);
    code = run_as(NOBODY, 0);
    CHECK(code == 77 || code == 0);
    rmdir(folder);
}

int main(int count, char **arguments) {
    program = arguments[0];
    if (count > 1) /* where HAFT_IO_REPLAY names a request */
        return haft_http_server_run(make_server()) == 0 ? 0 : 100;
    const char *place = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.30s/haft-http-kept.%d", place != NULL ? place : "/tmp",
             (int)getpid());
    check_users();
    check(ask_http1, 1, 0, 0x1f);
    check(ask_http1, 2, 0, 0x1f);
    checks_corrupt = true;
    check(ask_http1, 1, 29999, 0x1b); /* without the body of 30,000 bytes */
    checks_corrupt = false;
    check(ask_http1_and_leave, 1, 0, 0x60);
    check(ask_for_stream, 1, 0, 0);
    serve_in_child(serve_and_cut_off, NULL, 1, 0);
    CHECK(check_files(1) == 0);
#ifdef CHECK_HTTP2
    check(ask_http2, 1, 0, 0x7);
    check(ask_http2, 2, 0, 0x7);
    check(ask_http2_and_leave, 1, 0, 0x60);
#else
    (void)ask_http2, (void)ask_http2_and_leave;
#endif
    rmdir(folder);
    return 0;
}
