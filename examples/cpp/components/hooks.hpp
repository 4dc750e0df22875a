// SPDX-License-Identifier: MIT
/* The hooks that components call: state, effects, memos and contexts. */
#ifndef COMPONENTS_HOOKS_HPP
#define COMPONENTS_HOOKS_HPP

#include "mounted.hpp"

#include <haft/binding.hpp>

namespace gui {

namespace detail {

[[noreturn]] inline slot &outside_of_components(void *, hook *wanted) {
    throw hook_error(std::string("gui: ") + name_of_hook(wanted->kind, wanted->type) +
                     " was called outside of a component. Hooks are for the functions that "
                     "gui::component<function>(...) names, and what they call.");
}
inline const bool default_is_set = (haft::set_default<hook>(outside_of_components), true);

/* The slot of a hook, which `make()` makes in the first render. */
template <typename Slot, typename Type, typename Make>
Slot &call_hook(const char *kind, Make make) {
    return static_cast<Slot &>(
        haft::perform(hook{.kind = kind,
                           .type = text_of_type<Type>.text,
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

/* A dependency that never changes: the effect or memo is for the first render only. */
struct once_type {
    friend bool operator==(once_type, once_type) { return true; }
};
inline constexpr once_type once;

/*
 * Runs `function()` when the update has rendered everything: after the first render, and after
 * those in which one of `dependencies` is not equal to what it was. With no dependencies: after
 * each; with gui::once: after the first only. If the function returns a function, that is
 * a clean-up: it runs before the function runs again, and when the component is unmounted.
 * Children's effects run before their parents', and their clean-ups before their parents'.
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

/* The result of `function()`, computed again only when one of the dependencies has changed. Valid
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

/* The value that the nearest gui::context<V> above in the tree gives; without one,
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
    return haft::bound<V>();
}

} // namespace gui

#endif
