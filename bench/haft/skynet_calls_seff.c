/* SPDX-License-Identifier: MIT */
/* skynet, Haft, through seff.h, with system calls. */
#define SKYNET_CALLS
#include "skynet_seff.h"

static seff_coroutine_t *skynet_coroutine(seff_start_fun_t *function, void *argument) {
    return seff_coroutine_new(function, argument);
}

int main(int argc, char **argv) {
    return skynet_program(argc, argv);
}
