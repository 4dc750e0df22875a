/* SPDX-License-Identifier: MIT */
/* A system that gives no threads while the test forbids them. */
#define _GNU_SOURCE
#include <caml/mlvalues.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

static bool refuses;

value test_refuse_threads(value is_on);
value test_refuse_threads(value is_on) {
    refuses = Bool_val(is_on);
    return Val_unit;
}

typedef int create_t(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
                     void *argument);

/* In place of the C library's. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
                   void *argument) {
    union {
        void *address;
        create_t *function;
    } real = {dlsym(RTLD_NEXT, "pthread_create")};
    return refuses ? EAGAIN : real.function(thread, attributes, function, argument);
}
