/* SPDX-License-Identifier: MIT */
/* Mistakes in the use of the library: a message for core's error handler, and the end of the
   process, or of the call where it has an error number to return. Core's messages when a stack
   has overflowed, or cannot be unwound, name the task. */
#include "workers.h"

#include <stdarg.h>
#include <stdio.h>

void hafti_io_misuse(const char *format, ...) {
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    const hafti_io_simulated_t *simulated = hafti_io_simulated();
    if (simulated != NULL && simulated->seed != 0 && size >= 0 && size < (int)sizeof message)
        snprintf(message + size, sizeof message - (size_t)size, " (The seed was %llu.)",
                 (unsigned long long)simulated->seed);
    haft_misused(&(haft_error_t){.code = HAFT_ERROR_OF_LIBRARY, .message = message});
}

/* On the thread's stack, while the task waits for it. */
static void write_where(char *text, size_t room) {
    const haft_io_task_t *task = hafti_io_this_task();
    const hafti_io_simulated_t *simulated = hafti_io_simulated();
    const char *name = task != NULL ? haft_io_task_name(task) : "";
    int size = name[0] != '\0' ? snprintf(text, room, ". It was the task '%s'.", name) : 0;
    if (simulated != NULL && size >= 0 && (size_t)size < room)
        snprintf(text + size, room - (size_t)size, "%s (The seed was %llu.)", size == 0 ? "." : "",
                 (unsigned long long)simulated->seed);
}

int haft_io_refuse(int number, const char *function, const char *format, ...) {
    const haft_refusal_t refusal = {.number = number, .function = function, .end = write_where};
    va_list arguments;
    va_start(arguments, format);
    haft_refuse(&refusal, format, arguments);
    va_end(arguments);
    return number;
}

int hafti_io_refuse_run_inside(const char *function) {
    return haft_io_refuse(-EBUSY, function,
                          "the caller is in a run already: spawn a task there (haft_io_spawn), or "
                          "begin the run on another thread");
}

static const char *(*advice_before)(const haft_fiber_t *fiber);

static const char *name_task(const haft_fiber_t *fiber) {
    static char text[200]; /* The process is about to end. */
    const haft_io_task_t *task = hafti_io_this_task();
    const char *advice = NULL; /* Another library may have made the fiber. */
    if (advice_before != NULL && (task == NULL || task->runner->fiber != fiber))
        advice = advice_before(fiber);
    if (task == NULL || advice != NULL)
        return advice;
    const char *name = haft_io_task_name(task);
    snprintf(text, sizeof text, name[0] != '\0' ? "It was the task '%s'." : "The task has no name.",
             name);
    return text;
}

static __attribute__((constructor)) void name_tasks(void) {
    advice_before = haft_set_stack_advice(name_task);
}
static __attribute__((destructor)) void name_no_more(void) {
    haft_stack_advice_t *last = haft_set_stack_advice(advice_before);
    if (last != name_task) /* another library's, which keeps this one's */
        haft_set_stack_advice(last);
}

void hafti_io_waits_in_child(const haft_io_task_t *task) {
    hafti_io_misuse(
        "The task '%s' waits in a child of fork: a scheduler stays with the process that "
        "made it. In the child, do what needs no wait, or exec, or exit.",
        task != NULL ? haft_io_task_name(task) : "");
}
