// SPDX-License-Identifier: MIT
/* Performing: finding the handler, and the call or the switch. */
#ifndef HAFT_DETAIL_PERFORMING_HPP
#define HAFT_DETAIL_PERFORMING_HPP

namespace haft::detail {

struct in_place_guard {
    hafti_in_place_t in_place; /* in registers, as long as nothing takes its address */
    HAFT_DETAIL_INLINE ~in_place_guard() { hafti_in_place_end(&in_place); }
};

/* Like hafti_perform_found, but the caller passes the handler's scope, which it may know without
   reading the entry. */
template <typename E>
HAFT_DETAIL_INLINE void *suspend_found(hafti_here_t here, hafti_found_t found, hafti_scope_t *scope,
                                       void *payload) {
    if (__builtin_expect(hafti_clause_of(found) != nullptr || hafti_exceptions_pending(here),
                         false))
        return hafti_suspend_slow(found, effect_traits<E>::id(), payload);
    constexpr std::size_t size = result_size<result_of<E>>;
    return hafti_suspend(here, hafti_fiber_of(scope), HAFTI_AWAITING(effect_traits<E>::id(), size),
                         found.with, payload);
}

template <typename E>
HAFT_DETAIL_INLINE typename effect_traits<E>::result
perform_found(hafti_here_t here, hafti_found_t found, hafti_scope_t *scope, E &effect) {
    using R = typename effect_traits<E>::result;
    if (const haft_clause_t *clause = hafti_clause_in_place(found)) {
        auto function = reinterpret_cast<R (*)(void *, E *)>(hafti_clause_function(clause));
        void *state = scope->state;
        in_place_guard guard{hafti_in_place_begin(here, scope)};
        return function(state, &effect);
    }
    if constexpr (in_word<R>) {
        return from_word<R>(suspend_found<E>(here, found, scope, &effect));
    } else if constexpr (effect_traits<E>::native) {
        call<E> asked{std::addressof(effect), {}};
        suspend_found<E>(here, found, scope, &asked);
        return asked.result.take();
    } else {
        static_assert(std::is_trivially_copyable_v<R>);
        R result;
        hafti_unpack(effect_traits<E>::id(), suspend_found<E>(here, found, scope, &effect), &result,
                     sizeof result);
        return result;
    }
}

template <typename E>
HAFT_DETAIL_INLINE hafti_found_t find(hafti_here_t &here) {
    return hafti_find(&here, effect_traits<E>::id(), effect_traits<E>::slot, shape_of<E>);
}

template <typename T>
struct X_is_not_an_effect {
    static_assert(is_effect<T>, "haft: this type is not an effect. Derive it from "
                                "haft::effect<Result>, with the type that performing it returns.");
};

template <typename E, typename... Fields>
struct these_are_not_the_fields_of {
    static_assert(sizeof(E *) == 0, "haft: the effect cannot be made from these values: they are "
                                    "not what its fields, in their order, are made from.");
};

/* Stands for a base of E, to tell an aggregate with a base from one that begins with a field. */
template <typename E>
struct in_place_of_base {
    template <typename Base>
    requires(std::is_base_of_v<Base, E> && !std::is_same_v<Base, E>) operator Base() const;
};

/* A program may leave fields out: they have the values that their declarations give. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
template <typename E, typename... Fields>
E make(Fields &&...fields) {
    if constexpr (std::is_aggregate_v<E> && requires {
                      E{in_place_of_base<E>(), static_cast<Fields &&>(fields)...};
                  })
        return E{{}, static_cast<Fields &&>(fields)...};
    else if constexpr (!std::is_aggregate_v<E> && std::is_constructible_v<E, Fields...>)
        return E(static_cast<Fields &&>(fields)...);
    else if constexpr (requires { E{static_cast<Fields &&>(fields)...}; })
        return E{static_cast<Fields &&>(fields)...};
    else
        return *static_cast<E *>(
            reinterpret_cast<void *>(sizeof(these_are_not_the_fields_of<E, Fields...>)));
}
#pragma GCC diagnostic pop

} // namespace haft::detail

#endif
