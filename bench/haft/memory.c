/* SPDX-License-Identifier: MIT */
/* Memory of suspended fibers, by kind of stack: `memory pool|dense|fixed|segmented [count]`. */
#include "../memory.h"

#include <haft.h>

#include <sys/mman.h>

HAFT_EFFECT(pause, void, {});

static void *pause_once(void *unused) {
    HAFT_PERFORM(pause);
    return unused;
}

/* Addresses without memory behind them until they are used. */
static char *reserve(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return memory;
}

int main(int argc, char **argv) {
    const char *kind = argc > 1 ? argv[1] : "pool";
    int64_t count = argc > 2 ? strtoll(argv[2], NULL, 10) : 1000;
    bool segmented = strcmp(kind, "segmented") == 0;
    haft_fiber_options_t options = {.segmented = segmented};
    if (strcmp(kind, "dense") == 0)
        options = (haft_fiber_options_t){.dense = true, .stack_size = 1024};
    char *fixed = strcmp(kind, "fixed") == 0 ? reserve((size_t)count * HAFT_FIBER_MINIMUM) : NULL;
    haft_fiber_t **fibers = memory_array(count, sizeof *fibers);
    const haft_handles_t *pauses = HAFT_HANDLES(pause);

    memory_use_t before = memory_measure();
    for (int64_t i = 0; i < count; i++) {
        if (fixed) {
            options.memory = fixed + (size_t)i * HAFT_FIBER_MINIMUM;
            options.memory_size = HAFT_FIBER_MINIMUM;
        }
        fibers[i] = haft_fiber_new_with(&options, pause_once, NULL);
        haft_resume(fibers[i], HAFT_NO_REPLY, pauses);
    }
    memory_use_t after = memory_measure();
    for (int64_t i = 0; i < count; i++) {
        haft_resume(fibers[i], HAFT_NO_REPLY, pauses);
        haft_fiber_drop(fibers[i]);
    }
    memory_print(count, before, after, memory_measure());
    free(fibers);
    return 0;
}
