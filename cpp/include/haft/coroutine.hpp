// SPDX-License-Identifier: MIT
/*
 * haft::coroutine<Out, In, Answer>: a computation that is resumed with an In, runs until it yields
 * an Out, and so on, until it returns an Answer.
 *
 *     haft::coroutine<double, int> average([](haft::exchanger<double, int> yield, int value) {
 *         double sum = 0;
 *         for (int count = 1;; count++) {
 *             sum += value;
 *             value = yield(sum / count);
 *         }
 *     });
 *     std::cout << *average.resume(10) << *average.resume(20);
 *
 * The body is any callable that takes an exchanger and the first In (only an exchanger, if In is
 * void). Nothing of it runs before the first resume. It has a stack of its own and may yield from
 * however deep in its calls, by the exchanger, which belongs to its coroutine, or by
 * haft::exchange, which finds the innermost coroutine of these types; then it need not take an
 * exchanger. Coroutines are asymmetric: a yield goes back to the resumer. Effects and exceptions of
 * the body go there, too; an exception ends the coroutine. A coroutine that is destroyed early
 * unwinds its body.
 *
 * An Out is not copied: it is the object that was yielded, in the body's frame, until the next
 * resume. An In is moved to where it is received. Both, and the Answer, may be move-only,
 * references, or void.
 *
 *   | free ... | frames of the body | exchanging: answer, body | haft_fiber_t |
 *
 * Threads: as for fibers (haft.h): one thread at a time may use a coroutine, and any thread may
 * resume it.
 */
#ifndef HAFT_COROUTINE_HPP
#define HAFT_COROUTINE_HPP

#include "../haft.hpp"

#include <string>

namespace haft {

/* The effect of yielding an Out for an In, which is handled by coroutine<Out, In, Answer>. */
template <typename Out, typename In = void>
struct exchanged : effect<In> {
    std::remove_reference_t<Out> *value;
};

namespace detail {

template <typename Out, typename In, typename Answer>
struct exchanging {
    using yielding = exchanged<Out, In>;
    enum class phase { fresh, suspended, running, finished };

    haft_fiber_t *fiber;
    void (*destroy)(exchanging *) noexcept;
    phase now = phase::fresh;
    bool answered = false;
    yielding *at = nullptr; /* where the body waits */
    /* where the body waits, if an In does not fit a word */
    call<yielding> *waiting = nullptr;
    std::remove_reference_t<In> *first = nullptr; /* what the body is called with */
    room<Answer> answer{};

    static inline const haft_clause_t clause = {effect_traits<yielding>::id(), nullptr,
                                                HAFT_CLAUSE_REQUEST, shape_of<yielding>};
    static inline const haft_handles_t handles = {1, 0, HAFTI_SET_FIXED, &clause};

    struct running {
        exchanging *self;
        phase after = phase::finished;
        explicit running(exchanging *of) : self(of) { self->now = phase::running; }
        ~running() { self->now = after; }
    };

    /* The word to resume with; a value that does not fit is made in the body's frame. */
    template <typename Value>
    HAFT_DETAIL_INLINE void *reply(Value &value) {
        if (now == phase::fresh) {
            first = std::addressof(value);
            return nullptr;
        } else if constexpr (std::is_reference_v<In>) {
            return to_word<Value &>(value);
        } else if constexpr (in_word<In>) {
            return to_word<In>(std::move(value));
        } else {
            waiting->result.fill([&]() -> In { return std::move(value); });
            return nullptr;
        }
    }
    HAFT_DETAIL_INLINE bool arrive(running &guard, haft_request_t request) {
        if (__builtin_expect(haft_finished(request), false))
            return false;
        at = performed<yielding>(request.payload);
        if constexpr (is_call<yielding>)
            waiting = static_cast<call<yielding> *>(request.payload);
        guard.after = phase::suspended;
        return true;
    }
    HAFT_DETAIL_INLINE bool resume(void *word) {
        running guard(this);
        return arrive(guard, hafti_resume_hot(fiber, word, &handles));
    }
    bool raise(raise_t function, void *argument) {
        bool fresh = now == phase::fresh;
        running guard(this);
        if (fresh)
            function(argument);
        return arrive(guard, haft_resume_calling(fiber, function, argument, &handles));
    }
};

template <typename Body, typename Out, typename In, typename Answer>
struct exchanging_by;

template <typename Out, typename In>
class exchanger_to {
  protected:
    explicit exchanger_to(haft_fiber_t *of) : fiber(of) {}
    HAFT_DETAIL_INLINE In exchange(std::remove_reference_t<Out> *value) const {
        using yielding = exchanged<Out, In>;
        using traits = effect_traits<yielding>;
        if constexpr (in_word<In>) {
            yielding here{{}, value};
            return from_word<In>(
                hafti_yield_hot(fiber, traits::id(), traits::slot, &here, sizeof(void *)));
        } else {
            yielding payload{{}, value};
            call<yielding> here{&payload, {}};
            hafti_yield_hot(fiber, traits::id(), traits::slot, &here, sizeof(void *));
            return here.result.take();
        }
    }

  private:
    haft_fiber_t *fiber;
};

} // namespace detail

/* Yields to one coroutine an Out, and returns the In that this is resumed with. To be copied
   freely; used by the coroutine's body only, as long as it runs. */
template <typename Out, typename In = void>
class exchanger : detail::exchanger_to<Out, In> {
    using element = std::remove_reference_t<Out>;

  public:
    HAFT_DETAIL_INLINE In operator()(element &value) const {
        return this->exchange(std::addressof(value));
    }
    HAFT_DETAIL_INLINE In operator()(element &&value) const
        requires(!std::is_lvalue_reference_v<Out> || std::is_const_v<element>) {
        return this->exchange(std::addressof(value));
    }
    HAFT_DETAIL_INLINE In operator()(const element &value) const
        requires(!std::is_reference_v<Out> && !std::is_const_v<element>) {
        element copy(value);
        return this->exchange(std::addressof(copy));
    }

  private:
    using detail::exchanger_to<Out, In>::exchanger_to;
    template <typename, typename, typename, typename>
    friend struct detail::exchanging_by;
};
template <typename In>
class exchanger<void, In> : detail::exchanger_to<void, In> {
  public:
    HAFT_DETAIL_INLINE In operator()() const { return this->exchange(nullptr); }

  private:
    using detail::exchanger_to<void, In>::exchanger_to;
    template <typename, typename, typename, typename>
    friend struct detail::exchanging_by;
};

/* Yields to the innermost coroutine<Out, In>, Out being the type of the value. */
template <typename In = void, typename Value>
In exchange(Value &&value) {
    using element = std::remove_cvref_t<Value>;
    if constexpr (std::is_const_v<std::remove_reference_t<Value>>) {
        element copy(value);
        return perform(exchanged<element, In>{{}, std::addressof(copy)});
    } else {
        return perform(exchanged<element, In>{{}, std::addressof(value)});
    }
}

namespace detail {

template <typename Body, typename Out, typename In, typename Answer>
struct exchanging_by : exchanging<Out, In, Answer> {
    HAFT_DETAIL_INLINE exchanging_by(haft_fiber_t *of, Body &&function)
        : exchanging<Out, In, Answer>{of,
                                      [](exchanging<Out, In, Answer> *made) noexcept {
                                          static_cast<exchanging_by *>(made)->~exchanging_by();
                                      }},
          body(std::move(function)) {}

    static exchanging_by *create(const haft_fiber_options_t &options, Body &&function) {
        haft_fiber_t *fiber = haft_fiber_new_with(&options, &exchanging_by::run, nullptr);
        if (fiber == nullptr)
            throw std::bad_alloc();
        HAFT_SCOPED haft_fiber_t *owned = fiber;
        auto *made =
            ::new (detail::reserve<exchanging_by>(fiber)) exchanging_by(fiber, std::move(function));
        owned = nullptr;
        fiber->argument = made;
        return made;
    }

  private:
    /* The fiber's function. */
    static void *run(void *argument) {
        exchanging_by *self = static_cast<exchanging_by *>(argument);
        self->answer.fill([&]() -> Answer {
            if constexpr (std::is_void_v<In>) {
                return self->call();
            } else {
                /* The body may refer to it after the first resume has returned. */
                In first = static_cast<In &&>(*self->first);
                return self->call(static_cast<In &&>(first));
            }
        });
        self->answered = true;
        return nullptr;
    }
    template <typename... First>
    Answer call(First &&...value) {
        using yielder = exchanger<Out, In>;
        if constexpr (std::is_invocable_v<Body &, yielder, First...>)
            return static_cast<Answer>(body(yielder(this->fiber), static_cast<First &&>(value)...));
        else
            return static_cast<Answer>(body(static_cast<First &&>(value)...));
    }

    Body body;
};

} // namespace detail

template <typename Out = void, typename In = void, typename Answer = void>
class [[nodiscard]] coroutine {
    using exchanging = detail::exchanging<Out, In, Answer>;
    using phase = typename exchanging::phase;
    using yielder = exchanger<Out, In>;
    template <typename Body, typename... First>
    static constexpr bool callable =
        std::disjunction_v<std::is_invocable_r<Answer, Body &, yielder, First...>,
                           std::is_invocable_r<Answer, Body &, First...>>;
    template <typename Body>
    static consteval bool is_body() {
        if constexpr (std::is_void_v<In>)
            return callable<Body>;
        else
            return callable<Body, In>;
    }

  public:
    /* The result of resume(): a pointer to the Out, NULL at the end. If Out is void: false at the
       end. */
    using yielded_value =
        std::conditional_t<std::is_void_v<Out>, bool, std::remove_reference_t<Out> *>;

    /* An empty coroutine: finished, without an answer. */
    coroutine() = default;

    /* `options` choose the stack, as in haft.h. Throws std::bad_alloc if there is no memory for
       it. */
    template <typename Body>
    requires(is_body<Body>()) explicit coroutine(Body body,
                                                 const haft_fiber_options_t &options = {}) {
        self = detail::exchanging_by<Body, Out, In, Answer>::create(options, std::move(body));
    }

    coroutine(coroutine &&other) noexcept : self(std::exchange(other.self, nullptr)) {}
    coroutine &operator=(coroutine &&other) {
        coroutine before(std::exchange(self, std::exchange(other.self, nullptr)));
        return *this;
    }
    ~coroutine() {
        if (self == nullptr)
            return;
        haft_fiber_t *fiber = self->fiber;
        if (self->now != phase::finished)
            haft_fiber_reset(fiber, detail::run_nothing, nullptr);
        self->destroy(self);
        haft_fiber_drop(fiber);
    }

    /*
     * Runs the body until it yields or returns. An exception of the body is thrown here. Throws
     * std::logic_error if the coroutine has finished, was moved from, or is running.
     */
    template <typename Value = In>
    requires(!std::is_void_v<In> &&
             std::is_convertible_v<Value, In>) HAFT_DETAIL_INLINE yielded_value
        resume(Value &&value) {
        check("resumed");
        In given = static_cast<Value &&>(value);
        return yielded(self->resume(self->reply(given)));
    }
    HAFT_DETAIL_INLINE yielded_value resume() requires std::is_void_v<In> {
        check("resumed");
        return yielded(self->resume(nullptr));
    }

    /* Resumes the body by throwing at the yield: an exception of any type, or an
       std::exception_ptr. A coroutine that has not started becomes finished. */
    template <typename Exception>
    yielded_value discontinue(Exception exception) {
        check("discontinued");
        detail::raised<Exception> raise{exception};
        return yielded(self->raise(&detail::raised<Exception>::raise, &raise));
    }

    /* Whether the body has returned, or thrown. */
    bool finished() const noexcept { return self == nullptr || self->now == phase::finished; }

    /* Takes the result of the body, once. Throws std::logic_error if there is none. */
    Answer answer() {
        if (self == nullptr || !self->answered)
            throw std::logic_error("haft: the coroutine has no answer: it has not returned, or the "
                                   "answer was taken before");
        self->answered = false;
        return self->answer.take();
    }

  private:
    HAFT_DETAIL_INLINE void check(const char *what) const {
        if (__builtin_expect(finished() || self->now == phase::running, false))
            misused(what);
    }
    [[noreturn]] void misused(const char *what) const {
        throw std::logic_error(std::string("haft: the coroutine cannot be ") + what + ": " +
                               (self == nullptr ? "there is none, it was moved from or never made"
                                : finished()    ? "it has finished; ask finished() first"
                                                : "it is running already"));
    }
    HAFT_DETAIL_INLINE yielded_value yielded(bool suspended) {
        if constexpr (std::is_void_v<Out>)
            return suspended;
        else
            return suspended ? self->at->value : nullptr;
    }

    explicit coroutine(exchanging *state) : self(state) {}
    exchanging *self = nullptr;
};

} // namespace haft

#endif
