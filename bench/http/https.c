/* SPDX-License-Identifier: MIT */
/* `https FOLDER PORT`: over TLS with FOLDER's chain.pem and key.pem, "x" for /small, and a mebibyte
   for /large. HAFT_IO_BACKEND chooses the back end. */
#include <haft/http.h>
#include <haft/tls.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = 1024 * 1024 };

static char body[LARGE];

static int answer(haft_http_request_t *request, void *size) {
    return haft_http_answer(request, 200, "text/plain", body, *(const size_t *)size);
}

int main(int count, char **arguments) {
    static const size_t small = 1, large = LARGE;
    char chain[4096], key[4096];
    if (count != 3)
        return 2;
    memset(body, 'x', sizeof body);
    snprintf(chain, sizeof chain, "%s/chain.pem", arguments[1]);
    snprintf(key, sizeof key, "%s/key.pem", arguments[1]);
    haft_tls_context_t *tls = haft_tls_server_context();
    if (tls == NULL || haft_tls_add_certificate(tls, chain, key) != 0)
        return 1;
    haft_http_server_t *server = haft_http_server_new();
    haft_http_server_set_tls(server, tls);
    haft_http_server_get(server, "/small", answer, (void *)&small);
    haft_http_server_get(server, "/large", answer, (void *)&large);
    haft_http_run_options_t options = {.host = "127.0.0.1", .port = (uint16_t)atoi(arguments[2])};
    return haft_http_server_run_with(&options, server) != 0;
}
