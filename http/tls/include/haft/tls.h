/* SPDX-License-Identifier: MIT */
/*
 * Haft TLS: encrypted streams for the tasks of haft/io.h, for C, by OpenSSL.
 *
 *     #include <haft/tls.h>
 *
 *     static haft_tls_context_t *context;
 *
 *     static void *echo(void *connection) {
 *         int descriptor = (int)(intptr_t)connection;
 *         HAFT_TLS_SCOPED haft_tls_t *stream = haft_tls_new(context, descriptor, NULL);
 *         char buffer[4096];
 *         ssize_t got;
 *         while ((got = haft_tls_read(stream, buffer, sizeof buffer)) > 0)
 *             if ((got = haft_tls_write_all(stream, buffer, (size_t)got)) != 0)
 *                 break;
 *         if (got != 0 || haft_tls_shutdown(stream) != 0)
 *             fprintf(stderr, "%s\n", haft_tls_failure(stream));
 *         return NULL;
 *     }
 *     static void *serve(void *argument) {
 *         int listener = haft_io_listen_tcp("::", 7443, 0), connection;
 *         while ((connection = haft_io_accept(listener)) >= 0)
 *             haft_io_spawn(echo, (void *)(intptr_t)connection);
 *         return argument;
 *     }
 *     int main(void) {
 *         context = haft_tls_server_context();
 *         if (haft_tls_add_certificate(context, "chain.pem", "key.pem") != 0) {
 *             fprintf(stderr, "%s\n", haft_tls_context_failure(context));
 *             return 1;
 *         }
 *         return haft_io_run(serve, NULL);
 *     }
 *
 * A context has the common settings of the streams made with it: certificates, authorities that
 * they trust, protocols. A stream encrypts what goes over a connected descriptor, by TLS 1.2 or
 * 1.3. Its waits are those of haft_io_read and haft_io_write: cancels, deadlines and scopes end
 * them alike, and a stream whose wait was ended by a deadline goes on where it was.
 *
 * Sections: contexts; streams; what was agreed on; errors.
 *
 * Results: 0, or a count, or a negative error number, as in haft/io.h, or one of the codes of
 * section "errors". haft_tls_failure describes in words what has gone wrong.
 *
 * Threads: a context is set up by one task or thread at a time, also while others use it for
 * streams. One task may read from a stream while others write to it.
 *
 * Stacks: OpenSSL runs on a stack of its own, one for each thread, so that streams may be used on
 * tasks with small stacks.
 *
 * Link with pkg-config haft-tls; compile C with -fexceptions, as for haft/io.h.
 */
#ifndef HAFT_TLS_H
#define HAFT_TLS_H

#include <haft/io.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct haft_tls_context haft_tls_context_t; /* also in haft/http.h */
typedef struct haft_tls haft_tls_t;

/* ---- Contexts ------------------------------------------------------------------------------- */

/*
 * A context of servers has no certificate yet, and asks its clients for none. A context of clients
 * trusts the authorities that the system trusts (SSL_CERT_FILE and SSL_CERT_DIR in the environment
 * name others), and verifies each server's chain and its host, which must be in the certificate's
 * subjectAltName (RFC 9110, section 4.3.4). Both agree on TLS 1.2 only with keys by ECDHE and
 * ciphers that authenticate (AES-GCM, ChaCha20-Poly1305; RFC 9325, section 4.2), of those that the
 * system's configuration allows. NULL: no memory.
 */
haft_tls_context_t *haft_tls_server_context(void);
haft_tls_context_t *haft_tls_client_context(void);
/* Streams that were made with the context may go on. Does nothing for NULL. */
void haft_tls_context_free(haft_tls_context_t *context);

/*
 * Adds a certificate: `chain` is a file in PEM format with the certificate and those that lead
 * from it to an authority, `key` one with its private key. A server with several certificates
 * chooses by the name that the client asks for (SNI): those that are for this name, or else the
 * first that was added. A client shows its first certificate to servers that ask for one.
 *
 * The files are read in the pool of blocking work (haft_io_call_blocking). Errors: that of opening
 * a file, -EINVAL if a file has no certificate or no key, or the two do not belong together,
 * -ENOMEM. haft_tls_context_failure names the file. After an error the context is as before.
 */
int haft_tls_add_certificate(haft_tls_context_t *context, const char *chain, const char *key);

/* How many certificates it has. */
size_t haft_tls_certificate_count(const haft_tls_context_t *context);
/* Whether it is one of haft_tls_server_context. */
bool haft_tls_is_for_servers(const haft_tls_context_t *context);

/* Reads the files of all certificates again. Handshakes that begin afterwards use what they have
   now; streams go on as they are. After an error, which is one of haft_tls_add_certificate, the
   certificates stay what they were. */
int haft_tls_reload(haft_tls_context_t *context);

/* Trusts the authorities in this file in PEM format, too. Errors are those of
   haft_tls_add_certificate. */
int haft_tls_trust(haft_tls_context_t *context, const char *authorities);
/* Trusts no authorities but those of haft_tls_trust calls that follow. */
int haft_tls_trust_nobody(haft_tls_context_t *context);

/* Whether the peer's certificate is verified. Set before streams are made. */
typedef enum haft_tls_verify {
    HAFT_TLS_NOT_VERIFIED, /* anybody may be the peer; the default of servers, which then ask for no
                              certificate. For clients: for tests only */
    HAFT_TLS_IF_GIVEN,     /* of servers: a client may have none, but none that is not trusted */
    HAFT_TLS_REQUIRED      /* the default of clients */
} haft_tls_verify_t;
int haft_tls_set_verify(haft_tls_context_t *context, haft_tls_verify_t verify);

/*
 * Sets the protocols that are spoken over TLS (ALPN), such as "h2" and "http/1.1", most wanted
 * first. A client offers them; a server chooses its most wanted one of those that are offered, and
 * refuses a client that offers others only. A client that offers none is accepted. -EINVAL: a name
 * is empty or longer than 255 bytes; -ENOMEM. Set before streams are made.
 */
int haft_tls_set_protocols(haft_tls_context_t *context, const char *const protocols[],
                           size_t count);

/* Describes why the last function on this context has failed: "chain.pem: No such file or
   directory". "" if it has not. Valid until the next function on the context. */
const char *haft_tls_context_failure(const haft_tls_context_t *context);

/* ---- Streams -------------------------------------------------------------------------------- */

/*
 * Makes a stream over a connected descriptor, which belongs to the stream from now on. For a
 * client, `host` is the name or the numeric address of the server whose certificate is asked for
 * and verified; for a server it is NULL. Where no certificate can be for a client's `host` (NULL,
 * "", ".localhost"), the functions below return -EINVAL. NULL: no memory; the descriptor is closed
 * then, and the functions below return -ENOMEM for it.
 */
haft_tls_t *haft_tls_new(haft_tls_context_t *context, int descriptor, const char *host);

/* Connects to a server as haft_io_connect_tcp does, and does the handshake. `*stream` is set even
   if the handshake fails, so that haft_tls_failure can give the reason; it is NULL if there is no
   connection. */
int haft_tls_connect(haft_tls_context_t *context, const char *host, uint16_t port,
                     haft_tls_t **stream);

/* Closes the descriptor and frees the stream, without a wait. Does nothing for NULL. A peer that
   has not been told of the end by haft_tls_shutdown finds the stream cut off, as it should where a
   task has failed or was cancelled. */
void haft_tls_close(haft_tls_t *stream);

/* Declares a stream that is closed when the variable's block is left, even when the task is
   cancelled or fails. To keep it open, set the variable to NULL. */
#define HAFT_TLS_SCOPED __attribute__((cleanup(haft_tls_close_scoped)))
static inline void haft_tls_close_scoped(haft_tls_t *const *stream) {
    haft_tls_close(*stream);
}

/* Agrees with the peer on keys, and verifies its certificate. The first read or write does so, too.
   A server that is given a deadline for it is not held up by clients that send nothing. */
int haft_tls_handshake(haft_tls_t *stream);

/*
 * Reads as haft_io_read. 0 means that the peer has ended the stream by close_notify: if the
 * connection ends without it, bytes may be missing at the end, and the result is -ECONNRESET. If
 * two tasks read at once, the second gets -EBUSY.
 */
ssize_t haft_tls_read(haft_tls_t *stream, void *buffer, size_t size);
/* Reads as haft_io_read_lent: into memory that is lent when bytes have come. */
ssize_t haft_tls_read_lent(haft_tls_t *stream, const void **bytes);
/* Whether a read has something to look at without waiting for the descriptor: a task that waits for
   that in another way (haft_io_rest, haft_io_wait_ready) asks this first. */
bool haft_tls_has_unread(haft_tls_t *stream);
/* Writes everything, or fails. Returns 0 or an error. After an error it is unknown how much was
   written. Tasks that write at once take turns. */
int haft_tls_write_all(haft_tls_t *stream, const void *buffer, size_t size);
/* Waits until what was written before has been sent, takes at most one record (16 KiB), and returns
   how many bytes it took. The next call that writes sends them; haft_tls_write_all of no bytes
   does, too. After -ETIMEDOUT both can be called again: nothing was taken, and nothing is lost. */
ssize_t haft_tls_write(haft_tls_t *stream, const void *buffer, size_t size);
/* Sends what haft_tls_write has taken, as far as there is room, without a wait. 0: all has been
   sent, and the next haft_tls_write does not wait either; -EAGAIN: some is left; or an error of
   haft_io_send. */
int haft_tls_flush_now(haft_tls_t *stream);
/* For a client's stream before its handshake: offers this protocol alone (ALPN), whatever its
   context offers. Returns 0, -EINVAL as for haft_tls_set_protocols, or -ENOMEM. */
int haft_tls_offer(haft_tls_t *stream, const char *protocol);
/* Tells the peer that nothing more is written (close_notify). It may still write. Returns 0 or an
   error. */
int haft_tls_shutdown(haft_tls_t *stream);

/* ---- What was agreed on --------------------------------------------------------------------- */

/* After the handshake; before it, NULL and false. Texts are valid as long as the stream. */

const char *haft_tls_protocol(const haft_tls_t *stream); /* by ALPN: "h2"; NULL: none */
const char *haft_tls_version(const haft_tls_t *stream);  /* "TLSv1.3" */
const char *haft_tls_cipher(const haft_tls_t *stream);   /* "TLS_AES_256_GCM_SHA384" */
/* The name that the client has asked for (SNI); NULL: none. */
const char *haft_tls_server_name(const haft_tls_t *stream);
/* The subject of the peer's certificate, as "CN=example.org,O=Example" (RFC 2253); NULL: it has
   shown none. Whether it is verified depends on haft_tls_set_verify alone. */
const char *haft_tls_peer(const haft_tls_t *stream);
/* Whether the handshake went on with the keys of an earlier stream, which saves most of its time.
   Clients keep what they need for that in the context, by host and port. */
bool haft_tls_resumed(const haft_tls_t *stream);

int haft_tls_descriptor(const haft_tls_t *stream);
/* OpenSSL's own object (SSL *), for what this header lacks. Nothing may be read or written by it,
   and OpenSSL's functions need 8 KiB of stack and more. */
struct ssl_st *haft_tls_ssl(const haft_tls_t *stream);

/* ---- Errors --------------------------------------------------------------------------------- */

/* The peer's certificate is refused: this number minus the X509_V_ERR_ code of openssl/x509_vfy.h,
   which is positive. HAFT_TLS_ERROR_OF_CERTIFICATE - X509_V_ERR_CERT_HAS_EXPIRED: expired. */
#define HAFT_TLS_ERROR_OF_CERTIFICATE (-20000)
/* The peer has refused to go on: this number minus the alert's (RFC 8446, section 6.2), 0 to
   255. */
#define HAFT_TLS_ERROR_OF_ALERT (-21000)
/*
 * Others are -EPROTO, where the peer does not speak TLS as it should, or has no version, cipher or
 * protocol in common with this side; -ECONNRESET, where the connection has ended without
 * close_notify; and those of haft_io_read and haft_io_write. An error of TLS ends the stream: every
 * later call returns it again. The peer is told of it by an alert.
 */

/* Describes any of these codes, and those of haft_io_error_text: "certificate has expired". Any
   thread may call this. */
const char *haft_tls_error_text(int code);
/* Describes why the last call on the stream has failed, and names what was wrong: "the certificate
   'CN=old.example' has expired on Jan  1 00:00:00 2020 GMT", "the certificate 'CN=b' is for b, c,
   not for the host a". "" if no call has failed; "no memory" for NULL. Valid until the next
   call. */
const char *haft_tls_failure(const haft_tls_t *stream);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
