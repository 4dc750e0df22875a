/* SPDX-License-Identifier: MIT */
/* parsing_dollars, plain C: reading and emitting are calls through pointers, the end of the input
 * is a return value. */
#include "../program.h"

static int64_t lines, line, dollars_left, sum;

/* The next character, or -1 at the end: line i is i dollars and a newline. */
static int feed(void) {
    if (dollars_left > 0) {
        dollars_left--;
        return '$';
    }
    if (line > lines)
        return -1;
    line++;
    dollars_left = line;
    return '\n';
}

static void add(int64_t value) {
    sum += value;
}

static int (*volatile read_character)(void) = feed;
static void (*volatile emit)(int64_t) = add;

static NOINLINE void parse(void) {
    int64_t dollars = 0;
    for (;;) {
        int character = read_character();
        if (character == '$') {
            dollars++;
        } else if (character == '\n') {
            emit(dollars);
            dollars = 0;
        } else {
            return;
        }
    }
}

int main(int argc, char **argv) {
    lines = program_argument(argc, argv, 10);
    parse();
    return program_result(sum);
}
