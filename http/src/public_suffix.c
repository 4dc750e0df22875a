/* SPDX-License-Identifier: MIT */
/* Domains below which strangers have theirs, such as "com" and "co.uk": by libpsl, or else those
   without a dot. */
#include "cookies.h"

#ifdef HAFT_HTTP_PSL
#    include <libpsl.h>

/* Distributions lack static libraries that libpsl needs: a program that is linked without them
   has no list. */
#    pragma weak psl_builtin
#    pragma weak psl_is_public_suffix

static bool is_listed(const char *domain) {
    const psl_ctx_t *list = psl_builtin != NULL ? psl_builtin() : NULL;
    return list != NULL && psl_is_public_suffix(list, domain) == 1;
}
#else
static bool is_listed(const char *domain) {
    (void)domain;
    return false;
}
#endif

bool hafti_http_is_public_suffix(hafti_http_text_t domain) {
    char name[HAFTI_HTTP_HOST];
    if (memchr(domain.bytes, '.', domain.size) == NULL || domain.size >= sizeof name)
        return true;
    for (size_t i = 0; i < domain.size; i++) {
        char byte = domain.bytes[i];
        name[i] = (char)(byte >= 'A' && byte <= 'Z' ? byte | ' ' : byte);
    }
    name[domain.size] = '\0';
    return is_listed(name);
}
