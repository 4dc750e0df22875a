// SPDX-License-Identifier: MIT
/* Scoped resources: a helper acquires for its caller, and the scope releases however it is left. */
#include <haft/resource.hpp>
#include <iostream>
#include <stdexcept>
#include <string>

/* A typical library with handles that have to be closed. */
struct connection {
    std::string host;
};
connection *connect(const std::string &host) {
    if (host == "nowhere")
        return nullptr;
    std::cout << "  connect to " << host << '\n';
    return new connection{host};
}
void disconnect(connection *open) {
    std::cout << "  disconnect from " << open->host << '\n';
    delete open;
}

/* Used like connect(), but without a disconnect: the scope around the caller does that. */
connection *connected(const std::string &host) {
    connection *open = haft::acquire(connect(host), disconnect);
    if (open == nullptr)
        throw std::runtime_error("there is no " + host);
    return open;
}

void copy_table(const std::string &from, const std::string &to) {
    connection *source = connected(from);
    connection *target = connected(to);
    std::cout << "  copy from " << source->host << " to " << target->host << '\n';
}

struct Question : haft::effect<bool> {
    std::string text;
};

int main() {
    std::cout << "returning:\n";
    haft::scoped([] { copy_table("alpha", "beta"); });

    std::cout << "throwing:\n";
    try {
        haft::scoped([] { copy_table("alpha", "nowhere"); });
    } catch (const std::runtime_error &error) {
        std::cout << "  " << error.what() << '\n';
    }

    /* The handler of the question drops the computation that asks: its scope releases, too. */
    std::cout << "abandoned:\n";
    haft::handle([] {
        haft::scoped([] {
            connected("alpha");
            if (haft::perform(Question{.text = "go on?"}))
                copy_table("alpha", "beta");
        });
    }).with(haft::never([](Question question) { std::cout << "  " << question.text << " no\n"; }));

    std::cout << "two scopes:\n";
    haft::scoped([](haft::scope session) {
        for (const char *table : {"users", "orders"})
            haft::scoped([&] {
                haft::defer([=] { std::cout << "  unlock " << table << '\n'; });
                std::cout << "  lock " << table << '\n';
                session.defer([=] { std::cout << "  report on " << table << '\n'; });
            });
        std::cout << "  all copied\n";
    });

    std::cout << "bracket:\n";
    std::size_t length =
        haft::bracket([] { return connect("gamma"); },
                      [](connection *open) { return open->host.size(); }, disconnect);
    std::cout << "  " << length << '\n';
}
