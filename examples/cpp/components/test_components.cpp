/* Trees of components with hooks: which are called again, what they keep, what is cleaned up. */
#include "check.hpp"
#include "tree.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

using gui::attribute;
using gui::component;
using gui::element;
using gui::node;
using gui::on;
using gui::tree;
using gui::use_effect;
using gui::use_state;

struct Pause : haft::effect<> {};

static std::string trace;
static std::string take_trace() {
    return std::exchange(trace, "");
}

static node counter(std::string name) {
    trace += name + " ";
    auto count = use_state(0);
    return element("button", attribute("id", name),
                   on("click", [=] { count.set(count.value + 1); }),
                   on("twice",
                      [=] {
                          for (int i = 0; i < 2; i++)
                              count.set.update([](int before) { return before + 1; });
                      }),
                   on("same", [=] { count.set(count.value); }), std::to_string(count.value));
}

static void a_tree_shows_what_components_return() {
    tree shown(element("row", component<counter>("a"), "text", node(),
                       std::vector<node>{node("one"), node("two")}));
    CHECK(shown.show() == "row\n  button id=a\n    0\n  text\n  one\n  two\n");
    CHECK(tree(node()).show() == "");
    CHECK(tree(component<[] { return node("only"); }>()).show() == "only\n");
    take_trace();
}

static void only_what_has_changed_is_called_again() {
    tree shown(element("row", component<counter>("a"), component<counter>("b")));
    CHECK(take_trace() == "a b ");
    shown.send("b", "click");
    CHECK(take_trace() == "b ");
    CHECK(shown.show() == "row\n  button id=a\n    0\n  button id=b\n    1\n");
    CHECK(shown.update() == 0);
    shown.send("b", "same");
    CHECK(take_trace() == "");
    /* Several changes are one render. */
    shown.send("b", "twice");
    CHECK(take_trace() == "b ");
    CHECK(shown.show() == "row\n  button id=a\n    0\n  button id=b\n    3\n");
    /* Equal properties are no change; others are. */
    CHECK(shown.set(element("row", component<counter>("a"), component<counter>("c"))) == 1);
    CHECK(take_trace() == "c ");
    CHECK(shown.show() == "row\n  button id=a\n    0\n  button id=c\n    3\n");
}

static node panel() {
    trace += "panel ";
    auto title = use_state(std::string("t"));
    return element("panel", attribute("id", "panel"),
                   on("rename", [=] { title.set(title.value + "!"); }), title.value,
                   component<counter>("in"));
}

static void a_parent_does_not_call_children_that_are_the_same() {
    tree shown(component<panel>());
    CHECK(take_trace() == "panel in ");
    shown.send("in", "click");
    CHECK(take_trace() == "in ");
    shown.send("panel", "rename");
    CHECK(take_trace() == "panel ");
    CHECK(shown.show() == "panel id=panel\n  t!\n  button id=in\n    1\n");
}

static void properties_that_cannot_be_compared_are_a_change() {
    struct opaque {};
    static int calls;
    calls = 0;
    auto make = [] { return component<[](opaque) { return calls++, node("x"); }>(opaque()); };
    tree shown(make());
    shown.set(make());
    CHECK(calls == 2);
}

static void children_keep_their_memory_by_place_or_key() {
    auto item = [](const char *name) { return component<counter>(name).with_key(name); };
    tree shown(element("list", item("a"), item("b"), item("c")));
    shown.send("b", "click");
    take_trace();
    shown.set(element("list", item("c"), item("b"), item("d")));
    CHECK(take_trace() == "d ");
    CHECK(shown.show() ==
          "list\n  button id=c\n    0\n  button id=b\n    1\n  button id=d\n    0\n");
    /* Without keys the place counts: the memory of the first goes to whatever comes first. */
    shown.set(element("list", component<counter>("x"), component<counter>("y")));
    shown.send("x", "click");
    shown.set(element("list", component<counter>("y")));
    CHECK(shown.show() == "list\n  button id=y\n    1\n");
    /* A node that shows nothing has its place. */
    shown.set(element("list", node(), component<counter>("y")));
    CHECK(shown.show() == "list\n  button id=y\n    0\n");
    shown.send("y", "click");
    shown.set(element("list", "text", component<counter>("y")));
    CHECK(shown.show() == "list\n  text\n  button id=y\n    1\n");
    take_trace();
}

/* Longer than what a string keeps in itself. */
static void long_keys_may_change_their_order() {
    auto row = [](std::vector<std::string> names) {
        std::vector<node> all;
        for (const std::string &name : names)
            all.push_back(node(name).with_key("the key of the child named " + name));
        return element("row", all);
    };
    tree shown(row({"a", "b", "c"}));
    CHECK(shown.set(row({"b", "c", "a"})) == 0 && shown.show() == "row\n  b\n  c\n  a\n");
}

static void equal_keys_are_an_error() {
    std::string what = thrown_by<std::logic_error>([] {
                           tree(element("list", node("x").with_key("k"), node("y").with_key("k")));
                       }).what();
    CHECK(what.find("'k'") != what.npos && what.find("'list'") != what.npos);
}

static node watched(std::string name, int dependency) {
    use_effect(
        [=] {
            trace += "+" + name + std::to_string(dependency) + " ";
            return [=] { trace += "-" + name + std::to_string(dependency) + " "; };
        },
        dependency);
    return node(name);
}

static void effects_run_after_the_render_and_are_cleaned_up() {
    {
        tree shown(component<watched>("w", 1));
        CHECK(take_trace() == "+w1 ");
        shown.set(component<watched>("w", 1));
        CHECK(take_trace() == "");
        shown.set(component<watched>("v", 1)); /* the dependency is the same */
        CHECK(take_trace() == "");
        shown.set(component<watched>("v", 2));
        CHECK(take_trace() == "-w1 +v2 ");
        shown.set("gone");
        CHECK(take_trace() == "-v2 ");
        shown.set(component<watched>("u", 3));
        CHECK(take_trace() == "+u3 ");
    }
    CHECK(take_trace() == "-u3 ");
}

static void effects_without_dependencies_run_every_time_and_those_on_once_once() {
    constexpr auto body = [](int) {
        use_effect([] { trace += "always "; });
        use_effect([] { trace += "once "; }, gui::once);
        return node("x");
    };
    tree shown(component<body>(1));
    CHECK(take_trace() == "always once ");
    shown.set(component<body>(2));
    CHECK(take_trace() == "always ");
}

static node outer_watched() {
    use_effect(
        [] {
            trace += "+outer ";
            return [] { trace += "-outer "; };
        },
        gui::once);
    return element("box", component<watched>("first", 1), component<watched>("second", 2));
}

static void children_come_before_their_parents() {
    {
        tree shown(component<outer_watched>());
        CHECK(take_trace() == "+first1 +second2 +outer ");
    }
    CHECK(take_trace() == "-second2 -first1 -outer ");
}

static node loader() {
    auto data = use_state(std::string("loading"));
    use_effect([=] { data.set("loaded"); }, gui::once);
    return node(data.value);
}

static void an_effect_may_set_a_state() {
    tree shown(component<loader>());
    CHECK(shown.show() == "loaded\n");
}

static node endless() {
    auto count = use_state(0);
    count.set(count.value + 1);
    return node("x");
}

static void rendering_without_end_is_an_error_that_names_the_component() {
    std::string what = thrown_by<std::logic_error>([] { tree shown(component<endless>()); }).what();
    CHECK(what.find("endless") != what.npos);
}

static std::optional<gui::setter<int>> kept;
static node exposing() {
    auto count = use_state(1);
    kept = count.set;
    return node(std::to_string(count.value));
}

static void a_setter_of_what_is_gone_does_nothing() {
    {
        tree shown(component<exposing>());
        (*kept)(5);
        CHECK(shown.update() == 1 && shown.show() == "5\n");
        shown.set("other");
        (*kept)(6);
        CHECK(shown.update() == 0);
        shown.set(component<exposing>());
        CHECK(shown.show() == "1\n");
    }
    (*kept)(7);
    kept->update([](int value) { return value + 1; });
}

static void a_memo_is_computed_when_its_dependencies_change() {
    static int computed;
    computed = 0;
    constexpr auto body = [](int number, std::string label) {
        const int &square = gui::use_memo([&] { return computed++, number * number; }, number);
        return node(label + std::to_string(square));
    };
    tree shown(component<body>(3, "a"));
    shown.set(component<body>(3, "b"));
    CHECK(shown.show() == "b9\n" && computed == 1);
    shown.set(component<body>(4, "b"));
    CHECK(shown.show() == "b16\n" && computed == 2);
}

struct Theme : haft::variable<std::string> {
    static std::string initial() { return "plain"; }
};
static node themed(std::string name) {
    trace += name + " ";
    return node(name + ":" + gui::use_context<Theme>());
}

static void a_context_reaches_everything_below() {
    auto make = [](std::string theme) {
        return element("page", component<themed>("out"),
                       gui::context<Theme>(
                           theme, component<themed>("in"), component<counter>("c"),
                           element("deep", gui::context<Theme>("own", component<themed>("own")))));
    };
    tree shown(make("dark"));
    CHECK(shown.show() ==
          "page\n  out:plain\n  in:dark\n  button id=c\n    0\n  deep\n    own:own\n");
    take_trace();
    shown.set(make("dark"));
    CHECK(take_trace() == "");
    shown.set(make("light"));
    CHECK(take_trace() == "in "); /* only the components that use it */
    CHECK(shown.show().find("in:light") != std::string::npos);
    /* Where no context is above, the dynamic binding around the update counts. */
    haft::bind<Theme>("bound", [] { CHECK(tree(component<themed>("x")).show() == "x:bound\n"); });
    take_trace();
}

static node conditional(int mode) {
    if (mode == 1)
        use_effect([] {});
    auto count = use_state(0);
    if (mode == 2)
        use_state(std::string());
    if (mode == 3)
        return node("none");
    use_effect([] {}, count.value);
    return node(std::to_string(mode));
}
static node sometimes(bool on_or_off) {
    if (on_or_off)
        use_state(0);
    return node("sometimes");
}

static void hooks_in_another_order_are_an_error_that_names_them() {
    auto error = [](int mode) {
        tree shown(component<conditional>(0));
        std::string what =
            thrown_by<gui::hook_error>([&] { shown.set(component<conditional>(mode)); }).what();
        CHECK(what.find("conditional") != what.npos);
        /* The tree goes on when the component is right again. */
        shown.set(component<conditional>(4));
        CHECK(shown.show() == "4\n");
        return what;
    };
    std::string what = error(1);
    CHECK(what.find("hook 1 was use_state<int>") != what.npos &&
          what.find("is now use_effect") != what.npos);
    what = error(2);
    CHECK(what.find("hook 2 was use_effect") != what.npos &&
          what.find("is now use_state") != what.npos);
    what = error(3);
    CHECK(what.find("fewer hooks") != what.npos && what.find("hook 2, use_effect") != what.npos);
    tree shown(component<sometimes>(false));
    what = thrown_by<gui::hook_error>([&] { shown.set(component<sometimes>(true)); }).what();
    CHECK(what.find("more hooks") != what.npos && what.find("use_state<int>") != what.npos);
}

static void a_hook_outside_of_a_component_is_an_error() {
    std::string what = thrown_by<gui::hook_error>([] { use_state(0); }).what();
    CHECK(what.find("use_state<int>") != what.npos && what.find("outside") != what.npos);
    /* In a listener, too. */
    constexpr auto body = [] {
        return element("e", attribute("id", "e"), on("click", [] { use_state(0); }));
    };
    tree shown(component<body>());
    (void)thrown_by<gui::hook_error>([&] { shown.send("e", "click"); });
}

static node failing(int mode) {
    counted local;
    auto count = use_state(0);
    use_effect(
        [=] {
            trace += "effect ";
            if (mode == 2)
                throw mode;
        },
        gui::once);
    if (mode == 1)
        throw mode;
    return element("f", attribute("id", "f"), on("click", [=] { count.set(count.value + 1); }),
                   std::to_string(count.value));
}

static void an_exception_leaves_the_tree_usable() {
    auto make = [](int mode) {
        return element("row", component<counter>("a"), component<failing>(mode),
                       component<counter>("b"));
    };
    tree shown(make(0));
    shown.send("f", "click");
    shown.send("b", "click");
    take_trace();
    const std::string good = shown.show();
    CHECK(thrown_by<int>([&] { shown.set(make(1)); }) == 1);
    CHECK(shown.show() == good);
    CHECK(thrown_by<int>([&] { shown.update(); }) == 1);
    shown.set(make(0));
    CHECK(shown.show() == good && take_trace() == "");
    /* While mounting: nothing of it is left, and it can be mounted later. */
    CHECK(thrown_by<int>([&] { tree other(make(1)); }) == 1);
    take_trace();
    shown.set("nothing");
    CHECK(thrown_by<int>([&] { shown.set(make(1)); }) == 1);
    shown.set(make(0));
    CHECK(take_trace() == "a a b effect ");
    CHECK(shown.show() == "row\n  button id=a\n    0\n  f id=f\n    0\n  button id=b\n    0\n");
    /* The same for an exception of an effect. */
    CHECK(thrown_by<int>([&] { tree other(make(2)); }) == 2);
    CHECK(counted::alive == 0);
    take_trace();
}

static void an_exception_of_a_clean_up_lets_the_others_run() {
    constexpr auto body = [](std::string name) {
        use_effect(
            [=] {
                return [=] {
                    trace += name + " ";
                    if (name == "b")
                        throw 1;
                };
            },
            gui::once);
        return node(name);
    };
    tree shown(element("row", component<body>("a"), component<body>("b"), component<body>("c")));
    CHECK(thrown_by<int>([&] { shown.set("empty"); }) == 1);
    CHECK(shown.show() == "empty\n");
    shown.update();
    CHECK(take_trace() == "c b a ");
}

static tree *current;

static void updating_within_an_update_is_an_error() {
    tree shown(node("x"));
    current = &shown;
    constexpr auto from_render = [] {
        current->update();
        return node("y");
    };
    std::string what =
        thrown_by<std::logic_error>([&] { shown.set(component<from_render>()); }).what();
    CHECK(what.find("update()") != what.npos);
    constexpr auto from_effect = [] {
        use_effect([] { current->set("z"); });
        return node("y");
    };
    (void)thrown_by<std::logic_error>([&] { shown.set(component<from_effect>()); });
    CHECK(shown.show() == "y\n");
    /* Another tree may be updated. */
    constexpr auto nested = [] {
        use_state(1);
        tree inner(component<counter>("inner"));
        auto count = use_state(2);
        return node(inner.show() + std::to_string(count.value));
    };
    shown.set(component<nested>());
    CHECK(shown.show() == "button id=inner\n  0\n2\n");
    take_trace();
}

static void a_visit_does_not_update_the_tree() {
    tree shown(element("row", "a", "b"));
    std::string what = thrown_by<std::logic_error>([&] {
                           shown.for_each([&](const node &, int) { shown.set("c"); });
                       }).what();
    CHECK(what.find("set()") != what.npos && shown.show() == "row\n  a\n  b\n");
    CHECK(shown.set("c") == 0 && shown.show() == "c\n");
}

static void a_tree_that_has_ended_or_was_moved_from_is_told() {
    static int refused;
    refused = 0;
    constexpr auto last_words = [] {
        use_effect(
            [] {
                return [] {
                    for (auto call :
                         {+[] { (void)current->show(); }, +[] { current->update(); },
                          +[] { current->set("again"); }, +[] { current->send("e", "click"); }}) {
                        std::string what = thrown_by<std::logic_error>(call).what();
                        refused += what.find("on a tree that has ended") != what.npos;
                    }
                };
            },
            gui::once);
        return node("y");
    };
    {
        tree shown(component<last_words>());
        current = &shown;
    }
    CHECK(refused == 4);
    tree one("text"), other(std::move(one));
    (void)thrown_by<std::logic_error>([&] { one.update(); });
    CHECK(other.show() == "text\n");
}

static void a_tree_may_end_in_a_listener() {
    auto shown = std::make_unique<tree>(node());
    shown->set(element("e", attribute("id", "e"), on("click", [&shown] { shown.reset(); }),
                       component<watched>("w", 1)));
    shown->send("e", "click");
    CHECK(shown == nullptr && take_trace() == "+w1 -w1 ");
}

static void unknown_elements_and_events_are_errors_that_name_them() {
    tree shown(element("e", attribute("id", "known")));
    std::string what =
        thrown_by<std::invalid_argument>([&] { shown.send("unknown", "click"); }).what();
    CHECK(what.find("'unknown'") != what.npos);
    what = thrown_by<std::invalid_argument>([&] { shown.send("known", "click"); }).what();
    CHECK(what.find("'known'") != what.npos && what.find("'click'") != what.npos);
}

static node asking() {
    auto count = use_state(0);
    haft::perform(Pause{});
    use_effect([] { trace += "effect "; }, gui::once);
    return node(std::to_string(count.value));
}

static void components_perform_effects_of_handlers_around_the_update() {
    tree shown(node("before"));
    haft::resumption<std::size_t()> waiting;
    auto start = [&] {
        return haft::handle([&] { return shown.set(component<asking>()); })
            .with([&](Pause, haft::resumption<std::size_t()> k) {
                waiting = std::move(k);
                return std::size_t(0);
            });
    };
    /* Suspended in the middle, resumed later. */
    start();
    (void)thrown_by<std::logic_error>([&] { shown.update(); });
    (void)thrown_by<std::logic_error>([&] { shown.show(); });
    CHECK(std::move(waiting).resume() == 1);
    CHECK(shown.show() == "0\n" && take_trace() == "effect ");
    /* Dropped in the middle: the next update tries again. */
    shown.set("before");
    start();
    waiting = {};
    CHECK(haft::handle([&] { return shown.update(); }).with([](Pause) {}) == 1);
    CHECK(shown.show() == "0\n" && take_trace() == "effect ");
    /* The tree is gone while it is suspended. */
    auto other = std::make_unique<tree>(node());
    haft::handle([&] {
        other->set(component<asking>());
    }).with([&](Pause, haft::resumption<void()> k) {
        other.reset();
        std::move(k).resume();
    });
    CHECK(take_trace() == "effect ");
}

static void hooks_are_found_from_inner_fibers() {
    constexpr auto body = [] {
        int value = haft::handle([] {
                        auto count = use_state(7);
                        haft::perform(Pause{});
                        return count.value;
                    }).with([](Pause, haft::resumption<int()> k) { return std::move(k).resume(); });
        return node(std::to_string(value));
    };
    CHECK(tree(component<body>()).show() == "7\n");
}

int main() {
    a_tree_shows_what_components_return();
    only_what_has_changed_is_called_again();
    a_parent_does_not_call_children_that_are_the_same();
    properties_that_cannot_be_compared_are_a_change();
    children_keep_their_memory_by_place_or_key();
    long_keys_may_change_their_order();
    equal_keys_are_an_error();
    effects_run_after_the_render_and_are_cleaned_up();
    effects_without_dependencies_run_every_time_and_those_on_once_once();
    children_come_before_their_parents();
    an_effect_may_set_a_state();
    rendering_without_end_is_an_error_that_names_the_component();
    a_setter_of_what_is_gone_does_nothing();
    a_memo_is_computed_when_its_dependencies_change();
    a_context_reaches_everything_below();
    hooks_in_another_order_are_an_error_that_names_them();
    a_hook_outside_of_a_component_is_an_error();
    an_exception_leaves_the_tree_usable();
    an_exception_of_a_clean_up_lets_the_others_run();
    updating_within_an_update_is_an_error();
    a_visit_does_not_update_the_tree();
    a_tree_that_has_ended_or_was_moved_from_is_told();
    a_tree_may_end_in_a_listener();
    unknown_elements_and_events_are_errors_that_name_them();
    components_perform_effects_of_handlers_around_the_update();
    hooks_are_found_from_inner_fibers();
}
// SPDX-License-Identifier: MIT
