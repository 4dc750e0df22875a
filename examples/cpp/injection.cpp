// SPDX-License-Identifier: MIT
/* Dependency injection and dynamic binding: a program, and the test of that program. */
#include <haft/binding.hpp>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

struct Clock {
    virtual ~Clock() = default;
    virtual int hour() = 0;
};
struct Mail {
    virtual ~Mail() = default;
    virtual void send(const std::string &to, const std::string &text) = 0;
};

/* Where messages of the program go, and in which language. */
struct Out : haft::variable<std::ostream &> {};
struct Language : haft::variable<std::string> {
    static std::string initial() { return "en"; }
};

/* The program's own code, however deep in its calls, works with whatever it is given. */
std::string greeting() {
    bool morning = haft::inject<Clock>().hour() < 12;
    if (haft::bound<Language>() == "fr")
        return morning ? "bonjour" : "bonsoir";
    return morning ? "good morning" : "good evening";
}
void greet(const std::string &name) {
    haft::inject<Mail>().send(name, greeting() + ", " + name);
    haft::bound<Out>() << "greeted " << name << '\n';
}

struct WallClock : Clock {
    int hour() override { return 20; } /* to print the same each time */
};
struct StampedMail : Mail {
    Clock &clock = haft::inject<Clock>();
    StampedMail() { haft::bound<Out>() << "mail is set up\n"; }
    void send(const std::string &to, const std::string &text) override {
        haft::bound<Out>() << "[" << clock.hour() << "h] to " << to << ": " << text << '\n';
    }
};

template <typename Body>
void with_everything(Body body) {
    haft::bind<Out>(std::cout, [&] {
        haft::provide<Clock>(WallClock())
            .provide<Mail>([] { return StampedMail(); }) /* made when it is first needed */
            .run(body);
    });
}
void program() {
    with_everything([] {
        greet("ann");
        haft::bind<Language>("fr", [] { greet("bob"); });
        greet("cy");
    });
}

/* In the test the program runs as it is, with other objects in place of its own. */
struct FakeClock : Clock {
    int hour() override { return 7; }
};
struct Outbox : Mail {
    std::map<std::string, std::string> sent;
    void send(const std::string &to, const std::string &text) override { sent[to] = text; }
};

int main() {
    program();

    Outbox outbox;
    haft::substitute<Clock>(FakeClock(), [&] { haft::substitute<Mail>(outbox, program); });
    std::cout << "test: " << outbox.sent["bob"] << "; " << outbox.sent["cy"] << '\n';

    try {
        greet("nobody");
    } catch (const haft::missing_binding &error) {
        std::cout << error.what() << '\n';
    }
}
