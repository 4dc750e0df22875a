// SPDX-License-Identifier: MIT
/* The mounted tree: the components that are shown, the state of their hooks, and how both follow
   the nodes that the components return. */
#ifndef COMPONENTS_MOUNTED_HPP
#define COMPONENTS_MOUNTED_HPP

#include "node.hpp"

#include <deque>
#include <haft.hpp>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace gui {

namespace detail {

struct tree_state;

inline constexpr char kind_of_effect[] = "use_effect";
inline constexpr char kind_of_context[] = "use_context";

/* The state of a hook. `kind` and `type` identify the hook by their addresses. */
struct slot {
    mounted *owner = nullptr; /* NULL once unmounted */
    const char *kind = nullptr;
    const char *type = nullptr;
    virtual ~slot() = default;
};
struct effect_slot : slot, std::enable_shared_from_this<effect_slot> {
    std::function<std::function<void()>()> pending; /* to be run after the render */
    std::function<void()> clean_up;
};

struct mounted {
    tree_state *tree;
    mounted *parent;
    node shown;
    std::vector<std::unique_ptr<mounted>> children;
    std::vector<std::shared_ptr<slot>> slots;
    std::vector<std::shared_ptr<effect_slot>> effects_to_run; /* of the last render */
    bool rendered = false; /* a component whose hooks are known */
    bool dirty = false;    /* one that is to be called again */
    bool below = false;    /* there are such components below */

    mounted(tree_state *of, mounted *under) : tree(of), parent(under) {}
    mounted(const mounted &) = delete;
    mounted &operator=(const mounted &) = delete;
    ~mounted() {
        for (auto &each : slots)
            each->owner = nullptr;
    }

    void mark_dirty() {
        dirty = true;
        for (mounted *up = parent; up != nullptr && !up->below; up = up->parent)
            up->below = true;
    }
};

} // namespace detail

/* The effect of calling a hook: replies with its slot, which is made by `make(argument)` in
 * the first render. */
struct hook : haft::effect<detail::slot &> {
    const char *kind;
    const char *type;
    std::shared_ptr<detail::slot> (*make)(void *argument);
    void *argument;
};

namespace detail {

inline std::string name_of_hook(const char *kind, const char *type) {
    return std::string(kind) + "<" + type + ">";
}

/* Handles the hooks of one call of a component. */
struct hooks : haft::handler<hook> {
    mounted &of;
    std::size_t next = 0;

    explicit hooks(mounted &component) : of(component) {}

    slot &operator()(hook wanted) {
        if (next == of.slots.size()) {
            if (of.rendered)
                fail(std::string("calls more hooks than before: hook ") + std::to_string(next + 1) +
                     " is " + name_of_hook(wanted.kind, wanted.type));
            std::shared_ptr<slot> made = wanted.make(wanted.argument);
            made->owner = &of;
            made->kind = wanted.kind;
            made->type = wanted.type;
            of.slots.push_back(std::move(made));
        }
        slot &found = *of.slots[next++];
        if (found.kind != wanted.kind || found.type != wanted.type)
            fail(std::string("calls its hooks in another order than before: hook ") +
                 std::to_string(next) + " was " + name_of_hook(found.kind, found.type) +
                 " and is now " + name_of_hook(wanted.kind, wanted.type));
        return found;
    }
    void end() {
        of.rendered = true;
        if (next < of.slots.size())
            fail(std::string("calls fewer hooks than before: hook ") + std::to_string(next + 1) +
                 ", " + name_of_hook(of.slots[next]->kind, of.slots[next]->type) + ", is missing");
    }
    [[noreturn]] void fail(const std::string &what) const {
        throw hook_error("gui: the component " + of.shown.name + " " + what +
                         ". Call the same hooks in the same order in every render.");
    }
};

struct tree_state {
    mounted root{this, nullptr};
    std::deque<std::function<void()>> clean_ups; /* of what was unmounted */
    std::deque<std::shared_ptr<effect_slot>> effects_to_run;
    std::optional<node> wanted; /* the root that set() asked for */
    std::size_t renders = 0;
    const char *last_rendered = "";
    enum phase_of_update { idle, visited, rendering, running_effects } phase = idle;

    tree_state() = default;
    tree_state(const tree_state &) = delete;
    tree_state &operator=(const tree_state &) = delete;
    /* Clean-ups that throw here end the program. */
    ~tree_state() {
        unmount(root);
        run_clean_ups();
    }

    /* Until the end of a scope. */
    class in_phase {
      public:
        in_phase(tree_state &of, phase_of_update now)
            : state(of), before(std::exchange(of.phase, now)) {}
        ~in_phase() { state.phase = before; }
        in_phase(const in_phase &) = delete;
        in_phase &operator=(const in_phase &) = delete;

      private:
        tree_state &state;
        phase_of_update before;
    };

    /* Sets a flag again unless the work for which it was cleared is done. */
    struct unless_done {
        bool &flag;
        bool done = false;
        ~unless_done() {
            if (!done)
                flag = true;
        }
    };

    /* Renders what is dirty in and under a mounted node. */
    void visit(mounted &at) {
        if (at.dirty) {
            render(at);
        } else if (std::exchange(at.below, false)) {
            unless_done guard{at.below};
            for (auto &child : at.children)
                visit(*child);
            guard.done = true;
        }
    }

    void render(mounted &at) {
        at.dirty = false;
        at.below = false;
        struct attempt {
            mounted &component;
            bool done = false;
            ~attempt() {
                if (!done)
                    component.mark_dirty();
            }
        } guard{at};
        at.effects_to_run.clear();
        renders++;
        last_rendered = at.shown.described->type;
        hooks here(at);
        std::vector<node> output;
        output.push_back(haft::handle([&] { return at.shown.described->render(); }).with(here));
        here.end();
        reconcile(at, std::move(output));
        for (auto &each : at.effects_to_run)
            effects_to_run.push_back(std::move(each));
        at.effects_to_run.clear();
        guard.done = true;
    }

    static bool can_become(const mounted &at, const node &next) {
        if (at.shown.is != next.is || at.shown.key != next.key)
            return false;
        if (next.described != nullptr)
            return at.shown.described->type == next.described->type;
        return next.is != node::element || at.shown.name == next.name;
    }

    /* Makes a mounted node show another description of the same thing. */
    void become(mounted &at, node next) {
        std::vector<node> children = std::move(next.children);
        next.children.clear();
        bool same = next.described != nullptr && at.shown.described != nullptr &&
                    at.shown.described->same(*next.described);
        at.shown = std::move(next);
        if (at.shown.is == node::component) {
            if (!same)
                at.dirty = true;
            visit(at);
            return;
        }
        if (at.shown.is == node::context && !same)
            mark_users(at, at.shown.described->type);
        at.below = false;
        unless_done guard{at.below};
        reconcile(at, std::move(children));
        guard.done = true;
    }

    /* Makes the children of a mounted node show these. A child that keeps its key, or, without
       one, its place among those without, is kept. */
    void reconcile(mounted &at, std::vector<node> next) {
        refuse_equal_keys(at, next);
        /* If something throws, what there was stays after what there is: all is done again. */
        struct replacing {
            std::vector<std::unique_ptr<mounted>> &now;
            std::vector<std::unique_ptr<mounted>> before;
            ~replacing() {
                for (auto &each : before)
                    if (each != nullptr)
                        now.push_back(std::move(each));
            }
        } children{at.children, {}};
        children.before.swap(at.children);
        at.children.reserve(next.size() + children.before.size());
        std::vector<std::unique_ptr<mounted> *> places;
        std::unordered_map<std::string_view, std::unique_ptr<mounted> *> keys;
        for (auto &each : children.before)
            if (each->shown.key.empty())
                places.push_back(&each);
            else
                keys.emplace(each->shown.key, &each);
        std::size_t place = 0;
        for (node &sought : next) {
            std::unique_ptr<mounted> *found = nullptr;
            if (!sought.key.empty()) {
                auto at_key = keys.find(sought.key);
                if (at_key != keys.end()) {
                    found = at_key->second;
                    keys.erase(at_key); /* its text is replaced */
                }
            } else if (place < places.size()) {
                found = places[place++];
            }
            if (found != nullptr && can_become(**found, sought)) {
                at.children.push_back(std::move(*found));
                become(*at.children.back(), std::move(sought));
            } else {
                auto made = std::make_unique<mounted>(this, &at);
                become(*made, std::move(sought));
                at.children.push_back(std::move(made));
            }
        }
        for (auto each = children.before.rbegin(); each != children.before.rend(); ++each)
            if (*each != nullptr) {
                unmount(**each);
                each->reset();
            }
    }

    static void refuse_equal_keys(const mounted &at, const std::vector<node> &siblings) {
        std::unordered_set<std::string_view> seen;
        for (const node &each : siblings)
            if (!each.key.empty() && !seen.insert(each.key).second)
                throw std::logic_error("gui: two siblings in '" + at.shown.name +
                                       "' have the key '" + each.key +
                                       "'. Give each a key of its own.");
    }

    /* Everything under `at` that uses a context of this type, up to the next of the same type. */
    static void mark_users(mounted &at, const char *type) {
        for (auto &child : at.children) {
            if (child->shown.is == node::context && child->shown.described->type == type)
                continue;
            for (auto &each : child->slots)
                if (each->kind == kind_of_context && each->type == type) {
                    child->mark_dirty();
                    break;
                }
            mark_users(*child, type);
        }
    }

    /* Queues the clean-ups, innermost and latest first. */
    void unmount(mounted &at) {
        for (auto child = at.children.rbegin(); child != at.children.rend(); ++child)
            unmount(**child);
        for (auto each = at.slots.rbegin(); each != at.slots.rend(); ++each) {
            (*each)->owner = nullptr;
            if ((*each)->kind == kind_of_effect) {
                auto &effect = static_cast<effect_slot &>(**each);
                if (effect.clean_up)
                    clean_ups.push_back(std::exchange(effect.clean_up, nullptr));
            }
        }
    }

    void run_clean_ups() {
        while (!clean_ups.empty()) {
            auto call = std::move(clean_ups.front());
            clean_ups.pop_front();
            call();
        }
    }
    void run_effects() {
        while (!effects_to_run.empty()) {
            std::shared_ptr<effect_slot> next = effects_to_run.front();
            if (auto before = std::exchange(next->clean_up, nullptr))
                if (next->owner != nullptr)
                    before();
            effects_to_run.pop_front();
            auto run = std::exchange(next->pending, nullptr);
            if (next->owner != nullptr && run)
                next->clean_up = run();
        }
    }

    void refuse_while_updating(const char *what) const {
        if (phase != idle)
            throw std::logic_error(std::string("gui: ") + what +
                                   " was called while the tree is being updated or visited. Set "
                                   "a state instead, or wait until that is over.");
    }
    void refuse_while_rendering(const char *what) const {
        if (phase == rendering)
            throw std::logic_error(std::string("gui: ") + what +
                                   " was called while the tree is being rendered. Call it in an "
                                   "effect, or when the update is over.");
    }

    std::size_t update() {
        refuse_while_updating("update()");
        in_phase guard(*this, rendering);
        renders = 0;
        for (int round = 0; round < 100; round++) {
            phase = rendering;
            if (wanted) {
                reconcile(root, std::vector<node>{*wanted});
                wanted.reset();
            }
            visit(root);
            phase = running_effects;
            run_clean_ups();
            run_effects();
            if (!root.below)
                return renders;
        }
        throw std::logic_error(std::string("gui: the component ") + last_rendered +
                               " is rendered without end: each render, or its effects, set a state "
                               "again. Set it in a listener, or only if it is to change.");
    }
};

} // namespace detail

} // namespace gui

#endif
