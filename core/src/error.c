/* SPDX-License-Identifier: MIT */
/* The errors of a hosted build: their messages, and where they are reported (for a freestanding
   build see freestanding.c). */
#define _GNU_SOURCE
#include "ground.h"

#include <dlfcn.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static haft_error_handler_t *error_handler;

haft_error_handler_t *haft_set_error_handler(haft_error_handler_t *handler) {
    return __atomic_exchange_n(&error_handler, handler, __ATOMIC_ACQ_REL);
}
haft_error_handler_t *haft_error_handler(void) {
    return __atomic_load_n(&error_handler, __ATOMIC_ACQUIRE);
}

const char *haft_fiber_label(const haft_fiber_t *fiber) {
    static __thread char label[96];
    if (fiber == NULL)
        return "the thread's own stack";
    if (fiber->name == NULL)
        snprintf(label, sizeof label, "the unnamed fiber %p", (const void *)fiber);
    else
        snprintf(label, sizeof label, "the fiber '%.64s'", fiber->name);
    return label;
}

extern int dladdr(const void *address, Dl_info *information) __attribute__((weak));

/* The place of a call, for addr2line: in a program at fixed addresses, it counts from 0. */
const char *haft_place_label(const void *returns_to) {
    static __thread char label[80];
    Dl_info object = {.dli_fname = NULL};
    if (dladdr == NULL || dladdr(returns_to, &object) == 0 || object.dli_fname == NULL)
        return "";
    const ElfW(Ehdr) *header = object.dli_fbase;
    uintptr_t base = header->e_type == ET_EXEC ? 0 : (uintptr_t)header;
    const char *slash = strrchr(object.dli_fname, '/');
    snprintf(label, sizeof label, " at %.40s+0x%zx", slash != NULL ? slash + 1 : object.dli_fname,
             (uintptr_t)returns_to - 1 - base);
    return label;
}

static haft_stack_advice_t *stack_advice;

haft_stack_advice_t *haft_set_stack_advice(haft_stack_advice_t *advice) {
    return __atomic_exchange_n(&stack_advice, advice, __ATOMIC_ACQ_REL);
}

const char *haft_advice_of(const haft_fiber_t *fiber, const char *otherwise) {
    haft_stack_advice_t *ask = __atomic_load_n(&stack_advice, __ATOMIC_ACQUIRE);
    const char *advice = ask != NULL ? ask(fiber) : NULL;
    return advice != NULL ? advice : otherwise;
}

/* Prints by one write, so that messages of several threads do not mix. */
void haft_print(const char *message) {
    char line[640];
    int length = snprintf(line, sizeof line, "haft: %s\n", message);
    if (length >= (int)sizeof line)
        length = (int)sizeof line - 1;
    if (write(STDERR_FILENO, line, (size_t)length) < 0)
        return;
}

typedef struct report {
    haft_error_t error;
    const char *format;
    va_list arguments;
} report_t;

/* Runs on a stack that has room for whatever the error handler does. */
static HAFTI_COLD void tell(void *argument) {
    report_t *report = argument;
    char message[600];
    vsnprintf(message, sizeof message, report->format, report->arguments);
    haft_error_t error = report->error;
    error.message = message;
    haft_error_handler_t *handler = haft_error_handler();
    if (handler != NULL)
        handler(&error);
    else
        haft_print(message);
}

void haft_report(haft_error_code_t code, const haft_effect_t *effect, const haft_fiber_t *fiber,
                 const char *format, ...) {
    report_t report = {.error = {code, NULL, effect, fiber}, .format = format};
    va_start(report.arguments, format);
    haft_on_thread_stack(tell, &report);
    va_end(report.arguments);
}

void haft_misused(const haft_error_t *error) {
    haft_fail(error->code, error->effect, error->fiber, "%s", error->message);
}

void haft_fail(haft_error_code_t code, const haft_effect_t *effect, const haft_fiber_t *fiber,
               const char *format, ...) {
    report_t report = {.error = {code, NULL, effect, fiber}, .format = format};
    va_start(report.arguments, format);
    haft_on_thread_stack(tell, &report);
    va_end(report.arguments);
    abort();
}

void haft_used_resumption(const haft_effect_t *effect, const char *what) {
    if (effect == NULL)
        haft_fail(HAFT_ERROR_USED_RESUMPTION, NULL, NULL,
                  "A resumption that waits on no effect cannot be %s: it is empty, has been used "
                  "already, or moved away.",
                  what);
    haft_fail(HAFT_ERROR_USED_RESUMPTION, effect, NULL,
              "A resumption of the effect '%s' cannot be %s: it has been used already, or moved "
              "away.",
              effect->name, what);
}
