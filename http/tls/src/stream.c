/* SPDX-License-Identifier: MIT */
/*
 * Streams: OpenSSL is called until it is done; between two calls, outside of it, its output is
 * sent, and input that it needs is waited for.
 */
#include "internal.h"

#include <arpa/inet.h>
#include <netinet/in.h>

enum { RECORD = 16384 }; /* bytes, at most */

/* ---- Errors ---- */

static int fail(haft_tls_t *stream, int code, const char *text) {
    pthread_mutex_lock(&stream->calling);
    snprintf(stream->failure, HAFTI_TLS_TEXT, "%s", text);
    pthread_mutex_unlock(&stream->calling);
    return code;
}

/* An error of the connection, or of a wait. */
static int fail_as_io(haft_tls_t *stream, int code) {
    return code >= 0 ? code : fail(stream, code, haft_io_error_text(code));
}

/* A failure that ends the stream. */
static int fail_for_good(haft_tls_t *stream, int code, const char *text) {
    atomic_store(&stream->code, code);
    return fail(stream, code, text);
}

/* Fails with OpenSSL's error, in the task that holds `calling`. hafti_tls_verified has already
   described what is wrong with a certificate. */
static int fail_as_openssl(haft_tls_t *stream) {
    unsigned long error = ERR_peek_error();
    long verified = SSL_get_verify_result(stream->openssl);
    bool is_of_certificate =
        ERR_GET_REASON(error) == SSL_R_CERTIFICATE_VERIFY_FAILED && verified != X509_V_OK;
    int code = is_of_certificate ? HAFT_TLS_ERROR_OF_CERTIFICATE - (int)verified
                                 : hafti_tls_openssl_error(stream->failure);
    atomic_store(&stream->code, code);
    return code;
}

/* ---- Calls of OpenSSL ---- */

/* `function` returns what OpenSSL's function does, and sets `count`. */
typedef struct call {
    haft_tls_t *stream;
    int (*function)(struct call *call);
    void *bytes;
    size_t size, count;
    bool is_sender;    /* the caller has `sending` */
    bool is_handshake; /* which goes on when the peer has what is to be sent */
    int wants;         /* SSL_ERROR_WANT_READ and its kin */
    int code;
} call_t;

static void call_openssl(void *argument) {
    call_t *call = argument;
    ERR_clear_error();
    int result = call->function(call);
    call->wants = SSL_get_error(call->stream->openssl, result);
    call->code = 0;
    if (call->wants == SSL_ERROR_SSL || call->wants == SSL_ERROR_SYSCALL)
        call->code = fail_as_openssl(call->stream);
    ERR_clear_error();
}

/* Makes the call; returns its code, or the one that has ended the stream before. */
static int call_locked(call_t *call) {
    haft_tls_t *stream = call->stream;
    pthread_mutex_lock(&stream->calling);
    int code = atomic_load(&stream->code);
    if (code == 0)
        code = hafti_tls_call(call_openssl, call);
    if (code == 0)
        code = call->code;
    pthread_mutex_unlock(&stream->calling);
    return code;
}

/* ---- Locks of tasks ---- */

static void unlock(haft_io_mutex_t *const *mutex) {
    if (*mutex != NULL)
        haft_io_mutex_unlock(*mutex);
}
/* Unlocked when the variable's block is left; NULL: there is nothing to unlock. */
#define SCOPED_LOCK __attribute__((cleanup(unlock))) haft_io_mutex_t *

static int lock(haft_tls_t *stream, haft_io_mutex_t *mutex, haft_io_mutex_t **locked) {
    int code = haft_io_mutex_lock(mutex);
    *locked = code == 0 ? mutex : NULL;
    return fail_as_io(stream, code);
}

/* ---- Sending and receiving ---- */

static size_t output_of(haft_tls_t *stream, const char **start) {
    const hafti_tls_bytes_t *bytes = &stream->bytes;
    pthread_mutex_lock(&stream->calling);
    size_t size = bytes->stop - bytes->start;
    *start = size != 0 ? bytes->output + bytes->start : NULL;
    pthread_mutex_unlock(&stream->calling);
    return size;
}

static void take_as_sent(haft_tls_t *stream, size_t size) {
    pthread_mutex_lock(&stream->calling);
    hafti_tls_bytes_sent(&stream->bytes, size);
    pthread_mutex_unlock(&stream->calling);
}

/* Sends the output; called by the task that has `sending`. */
static int send_output(haft_tls_t *stream) {
    const char *start;
    for (size_t size; (size = output_of(stream, &start)) != 0;) {
        ssize_t sent = haft_io_write(stream->descriptor, start, size);
        if (sent < 0)
            return fail_as_io(stream, (int)sent);
        take_as_sent(stream, (size_t)sent);
    }
    return 0;
}

static int lock_and_send(haft_tls_t *stream) {
    SCOPED_LOCK sending = NULL;
    int code = lock(stream, &stream->sending, &sending);
    return code == 0 ? send_output(stream) : code;
}

/* Sends the output of a handshake, unless another task is sending. A peer that has closed does not
   get it, but the bytes that it sent before can still be read. */
static int try_to_send(haft_tls_t *stream) {
    bool locks = haft_io_mutex_try_lock(&stream->sending);
    SCOPED_LOCK sending = locks ? &stream->sending : NULL;
    int code = sending != NULL ? send_output(stream) : 0;
    if (code != -EPIPE && code != -ECONNRESET)
        return code;
    const char *start;
    take_as_sent(stream, output_of(stream, &start));
    return 0;
}

/* Sends as much as there is room for, without a wait. 0: nothing is left; -EAGAIN, also where
   another task sends; or an error, after which nothing is left either. */
static int send_now(haft_tls_t *stream) {
    const char *start;
    if (output_of(stream, &start) == 0)
        return 0;
    bool locks = haft_io_mutex_try_lock(&stream->sending);
    SCOPED_LOCK sending = locks ? &stream->sending : NULL;
    if (sending == NULL)
        return -EAGAIN;
    for (size_t size; (size = output_of(stream, &start)) != 0;) {
        ssize_t sent = haft_io_send(stream->descriptor, start, size, MSG_DONTWAIT);
        bool is_later = sent == -EAGAIN || sent == -ECANCELED || sent == -ETIMEDOUT;
        if (is_later)
            return (int)sent;
        take_as_sent(stream, sent > 0 ? (size_t)sent : size);
        if (sent < 0)
            return (int)sent;
    }
    return 0;
}

static int call_once(call_t *call) {
    int code = call_locked(call);
    if (code != 0)
        send_now(call->stream); /* the reason of the end */
    return code;
}

static int take_input(haft_tls_t *stream, ssize_t got) {
    static const char cut_off[] = "the peer has ended the connection without close_notify: bytes "
                                  "may be missing";
    hafti_tls_bytes_t *bytes = &stream->bytes;
    bytes->at = bytes->input;
    bytes->end = got > 0 ? bytes->at + got : bytes->at;
    if (got == 0)
        return fail_for_good(stream, -ECONNRESET, cut_off);
    return got > 0 ? 0 : fail_as_io(stream, (int)got);
}

static int receive(haft_tls_t *stream) {
    return take_input(stream, haft_io_read_lent(stream->descriptor, &stream->bytes.input));
}

static bool is_done(const call_t *call) {
    return call->wants == SSL_ERROR_NONE || call->wants == SSL_ERROR_ZERO_RETURN;
}

static int do_what_it_wants(const call_t *call) {
    haft_tls_t *stream = call->stream;
    bool has_no_room = call->wants == SSL_ERROR_WANT_WRITE;
    int code = 0;
    if (call->is_sender)
        code = send_output(stream);
    else if (has_no_room)
        code = lock_and_send(stream);
    else if (call->is_handshake)
        code = try_to_send(stream);
    else
        send_now(stream); /* bytes of a peer that takes nothing are read all the same */
    return code == 0 && call->wants == SSL_ERROR_WANT_READ ? receive(stream) : code;
}

static int call_until_done(call_t *call) {
    for (;;) {
        int code = call_once(call);
        if (code != 0 || is_done(call))
            return code;
        code = do_what_it_wants(call);
        if (code != 0)
            return code;
    }
}

/* ---- A stream ---- */

static void free_openssl(void *openssl) {
    SSL_free(openssl);
}

static void free_stream(haft_tls_t *stream) {
    /* Otherwise OpenSSL would not resume the session of a stream that was not shut in both
       directions. */
    if (stream->openssl != NULL && atomic_load(&stream->code) == 0)
        SSL_set_shutdown(stream->openssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    hafti_tls_call(free_openssl, stream->openssl);
    hafti_tls_bytes_end(&stream->bytes);
    pthread_mutex_destroy(&stream->calling);
    haft_tls_context_free(stream->context);
    free(stream->host);
    free(stream->origin);
    free(stream->peer);
    free(stream->protocol);
    free(stream);
}

void haft_tls_close(haft_tls_t *stream) {
    if (stream == NULL)
        return;
    haft_io_close(stream->descriptor);
    free_stream(stream);
}

/* Whether a certificate can be for the host. An empty name, or one that begins with a dot, would be
   taken for any. */
static bool is_host(const char *host) {
    enum { MOST = 255 /* of a server's name in TLS */ };
    return host != NULL && *host != '\0' && *host != '.' && strlen(host) <= MOST;
}

/* Copies the host without the dot at its end, which certificates do not have. */
static char *copy_host(const char *host) {
    size_t size = strlen(host);
    return strndup(host, host[size - 1] == '.' ? size - 1 : size);
}

static char *origin_of(int descriptor, const char *host) {
    union {
        struct sockaddr_storage any;
        struct sockaddr_in old;
        struct sockaddr_in6 new;
    } address = {0};
    socklen_t size = sizeof address;
    char origin[300];
    if (getpeername(descriptor, (struct sockaddr *)&address, &size) != 0)
        address.any.ss_family = AF_UNSPEC;
    in_port_t port = address.any.ss_family == AF_INET    ? address.old.sin_port
                     : address.any.ss_family == AF_INET6 ? address.new.sin6_port
                                                         : 0;
    snprintf(origin, sizeof origin, "%s:%d", host, ntohs(port));
    return strdup(origin);
}

static void set_up(void *argument) {
    haft_tls_t *stream = argument;
    SSL *openssl = SSL_new(stream->context->openssl);
    BIO *bio = openssl != NULL ? hafti_tls_bytes_bio(&stream->bytes) : NULL;
    bool is_good = bio != NULL;
    if (is_good) {
        SSL_set_bio(openssl, bio, bio);
        SSL_set_app_data(openssl, stream);
        stream->openssl = openssl;
    } else
        SSL_free(openssl);
    if (is_good && stream->context->is_server)
        SSL_set_accept_state(openssl);
    else if (is_good) {
        SSL_set_connect_state(openssl);
        is_good = stream->host == NULL || hafti_tls_expect_host(openssl, stream->host) == 1;
        if (stream->host != NULL)
            hafti_tls_session_resume(stream);
    }
    if (!is_good)
        atomic_store(&stream->code, -ENOMEM);
    ERR_clear_error();
}

static void refuse_host(haft_tls_t *stream, const char *host) {
    char text[HAFTI_TLS_TEXT];
    snprintf(text, sizeof text,
             "a client's stream needs a host whose certificate can be verified, not '%.200s'",
             host != NULL ? host : "");
    fail_for_good(stream, -EINVAL, text);
}

static haft_tls_t *new_stream(haft_tls_context_t *context, int descriptor, const char *host) {
    haft_tls_t *stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return NULL;
    hafti_tls_draw_by_seed();
    atomic_fetch_add(&context->uses, 1);
    stream->context = context;
    stream->descriptor = descriptor;
    pthread_mutex_init(&stream->calling, NULL);
    bool is_good = true, has_host = is_host(host);
    if (!context->is_server && has_host) {
        stream->host = copy_host(host);
        stream->origin = stream->host != NULL ? origin_of(descriptor, stream->host) : NULL;
        is_good = stream->origin != NULL;
    }
    if (!is_good || hafti_tls_call(set_up, stream) != 0 || atomic_load(&stream->code) != 0) {
        free_stream(stream);
        return NULL;
    }
    if (!context->is_server && !has_host)
        refuse_host(stream, host);
    return stream;
}

haft_tls_t *haft_tls_new(haft_tls_context_t *context, int descriptor, const char *host) {
    if (!context->is_server && host == NULL)
        haft_io_refuse(-EINVAL, __func__,
                       "a client's stream has no host (NULL): write the name that the server's "
                       "certificate has to have");
    haft_tls_t *stream = new_stream(context, descriptor, host);
    if (stream == NULL)
        haft_io_close(descriptor);
    return stream;
}

/* ---- The handshake ---- */

int haft_tls_offer(haft_tls_t *stream, const char *protocol) {
    char *list;
    size_t size;
    int code = hafti_tls_list_protocols(&protocol, 1, &list, &size);
    if (code != 0)
        return code;
    if (stream == NULL ||
        SSL_set_alpn_protos(stream->openssl, (unsigned char *)list, (unsigned)size) != 0)
        code = -ENOMEM;
    free(list);
    return code;
}

static int shake_hands(call_t *call) {
    haft_tls_t *stream = call->stream;
    int result = SSL_do_handshake(stream->openssl);
    if (result != 1)
        return result;
    const unsigned char *protocol;
    unsigned size;
    SSL_get0_alpn_selected(stream->openssl, &protocol, &size);
    X509 *peer = SSL_get0_peer_certificate(stream->openssl);
    if (size != 0 && stream->protocol == NULL)
        stream->protocol = strndup((const char *)protocol, size);
    if (peer != NULL && stream->peer == NULL)
        stream->peer = hafti_tls_subject(peer);
    return result;
}

int haft_tls_handshake(haft_tls_t *stream) {
    if (stream == NULL)
        return -ENOMEM;
    if (atomic_load(&stream->is_agreed))
        return 0;
    SCOPED_LOCK agreeing = NULL;
    int code = lock(stream, &stream->agreeing, &agreeing);
    if (code != 0 || atomic_load(&stream->is_agreed))
        return code;
    call_t call = {.stream = stream, .function = shake_hands, .is_handshake = true};
    code = call_until_done(&call);
    if (code == 0)
        code = try_to_send(stream);
    if (code == 0)
        atomic_store(&stream->is_agreed, true);
    return code;
}

int haft_tls_connect(haft_tls_context_t *context, const char *host, uint16_t port,
                     haft_tls_t **stream) {
    *stream = NULL;
    int descriptor = haft_io_connect_tcp(host, port);
    if (descriptor < 0)
        return descriptor;
    *stream = haft_tls_new(context, descriptor, host);
    return haft_tls_handshake(*stream);
}

/* ---- Reading ---- */

static void end_reading(haft_tls_t *const *stream) {
    if (*stream != NULL)
        atomic_flag_clear(&(*stream)->reading);
}
/* The stream, while its variable's block has the right to read it. */
#define SCOPED_READING __attribute__((cleanup(end_reading))) haft_tls_t *

static int refuse_second(void) {
    return haft_io_refuse(-EBUSY, "haft_tls_read",
                          "another task reads the stream: let one task read, and pass the bytes on "
                          "by a channel, or lock a mutex around it");
}

static int begin_reading(haft_tls_t *stream, haft_tls_t **reading) {
    int code = haft_tls_handshake(stream);
    if (code != 0)
        return code;
    if (atomic_flag_test_and_set(&stream->reading))
        return fail_as_io(stream, refuse_second());
    *reading = stream;
    return 0;
}

static int read_bytes(call_t *call) {
    return SSL_read_ex(call->stream->openssl, call->bytes, call->size, &call->count);
}

ssize_t haft_tls_read(haft_tls_t *stream, void *buffer, size_t size) {
    SCOPED_READING reading = NULL;
    int code = begin_reading(stream, &reading);
    if (code != 0 || size == 0)
        return code;
    call_t call = {.stream = stream, .function = read_bytes, .bytes = buffer, .size = size};
    code = call_until_done(&call);
    return code == 0 ? (ssize_t)call.count : code;
}

/* The block is lent when there is something for it: none is held over a wait. */
static int read_block(call_t *call, const void **bytes) {
    void *block = haft_io_lend();
    if (block == NULL)
        return fail_as_io(call->stream, -ENOMEM);
    call->bytes = block;
    call->size = HAFT_IO_LENT_SIZE;
    int code = call_once(call);
    if (code == 0 && call->count != 0)
        *bytes = block;
    else
        haft_io_give_back(block);
    return code;
}

static ssize_t read_lent(haft_tls_t *stream, const void **bytes) {
    call_t call = {.stream = stream, .function = read_bytes};
    for (;;) {
        int code = read_block(&call, bytes);
        if (code == 0 && is_done(&call))
            return (ssize_t)call.count;
        if (code == 0)
            code = do_what_it_wants(&call);
        if (code != 0)
            return code;
    }
}

ssize_t haft_tls_read_lent(haft_tls_t *stream, const void **bytes) {
    haft_io_give_back(*bytes);
    *bytes = NULL;
    SCOPED_READING reading = NULL;
    int code = begin_reading(stream, &reading);
    return code == 0 ? read_lent(stream, bytes) : code;
}

/* ---- Writing ---- */

static int write_bytes(call_t *call) {
    return SSL_write_ex(call->stream->openssl, call->bytes, call->size, &call->count);
}

static int begin_writing(haft_tls_t *stream, haft_io_mutex_t **sending) {
    int code = haft_tls_handshake(stream);
    if (code == 0)
        code = lock(stream, &stream->sending, sending);
    if (code == 0 && stream->is_shut)
        code = fail_as_io(stream, -EPIPE);
    return code == 0 ? send_output(stream) : code;
}

/* Leaves the last record in the output. A record that a lack of room has cut in two would have to
   be completed by the next call, with the same bytes: it ends the stream if it cannot be sent. */
static int write_records(haft_tls_t *stream, const void *buffer, size_t size) {
    call_t call = {
        .stream = stream, .function = write_bytes, .bytes = (void *)buffer, .is_sender = true};
    for (int code; size != 0; size -= call.count) {
        call.size = size < RECORD ? size : RECORD;
        code = send_output(stream);
        if (code == 0 && (code = call_until_done(&call)) != 0)
            atomic_store(&stream->code, code);
        if (code != 0)
            return code;
        call.bytes = (char *)call.bytes + call.count;
    }
    return 0;
}

int haft_tls_write_all(haft_tls_t *stream, const void *buffer, size_t size) {
    SCOPED_LOCK sending = NULL;
    int code = begin_writing(stream, &sending);
    if (code == 0)
        code = write_records(stream, buffer, size);
    return code == 0 ? send_output(stream) : code;
}

ssize_t haft_tls_write(haft_tls_t *stream, const void *buffer, size_t size) {
    SCOPED_LOCK sending = NULL;
    size_t part = size < RECORD ? size : RECORD;
    int code = begin_writing(stream, &sending);
    if (code == 0)
        code = write_records(stream, buffer, part);
    return code == 0 ? (ssize_t)part : code;
}

int haft_tls_flush_now(haft_tls_t *stream) {
    return stream != NULL ? send_now(stream) : -ENOMEM;
}

/* If OpenSSL has taken all bytes that came and holds none, a read has to wait for the descriptor;
   the empty block is given back then. */
bool haft_tls_has_unread(haft_tls_t *stream) {
    if (stream == NULL)
        return false;
    hafti_tls_bytes_t *bytes = &stream->bytes;
    pthread_mutex_lock(&stream->calling);
    bool has = bytes->at != bytes->end || SSL_has_pending(stream->openssl) == 1;
    if (!has) {
        haft_io_give_back(bytes->input);
        bytes->input = NULL;
        bytes->at = bytes->end = NULL;
    }
    pthread_mutex_unlock(&stream->calling);
    return has;
}

static int shut(call_t *call) {
    return SSL_shutdown(call->stream->openssl) >= 0 ? 1 : -1;
}

int haft_tls_shutdown(haft_tls_t *stream) {
    SCOPED_LOCK sending = NULL;
    int code = begin_writing(stream, &sending);
    call_t call = {.stream = stream, .function = shut, .is_sender = true};
    if (code == 0)
        code = call_until_done(&call);
    if (code != 0)
        return code;
    stream->is_shut = true;
    return send_output(stream);
}

/* ---- What was agreed on ---- */

static bool is_agreed(const haft_tls_t *stream) {
    return stream != NULL && atomic_load(&stream->is_agreed);
}

const char *haft_tls_protocol(const haft_tls_t *stream) {
    return is_agreed(stream) ? stream->protocol : NULL;
}

const char *haft_tls_version(const haft_tls_t *stream) {
    return is_agreed(stream) ? SSL_get_version(stream->openssl) : NULL;
}

const char *haft_tls_cipher(const haft_tls_t *stream) {
    return is_agreed(stream) ? SSL_get_cipher_name(stream->openssl) : NULL;
}

const char *haft_tls_server_name(const haft_tls_t *stream) {
    return is_agreed(stream) ? SSL_get_servername(stream->openssl, TLSEXT_NAMETYPE_host_name)
                             : NULL;
}

const char *haft_tls_peer(const haft_tls_t *stream) {
    return is_agreed(stream) ? stream->peer : NULL;
}

bool haft_tls_resumed(const haft_tls_t *stream) {
    return is_agreed(stream) && SSL_session_reused(stream->openssl) == 1;
}

int haft_tls_descriptor(const haft_tls_t *stream) {
    return stream->descriptor;
}

struct ssl_st *haft_tls_ssl(const haft_tls_t *stream) {
    return stream->openssl;
}

const char *haft_tls_failure(const haft_tls_t *stream) {
    return stream != NULL ? stream->failure : "no memory";
}
