// SPDX-License-Identifier: MIT
/*
 * A tree of components with hooks, in the manner of React (the paper's toy GUI library). node.hpp
 * has what components return, hooks.hpp what they call, mounted.hpp how the tree is kept up to
 * date.
 *
 *     gui::node counter(std::string name) {
 *         auto count = gui::use_state(0);
 *         return gui::element("button", gui::attribute("id", name),
 *                              gui::on("click", [=] { count.set(count.value + 1); }),
 *                              name + ": " + std::to_string(count.value));
 *     }
 *
 *     gui::tree tree(gui::element("row", gui::component<counter>("apples"),
 *                                        gui::component<counter>("pears")));
 *     tree.send("apples", "click");
 *     std::cout << tree.show();
 *
 * A component is a function from its properties to a node, a description of what is to be seen.
 * Hooks give it a memory: use_state, use_effect, use_memo, use_context. A hook is an effect,
 * `hook`, which the tree handles in place around each call of a component; so a function called by
 * components may use hooks, too, and whatever else components perform goes to the handlers around
 * the tree's update().
 *
 * The tree compares what components return with what is mounted, and calls a component again only
 * if its state has changed, or a context that it uses, or its properties (if these can be compared
 * by ==; otherwise whenever its parent is called). A component that keeps its place, or its key,
 * among its siblings keeps its memory; any other is unmounted, and mounted anew:
 *
 *     node:     component<app>()           mounted:  app | hooks: a state, an effect
 *                 element "row"                        row
 *                   component<counter>...                counter | hooks: a state
 *                     element "button"                     button
 *
 * Hooks are known by the order of their calls, which must be the same in every call of a component
 * (not under conditions, not in loops of changing length). If it is not, update() throws a
 * hook_error that names the component, the hook's place, and what it was before.
 *
 * An exception of a component, an effect or a clean-up goes to the caller of update(), send() or
 * set(). The tree stays usable: the next update() renders what could not be rendered, and runs the
 * effects that have not run; until then the tree shows the old rendering where there was one.
 *
 * Threads: a tree, its setters and its listeners are used by one thread at a time.
 */
#ifndef COMPONENTS_TREE_HPP
#define COMPONENTS_TREE_HPP

#include "hooks.hpp"

namespace gui {

/*
 * A tree that is mounted: keeps what the components remember, and what they last returned.
 * Move-only. Its destructor unmounts everything; a clean-up that throws then ends the program. A
 * member function that is called meanwhile, or after the tree was moved from, throws
 * std::logic_error.
 */
class tree {
  public:
    /* Mounts a node: renders it, and runs its effects. */
    explicit tree(node root) : state(std::make_shared<detail::tree_state>()) {
        set(std::move(root));
    }
    tree(tree &&) noexcept = default;
    tree &operator=(tree &&) noexcept = default;
    ~tree() { auto ended = std::move(state); }

    /* Shows another node in place of the root; what is the same in both keeps its memory. Returns
       how many components were called. */
    std::size_t set(node root) {
        std::shared_ptr<detail::tree_state> kept = shared("set()");
        kept->refuse_while_updating("set()");
        kept->wanted = std::move(root);
        return kept->update();
    }

    /* Renders what has changed since, and runs the effects. Returns how many components were
       called. Called by another update, or by two fibers at once, it is an error
       (std::logic_error). */
    std::size_t update() { return shared("update()")->update(); }

    /* Lets the element whose attribute "id" is `id` have an event: calls its listener, and updates.
       No such element or listener is an error (std::invalid_argument). */
    void send(std::string_view id, std::string_view event) {
        std::shared_ptr<detail::tree_state> kept = shared("send()");
        kept->refuse_while_updating("send()");
        const node *element = nullptr;
        for_each([&](const node &each, int) {
            const std::string *found = each.find("id");
            if (element == nullptr && found != nullptr && *found == id)
                element = &each;
        });
        if (element == nullptr)
            throw std::invalid_argument(std::string("gui: no element with the id '") +
                                        std::string(id) + "' is shown.");
        for (const listener &each : element->listeners)
            if (each.event == event) {
                auto call = each.call;
                call();
                kept->update();
                return;
            }
        throw std::invalid_argument(std::string("gui: the element '") + std::string(id) +
                                    "' has no listener for '" + std::string(event) + "'.");
    }

    /* Calls `visit(node, depth)` for each text and element that is shown, from the top. Not while
       components are being called; `visit` may set states, but not update the tree: these are
       errors (std::logic_error). */
    template <typename Visit>
    void for_each(Visit visit) const {
        std::shared_ptr<detail::tree_state> kept = shared("for_each() or show()");
        kept->refuse_while_rendering("for_each() or show()");
        detail::tree_state::in_phase guard(*kept, detail::tree_state::visited);
        walk(kept->root, 0, visit);
    }

    /* The shown tree, a line for each text and element, indented by depth: "button id=apples". */
    std::string show() const {
        std::string all;
        for_each([&](const node &each, int depth) {
            all.append(2 * static_cast<std::size_t>(depth), ' ') += each.name;
            for (const attribute &part : each.attributes)
                all += " " + part.name + "=" + part.value;
            all += '\n';
        });
        return all;
    }

  private:
    template <typename Visit>
    static void walk(const detail::mounted &at, int depth, Visit &visit) {
        bool seen = at.shown.is == node::text || at.shown.is == node::element;
        if (seen)
            visit(at.shown, depth);
        for (const auto &child : at.children)
            walk(*child, depth + seen, visit);
    }

    std::shared_ptr<detail::tree_state> shared(const char *what) const {
        if (state == nullptr)
            throw std::logic_error(std::string("gui: ") + what +
                                   " was called on a tree that has ended, or was moved from.");
        return state;
    }

    std::shared_ptr<detail::tree_state> state;
};

} // namespace gui

#endif
