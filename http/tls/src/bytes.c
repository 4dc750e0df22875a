/* SPDX-License-Identifier: MIT */
/*
 * The BIO that OpenSSL reads and writes, over memory that libhaft-io lends. A record of TLS fits
 * into a block (HAFT_IO_LENT_SIZE), and is written into an empty one without a second call.
 */
#include "internal.h"

static int read_bytes(BIO *bio, char *buffer, size_t size, size_t *count) {
    hafti_tls_bytes_t *bytes = BIO_get_data(bio);
    size_t there = (size_t)(bytes->end - bytes->at);
    BIO_clear_retry_flags(bio);
    if (there == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    *count = size < there ? size : there;
    memcpy(buffer, bytes->at, *count);
    bytes->at += *count;
    return 1;
}

static int write_bytes(BIO *bio, const char *buffer, size_t size, size_t *count) {
    hafti_tls_bytes_t *bytes = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (bytes->output == NULL && (bytes->output = haft_io_lend()) == NULL)
        return -1;
    size_t room = HAFT_IO_LENT_SIZE - bytes->stop;
    if (room == 0) {
        BIO_set_retry_write(bio);
        return -1;
    }
    *count = size < room ? size : room;
    memcpy(bytes->output + bytes->stop, buffer, *count);
    bytes->stop += *count;
    return 1;
}

static long control(BIO *bio, int command, long number, void *pointer) {
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *method;

static void make_method(void) {
    BIO_METHOD *made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "Haft");
    if (made == NULL)
        return;
    BIO_meth_set_read_ex(made, read_bytes);
    BIO_meth_set_write_ex(made, write_bytes);
    BIO_meth_set_ctrl(made, control);
    method = made;
}

BIO *hafti_tls_bytes_bio(hafti_tls_bytes_t *bytes) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_method);
    BIO *bio = method != NULL ? BIO_new(method) : NULL;
    if (bio == NULL)
        return NULL;
    BIO_set_data(bio, bytes);
    BIO_set_init(bio, 1);
    return bio;
}

void hafti_tls_bytes_sent(hafti_tls_bytes_t *bytes, size_t count) {
    bytes->start += count;
    if (bytes->start != bytes->stop)
        return;
    haft_io_give_back(bytes->output);
    bytes->output = NULL;
    bytes->start = bytes->stop = 0;
}

void hafti_tls_bytes_end(hafti_tls_bytes_t *bytes) {
    haft_io_give_back(bytes->input);
    haft_io_give_back(bytes->output);
}
