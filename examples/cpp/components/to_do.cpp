// SPDX-License-Identifier: MIT
/* A to-do list as a tree of components: functions with hooks, called again only when they must
   be. */
#include "tree.hpp"

#include <iostream>
#include <string>
#include <vector>

using gui::attribute;
using gui::node;

struct Theme : haft::variable<std::string> {
    static std::string initial() { return "light"; }
};

struct item {
    int number;
    std::string text;
    bool operator==(const item &) const = default;
};

/* A line of the list, with a state of its own. */
node line(item what) {
    std::cout << "(render line " << what.number << ")\n";
    auto done = gui::use_state(false);
    std::string theme = gui::use_context<Theme>();
    gui::use_effect(
        [=] {
            std::cout << "(line " << what.number << " appears)\n";
            return [=] { std::cout << "(line " << what.number << " is gone)\n"; };
        },
        gui::once);
    return gui::element("line", attribute("id", "line" + std::to_string(what.number)),
                        attribute("theme", theme), gui::on("click", [=] { done.set(!done.value); }),
                        (done.value ? "[x] " : "[ ] ") + what.text);
}

node heading(std::size_t count) {
    std::cout << "(render heading)\n";
    return gui::element("heading", std::to_string(count) + " things to do");
}

node to_do_list() {
    auto items = gui::use_state(std::vector<item>{{1, "write"}, {2, "test"}});
    auto theme = gui::use_state(std::string("light"));

    std::vector<node> lines;
    for (const item &each : items.value)
        lines.push_back(gui::component<line>(each).with_key(std::to_string(each.number)));
    auto remove_first = [=] {
        items.set.update([](std::vector<item> all) {
            all.erase(all.begin());
            return all;
        });
    };
    auto add = [=] {
        items.set.update([](std::vector<item> all) {
            int number = all.empty() ? 1 : all.back().number + 1;
            all.push_back({number, "rest"});
            return all;
        });
    };
    return gui::element(
        "list", attribute("id", "list"), gui::on("add", add), gui::on("remove", remove_first),
        gui::on("darken", [=] { theme.set("dark"); }), gui::component<heading>(items.value.size()),
        gui::context<Theme>(theme.value, lines));
}

int main() {
    gui::tree page(gui::component<to_do_list>());
    std::cout << page.show();
    auto event = [&](const char *id, const char *what) {
        std::cout << "\n> " << what << ' ' << id << '\n';
        page.send(id, what);
        std::cout << page.show();
    };
    event("line2", "click"); /* only that line */
    event("list", "add");    /* the heading and the new line */
    event("list", "remove"); /* the second line keeps its state: it has a key */
    event("list", "darken"); /* all components that use the theme */
    std::cout << "\n> the end\n";
}
