/* SPDX-License-Identifier: MIT */
/*
 * Resources: memory and files that are released without a call. A function that allocates performs
 * `defer`. The handler resumes it by a recursive call, and releases after that call: so the
 * resource that was acquired last is released first. ("High-level effect handlers in C", §2.3.)
 */
#include <haft.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

HAFT_EFFECT(defer, void, {
    void (*function)(void *);
    void *argument;
});

static void release_memory(void *memory) {
    printf("  free: \"%s\"\n", (char *)memory);
    free(memory);
}
static void release_file(void *file) {
    puts("  fclose");
    fclose(file);
}

static char *copy_scoped(const char *text) {
    char *memory = strdup(text);
    HAFT_PERFORM(defer, release_memory, memory);
    return memory;
}
static FILE *open_scoped(const char *path) {
    FILE *file = fopen(path, "r");
    if (file != NULL)
        HAFT_PERFORM(defer, release_file, file);
    return file;
}

static void *uses_resources(void *argument) {
    char *first = copy_scoped("first");
    FILE *file = open_scoped(argument);
    char *second = copy_scoped("second");
    printf("Working with %s, %s and %s file\n", first, second, file != NULL ? "a" : "no");
    return "done";
}

static void *handle_defer(haft_fiber_t *k) {
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(defer));
    if (haft_finished(request))
        return ((HAFT_PAYLOAD(return ) *)request.payload)->result;
    HAFT_PAYLOAD(defer) deferred = *(HAFT_PAYLOAD(defer) *)request.payload;
    void *result = handle_defer(k);
    deferred.function(deferred.argument);
    return result;
}

static void *with_resources(void *(*function)(void *), void *argument) {
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(function, argument);
    return handle_defer(k);
}

int main(void) {
    printf("%s\n", (char *)with_resources(uses_resources, "/dev/null"));
    printf("%s\n", (char *)with_resources(uses_resources, "/nowhere"));
    return 0;
}
