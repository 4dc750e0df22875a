/*
 * A tree of components with hooks, in the manner of React (the paper's toy GUI library).
 *
 *     haft::node counter(std::string name) {
 *         auto count = haft::use_state(0);
 *         return haft::element("button", haft::attribute("id", name),
 *                              haft::on("click", [=] { count.set(count.value + 1); }),
 *                              name + ": " + std::to_string(count.value));
 *     }
 *
 *     haft::tree tree(haft::element("row", haft::component<counter>("apples"),
 *                                          haft::component<counter>("pears")));
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
 * by ==; otherwise whenever its parent is called). What keeps its place, or its key, among its
 * siblings keeps its memory; anything else is unmounted, and mounted anew:
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
 * set(). The tree stays usable: what could not be rendered is tried again by the next update(),
 * until then the old is shown where there was one; effects that have not run, run then.
 *
 * Threads: a tree, its setters and its listeners are used by one thread at a time.
 */
#ifndef HAFT_COMPONENT_HPP
#define HAFT_COMPONENT_HPP

#include "binding.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace haft {

/* Thrown where hooks are misused: in another order than before, or outside of a component. */
class hook_error : public std::logic_error {
    using std::logic_error::logic_error;
};

/* ---- Nodes ---- */

/* A property of an element: "id", "color"... */
struct attribute {
    attribute(std::string which, std::string what)
        : name(std::move(which)), value(std::move(what)) {}
    std::string name, value;
};

/* What an element does on an event. */
struct listener {
    std::string event;
    std::function<void()> call;
};
template <typename F>
listener on(std::string event, F function) {
    return {std::move(event), std::function<void()>(std::move(function))};
}

class node;

namespace detail {

struct mounted;

/* A component with its properties, or a context with its value. `type` is one for each component or
 * context. */
struct description {
    const char *type;
    explicit description(const char *of) : type(of) {}
    description(const description &) = delete;
    description &operator=(const description &) = delete;
    virtual ~description() = default;
    virtual node render() const;
    virtual bool same(const description &other) const = 0;
};

template <typename... T>
bool equal(const std::tuple<T...> &a, const std::tuple<T...> &b) {
    if constexpr ((std::equality_comparable<T> && ...))
        return a == b;
    else
        return false;
}

} // namespace detail

/* A description of what is to be seen: nothing, a text, an element, a component, or a context. A
 * value: cheap to make, to be returned by components. */
class node {
  public:
    enum kind { nothing, text, element, component, context };

    node() = default;
    node(std::string content) : is(text), name(std::move(content)) {}
    node(const char *content) : node(std::string(content)) {}

    /* Gives the node a name among its siblings, by which it is known when they change their order.
     * Two siblings with one key are an error. */
    node &&with_key(std::string chosen) && {
        key = std::move(chosen);
        return std::move(*this);
    }

    /* The value of an attribute; NULL if there is none of this name. */
    const std::string *find(std::string_view wanted) const {
        for (const attribute &each : attributes)
            if (each.name == wanted)
                return &each.value;
        return nullptr;
    }

    kind is = nothing;
    std::string name; /* the text, the element's tag, or the component's name */
    std::string key;
    std::vector<attribute> attributes;
    std::vector<listener> listeners;
    std::vector<node> children;
    std::shared_ptr<const detail::description> described; /* of a component or context */

    void add(attribute part) { attributes.push_back(std::move(part)); }
    void add(listener part) { listeners.push_back(std::move(part)); }
    void add(node part) { children.push_back(std::move(part)); }
    void add(std::vector<node> parts) {
        for (node &part : parts)
            children.push_back(std::move(part));
    }
};

/* element("row", parts...): a part is an attribute, on(event, function), a node, a text, or a
 * vector of nodes. */
template <typename... Parts>
node element(std::string tag, Parts &&...parts) {
    node made;
    made.is = node::element;
    made.name = std::move(tag);
    (made.add(static_cast<Parts &&>(parts)), ...);
    return made;
}

namespace detail {

inline node description::render() const {
    return {};
}

template <typename Parameters>
struct properties_of;
template <typename... P>
struct properties_of<effects<P...>> {
    using type = std::tuple<std::decay_t<P>...>;
};

/* The name of a function or lambda, for messages; its address is the identity of the component. */
template <auto Function>
constexpr std::string_view name_of_function() {
    std::string_view text = __PRETTY_FUNCTION__;
    text.remove_prefix(text.find("Function = ") + 11);
    text = text.substr(0, text.find_first_of(";]"));
    return text[0] == '&' ? text.substr(1) : text;
}
template <auto Function>
struct function_text {
    char text[name_of_function<Function>().size() + 1] = {};
    constexpr function_text() {
        for (std::size_t i = 0; i + 1 < sizeof text; i++)
            text[i] = name_of_function<Function>()[i];
    }
};
template <auto Function>
inline constexpr function_text<Function> function_text_of{};

template <auto Function>
struct component_call final : description {
    using function = clause_type<decltype(Function)>;
    using properties = typename properties_of<
        typename signature_of<decltype(&function::operator())>::parameters>::type;
    properties given;

    template <typename... Arguments>
    explicit component_call(Arguments &&...arguments)
        : description(function_text_of<Function>.text),
          given(static_cast<Arguments &&>(arguments)...) {
        static_assert(sizeof...(Arguments) == std::tuple_size_v<properties>,
                      "haft: component<function>(...) takes one argument for each parameter of the "
                      "function.");
    }
    node render() const override { return std::apply(Function, given); }
    bool same(const description &other) const override {
        return equal(given, static_cast<const component_call &>(other).given);
    }
};

template <typename V>
struct context_value final : description {
    using value_type = typename V::variable_value;
    std::tuple<value_type> value;

    explicit context_value(value_type &&given)
        : description(name_text_of<V>.text), value(std::move(given)) {}
    bool same(const description &other) const override {
        return equal(value, static_cast<const context_value &>(other).value);
    }
};

} // namespace detail

/* A component with its properties: component<counter>("apples"). The function, or lambda without
 * captures, takes the properties by value or constant reference, and returns a node. */
template <auto Function, typename... Properties>
node component(Properties &&...properties) {
    node made;
    made.is = node::component;
    made.described = std::make_shared<const detail::component_call<Function>>(
        static_cast<Properties &&>(properties)...);
    made.name = made.described->type;
    return made;
}

/* Gives the variable V (haft/binding.hpp) a value for use_context in the components among and under
 * the parts, which are those of an element. */
template <typename V, typename... Parts>
node context(typename V::variable_value value, Parts &&...parts) {
    node made = element(std::string(), static_cast<Parts &&>(parts)...);
    made.is = node::context;
    made.described = std::make_shared<const detail::context_value<V>>(std::move(value));
    made.name = made.described->type;
    return made;
}

/* ---- What is mounted ---- */

namespace detail {

struct tree_state;

inline constexpr char kind_of_effect[] = "use_effect";
inline constexpr char kind_of_context[] = "use_context";

/* What a hook remembers. `kind` and `type` say which hook it is, by their addresses. */
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

/* The effect of calling a hook: replies with its slot, which is made by `make(argument)` in the
 * first render. */
struct hook : effect<detail::slot &> {
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
struct hooks : handler<hook> {
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
        throw hook_error("haft: the component " + of.shown.name + " " + what +
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
        output.push_back(handle([&] { return at.shown.described->render(); }).with(here));
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

    /* Makes the children of a mounted node show these. What keeps its key, or, without one, its
       place among those without, is kept. */
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
                throw std::logic_error("haft: two siblings in '" + at.shown.name +
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
            throw std::logic_error(std::string("haft: ") + what +
                                   " was called while the tree is being updated or visited. Set "
                                   "a state instead, or wait until that is over.");
    }
    void refuse_while_rendering(const char *what) const {
        if (phase == rendering)
            throw std::logic_error(std::string("haft: ") + what +
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
        throw std::logic_error(std::string("haft: the component ") + last_rendered +
                               " is rendered without end: each render, or its effects, set a state "
                               "again. Set it in a listener, or only if it is to change.");
    }
};

[[noreturn]] inline slot &outside_of_components(void *, hook *wanted) {
    throw hook_error(std::string("haft: ") + name_of_hook(wanted->kind, wanted->type) +
                     " was called outside of a component. Hooks are for the functions that "
                     "haft::component<function>(...) names, and what they call.");
}
/* The slot of a hook, which `make()` makes in the first render. */
template <typename Slot, typename Type, typename Make>
Slot &call_hook(const char *kind, Make make) {
    ensure_default<hook, outside_of_components>();
    return static_cast<Slot &>(perform(hook{.kind = kind,
                                            .type = name_text_of<Type>.text,
                                            .make = [](void *argument) -> std::shared_ptr<slot> {
                                                return (*static_cast<Make *>(argument))();
                                            },
                                            .argument = &make}));
}

inline constexpr char kind_of_state[] = "use_state";
inline constexpr char kind_of_memo[] = "use_memo";

template <typename T>
struct state_slot : slot, std::enable_shared_from_this<state_slot<T>> {
    T value;
    explicit state_slot(T &&initial) : value(std::move(initial)) {}
};
template <typename Dependencies>
struct effect_slot_of : effect_slot {
    std::optional<Dependencies> ran_with;
};
template <typename T, typename Dependencies>
struct memo_slot : slot {
    std::optional<std::pair<T, Dependencies>> computed;
};

} // namespace detail

/* ---- Hooks ---- */

/*
 * Changes a state: set(value), or set.update(function of the value before). The component is called
 * again by the next update(), unless the value is equal (==) to the one before. To be copied
 * freely, into listeners above all; once the component is unmounted it does nothing.
 */
template <typename T>
struct used_state;
template <typename T>
class setter {
  public:
    void operator()(T value) const {
        std::shared_ptr<detail::state_slot<T>> state = slot.lock();
        if (state == nullptr || state->owner == nullptr)
            return;
        if constexpr (std::equality_comparable<T>)
            if (state->value == value)
                return;
        state->value = std::move(value);
        state->owner->mark_dirty();
    }
    template <typename F>
    void update(F function) const {
        if (std::shared_ptr<detail::state_slot<T>> state = slot.lock())
            (*this)(std::invoke(std::move(function), std::as_const(state->value)));
    }

  private:
    explicit setter(std::weak_ptr<detail::state_slot<T>> of) : slot(std::move(of)) {}
    template <typename S>
    friend used_state<S> use_state(S initial);
    std::weak_ptr<detail::state_slot<T>> slot;
};

/* A state as a component sees it: its value in this render, and what changes it. */
template <typename T>
struct used_state {
    T value;
    setter<T> set;
};

/* A state of the component; `initial` is its value in the first render. */
template <typename T>
used_state<T> use_state(T initial) {
    auto &state = detail::call_hook<detail::state_slot<T>, T>(detail::kind_of_state, [&] {
        return std::make_shared<detail::state_slot<T>>(std::move(initial));
    });
    return {state.value, setter<T>(state.weak_from_this())};
}

/* As what an effect or memo depends on: on nothing, it is for the first render. */
struct once_type {
    friend bool operator==(once_type, once_type) { return true; }
};
inline constexpr once_type once;

/*
 * Runs `function()` when the update has rendered everything: after the first render, and after
 * those in which one of `dependencies` is not equal to what it was. With no dependencies: after
 * each; with haft::once: after the first only. What the function returns, if anything, is a
 * clean-up: it runs before the function runs again, and when the component is unmounted. Children's
 * effects run before their parents', and their clean-ups before their parents'.
 */
template <typename F, typename... Dependencies>
void use_effect(F function, Dependencies... dependencies) {
    using values = std::tuple<Dependencies...>;
    using slot = detail::effect_slot_of<values>;
    auto &effect = detail::call_hook<slot, values>(detail::kind_of_effect,
                                                   [] { return std::make_shared<slot>(); });
    values now(std::move(dependencies)...);
    if (sizeof...(Dependencies) != 0 && effect.ran_with && detail::equal(*effect.ran_with, now))
        return;
    effect.pending = [&effect, now = std::move(now),
                      function = std::move(function)]() mutable -> std::function<void()> {
        effect.ran_with.emplace(std::move(now));
        if constexpr (std::is_void_v<std::invoke_result_t<F &>>) {
            function();
            return nullptr;
        } else {
            return function();
        }
    };
    effect.owner->effects_to_run.push_back(effect.shared_from_this());
}

/* What `function()` returns, computed again only when one of the dependencies has changed. Valid
 * until then, or until the component is unmounted. */
template <typename F, typename... Dependencies>
auto use_memo(F function, Dependencies... dependencies)
    -> const std::decay_t<std::invoke_result_t<F &>> & {
    using value = std::decay_t<std::invoke_result_t<F &>>;
    using values = std::tuple<Dependencies...>;
    using slot = detail::memo_slot<value, values>;
    auto &found = detail::call_hook<slot, std::pair<value, values>>(
        detail::kind_of_memo, [] { return std::make_shared<slot>(); });
    values now(std::move(dependencies)...);
    if (!found.computed || !detail::equal(found.computed->second, now)) {
        value made = function();
        found.computed.emplace(std::move(made), std::move(now));
    }
    return found.computed->first;
}

/* The value that the nearest haft::context<V> above in the tree gives; without one,
 * haft::bound<V>() of the call that updates the tree. The component is called again when the
 * context's value changes. */
template <typename V>
typename V::variable_value use_context() {
    auto &found = detail::call_hook<detail::slot, V>(
        detail::kind_of_context, [] { return std::make_shared<detail::slot>(); });
    using context = detail::context_value<V>;
    for (detail::mounted *up = found.owner; up != nullptr; up = up->parent)
        if (up->shown.is == node::context && up->shown.described->type == found.type)
            return std::get<0>(static_cast<const context &>(*up->shown.described).value);
    return bound<V>();
}

/* ---- The tree ---- */

/*
 * A tree that is mounted: keeps what the components remember, and what they last returned.
 * Move-only. Its end unmounts everything; a clean-up that throws then ends the program. Whatever is
 * called while it ends, or after it was moved from, throws std::logic_error.
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
            throw std::invalid_argument(std::string("haft: no element with the id '") +
                                        std::string(id) + "' is shown.");
        for (const listener &each : element->listeners)
            if (each.event == event) {
                auto call = each.call;
                call();
                kept->update();
                return;
            }
        throw std::invalid_argument(std::string("haft: the element '") + std::string(id) +
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

    /* What is shown, a line for each text and element, indented by depth: "button id=apples". */
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
            throw std::logic_error(std::string("haft: ") + what +
                                   " was called on a tree that has ended, or was moved from.");
        return state;
    }

    std::shared_ptr<detail::tree_state> state;
};

} // namespace haft

#endif
