/* SPDX-License-Identifier: MIT */
/* A call that is a mistake of the program returns an error number, and reports on the error handler
   what is wrong, with which value, and what to write instead. */
#include "../../../core/tests/teaching.h"

#include "../../../io/tests/check_io.h"
#include <haft/tls.h>

static haft_tls_context_t *clients;

static void contexts_that_cannot_be_are_refused(void) {
    REFUSES(haft_tls_set_verify(clients, (haft_tls_verify_t)7), EINVAL,
            "haft_tls_set_verify: 7 is no way to verify: write HAFT_TLS_NOT_VERIFIED, "
            "HAFT_TLS_IF_GIVEN or HAFT_TLS_REQUIRED");
    const char *const names[] = {"h2", ""};
    REFUSES(haft_tls_set_protocols(clients, names, 2), EINVAL,
            "haft_tls_set_protocols: the protocol '' has 0 bytes: write names of 1 to 255, such as "
            "\"h2\"");
}

static void a_client_without_a_host_is_refused(void) {
    int ends[2];
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    haft_tls_t *stream = haft_tls_new(clients, ends[0], NULL);
    CHECK(stream != NULL);
    REFUSES(haft_tls_handshake(stream), EINVAL,
            "haft_tls_new: a client's stream has no host (NULL): write the name that the server's "
            "certificate has to have");
    haft_tls_close(stream);
    haft_io_close(ends[1]);
}

int main(void) {
    haft_set_error_handler(note_refusal);
    clients = haft_tls_client_context();
    RUN(contexts_that_cannot_be_are_refused);
    RUN(a_client_without_a_host_is_refused);
    haft_tls_context_free(clients);
    return check_end();
}
