/* State with rollback: a bank whose transfers happen as a whole, or not at all. */
#include <haft/state.hpp>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

struct Accounts : haft::state<std::map<std::string, int>> {};
struct Journal : haft::state<std::vector<std::string>> {};

void add(const std::string &owner, int amount) {
    haft::update<Accounts>([&](auto &accounts) { accounts[owner] += amount; });
    haft::update<Journal>([&](auto &lines) {
        lines.push_back(owner + (amount < 0 ? " " : " +") + std::to_string(amount));
    });
}
int balance(const std::string &owner) {
    return haft::inspect<Accounts>([&](const auto &accounts) {
        auto found = accounts.find(owner);
        if (found == accounts.end())
            throw std::invalid_argument("there is no account of " + owner);
        return found->second;
    });
}

/* False if there is too little money; all that it has done is taken back then. */
bool transfer(const std::string &from, const std::string &to, int amount) {
    return haft::transaction<Accounts, Journal>([&] {
        add(from, -amount);
        (void)balance(to);
        add(to, amount);
        if (balance(from) < 0)
            haft::roll_back();
    });
}

/* Both of two transfers, or none: a transaction around transactions. */
bool swap_debts(int amount) {
    return haft::transaction<Accounts, Journal>([&] {
        if (!transfer("ann", "bob", amount) || !transfer("bob", "cy", 2 * amount))
            haft::roll_back();
    });
}

void show(const std::string &what) {
    std::cout << what << ':';
    haft::inspect<Accounts>([](const auto &accounts) {
        for (const auto &[owner, money] : accounts)
            std::cout << ' ' << owner << '=' << money;
    });
    std::cout << '\n';
}

int main() {
    haft::cells<Accounts, Journal> bank({{"ann", 50}, {"bob", 10}, {"cy", 0}}, {});
    haft::handle([] {
        std::cout << std::boolalpha;
        show("at first");
        std::cout << "20 from ann to bob: " << transfer("ann", "bob", 20) << '\n';
        show("then");
        std::cout << "99 from ann to bob: " << transfer("ann", "bob", 99) << '\n';
        show("as before");
        try {
            transfer("ann", "zoe", 5);
        } catch (const std::invalid_argument &error) {
            std::cout << error.what() << '\n';
        }
        show("as before");
        std::cout << "30, then 60: " << swap_debts(30) << '\n';
        std::cout << "40, then 80: " << swap_debts(40) << '\n';
        show("at last");
    }).with(bank);
    for (const std::string &line : bank.get<Journal>())
        std::cout << line << '\n';
}
