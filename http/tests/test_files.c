/* SPDX-License-Identifier: MIT */
/* Static files: ranges, preconditions, types, encodings, folders, and paths that would leave the
   folder. Each case runs over the simulated network, over sockets, and once more where the
   system refuses openat2(2). */
#include "check_http.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static haft_http_server_t *server;
static char folder[] = "/tmp/haft_files_XXXXXX";

/* ---- The folder ---- */

enum { MUCH = 200000 };
static char much[MUCH + 1];
static const struct timespec dates[2] = {{784111777, 0}, {784111777, 0}}; /* the date of RFC 9110 */

static void put(const char *name, const char *bytes) {
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    CHECK(file >= 0 && write(file, bytes, strlen(bytes)) == (ssize_t)strlen(bytes));
    CHECK(futimens(file, dates) == 0);
    close(file);
}

static void put_folder(const char *name) {
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK(mkdir(path, 0755) == 0);
}

static void put_link(const char *name, const char *target) {
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK(symlink(target, path) == 0);
}

static void make_folder(void) {
    CHECK(mkdtemp(folder) != NULL);
    for (size_t i = 0; i < MUCH; i++)
        much[i] = (char)('a' + i % 26);
    put_folder("public");
    put_folder("public/deep");
    put_folder("public/empty");
    put("secret.txt", "SECRET");
    put("public/index.html", "<p>home");
    put("public/hello.txt", "0123456789");
    put("public/nothing.txt", "");
    put("public/much.bin", much);
    put("public/page.html", "<p>plain");
    put("public/page.html.gz", "gzipped");
    put("public/page.html.br", "by brotli");
    put("public/only.js", "script");
    put("public/only.js.gz", "gzipped");
    put("public/.hidden", "SECRET");
    put("public/a b%.xyz", "odd");
    put("public/deep/index.html", "<p>deep");
    put("public/deep/file.css", "p{}");
    put_link("public/out", "../secret.txt");
    put_link("public/root", "/etc/passwd");
    put_link("public/within", "hello.txt");
    char path[200];
    snprintf(path, sizeof path, "%s/public/fifo", folder);
    CHECK(mkfifo(path, 0644) == 0);
}

static void remove_folder(void) {
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0);
}

/* ---- Talks ---- */

#define TAG "\"2ebc98a1.0-a\""
#define MODIFIED "Sun, 06 Nov 1994 08:49:37 GMT"
#define HELLO(fields) "GET /static/hello.txt" WITH(fields)

static const talk_t talks[] = {
    {"GET /static/hello.txt" END,
     {"200 OK", "Content-Length: 10\r\n", "Content-Type: text/plain; charset=utf-8\r\n",
      "ETag: " TAG "\r\nLast-Modified: " MODIFIED "\r\nAccept-Ranges: bytes\r\n",
      "\r\n\r\n0123456789"},
     1},
    {"HEAD /static/hello.txt" END "GET /static/nothing.txt" END,
     {"Content-Length: 10\r\n", "\r\n\r\nHTTP/1.1 200", "Content-Length: 0\r\n"},
     2},
    {"GET /static/much.bin" END "GET /static/hello.txt" END,
     {"Content-Length: 200000\r\n", "Content-Type: application/octet-stream", "0123456789"},
     2},
    {"HEAD /static/much.bin" END "GET /static/hello.txt" END, {"200000\r\n", "0123456789"}, 2},
    {"POST /static/hello.txt" END, {"405 Method", "Allow: OPTIONS, GET, HEAD\r\n"}, 1},
    {"GET /static/a%20b%25.xyz" END, {"octet-stream", "odd"}, 1},
    {"GET /static/deep/file.css" END, {"text/css; charset=utf-8", "p{}"}, 1},
    {"GET /handler" END, {"200 OK", "Content-Type: text/odd\r\n", "0123456789"}, 1},
    {"GET /handler" WITH("Range: bytes=2-3"), {"206", "\r\n\r\n23"}, 1},

    /* Folders. */
    {"GET /static/" END, {"200 OK", "text/html", "<p>home"}, 1},
    {"GET /static" END, {"301 Moved", "Location: /static/\r\n"}, 1},
    {"GET /static/deep?a=b" END, {"301 Moved", "Location: /static/deep/?a=b\r\n"}, 1},
    {"GET /static/deep/" END, {"<p>deep"}, 1},
    {"GET /static/empty/" END, {"404"}, 1},
    {"GET /static/hello.txt/" END, {"404"}, 1},
    {"GET //deep" END, {"404"}, 1},
    {"GET /hello.txt" END, {"200 OK", "0123456789"}, 1},

    /* Ranges (14.2). */
    {HELLO("Range: bytes=2-4"),
     {"206 Partial", "Content-Length: 3\r\n", "Content-Range: bytes 2-4/10\r\n", "\r\n\r\n234"},
     1},
    {HELLO("Range: bytes=7-"), {"206", "bytes 7-9/10", "\r\n\r\n789"}, 1},
    {HELLO("Range: bytes=-2"), {"206", "bytes 8-9/10", "\r\n\r\n89"}, 1},
    {HELLO("Range: bytes=-20"), {"206", "bytes 0-9/10", "\r\n\r\n0123456789"}, 1},
    {HELLO("Range: bytes=9-999999999999999999999999"), {"206", "bytes 9-9/10", "\r\n\r\n9"}, 1},
    {HELLO("Range: bytes=10-"), {"416 Range", "Content-Range: bytes */10\r\n"}, 1},
    {HELLO("Range: bytes=-0"), {"416 Range"}, 1},
    {HELLO("Range: bytes=4-2"), {"200 OK", "0123456789"}, 1},
    {"GET /static/hello.txt" WITH("Range: bytes=0-1, 3-4,-1") "GET /static/hello.txt" END,
     {"206 Partial", "Content-Type: multipart/byteranges; boundary=",
      "Content-Type: text/plain; charset=utf-8\r\nContent-Range: bytes 0-1/10\r\n\r\n01\r\n--",
      "Content-Range: bytes 3-4/10\r\n\r\n34\r\n--", "bytes 9-9/10\r\n\r\n9\r\n--"},
     2},
    {HELLO("Range: bytes=0-1,20-30"), {"206", "Content-Range: bytes 0-1/10", "\r\n\r\n01"}, 1},
    {HELLO("Range: bytes=20-,30-"), {"416", "bytes */10"}, 1},
    {HELLO("Range: bytes=0-3,3-4"), {"200 OK", "0123456789"}, 1},
    {HELLO("Range: bytes=3-4,0-1"), {"200 OK", "0123456789"}, 1},
    {HELLO("Range: bytes=0-1,x"), {"200 OK", "0123456789"}, 1},
    {"GET /static/much.bin" WITH("Range: bytes=0-0,100000-199999") "GET /static/hello.txt" END,
     {"206", "bytes 0-0/", "bytes 100000-199999/", "200 OK", "0123456789"},
     2},
    {HELLO("Range: bytes=x"), {"200 OK", "0123456789"}, 1},
    {HELLO("Range: bytes=-"), {"200 OK", "0123456789"}, 1},
    {HELLO("Range: lines=0-1"), {"200 OK", "0123456789"}, 1},
    {"HEAD /static/hello.txt" WITH("Range: bytes=2-4"), {"200 OK", "Content-Length: 10"}, 1},
    {"GET /static/nothing.txt" WITH("Range: bytes=-1"), {"200 OK", "Content-Length: 0"}, 1},
    {"GET /static/nothing.txt" WITH("Range: bytes=0-"), {"416"}, 1},
    {"GET /static/much.bin" WITH("Range: bytes=100000-199999") "GET /static/hello.txt" END,
     {"206", "Content-Length: 100000\r\n", "bytes 100000-199999/200000", "0123456789"},
     2},
    {HELLO("Range: bytes=2-4\r\nIf-Range: " TAG), {"206"}, 1},
    {HELLO("Range: bytes=2-4\r\nIf-Range: W/" TAG), {"200 OK"}, 1},
    {HELLO("Range: bytes=2-4\r\nIf-Range: \"other\""), {"200 OK"}, 1},
    {HELLO("Range: bytes=2-4\r\nIf-Range: \"other\", " TAG), {"200 OK"}, 1}, /* one validator */
    {HELLO("Range: bytes=2-4\r\nIf-Range: " TAG ", \"other\""), {"200 OK"}, 1},
    {HELLO("Range: bytes=2-4\r\nIf-Range: " TAG "\r\nIf-Range: " TAG), {"200 OK"}, 1},
    {HELLO("Range: bytes=2-4\r\nIf-Range: " MODIFIED), {"206"}, 1},
    {HELLO("Range: bytes=2-4\r\nIf-Range: Sun, 06 Nov 1994 08:49:38 GMT"), {"200 OK"}, 1},

    /* Preconditions (13.2.2). */
    {HELLO("If-None-Match: " TAG), {"304 Not Modified", "ETag: " TAG "\r\n"}, 1},
    {HELLO("If-None-Match: \"a,b\", W/" TAG) "GET /static/hello.txt" END, {"304", "200 OK"}, 2},
    {HELLO("If-None-Match: *"), {"304"}, 1},
    {HELLO("If-None-Match: \"other\"\r\nIf-Modified-Since: " MODIFIED), {"200 OK"}, 1},
    {HELLO("If-None-Match: other"), {"200 OK"}, 1},
    {"HEAD /static/hello.txt" WITH("If-None-Match: " TAG), {"304"}, 1},
    {"POST /handler" WITH("If-None-Match: " TAG), {"412"}, 1},
    {HELLO("If-Modified-Since: " MODIFIED), {"304"}, 1},
    {HELLO("If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT"), {"304"}, 1},
    {HELLO("If-Modified-Since: Sun Nov  6 08:49:37 1994"), {"304"}, 1},
    {HELLO("If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT"), {"200 OK"}, 1},
    {HELLO("If-Modified-Since: yesterday"), {"200 OK"}, 1},
    {HELLO("If-Match: " TAG ", \"other\""), {"200 OK"}, 1},
    {HELLO("If-Match: *"), {"200 OK"}, 1},
    {HELLO("If-Match: \"other\""), {"412 Precondition Failed"}, 1},
    {HELLO("If-Match: W/" TAG), {"412"}, 1},
    {HELLO("If-Unmodified-Since: " MODIFIED), {"200 OK"}, 1},
    {HELLO("If-Unmodified-Since: Sun, 06 Nov 1994 08:49:36 GMT"), {"412"}, 1},

    /* Encodings (12.5.3). */
    {"GET /packed/page.html" END, {"Vary: Accept-Encoding\r\n", "<p>plain"}, 1},
    {"GET /packed/page.html" WITH("Accept-Encoding: gzip, deflate, br"),
     {"Content-Type: text/html; charset=utf-8\r\n", "Vary: Accept-Encoding\r\n",
      "Cache-Control: max-age=60\r\n", "Content-Encoding: br\r\n", "by brotli"},
     1},
    {"GET /packed/page.html" WITH("Accept-Encoding: gzip"),
     {"-7-gzip\"", "Content-Encoding: gzip\r\n", "gzipped"},
     1},
    {"GET /packed/page.html" WITH("Accept-Encoding: *;q=0, GZIP;Q=0.001"), {"gzipped"}, 1},
    {"GET /packed/page.html" WITH("Accept-Encoding: *, br;q=0.000"), {"gzipped"}, 1},
    {"GET /packed/page.html" WITH("Accept-Encoding: br;q=0, gzip;q=0"), {"<p>plain"}, 1},
    {"GET /packed/only.js" WITH("Accept-Encoding: br, gzip"), {"javascript", "gzipped"}, 1},
    {"GET /packed/hello.txt" WITH("Accept-Encoding: br, gzip"), {"Vary", "0123456789"}, 1},
    {"GET /static/page.html" WITH("Accept-Encoding: gzip"), {"<p>plain"}, 1},
    {"GET /packed/page.html" WITH("Accept-Encoding: gzip\r\nIf-None-Match: \"2ebc98a1.0-7-gzip\""),
     {"304", "Vary: Accept-Encoding"},
     1},

    /* Paths that would leave the folder, or name what is none of its files. */
    {"GET /static/../secret.txt" END, {"404"}, 1},
    {"GET /static/%2e%2e/secret.txt" END, {"404"}, 1},
    {"GET /static/..%2fsecret.txt" END, {"404"}, 1},
    {"GET /static/deep/../../secret.txt" END, {"404"}, 1},
    {"GET /static/%2fetc/passwd" END, {"404"}, 1},
    {"GET /static//etc/passwd" END, {"404"}, 1},
    {"GET /static/./hello.txt" END, {"404"}, 1},
    {"GET /static/hello.txt%00.css" END, {"400"}, 1},
    {"GET /static/out" END, {"404"}, 1},
    {"GET /static/root" END, {"404"}, 1},
    {"GET /static/fifo" END, {"404"}, 1},
    {"GET /static/missing" END, {"404"}, 1},
    {"GET /static/.hidden" END, {"404"}, 1},
    {"GET /packed/..." END, {"404"}, 1},
};

static bool follows_links; /* those that stay in the folder */

static void *talk_all(void *unused) {
    uint16_t port = start_server(server);
    for (size_t i = 0; i < sizeof talks / sizeof *talks; i++)
        run_talk(port, &talks[i], "SECRET");
    talk_t link = {"GET /static/within" END, {follows_links ? "0123456789" : "404"}, 1};
    run_talk(port, &link, NULL);

    static char heard[MUCH + 1000];
    const char *says = "GET /static/much.bin" END;
    size_t size = say_and_hear(port, says, strlen(says), false, heard, sizeof heard);
    CHECK(size > MUCH && strcmp(heard + size - MUCH, much) == 0);
    haft_http_server_stop(server);
    return unused;
}

/* A client that goes away in the middle of a file ends its connection, and not the process. */
static void *go_away(void *unused) {
    start_server(server);
    for (int i = 0; i < 3; i++) {
        HAFT_IO_SCOPED_DESCRIPTOR int connection =
            haft_io_connect_tcp("127.0.0.1", haft_http_server_port(server));
        for (int request = 0; request < 50; request++)
            haft_io_write_all(connection, "GET /static/much.bin" END,
                              strlen("GET /static/much.bin" END));
        haft_io_shutdown(connection,
                         SHUT_WR); /* then a reset is EPIPE for the server, not ECONNRESET */
        char some[100];
        CHECK(haft_io_read(connection, some, sizeof some) > 0);
    }
    haft_http_server_stop(server);
    return unused;
}

/* ---- Handlers ---- */

static int answer_by_handler(haft_http_request_t *request, void *unused) {
    (void)unused;
    char path[200];
    snprintf(path, sizeof path, "%s/public/hello.txt", folder);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    int code = haft_http_answer_file(request, file, "text/odd");
    close(file);
    return code;
}

static void make_server(void) {
    char public[200];
    snprintf(public, sizeof public, "%s/public", folder);
    server = haft_http_server_new();
    CHECK(haft_http_server_serve_files(server, "/static", public) == 0);
    CHECK(haft_http_server_serve_files_with(
              &(haft_http_files_options_t){
                  .precompressed = true, .cache_control = "max-age=60", .dot_files = true},
              server, "/packed/", public) == 0);
    CHECK(haft_http_server_serve_files(server, "/", public) == 0);
    CHECK(haft_http_server_serve_files(server, "/none", "/no/such/folder") == -ENOENT);
    CHECK(haft_http_server_serve_files(server, "/static", public) == -EEXIST);
    haft_http_server_get(server, "/handler", answer_by_handler, NULL);
    haft_http_server_post(server, "/handler", answer_by_handler, NULL);
}

/* False: the system takes no filter, or Valgrind does not. */
static bool refuse_openat2(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 437, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

static bool has_openat2(void) {
    uint64_t how[3] = {O_RDONLY | O_CLOEXEC, 0, 0};
    long file = syscall(437, AT_FDCWD, folder, how, sizeof how);
    if (file >= 0)
        close((int)file);
    return file >= 0;
}

static void run_all(void) {
    simulate_seeds(talk_all);
    for (int threads = 1; threads <= 2; threads++) {
        haft_io_run_options_t how = {.threads = threads};
        CHECK(haft_io_run_with(&how, talk_all, NULL) == 0);
        CHECK(haft_io_run_with(&how, go_away, NULL) == 0);
    }
}

int main(void) {
    make_folder();
    make_server();
    follows_links = has_openat2();
    run_all();
    if (follows_links && refuse_openat2()) {
        follows_links = false;
        run_all();
    }
    haft_http_server_free(server);
    remove_folder();
    return 0;
}
