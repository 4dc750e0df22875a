// SPDX-License-Identifier: MIT
/* async and await: a slow service is asked for several things at once, and plain functions wait. */
#include <haft/async.hpp>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

/* Answers questions later, in its own order, as a server would. */
class service {
  public:
    haft::future<std::string> request(std::string question) {
        waiting.push_back({std::move(question), {}});
        return waiting.back().answer.get_future();
    }
    /* Answers the latest question first. */
    bool work() {
        if (waiting.empty())
            return false;
        job next = std::move(waiting.back());
        waiting.pop_back();
        std::cout << "(answers " << next.question << ")\n";
        if (auto found = known.find(next.question); found != known.end())
            next.answer.set_value(found->second);
        else
            next.answer.set_exception(
                std::make_exception_ptr(std::runtime_error("no such thing: " + next.question)));
        return true;
    }

  private:
    struct job {
        std::string question;
        haft::promise<std::string> answer;
    };
    std::vector<job> waiting;
    std::map<std::string, std::string> known = {
        {"city", "Cambridge"}, {"Cambridge", "the Cam"}, {"name", "Ada"}};
};

/* An ordinary function: its type does not tell that it waits. */
static std::string river_of(service &server, const std::string &question) {
    std::string city = haft::await(server.request(question));
    return haft::await(server.request(city));
}

int main() {
    haft::run([] {
        service server;
        haft::future<std::string> name =
            haft::async([&] { return haft::await(server.request("name")); });
        haft::future<std::string> river = haft::async([&] { return river_of(server, "city"); });
        haft::future<std::string> failing = haft::async([&] { return river_of(server, "town"); });
        haft::future<> working = haft::async([&] {
            do {
                haft::yield();
            } while (server.work());
        });

        std::size_t first = haft::await_any(name, river, failing);
        std::cout << "ready first: "
                  << (first == 0   ? "name"
                      : first == 1 ? "river"
                                   : "failing")
                  << '\n';
        try {
            haft::await(failing);
        } catch (const std::runtime_error &error) {
            std::cout << error.what() << '\n';
        }
        auto [who, where] = haft::await_all(name, river);
        std::cout << who << " sits by " << where << '\n';
        haft::await(working);
    });
}
