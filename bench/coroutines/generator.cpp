// SPDX-License-Identifier: MIT
// generator, C++20 coroutines: a recursive generator that resumes its leaf directly.
#include "../program.h"
#include "requester.hpp"

struct nothing {};

using emitter = bench::channel<int64_t, nothing>;

static bench::task<void> traverse(emitter &out, const tree_t *tree) {
    if (!tree)
        co_return;
    co_await traverse(out, tree->left);
    co_await out.perform(tree->value);
    co_await traverse(out, tree->right);
}

int main(int argc, char **argv) {
    const tree_t *tree = tree_new(program_argument(argc, argv, 5));
    int64_t sum = 0;
    {
        emitter out;
        bench::task<void> values = traverse(out, tree);
        while (out.resume(values))
            sum += out.request;
    }
    tree_free(tree);
    return program_result(sum);
}
