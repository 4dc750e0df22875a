// SPDX-License-Identifier: MIT
/* Rollback: a bank whose transfers happen as a whole, or not at all. A transaction is a handler
   between the code that writes and the bank; it notes every value before the first write to it. */
#include <haft.hpp>
#include <iostream>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

struct bank {
    std::map<std::string, int> accounts;
    std::vector<std::string> journal;
};

struct Read : haft::effect<const bank &> {};
struct Write : haft::effect<bank &> {};
struct RollBack : haft::effect<> {};

/* Returns false if the body was rolled back. Left by an exception, it rolls back, too. */
template <typename Body>
bool transaction(Body body) {
    struct recovery : haft::handler<Write> {
        std::optional<bank> before;
        bank *written = nullptr;

        /* The clause's own perform goes further out: a transaction around this one sees it. */
        bank &operator()(Write write) {
            written = &haft::perform(write);
            if (!before)
                before = *written;
            return *written;
        }
        ~recovery() {
            if (before)
                *written = std::move(*before);
        }
    } writes;
    auto commit_at_the_end = [&] {
        haft::handle(body).with(writes);
        writes.before.reset();
        return true;
    };
    return haft::handle(commit_at_the_end).with(haft::never([](RollBack) { return false; }));
}

void add(const std::string &owner, int amount) {
    bank &now = haft::perform(Write{});
    now.accounts[owner] += amount;
    now.journal.push_back(owner + (amount < 0 ? " " : " +") + std::to_string(amount));
}
int balance(const std::string &owner) {
    const bank &now = haft::perform(Read{});
    if (!now.accounts.contains(owner))
        throw std::invalid_argument("there is no account of " + owner);
    return now.accounts.at(owner);
}

/* False if there is too little money; all that it has done is taken back then. */
bool transfer(const std::string &from, const std::string &to, int amount) {
    return transaction([&] {
        add(from, -amount);
        (void)balance(to);
        add(to, amount);
        if (balance(from) < 0)
            haft::perform(RollBack{});
    });
}

void show(const std::string &what) {
    std::cout << what << ':';
    for (const auto &[owner, money] : haft::perform(Read{}).accounts)
        std::cout << ' ' << owner << '=' << money;
    std::cout << '\n';
}

int main() {
    bank all{{{"ann", 50}, {"bob", 10}, {"cy", 0}}, {}};
    haft::handle([] {
        std::cout << std::boolalpha;
        show("at first");
        std::cout << "20 from ann to bob: " << transfer("ann", "bob", 20) << '\n';
        std::cout << "99 from ann to bob: " << transfer("ann", "bob", 99) << '\n';
        try {
            transfer("ann", "zoe", 5);
        } catch (const std::invalid_argument &error) {
            std::cout << error.what() << '\n';
        }
        /* Both of two, or none: a transaction around transactions. */
        std::cout << "5 to bob, then 90 to cy: " << transaction([] {
            if (!transfer("ann", "bob", 5) || !transfer("bob", "cy", 90))
                haft::perform(RollBack{});
        }) << '\n';
        show("at last");
    }).with([&](Read) -> const bank & { return all; }, [&](Write) -> bank & { return all; });
    for (const std::string &line : all.journal)
        std::cout << line << '\n';
}
