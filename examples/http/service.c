/* SPDX-License-Identifier: MIT */
/* A service as it is deployed: `service FILE PLACE` answers with a line of the file, which it reads
   before it is ready and again every second. PLACE is where to listen, such as ":8080", "systemd" or
   "unix:/run/motto.sock". Balancers ask /ready. SIGUSR1 dumps its tasks, SIGUSR2 restarts it.
   deploy/ has a unit of systemd and a container for it. */
#include <haft/http.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *path;
    char motto[200];
} service_t;

static int read_motto(service_t *service) {
    HAFT_IO_SCOPED_DESCRIPTOR int file = haft_io_open(service->path, O_RDONLY, 0);
    if (file < 0)
        return file;
    char line[sizeof service->motto];
    ssize_t size = haft_io_pread(file, line, sizeof line - 1, 0);
    if (size < 0)
        return (int)size;
    line[size] = '\0';
    line[strcspn(line, "\n")] = '\0';
    strcpy(service->motto, line); /* handlers run on one thread, and do not see a half of it */
    return 0;
}

/* Before the first connection is accepted: an error ends the program. */
static int begin(haft_http_server_t *server, void *service) {
    (void)server;
    return read_motto(service);
}

/* In the background, until the last request has ended. */
static void *refresh(void *service) {
    while (haft_io_sleep(HAFT_IO_SECOND) == 0)
        read_motto(service); /* the last one stays where that fails */
    return NULL;
}

static int answer(haft_http_request_t *request, void *argument) {
    const service_t *service = argument;
    return haft_http_answer_format(request, 200, "%s\n", service->motto);
}

int main(int count, char **arguments) {
    if (count != 3)
        return fprintf(stderr, "usage: service FILE PLACE\n"), 2;
    service_t service = {.path = arguments[1]};
    haft_http_server_t *server = haft_http_server_new();
    haft_http_server_get(server, "/", answer, &service);
    haft_http_server_serve_readiness(server, "/ready");
    haft_http_server_on_listening(server, begin, &service);
    haft_http_server_add_background(server, "refresh", refresh, &service);
    haft_http_server_set_access_log(server, HAFT_HTTP_LOG_JSON, NULL, NULL);
    haft_http_run_options_t options = {
        .listen = arguments[2],
        .restart_signal = SIGUSR2,
        .watchdog = HAFT_IO_SECOND,
        .dump_signal = SIGUSR1,
        .notify = true,
        .unready_time = 3 * HAFT_IO_SECOND,
    };
    int code = haft_http_server_run_with(&options, server);
    haft_http_server_free(server);
    return code != 0;
}
