// SPDX-License-Identifier: MIT
/* Effects in types: a function states what it may perform, and the compiler holds callers to it. */
#include <haft.hpp>
#include <iostream>
#include <string>

struct Ask : haft::effect<std::string> {
    std::string question;
};
struct Fail : haft::effect<> {
    std::string reason;
};

/* This function may ask and fail, and nothing else: its parameter grants these two effects. */
int ask_number(haft::may<Ask, Fail> can, const std::string &question) {
    std::string text = can.perform(Ask{.question = question});
    if (text.empty() || text.find_first_not_of("0123456789") != text.npos)
        can.perform(Fail{.reason = "'" + text + "' is not a number"});
    return std::stoi(text);
}

/* Handles failure itself, so that only Ask is left. */
int ask_patiently(haft::may<Ask> can) {
    return haft::handle(can,
                        [](haft::may<Ask, Fail> more) { return ask_number(more, "how many?"); })
        .with(haft::never([&](Fail fail) {
            std::cout << fail.reason << ", again\n";
            return ask_patiently(can);
        }));
}

int main() {
    const char *answers[] = {"many", "", "12"};
    int next = 0;
    /* ask_patiently outside of a handler of Ask would not compile: there is no may<Ask> to pass to
       it. */
    int number = haft::handle(ask_patiently).with([&](Ask ask) -> std::string {
        std::cout << ask.question << ' ' << answers[next] << '\n';
        return answers[next++];
    });
    std::cout << number << '\n';
}
