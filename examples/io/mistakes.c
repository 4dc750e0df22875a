/* SPDX-License-Identifier: MIT */
/* Mistakes of a program: each call returns its error number, and an error handler gets the words
   for it. This one prints them; one in a test may end the process, one in a service may log. */
#include <haft/io.h>

#include <stdio.h>
#include <stdlib.h>

static void print_refusal(const haft_error_t *error) {
    printf("%s\n", error->message);
    if (error->code != HAFT_ERROR_REFUSED) /* the process ends after all others */
        exit(1);
}

static void *serve(void *unused) {
    int listener = haft_io_listen_tcp(NULL, 8080, 0);
    printf("  the call has returned %s\n", haft_io_error_text(listener));
    int code = haft_io_run(serve, unused);
    printf("  the call has returned %s\n", haft_io_error_text(code));
    return unused;
}

static void *begin(void *unused) {
    haft_io_spawn_with(&(haft_io_task_options_t){.name = "server"}, serve, unused);
    return unused;
}

int main(void) {
    haft_set_error_handler(print_refusal);
    const haft_io_run_options_t options = {.threads = 1, .backend = "kqueue"};
    int code = haft_io_run_with(&options, begin, NULL);
    printf("  the call has returned %s\n", haft_io_error_text(code));
    return haft_io_run(begin, NULL);
}
