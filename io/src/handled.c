/* SPDX-License-Identifier: MIT */
/*
 * Tasks with the handlers of their spawner.
 *
 * The clauses of a handler live in a frame of the task that has installed it. So a task gets those
 * handlers that are around the scope in which it is spawned: they end after the scope, and with
 * that after the task. A handler inside of the scope ends before; to spawn under it is a mistake.
 * So is a handler with a clause that takes a resumption, since the stack that such a clause
 * captures is the spawner's.
 *
 * The task pushes scopes of its own with the same clauses and the same state, the outermost first,
 * and inside of them a mark, which names their owner: a task spawned by this one in the same scope
 * finds them there.
 */
#include "tasks.h"

#include <haft/scopes.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct {
    const haft_handles_t *handles;
    void *state;
} handler_t;

typedef struct {
    void *(*function)(void *);
    void *argument;
    const haft_io_scope_t *home;
    bool even_without_stack;
    size_t count;
    handler_t handlers[]; /* the innermost first */
} handled_t;

static const haft_handles_t mark = HAFT_HANDLES_NONE;

static __attribute__((noreturn)) void refuse(const haft_io_scope_t *home,
                                             const haft_clause_t *clause, const char *why) {
    char text[400];
    const char *effect =
        clause != NULL && clause->effect != NULL ? clause->effect->name : "every effect";
    snprintf(text, sizeof text, "no task with these handlers in the scope '%s': that of '%s' %s",
             hafti_io_scope_name(home), effect, why);
    haft_io_fail(-ENOTSUP, text);
}

/* The scopes of this library: around each body, and around each task. */
static bool is_of_body(const haft_scope_t *at, const haft_io_scope_t *innermost) {
    for (; innermost != NULL; innermost = innermost->outer)
        if (innermost->body != NULL && at == &innermost->body->scope)
            return true;
    return false;
}

/* Where those handlers begin that are around the scope; NULL: there are none. */
static const haft_scope_t *around(const haft_io_task_t *task, const haft_io_scope_t *home) {
    const haft_handles_t *operations = &task->worker->crew->operations->handles;
    const haft_scope_t *inside = NULL, *at = haft_scope_here();
    for (; at->handles != operations; at = at->outer) {
        bool is_home = home->body != NULL && at == &home->body->scope;
        if (is_home || (at->handles == &mark && ((const handled_t *)at->state)->home == home))
            break;
        if (inside == NULL && at->handles->count != 0 && !is_of_body(at, task->runner->scope))
            inside = at;
    }
    if (inside != NULL)
        refuse(home, inside->handles->clauses,
               "ends before the scope. Open a scope inside of the handler (haft_io_scope, in C++ "
               "io::scope), and spawn there");
    return at->handles != operations ? at : NULL;
}

static handled_t *collect(const haft_io_task_t *task, const haft_io_scope_t *home) {
    const haft_handles_t *operations = &task->worker->crew->operations->handles;
    const haft_scope_t *first = around(task, home);
    size_t count = 0;
    for (const haft_scope_t *at = first; at != NULL && at->handles != operations; at = at->outer)
        count++;
    handled_t *handled = malloc(sizeof *handled + count * sizeof *handled->handlers);
    if (handled == NULL)
        return NULL;
    handled->home = home;
    handled->count = 0;
    for (const haft_scope_t *at = first; at != NULL && at->handles != operations; at = at->outer) {
        if (at->handles->count == 0 || is_of_body(at, task->runner->scope))
            continue;
        for (uint32_t i = 0; i < at->handles->count; i++)
            if (at->handles->clauses[i].kind != HAFT_CLAUSE_TAIL) {
                const haft_clause_t *clause = &at->handles->clauses[i];
                free(handled);
                refuse(home, clause,
                       "takes a resumption, which would be the spawner's. Spawn outside of it, or "
                       "install a handler in the task");
            }
        handled->handlers[handled->count++] = (handler_t){at->handles, at->state};
    }
    return handled;
}

/* ---- In the task ---- */

static void pop(haft_scope_t *const *outermost) {
    haft_scope_pop(*outermost);
}

static void free_handled(handled_t *const *handled) {
    free(*handled);
}

static void *run_handled(void *argument) {
    __attribute__((cleanup(free_handled))) handled_t *handled = argument;
    if (haft_io_self() == NULL) /* no stack could be had */
        return handled->even_without_stack ? handled->function(handled->argument) : NULL;
    size_t count = handled->count;
    haft_scope_t scopes[count + 1];
    for (size_t i = 0; i < count; i++)
        haft_scope_push(&scopes[i], handled->handlers[count - 1 - i].handles,
                        handled->handlers[count - 1 - i].state);
    haft_scope_push(&scopes[count], &mark, handled);
    __attribute__((cleanup(pop), unused)) haft_scope_t *outermost = scopes;
    return handled->function(handled->argument);
}

/* ---- Spawning ---- */

/* Where the task is to go, as haft_io_spawn_with has it, and with which handlers; NULL: no
   memory. */
static handled_t *prepare(haft_io_task_options_t *how, const haft_io_task_options_t *options,
                          void *(*function)(void *), void *argument) {
    const haft_io_task_t *task = hafti_io_this_task();
    if (function == NULL)
        hafti_io_misuse("A task needs a function to run (NULL).");
    if (task == NULL)
        hafti_io_misuse(
            "A task with the handlers of its spawner is spawned outside of a task: call "
            "this under haft_io_run.");
    *how = options != NULL ? *options : (haft_io_task_options_t){.scope = NULL};
    if (how->scope == NULL)
        how->scope = hafti_io_scope_of_spawns(task->runner->scope);
    handled_t *handled = how->scope != NULL ? collect(task, how->scope) : NULL;
    if (handled == NULL)
        return NULL;
    handled->function = function;
    handled->argument = argument;
    handled->even_without_stack = how->even_without_stack;
    how->even_without_stack = true; /* or what was allocated would be left */
    return handled;
}

int haft_io_spawn_handled_with(const haft_io_task_options_t *options, void *(*function)(void *),
                               void *argument) {
    haft_io_task_options_t how;
    handled_t *handled = prepare(&how, options, function, argument);
    int code = handled != NULL ? haft_io_spawn_with(&how, run_handled, handled) : -ENOMEM;
    if (code != 0)
        free(handled);
    return code;
}

haft_io_task_t *haft_io_async_handled_with(const haft_io_task_options_t *options,
                                           void *(*function)(void *), void *argument) {
    haft_io_task_options_t how;
    handled_t *handled = prepare(&how, options, function, argument);
    haft_io_task_t *task = handled != NULL ? haft_io_async_with(&how, run_handled, handled) : NULL;
    if (task == NULL)
        free(handled);
    return task;
}
