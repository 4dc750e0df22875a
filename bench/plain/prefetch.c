/* SPDX-License-Identifier: MIT */
/* The prefetching binary search in plain C: sequentially, and interleaved by a state machine
 * written by hand. Also the data that all peers search. */
#include "../prefetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

prefetch_data_t prefetch_load(void) {
    static int *array;
    size_t length = benchmark_is_quick() ? 1u << 12 : 1u << 27;
    if (!array) {
        void *memory = mmap(NULL, length * sizeof *array, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            fprintf(stderr, "no memory for the array\n");
            exit(1);
        }
        array = memory;
        for (size_t i = 0; i < length; i++)
            array[i] = (int)(2 * i);
    }
    return (prefetch_data_t){array, length};
}

int prefetch_key(const prefetch_data_t *data, uint64_t i) {
    uint64_t mixed = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ (mixed >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
    return (int)((mixed >> 32) & (2 * data->length - 1));
}

void prefetch_check(const prefetch_data_t *data, uint64_t keys, uint64_t found) {
    uint64_t even = 0;
    for (uint64_t i = 0; i < keys; i++)
        even += prefetch_key(data, i) % 2 == 0;
    if (even != found) {
        fprintf(stderr, "the searches found %llu keys, there are %llu\n", (unsigned long long)found,
                (unsigned long long)even);
        exit(1);
    }
}

static NOINLINE bool search(const int *first, size_t length, int key) {
    while (length > 0) {
        size_t half = length / 2;
        int value = first[half];
        if (value == key)
            return true;
        if (value < key) {
            first += half + 1;
            length -= half + 1;
        } else {
            length = half;
        }
    }
    return false;
}

BENCHMARK("prefetch-sequential/001", prefetch_sequential) {
    prefetch_data_t data = prefetch_load();
    uint64_t found = 0;
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++)
        found += search(data.array, data.length, prefetch_key(&data, i));
    benchmark_stop(benchmark);
    prefetch_check(&data, benchmark->operations, found);
}

/* A search suspended before it reads first[length / 2]. */
typedef struct machine {
    const int *first;
    size_t length;
    int key;
    bool active;
} machine_t;

typedef enum { SEARCHING, FOUND, MISSING } step_t;

static void machine_start(machine_t *machine, const prefetch_data_t *data, int key) {
    *machine = (machine_t){data->array, data->length, key, true};
    prefetch_hint(machine->first + machine->length / 2);
}

static step_t machine_step(machine_t *machine) {
    size_t half = machine->length / 2;
    int value = machine->first[half];
    if (value == machine->key)
        return FOUND;
    if (value < machine->key) {
        machine->first += half + 1;
        machine->length -= half + 1;
    } else {
        machine->length = half;
    }
    if (machine->length == 0)
        return MISSING;
    prefetch_hint(machine->first + machine->length / 2);
    return SEARCHING;
}

BENCHMARK_SERIES("prefetch-state-machine", prefetch_state_machine, PREFETCH_STREAMS) {
    prefetch_data_t data = prefetch_load();
    machine_t machines[PREFETCH_MAXIMUM_STREAMS];
    int streams = (int)benchmark->parameter, active = 0;
    uint64_t next = 0, found = 0;
    benchmark_start(benchmark);
    for (int i = 0; i < streams; i++) {
        machines[i].active = next < benchmark->operations;
        if (machines[i].active) {
            machine_start(&machines[i], &data, prefetch_key(&data, next++));
            active++;
        }
    }
    while (active > 0) {
        for (int i = 0; i < streams; i++) {
            if (!machines[i].active)
                continue;
            step_t step = machine_step(&machines[i]);
            if (step == SEARCHING)
                continue;
            found += step == FOUND;
            if (next < benchmark->operations) {
                machine_start(&machines[i], &data, prefetch_key(&data, next++));
            } else {
                machines[i].active = false;
                active--;
            }
        }
    }
    benchmark_stop(benchmark);
    prefetch_check(&data, benchmark->operations, found);
}
