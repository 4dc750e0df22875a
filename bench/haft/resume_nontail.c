/* SPDX-License-Identifier: MIT */
/* resume_nontail, Haft: a general clause that continues first and works on the answer. */
#include "../program.h"

#include <haft.h>

HAFT_EFFECT(operate, void, { int64_t operand; });

typedef struct task {
    int64_t count, start;
} task_t;

static void *loop(void *argument) {
    const task_t *task = argument;
    for (int64_t i = task->count; i > 0; i--)
        HAFT_PERFORM(operate, i);
    return (void *)(intptr_t)task->start;
}

static haft_answer_t on_operate(void *unused, HAFT_PAYLOAD(operate) * payload,
                                haft_resumption_t k) {
    (void)unused;
    int64_t operand = payload->operand;
    int64_t rest = (intptr_t)haft_resumption_resume(k, HAFT_NO_REPLY);
    return haft_answer((void *)(intptr_t)program_operator(operand, rest));
}

HAFT_HANDLER(operating, NULL, HAFT_GENERAL(operate, on_operate));

int main(int argc, char **argv) {
    task_t task = {.count = program_argument(argc, argv, 5), .start = 0};
    for (int repeat = 0; repeat < 1000; repeat++)
        task.start = (intptr_t)haft_handle(&operating, NULL, loop, &task);
    return program_result(task.start);
}
