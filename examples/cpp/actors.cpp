// SPDX-License-Identifier: MIT
/* Actors: a bank whose accounts are actors, and a teller that is told when an account fails. */
#include <haft/actor.hpp>
#include <iostream>
#include <stdexcept>
#include <string>

struct deposit {
    int amount;
};
struct withdraw {
    int amount;
    haft::promise<bool> reply;
};
struct balance {
    haft::promise<int> reply;
};
struct audit {};

using account = haft::address<deposit, withdraw, balance>;

/* Receives by itself: its state is a local variable. */
static void run_account(haft::actor<deposit, withdraw, balance> &self) {
    int money = 0;
    for (;;)
        self.receive(
            [&](deposit message) {
                if (message.amount <= 0)
                    throw std::invalid_argument("a deposit of " + std::to_string(message.amount));
                money += message.amount;
            },
            [&](withdraw message) {
                bool enough = message.amount <= money;
                money -= enough ? message.amount : 0;
                message.reply.set_value(enough);
            },
            [&](balance message) { message.reply.set_value(money); });
}

/* Hands accounts out, opens a new one when the old one has failed, and closes after the audit. */
struct open_account {
    haft::promise<account> reply;
};

static void run_bank(haft::actor<open_account, haft::down, audit> &self) {
    auto open = [&self](open_account message) {
        account opened = self.spawn<deposit, withdraw, balance>({.name = "account"}, run_account);
        message.reply.set_value(opened);
    };
    auto told = [](haft::down message) {
        try {
            if (message.reason != nullptr)
                std::rethrow_exception(message.reason);
        } catch (const std::exception &error) {
            std::cout << "the bank hears of " << error.what() << '\n';
        }
    };
    auto closed = [](open_account) { std::cout << "the bank is closed\n"; };
    self.become(open, told, [=, &self](audit) {
        std::cout << "audit\n";
        self.become(closed, told, [&self](audit) { self.stop(); });
    });
}

int main() {
    haft::run([] {
        auto bank = haft::spawn<open_account, haft::down, audit>(run_bank);
        account mine = haft::await(haft::ask<open_account>(bank));
        mine.send(deposit{100});
        for (int amount : {70, 70})
            std::cout << "withdraw " << amount << ": "
                      << (haft::await(haft::ask<withdraw>(mine, amount)) ? "yes" : "no") << '\n';
        std::cout << "balance: " << haft::await(haft::ask<balance>(mine)) << '\n';

        mine.send(deposit{-5});
        try {
            haft::await(haft::ask<balance>(mine));
        } catch (const haft::broken_promise &) {
            std::cout << "the account does not answer\n";
        }
        bank.send(audit{});
        haft::future<account> refused = haft::ask<open_account>(bank);
        bank.send(audit{});
        while (bank.alive())
            haft::yield();
        std::cout << (mine.alive() ? "open" : "all over") << '\n';
    });
}
