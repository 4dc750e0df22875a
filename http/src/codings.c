/* SPDX-License-Identifier: MIT */
/* The content codings that the library was built with. */
#include "codings.h"

#include <string.h>

const hafti_http_coding_t *const hafti_http_codings[] = {
#ifdef HAFT_HTTP_ZSTD
    &hafti_http_zstd,
#endif
#ifdef HAFT_HTTP_BROTLI
    &hafti_http_brotli,
#endif
#ifdef HAFT_HTTP_ZLIB
    &hafti_http_gzip,
#endif
    NULL,
};

void hafti_http_list_codings(char into[HAFTI_HTTP_CODINGS]) {
    *into = '\0';
    for (const hafti_http_coding_t *const *coding = hafti_http_codings; *coding != NULL; coding++) {
        if (*into != '\0')
            strcat(into, ", ");
        strcat(into, (*coding)->name);
    }
}
