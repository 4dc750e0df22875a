/* SPDX-License-Identifier: MIT */
/*
 * Print: one function, three meanings of `print`. With no handler around, the effect's default
 * handler writes to standard output; inside a handler the same code fills a buffer, or shouts.
 * ("High-level effect handlers in C", §2.5.)
 */
#include <ctype.h>
#include <haft.h>
#include <stdio.h>
#include <string.h>

HAFT_EFFECT(print, void, { const char *message; });

static void print_point(int x, int y) {
    char text[64];
    snprintf(text, sizeof text, "{ x: %d, y: %d }\n", x, y);
    HAFT_PERFORM(print, text);
}

static void *example(void *argument) {
    (void)argument;
    print_point(0, 0);
    print_point(1, 2);
    return NULL;
}

static void default_print(void *unused, HAFT_PAYLOAD(print) * payload) {
    (void)unused;
    fputs(payload->message, stdout);
}

/* Handled outside, by the resumer of the fiber. */
static void *with_output_to_buffer(char *buffer, void *(*function)(void *), void *argument) {
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(function, argument);
    for (;;) {
        haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(print));
        HAFT_MATCH(request) {
            HAFT_CASE(print, payload) {
                buffer = stpcpy(buffer, payload->message);
            }
            HAFT_RETURN(result) {
                return result;
            }
        }
    }
}

/* Handled in place, and by another `print` further out. */
static void shout(void *unused, HAFT_PAYLOAD(print) * payload) {
    (void)unused;
    char text[64] = "";
    for (size_t i = 0; payload->message[i] != '\0' && i < sizeof text - 1; i++)
        text[i] = (char)toupper((unsigned char)payload->message[i]);
    HAFT_PERFORM(print, text);
}
HAFT_HANDLER(shouting, NULL, HAFT_TAIL(print, shout));

int main(void) {
    HAFT_SET_DEFAULT(print, default_print);
    puts("By default:");
    example(NULL);

    char buffer[256] = "";
    with_output_to_buffer(buffer, example, NULL);
    printf("To a buffer of %zu characters:\n%s", strlen(buffer), buffer);

    puts("In capitals:");
    haft_handle(&shouting, NULL, example, NULL);
    return 0;
}
