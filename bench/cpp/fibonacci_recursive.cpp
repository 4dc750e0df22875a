// SPDX-License-Identifier: MIT
// fibonacci_recursive, Haft for C++: code that uses no effects, in a program that is linked with
// the library.
#include "../program.h"

#include <haft.hpp>

static NOINLINE std::int64_t fibonacci(std::int64_t n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

int main(int argc, char **argv) {
    return program_result(fibonacci(program_argument(argc, argv, 5)));
}
