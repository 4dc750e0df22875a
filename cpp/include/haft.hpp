/*
 * Haft: effect handlers for C++20.
 *
 *     #include <haft.hpp>
 *     struct Get : haft::effect<int> {};
 *     struct Put : haft::effect<> { int value; };
 *
 *     int state = 100;
 *     int last = haft::handle([] { haft::perform(Put{.value = haft::perform(Get{}) + 1});
 *                                  return haft::perform(Get{}); })
 *         .with([&](Get) { return state; },
 *               [&](Put p) { state = p.value; });
 *
 * What a user needs is declared in sections, each with its manual: effects; performing;
 * resumptions; handlers; handling; instances and effect safety; default handlers. Everything in
 * haft::detail is machinery. Numbers of sections (§) refer to "High-level effect handlers in C++".
 *
 * Design
 *
 * An effect is a type, and its identity the address of one descriptor a type and process, which the
 * linker makes unique. The same descriptors, handler chain and switches serve C (haft.h):
 * performers in C++ reach handlers in C and the other way around (HAFT_ADOPT).
 *
 * A handler is an object with an overload of operator() an effect; lambdas are gathered into one. A
 * constant table of clauses for each type of handler is what the runtime searches. Clauses without
 * a resumption run in place, on the stack of the performer, and if a handler has no others it is a
 * scope in the frame of handle() (`in_place_scope`). Otherwise the computation has a fiber, and
 * everything that belongs to it lies at the high end of the fiber's stack, so that nothing is
 * allocated:
 *
 *   low                                                                        high
 *   | free ...  <- sp | frames of the body | task                  | haft_fiber_t |
 *                                            |
 *                     computation ----------+  fiber, drive, held
 *                     result of the body     |
 *                     holder                 |  the handler, or a reference to it
 *                     body                  -+
 *
 * `drive` is the loop around a computation: it resumes the fiber, calls the clause for the request
 * that comes back, and ends with an answer, or with another computation to resume instead (a
 * clause that ended in tail_resume). A resumption owns a computation that is suspended, a running
 * drive one that runs. The task lives on while clauses of its own handler run (`clauses`), even
 * after the computation is over: a clause may use members of its handler after it has resumed
 * (§3.5).
 *
 * An exception that leaves the body is carried by the runtime to whoever resumed it. One that
 * leaves a general clause is already in the handler's context, and unwinding the clause drops the
 * resumption. One that leaves a clause in place must not be seen by the performer's frames: it is
 * caught at once and kept with the handler, the performer's frames are unwound by force up to the
 * handler, and there it goes on (`run_in_place`).
 *
 * Threads: as in haft.h. A resumption may be moved to another thread and resumed there.
 */
#ifndef HAFT_HPP
#define HAFT_HPP

/* The second line, a file that does not exist, ends the compilation: what follows would only be
   errors that hide the first. */
#if __cplusplus <= 201703L
#    error "haft.hpp is C++20: compile with -std=c++20 or later"
#    include <haft.hpp is C++20>
#elif !defined(__cpp_exceptions)
#    error "haft.hpp needs exceptions: compile without -fno-exceptions"
#    include <haft.hpp needs exceptions>
#endif

#include <haft.h>
#include <haft/faces.h>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <utility>

/* What is inlined for speed; and what passes handlers on, because gcc 12 takes it that pointers in
   what a constructor copies through two references do not escape (-fipa-modref). */
#define HAFT_HPP_INLINE inline __attribute__((always_inline))
#define HAFT_HPP_INLINE_LAMBDA __attribute__((always_inline))

namespace haft {

/* ---- Effects (§2.1: commands) --------------------------------------------------------------- */

/*
 * An effect is a struct that derives from haft::effect<Result>; its fields are the payload. It is
 * made with designators, Put{.value = 1}, or by perform<Put>(1). A struct with a member type
 * `effect_result` is an effect, too. Result may be void, a reference, or any type that can be
 * moved.
 *
 * An effect is one for the whole process, as its type is. Like exceptions, effects that cross the
 * border of a shared library compiled with -fvisibility=hidden are to be marked: struct HAFT_SHARED
 * Get ...
 */
#define HAFT_SHARED __attribute__((visibility("default")))
template <typename Result = void>
struct effect {
    using effect_result = std::remove_cv_t<Result>;
};

/* What the library knows of an effect; specialised by HAFT_ADOPT for effects of C. */
template <typename Effect>
struct effect_traits;

template <typename Effect>
concept is_effect = requires {
    typename effect_traits<Effect>::result;
};

template <typename Effect>
using result_of = typename effect_traits<Effect>::result;

/* Makes an effect that HAFT_EFFECT declared known here, by the type of its payload. At global
 * scope. */
#define HAFT_ADOPT(name)                                                                           \
    template <>                                                                                    \
    struct haft::effect_traits<haft_payload_##name> {                                              \
        using result = haft_result_##name;                                                         \
        static constexpr bool native = false;                                                      \
        static constexpr unsigned slot = haft_slot_##name;                                         \
        static constexpr haft_effect_t *id() { return HAFT_ID(name); }                             \
    }

namespace detail {

template <typename E>
constexpr auto pretty_name() {
    std::string_view text = __PRETTY_FUNCTION__;
    text.remove_prefix(text.find("E = ") + 4);
    return text.substr(0, text.size() - 1);
}

template <typename E>
struct name_text {
    char text[pretty_name<E>().size() + 1] = {};
    constexpr name_text() {
        for (std::size_t i = 0; i + 1 < sizeof text; i++)
            text[i] = pretty_name<E>()[i];
    }
};
template <typename E>
inline constexpr name_text<E> name_text_of{};

/* The effects of a program are found in a few slots. A plain sum, because it depends only on the
   letters in which two names differ: Get and Put have slots of their own in any namespace, and so
   have Get<S> and Put<S>. */
constexpr unsigned slot_of(std::string_view name) {
    unsigned sum = 0;
    for (char letter : name)
        sum += static_cast<unsigned char>(letter);
    return sum % HAFT_CACHE_SLOTS;
}

/* How a value travels from the handler to the performer. In a word, if it fits and can be copied as
   bytes, as in C; any other is made by the handler in a slot of the performer's frame. */
template <typename T>
inline constexpr bool in_word = std::is_reference_v<T> ||
                                (std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(void *));
template <>
inline constexpr bool in_word<void> = true;

template <typename T>
inline constexpr std::size_t result_size = sizeof(T);
template <>
inline constexpr std::size_t result_size<void> = 0;
template <typename T>
inline constexpr std::size_t result_size<T &> = sizeof(void *);
template <typename T>
inline constexpr std::size_t result_size<T &&> = sizeof(void *);

template <typename E>
inline constexpr std::uint32_t
    shape_of = HAFT_SHAPE(payload_size<E>, result_size<typename effect_traits<E>::result>);

/* Room for a value of any type that may be a result or answer; references are kept as pointers. */
template <typename T>
class room {
  public:
    room() noexcept {}
    ~room() {
        if (full)
            value.~T();
    }
    room(room &&other) {
        if (other.full)
            fill([&]() -> T { return other.take(); });
    }
    room &operator=(room &&) = delete;
    template <typename Make>
    void fill(Make &&make) {
        ::new (static_cast<void *>(std::addressof(value))) T(static_cast<Make &&>(make)());
        full = true;
    }
    T take() { return static_cast<T &&>(value); }
    void *address() { return static_cast<void *>(std::addressof(value)); }

  private:
    union {
        T value;
    };
    bool full = false;
};
template <typename T>
requires std::is_reference_v<T>
class room<T> {
  public:
    template <typename Make>
    void fill(Make &&make) {
        T &&reference = static_cast<Make &&>(make)();
        pointer = std::addressof(reference);
    }
    T take() { return static_cast<T>(*pointer); }

  private:
    std::remove_reference_t<T> *pointer = nullptr;
};
template <>
class room<void> {
  public:
    template <typename Make>
    void fill(Make &&make) {
        static_cast<Make &&>(make)();
    }
    void take() {}
};

/* The value of a reply word. */
template <typename R>
HAFT_HPP_INLINE R from_word(void *word) {
    if constexpr (std::is_void_v<R>) {
        (void)word;
    } else if constexpr (std::is_reference_v<R>) {
        return static_cast<R>(*static_cast<std::remove_reference_t<R> *>(word));
    } else {
        union {
            char unused;
            R value;
        } bytes = {0};
        __builtin_memcpy(static_cast<void *>(&bytes), &word, sizeof(R));
        return std::move(bytes.value);
    }
}
/* T: the type of the result, a reference or the type of `value`. */
template <typename T, typename Value>
HAFT_HPP_INLINE void *to_word(Value &&value) {
    if constexpr (std::is_reference_v<T>) {
        return const_cast<void *>(static_cast<const volatile void *>(std::addressof(value)));
    } else {
        void *word = nullptr;
        __builtin_memcpy(&word, std::addressof(value), sizeof value);
        return word;
    }
}

/* A perform whose result does not travel in a word. */
template <typename E>
struct call {
    E *payload;
    room<typename effect_traits<E>::result> result;
};

template <typename E>
inline constexpr bool is_call =
    effect_traits<E>::native && !in_word<typename effect_traits<E>::result>;
/* What was performed, from the payload of a request. */
template <typename E>
HAFT_HPP_INLINE E *performed(void *request) {
    if constexpr (is_call<E>)
        return static_cast<call<E> *>(request)->payload;
    else
        return static_cast<E *>(request);
}

/* What a clause is given of a payload: it itself, to move from. */
template <typename E>
struct passed {
    using default_t = typename effect_traits<E>::result(void *, E *);
    static HAFT_HPP_INLINE E &&on(E &payload) { return static_cast<E &&>(payload); }
    static default_t *to(default_t *chosen) { return chosen; }
};

/* The descriptor of an effect declared here: one for the process. */
template <typename E>
struct declared {
    using R = std::remove_cv_t<typename E::effect_result>;
    __attribute__((visibility("default"))) static haft_effect_t descriptor;

    static void call_clause(haft_function_t *function, void *state, void *payload, void *result) {
        auto clause = reinterpret_cast<R (*)(void *, E *)>(function);
        if constexpr (std::is_void_v<R>)
            clause(state, static_cast<E *>(payload));
        else if constexpr (std::is_reference_v<R>)
            *static_cast<void **>(result) = to_word<R>(clause(state, static_cast<E *>(payload)));
        else
            ::new (result) R(clause(state, static_cast<E *>(payload)));
    }
    static R unhandled(void *, E *) { haft_unhandled(&descriptor); }
};

template <typename E>
haft_effect_t declared<E>::descriptor = {
    name_text_of<E>.text,
    "C++",
    payload_size<E>,
    result_size<typename declared<E>::R>,
    &declared<E>::call_clause,
    (haft_function_t *)&declared<E>::unhandled,
    {&declared<E>::descriptor, (haft_function_t *)&declared<E>::unhandled, HAFT_CLAUSE_TAIL,
     HAFT_SHAPE(payload_size<E>, result_size<typename declared<E>::R>)},
    0,
    false};

} // namespace detail

template <typename Effect>
requires requires {
    typename Effect::effect_result;
}
struct effect_traits<Effect> {
    using result = std::remove_cv_t<typename Effect::effect_result>;
    static constexpr bool native = true;
    static constexpr unsigned slot = detail::slot_of(detail::pretty_name<Effect>());
    static constexpr haft_effect_t *id() { return &detail::declared<Effect>::descriptor; }
};

/* The name by which messages call an effect. */
template <is_effect Effect>
const char *name_of() {
    return effect_traits<Effect>::id()->name;
}

/* ---- Performing ----------------------------------------------------------------------------- */

namespace detail {

struct in_place_guard {
    haft_in_place_t in_place;
    ~in_place_guard() { haft_in_place_end(&in_place); }
};

/* haft_perform_found, for the handler of a scope that the caller may know better than the entry. */
template <typename E>
HAFT_HPP_INLINE void *suspend_found(haft_here_t here, haft_found_t found, haft_scope_t *scope,
                                    void *payload) {
    if (__builtin_expect(haft_clause_of(found) != nullptr || haft_exceptions_pending(here), false))
        return haft_suspend_slow(found, effect_traits<E>::id(), payload);
    constexpr std::size_t size = result_size<result_of<E>>;
    return haft_suspend(here, haft_fiber_of(scope), HAFT_AWAITING(effect_traits<E>::id(), size),
                        found.with, payload);
}

template <typename E>
HAFT_HPP_INLINE typename effect_traits<E>::result
perform_found(haft_here_t here, haft_found_t found, haft_scope_t *scope, E &effect) {
    using R = typename effect_traits<E>::result;
    if (const haft_clause_t *clause = haft_clause_in_place(found)) {
        auto function = reinterpret_cast<R (*)(void *, E *)>(haft_clause_function(clause));
        void *state = scope->state;
        in_place_guard guard{haft_in_place_begin(here, scope)};
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
        haft_unpack(effect_traits<E>::id(), suspend_found<E>(here, found, scope, &effect), &result,
                    sizeof result);
        return result;
    }
}

template <typename E>
HAFT_HPP_INLINE haft_found_t find(haft_here_t here) {
    return haft_find(here, effect_traits<E>::id(), effect_traits<E>::slot, shape_of<E>);
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

/* Stands for a base of E, so that an aggregate with one is told from one that begins with a field.
 */
template <typename E>
struct in_place_of_base {
    template <typename Base>
    requires(std::is_base_of_v<Base, E> && !std::is_same_v<Base, E>) operator Base() const;
};

/* Fields that are left out have the values that their declarations give. */
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

} // namespace detail

/*
 * Performs an effect: finds the innermost handler for it (the first time in a handler by looking at
 * each that stands between, from then on in constant time), and returns what that
 * replies. perform<Put>(1) makes the effect from its fields. The clause may move from the payload.
 *
 * May not return: the handler may drop the computation; destructors then run, and catch (...)
 * blocks, which must rethrow. May throw, if the handler discontinues. May return on another thread.
 */
template <typename Effect>
HAFT_HPP_INLINE auto perform(Effect effect) -> typename effect_traits<Effect>::result {
    haft_here_t here = haft_here();
    haft_found_t found = detail::find<Effect>(here);
    return detail::perform_found(here, found, found.scope, effect);
}
template <typename Effect, typename... Fields>
requires(!(sizeof...(Fields) == 1 &&
           (std::same_as<std::remove_cvref_t<Fields>, Effect> && ...))) inline
    __attribute__((always_inline)) auto perform(Fields &&...fields) ->
    typename effect_traits<Effect>::result {
    return perform<Effect>(detail::make<Effect>(static_cast<Fields &&>(fields)...));
}
template <typename T>
requires(!is_effect<T>) void perform(T) {
    (void)sizeof(detail::X_is_not_an_effect<T>);
}

/* ---- Handlers (§2.1, §2.4) ------------------------------------------------------------------ */

template <typename Answer>
class tail;
template <typename Signature>
class resumption;
template <typename... Effects>
class instance;
template <typename... Effects>
class may;

/* A list of effects. */
template <typename... Effects>
struct effects {};

/* In the list of a handler: an effect whose clause never resumes. */
template <typename Effect>
struct no_resume {};

namespace detail {
struct driver;
template <typename Holder, typename E>
struct general_clause;
template <typename E>
struct captured;
struct handler_base {};
} // namespace detail

/*
 * A handler is a class that derives, publicly, from haft::handler<Effects...> and has an operator()
 * for each effect:
 *
 *     template <typename Answer, typename S>
 *     struct Stateful : haft::handler<Put<S>, Get<S>, haft::no_resume<Stop>> {
 *         S state;
 *         void operator()(Put<S> p, ...                    one of:
 *
 *   Result operator()(Effect)                             Tail-resumptive (§2.4: plain): called in
 * place, on the performer's stack, without a switch; what it returns is the result of the perform.
 *   Answer operator()(Effect, resumption<Answer(Result)>) General: the computation is suspended;
 * the clause resumes it, keeps it, or drops it. What it returns is the answer of handle(), or of
 * the resume() that let the computation run. A clause that ends in a resume returns tail<Answer>.
 *   Answer operator()(Effect)                             For no_resume<Effect>: the computation is
 *       unwound first, destructors run.
 *   Answer on_return(Body)                                Optional: makes the answer from what the
 * body returns; without it the answer is that.
 *
 * Code of a clause runs outside its own handler: what it performs goes to the handlers further out.
 */
template <typename... Effects>
struct handler : detail::handler_base {
    using handled_effects = effects<Effects...>;
};

namespace detail {

template <typename Entry>
struct entry {
    using effect = Entry;
    static constexpr bool never = false;
};
template <typename E>
struct entry<no_resume<E>> {
    using effect = E;
    static constexpr bool never = true;
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

/* Whether a class has a member on_return, overloaded or not: then `probe` has it twice. */
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

template <typename F>
struct never_clause : F {
    using F::operator();
};
template <typename E>
struct never_entry {};
template <typename E>
struct never_entry<effects<E>> {
    using list = effects<no_resume<E>>;
};
template <>
struct never_entry<effects<>> {
    using list = effects<>;
};
template <typename F>
struct clause_entry<never_clause<F>> : never_entry<typename clause_entry<F>::list> {};

/* What has a place in the overloads of a handler and is never called. */
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
 * reference, or by the pointer that owns it. */
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

/* In place of what is no clause, so that the message about it is the only one. */
struct no_clause {
    void operator()(nothing_performed);
};
template <>
struct clause_entry<no_clause> {
    using list = effects<>;
};

template <typename F>
HAFT_HPP_INLINE auto as_clause(F function) {
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
HAFT_HPP_INLINE auto as_clause(std::reference_wrapper<F> function) {
    if constexpr (is_handler<F>)
        return part_of_handler<by_reference<F>>{{&function.get()}};
    else if constexpr (std::is_class_v<F>)
        return part<by_reference<F>, typename clause_entry<F>::list>{{&function.get()}};
    else
        return as_clause(&function.get());
}
template <typename F>
using clause_type = decltype(as_clause(std::declval<F>()));

template <typename List>
struct handler_of;
template <typename... Effects>
struct handler_of<effects<Effects...>> : handler<Effects...> {};

template <typename... Fs>
struct clause_set : handler_of<typename joined<typename clause_entry<Fs>::list...>::type>, Fs... {
    HAFT_HPP_INLINE explicit clause_set(Fs... functions) : Fs(std::move(functions))... {}
    using Fs::operator()...;
};
template <>
struct clause_set<> : handler<> {};

} // namespace detail

/* The effects of several handlers: what a class that derives from all of them handles. */
template <typename... Handlers>
using effects_of = typename detail::joined<detail::list_of<Handlers>...>::type;

/* Marks a lambda as a clause that never resumes. */
template <typename F>
auto never(F function) {
    return detail::never_clause<detail::clause_type<F>>{detail::as_clause(std::move(function))};
}
/* Marks a lambda as the return clause: it makes the answer from what the body returns. */
template <typename F>
auto on_return(F function) {
    return detail::return_clause<F>{std::move(function)};
}
/* A handler made of lambdas, to be used more than once. */
template <typename... Fs>
auto clauses(Fs... functions) {
    return detail::clause_set<detail::clause_type<Fs>...>(
        detail::as_clause(std::move(functions))...);
}

namespace detail {

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

/* A clause may be a template that takes a resumption for any answer; then it matters which one the
 * handler has. */
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

/* Each step is taken only if the one before was right, so that one mistake has one message. A
 * function in which a message was given is of no more use to the compiler: whether something is
 * right is asked first, without `Tell`, and then, apart, to be told. */
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
    if constexpr (kind == clause_kind::general) {
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

/* ---- A handler with a computation ---- */

/* What an exception that leaves a clause in place needs, for handlers of every type. */
struct holder_base {
    haft_landing_t landing = {};
    std::exception_ptr thrown;
    /* Of a holder that resume_with made: how to delete it, and the one before. */
    void (*destroy)(holder_base *) noexcept = nullptr;
    holder_base *older = nullptr;
};

/* A large result of an effect of C has to lie somewhere until the performer has read it. */
template <typename E>
struct foreign_room {};
template <typename E>
requires(!effect_traits<E>::native &&
         !in_word<typename effect_traits<E>::result>) struct foreign_room<E> {
    room<typename effect_traits<E>::result> value;
};
template <typename List>
struct foreign_rooms;
template <typename... Entries>
struct foreign_rooms<effects<Entries...>> : foreign_room<effect_of<Entries>>... {};

template <typename Stored, typename B>
struct holder : holder_base, foreign_rooms<list_of<typename stored<Stored>::handler>> {
    using H = typename stored<Stored>::handler;
    using body_result = B;
    using Answer = typename answer<H, B>::type;
    using list = list_of<H>;
    using held_type = holder;
    /* Whether it goes with the computation. */
    static constexpr bool managed = !std::is_same_v<Stored, by_reference<H>>;
    /* Whether clauses may use what it keeps for longer than the computation lasts. */
    static constexpr bool counted = managed && !std::is_empty_v<Stored>;

    template <typename Make>
    HAFT_HPP_INLINE explicit holder(Make &&make) : kept(static_cast<Make &&>(make)()) {}
    H &handler() { return stored<Stored>::get(kept); }

    Stored kept;
};

template <typename Holder, typename Entry>
consteval clause_kind kind_in() {
    return kind_of<typename Holder::H, Entry, typename Holder::Answer>();
}

/* ---- Clauses in place ---- */

/* Puts aside the exceptions that the performer is handling: a clause runs in the context of its
 * handler. */
class performers_exceptions {
  public:
    performers_exceptions() noexcept : kept(*haft_thread()->globals) {
        *haft_thread()->globals = {nullptr, 0};
    }
    ~performers_exceptions() {
        haft_exceptions_t *now = haft_thread()->globals;
        now->caught = kept.caught;
        now->uncaught += kept.uncaught;
    }
    performers_exceptions(const performers_exceptions &) = delete;
    performers_exceptions &operator=(const performers_exceptions &) = delete;

  private:
    haft_exceptions_t kept;
};

/* Puts the count of exceptions in flight back to what it was. */
struct as_uncaught_before {
    unsigned uncaught = haft_thread()->globals->uncaught;
    ~as_uncaught_before() { haft_thread()->globals->uncaught = uncaught; }
};

/* In a catch-all: the exception, or, if this is an unwinding by force, goes on with it. */
inline std::exception_ptr caught_exception() {
    std::exception_ptr exception = std::current_exception();
    if (exception == nullptr) {
        as_uncaught_before rethrown; /* some runtimes count what is rethrown a second time */
        throw;
    }
    return exception;
}

template <typename R, typename E>
__attribute__((cold, noinline)) R without_exceptions(R (*clause)(void *, E *), void *state,
                                                     E *payload) {
    performers_exceptions aside;
    return clause(state, payload);
}

template <typename Holder, typename Entry, typename E = effect_of<Entry>>
typename effect_traits<E>::result tail_clause(void *state, E *payload) {
    [[maybe_unused]] Holder *held = static_cast<Holder *>(state);
    if constexpr (kind_in<Holder, Entry>() != clause_kind::tail) {
        (void)payload;
        __builtin_unreachable();
    } else if constexpr (std::is_nothrow_invocable_r_v<typename effect_traits<E>::result,
                                                       typename Holder::H &, E>) {
        return static_cast<typename effect_traits<E>::result>(
            held->handler()(passed<E>::on(*payload)));
    } else {
        /* Not `exceptions`: on a segmented fiber those are never none. */
        if (__builtin_expect(haft_exceptions_in(haft_thread()->globals), false))
            return without_exceptions(&tail_clause<Holder, Entry>, state, payload);
        try {
            return static_cast<typename effect_traits<E>::result>(
                held->handler()(passed<E>::on(*payload)));
        } catch (...) {
            held->thrown = caught_exception();
        }
        haft_unwind_to(&held->landing);
    }
}

template <typename Holder, typename List = typename Holder::list>
struct clause_table;
template <typename Holder, typename... Entries>
struct clause_table<Holder, effects<Entries...>> {
    template <typename Entry>
    static constexpr bool in_place = kind_in<Holder, Entry>() == clause_kind::tail;
    static inline const haft_clause_t clauses[] = {
        {effect_traits<effect_of<Entries>>::id(), (haft_function_t *)&tail_clause<Holder, Entries>,
         in_place<Entries> ? HAFT_CLAUSE_TAIL : HAFT_CLAUSE_REQUEST,
         shape_of<effect_of<Entries>>}...,
        {nullptr, nullptr, 0, 0}};
    static inline const haft_handles_t handles = {sizeof...(Entries), 0, HAFT_SET_FIXED, clauses};
};

/* ---- Computations on fibers ---- */

using raise_t = void *(*)(void *);
struct computation;

/* How a drive ends: with another computation to resume instead, and its word; or, if that is NULL,
 * with an answer, which travels as a reply does: in the word, or made in `place`. */
struct ending {
    computation *next;
    void *word;
};
using drive_t = ending(computation *task, void *word, raise_t raise, void *place);

struct computation {
    haft_fiber_t *fiber = nullptr;
    drive_t *drive = nullptr;
    void *held = nullptr;   /* a holder */
    void *slot = nullptr;   /* the room for the result that is waited for, if not in a word */
    void *released[2] = {}; /* the resumption, while compat/cpp-effects has it released */
    /* Two for each clause that runs and may use its handler, on whatever thread; and one once the
       computation has finished, was thrown out of, or dropped. */
    std::uint32_t use = 0;
    void (*destroy)(computation *) noexcept = nullptr;
    holder_base *swapped = nullptr; /* the holders that resume_with made */
    const void *result_type = nullptr;
};

template <typename B>
struct computation_of : computation {
    void *word = nullptr; /* the argument of a computation made by wrap */
    room<B> result;
};
template <typename B>
inline constexpr char type_mark = 0;

inline void destroy_swapped(computation *task) noexcept {
    while (task->swapped != nullptr) {
        holder_base *held = task->swapped;
        task->swapped = held->older;
        held->destroy(held);
    }
}
inline void release(computation *task) noexcept {
    haft_fiber_t *fiber = task->fiber;
    destroy_swapped(task);
    task->destroy(task);
    haft_fiber_free(fiber);
}
enum : std::uint32_t { task_over = 1, task_clause = 2 };
/* Whoever makes the sum `task_over` alone releases the task. */
HAFT_HPP_INLINE std::uint32_t change_use(computation *task, std::uint32_t by) noexcept {
    if (haft_is_alone())
        return task->use += by;
    return __atomic_add_fetch(&task->use, by, __ATOMIC_ACQ_REL);
}
inline bool is_over(const computation *task) noexcept {
    return (__atomic_load_n(&task->use, __ATOMIC_ACQUIRE) & task_over) != 0;
}
inline void end(computation *task) noexcept {
    if (change_use(task, task_over) == task_over)
        release(task);
}
inline void *run_nothing(void *) {
    return nullptr;
}

/* Room for a T at the high end of the stack of a new fiber, which is aligned to 64. */
template <typename T>
HAFT_HPP_INLINE void *reserve(haft_fiber_t *fiber) {
    if constexpr (alignof(T) <= 64) {
        return haft_fiber_reserve(fiber, sizeof(T));
    } else {
        auto room = reinterpret_cast<std::uintptr_t>(
            haft_fiber_reserve(fiber, sizeof(T) + alignof(T) - 64));
        return reinterpret_cast<void *>((room + alignof(T) - 1) & ~(alignof(T) - 1));
    }
}

/* Frees a fiber if making what belongs on it fails. */
struct unfinished_fiber {
    haft_fiber_t *fiber;
    HAFT_HPP_INLINE ~unfinished_fiber() {
        if (fiber != nullptr)
            haft_fiber_free(fiber);
    }
};

HAFT_HPP_INLINE void clause_ended(computation *task) noexcept {
    if (change_use(task, 0u - task_clause) == task_over)
        release(task);
}

/* Unwinds what is suspended; its task stays while clauses of its handler run. Not inlined: every
 * resumption's destructor has a call of it, and most find nothing to drop. */
__attribute__((noinline)) inline void drop(computation *task) {
    if (is_over(task))
        return;
    /* Over for its own cleanups, too; and in use until they have run. */
    change_use(task, task_over + task_clause);
    struct dropped {
        computation *task;
        ~dropped() { clause_ended(task); }
    } left{task};
    haft_fiber_reset(task->fiber, run_nothing, nullptr);
}

/* Drops a computation if what has to be done before it is resumed or dropped throws. */
struct suspended_computation {
    computation *task;
    HAFT_HPP_INLINE ~suspended_computation() {
        if (task != nullptr)
            drop(task);
    }
};

/* A clause, or return clause, that runs. */
class running_clause {
  public:
    HAFT_HPP_INLINE explicit running_clause(computation *of) : task(of) {
        change_use(task, task_clause);
    }
    HAFT_HPP_INLINE ~running_clause() { clause_ended(task); }
    running_clause(const running_clause &) = delete;
    running_clause &operator=(const running_clause &) = delete;

  private:
    computation *task;
};
struct no_running_clause {
    explicit no_running_clause(computation *) {}
};

/* Ends the task if the resume is left by an exception or unwound. */
struct running_computation {
    computation *task;
    ~running_computation() {
        if (task != nullptr)
            end(task);
    }
};

} // namespace detail

/*
 * What a clause returns that ends by resuming: std::move(k).tail_resume(value), or an answer. The
 * handler resumes `k` after the clause is gone, so that a loop of such clauses runs in constant
 * space.
 */
template <typename Answer>
class [[nodiscard]] tail {
  public:
    template <typename Value>
    requires(detail::fits<Value, Answer> && !std::is_void_v<Answer> &&
             !std::is_same_v<std::remove_cvref_t<Value>, tail>) tail(Value &&value) {
        answer.fill([&]() -> Answer { return static_cast<Value &&>(value); });
    }
    tail() requires std::is_void_v<Answer> {}
    tail(tail &&other)
        : next(std::exchange(other.next, nullptr)), word(other.word),
          answer(std::move(other.answer)) {}
    tail &operator=(tail &&) = delete;
    HAFT_HPP_INLINE ~tail() {
        if (__builtin_expect(next != nullptr, false))
            detail::drop(next);
    }

  private:
    tail(detail::computation *task, void *reply) : next(task), word(reply) {}

    detail::computation *next = nullptr;
    void *word = nullptr;
    detail::room<Answer> answer;

    template <typename Signature>
    friend class resumption;
    template <typename, typename>
    friend struct detail::general_clause;
};

/* ---- Resumptions (§2.1, §3.4) --------------------------------------------------------------- */

namespace detail {

/* Makes an answer where it is wanted. */
template <typename Answer, typename Make>
HAFT_HPP_INLINE ending answered(void *place, Make &&make) {
    if constexpr (std::is_void_v<Answer>) {
        static_cast<Make &&>(make)();
        return {nullptr, nullptr};
    } else if constexpr (in_word<Answer>) {
        return {nullptr, to_word<Answer>(static_cast<Make &&>(make)())};
    } else {
        ::new (place) Answer(static_cast<Make &&>(make)());
        return {nullptr, nullptr};
    }
}

/* A computation that performs an E, until a resumption owns it. Function arguments are made in
 * either order: where the payload throws first, the computation is dropped here. */
template <typename E>
struct captured {
    computation *task;
    room<result_of<E>> *slot;
    HAFT_HPP_INLINE ~captured() {
        if (__builtin_expect(task != nullptr, false))
            drop(task);
    }
    template <typename Answer>
    HAFT_HPP_INLINE auto resumption() {
        return haft::resumption<typename signature<Answer, result_of<E>>::type>(
            std::exchange(task, nullptr), effect_traits<E>::id(), slot);
    }
};

/* Keeps a handler while one of its clauses runs, where the computation does not suffice. */
template <typename Holder>
using running_of = std::conditional_t<Holder::counted, running_clause, no_running_clause>;

/* The call of a general clause. */
template <typename Holder, typename E>
struct general_clause {
    using Answer = typename Holder::Answer;
    static HAFT_HPP_INLINE ending call(typename Holder::H &handler, captured<E> &computation,
                                       E &payload, void *place) {
        [[maybe_unused]] running_of<Holder> guard(computation.task);
        auto clause = [&]() HAFT_HPP_INLINE_LAMBDA -> decltype(auto) {
            return handler(passed<E>::on(payload), computation.template resumption<Answer>());
        };
        if constexpr (std::is_same_v<decltype(clause()), tail<Answer>>) {
            tail<Answer> ended = clause();
            if (ended.next != nullptr)
                return {std::exchange(ended.next, nullptr), ended.word};
            return answered<Answer>(place, [&]() -> Answer { return ended.answer.take(); });
        } else {
            return answered<Answer>(place, [&]() HAFT_HPP_INLINE_LAMBDA -> Answer {
                return static_cast<Answer>(clause());
            });
        }
    }
};

/* The loop around computations. What a resume that is no tail call keeps of the stack is the frame
 * of `drive` and an `answering` in the frame of the clause, so both are kept small. */
struct driver {
    /* Resumes a computation whose handler is a Holder until it, or one that it is replaced by, has
       an answer, or has to be resumed under a handler of another type. */
    template <typename Holder>
    static ending drive(computation *task, void *word, raise_t raise, void *place) {
        constexpr const haft_handles_t *handles = &clause_table<Holder>::handles;
        for (;;) {
            haft_request_t request;
            {
                running_computation running{task};
                request = __builtin_expect(raise != nullptr, false)
                              ? haft_resume_calling(task->fiber, raise, word, handles)
                              : haft_resume_hot(task->fiber, word, handles);
                running.task = nullptr;
            }
            ending end = dispatch<Holder>(task, request, place, typename Holder::list{});
            if (end.next == nullptr || end.next->drive != &drive<Holder>)
                return end;
            task = end.next;
            word = end.word;
            raise = nullptr;
        }
    }

    /* The first drive of a computation made by wrap: the word is its argument. */
    template <typename Holder>
    static ending start(computation *task, void *word, raise_t raise, void *place) {
        if (raise != nullptr) {
            running_computation running{task};
            raise(word);
        }
        static_cast<computation_of<typename Holder::body_result> *>(task)->word = word;
        task->drive = &drive<Holder>;
        return drive<Holder>(task, word, nullptr, place);
    }

  private:
    template <typename Holder>
    static HAFT_HPP_INLINE ending dispatch(computation *task, haft_request_t request, void *place,
                                           effects<>) {
        return finish<Holder>(task, request, place);
    }
    template <typename Holder, typename Entry, typename... Rest>
    static HAFT_HPP_INLINE ending dispatch(computation *task, haft_request_t request, void *place,
                                           effects<Entry, Rest...>) {
        constexpr clause_kind kind = kind_in<Holder, Entry>();
        if constexpr (kind != clause_kind::tail) {
            if (request.effect == effect_traits<effect_of<Entry>>::id()) {
                if constexpr (kind == clause_kind::general)
                    return general<Holder, effect_of<Entry>>(task, request.payload, place);
                else
                    return never<Holder>(task, performed<effect_of<Entry>>(request.payload), place);
            }
        }
        return dispatch<Holder>(task, request, place, effects<Rest...>{});
    }

    template <typename Holder, typename E>
    static HAFT_HPP_INLINE ending general(computation *task, void *request, void *place) {
        Holder &held = *static_cast<Holder *>(task->held);
        typename Holder::H &handler = held.handler();
        captured<E> computation{task, slot<E>(held, request)};
        return general_clause<Holder, E>::call(handler, computation, *performed<E>(request), place);
    }

    template <typename Holder, typename E>
    static ending never(computation *task, E *request, void *place) {
        using Answer = typename Holder::Answer;
        typename Holder::H &handler = static_cast<Holder *>(task->held)->handler();
        [[maybe_unused]] running_of<Holder> guard(task);
        suspended_computation left{task};
        E payload(passed<E>::on(*request));
        left.task = nullptr;
        drop(task);
        return answered<Answer>(
            place, [&]() -> Answer { return static_cast<Answer>(handler(std::move(payload))); });
    }

    /* The computation has returned, or a clause in place has thrown and its performer is unwound.
     */
    template <typename Holder>
    static __attribute__((noinline)) ending finish(computation *task, haft_request_t request,
                                                   void *place) {
        using Answer = typename Holder::Answer;
        Holder &held = *static_cast<Holder *>(task->held);
        running_clause guard(task);
        change_use(task, task_over);
        if (request.effect == &haft_special_landed)
            std::rethrow_exception(std::move(held.thrown));
        auto &result = static_cast<computation_of<typename Holder::body_result> *>(task)->result;
        return answered<Answer>(place, [&]() -> Answer {
            if constexpr (!answer<typename Holder::H, typename Holder::body_result>::changed)
                return result.take();
            else if constexpr (std::is_void_v<typename Holder::body_result>)
                return held.handler().on_return();
            else
                return held.handler().on_return(result.take());
        });
    }

    template <typename E, typename Holder>
    static HAFT_HPP_INLINE room<result_of<E>> *slot(Holder &held, void *request) {
        if constexpr (is_call<E>)
            return &static_cast<call<E> *>(request)->result;
        else if constexpr (!in_word<result_of<E>>)
            return &static_cast<foreign_room<E> &>(held).value;
        else
            return nullptr;
    }
};

/* Runs a computation, and those that it is replaced by, to an answer. An `answering` is an object
 * and no function, because gcc keeps a copy of an answer for each function that returns it, inlined
 * or not. */
HAFT_HPP_INLINE void *run(computation *task, void *word, raise_t raise, void *place) {
    ending end = task->drive(task, word, raise, place);
    while (__builtin_expect(end.next != nullptr, false))
        end = end.next->drive(end.next, end.word, nullptr, place);
    return end.word;
}
template <typename Answer>
class answering {
  public:
    HAFT_HPP_INLINE answering(computation *task, void *word, raise_t raise = nullptr) {
        run(task, word, raise, std::addressof(value));
    }
    HAFT_HPP_INLINE ~answering() { value.~Answer(); }
    answering(const answering &) = delete;
    answering &operator=(const answering &) = delete;
    HAFT_HPP_INLINE Answer &&take() { return static_cast<Answer &&>(value); }

  private:
    union {
        Answer value;
    };
};
template <typename Answer>
requires in_word<Answer>
class answering<Answer> {
  public:
    HAFT_HPP_INLINE answering(computation *task, void *given, raise_t raise = nullptr)
        : word(run(task, given, raise, nullptr)) {}
    HAFT_HPP_INLINE Answer take() { return from_word<Answer>(word); }

  private:
    void *word;
};

template <typename Exception>
struct raised {
    Exception &exception;
    static void *raise(void *argument) {
        throw std::move(static_cast<raised *>(argument)->exception);
    }
};
template <>
struct raised<std::exception_ptr> {
    std::exception_ptr &exception;
    static void *raise(void *argument) {
        std::exception_ptr &exception = static_cast<raised *>(argument)->exception;
        if (exception == nullptr)
            throw std::logic_error("haft: discontinue() was given no exception, a null pointer");
        std::rethrow_exception(std::move(exception));
    }
};

/* What `with` and resume_with take as a handler, and how it is kept. */
template <typename... Handlers>
struct kept;
template <typename H>
requires is_handler<std::remove_cvref_t<H>>
struct kept<H> {
    static constexpr bool right = true;
    using type = std::remove_cvref_t<H>;
    static HAFT_HPP_INLINE type make(std::remove_reference_t<H> &handler) {
        return std::move(handler);
    }
};
template <typename H>
requires is_handler<H>
struct kept<H &> {
    static constexpr bool right = true;
    using type = by_reference<H>;
    static HAFT_HPP_INLINE type make(H &handler) { return {std::addressof(handler)}; }
};
[[noreturn]] inline __attribute__((cold, noinline)) void no_handler() {
    haft_error_t error = {HAFT_ERROR_BAD_ARGUMENT, "A handler was given by a pointer that is null.",
                          nullptr, nullptr};
    haft_misused(&error);
}
template <typename P>
concept points_to_handler = requires {
    typename std::remove_cvref_t<P>::element_type;
}
&&is_handler<typename std::remove_cvref_t<P>::element_type>;
template <typename P>
requires points_to_handler<P>
struct kept<P> {
    static constexpr bool right = true;
    using type = std::remove_cvref_t<P>;
    static HAFT_HPP_INLINE type make(std::remove_reference_t<P> &pointer) {
        if (__builtin_expect(pointer == nullptr, false))
            no_handler();
        return static_cast<P &&>(pointer);
    }
};

/* The same as a part of a handler. */
template <typename F>
struct kept_part {
    using type = clause_type<std::decay_t<F>>;
    static HAFT_HPP_INLINE type make(std::remove_reference_t<F> &function) {
        if constexpr (std::is_same_v<type, no_clause>)
            return {};
        else
            return as_clause(std::decay_t<F>(static_cast<F &&>(function)));
    }
};
template <typename H>
requires(is_handler<std::remove_cvref_t<H>> || points_to_handler<H>) struct kept_part<H> {
    using type = part_of_handler<typename kept<H>::type>;
    static HAFT_HPP_INLINE type make(std::remove_reference_t<H> &handler) {
        return type{{kept<H>::make(handler)}};
    }
};

template <typename... Parts>
struct two_return_clauses_in {
    static_assert(sizeof...(Parts) == 0, "haft: the handler has two return clauses (on_return).");
};
template <typename Part>
struct called_by {
    using type = void;
};
template <typename Part>
requires requires {
    typename Part::called;
}
struct called_by<Part> {
    using type = typename Part::called;
};
template <bool Tell, typename... Parts>
constexpr bool check_parts() {
    using list = typename joined<typename clause_entry<Parts>::list...>::type;
    if constexpr (!(check_readable<false, typename called_by<Parts>::type>() && ...))
        return (check_readable<Tell, typename called_by<Parts>::type>() && ...);
    else if constexpr (!check_each_once<false>(list{})) {
        return check_each_once<Tell>(list{});
    } else if constexpr ((std::size_t(names_on_return<Parts>) + ... + 0) > 1) {
        explain<Tell, two_return_clauses_in<Parts...>>();
        return false;
    } else {
        return ((count_of<Parts, Parts...> == 1) && ...);
    }
}
template <bool Right, typename... Parts>
struct set_of {
    using type = clause_set<>;
};
template <typename... Parts>
struct set_of<true, Parts...> {
    using type = clause_set<Parts...>;
};
template <typename... Handlers>
struct kept {
    static constexpr bool right = check_parts<false, typename kept_part<Handlers>::type...>();
    static void explain() { (void)check_parts<true, typename kept_part<Handlers>::type...>(); }
    using type = typename set_of<right, typename kept_part<Handlers>::type...>::type;
    static HAFT_HPP_INLINE type make(Handlers &...parts) {
        if constexpr (right)
            return type(kept_part<Handlers>::make(parts)...);
        else
            return type();
    }
};

template <typename Answer, typename A>
class resumption_base {
  public:
    resumption_base() noexcept = default;
    resumption_base(resumption_base &&other) noexcept
        : task(std::exchange(other.task, nullptr)), effect(other.effect) {}
    resumption_base &operator=(resumption_base &&other) {
        if (this != &other) {
            computation *before = std::exchange(task, std::exchange(other.task, nullptr));
            effect = other.effect;
            if (before != nullptr)
                detail::drop(before);
        }
        return *this;
    }
    HAFT_HPP_INLINE ~resumption_base() {
        if (task != nullptr)
            detail::drop(task);
    }

    /* What is dropped by an assignment may report an error; an exchange drops nothing. */
    void swap(resumption_base &other) noexcept {
        std::swap(task, other.task);
        std::swap(effect, other.effect);
    }

    /* Whether there is something to resume. */
    explicit operator bool() const noexcept { return task != nullptr; }

    /* Resumes by throwing at the perform: an exception of any type, or an std::exception_ptr. */
    template <typename Exception>
    Answer discontinue(Exception exception) && {
        raised<Exception> raise{exception};
        return answering<Answer>(use("discontinued"), &raise, &raised<Exception>::raise).take();
    }

    /* Drops the computation now: its stack is unwound, destructors run. */
    void drop() && { detail::drop(use("dropped")); }

    /* The fiber of the computation, NULL once used: for its name, backtrace and state (haft.h). */
    haft_fiber_t *fiber() const noexcept { return task == nullptr ? nullptr : task->fiber; }

  protected:
    HAFT_HPP_INLINE resumption_base(computation *captured, haft_effect_t *performed,
                                    room<A> *result) noexcept
        : task(captured), effect(performed) {
        if constexpr (!in_word<A>)
            captured->slot = result;
    }

    computation *use(const char *what) {
        if (__builtin_expect(task == nullptr, false))
            haft_used_resumption(effect, what);
        return std::exchange(task, nullptr);
    }

    /* If making the reply fails, the computation is dropped. */
    static void *reply(computation *) { return nullptr; }
    template <typename Value>
    static HAFT_HPP_INLINE void *reply(computation *suspended, Value &&value) {
        if constexpr (in_word<A>) {
            (void)suspended;
            return to_word<A>(static_cast<A &&>(value));
        } else {
            room<A> *slot = static_cast<room<A> *>(suspended->slot);
            resumption_base failed;
            failed.task = suspended;
            slot->fill([&]() -> A { return static_cast<Value &&>(value); });
            failed.task = nullptr;
            return slot->address();
        }
    }

    template <typename Body, typename... H>
    HAFT_HPP_INLINE auto put_under(H &...handlers) {
        using Holder = holder<typename kept<H...>::type, Body>;
        if (task == nullptr)
            haft_used_resumption(effect, "resumed");
        if (task->result_type != &type_mark<Body>)
            throw std::logic_error(
                "haft: resume_with was given a handler for another result of the "
                "body: name that type, resume_with<Body>(handler, value)");
        bool same = task->drive == &driver::drive<Holder>;
        if constexpr (!Holder::managed) {
            if (same) {
                static_cast<Holder *>(task->held)->kept = kept<H...>::make(handlers...);
                return task;
            }
        }
        if (__atomic_load_n(&task->use, __ATOMIC_ACQUIRE) == 0)
            destroy_swapped(task);
        Holder *held =
            new Holder([&]() HAFT_HPP_INLINE_LAMBDA { return kept<H...>::make(handlers...); });
        held->landing.fiber = task->fiber;
        held->destroy = [](holder_base *made) noexcept { delete static_cast<Holder *>(made); };
        held->older = std::exchange(task->swapped, held);
        task->held = held;
        task->drive = &driver::drive<Holder>;
        task->fiber->scope.state = held;
        return task;
    }

    computation *task = nullptr;
    haft_effect_t *effect = nullptr;
};

template <bool Tell, typename Body, typename H>
constexpr bool check_swapped() {
    using Stored = typename kept<H>::type;
    using Handler = typename stored<Stored>::handler;
    if constexpr (!kept<H>::right) {
        if constexpr (Tell)
            kept<H>::explain();
        return false;
    } else {
        return check_handler<Tell, Handler, Body>(list_of<Handler>{});
    }
}
template <bool Right, typename Body, typename H>
struct swapped {
    using type = Body; /* so that the clause around it is right */
};
template <typename Body, typename H>
struct swapped<true, Body, H> {
    using type = typename holder<typename kept<H>::type, Body>::Answer;
};
template <typename Body, typename H>
using swapped_answer = typename swapped<check_swapped<false, Body, H>(), Body, H>::type;

} // namespace detail

/*
 * A computation that waits at a perform whose result is a Result, under a handler whose answer is
 * an Answer. Owns it: one-shot, move-only. Dropping it unwinds the stack, destructors run. A second
 * use is an error that names the effect. A resumption may outlive the handle() that captured it,
 * and a handler that was given by value goes with it. (A resumption that is kept in the handler of
 * its own computation, where that was given by value, is a cycle: nobody drops it.)
 *
 * resume(value)         continues; returns the answer
 * tail_resume(value)    to be returned by a clause: continues after the clause
 * resume_with(h, value) continues under another handler from here on, whose answer it returns; `h`
 * is what handle().with takes, one handler or one lambda (several: clauses(...)). What the body
 * returns must be the Answer here, or be named: resume_with<Body>
 */
template <typename Answer, typename Result>
class [[nodiscard]] resumption<Answer(Result)> : public detail::resumption_base<Answer, Result> {
    using base = detail::resumption_base<Answer, Result>;

  public:
    resumption() noexcept = default;
    friend void swap(resumption &one, resumption &other) noexcept { one.swap(other); }

    Answer resume(Result value) && {
        detail::computation *suspended = this->use("resumed");
        void *reply = this->reply(suspended, static_cast<Result &&>(value));
        return detail::answering<Answer>(suspended, reply).take();
    }
    tail<Answer> tail_resume(Result value) && {
        detail::computation *suspended = this->use("resumed");
        return tail<Answer>(suspended, this->reply(suspended, static_cast<Result &&>(value)));
    }
    template <typename Body = Answer, typename H>
    HAFT_HPP_INLINE detail::swapped_answer<Body, H> resume_with(H &&handler, Result value) && {
        if constexpr (!detail::check_swapped<false, Body, H>()) {
            (void)detail::check_swapped<true, Body, H>();
            __builtin_unreachable();
        } else {
            this->template put_under<Body, H>(handler);
            detail::computation *suspended = this->use("resumed");
            void *reply = this->reply(suspended, static_cast<Result &&>(value));
            return detail::answering<detail::swapped_answer<Body, H>>(suspended, reply).take();
        }
    }

  private:
    using base::base;
    template <typename>
    friend struct detail::captured;
    template <typename, typename>
    friend class wrapping;
};

template <typename Answer>
class [[nodiscard]] resumption<Answer()> : public detail::resumption_base<Answer, void> {
    using base = detail::resumption_base<Answer, void>;

  public:
    resumption() noexcept = default;
    friend void swap(resumption &one, resumption &other) noexcept { one.swap(other); }

    Answer resume() && { return detail::answering<Answer>(this->use("resumed"), nullptr).take(); }
    tail<Answer> tail_resume() && { return tail<Answer>(this->use("resumed"), nullptr); }
    template <typename Body = Answer, typename H>
    HAFT_HPP_INLINE detail::swapped_answer<Body, H> resume_with(H &&handler) && {
        if constexpr (!detail::check_swapped<false, Body, H>()) {
            (void)detail::check_swapped<true, Body, H>();
            __builtin_unreachable();
        } else {
            this->template put_under<Body, H>(handler);
            return detail::answering<detail::swapped_answer<Body, H>>(this->use("resumed"), nullptr)
                .take();
        }
    }

  private:
    using base::base;
    template <typename>
    friend struct detail::captured;
    template <typename, typename>
    friend class wrapping;
};

/* ---- Instances and effect safety ------------------------------------------------------------ */

namespace detail {

template <typename E, typename... Handled>
struct an_effect_escapes_its_handlers {
    static_assert(count_of<E, Handled...> != 0,
                  "haft: this call may perform an effect that nobody around it is known to handle: "
                  "the first of the types above is the effect, the others are what may be "
                  "performed. Handle it, or let this function state it: haft::may<Effect...>.");
};
struct grant_access;

} // namespace detail

/*
 * A handler by name: performs to that very handler, found in constant time, whatever handlers of
 * the same effects lie between. A body that takes a parameter is given the instance of its handler:
 *
 *     haft::handle([](haft::instance<Get> cell) { return cell.perform(Get{}); }).with(...)
 *
 * Valid in that body. To be copied freely. Performing elsewhere is an error.
 */
template <typename... Effects>
class instance {
  public:
    template <typename Effect>
    HAFT_HPP_INLINE result_of<Effect> perform(Effect effect) const {
        (void)sizeof(detail::an_effect_escapes_its_handlers<Effect, Effects...>);
        using traits = effect_traits<Effect>;
        haft_here_t here = haft_here();
        return detail::perform_found(
            here,
            haft_find_at(here, scope, traits::id(), traits::slot + 2, detail::shape_of<Effect>),
            scope, effect);
    }

    /* From an instance of more effects, or of the same in another order. */
    template <typename... More>
    instance(const instance<More...> &other) : scope(other.scope) {
        (void)(sizeof(detail::an_effect_escapes_its_handlers<Effects, More...>) + ... + 0);
    }
    instance(const instance &) = default;
    instance &operator=(const instance &) = default;

  private:
    explicit instance(haft_scope_t *of) : scope(of) {}
    haft_scope_t *scope;
    friend struct detail::grant_access;
    template <typename...>
    friend class instance;
};

/*
 * Effect safety: a function states in its type which effects it may perform, by a parameter, and
 * performs them through that:
 *
 *     int next(haft::may<Get, Put> can) {
 *         int value = can.perform(Get{});
 *         can.perform(Put{.value = value + 1});
 *         return value;
 *     }
 *
 * Only handlers make a `may`: the body of handle() is given one for the effects that are handled,
 * and handle(can, body) one for these and those of `can`. It converts to a `may` of fewer effects.
 * So a call that could let an effect escape its handlers does not compile. Code without `may` is as
 * before.
 */
template <typename... Effects>
class may {
  public:
    template <typename... More>
    may(const may<More...> &) {
        (void)(sizeof(detail::an_effect_escapes_its_handlers<Effects, More...>) + ... + 0);
    }
    template <typename... More>
    may(const instance<More...> &) {
        (void)(sizeof(detail::an_effect_escapes_its_handlers<Effects, More...>) + ... + 0);
    }
    may(const may &) = default;
    may &operator=(const may &) = default;

    template <typename Effect>
    HAFT_HPP_INLINE result_of<Effect> perform(Effect effect) const {
        (void)sizeof(detail::an_effect_escapes_its_handlers<Effect, Effects...>);
        return haft::perform<Effect>(std::move(effect));
    }

  private:
    may() = default;
    friend struct detail::grant_access;
};

namespace detail {

struct grant_access {
    template <typename... Effects>
    static auto grant(haft_scope_t *scope, instance<Effects...> *) {
        return instance<Effects...>(scope);
    }
    template <typename... Effects>
    static auto grant(haft_scope_t *, may<Effects...> *) {
        return may<Effects...>();
    }
};

/* What a body is given: by the handler's list, and what may be performed around it. */
template <typename Around, typename List>
struct given;
template <typename... Entries>
struct given<void, effects<Entries...>> {
    using type = instance<effect_of<Entries>...>;
};
template <typename... Outer, typename... Entries>
struct given<may<Outer...>, effects<Entries...>> {
    using type = may<Outer..., effect_of<Entries>...>;
};

template <typename Body, typename Given>
struct the_body_cannot_be_called {
    static_assert(sizeof(Body *) == 0,
                  "haft: the body of handle() is called with no arguments, or with the handler's "
                  "instance (haft::instance<Effects...> or haft::may<Effects...>).");
};

template <typename Body, typename Argument>
struct the_body_does_not_take {
    static_assert(sizeof(Body *) == 0, "haft: the body of wrap<Argument>() cannot be called with "
                                       "the argument, the last of the types above.");
};

template <typename Body, typename Given>
HAFT_HPP_INLINE decltype(auto) call_body(Body &body, haft_scope_t *scope) {
    if constexpr (std::is_invocable_v<Body &>)
        return body();
    else
        return body(grant_access::grant(scope, static_cast<Given *>(nullptr)));
}
template <typename Body, typename Given>
using body_result_of = decltype(call_body<Body, Given>(std::declval<Body &>(), nullptr));

/* Whether a computation is right: if not, nothing is made of it. */
template <bool Tell, typename H, typename Body, typename Given>
constexpr bool check_computation() {
    if constexpr (!std::is_invocable_v<Body &> && !std::is_invocable_v<Body &, Given>) {
        explain<Tell, the_body_cannot_be_called<Body, Given>>();
        return false;
    } else {
        return check_handler<Tell, H, body_result_of<Body, Given>>(list_of<H>{});
    }
}

/* ---- Handlers without a stack ---- */

struct landed {};

template <typename Holder>
struct in_place_scope : Holder {
    template <typename Make>
    HAFT_HPP_INLINE explicit in_place_scope(Make &&make) : Holder(static_cast<Make &&>(make)) {}
    haft_scope_t scope;
    unsigned uncaught; /* exceptions in flight around the handler */
};
struct pushed_scope {
    haft_scope_t *scope;
    ~pushed_scope() { haft_scope_pop(scope); }
};

template <typename Scope, typename Given, typename Body>
__attribute__((noinline)) typename Scope::body_result run_body(Scope &here, Body &body) {
    return call_body<Body, Given>(body, &here.scope);
}

/* Neither this nor run_body is inlined: the stack pointer is then the same at the call as before
 * it. */
template <typename Scope, typename Given, typename Body>
__attribute__((noinline)) typename Scope::body_result run_in_place(Scope &here, Body &body) {
    using Holder = typename Scope::held_type;
    here.landing.sp = haft_stack_pointer();
    here.landing.land = [](haft_landing_t *) { throw landed{}; };
    try {
        haft_scope_push(&here.scope, &clause_table<Holder>::handles, static_cast<Holder *>(&here));
        pushed_scope pushed{&here.scope};
        here.uncaught = haft_thread()->globals->uncaught;
        return run_body<Scope, Given>(here, body);
    } catch (const landed &) {
        haft_thread()->globals->uncaught = here.uncaught;
    }

    std::rethrow_exception(std::move(here.thrown));
}

/* ---- Handlers with a fiber ---- */

template <typename Holder, typename Given, typename Body, typename Argument>
struct task : computation_of<typename Holder::body_result> {
    template <typename Make>
    HAFT_HPP_INLINE task(Make &&make, Body &&function)
        : held(static_cast<Make &&>(make)), body(std::move(function)) {}

    /* The body's function; runs on the fiber. */
    static void *run(void *argument) {
        task *self = static_cast<task *>(argument);
        self->result.fill([&]() -> typename Holder::body_result {
            if constexpr (std::is_void_v<Argument>)
                return call_body<Body, Given>(self->body, &self->fiber->scope);
            else if constexpr (in_word<Argument>)
                return self->body(from_word<Argument>(self->word));
            else
                return self->body(self->argument.take());
        });
        return nullptr;
    }
    static void destroy_task(computation *self) noexcept { static_cast<task *>(self)->~task(); }

    template <typename Make>
    static HAFT_HPP_INLINE task *create(const haft_fiber_options_t &options, Make &&make,
                                        Body &&function) {
        haft_fiber_t *fiber = haft_fiber_create(&options, &task::run, nullptr);
        if (fiber == nullptr)
            throw std::bad_alloc();
        unfinished_fiber owned{fiber};
        task *self =
            ::new (reserve<task>(fiber)) task(static_cast<Make &&>(make), std::move(function));
        owned.fiber = nullptr;
        fiber->argument = self;
        fiber->scope.state = static_cast<Holder *>(&self->held);
        self->fiber = fiber;
        self->computation::held = &self->held;
        self->drive = &driver::drive<Holder>;
        self->destroy = &task::destroy_task;
        self->result_type = &type_mark<typename Holder::body_result>;
        self->held.landing.fiber = fiber;
        return self;
    }

    Holder held;
    Body body;
    room<std::conditional_t<in_word<Argument>, void, Argument>> argument;
};

inline haft_effect_t start_effect = {"start", "haft.hpp", 0, 0, nullptr, nullptr, {}, false};

} // namespace detail

/* ---- Handling -------------------------------------------------------------------------------- */

/* A body to be handled: made by handle(body), and used up by one of the forms of `with`. */
template <typename Body, typename Around, bool OwnStack = false>
class [[nodiscard]] handling {
  public:
    handling(Body computation) : body(std::move(computation)) {}
    handling(Body &&computation, const haft_fiber_options_t &chosen)
        : body(std::move(computation)), options(chosen) {}

    /* Chooses the stack: its size, memory and name, as in haft.h. The body then has one even if all
     * clauses are tail-resumptive. */
    handling<Body, Around, true> on(const haft_fiber_options_t &chosen) && {
        return {std::move(body), chosen};
    }

    /*
     * with(parts...)   a handler made of parts. A part is a clause: a lambda, a function, a
     *                  function object, std::ref of one, never(clause); on_return(function); or
     *                  itself a handler:
     * with(handler)    an lvalue is referred to, and must live as long as the computation; an
     *                  rvalue is moved in
     * with(pointer)    the handler that a std::shared_ptr or std::unique_ptr owns
     *
     * Runs the body under the handler, and returns the answer. The body is called on a fiber of its
     * own unless all clauses are tail-resumptive.
     */
    template <typename... H>
    HAFT_HPP_INLINE decltype(auto) with(H &&...handlers) && {
        if constexpr (detail::kept<H...>::right)
            return std::move(*this).template run<typename detail::kept<H...>::type>(
                [&]() HAFT_HPP_INLINE_LAMBDA { return detail::kept<H...>::make(handlers...); });
        else
            detail::kept<H...>::explain();
    }
    /* with_new<H>(arguments...): a handler that is made, in place, for this computation. */
    template <typename H, typename... Arguments>
    HAFT_HPP_INLINE decltype(auto) with_new(Arguments &&...arguments) && {
        return std::move(*this).template run<H>(
            [&]() HAFT_HPP_INLINE_LAMBDA { return H(static_cast<Arguments &&>(arguments)...); });
    }

  private:
    template <typename Stored, typename Make>
    HAFT_HPP_INLINE decltype(auto) run(Make &&make) && {
        using namespace detail;
        using H = typename stored<Stored>::handler;
        using Given = typename given<Around, list_of<H>>::type;
        if constexpr (!check_computation<false, H, Body, Given>()) {
            (void)check_computation<true, H, Body, Given>();
        } else {
            using Holder = holder<Stored, body_result_of<Body, Given>>;
            if constexpr (!OwnStack && all_in_place<H, typename Holder::Answer>(list_of<H>{})) {
                in_place_scope<Holder> here(static_cast<Make &&>(make));
                if constexpr (!answer<H, typename Holder::body_result>::changed) {
                    return run_in_place<in_place_scope<Holder>, Given>(here, body);
                } else if constexpr (std::is_void_v<typename Holder::body_result>) {
                    run_in_place<in_place_scope<Holder>, Given>(here, body);
                    return here.handler().on_return();
                } else {
                    return here.handler().on_return(
                        run_in_place<in_place_scope<Holder>, Given>(here, body));
                }
            } else {
                auto *made = task<Holder, Given, Body, void>::create(
                    options, static_cast<Make &&>(make), std::move(body));
                return static_cast<typename Holder::Answer>(
                    answering<typename Holder::Answer>(made, nullptr).take());
            }
        }
    }

    Body body;
    haft_fiber_options_t options = {};
};

/* handle(body).with(...): see above. handle(can, body): the body may also perform what `can` may.
 */
template <typename Body>
handling<Body, void> handle(Body body) {
    return {std::move(body)};
}
template <typename... Outer, typename Body>
handling<Body, may<Outer...>> handle(const may<Outer...> &, Body body) {
    return {std::move(body)};
}

/*
 * wrap(body).with(...): the resumption of a computation that is not started (§2.2). resume() starts
 * it. wrap<Argument>(body): one whose body takes an argument, the value that it is resumed with.
 */
template <typename Body, typename Argument>
class [[nodiscard]] wrapping {
  public:
    wrapping(Body computation) : body(std::move(computation)) {}
    wrapping &&on(const haft_fiber_options_t &chosen) && {
        options = chosen;
        return std::move(*this);
    }
    template <typename... H>
    HAFT_HPP_INLINE auto with(H &&...handlers) && {
        if constexpr (detail::kept<H...>::right)
            return std::move(*this).template run<typename detail::kept<H...>::type>(
                [&]() HAFT_HPP_INLINE_LAMBDA { return detail::kept<H...>::make(handlers...); });
        else
            detail::kept<H...>::explain();
    }
    template <typename H, typename... Arguments>
    HAFT_HPP_INLINE auto with_new(Arguments &&...arguments) && {
        return std::move(*this).template run<H>(
            [&]() HAFT_HPP_INLINE_LAMBDA { return H(static_cast<Arguments &&>(arguments)...); });
    }

  private:
    template <typename Given>
    static auto result() {
        if constexpr (std::is_void_v<Argument>)
            return std::type_identity<detail::body_result_of<Body, Given>>{};
        else
            return std::type_identity<std::invoke_result_t<Body &, Argument>>{};
    }
    template <bool Tell, typename H, typename Given>
    static constexpr bool check() {
        if constexpr (std::is_void_v<Argument>)
            return detail::check_computation<Tell, H, Body, Given>();
        else if constexpr (std::is_invocable_v<Body &, Argument>)
            return detail::check_handler<Tell, H, std::invoke_result_t<Body &, Argument>>(
                detail::list_of<H>{});
        else
            detail::explain<Tell, detail::the_body_does_not_take<Body, Argument>>();
        return false;
    }

    template <typename Stored, typename Make>
    HAFT_HPP_INLINE auto run(Make &&make) && {
        using namespace detail;
        using H = typename stored<Stored>::handler;
        using Given = typename given<void, list_of<H>>::type;
        if constexpr (!check<false, H, Given>()) {
            (void)check<true, H, Given>();
        } else {
            using Holder = holder<Stored, typename decltype(result<Given>())::type>;
            auto *made = task<Holder, Given, Body, Argument>::create(
                options, static_cast<Make &&>(make), std::move(body));
            made->drive = &driver::start<Holder>;
            room<Argument> *slot = nullptr;
            if constexpr (!in_word<Argument>)
                slot = &made->argument;
            return resumption<typename signature<typename Holder::Answer, Argument>::type>(
                made, &start_effect, slot);
        }
    }

    Body body;
    haft_fiber_options_t options = {};
};

template <typename Argument = void, typename Body>
wrapping<Body, Argument> wrap(Body body) {
    return {std::move(body)};
}

/* ---- Default handlers ----------------------------------------------------------------------- */

/*
 * Sets what happens, in the whole process, when nobody handles the effect: called in place, outside
 * all handlers, as a function of the performer's. nullptr takes the default away.
 */
template <is_effect Effect>
void set_default(result_of<Effect> (*function)(void *, Effect *)) {
    (void)haft_set_default(effect_traits<Effect>::id(),
                           (haft_function_t *)detail::passed<Effect>::to(function));
}

namespace detail {

/* A clause that is a default. One that is replaced stays: another thread may be in it. */
template <typename E, typename Clause>
struct default_clause {
    Clause clause;
    default_clause *older;
    static inline std::atomic<default_clause *> set = nullptr;

    static result_of<E> call(void *, E *payload) {
        return static_cast<result_of<E>>(
            set.load(std::memory_order_acquire)->clause(passed<E>::on(*payload)));
    }
};
template <typename E>
struct only_one_effect {
    using type = void;
};
template <typename E>
struct only_one_effect<effects<E>> {
    using type = E;
};

} // namespace detail

/* By a clause, which replies, and may be called by several threads at once: set_default([](Get) {
 * return 0; }). */
template <is_effect Effect, typename Clause>
requires std::is_invocable_r_v<result_of<Effect>, Clause &, Effect> void
set_default(Clause clause) {
    using kept = detail::default_clause<Effect, Clause>;
    auto *made = new kept{std::move(clause), kept::set.load(std::memory_order_relaxed)};
    while (!kept::set.compare_exchange_weak(made->older, made, std::memory_order_release))
        continue;
    set_default<Effect>(&kept::call);
}
template <typename Clause>
requires(!is_effect<Clause>) void set_default(Clause clause) {
    using Effect = typename detail::only_one_effect<
        typename detail::clause_entry<detail::clause_type<Clause>>::list>::type;
    if constexpr (!std::is_void_v<Effect>) /* otherwise a message has said what is wrong */
        set_default<Effect>(detail::as_clause(std::move(clause)));
}

} // namespace haft

#endif
