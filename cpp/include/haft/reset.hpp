/*
 * shift0 and reset: delimited control, one-shot, with typed answers.
 *
 *     int answer = haft::reset([] {
 *         return 1 + haft::shift0([](haft::continuation<int(int)> k) { return 10 * k(4); });
 *     });                                                                   // 10 * (1 + 4)
 *
 * reset(body) delimits: it answers what the body returns. shift0(f) takes the rest of the body, up
 * to and with the innermost reset, as the continuation `k`, and answers f(k) in place of the reset.
 * k(x) is the rest of the body with x as the result of shift0, under its reset again, and returns
 * that answer; k may be called later, elsewhere, or not at all, but at most once: a second call is
 * an error that names `shifted`. Dropping k unwinds what it holds. A shift0 performed by f goes to
 * the next reset further out; shift() puts a reset around f.
 *
 * In terms of effects, shift0 performs `shifted` with f, and reset is the deep handler whose
 * general clause calls f with the resumption: a clause runs outside of its handler, as f does, and
 * a resumption puts the handler back, as k does. The function is moved out of the captured frames
 * before it is called; what it refers to inside the reset is gone when k has run to its end, or was
 * dropped. (A k that is kept in the frames that it holds is a cycle: nobody drops it.)
 *
 * Types: shift0's function takes a haft::continuation<Answer(Result)>: Answer is the answer of the
 * reset, Result what shift0 returns. A shift0 for another answer than that of the innermost reset
 * is an std::logic_error, thrown by shift0, that names both. A body that takes a
 * haft::prompt<Answer> can shift up to its own reset, past others, and there the compiler checks
 * the answer.
 *
 * Each reset has a fiber of its own. Threads: k may be moved to another thread and called there.
 */
#ifndef HAFT_RESET_HPP
#define HAFT_RESET_HPP

#include "default.hpp"

#include <string>

namespace haft {

template <typename Signature>
class continuation;
template <typename Answer>
class prompt;

namespace detail {

/* A type, as the answer of a reset: known by the address of its name. */
template <typename Answer>
struct answer_type {
    __attribute__((visibility("default"))) static const char *const name;
};
template <typename Answer>
const char *const answer_type<Answer>::name = name_text_of<Answer>.text;

/* A call of shift0. Lies in the frames that it captures. */
struct shifting {
    const char *const *answer;
    haft_function_t *call;                /* shift_call_t<Answer> */
    const char *const *refused = nullptr; /* the answer of a reset that did not fit */
};
template <typename Answer>
using shift_call_t = tail<Answer>(shifting *, resumption<Answer()>);

template <typename... Result>
struct only {
    using type = void;
};
template <typename Result>
struct only<Result> {
    using type = Result;
};

} // namespace detail

/* The effect of shift0, which reset handles. */
struct shifted : effect<> {
    detail::shifting *call;
};

/*
 * The rest of the body of a reset whose answer is an Answer, from a shift0 that returns a Result:
 * continuation<int(std::string)>, continuation<int()>. Move-only; it owns what it continues, and
 * unwinds that when it is destroyed unused.
 *
 * k(value)          continues, and returns the answer; once
 * k.tail(value)     continues after the function of shift0, which returns this as a
 *                   haft::tail<Answer>: loops run in constant space
 * k.discontinue(e)  continues by throwing e at the shift0
 * k.drop()          unwinds now
 */
template <typename Answer, typename... Result>
class [[nodiscard]] continuation<Answer(Result...)> {
    static_assert(sizeof...(Result) <= 1, "haft: a continuation is a continuation<Answer(Result)> "
                                          "or, of a shift0 that returns nothing, <Answer()>.");

  public:
    using answer = Answer;
    using result = typename detail::only<Result...>::type;

    continuation() noexcept = default;

    Answer operator()(Result... value) {
        fill(static_cast<Result &&>(value)...);
        return std::move(captured).resume();
    }
    haft::tail<Answer> tail(Result... value) {
        fill(static_cast<Result &&>(value)...);
        return std::move(captured).tail_resume();
    }
    template <typename Exception>
    Answer discontinue(Exception exception) {
        return std::move(captured).discontinue(std::move(exception));
    }
    void drop() { std::move(captured).drop(); }

    /* Whether it can still be called. */
    explicit operator bool() const noexcept { return static_cast<bool>(captured); }

  private:
    template <typename Target, typename Signature, typename F>
    friend auto shift_to(const Target &target, F function) ->
        typename continuation<Signature>::result;

    continuation(resumption<Answer()> &&rest, detail::room<result> *place) noexcept
        : captured(std::move(rest)), slot(place) {}

    /* The slot is in the captured frames: there only as long as they wait. */
    template <typename... Value>
    void fill(Value &&...value) {
        if constexpr (sizeof...(Value) != 0)
            if (captured)
                slot->fill([&]() -> result { return (static_cast<Value &&>(value), ...); });
    }

    resumption<Answer()> captured;
    detail::room<result> *slot = nullptr;
};

/* Not to be called: what shift0 and shift, of the innermost reset or a prompt, are made of. */
template <typename Target, typename Signature, typename F>
auto shift_to(const Target &target, F function) -> typename continuation<Signature>::result {
    using Continuation = continuation<Signature>;
    using Answer = typename Continuation::answer;
    static_assert(std::is_invocable_v<F &, Continuation>,
                  "haft: the function of shift0 takes a haft::continuation<Answer(Result)>.");
    struct call : detail::shifting {
        F function;
        detail::room<typename Continuation::result> result;

        HAFT_HPP_INLINE explicit call(F &&given)
            : shifting{&detail::answer_type<Answer>::name, (haft_function_t *)&call::run, nullptr},
              function(std::move(given)) {}
        static haft::tail<Answer> run(shifting *self, resumption<Answer()> rest) {
            call *here = static_cast<call *>(self);
            F kept(std::move(here->function)); /* the frame of `here` may end before it does */
            Continuation k(std::move(rest), &here->result);
            if constexpr (std::is_void_v<std::invoke_result_t<F &, Continuation>>) {
                kept(std::move(k));
                return haft::tail<Answer>();
            } else {
                return kept(std::move(k));
            }
        }
    } here(std::move(function));
    target(shifted{.call = &here});
    if (__builtin_expect(here.refused != nullptr, false))
        throw std::logic_error(
            "haft: shift0 was called for a reset whose answer is " + std::string(*here.answer) +
            ", but the answer of the innermost one is " + std::string(*here.refused) +
            ". Let the function take a continuation with that answer, or shift to "
            "the prompt of the reset that is meant.");
    return here.result.take();
}

namespace detail {

template <typename F>
using shift_parameter = typename first_parameter<
    typename signature_of<decltype(&clause_type<F>::operator())>::parameters>::type;
template <typename K>
struct shift_signature;
template <typename Signature>
struct shift_signature<continuation<Signature>> {
    using type = Signature;
};
template <typename F>
struct the_function_of_shift0_must_name_the_type_of_its_continuation {
    static_assert(
        requires { typename shift_signature<shift_parameter<F>>::type; },
        "haft: shift0 takes a function whose parameter is a haft::continuation<Answer(Result)>; "
        "where "
        "that is 'auto', say shift0<Answer(Result)>(function).");
};
template <typename F>
consteval auto find_signature() {
    (void)sizeof(the_function_of_shift0_must_name_the_type_of_its_continuation<F>);
    return std::type_identity<typename shift_signature<shift_parameter<F>>::type>();
}
struct deduced {};
template <typename Given, typename F>
struct find_signature_for {
    using type = Given;
};
template <typename F>
struct find_signature_for<deduced, F> : decltype(find_signature<F>()) {};
template <typename Given, typename F>
using signature_for = typename find_signature_for<Given, F>::type;

[[noreturn]] inline void outside_of_any_reset(void *, shifted *) {
    throw std::logic_error("haft: shift0 was called outside of any reset. Call haft::reset(body) "
                           "around it.");
}
struct innermost_reset {
    void operator()(shifted what) const {
        ensure_default<shifted, outside_of_any_reset>();
        perform(what);
    }
};

} // namespace detail

/*
 * Captures the rest of the body of the innermost reset, and lets the reset answer what `function`
 * makes of it; returns what the continuation is called with. The types are those of the function's
 * parameter, or are given: shift0<Answer(Result)>(function).
 *
 * Errors, thrown as std::logic_error: no reset around, or one with another answer.
 */
template <typename Signature = detail::deduced, typename F>
auto shift0(F function) -> typename continuation<detail::signature_for<Signature, F>>::result {
    return shift_to<detail::innermost_reset, detail::signature_for<Signature, F>>(
        {}, std::move(function));
}

/* A reset by name, which its body is given if it takes one: shift0 goes to that very reset,
 * whatever resets lie between. To be copied freely; valid in that body. */
template <typename Answer>
class prompt {
  public:
    using answer = Answer;

    template <typename Signature = detail::deduced, typename F>
    auto shift0(F function) const ->
        typename continuation<detail::signature_for<Signature, F>>::result {
        using K = continuation<detail::signature_for<Signature, F>>;
        static_assert(std::is_same_v<typename K::answer, Answer>,
                      "haft: the answer of the continuation must be that of the prompt.");
        return shift_to<target, detail::signature_for<Signature, F>>(target{handler},
                                                                     std::move(function));
    }

  private:
    struct target {
        instance<shifted> handler;
        void operator()(shifted what) const { handler.perform(what); }
    };
    template <typename Explicit, typename Body>
    friend decltype(auto) reset(Body body);
    explicit prompt(instance<shifted> of) : handler(of) {}
    instance<shifted> handler;
};

namespace detail {

template <typename Explicit, typename Body>
struct answer_of_reset {
    using type = Explicit;
};
template <typename Body>
struct answer_of_reset<deduced, Body> {
    using type = typename shift_parameter<Body>::answer; /* that of its prompt */
};
template <typename Body>
requires std::is_invocable_v<Body &>
struct answer_of_reset<deduced, Body> {
    using type = std::invoke_result_t<Body &>;
};

} // namespace detail

/* Runs `body()`, or `body(prompt<Answer>)`, up to where a shift0 captures it, and returns the
 * answer. Its type is what the body returns, or is given: reset<Answer>(body). */
template <typename Explicit = detail::deduced, typename Body>
decltype(auto) reset(Body body) {
    using Answer = typename detail::answer_of_reset<Explicit, Body>::type;
    return handle([body = std::move(body)](instance<shifted> own) mutable -> Answer {
               if constexpr (std::is_invocable_v<Body &>)
                   return body();
               else
                   return body(prompt<Answer>(own));
           })
        .with([](shifted captured, resumption<Answer()> k) -> tail<Answer> {
            if (captured.call->answer != &detail::answer_type<Answer>::name) {
                captured.call->refused = &detail::answer_type<Answer>::name;
                return std::move(k).tail_resume();
            }
            auto call = reinterpret_cast<detail::shift_call_t<Answer> *>(captured.call->call);
            return call(captured.call, std::move(k));
        });
}

/* As shift0, but `function` runs under a reset of its own: what it shifts does not reach further.
 */
template <typename Signature = detail::deduced, typename F>
auto shift(F function) -> typename continuation<detail::signature_for<Signature, F>>::result {
    using Continuation = continuation<detail::signature_for<Signature, F>>;
    using Answer = typename Continuation::answer;
    return shift0([function = std::move(function)](Continuation k) mutable -> Answer {
        return reset<Answer>([&]() -> Answer { return function(std::move(k)); });
    });
}

} // namespace haft

#endif
