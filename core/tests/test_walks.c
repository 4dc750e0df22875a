/* SPDX-License-Identifier: MIT */
/* The walk over a stack that is dropped looks each return address up once, and remembers it. The
   platform's lookup is replaced by one that counts. */
#define _GNU_SOURCE
#include <haft.h>

#include "check.h"

#include <dlfcn.h>
#include <link.h>

HAFT_EFFECT(wait, void, {});

typedef const void *find_t(void *pc, void *bases);
find_t _Unwind_Find_FDE;

static long lookups;

const void *_Unwind_Find_FDE(void *pc, void *bases) {
    find_t *find;
    *(void **)&find = dlsym(RTLD_NEXT, "_Unwind_Find_FDE");
    lookups++;
    return find(pc, bases);
}

/* A hundred places that wait, each two frames deep, so each has two return addresses of its own.
   (Compilers merge functions that are alike.) */
#define DIFFERS(number) __asm__ volatile("/* " #number " */" ::: "memory")
#define PLACE(number)                                                                              \
    static __attribute__((noinline)) void inner_##number(void) {                                   \
        HAFT_PERFORM(wait);                                                                        \
        DIFFERS(number);                                                                           \
    }                                                                                              \
    static void *outer_##number(void *unused) {                                                    \
        inner_##number();                                                                          \
        DIFFERS(number);                                                                           \
        return unused;                                                                             \
    }
#define TEN(of, tens)                                                                              \
    of(tens##0) of(tens##1) of(tens##2) of(tens##3) of(tens##4) of(tens##5) of(tens##6)            \
        of(tens##7) of(tens##8) of(tens##9)
/* clang-format off */
#define HUNDRED(of)                                                                                \
    TEN(of, 1) TEN(of, 2) TEN(of, 3) TEN(of, 4) TEN(of, 5)                                         \
    TEN(of, 6) TEN(of, 7) TEN(of, 8) TEN(of, 9) TEN(of, 10)
/* clang-format on */
#define NAME(number) outer_##number,

HUNDRED(PLACE)

typedef void *body_t(void *);
static body_t *const bodies[] = {HUNDRED(NAME)};
enum { BODIES = sizeof bodies / sizeof *bodies };

static void drop_each(void) {
    for (int i = 0; i < BODIES; i++) {
        HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(bodies[i], NULL);
        haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wait));
    }
}

/* (Two of them may be too many for one part of the table by chance, but not one in ten.) */
static void the_frames_of_many_places_are_remembered_side_by_side(void) {
    drop_each();
    CHECK(lookups >= 2L * BODIES);
    lookups = 0;
    drop_each();
    CHECK(lookups <= BODIES / 10);
}

int main(void) {
#ifdef DLFO_STRUCT_HAS_EH_DBASE
    if (check_bare())
        RUN(the_frames_of_many_places_are_remembered_side_by_side);
#else
    (void)the_frames_of_many_places_are_remembered_side_by_side;
    check_lacks = "a C library that finds objects without a lock";
#endif
    return check_end();
}
