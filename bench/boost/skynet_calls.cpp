// SPDX-License-Identifier: MIT
// skynet, Boost.Context, with system calls.
#define SKYNET_CALLS
#include "skynet.hpp"

int main(int argc, char **argv) {
    return skynet_program(argc, argv);
}
