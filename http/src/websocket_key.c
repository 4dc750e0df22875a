/* SPDX-License-Identifier: MIT */
/* The key of a WebSocket's handshake, of random bytes, and the server's answer to it: base64 of a
   SHA-1 (RFC 6455, section 4.2.2). */
#include "websocket.h"

#include <endian.h>
#include <stdio.h>

enum { DIGEST = 20 };

static uint32_t rotate(uint32_t word, int by) {
    return word << by | word >> (32 - by);
}

/* FIPS 180-4, section 6.1.2: one block of SHA-1. */
static void digest_block(uint32_t state[5], const unsigned char *block) {
    static const uint32_t constants[] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
    uint32_t words[80], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
    for (int i = 0; i < 80; i++) {
        if (i < 16) {
            memcpy(&words[i], block + 4 * i, 4);
            words[i] = be32toh(words[i]);
        } else {
            words[i] = rotate(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
        }
        uint32_t mixed = i < 20        ? (b & c) | (~b & d)
                         : i / 20 == 2 ? (b & c) | (b & d) | (c & d)
                                       : b ^ c ^ d;
        uint32_t next = rotate(a, 5) + mixed + e + constants[i / 20] + words[i];
        e = d, d = c, c = rotate(b, 30), b = a, a = next;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e;
}

/* SHA-1 of less than 120 bytes. */
static void digest(const char *text, unsigned char into[DIGEST]) {
    uint32_t state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    unsigned char blocks[128] = {0};
    size_t size = strlen(text), end = size < 56 ? 64 : 128;
    memcpy(blocks, text, size);
    blocks[size] = 0x80;
    blocks[end - 2] = (unsigned char)(size * 8 >> 8);
    blocks[end - 1] = (unsigned char)(size * 8);
    for (size_t at = 0; at < end; at += 64)
        digest_block(state, blocks + at);
    for (int i = 0; i < 5; i++) {
        uint32_t word = htobe32(state[i]);
        memcpy(into + 4 * i, &word, 4);
    }
}

/* In a function of its own, so that errno is this thread's. */
__attribute__((noinline)) int hafti_http_make_random(void *into, size_t size) {
    return haft_io_random(into, size);
}

const char hafti_http_letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void hafti_http_put_base64(const unsigned char *bytes, size_t size, char *into) {
    for (size_t at = 0; at < size; at += 3, into += 4) {
        uint32_t bits = 0;
        for (size_t i = 0; i < 3; i++)
            bits = bits << 8 | (at + i < size ? bytes[at + i] : 0);
        for (size_t i = 0; i < 4; i++)
            into[i] = at + i > size ? '=' : hafti_http_letters[bits >> (18 - i * 6) & 63];
    }
    *into = '\0';
}

void hafti_http_answer_key(const char *key, char into[HAFTI_HTTP_WEBSOCKET_ANSWER + 1]) {
    char text[HAFTI_HTTP_WEBSOCKET_KEY + 40];
    unsigned char bytes[DIGEST];
    snprintf(text, sizeof text, "%s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key);
    digest(text, bytes);
    hafti_http_put_base64(bytes, DIGEST, into);
}
