/* The C side of test_nests.ml. */
#define _GNU_SOURCE
#define CAML_NAME_SPACE
#include <caml/callback.h>
#include <caml/mlvalues.h>

#include <errno.h>
#include <haft.h>
#include <haft/language.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unwind.h>

value nests_call(value function, value argument);
value nests_be_an_old_kernel(value unit);
value nests_kibibytes(value field);
value nests_frames(value unit);
value nests_stacks_around(value unit);

/* A frame of C without local roots. */
value nests_call(value function, value argument) {
    value result = caml_callback(function, argument);
    __asm__ volatile("" : : : "memory");
    return result;
}

/* From now on the kernel does not know MADV_GUARD_INSTALL (6.13). False: there are no filters
   here. */
value nests_be_an_old_kernel(value unit) {
    enum { GUARD_INSTALL = 102 };
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, GUARD_INSTALL, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    (void)unit;
    return Val_bool(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

/* A field of /proc/self/status. */
value nests_kibibytes(value field) {
    char line[256];
    long kibibytes = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, String_val(field), strlen(String_val(field))) == 0)
            (void)sscanf(strchr(line, ':') + 1, "%ld", &kibibytes);
    if (file != NULL)
        fclose(file);
    return Val_long(kibibytes);
}

static _Unwind_Reason_Code count(struct _Unwind_Context *context, void *frames) {
    (void)context;
    ++*(long *)frames;
    return _URC_NO_REASON;
}

/* The number of frames that unwinders see from here. */
value nests_frames(value unit) {
    long frames = 0;
    (void)unit;
    (void)_Unwind_Backtrace(count, &frames);
    return Val_long(frames);
}
/* SPDX-License-Identifier: MIT */

/* How many fibers around the caller have stacks of their own: the others have no pool
   (ocaml/lib/nests.c). */
value nests_stacks_around(value unit) {
    long stacks = 0;
    (void)unit;
    for (hafti_scope_t *scope = haft_language_thread()->current; scope != NULL;
         scope = scope->outer)
        stacks += scope->kind == HAFTI_SCOPE_FIBER && hafti_fiber_of(scope)->pool != NULL;
    return Val_long(stacks);
}
