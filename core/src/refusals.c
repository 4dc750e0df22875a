/* SPDX-License-Identifier: MIT */
/*
 * Refusals: calls that return an error number because of a mistake of the program, and report to
 * the error handler what is wrong. The default error handler prints each text once. The last few
 * are kept until a binding has taken their words for an exception.
 *
 * Invariant: nothing here waits, so a signal handler may be refused in the middle of a refusal. An
 * entry of either table is written only by the thread that has claimed it.
 */
#define _GNU_SOURCE
#include "ground.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* ---- What bindings take ---- */

enum { KEPT = 16, KEPT_TEXT = 400 };
enum { EMPTY, CLAIMED, FULL };

typedef struct entry {
    uint32_t state;
    int number;
    uintptr_t thread;
    uint64_t order;
    char text[KEPT_TEXT];
} entry_t;
static entry_t kept[KEPT];
static uint64_t refusals;

static bool claim(entry_t *entry, uint32_t state) {
    return __atomic_compare_exchange_n(&entry->state, &state, CLAIMED, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}
static void let_go(entry_t *entry, uint32_t state) {
    __atomic_store_n(&entry->state, state, __ATOMIC_RELEASE);
}

static HAFTI_COLD void keep(int number, const char *text) {
    uint64_t order = __atomic_fetch_add(&refusals, 1, __ATOMIC_RELAXED);
    entry_t *entry = &kept[order % KEPT];
    if (!claim(entry, EMPTY) && !claim(entry, FULL))
        return; /* another thread's, which is read or written right now */
    entry->order = order;
    entry->number = number;
    __atomic_store_n(&entry->thread, (uintptr_t)pthread_self(), __ATOMIC_RELAXED);
    snprintf(entry->text, sizeof entry->text, "%s", text);
    let_go(entry, FULL);
}

bool haft_take_refusal(int number, char *text, size_t room) {
    uintptr_t thread = (uintptr_t)pthread_self();
    uint64_t newest = 0;
    bool is_found = false;
    if (__atomic_load_n(&refusals, __ATOMIC_RELAXED) == 0)
        return false;
    for (size_t i = 0; i < KEPT; i++) {
        entry_t *entry = &kept[i];
        if (__atomic_load_n(&entry->thread, __ATOMIC_RELAXED) != thread || !claim(entry, FULL))
            continue;
        if (entry->thread != thread) { /* written anew in between */
            let_go(entry, FULL);
            continue;
        }
        if (entry->number == number && (!is_found || entry->order > newest)) {
            is_found = true;
            newest = entry->order;
            if (room != 0)
                snprintf(text, room, "%s", entry->text);
        }
        let_go(entry, EMPTY); /* older ones belong to calls whose errors nobody asked about */
    }
    return is_found;
}

/* ---- What the default error handler prints ---- */

enum { PRINTED = 128 };
static uint32_t printed[PRINTED]; /* the texts' numbers, 0: free */
static uint32_t is_silent;

static uint32_t number_of(const char *text) {
    uint32_t number = 2166136261u;
    for (; *text != '\0'; text++)
        number = (number ^ (unsigned char)*text) * 16777619u;
    return number != 0 ? number : 1;
}

/* Whether the text has not been printed before. A full table takes no more. */
static bool is_new(uint32_t number) {
    for (size_t i = 0; i < PRINTED; i++) {
        uint32_t *place = &printed[(number + i) % PRINTED], before = 0;
        if (__atomic_compare_exchange_n(place, &before, number, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            return true;
        if (before == number)
            return false;
    }
    if (!__atomic_exchange_n(&is_silent, 1, __ATOMIC_RELAXED))
        haft_print("Further refusals are not printed: set an error handler "
                   "(haft_set_error_handler) to see them all.");
    return false;
}

/* ---- Refusing ---- */

typedef struct told {
    const haft_refusal_t *refusal;
    const char *format;
    va_list arguments;
} told_t;

/* Runs on a stack that has room for whatever the error handler does. */
static HAFTI_COLD void tell(void *argument) {
    told_t *told = argument;
    const haft_refusal_t *refusal = told->refusal;
    char message[600];
    int size = snprintf(message, sizeof message, "%.100s: ", refusal->function);
    vsnprintf(message + size, sizeof message - (size_t)size, told->format, told->arguments);
    keep(refusal->number, message);
    uint32_t number = number_of(message);
    size_t length = strlen(message);
    if (refusal->end != NULL)
        refusal->end(message + length, sizeof message - length);
    haft_error_handler_t *handler = haft_error_handler();
    if (handler != NULL)
        handler(&(haft_error_t){.code = HAFT_ERROR_REFUSED, .message = message});
    else if (is_new(number))
        haft_print(message);
}

int haft_refuse(const haft_refusal_t *refusal, const char *format, va_list arguments) {
    told_t told = {.refusal = refusal, .format = format};
    int saved = errno;
    va_copy(told.arguments, arguments);
    haft_on_thread_stack(tell, &told);
    va_end(told.arguments);
    errno = saved;
    return refusal->number;
}

int haft_refused(int number, const char *function, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    haft_refuse(&(haft_refusal_t){.number = number, .function = function}, format, arguments);
    va_end(arguments);
    return number;
}
