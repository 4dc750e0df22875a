/* SPDX-License-Identifier: MIT */
/*
 * The systems of simulations. In a simulation a task has two systems below it: the machine's, and
 * the simulation's, which has the descriptors from HAFTI_IO_FIRST_SIMULATED on and, where it
 * simulates a network or files, the sockets and files that it makes and names. Both are called in
 * the same way.
 */
#ifndef HAFTI_POSIX_SIMULATIONS_H
#define HAFTI_POSIX_SIMULATIONS_H

#include "system.h"

/* The functions of the system that has the descriptor. On a simulated one none of them waits,
   whatever its mode. */
const hafti_posix_system_t *hafti_posix_simulated_system(void); /* simulated.c */
static inline bool hafti_posix_may_be_simulated(int descriptor) {
    return __builtin_expect(descriptor >= HAFTI_IO_FIRST_SIMULATED, false);
}
static inline const hafti_posix_system_t *hafti_posix_system_of(int descriptor) {
    return hafti_posix_may_be_simulated(descriptor) ? hafti_posix_simulated_system()
                                                    : hafti_posix_system();
}
#define SYSTEM_OF(descriptor, name) (hafti_posix_system_of(descriptor)->name)

#define HAFTI_IO_SYSTEM_OF SYSTEM_OF
#include "../../src/results.h"

/* Whether the caller may be in a simulation at all. */
static inline bool hafti_posix_may_simulate(void) {
    return __builtin_expect(__atomic_load_n(&haft_io_simulates, __ATOMIC_RELAXED), false);
}
/* The functions by which the caller makes sockets. */
const hafti_posix_system_t *hafti_posix_network_system_asked(void);
static inline const hafti_posix_system_t *hafti_posix_network_system(void) {
    return hafti_posix_may_simulate() ? hafti_posix_network_system_asked() : hafti_posix_system();
}
/* The functions for paths that begin in no descriptor, and name nothing of the machine's. */
const hafti_posix_system_t *hafti_posix_file_system(void); /* simulated.c */
void hafti_posix_find_simulated_files(hafti_posix_system_t *simulated);

/* Makes the call in the simulation of the current task, and sets errno. */
#define SIMULATED(name, ...) hafti_posix_result(haft_io_simulated_calls()->name(__VA_ARGS__))
/* The function of the C library that differs from the call by errno only (the lists of calls.h). */
#define SIMULATED_ALIKE(result, name, parameters, arguments)                                       \
    static result simulated_##name parameters {                                                    \
        return (result)hafti_posix_result(haft_io_simulated_calls()->name arguments);              \
    }

/* Whether the number is of a call for the time or for chance that the simulation answers, in which
   the caller is a task; then its result, or -1 and errno. (clocks.c) */
bool hafti_posix_simulated_call(long number, long first, long second, long third, long *result);

#endif
