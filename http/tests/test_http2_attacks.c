/* SPDX-License-Identifier: MIT */
/* Mistakes that a client of HTTP/2 can make: the server's side of http2_attacks.h. */
#include "check_http.h"
#include "http2_attacks.h"

static haft_http_server_t *server;

/* Reads nothing, and holds the request open until the client has gone. */
static int sleep_long(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_io_sleep(60 * HAFT_IO_SECOND);
    return haft_http_answer_text(request, 200, "slept");
}

static int open_connection(void) {
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
    int descriptor = haft_io_connect_tcp("127.0.0.1", haft_http_server_port(server));
    CHECK(descriptor >= 0);
    CHECK(haft_io_write_all(descriptor, preface, sizeof preface) == 0);
    return descriptor;
}

static void *attack_server(void *unused) {
    bool holds = true;
    start_server(server);
    for (int i = 0; i < HTTP2_ATTACKS; i++) {
        if ((http2_attacks[i].victims & HTTP2_SERVER) == 0)
            continue;
        http2_heard_t heard;
        HAFT_IO_SCOPED_DESCRIPTOR int descriptor = open_connection();
        http2_attack(descriptor, &http2_attacks[i], HTTP2_SERVER, &heard);
        holds &= http2_judge(&http2_attacks[i], HTTP2_SERVER, &heard);
    }
    CHECK(holds);
    haft_http_server_stop(server);
    return unused;
}

int main(void) {
    server = haft_http_server_new();
    haft_http_server_use(server, haft_http_request_cancel_with_client, NULL);
    haft_http_server_get(server, "/", sleep_long, NULL);
    simulate_seeds(attack_server);
    CHECK(haft_io_run(attack_server, NULL) == 0);
    haft_http_server_free(server);
    return 0;
}
