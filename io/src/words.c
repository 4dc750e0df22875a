/* SPDX-License-Identifier: MIT */
/* The codes of the library, in words. */
#include "internal.h"

#include <netdb.h>
#include <string.h>

const char *haft_io_error_text(int code) {
    if (code >= 0)
        return "Success";
    if (code < HAFT_IO_ERROR_OF_RESOLVER)
        return gai_strerror(code - HAFT_IO_ERROR_OF_RESOLVER);
    const char *text = strerrordesc_np(-code);
    return text != NULL ? text : "Unknown error";
}
