/* Messages that are malformed, or that two readers could read in two ways: each gets its status,
   once, and the connection ends; what stands behind it is not taken for a request. Sections are
   those of RFC 9112, or of RFC 9110 where that is named. Over the simulated network with several
   seeds, in one piece and in small ones, and over sockets. */
#include "check_http.h"

#include <locale.h>

typedef struct {
    const char *section, *bytes;
    size_t size;
    int status; /* negative: nothing can come behind it */
} refusal_t;

#define BYTES(text) text, sizeof(text) - 1
#define HOST "Host: here\r\n"
#define GET "GET / HTTP/1.1\r\n"
#define POST "POST / HTTP/1.1\r\n" HOST
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"
#define LONG "~" /* stands for 20000 letters */
#define TEN_FIELDS                                                                                 \
    "a: b\r\na: b\r\na: b\r\na: b\r\na: b\r\na: b\r\na: b\r\na: b\r\na: b\r\na: b\r\n"

static const refusal_t refusals[] = {
    {"2.2 LF alone", BYTES("GET / HTTP/1.1\nHost: here\n\n"), 400},
    {"2.2 LF alone after a field", BYTES(GET "Host: here\nA: b\r\n\r\n"), 400},
    {"2.2 LF alone at the end", BYTES(GET HOST "\n"), 400},
    {"2.2 bare CR in a value", BYTES(GET "Host: here\r\nA: b\rc\r\n\r\n"), 400},
    {"2.2 bare CR in a name", BYTES(GET HOST "A\r: b\r\n\r\n"), 400},
    {"2.2 bare CR in the target", BYTES("GET /\r HTTP/1.1\r\n" HOST "\r\n"), 400},
    {"2.2 CR before CRLF", BYTES(GET "Host: here\r\r\n\r\n"), 400},
    {"2.2 space before the first field", BYTES(GET " " HOST "\r\n"), 400},
    {"3 NUL in the target", BYTES("GET /\0 HTTP/1.1\r\n" HOST "\r\n"), 400},
    {"3 no HTTP", BYTES("Is anybody there?\r\n\r\n"), 400},
    {"3 no target", BYTES("GET HTTP/1.1\r\n" HOST "\r\n"), 400},
    {"3 two spaces", BYTES("GET  / HTTP/1.1\r\n" HOST "\r\n"), 400},
    {"3 two spaces before the version", BYTES("GET /  HTTP/1.1\r\n" HOST "\r\n"), 400},
    {"3 tab", BYTES("GET\t/ HTTP/1.1\r\n" HOST "\r\n"), 400},
    {"3 space at the end", BYTES("GET / HTTP/1.1 \r\n" HOST "\r\n"), 400},
    {"3 four words", BYTES("GET / a HTTP/1.1\r\n" HOST "\r\n"), 400},
    {"3 no version", BYTES("GET /\r\n" HOST "\r\n"), 400},
    {"3 too long", BYTES("GET /" LONG " HTTP/1.1\r\n" HOST "\r\n"), 414},
    {"3 too long, and no end", BYTES("GET /" LONG), -414},
    {"3.1 unknown method", BYTES("BREW / HTTP/1.1\r\n" HOST "\r\n"), 501},
    {"3.1 no token", BYTES("G@T / HTTP/1.1\r\n" HOST "\r\n"), 400},
    {"3.1 small letters", BYTES("get / HTTP/1.1\r\n" HOST "\r\n"), 501},
    {"3.2 fragment", BYTES("GET /#a HTTP/1.1\r\n" HOST "\r\n"), 400},
    {"3.2 byte beyond ASCII", BYTES("GET /\xc3\xb6 HTTP/1.1\r\n" HOST "\r\n"), 400},
    {"3.2.1 no slash", BYTES("GET a HTTP/1.1\r\n" HOST "\r\n"), 400},
    {"3.2.2 no host", BYTES("GET http:///a HTTP/1.1\r\n" HOST "\r\n"), 400},
    {"3.2.2 a port alone", BYTES("GET http://:80/a HTTP/1.1\r\n" HOST "\r\n"), 400},
    {"3.2.2 https without TLS", BYTES("GET https://here/ HTTP/1.1\r\n" HOST "\r\n"), 400},
    {"3.2.2 no Host", BYTES("GET http://here/ HTTP/1.1\r\n\r\n"), 400},
    {"3.2.2 userinfo", BYTES("GET http://a@b/ HTTP/1.1\r\n" HOST "\r\n"), 400},
    {"3.2.2 other scheme", BYTES("GET ftp://here/ HTTP/1.1\r\n" HOST "\r\n"), 400},
    {"3.2.3 CONNECT", BYTES("CONNECT here:80 HTTP/1.1\r\n" HOST "\r\n"), 501},
    {"3.2.3 authority form", BYTES("GET here:80 HTTP/1.1\r\n" HOST "\r\n"), 400},
    {"3.2.4 asterisk form", BYTES("GET * HTTP/1.1\r\n" HOST "\r\n"), 400},
    {"3.2 no Host", BYTES(GET "\r\n"), 400},
    {"3.2 two Hosts", BYTES(GET HOST HOST "\r\n"), 400},
    {"3.2 two in one", BYTES(GET "Host: here, there\r\n\r\n"), 400},
    {"3.2 Host with a path", BYTES(GET "Host: here/there\r\n\r\n"), 400},
    {"3.2 Host with userinfo", BYTES(GET "Host: a@here\r\n\r\n"), 400},
    {"3.2 Host with a port that is none", BYTES(GET "Host: here:http\r\n\r\n"), 400},
    {"3.2 Host with two ports", BYTES(GET "Host: here:80:80\r\n\r\n"), 400},
    {"3.2 Host with half a bracket", BYTES(GET "Host: [::1\r\n\r\n"), 400},
    {"3.2 Host without brackets", BYTES(GET "Host: ::1\r\n\r\n"), 400},
    {"3.2 Host with a name behind brackets", BYTES(GET "Host: [::1]here\r\n\r\n"), 400},
    {"3.2 Host with brackets around a name", BYTES(GET "Host: [zz]\r\n\r\n"), 400},
    {"3.2 Host with brackets around a list", BYTES(GET "Host: [a,b!]\r\n\r\n"), 400},
    {"3.2 Host with an address too short", BYTES(GET "Host: [::1:]\r\n\r\n"), 400},
    {"3.2 Host with an address of the future", BYTES(GET "Host: [v1.a]\r\n\r\n"), 400},
    {"3.2 Host with an empty zone", BYTES(GET "Host: [fe80::1%]\r\n\r\n"), 400},
    {"3.2 Host with a byte that is none", BYTES(GET "Host: a%zz\r\n\r\n"), 400},
    {"3.2 Host with half a byte", BYTES(GET "Host: a%4\r\n\r\n"), 400},
    {"3.2.2 an address that is none", BYTES("GET http://[zz]/ HTTP/1.1\r\n" HOST "\r\n"), 400},
    {"3.2.2 port that is none", BYTES("GET http://here:x/ HTTP/1.1\r\n" HOST "\r\n"), 400},
    {"2.3 HTTP/2.0", BYTES("GET / HTTP/2.0\r\n" HOST "\r\n"), 505},
    {"2.3 HTTP/1.10", BYTES("GET / HTTP/1.10\r\n" HOST "\r\n"), 400},
    {"2.3 HTTP/0.9", BYTES("GET / HTTP/0.9\r\n" HOST "\r\n"), 505},
    {"2.3 HTTP/1.10", BYTES("GET / HTTP/1.10\r\n" HOST "\r\n"), 400},
    {"2.3 small letters", BYTES("GET / http/1.1\r\n" HOST "\r\n"), 400},
    {"5 no colon", BYTES(GET HOST "A\r\n\r\n"), 400},
    {"5 no name", BYTES(GET HOST ": b\r\n\r\n"), 400},
    {"5 name with a space", BYTES(GET HOST "A b: c\r\n\r\n"), 400},
    {"5 name beyond ASCII", BYTES(GET HOST "\xc3\xb6: c\r\n\r\n"), 400},
    {"5 name with NUL", BYTES(GET HOST "A\0: c\r\n\r\n"), 400},
    {"5 value with NUL", BYTES(GET HOST "A: b\0c\r\n\r\n"), 400},
    {"5 value with a control", BYTES(GET HOST "A: b\1c\r\n\r\n"), 400},
    {"5 value with DEL", BYTES(GET HOST "A: b\177c\r\n\r\n"), 400},
    {"5 too many fields",
     BYTES(GET HOST TEN_FIELDS TEN_FIELDS TEN_FIELDS TEN_FIELDS TEN_FIELDS TEN_FIELDS TEN_FIELDS
               TEN_FIELDS TEN_FIELDS TEN_FIELDS "\r\n"),
     431},
    {"5 too long", BYTES(GET HOST "A: " LONG "\r\n\r\n"), 431},
    {"5.1 space before the colon", BYTES(GET "Host : here\r\n\r\n"), 400},
    {"5.1 tab before the colon", BYTES(GET HOST "A\t: b\r\n\r\n"), 400},
    {"5.2 folded line", BYTES(GET HOST "A: b\r\n c\r\n\r\n"), 400},
    {"5.2 folded by a tab", BYTES(GET HOST "A: b\r\n\tc\r\n\r\n"), 400},
    {"5.2 folded length", BYTES(POST "Content-Length:\r\n 3\r\n\r\nabc"), 400},
    {"6.1 length and coding",
     BYTES(POST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400},
    {"6.1 coding and length",
     BYTES(POST "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"), 400},
    {"6.1 unknown coding", BYTES(POST "Transfer-Encoding: gzip, chunked\r\n\r\n"), 501},
    {"6.1 unknown coding, in capitals", BYTES(POST "TRANSFER-ENCODING: GZIP, CHUNKED\r\n\r\n"),
     501},
    {"6.1 unknown coding alone", BYTES(POST "Transfer-Encoding: gzip\r\n\r\n"), 400},
    {"6.1 chunked is not last", BYTES(POST "Transfer-Encoding: chunked, gzip\r\n\r\n"), 400},
    {"6.1 chunked twice", BYTES(POST "Transfer-Encoding: chunked, chunked\r\n\r\n"), 400},
    {"6.1 chunked in two fields",
     BYTES(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400},
    {"6.1 two fields", BYTES(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: a\r\n\r\n"),
     400},
    {"6.1 identity", BYTES(POST "Transfer-Encoding: identity\r\n\r\n"), 400},
    {"6.1 empty coding", BYTES(POST "Transfer-Encoding: \r\n\r\n"), 400},
    {"6.1 with a byte before", BYTES(POST "Transfer-Encoding: \vchunked\r\n\r\n0\r\n\r\n"), 400},
    {"6.1 nearly chunked", BYTES(POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"), 400},
    {"6.1 with a parameter", BYTES(POST "Transfer-Encoding: chunked;a=b\r\n\r\n0\r\n\r\n"), 400},
    {"6.1 quoted", BYTES(POST "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n"), 400},
    {"6.1 HTTP/1.0",
     BYTES("POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400},
    {"6.2 two lengths", BYTES(POST "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"), 400},
    {"6.2 one length twice", BYTES(POST "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"), 400},
    {"6.2 a list", BYTES(POST "Content-Length: 3, 3\r\n\r\nabc"), 400},
    {"6.2 a sign", BYTES(POST "Content-Length: +3\r\n\r\nabc"), 400},
    {"6.2 negative", BYTES(POST "Content-Length: -3\r\n\r\nabc"), 400},
    {"6.2 hexadecimal", BYTES(POST "Content-Length: 0x3\r\n\r\nabc"), 400},
    {"6.2 a space inside", BYTES(POST "Content-Length: 1 1\r\n\r\nabc"), 400},
    {"6.2 empty", BYTES(POST "Content-Length: \r\n\r\n"), 400},
    {"6.2 too large for any number", BYTES(POST "Content-Length: 18446744073709551616\r\n\r\n"),
     400},
    {"6.2 larger than the limit", BYTES(POST "Content-Length: 2000000\r\n\r\nabc"), 413},
    {"6.2 largest number", BYTES(POST "Content-Length: 18446744073709551615\r\n\r\nabc"), 413},
    {"6.3 ends too soon", BYTES(POST "Content-Length: 3\r\n\r\nab"), -400},
    {"7.1 no size", BYTES(CHUNKED "\r\nabc\r\n0\r\n\r\n"), 400},
    {"7.1 no hexadecimal", BYTES(CHUNKED "g\r\nabc\r\n0\r\n\r\n"), 400},
    {"7.1 a sign", BYTES(CHUNKED "+3\r\nabc\r\n0\r\n\r\n"), 400},
    {"7.1 0x", BYTES(CHUNKED "0x3\r\nabc\r\n0\r\n\r\n"), 400},
    {"7.1 a space before", BYTES(CHUNKED " 3\r\nabc\r\n0\r\n\r\n"), 400},
    {"7.1 a space behind", BYTES(CHUNKED "3 \r\nabc\r\n0\r\n\r\n"), 400},
    {"7.1 too large for any number", BYTES(CHUNKED "10000000000000003\r\nabc\r\n0\r\n\r\n"), 400},
    {"7.1 larger than the limit", BYTES(CHUNKED "f000000\r\naaa"), -400},
    {"7.1 longer than its size", BYTES(CHUNKED "2\r\nabc\r\n0\r\n\r\n"), 400},
    {"7.1 size ends with LF", BYTES(CHUNKED "3\nabc\r\n0\r\n\r\n"), 400},
    {"7.1 data ends with LF", BYTES(CHUNKED "3\r\nabc\n0\r\n\r\n"), 400},
    {"7.1 data ends with CR", BYTES(CHUNKED "3\r\nabc\r0\r\n\r\n"), 400},
    {"7.1 ends with LF", BYTES(CHUNKED "0\r\n\n"), 400},
    {"7.1 never ends", BYTES(CHUNKED "3\r\nabc\r\n"), -400},
    {"7.1.1 LF in an extension", BYTES(CHUNKED "3;a\nb\r\nabc\r\n0\r\n\r\n"), 400},
    {"7.1.1 CR in an extension", BYTES(CHUNKED "3;a\rb\r\nabc\r\n0\r\n\r\n"), 400},
    {"7.1.1 NUL in an extension", BYTES(CHUNKED "3;a\0b\r\nabc\r\n0\r\n\r\n"), 400},
    {"7.1.1 long extension", BYTES(CHUNKED "3;" LONG "\r\nabc\r\n0\r\n\r\n"), 400},
    {"7.1.2 LF alone in trailers", BYTES(CHUNKED "0\r\nA: b\n\r\n"), 400},
    {"7.1.2 CR in a trailer", BYTES(CHUNKED "0\r\nA: b\rc\r\n\r\n"), 400},
    {"7.1.2 folded trailer", BYTES(CHUNKED "0\r\nA: b\r\n c\r\n\r\n"), 400},
    {"7.1.2 folded first trailer", BYTES(CHUNKED "0\r\n A: b\r\n\r\n"), 400},
    {"7.1.2 no name", BYTES(CHUNKED "0\r\nA: b\r\n: c\r\n\r\n"), 400},
    {"7.1.2 no colon", BYTES(CHUNKED "0\r\nA\r\n\r\n"), 400},
    {"7.1.2 long trailers", BYTES(CHUNKED "0\r\nA: " LONG "\r\n\r\n"), 400},
    {"9110, 10.1.1", BYTES(POST "Expect: miracles\r\nContent-Length: 3\r\n\r\nabc"), 417},
    {"a path with NUL", BYTES("GET /%00 HTTP/1.1\r\n" HOST "\r\n"), 400},
    {"a path with half a byte", BYTES("GET /%4 HTTP/1.1\r\n" HOST "\r\n"), 400},
};

static int answer(haft_http_request_t *request, void *unused) {
    char *body;
    (void)unused;
    ssize_t size = haft_http_request_body(request, &body);
    return size < 0 ? (int)size : haft_http_answer_text(request, 200, body);
}

static haft_http_server_t *server;
static bool failed;

static size_t put_bytes(const refusal_t *refusal, char *into) {
    static const char behind[] = "GET /behind HTTP/1.1\r\n" HOST "\r\n";
    size_t size = 0;
    for (size_t i = 0; i < refusal->size; i++) {
        size_t times = refusal->bytes[i] == '~' ? 20000 : 1;
        memset(into + size, times == 1 ? refusal->bytes[i] : 'a', times);
        size += times;
    }
    memcpy(into + size, behind, sizeof behind - 1);
    return size + (refusal->status < 0 ? 0 : sizeof behind - 1);
}

static void expect(const refusal_t *refusal, bool stays) {
    static char bytes[40000], heard[100000];
    char status[40];
    size_t size = put_bytes(refusal, bytes);
    stays = stays && refusal->status > 0;
    say_and_hear(haft_http_server_port(server), bytes, size, stays, heard, sizeof heard);
    snprintf(status, sizeof status, "HTTP/1.1 %d ", abs(refusal->status));
    if (strncmp(heard, status, strlen(status)) != 0 || times_in(heard, "HTTP/1.1 ") != 1 ||
        strstr(heard, "Connection: close\r\n") == NULL) {
        fprintf(stderr, "%s, %s: %d, but got\n%s\n", refusal->section, stays ? "stays" : "leaves",
                refusal->status, heard);
        failed = true;
    }
}

static void *expect_all(void *unused) {
    start_server(server);
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        expect(&refusals[i], i % 2 == 0);
    haft_http_server_stop(server);
    return unused;
}

int main(void) {
    setlocale(LC_ALL, ""); /* of locale.sh */
    server = haft_http_server_new();
    CHECK(haft_http_server_get(server, "/", answer, NULL) == 0);
    CHECK(haft_http_server_get(server, "/behind", answer, NULL) == 0);
    CHECK(haft_http_server_post(server, "/", answer, NULL) == 0);
    haft_io_simulation_options_t how = {.network = true};
    for (how.seed = 1; how.seed <= 4; how.seed++) {
        how.short_counts = how.seed % 2 == 0;
        CHECK(haft_io_simulate_with(&how, expect_all, NULL) == 0);
    }
    CHECK(haft_io_run(expect_all, NULL) == 0);
    haft_http_server_free(server);
    return failed;
}
/* SPDX-License-Identifier: MIT */
