// SPDX-License-Identifier: MIT
/* The kind of clause that a handler has for an effect, and its answer; and the checks that clauses,
   body and answer fit, with messages that name the effect. */
#ifndef HAFT_DETAIL_CHECKS_HPP
#define HAFT_DETAIL_CHECKS_HPP

namespace haft::detail {

/* ---- What kind of clause a handler has for an effect ---- */

enum class clause_kind { tail, general, never };

struct any_resumption {
    template <typename Signature>
    operator resumption<Signature>() const;
};

template <typename H, typename E>
struct the_handler_lacks_a_clause_for {
    static_assert(sizeof(H *) == 0,
                  "haft: the handler lists this effect but has no clause for it. Add "
                  "operator()(Effect), or operator()(Effect, haft::resumption<Answer(Result)>); if "
                  "it is there, make it public.");
};
template <typename H, typename E>
struct the_handler_is_const_and_its_clause_is_not {
    static_assert(sizeof(H *) == 0, "haft: the handler is const, but its clause for this effect is "
                                    "not a const member function.");
};
template <typename E>
struct two_clauses_for {
    static_assert(sizeof(E *) == 0, "haft: the handler has two clauses for this effect.");
};

template <typename Answer, typename R>
struct signature {
    using type = Answer(R);
};
template <typename Answer>
struct signature<Answer, void> {
    using type = Answer();
};

/* Whether the clause takes a resumption: of any answer, if it is a template, or of the
   handler's. */
template <typename H, typename Entry, typename Answer>
inline constexpr bool takes_resumption =
    std::is_invocable_v<H &, effect_of<Entry>, any_resumption> ||
    std::is_invocable_v<H &, effect_of<Entry>,
                        resumption<typename signature<Answer, result_of_entry<Entry>>::type>>;

template <typename H, typename Entry, typename Answer = void>
consteval clause_kind kind_of() {
    if constexpr (entry<Entry>::never)
        return clause_kind::never;
    else if constexpr (takes_resumption<H, Entry, Answer>)
        return clause_kind::general;
    else
        return clause_kind::tail;
}

template <typename E, typename... Es>
inline constexpr std::size_t count_of = (std::size_t(std::is_same_v<E, Es>) + ... + 0);

template <typename H, typename Answer, typename... Entries>
consteval bool all_in_place(effects<Entries...>) {
    return ((kind_of<H, Entries, Answer>() == clause_kind::tail) && ...);
}

/* ---- Answers ---- */

template <typename H, typename B>
struct the_return_clause_does_not_take {
    static_assert(sizeof(H *) == 0, "haft: the return clause (on_return) cannot be called with "
                                    "what the body returns, the last of the types above.");
};

template <typename H, typename B>
struct answer {
    static constexpr bool changed = false;
    using type = B;
};
template <typename H, typename B>
requires requires(H &handler) {
    handler.on_return(std::declval<B>());
}
struct answer<H, B> {
    static constexpr bool changed = true;
    using type = decltype(std::declval<H &>().on_return(std::declval<B>()));
};
template <typename H>
requires requires(H &handler) {
    handler.on_return();
}
struct answer<H, void> {
    static constexpr bool changed = true;
    using type = decltype(std::declval<H &>().on_return());
};

/* ---- Checks, for messages that name the effect ---- */

/* A check is made only if the one before it found nothing, so that one mistake has one message. The
   compiler cannot use the result of a function in which a message was given: so a check is called
   first without `Tell`, for its result, and then with `Tell`, for the message. */
template <bool Tell, typename Message>
constexpr void explain() {
    if constexpr (Tell)
        (void)sizeof(Message);
}

template <typename E, typename Expected>
struct the_resumption_of_the_clause_must_be {
    static_assert(
        sizeof(E *) == 0,
        "haft: a general clause for this effect takes haft::resumption<Answer(Result)>, "
        "with the answer of this handler and the result of the effect, as written above.");
};
template <typename E, typename Given, typename Expected>
struct the_clause_returns_the_wrong_type {
    static_assert(
        sizeof(E *) == 0,
        "haft: the clause returns the wrong type. Without a resumption it returns the "
        "result of the effect; with one, or as never-resuming, the answer of the handler.");
};
template <typename E>
struct a_general_clause_raises_by_discontinue {
    static_assert(
        sizeof(E *) == 0,
        "haft: haft::raising is for clauses without a resumption. A general clause throws "
        "at the perform by std::move(resumption).discontinue(exception).");
};
template <typename Given, typename Expected>
inline constexpr bool fits = std::is_void_v<Expected> || std::is_same_v<Given, Expected> ||
                             (std::is_convertible_v<Given, Expected> &&
                              (!std::is_reference_v<Expected> || std::is_reference_v<Given>));

template <bool Tell, typename E, typename... Entries>
constexpr bool check_once() {
    constexpr bool once = count_of<E, effect_of<Entries>...> == 1;
    if constexpr (!is_effect<E>)
        explain<Tell, X_is_not_an_effect<E>>();
    else if constexpr (!once)
        explain<Tell, two_clauses_for<E>>();
    return is_effect<E> && once;
}

template <bool Tell, typename H>
constexpr bool check_readable() {
    if constexpr (is_handler<H> && !is_readable<H>) {
        explain<Tell, the_effects_of_the_handler_cannot_be_read<H>>();
        return false;
    }
    return true;
}

template <bool Tell, typename H, typename B>
constexpr bool check_answer() {
    constexpr bool right = answer<H, B>::changed || !names_on_return<H>;
    if constexpr (!right)
        explain<Tell, the_return_clause_does_not_take<H, B>>();
    return right;
}

template <bool Tell, typename H, typename Entry, typename Answer>
constexpr bool check_clause() {
    using E = effect_of<Entry>;
    using R = result_of_entry<Entry>;
    constexpr clause_kind kind = kind_of<H, Entry, Answer>();
    if constexpr (kind == clause_kind::general && entry<Entry>::raises) {
        explain<Tell, a_general_clause_raises_by_discontinue<E>>();
    } else if constexpr (kind == clause_kind::general) {
        using Resumption = resumption<typename signature<Answer, R>::type>;
        if constexpr (!std::is_invocable_v<H &, E, Resumption>) {
            explain<Tell, the_resumption_of_the_clause_must_be<E, Resumption>>();
        } else {
            using Given = std::invoke_result_t<H &, E, Resumption>;
            if constexpr (std::is_same_v<Given, tail<Answer>> || fits<Given, Answer>)
                return true;
            else
                explain<Tell, the_clause_returns_the_wrong_type<E, Given, Answer>>();
        }
    } else if constexpr (std::is_invocable_v<H &, E>) {
        using Given = std::invoke_result_t<H &, E>;
        using Expected = std::conditional_t<kind == clause_kind::tail, R, Answer>;
        if constexpr (fits<Given, Expected>)
            return true;
        else
            explain<Tell, the_clause_returns_the_wrong_type<E, Given, Expected>>();
    } else if constexpr (std::is_const_v<H> &&
                         (std::is_invocable_v<std::remove_const_t<H> &, E> ||
                          takes_resumption<std::remove_const_t<H>, Entry, Answer>)) {
        explain<Tell, the_handler_is_const_and_its_clause_is_not<H, E>>();
    } else {
        explain<Tell, the_handler_lacks_a_clause_for<H, E>>();
    }
    return false;
}

template <bool Tell, typename... Entries>
constexpr bool check_each_once(effects<Entries...>) {
    return (check_once<Tell, effect_of<Entries>, Entries...>() && ...);
}

template <bool Tell, typename H, typename B, typename... Entries>
constexpr bool check_handler(effects<Entries...> list) {
    if constexpr (!check_readable<false, H>())
        return check_readable<Tell, H>();
    else if constexpr (!check_each_once<false>(effects<Entries...>{}))
        return check_each_once<Tell>(list);
    else if constexpr (!check_answer<false, H, B>())
        return check_answer<Tell, H, B>();
    else
        return (check_clause<Tell, H, Entries, typename answer<H, B>::type>() && ...);
}

/* ---- Effect safety ---- */

struct grant_access;

template <typename E, typename... Handled>
struct an_effect_escapes_its_handlers {
    static_assert(count_of<E, Handled...> != 0,
                  "haft: this call may perform an effect that nobody around it is known to handle: "
                  "the first of the types above is the effect, the others are what may be "
                  "performed. Handle it, or let this function state it: haft::may<Effect...>.");
};

} // namespace haft::detail

#endif
