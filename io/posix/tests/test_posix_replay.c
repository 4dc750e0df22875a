/* SPDX-License-Identifier: MIT */
/* Code that knows nothing of Haft is recorded and replayed: its sockets, files, times, names and
   random bytes, in tasks and in the pool's threads. */
#include "../../tests/check_io.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>

static char text[1 << 16], file[64];
static size_t text_size;

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text + text_size, sizeof text - text_size, format, arguments);
    va_end(arguments);
    if (size > 0 && (size_t)size < sizeof text - text_size)
        text_size += (size_t)size;
}

static int run(const haft_io_run_options_t *options, void *(*program)(void *)) {
    text_size = 0;
    text[0] = '\0';
    return haft_io_run_with(options, program, NULL);
}
static void check_repeats(void *(*program)(void *)) {
    static char first[sizeof text];
    CHECK_EQUAL(run(&(haft_io_run_options_t){.threads = 1, .record = file}, program), 0);
    memcpy(first, text, sizeof first);
    CHECK(first[0] != '\0');
    for (int i = 0; i < 5; i++) {
        CHECK_EQUAL(run(&(haft_io_run_options_t){.threads = 1, .replay = file}, program), 0);
        if (strcmp(first, text) != 0)
            printf("recorded:\n%s\nreplayed:\n%s\n", first, text);
        CHECK(strcmp(first, text) == 0);
    }
}

/* ---- Sockets ---- */

static struct sockaddr_in address;

static void *ask(void *unused) {
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQUAL(connect(connection, (struct sockaddr *)&address, sizeof address), 0);
    unsigned char drawn[2];
    CHECK_EQUAL(getrandom(drawn, sizeof drawn, 0), sizeof drawn);
    usleep(drawn[0] % 4 * 1000);
    char bytes[64];
    int size = snprintf(bytes, sizeof bytes, "%d", drawn[1]);
    CHECK_EQUAL(write(connection, bytes, (size_t)size), size);
    ssize_t got = read(connection, bytes, sizeof bytes);
    note("answer %.*s\n", (int)got, bytes);
    close(connection);
    return unused;
}
static void *answer(void *argument) {
    int connection = (int)(intptr_t)argument;
    char bytes[64];
    for (ssize_t got; (got = recv(connection, bytes, sizeof bytes, 0)) > 0;) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        note("question %.*s at %ld.%ld\n", (int)got, bytes, (long)now.tv_sec, now.tv_nsec);
        CHECK_EQUAL(send(connection, bytes, (size_t)got, 0), got);
    }
    close(connection);
    return NULL;
}
enum { CLIENTS = 10 };
BODY(talk) {
    int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK_EQUAL(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    CHECK_EQUAL(listen(listener, CLIENTS), 0);
    socklen_t size = sizeof address;
    CHECK_EQUAL(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    note("port %d\n", ntohs(address.sin_port));
    for (int i = 0; i < CLIENTS; i++)
        haft_io_spawn(ask, NULL);
    for (int i = 0; i < CLIENTS; i++) {
        struct sockaddr_in from;
        size = sizeof from;
        int connection = accept(listener, (struct sockaddr *)&from, &size);
        note("%d from %d\n", connection, ntohs(from.sin_port));
        haft_io_spawn(answer, (void *)(intptr_t)connection);
    }
    struct pollfd entry = {listener, POLLIN, 0};
    note("poll %d\n", poll(&entry, 1, 2));
    close(listener);
    return NULL;
}

/* ---- Files ---- */

BODY(write_and_read) {
    char path[80], bytes[32];
    snprintf(path, sizeof path, "%s.text", file);
    int opened = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    note("%d %d\n", opened, (int)write(opened, "some text", 9));
    note("%d\n", (int)lseek(opened, 5, SEEK_SET));
    ssize_t got = read(opened, bytes, sizeof bytes);
    note("%.*s %d\n", (int)got, bytes, fsync(opened));
    struct stat status;
    note("%d\n", fstat(opened, &status));
    note("%lld %lld\n", (long long)status.st_ino, (long long)status.st_mtim.tv_nsec);
    int second = dup(opened);
    note("%d %d %d\n", second, close(opened), close(second));
    note("%d\n", unlink(path));
    note("%d\n", open(path, O_RDONLY));
    note("%d %ld\n", errno, (long)time(NULL));
    char folder[200];
    note("%s\n", getcwd(folder, sizeof folder) != NULL ? folder : "none");
    return NULL;
}

BODY(use_streams) {
    char path[80], folder[80], line[64] = "";
    unsigned drawn = 0;
    snprintf(folder, sizeof folder, "%s.folder", file);
    snprintf(path, sizeof path, "%s.folder/text", file);
    note("%d\n", mkdir(folder, 0700));
    CHECK_EQUAL(getrandom(&drawn, sizeof drawn, 0), sizeof drawn);
    FILE *stream = fopen(path, "w");
    note("%d %d\n", fileno(stream), fprintf(stream, "%u\nsecond\n", drawn));
    note("%ld\n", ftell(stream));
    note("%d\n", fclose(stream));
    stream = fopen(path, "r");
    note("%s", fgets(line, sizeof line, stream));
    note("%ld\n", ftell(stream));
    rewind(stream);
    note("%s", fgets(line, sizeof line, stream));
    note("%s %d\n", fgets(line, sizeof line, stream), feof(stream));
    fclose(stream);
    note("%d\n", fopen("/does/not/exist", "r") == NULL);
    note("%d\n", errno);
    DIR *directory = opendir(folder);
    note("%d\n", dirfd(directory));
    for (int i = 0; i < 2; i++, rewinddir(directory))
        for (const struct dirent *entry; (entry = readdir(directory)) != NULL;)
            note("%s %llu\n", entry->d_name, (unsigned long long)entry->d_ino);
    note("%d\n", closedir(directory));
    directory = opendir("/does/not/exist");
    note("%d %d\n", directory == NULL, errno);
    return NULL;
}

BODY(move_bytes) {
    char path[80], other[80], bytes[16] = "";
    int ends[2];
    off_t from = 1;
    snprintf(path, sizeof path, "%s.folder/text", file);
    snprintf(other, sizeof other, "%s.folder/other", file);
    int first = open(path, O_RDONLY), second = open(other, O_RDWR | O_CREAT | O_TRUNC, 0600);
    note("%d %d\n", first, second);
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    note("sent %d", (int)sendfile(ends[0], first, &from, 4));
    note(" to %d\n", (int)from);
    note("got %d: %.4s\n", (int)read(ends[1], bytes, sizeof bytes), bytes);
    off64_t at = 0;
    note("copied %d", (int)copy_file_range(first, &at, second, NULL, 6, 0));
    note(" to %d\n", (int)at);
    note("%d %.6s\n", (int)pread(second, bytes, sizeof bytes, 0), bytes);
    close(first);
    close(second);
    close(ends[0]);
    close(ends[1]);
    note("%d %d\n", unlink(path), unlink(other));
    return NULL;
}

/* Notes what streams do that append to a file, or do not fit their descriptor. */
BODY(append_and_refuse) {
    char path[80];
    snprintf(path, sizeof path, "%s.text", file);
    FILE *stream = fopen(path, "w");
    fputs("first\n", stream);
    note("%d\n", fclose(stream));
    stream = fopen(path, "a");
    note("begins at %ld\n", ftell(stream));
    note("%d\n", fclose(stream));
    int opened = open(path, O_RDWR);
    stream = fdopen(opened, "a");
    note("begins at %ld, %d\n", ftell(stream), fcntl(opened, F_GETFL) & (O_APPEND | O_ACCMODE));
    note("%d\n", fclose(stream));
    opened = open(path, O_RDONLY);
    note("%d", fdopen(opened, "w") == NULL);
    note(" %d\n", errno);
    note("%d", fdopen(-1, "r") == NULL);
    note(" %d\n", errno);
    close(opened);
    unlink(path);
    return NULL;
}

/* Notes calls with lists that the system refuses, since they are too long or none. */
BODY(give_what_is_no_list) {
    enum { TOO_MANY = 100000 };
    static struct iovec parts[TOO_MANY];
    int ends[2];
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
    note("%d", (int)readv(ends[0], parts, TOO_MANY));
    note(" %d\n", errno);
    volatile int negative = -1;
    note("%d", (int)readv(ends[0], parts, negative));
    note(" %d\n", errno);
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = TOO_MANY}, *volatile none = NULL;
    note("%d", (int)recvmsg(ends[0], &message, MSG_DONTWAIT));
    note(" %d\n", errno);
    note("%d", (int)recvmsg(ends[0], none, 0));
    note(" %d\n", errno);
    close(ends[0]);
    close(ends[1]);
    return NULL;
}

/* Notes an address that is longer than the room for it: the system tells its full size. */
BODY(cut_addresses) {
    struct sockaddr_un own = {.sun_family = AF_UNIX};
    snprintf(own.sun_path, sizeof own.sun_path, "%s.socket", file);
    int made = socket(AF_UNIX, SOCK_DGRAM, 0);
    CHECK_EQUAL(bind(made, (struct sockaddr *)&own, sizeof own), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQUAL(sendto(made, "some", 4, 0, (struct sockaddr *)&own, sizeof own), 4);
    enum { ROOM = 4 };
    struct sockaddr_storage all = {0};
    char bytes[8];
    struct msghdr message = {.msg_iov = &(struct iovec){bytes, sizeof bytes},
                             .msg_iovlen = 1,
                             .msg_name = &all,
                             .msg_namelen = ROOM};
    note("%d", (int)recvmsg(made, &message, 0));
    note(" %.4s %d %.2s\n", bytes, (int)message.msg_namelen, ((char *)&all) + sizeof(sa_family_t));
    socklen_t size = ROOM;
    note("%d", (int)recvfrom(made, bytes, sizeof bytes, 0, (struct sockaddr *)&all, &size));
    note(" %d\n", (int)size);
    size = ROOM;
    note("%d", getsockname(made, (struct sockaddr *)&all, &size));
    note(" %d %.2s\n", (int)size, ((char *)&all) + sizeof(sa_family_t)); /* (qemu writes more) */
    close(made);
    unlink(own.sun_path);
    return NULL;
}

/* Notes the number of a descriptor that a message brings, and of one that is made after it. */
BODY(pass_a_descriptor) {
    int ends[2], pipes[2], got = -1;
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)),
                          .cmsg_level = SOL_SOCKET,
                          .cmsg_type = SCM_RIGHTS}};
    memcpy(CMSG_DATA(&control.head), &ends[0], sizeof ends[0]);
    char byte = 'x';
    struct msghdr message = {.msg_iov = &(struct iovec){&byte, 1},
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    CHECK_EQUAL(sendmsg(ends[1], &message, 0), 1);
    CHECK_EQUAL(recvmsg(ends[0], &message, 0), 1);
    memcpy(&got, CMSG_DATA(&control.head), sizeof got);
    CHECK_EQUAL(pipe(pipes), 0);
    note("got %d, and then %d\n", got, pipes[0]);
    int all[] = {got, pipes[0], pipes[1], ends[0], ends[1]};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        close(all[i]);
    return NULL;
}

/* ---- What the pool does ---- */

static void read_random(void *argument) {
    int opened = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    CHECK_EQUAL(read(opened, argument, sizeof(uint32_t)), sizeof(uint32_t));
    close(opened);
}
BODY(work_in_pool) {
    uint32_t drawn = 0;
    CHECK_EQUAL(haft_io_call_blocking(read_random, &drawn), 0);
    note("drawn %u\n", (unsigned)drawn);
    struct addrinfo *addresses = NULL;
    int code = getaddrinfo("127.0.0.1", "80",
                           &(struct addrinfo){.ai_socktype = SOCK_STREAM, .ai_flags = AI_CANONNAME},
                           &addresses);
    note("names %d, first %s\n", code, code == 0 ? addresses->ai_canonname : "none");
    for (const struct addrinfo *one = addresses; one != NULL; one = one->ai_next)
        note("family %d\n", one->ai_family);
    if (code == 0)
        freeaddrinfo(addresses);
    char host[64] = "";
    struct sockaddr_in local = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    note("%d\n", getnameinfo((struct sockaddr *)&local, sizeof local, host, sizeof host, NULL, 0,
                             NI_NUMERICHOST));
    note("%s\n", host);
    return NULL;
}

static void sockets_are_the_same_again(void) {
    check_repeats(talk);
}
static void files_are_the_same_again_and_not_touched(void) {
    check_repeats(write_and_read);
}
static void streams_and_directories_are_the_same_again(void) {
    check_repeats(use_streams);
    check_repeats(move_bytes);
    char folder[80];
    snprintf(folder, sizeof folder, "%s.folder", file);
    rmdir(folder);
}
/* Checks that a record has the program do what it does without one. */
static void check_is_recorded_as_it_is(void *(*program)(void *)) {
    static char plain[sizeof text];
    CHECK_EQUAL(run(&(haft_io_run_options_t){.threads = 1}, program), 0);
    memcpy(plain, text, sizeof plain);
    check_repeats(program);
    if (strcmp(plain, text) != 0)
        printf("without a record:\n%s\nwith it:\n%s\n", plain, text);
    CHECK(strcmp(plain, text) == 0);
}
static void a_record_changes_no_answer(void) {
    check_is_recorded_as_it_is(append_and_refuse);
    check_is_recorded_as_it_is(give_what_is_no_list);
    check_is_recorded_as_it_is(cut_addresses);
    check_is_recorded_as_it_is(pass_a_descriptor);
}
static void what_the_pool_asks_for_is_the_same_again(void) {
    check_repeats(work_in_pool);
}

int main(void) {
    const char *folder = getenv("TMPDIR");
    snprintf(file, sizeof file, "%.30s/haft-posix-replay.%d", folder != NULL ? folder : "/tmp",
             (int)getpid());
    RUN(sockets_are_the_same_again);
    RUN(files_are_the_same_again_and_not_touched);
    RUN(streams_and_directories_are_the_same_again);
    RUN(a_record_changes_no_answer);
    RUN(what_the_pool_asks_for_is_the_same_again);
    unlink(file);
    return check_end();
}
