/* Memory to which only a suspended computation refers is no leak: LeakSanitizer looks into its
 * stack when the program ends. */
#include "check.hpp"

#include <haft.hpp>
#include <memory>
#include <vector>

struct Stop : haft::effect<int> {};

static std::vector<haft::resumption<int(int)>> *kept;

int main() {
    kept = new std::vector<haft::resumption<int(int)>>;
    for (int i = 0; i < 10; i++)
        haft::handle([i] {
            auto owned = std::make_unique<std::vector<int>>(1000, i);
            return haft::perform(Stop{}) + owned->at(5);
        }).with([](Stop, haft::resumption<int(int)> k) {
            kept->push_back(std::move(k));
            return 0;
        });
    CHECK(std::move(kept->at(3)).resume(1) == 4);
}
// SPDX-License-Identifier: MIT
