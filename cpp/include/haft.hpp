// SPDX-License-Identifier: MIT
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
 * This file declares what a user needs, in sections, each with its manual: effects; performing;
 * handlers; resumptions; instances and effect safety; handling; default handlers. The namespace
 * haft::detail is not for users; its files, in haft/detail/, are included here after the
 * declarations that they need. Numbers of sections (§) refer to "High-level effect handlers in
 * C++".
 *
 * Threads: as in haft.h. A resumption may be moved to another thread and resumed there.
 */
#ifndef HAFT_HPP
#define HAFT_HPP

/* Including a file that does not exist ends the compilation; otherwise further errors would hide
   the first. */
#if __cplusplus <= 201703L
#    error "haft.hpp is C++20: compile with -std=c++20 or later"
#    include <haft.hpp is C++20>
#elif !defined(__cpp_exceptions)
#    error "haft.hpp needs exceptions: compile without -fno-exceptions"
#    include <haft.hpp needs exceptions>
#endif

#include <haft.h>
#include <haft/language.h>

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

/* For functions that are inlined for speed, and for those that pass handlers on. If the latter were
   called, gcc 12 (-fipa-modref) would wrongly assume that pointers do not escape from objects that
   a constructor copies through two references. */
#define HAFT_DETAIL_INLINE inline __attribute__((always_inline))
#define HAFT_DETAIL_INLINE_LAMBDA __attribute__((always_inline))

namespace haft {

/* ---- Effects (§2.1: commands) --------------------------------------------------------------- */

/*
 * An effect is a struct that derives from haft::effect<Result>; its fields are the payload. A
 * program writes one with designators, Put{.value = 1}, or lets perform<Put>(1) make it. A struct
 * with a member type `effect_result` is an effect, too. Result may be void, a reference, or any
 * type that can be moved.
 *
 * A type is the same effect in the whole process. Like the type of an exception, an effect that
 * crosses the border of a shared library compiled with -fvisibility=hidden must be marked:
 * struct HAFT_SHARED Get ...
 */
#define HAFT_SHARED __attribute__((visibility("default")))
template <typename Result = void>
struct effect {
    using effect_result = std::remove_cv_t<Result>;
};

/* Properties of an effect; specialised by HAFT_ADOPT for effects of C. */
template <typename Effect>
struct effect_traits;

template <typename Effect>
concept is_effect = requires {
    typename effect_traits<Effect>::result;
};

template <typename Effect>
using result_of = typename effect_traits<Effect>::result;

/* Makes an effect of C, declared by HAFT_EFFECT, an effect of C++, whose type is that of its
   payload. To be written at global scope. */
#define HAFT_ADOPT(name)                                                                           \
    template <>                                                                                    \
    struct haft::effect_traits<haft_payload_##name> {                                              \
        using result = haft_result_##name;                                                         \
        static constexpr bool native = false;                                                      \
        static constexpr unsigned slot = hafti_slot_##name();                                      \
        static constexpr haft_effect_t *id() { return HAFT_ID(name); }                             \
    }

/* The name by which messages call an effect. */
template <is_effect Effect>
const char *name_of() {
    return effect_traits<Effect>::id()->name;
}

} // namespace haft

#include "haft/detail/effects.hpp"
#include "haft/detail/performing.hpp"

/* ---- Performing ----------------------------------------------------------------------------- */

namespace haft {

/*
 * Performs an effect: finds its innermost handler, and returns the handler's reply. The first
 * search in a new handler looks at every handler that stands between; later searches take constant
 * time. perform<Put>(1) makes the effect from its fields. The clause may move from the payload.
 *
 * perform() may not return: if the handler drops the computation, destructors run, and catch (...)
 * blocks, which rethrow where they end. It may throw, if the handler discontinues. It may return on
 * another thread.
 */
template <typename Effect>
HAFT_DETAIL_INLINE auto perform(Effect effect) -> typename effect_traits<Effect>::result {
    hafti_here_t here = hafti_here();
    hafti_found_t found = detail::find<Effect>(here);
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

/* In the list of a handler, never<Effect> marks an effect whose clause never resumes. Among
   lambdas, never(function) makes a clause that never resumes. */
template <typename EffectOrClause>
struct never {};
/* In the list of a handler, raising<Effect> marks an effect whose clause has no resumption, and
   whose exceptions are the performer's: they leave the perform. Among lambdas, raising(function)
   makes such a clause. */
template <typename EffectOrClause>
struct raising {};

namespace detail {
struct handler_base {};
} // namespace detail

/*
 * A handler is a class that derives, publicly, from haft::handler<Effects...> and has an operator()
 * for each effect:
 *
 *     template <typename Answer, typename S>
 *     struct Stateful : haft::handler<Put<S>, Get<S>, haft::never<Stop>> {
 *         S state;
 *         void operator()(Put<S> p) ...
 *
 * Each operator() is a clause. Its type decides what it does with the computation that performs:
 *
 *     Result operator()(Effect)
 *         Tail-resumptive (§2.4: plain). Called in place, on the performer's stack, without a
 *         switch. It returns the result of the perform.
 *
 *     Answer operator()(Effect, resumption<Answer(Result)>)
 *         General. The computation is suspended; the clause resumes it, keeps it, or drops it. The
 *         clause returns the answer of handle(), or of the resume() that let the computation run. A
 *         clause that ends in a resume returns tail<Answer>.
 *
 *     Answer operator()(Effect), for never<Effect>
 *         The computation is unwound first, and destructors run, under this handler. The clause
 *         returns the answer.
 *
 * The class may also have
 *
 *     Answer on_return(Body)
 *         Makes the answer from what the body returns. Without it, the body returns the answer.
 *
 * A clause runs outside its own handler: what it performs goes to the handlers further out, and
 * what it throws leaves handle(), while the computation is unwound. A clause without a resumption
 * whose exceptions are for the performer is marked raising<Effect>; a general one has
 * resumption::discontinue.
 */
template <typename... Effects>
struct handler : detail::handler_base {
    using handled_effects = effects<Effects...>;
};

} // namespace haft

#include "haft/detail/clauses.hpp"

namespace haft {

/* The effects of several handlers, for `handled_effects` of a class that derives from all of
   them. */
template <typename... Handlers>
using effects_of = typename detail::joined<detail::list_of<Handlers>...>::type;

/* never(function): see above. */
template <typename Clause>
requires detail::is_clause<Clause>
struct never<Clause> : Clause {
    using Clause::operator();
    template <typename F>
    requires(!std::is_same_v<F, never>) explicit never(F unmarked)
        : Clause(detail::as_clause(std::move(unmarked))) {}
};
template <typename F>
never(F) -> never<detail::clause_type<F>>;

/* raising(function): see above. */
template <typename Clause>
requires detail::is_clause<Clause>
struct raising<Clause> : Clause {
    using Clause::operator();
    template <typename F>
    requires(!std::is_same_v<F, raising>) explicit raising(F unmarked)
        : Clause(detail::as_clause(std::move(unmarked))) {}
};
template <typename F>
raising(F) -> raising<detail::clause_type<F>>;

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

} // namespace haft

namespace haft {

namespace detail {
struct computation;
struct driver;
} // namespace detail

/*
 * Thrown by a resume() that has no answer to return: the computation was dropped, one of its
 * cleanups performed an effect whose clause got a resumption, and this resume() let the cleanup,
 * and the unwinding, go on to their end. (If Answer is void, resume() returns.)
 */
class HAFT_SHARED dropped : public std::exception {
  public:
    const char *what() const noexcept override {
        return "haft: the computation was dropped, so it has no answer";
    }

  private:
    explicit dropped(const detail::computation *task) : of(task) {}
    const detail::computation *of;
    friend struct detail::driver;
    friend struct detail::computation;
};

} // namespace haft

#include "haft/detail/checks.hpp"
#include "haft/detail/computations.hpp"

namespace haft {

/* ---- Resumptions (§2.1, §3.4) --------------------------------------------------------------- */

/*
 * The type that a clause returns if it may end by resuming: it returns either
 * std::move(k).tail_resume(value) or an answer. The handler resumes `k` after the clause is gone,
 * so that a loop of such clauses runs in constant space.
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
    HAFT_DETAIL_INLINE ~tail() {
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

} // namespace haft

#include "haft/detail/driver.hpp"
#include "haft/detail/resumptions.hpp"

namespace haft {

/*
 * Owns a computation that waits at a perform whose result is a Result, under a handler whose answer
 * is an Answer. One-shot and move-only: a second use is an error that names the effect. Dropping
 * the resumption unwinds the computation's stack, and destructors run. A resumption may outlive the
 * handle() that captured it; a handler that was given by value then lives as long as the
 * resumption. If such a handler keeps a resumption of its own computation, neither is ever
 * released.
 *
 * std::move(k).resume(value)         continues; returns the answer
 * std::move(k).tail_resume(value)    to be returned by a clause: continues after the clause
 * std::move(k).resume_with(h, value) continues under the handler `h` from here on, and returns its
 *                                    answer; `h` is one handler or one lambda, as handle().with
 *                                    takes it (several lambdas: clauses(...)). If the body returns
 *                                    another type than Answer, name it: resume_with<Body>
 * std::move(k).discontinue(e)        continues by throwing `e` at the perform, an exception of any
 *                                    type or an std::exception_ptr; returns the answer
 * std::move(k).drop()                unwinds the computation now, under its handler: what its
 *                                    destructors perform comes to the same clauses
 * static_cast<bool>(k)               whether there is something to resume
 * k.fiber()                          the computation's fiber, NULL once used: for its name,
 *                                    backtrace and state (haft.h)
 *
 * Assigning to a resumption drops the computation that it owned before; swap drops nothing.
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
    HAFT_DETAIL_INLINE detail::swapped_answer<Body, H> resume_with(H &&handler, Result value) && {
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
    HAFT_DETAIL_INLINE detail::swapped_answer<Body, H> resume_with(H &&handler) && {
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

} // namespace haft

/* ---- Instances and effect safety: in a file of their own ------------------------------------ */

#include "haft/instances.hpp"

#include "haft/detail/handling.hpp"

namespace haft {

/* ---- Handling -------------------------------------------------------------------------------- */

/* A body to be handled: made by handle(body), and used up by one of the forms of `with`. */
template <typename Body, typename Around, bool OwnStack = false>
class [[nodiscard]] handling {
  public:
    handling(Body computation) : body(std::move(computation)) {}
    handling(Body &&computation, const haft_fiber_options_t &chosen)
        : body(std::move(computation)), options(chosen) {}

    /* Chooses the stack: its size, memory and name, as in haft.h. The body then has a stack of its
       own even if all clauses are tail-resumptive. */
    handling<Body, Around, true> on(const haft_fiber_options_t &chosen) && {
        return {std::move(body), chosen};
    }

    /*
     * Runs the body under a handler, and returns the answer. The body is called on a fiber of its
     * own unless all clauses are tail-resumptive.
     *
     * with(parts...)   the handler is made of parts. A part is a clause (a lambda, a function, a
     *                  function object, std::ref of one, never(clause), raising(clause)),
     *                  on_return(function), or another handler
     * with(handler)    an lvalue is referred to, and must live as long as the computation; an
     *                  rvalue is moved in
     * with(pointer)    the handler is the one that a std::shared_ptr or std::unique_ptr owns
     */
    template <typename... H>
    HAFT_DETAIL_INLINE decltype(auto) with(H &&...handlers) && {
        if constexpr (detail::kept<H...>::right)
            return std::move(*this).template run<typename detail::kept<H...>::type>(
                [&]() HAFT_DETAIL_INLINE_LAMBDA { return detail::kept<H...>::make(handlers...); });
        else
            detail::kept<H...>::explain();
    }
    /* with_new<H>(arguments...): as `with`; the handler H(arguments...) is made in place, for this
       computation. */
    template <typename H, typename... Arguments>
    HAFT_DETAIL_INLINE decltype(auto) with_new(Arguments &&...arguments) && {
        return std::move(*this).template run<H>(
            [&]() HAFT_DETAIL_INLINE_LAMBDA { return H(static_cast<Arguments &&>(arguments)...); });
    }

  private:
    template <typename Stored, typename Make>
    HAFT_DETAIL_INLINE decltype(auto) run(Make &&make) && {
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

/* handle(body).with(...): see `handling`. In handle(can, body) the body may also perform what `can`
   may. */
template <typename Body>
handling<Body, void> handle(Body body) {
    return {std::move(body)};
}
template <typename... Outer, typename Body>
handling<Body, may<Outer...>> handle(const may<Outer...> &, Body body) {
    return {std::move(body)};
}

/*
 * wrap(body).with(...) makes the resumption of a computation that has not started (§2.2); resume()
 * starts it. In wrap<Argument>(body) the body takes an argument: the value that resume() is given.
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
    HAFT_DETAIL_INLINE auto with(H &&...handlers) && {
        if constexpr (detail::kept<H...>::right)
            return std::move(*this).template run<typename detail::kept<H...>::type>(
                [&]() HAFT_DETAIL_INLINE_LAMBDA { return detail::kept<H...>::make(handlers...); });
        else
            detail::kept<H...>::explain();
    }
    template <typename H, typename... Arguments>
    HAFT_DETAIL_INLINE auto with_new(Arguments &&...arguments) && {
        return std::move(*this).template run<H>(
            [&]() HAFT_DETAIL_INLINE_LAMBDA { return H(static_cast<Arguments &&>(arguments)...); });
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
    HAFT_DETAIL_INLINE auto run(Make &&make) && {
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
 * Sets the function that is called, in the whole process, when no handler handles the effect: in
 * place, on the performer's stack, outside all handlers. nullptr removes the default.
 */
template <is_effect Effect>
void set_default(result_of<Effect> (*function)(void *, Effect *)) {
    (void)haft_set_default(effect_traits<Effect>::id(), reinterpret_cast<haft_function_t *>(
                                                            detail::passed<Effect>::to(function)));
}

/* Sets a clause, whose result is the reply, and which several threads may call at once:
   set_default([](Get) { return 0; }). */
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
    if constexpr (!std::is_void_v<Effect>) /* otherwise a message above has named the mistake */
        set_default<Effect>(detail::as_clause(std::move(clause)));
}

} // namespace haft

#endif
