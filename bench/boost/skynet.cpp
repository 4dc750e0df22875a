// SPDX-License-Identifier: MIT
// skynet, Boost.Context.
#include "skynet.hpp"

int main(int argc, char **argv) {
    return skynet_program(argc, argv);
}
