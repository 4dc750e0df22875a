// SPDX-License-Identifier: MIT
// tree_explore, Haft for C++: at each node the path goes on to the left in a copy, then to the
// right.
#include "../program.h"

#include <algorithm>
#include <haft/multi_shot.hpp>

struct Choose : haft::effect<bool> {};

struct exploration {
    const tree_t *tree;
    std::int64_t state;
};

static std::int64_t path(exploration &explored, const tree_t *tree) {
    if (!tree)
        return explored.state;
    const tree_t *below = haft::perform<Choose>() ? tree->left : tree->right;
    explored.state = program_operator(explored.state, tree->value);
    return program_operator(tree->value, path(explored, below));
}

int main(int argc, char **argv) {
    exploration explored{tree_new(program_argument(argc, argv, 5)), 0};
    for (int repeat = 0; repeat < 10; repeat++)
        explored.state =
            haft::handle_multi_shot([&explored] { return path(explored, explored.tree); },
                                    [](Choose, haft::multi_shot<std::int64_t(bool)> k) {
                                        std::int64_t left = k.resume(true);
                                        return std::max(left, std::move(k).resume(false));
                                    });
    tree_free(explored.tree);
    return program_result(explored.state);
}
