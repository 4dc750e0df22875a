/* Effects that share a clause by falling through, and a header that needs only the types. */
#include <seff_types.h>

typedef struct machine {
    seff_coroutine_t *program;
    effect_set understood;
    seff_request_t last;
    seff_coroutine_state_t state;
} machine_t;

#include <seff.h>
#include <stdio.h>

DEFINE_EFFECT(add, 62, int64_t, { int64_t a, b; });
DEFINE_EFFECT(times, 63, int64_t, { int64_t a, b; });
DEFINE_EFFECT(halt, 0, void, {});

static void *program(void *arg) {
    int64_t six = PERFORM(add, 2, 4), twelve = PERFORM(times, six, 2);
    printf("%ld %ld\n", six, twelve);
    THROW(halt);
    return arg;
}

int main(void) {
    machine_t machine = {seff_coroutine_new(program, NULL),
                         HANDLES(add) | HANDLES(times) | HANDLES(halt)};
    int64_t reply = 0, steps = 0;
    for (;; machine.last = seff_resume(machine.program, (void *)reply, machine.understood)) {
        if (steps++ == 0) {
            machine.last.effect = 1000;
            continue;
        }
        machine.state = machine.program->state;
        switch (machine.last.effect) {
            CASE_EFFECT(machine.last, add, { reply = payload.a + payload.b; })
            if (false)
                CASE_EFFECT(machine.last, times, { reply = payload.a * payload.b; })
            printf("%ld replies %ld\n", (long)machine.last.effect, reply);
            break;
            CASE_EFFECT(machine.last, halt, {})
            CASE_RETURN(machine.last, {
                printf("halted, state %d\n", (int)machine.state);
                seff_coroutine_delete(machine.program);
                return 0;
            })
        }
    }
}
/* SPDX-License-Identifier: MIT */
