// SPDX-License-Identifier: MIT
/*
 * Dynamic binding: variables whose value is that of the innermost binding around the call; and
 * dependency injection: objects found by the type of their interface.
 *
 *     struct Indent : haft::variable<int> { static int initial() { return 0; } };
 *
 *     void print_line(const std::string &text) {
 *         std::cout << std::string(haft::bound<Indent>(), ' ') << text << '\n';
 *     }
 *     haft::bind<Indent>(haft::bound<Indent>() + 2, [] { print_line("further in"); });
 *
 *     haft::provide<Clock>(system_clock)                                    // by reference
 *         .provide<Store>([] { return FileStore(haft::inject<Clock>()); })  // made when needed
 *         .run([] { haft::inject<Store>().save("..."); });
 *
 * Both are an effect for each type, handled in place: finding a variable or an object is one
 * perform, in constant time, without run-time type information. Bindings and objects belong to a
 * call and all that it calls, on whatever fiber; nothing is global, so two threads, or two fibers,
 * can each have their own.
 *
 * A binding that is missing is an exception, missing_binding, whose message names the type and what
 * to write. References to bound values and injected objects hold as long as the bind() or run()
 * that they come from: a fiber that is resumed elsewhere must look again.
 */
#ifndef HAFT_BINDING_HPP
#define HAFT_BINDING_HPP

#include "detail/default.hpp"

#include <string>
#include <tuple>

namespace haft {

/* Thrown by bound() and inject() where nothing is bound. */
class missing_binding : public std::logic_error {
    using std::logic_error::logic_error;
};

/* ---- Dynamic binding ---- */

/*
 * Names a variable that holds a T: struct Indent : haft::variable<int> {}. With a static member
 * function `initial()` it has that value where it is not bound, made once for the process. T may be
 * a reference: struct Out : haft::variable<std::ostream &> {}.
 */
template <typename T>
struct variable {
    using variable_value = T;
};

/* Result of bound<V>(): const T &, or the reference that T is. */
template <typename V>
using bound_reference =
    std::conditional_t<std::is_reference_v<typename V::variable_value>, typename V::variable_value,
                       const typename V::variable_value &>;

/* The effect of looking a variable up. */
template <typename V>
struct looked_up : effect<bound_reference<V>> {};

namespace detail {

template <typename V>
bound_reference<V> value_of_unbound(void *, looked_up<V> *) {
    if constexpr (requires { V::initial(); }) {
        static const typename V::variable_value initial = V::initial();
        return initial;
    } else {
        const std::string name(pretty_name<V>());
        throw missing_binding("haft: the variable " + name +
                              " has no value here. Bind it around this call, haft::bind<" + name +
                              ">(value, body), or give it a function initial().");
    }
}

} // namespace detail

/* The value of the innermost binding of V. */
template <typename V>
bound_reference<V> bound() {
    detail::ensure_default<looked_up<V>, detail::value_of_unbound<V>>();
    return perform(looked_up<V>{});
}

/* Whether V is bound around here; its initial value does not count. */
template <typename V>
bool is_bound() {
    detail::ensure_default<looked_up<V>, detail::value_of_unbound<V>>();
    return detail::reaches_handler<looked_up<V>>();
}

/* Runs `body()` with V bound to the value, and returns what it returns. */
template <typename V, typename Body>
decltype(auto) bind(typename V::variable_value value, Body body) {
    struct binding : handler<looked_up<V>> {
        typename V::variable_value value;
        HAFT_DETAIL_INLINE explicit binding(typename V::variable_value &&given)
            : value(static_cast<typename V::variable_value &&>(given)) {}
        bound_reference<V> operator()(looked_up<V>) noexcept {
            return static_cast<bound_reference<V>>(value);
        }
    } holder(static_cast<typename V::variable_value &&>(value));
    return handle(std::move(body)).with(holder);
}

/* ---- Dependency injection ---- */

/* The effect of asking for an Interface. The reply is NULL where making the object has failed, with
   the exception in `*error`. */
template <typename Interface>
struct injected : effect<Interface *> {
    std::exception_ptr *error;
};
/* The effect by which a provider of an Interface asks for a substitute further out. */
template <typename Interface>
struct substituted : effect<Interface *> {
    std::exception_ptr *error;
};

namespace detail {

template <typename Interface>
Interface *nobody_provides(void *, injected<Interface> *) {
    const std::string name(pretty_name<Interface>());
    throw missing_binding("haft: nothing provides " + name +
                          " here. Provide it around this call: haft::provide<" + name +
                          ">(object).run(body).");
}
template <typename Interface>
missing_binding gave_null() {
    return missing_binding(std::string("haft: what provides ") +
                           std::string(pretty_name<Interface>()) +
                           " gave a null pointer. Give it an object.");
}
template <typename Interface>
Interface *nobody_substitutes(void *, substituted<Interface> *) {
    return nullptr;
}

} // namespace detail

/*
 * The object that stands for Interface here: of the nearest provide() around, unless a substitute()
 * stands anywhere around that. The first call may run the provider's function, whose exceptions
 * come out here.
 */
template <typename Interface>
Interface &inject() {
    detail::ensure_default<injected<Interface>, detail::nobody_provides<Interface>>();
    std::exception_ptr error;
    Interface *found = perform(injected<Interface>{{}, &error});
    if (__builtin_expect(found != nullptr, true))
        return *found;
    if (error != nullptr)
        std::rethrow_exception(std::move(error));
    throw detail::gave_null<Interface>();
}

/* Whether inject<Interface>() would find a provider. */
template <typename Interface>
bool is_provided() {
    detail::ensure_default<injected<Interface>, detail::nobody_provides<Interface>>();
    return detail::reaches_handler<injected<Interface>>();
}

namespace detail {

/* Gets the object from the argument of provide(), which is kept as a Source: the object itself
   (held, or by reference), or something that points to it. */
template <typename Interface, typename Source>
inline constexpr bool is_object =
    std::is_convertible_v<std::remove_reference_t<Source> *, Interface *>;
template <typename Interface, typename Source>
concept points_to_object = requires(Source &source) {
    { &*source } -> std::convertible_to<Interface *>;
    static_cast<bool>(source);
};
template <typename Interface, typename Source>
concept gives_object = is_object<Interface, Source> || points_to_object<Interface, Source>;
template <typename Interface, typename Source>
concept makes_object = !gives_object<Interface, Source> && std::is_invocable_v<Source &> &&
                       gives_object<Interface, std::invoke_result_t<Source &>>;

template <typename Interface, typename Source>
Interface *object_in(Source &source) {
    if constexpr (is_object<Interface, Source>)
        return std::addressof(source);
    else
        return source ? &*source : nullptr;
}
template <typename Interface, typename Given>
struct what_provides_X_must_be {
    static_assert(
        gives_object<Interface, Given> || makes_object<Interface, Given>,
        "haft: provide<Interface>(x) and substitute<Interface>(x) take an object of a type "
        "derived from Interface (by reference, or moved in), a pointer to one, or a "
        "function without parameters that returns one of these. The types above are the "
        "interface and what was given.");
};

/* An object that the caller owns. */
template <typename T>
struct referred {
    T *pointer;
    T &operator*() const { return *pointer; }
    explicit operator bool() const { return true; }
};
/* The stored form of an argument: lvalues of objects are kept by reference. */
template <typename Interface, typename Argument>
using source_of =
    std::conditional_t<std::is_lvalue_reference_v<Argument> && is_object<Interface, Argument>,
                       referred<std::remove_reference_t<Argument>>, std::decay_t<Argument>>;
template <typename Interface, typename Argument>
HAFT_DETAIL_INLINE source_of<Interface, Argument> make_source(Argument &argument) {
    if constexpr (std::is_lvalue_reference_v<Argument> && is_object<Interface, Argument>)
        return {std::addressof(argument)};
    else
        return static_cast<Argument &&>(argument);
}

/* The object, made when it is first asked for. */
template <typename Interface, typename Source>
class provided_object {
    static constexpr bool lazy = makes_object<Interface, Source>;

  public:
    HAFT_DETAIL_INLINE explicit provided_object(Source &&given) : source(std::move(given)) {
        if constexpr (!lazy)
            (void)check(object_in<Interface>(source));
    }

    /* NULL, and the exception, if it cannot be made: exceptions must come out of inject(), and not
       of a clause, where they would unwind the body. */
    Interface *get(std::exception_ptr &error) {
        try {
            if constexpr (lazy) {
                if (object == nullptr)
                    make();
                return check(object_in<Interface>(*object));
            } else {
                return object_in<Interface>(source);
            }
        } catch (...) {
            error = caught_exception();
            return nullptr;
        }
    }

  private:
    void make() {
        try {
            made.fill([&]() -> Made { return source(); });
            if constexpr (std::is_reference_v<Made>)
                object = std::addressof(made.take());
            else
                object = std::launder(static_cast<Made *>(made.address()));
        } catch (const missing_binding &missing) {
            throw missing_binding(std::string(missing.what()) + " (It was needed to make " +
                                  std::string(pretty_name<Interface>()) + ".)");
        }
    }
    static Interface *check(Interface *found) {
        if (found == nullptr)
            throw gave_null<Interface>();
        return found;
    }

    template <typename S, bool = lazy>
    struct made_by {
        using type = void;
    };
    template <typename S>
    struct made_by<S, true> {
        using type = std::invoke_result_t<S &>;
    };
    using Made = typename made_by<Source>::type;

    Source source;
    room<Made> made;
    std::remove_reference_t<Made> *object = nullptr; /* NULL: not made yet */
};

template <typename Interface, typename Source>
struct provider : handler<injected<Interface>> {
    provided_object<Interface, Source> object;
    HAFT_DETAIL_INLINE explicit provider(Source &&source) : object(std::move(source)) {}

    Interface *operator()(injected<Interface> asked) {
        ensure_default<substituted<Interface>, nobody_substitutes<Interface>>();
        Interface *instead = perform(substituted<Interface>{{}, asked.error});
        return instead != nullptr || *asked.error ? instead : object.get(*asked.error);
    }
};

template <typename Interface, typename Source>
struct substitute_handler : handler<injected<Interface>, substituted<Interface>> {
    provided_object<Interface, Source> object;
    HAFT_DETAIL_INLINE explicit substitute_handler(Source &&source) : object(std::move(source)) {}

    Interface *operator()(injected<Interface> asked) { return object.get(*asked.error); }
    Interface *operator()(substituted<Interface> asked) { return object.get(*asked.error); }
};

template <typename Interface, typename Source>
struct provision {
    using provider = detail::provider<Interface, Source>;
    Source source;
};

/* The provisions so far, and how a body is run with them. */
template <typename... Provisions>
class [[nodiscard]] providing {
  public:
    HAFT_DETAIL_INLINE explicit providing(std::tuple<Provisions...> &&all)
        : provisions(std::move(all)) {}

    template <typename Interface, typename Given>
    auto provide(Given &&given) && {
        (void)sizeof(what_provides_X_must_be<Interface, Given>);
        using added = provision<Interface, source_of<Interface, Given>>;
        return providing<Provisions..., added>(std::tuple_cat(
            std::move(provisions), std::tuple<added>(added{make_source<Interface, Given>(given)})));
    }

    template <typename Body>
    decltype(auto) run(Body body) && {
        return run_from<0>(body);
    }

  private:
    template <std::size_t I, typename Body>
    decltype(auto) run_from(Body &body) {
        if constexpr (I == sizeof...(Provisions)) {
            return body();
        } else {
            auto &next = std::get<I>(provisions);
            typename std::remove_reference_t<decltype(next)>::provider here(std::move(next.source));
            return handle([&]() -> decltype(auto) { return this->run_from<I + 1>(body); })
                .with(here);
        }
    }
    std::tuple<Provisions...> provisions;
};

} // namespace detail

/*
 * provide<Interface>(x).provide<Other>(y).run(body)
 *
 * Runs `body()` with objects for these interfaces, and returns what it returns. An object is one
 * of:
 *
 *   an lvalue of a type derived from Interface     it stays its owner's
 *   an rvalue, a std::unique_ptr or shared_ptr     it is destroyed after the body, in reverse order
 *   a function that returns one of these           called once, when somebody first asks
 *
 * The function runs outside of its own provider: it can inject what is provided further out, or
 * earlier in the same chain. So there are no cycles. One that throws is called again when it is
 * asked for next. A null pointer is an error, missing_binding.
 */
template <typename Interface, typename Given>
auto provide(Given &&given) {
    return detail::providing<>(std::tuple<>())
        .template provide<Interface>(static_cast<Given &&>(given));
}

/*
 * Runs `body()` with `given` in place of every Interface that is provided inside of it, however
 * deep: for tests of code that provides its own. (A provide() hides the one around it; substitute()
 * hides those in it.) `given` is as for provide().
 */
template <typename Interface, typename Given, typename Body>
decltype(auto) substitute(Given &&given, Body body) {
    (void)sizeof(detail::what_provides_X_must_be<Interface, Given>);
    detail::substitute_handler<Interface, detail::source_of<Interface, Given>> instead(
        detail::make_source<Interface, Given>(given));
    return handle(std::move(body)).with(instead);
}

} // namespace haft

#endif
