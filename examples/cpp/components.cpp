/* A to-do list as a tree of components: functions with hooks, called again only when they must be.
 */
#include <haft/component.hpp>
#include <iostream>
#include <string>
#include <vector>

using haft::attribute;
using haft::node;

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
    auto done = haft::use_state(false);
    std::string theme = haft::use_context<Theme>();
    haft::use_effect(
        [=] {
            std::cout << "(line " << what.number << " appears)\n";
            return [=] { std::cout << "(line " << what.number << " is gone)\n"; };
        },
        haft::once);
    return haft::element("line", attribute("id", "line" + std::to_string(what.number)),
                         attribute("theme", theme),
                         haft::on("click", [=] { done.set(!done.value); }),
                         (done.value ? "[x] " : "[ ] ") + what.text);
}

node heading(std::size_t count) {
    std::cout << "(render heading)\n";
    return haft::element("heading", std::to_string(count) + " things to do");
}

node to_do_list() {
    auto items = haft::use_state(std::vector<item>{{1, "write"}, {2, "test"}});
    auto theme = haft::use_state(std::string("light"));

    std::vector<node> lines;
    for (const item &each : items.value)
        lines.push_back(haft::component<line>(each).with_key(std::to_string(each.number)));
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
    return haft::element(
        "list", attribute("id", "list"), haft::on("add", add), haft::on("remove", remove_first),
        haft::on("darken", [=] { theme.set("dark"); }),
        haft::component<heading>(items.value.size()), haft::context<Theme>(theme.value, lines));
}

int main() {
    haft::tree page(haft::component<to_do_list>());
    std::cout << page.show();
    auto event = [&](const char *id, const char *what) {
        std::cout << "\n> " << what << ' ' << id << '\n';
        page.send(id, what);
        std::cout << page.show();
    };
    event("line2", "click"); /* only that line */
    event("list", "add");    /* the heading and the new line */
    event("list", "remove"); /* the second line keeps its state: it has a key */
    event("list", "darken"); /* all who use the theme */
    std::cout << "\n> the end\n";
}
