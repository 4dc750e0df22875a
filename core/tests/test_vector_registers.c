/* Functions that use wider vectors than the rest of their file, by a target attribute or pragma:
   what they hold in such registers is theirs across a perform. */
#include <haft.h>

#include "check.h"

HAFT_EFFECT(next, void, {});

#if defined(__x86_64__) && defined(__clang__)
#    define WIDE __attribute__((target("avx512f"), noinline))
typedef double wide_t __attribute__((vector_size(64)));
static bool wide_here(void) {
    return __builtin_cpu_supports("avx512f");
}
static WIDE void compute_across(haft_fiber_t *k, wide_t *values) {
    wide_t one = values[0] * 3, two = values[1] * 2;
    HAFT_YIELD(k, next);
    values[0] = one + two;
    values[1] = one * two;
}
static WIDE void overwrite(void) {
    __asm__ volatile("vpternlogd $255, %zmm16, %zmm16, %zmm16\n\t"
                     "vmovaps %zmm16, %zmm17\n\tvmovaps %zmm16, %zmm18\n\t"
                     "vmovaps %zmm16, %zmm19\n\tvmovaps %zmm16, %zmm20");
}
#elif defined(__aarch64__) && !defined(__clang__)
#    include <sys/auxv.h>
#    pragma GCC push_options
#    pragma GCC target("+sve")
#    include <arm_sve.h>
#    define WIDE __attribute__((noinline))
typedef struct wide {
    double of[8];
} wide_t;
static bool wide_here(void) {
    return getauxval(AT_HWCAP) >> 22 & 1;
}
static WIDE void compute_across(haft_fiber_t *k, wide_t *values) {
    static volatile int count = 2;
    svbool_t some = svwhilelt_b64(0, count);
    HAFT_YIELD(k, next);
    double sum = svaddv_f64(some, svld1_f64(some, values[0].of));
    values[0].of[0] = 2.5 * sum;
    values[1].of[0] = 3 * sum;
}
static WIDE void overwrite(void) {
    __asm__ volatile("ptrue p0.b\n\tptrue p1.b\n\tptrue p2.b\n\tptrue p3.b\n\tptrue p4.b\n\t"
                     "ptrue p5.b\n\tptrue p6.b\n\tptrue p7.b\n\tptrue p8.b\n\tptrue p9.b\n\t"
                     "ptrue p10.b\n\tptrue p11.b\n\tptrue p12.b\n\tptrue p13.b\n\tptrue p14.b\n\t"
                     "ptrue p15.b");
}
#    pragma GCC pop_options
#endif

#ifdef WIDE
static wide_t values[2];

static void *compute_on_a_fiber(void *unused) {
    HAFT_YIELD(haft_fiber_current(), next); /* the next one takes the inlined path */
    compute_across(haft_fiber_current(), values);
    return unused;
}

static void what_is_in_wide_registers_outlives_a_perform(void) {
    double *one = (double *)&values[0], *two = (double *)&values[1];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 8; i++)
            one[i] = two[i] = 1;
        HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(compute_on_a_fiber, NULL);
        const haft_handles_t *handles = HAFT_HANDLES(next);
        haft_resume(k, HAFT_NO_REPLY, handles);
        haft_resume(k, HAFT_NO_REPLY, handles);
        overwrite();
        CHECK(haft_finished(haft_resume(k, HAFT_NO_REPLY, handles)));
        CHECK(one[0] == 5);
        CHECK(two[0] == 6);
    }
}
#endif

int main(void) {
#ifdef WIDE
    if (wide_here())
        RUN(what_is_in_wide_registers_outlives_a_perform);
#endif
    return check_end();
}
/* SPDX-License-Identifier: MIT */
