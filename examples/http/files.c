/* SPDX-License-Identifier: MIT */
/* Static files: `files FOLDER`, then look at http://localhost:8080/. Its second argument is
   another port. */
#include <haft/http.h>

#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments) {
    const char *folder = count > 1 ? arguments[1] : ".";
    haft_http_run_options_t how = {.port = count > 2 ? (uint16_t)atoi(arguments[2]) : 8080,
                                   .threads = HAFT_HTTP_EACH_PROCESSOR};
    haft_http_files_options_t files = {.precompressed = true, .cache_control = "max-age=60"};
    haft_http_server_t *server = haft_http_server_new();
    int code = haft_http_server_serve_files_with(&files, server, "/", folder);
    if (code != 0)
        fprintf(stderr, "%s: %s\n", folder, haft_io_error_text(code));
    else
        code = haft_http_server_run_with(&how, server);
    haft_http_server_free(server);
    return code != 0;
}
