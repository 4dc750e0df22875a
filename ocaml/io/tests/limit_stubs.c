/* SPDX-License-Identifier: MIT */
/* How many descriptors the process may have. */
#include <caml/mlvalues.h>

#include <stdlib.h>
#include <sys/resource.h>

value test_limit_descriptors(value count);
/* Returns the limit before. */
value test_limit_descriptors(value count) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        abort();
    value before = Val_long((intnat)limit.rlim_cur);
    limit.rlim_cur = (rlim_t)Long_val(count);
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        abort();
    return before;
}
