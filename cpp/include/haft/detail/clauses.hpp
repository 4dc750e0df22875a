// SPDX-License-Identifier: MIT
/* The parts of a handler: clauses, return clauses, whole handlers; and how they are kept. */
#ifndef HAFT_DETAIL_CLAUSES_HPP
#define HAFT_DETAIL_CLAUSES_HPP

namespace haft::detail {

template <typename Entry>
struct entry {
    using effect = Entry;
    static constexpr bool never = false, raises = false;
};
template <typename E>
struct entry<never<E>> {
    using effect = E;
    static constexpr bool never = true, raises = false;
};
template <typename E>
struct entry<raising<E>> {
    using effect = E;
    static constexpr bool never = false, raises = true;
};
template <typename Entry>
using effect_of = typename entry<Entry>::effect;
template <typename Entry>
using result_of_entry = typename effect_traits<effect_of<Entry>>::result;

template <typename T>
inline constexpr bool is_handler = std::is_base_of_v<handler_base, T>;

/* ---- What the parts of a handler handle ---- */

template <typename F>
struct signature_of {
    using parameters = effects<>;
};
#define HAFT_SIGNATURE(qualifiers)                                                                 \
    template <typename R, typename C, typename... P>                                               \
    struct signature_of<R (C::*)(P...) qualifiers> {                                               \
        using parameters = effects<P...>;                                                          \
    };
HAFT_SIGNATURE()
HAFT_SIGNATURE(const)
HAFT_SIGNATURE(noexcept)
HAFT_SIGNATURE(const noexcept)
HAFT_SIGNATURE(&)
HAFT_SIGNATURE(const &)
HAFT_SIGNATURE(&noexcept)
HAFT_SIGNATURE(const &noexcept)
#undef HAFT_SIGNATURE
/* Static call operators, of C++23. */
template <typename R, typename... P>
struct signature_of<R (*)(P...)> {
    using parameters = effects<P...>;
};
template <typename R, typename... P>
struct signature_of<R (*)(P...) noexcept> {
    using parameters = effects<P...>;
};

template <typename F>
struct a_clause_must_be_a_function_whose_parameters_have_types {
    static_assert(sizeof(F *) == 0,
                  "haft: a clause is a lambda or function that takes an effect, and perhaps a "
                  "resumption; its parameters must not be 'auto', and it must not be overloaded. "
                  "Handlers with overloads derive from haft::handler<Effects...>.");
};
template <typename F, typename P>
struct the_first_parameter_of_a_clause_must_be_an_effect {
    static_assert(sizeof(F *) == 0,
                  "haft: the first parameter of a clause must be an effect: a type "
                  "derived from haft::effect<Result>. To change what the body "
                  "returns, use haft::on_return(function).");
};

template <typename Parameters>
struct first_parameter {
    using type = void;
};
template <typename P, typename... Rest>
struct first_parameter<effects<P, Rest...>> {
    using type = std::remove_cvref_t<P>;
};

/* The effects that a part of a handler handles: one, if it is a clause. */
template <typename F>
consteval auto clause_list() {
    if constexpr (!requires { &F::operator(); }) {
        (void)sizeof(a_clause_must_be_a_function_whose_parameters_have_types<F>);
        return effects<>{};
    } else {
        using E = typename first_parameter<
            typename signature_of<decltype(&F::operator())>::parameters>::type;
        if constexpr (is_effect<E>) {
            return effects<E>{};
        } else {
            (void)sizeof(the_first_parameter_of_a_clause_must_be_an_effect<F, E>);
            return effects<>{};
        }
    }
}
template <typename F>
struct clause_entry {
    using list = decltype(clause_list<F>());
};

template <typename... Lists>
struct joined;
template <>
struct joined<> {
    using type = effects<>;
};
template <typename... A>
struct joined<effects<A...>> {
    using type = effects<A...>;
};
template <typename... A, typename... B, typename... Rest>
struct joined<effects<A...>, effects<B...>, Rest...> : joined<effects<A..., B...>, Rest...> {};

template <typename H>
struct the_effects_of_the_handler_cannot_be_read {
    static_assert(sizeof(H *) == 0,
                  "haft: this handler derives from haft::handler<Effects...> privately: write "
                  "': public haft::handler<Effects...>'. Or it derives from two handlers: then it "
                  "says 'using handled_effects = haft::effects_of<One, Other>;', and names the "
                  "clauses of both, 'using One::operator();'.");
};
template <typename H>
concept is_readable = requires {
    typename H::handled_effects;
};
template <typename H>
struct list_of_handler {
    using type = effects<>;
};
template <is_readable H>
struct list_of_handler<H> {
    using type = typename H::handled_effects;
};
template <typename H>
using list_of = typename list_of_handler<H>::type;

/* ---- A handler where it is kept ---- */

template <typename H>
struct by_reference {
    H *pointer;
};

template <typename Stored>
struct stored {
    using handler = Stored;
    static handler &get(Stored &stored) { return stored; }
};
template <typename H>
struct stored<by_reference<H>> {
    using handler = H;
    static handler &get(by_reference<H> &stored) { return *stored.pointer; }
};
template <typename P>
requires is_handler<typename P::element_type>
struct stored<P> {
    using handler = typename P::element_type;
    static handler &get(P &stored) { return *stored; }
};

/* Whether a class has a member on_return, overloaded or not. If it has, the name is ambiguous in
   `probe`, which inherits a second one. */
struct on_return_member {
    int on_return;
};
template <typename H>
struct probe : H, on_return_member {};
template <typename H>
concept names_on_return = requires {
    &H::on_return;
}
|| (!std::is_final_v<H> && !requires { &probe<H>::on_return; });

/* ---- Parts of a handler ---- */

template <typename R, bool Noexcept, typename... P>
struct function_clause {
    R (*function)(P...) noexcept(Noexcept);
    R operator()(P... parameters) const noexcept(Noexcept) {
        return function(static_cast<P &&>(parameters)...);
    }
};

template <template <typename> typename Mark, typename E>
struct marked_entry {};
template <template <typename> typename Mark, typename E>
struct marked_entry<Mark, effects<E>> {
    using list = effects<Mark<E>>;
};
template <template <typename> typename Mark>
struct marked_entry<Mark, effects<>> {
    using list = effects<>;
};
template <typename F>
struct clause_entry<never<F>> : marked_entry<never, typename clause_entry<F>::list> {};
template <typename F>
struct clause_entry<raising<F>> : marked_entry<raising, typename clause_entry<F>::list> {};

/* The parameter of an operator() that is never called: a part without a clause needs an operator(),
   too, since `clause_set` names that of every part. */
struct nothing_performed {};

template <typename F>
struct return_clause {
    F function;
    void operator()(nothing_performed);
    template <typename... Result>
    requires std::is_invocable_v<F &, Result...>
    decltype(auto) on_return(Result &&...result) {
        return function(static_cast<Result &&>(result)...);
    }
};
template <typename F>
struct clause_entry<return_clause<F>> {
    using list = effects<>;
};

/* A whole handler, or a function object that cannot be a base class, as a part: by value, by
   reference, or by the pointer that owns it. */
template <typename Stored, typename List>
struct part;
template <typename Stored, typename... Entries>
struct part<Stored, effects<Entries...>> {
    using called = typename stored<Stored>::handler;
    Stored kept;

    void operator()(nothing_performed);
    template <typename E, typename... K>
    requires((std::is_same_v<std::remove_cvref_t<E>, effect_of<Entries>> || ...) &&
             std::is_invocable_v<called &, E, K...>) decltype(auto)
    operator()(E &&effect,
               K &&...resumption) noexcept(std::is_nothrow_invocable_v<called &, E, K...>) {
        return stored<Stored>::get(kept)(static_cast<E &&>(effect),
                                         static_cast<K &&>(resumption)...);
    }
};
template <typename Stored, typename List>
struct returning_part : part<Stored, List> {
    using called = typename stored<Stored>::handler;
    template <typename... Result>
    requires requires(called &handler, Result &&...result) {
        handler.on_return(static_cast<Result &&>(result)...);
    }
    decltype(auto) on_return(Result &&...result) {
        return stored<Stored>::get(this->kept).on_return(static_cast<Result &&>(result)...);
    }
};
template <typename Stored, typename List>
struct clause_entry<part<Stored, List>> {
    using list = List;
};
template <typename Stored, typename List>
struct clause_entry<returning_part<Stored, List>> {
    using list = List;
};
template <typename Stored, typename H = typename stored<Stored>::handler>
using part_of_handler = std::conditional_t<names_on_return<H>, returning_part<Stored, list_of<H>>,
                                           part<Stored, list_of<H>>>;

/* Replaces a part that is no clause, so that the message about that part is the only one. */
struct no_clause {
    void operator()(nothing_performed);
};
template <>
struct clause_entry<no_clause> {
    using list = effects<>;
};

template <typename F>
HAFT_DETAIL_INLINE auto as_clause(F function) {
    if constexpr (!std::is_class_v<F>) {
        (void)sizeof(a_clause_must_be_a_function_whose_parameters_have_types<F>);
        return no_clause();
    } else if constexpr (std::is_final_v<F>) {
        return part<F, typename clause_entry<F>::list>{std::move(function)};
    } else {
        return function;
    }
}
template <typename R, typename... P>
function_clause<R, false, P...> as_clause(R (*function)(P...)) {
    return {function};
}
template <typename R, typename... P>
function_clause<R, true, P...> as_clause(R (*function)(P...) noexcept) {
    return {function};
}
template <typename F>
HAFT_DETAIL_INLINE auto as_clause(std::reference_wrapper<F> function) {
    if constexpr (is_handler<F>)
        return part_of_handler<by_reference<F>>{{&function.get()}};
    else if constexpr (std::is_class_v<F>)
        return part<by_reference<F>, typename clause_entry<F>::list>{{&function.get()}};
    else
        return as_clause(&function.get());
}
template <typename F>
using clause_type = decltype(as_clause(std::declval<F>()));

/* Tells the function of never(function) from the effect of never<Effect>. */
template <typename T>
concept is_clause = std::is_class_v<T> && !is_effect<T>;

template <typename List>
struct handler_of;
template <typename... Effects>
struct handler_of<effects<Effects...>> : handler<Effects...> {};

template <typename... Fs>
struct clause_set : handler_of<typename joined<typename clause_entry<Fs>::list...>::type>, Fs... {
    HAFT_DETAIL_INLINE explicit clause_set(Fs... functions) : Fs(std::move(functions))... {}
    using Fs::operator()...;
};
template <>
struct clause_set<> : handler<> {};

} // namespace haft::detail

#endif
