/* Commands are effects of haft.hpp: either interface reaches the handlers of the other. */
#include "../../../cpp/tests/check.hpp"

#include "cpp-effects/cpp-effects.h"
#include <string>
namespace eff = cpp_effects;

struct Get : eff::command<int> {};
struct Add : eff::command<std::string> {
    std::string text;
};

class Handler : public eff::flat_handler<std::string, eff::plain<Get>, Add> {
    int gets = 0;
    int handle_command(Get) override { return ++gets; }
    std::string handle_command(Add a, eff::resumption<std::string(std::string)> r) override {
        return std::move(r).resume(a.text + "!") + ";";
    }
};

static void haft_performs_commands() {
    CHECK(eff::handle<Handler>([] {
              int sum = haft::perform(Get{}) + haft::perform(Get{});
              return haft::perform<Add>("a") + std::to_string(sum);
          }) == "a!3;");
}

static void haft_handles_commands() {
    int last = 0;
    std::string got =
        haft::handle([] {
            eff::invoke_command(Get{});
            return eff::invoke_command(Add{{}, "a"}) + eff::invoke_command(Add{{}, "b"});
        })
            .with([&](Get) { return ++last; },
                  [](Add a, haft::resumption<std::string(std::string)> k) {
                      return std::move(k).resume(a.text) + ";";
                  });
    CHECK(got == "ab;;" && last == 1);
}

static void labels_are_found_past_handlers_of_haft() {
    struct Other : haft::effect<int> {};
    std::string got = eff::handle<Handler>(3, [] {
        return haft::handle([] {
                   return haft::handle([] {
                              return std::to_string(eff::invoke_command(3, Get{}) +
                                                    eff::invoke_command(3, Get{}));
                          })
                       .with([](Get) { return 100; });
               })
            .with(
                [](Other, haft::resumption<std::string(int)> k) { return std::move(k).resume(1); });
    });
    CHECK(got == "3");
}

static void resumptions_of_haft_are_taken() {
    eff::resumption<int(int)> r = haft::wrap<int>([](int n) { return n + 1; }).with();
    CHECK(std::move(r).resume(2) == 3);
}

int main() {
    haft_performs_commands();
    haft_handles_commands();
    labels_are_found_past_handlers_of_haft();
    resumptions_of_haft_are_taken();
}
// SPDX-License-Identifier: MIT
