/* SPDX-License-Identifier: MIT */
/* A certificate for localhost, and the authority that has issued it, in files of the test's own. */
#include "../../../http/tls/tests/check_tls.h"

#define CAML_NAME_SPACE
#include <caml/alloc.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>

static issued_t authority, host;

value test_certificate(value unit);
/* The names of the files: the chain, its key, the authority. */
value test_certificate(value unit) {
    CAMLparam1(unit);
    CAMLlocal2(names, name);
    CHECK(mkdtemp(folder) != NULL);
    authority = issue((issue_t){.name = "authority"});
    host = issue((issue_t){"host", "DNS:localhost,IP:127.0.0.1", .issuer = &authority});
    const char *files[] = {host.chain_file, host.key_file, authority.chain_file};
    names = caml_alloc_tuple(3);
    for (mlsize_t i = 0; i < 3; i++) {
        name = caml_copy_string(files[i]);
        Store_field(names, i, name);
    }
    CAMLreturn(names);
}

value test_forget_certificate(value unit);
value test_forget_certificate(value unit) {
    forget(&host);
    forget(&authority);
    CHECK(rmdir(folder) == 0);
    return unit;
}
