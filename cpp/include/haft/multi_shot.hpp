// SPDX-License-Identifier: MIT
/*
 * Computations of C++ that go on more than once: search, backtracking, probabilistic programs.
 *
 *     struct Choose : haft::effect<int> { int count; };
 *
 *     int sum = haft::handle_multi_shot(
 *         [] { return haft::perform<Choose>(2) * 2 + haft::perform<Choose>(2); },
 *         [](Choose choose, haft::multi_shot<int(int)> k) {
 *             int sum = 0;
 *             for (int i = 0; i < choose.count; i++)
 *                 sum += k.resume(i);
 *             return sum;
 *         }); // 0 + 1 + 2 + 3
 *
 * It is haft_resumption_copy of haft.h, with its rules: the frames of the computation are copied
 * byte by byte, so a frame that has a destructor to run, where the computation performs, is an
 * error (HAFT_ERROR_NOT_COPYABLE). Captures of the body are one object for all copies.
 *
 * Other handlers inside of the computation are copied with it, if they and the bodies that they
 * handle may be copied byte by byte: so each copy has state of its own in a handler that was given
 * by value, and one that was given by reference is the same for all. The frames of a handler with a
 * fiber are those of its driver, which libhaft knows from the computation (`resumer_of`), and that
 * of one without is known by the exceptions that it catches (`landed_in_copied`).
 */
#ifndef HAFT_MULTI_SHOT_HPP
#define HAFT_MULTI_SHOT_HPP

#include "../haft.hpp"

#include <cxxabi.h>

#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace haft {

namespace detail {

template <typename Answer, typename Body, typename... Clauses>
struct multi_shot_handling;

/* The state that a handler and its resumptions share. `place` gets the answer of what runs. */
template <typename Answer>
struct multi_shot_state {
    std::optional<Answer> *place = nullptr;

    /* Runs something that answers in `place`. */
    template <typename Run>
    Answer answer_of(Run &&run) {
        struct putting_back {
            multi_shot_state *state;
            std::optional<Answer> *before;
            ~putting_back() { state->place = before; }
        };
        std::optional<Answer> answer;
        putting_back place_before{this, std::exchange(place, &answer)};
        run();
        return std::move(answer).value();
    }
};

/* Keeps a drive a function of its own (driver.hpp): the compiler does not see which it is. */
template <typename Drive, typename Holder>
HAFT_DETAIL_INLINE Drive *as_called(Drive *drive, driven_by<Holder>) {
    __asm__("" : "+r"(drive));
    return drive;
}

/* The function that waits in its resume of the fiber, if that is a computation of haft.hpp and may
   be copied. */
inline haft_function_t *resumer_of(const haft_fiber_t *fiber) {
    const char *at = static_cast<const char *>(fiber->argument);
    auto *task = static_cast<const computation *>(fiber->argument);
    bool is_task = at >= fiber->low && at < fiber->high && task->fiber == fiber &&
                   task->held != nullptr && task->held == fiber->scope.state;
    bool copied =
        is_task && task->type->copied && task->swapped == nullptr && task->leave == nullptr;
    return copied ? reinterpret_cast<haft_function_t *>(task->drive) : nullptr;
}
/* The type by which frames are known, also where the program is compiled without typeid. */
inline const void *caught_in_copied() {
    try {
        throw landed_in_copied();
    } catch (...) {
        return abi::__cxa_current_exception_type();
    }
}
inline void know_copied_frames() {
    static const haft_copied_frames_t of = {&resumer_of, caught_in_copied()};
    haft_know_copied_frames(&of);
}

template <typename Answer, typename Result>
class multi_shot_base {
    static_assert(std::is_void_v<Result> || std::is_reference_v<Result> ||
                      std::is_trivially_copyable_v<Result>,
                  "haft: the result of an effect with a multi-shot clause can be copied byte by "
                  "byte.");

  public:
    multi_shot_base(const multi_shot_base &other)
        : shared(other.shared), k(haft_resumption_copy(other.k)), slot(other.slot) {}
    multi_shot_base(multi_shot_base &&other) noexcept
        : shared(std::move(other.shared)), k(std::exchange(other.k, {nullptr, 0})),
          slot(other.slot) {}
    multi_shot_base &operator=(multi_shot_base other) noexcept {
        std::swap(shared, other.shared);
        std::swap(k, other.k);
        std::swap(slot, other.slot);
        return *this;
    }
    ~multi_shot_base() {
        if (haft_resumption_effect(k) != nullptr)
            haft_resumption_drop(k);
    }

    /* Whether it has not been moved from, nor resumed by the last of its resumes. */
    explicit operator bool() const noexcept { return haft_resumption_effect(k) != nullptr; }

    /* Goes on by throwing at the perform: an exception of any type, or an std::exception_ptr. */
    template <typename Exception>
    Answer discontinue(Exception exception) const & {
        return again([&](haft_resumption_t with) { raise(with, exception); });
    }
    template <typename Exception>
    Answer discontinue(Exception exception) && {
        return last([&](haft_resumption_t with) { raise(with, exception); });
    }
    void drop() && { haft_resumption_drop(std::exchange(k, {nullptr, 0})); }

  protected:
    multi_shot_base(std::shared_ptr<multi_shot_state<Answer>> of, haft_resumption_t captured,
                    room<Result> *result)
        : shared(std::move(of)), k(captured), slot(result) {}

    /* Goes on by calling `go_on` with a copy, or with the last one. */
    template <typename Go>
    Answer again(Go &&go_on) const {
        auto state = shared; /* a clause may let go of this object */
        haft_resumption_t copy = haft_resumption_copy(k);
        return state->answer_of([&] { go_on(copy); });
    }
    template <typename Go>
    Answer last(Go &&go_on) {
        auto state = shared;
        haft_resumption_t with = std::exchange(k, {nullptr, 0});
        return state->answer_of([&] { go_on(with); });
    }

    /* A result that no word holds is made in the performer's frame, which stands when the copy has
       been resumed. (A perform of an effect of C reads it where the reply points to.) */
    struct made_there {
        room<Result> *slot;
        std::add_pointer_t<Result> value;
        uintptr_t awaits;
        static haft_reply_t make(void *argument) {
            made_there of = *static_cast<made_there *>(argument);
            of.slot->fill([&]() -> Result { return *of.value; });
            return {of.awaits, of.slot->address()};
        }
    };
    void reply(haft_resumption_t with) const {
        (void)haft_resumption_resume(with, {awaited(with), nullptr});
    }
    template <typename Value>
    void reply(haft_resumption_t with, Value &value) const {
        if constexpr (in_word<Result>) {
            void *word = to_word<Result>(static_cast<Value &&>(value));
            (void)haft_resumption_resume(with, {awaited(with), word});
        } else if (slot == nullptr) {
            (void)haft_resumption_resume(with, {awaited(with), std::addressof(value)});
        } else {
            made_there made{slot, std::addressof(value), awaited(with)};
            (void)haft_resumption_discontinue(with, &made_there::make, &made);
        }
    }

  private:
    static uintptr_t awaited(haft_resumption_t with) {
        haft_effect_t *effect = haft_resumption_effect(with);
        return effect == nullptr ? 0 : HAFTI_AWAITING(effect, result_size<Result>);
    }
    template <typename Exception>
    static void raise(haft_resumption_t with, Exception &exception) {
        raised<Exception> raising{exception};
        (void)haft_resumption_discontinue(
            with,
            [](void *argument) -> haft_reply_t {
                return {0, raised<Exception>::raise(argument)};
            },
            &raising);
    }

    std::shared_ptr<multi_shot_state<Answer>> shared;
    haft_resumption_t k;
    room<Result> *slot;
};

} // namespace detail

/*
 * A computation that waits at a perform whose result is a Result, under a handler whose answer is
 * an Answer. To be copied and moved; what is destroyed is dropped.
 *
 * k.resume(value)             goes on in a copy, any number of times; returns the answer
 * std::move(k).resume(value)  goes on for the last time, without a copy
 * k.discontinue(e)            as resume, both ways, by throwing `e` at the perform
 * std::move(k).drop()         unwinds it now
 */
template <typename Signature>
class multi_shot;
template <typename Answer, typename Result>
class [[nodiscard]] multi_shot<Answer(Result)> : public detail::multi_shot_base<Answer, Result> {
    using base = detail::multi_shot_base<Answer, Result>;

  public:
    Answer resume(Result value) const & {
        return this->again([&](haft_resumption_t with) { this->reply(with, value); });
    }
    Answer resume(Result value) && {
        return this->last([&](haft_resumption_t with) { this->reply(with, value); });
    }

  private:
    multi_shot(std::shared_ptr<detail::multi_shot_state<Answer>> of, haft_resumption_t captured,
               detail::room<Result> *result)
        : base(std::move(of), captured, result) {}
    template <typename, typename, typename...>
    friend struct detail::multi_shot_handling;
};
template <typename Answer>
class [[nodiscard]] multi_shot<Answer()> : public detail::multi_shot_base<Answer, void> {
    using base = detail::multi_shot_base<Answer, void>;

  public:
    Answer resume() const & {
        return this->again([&](haft_resumption_t with) { this->reply(with); });
    }
    Answer resume() && {
        return this->last([&](haft_resumption_t with) { this->reply(with); });
    }

  private:
    multi_shot(std::shared_ptr<detail::multi_shot_state<Answer>> of, haft_resumption_t captured,
               detail::room<void> *result)
        : base(std::move(of), captured, result) {}
    template <typename, typename, typename...>
    friend struct detail::multi_shot_handling;
};

namespace detail {

/* The effect and the resumption that a clause takes: a function, or an object with a call
   operator. */
template <typename Parameters>
struct multi_shot_parameters;
template <typename E, typename K>
struct multi_shot_parameters<effects<E, K>> {
    using effect = std::remove_cvref_t<E>;
    using resumption = std::remove_cvref_t<K>;
};
template <typename Clause>
struct multi_shot_clause
    : multi_shot_parameters<typename signature_of<decltype(&Clause::operator())>::parameters> {};
template <typename Clause>
requires std::is_pointer_v<Clause>
struct multi_shot_clause<Clause>
    : multi_shot_parameters<typename signature_of<Clause>::parameters> {
};

template <typename Answer, typename Body, typename... Clauses>
struct multi_shot_handling : multi_shot_state<Answer> {
    template <std::size_t I>
    using clause_at = std::tuple_element_t<I, std::tuple<Clauses...>>;

    explicit multi_shot_handling(Body of, Clauses... with)
        : body(std::move(of)), clauses(std::move(with)...) {}

    Body body;
    std::tuple<Clauses...> clauses;
    std::weak_ptr<multi_shot_state<Answer>> self;

    /* Nothing in this frame has a destructor while the body runs. */
    static void *run(void *argument) {
        auto *handling = static_cast<multi_shot_handling *>(argument);
        Answer answer = handling->body();
        handling->place->emplace(std::move(answer));
        return nullptr;
    }

    template <std::size_t I>
    static haft_answer_t call(void *state, void *payload, haft_resumption_t k) {
        using Clause = multi_shot_clause<clause_at<I>>;
        using E = typename Clause::effect;
        static_assert(is_effect<E>, "haft: a multi-shot clause takes an effect and a multi_shot.");
        static_assert(std::is_trivially_copyable_v<E>,
                      "haft: the fields of an effect with a multi-shot clause are copied byte by "
                      "byte.");
        static_assert(
            std::is_same_v<typename Clause::resumption,
                           multi_shot<typename signature<Answer, result_of<E>>::type>>,
            "haft: the clause does not take the multi_shot<Answer(Result)> of its effect.");
        auto *handling = static_cast<multi_shot_handling *>(state);
        E effect = *performed<E>(payload); /* which ends with the first resume */
        room<result_of<E>> *slot = nullptr;
        if constexpr (is_call<E>)
            slot = &static_cast<detail::call<E> *>(payload)->result;
        std::optional<Answer> *place = handling->place;
        Answer answer = std::get<I>(handling->clauses)(
            effect, typename Clause::resumption(handling->self.lock(), k, slot));
        place->emplace(std::move(answer));
        return haft_answer(nullptr);
    }

    template <typename Indices>
    struct table;
    template <std::size_t... I>
    struct table<std::index_sequence<I...>> {
        template <std::size_t At>
        using effect_at = typename multi_shot_clause<clause_at<At>>::effect;
        static inline const haft_clause_t clauses[] = {
            {effect_traits<effect_at<I>>::id(), reinterpret_cast<haft_function_t *>(&call<I>),
             HAFT_CLAUSE_GENERAL, shape_of<effect_at<I>>}...};
        static inline const haft_handler_t handler = {
            {sizeof...(I), 0, HAFTI_SET_FIXED, clauses}, nullptr, "handle_multi_shot"};
    };
};

} // namespace detail

/*
 * Runs `body()` under a handler whose clauses may go on with the computation more than once;
 * returns the answer, of the type that the body returns. Each clause is a lambda, or a function, of
 * an effect and a multi_shot<Answer(Result)>, and returns an answer. Clauses and body live until the
 * last resumption is gone.
 */
template <typename Body, typename... Clauses>
auto handle_multi_shot(Body body, Clauses... clauses) {
    using Answer = std::invoke_result_t<Body &>;
    static_assert(
        !std::is_void_v<Answer>,
        "haft: a computation that goes on more than once has an answer each time: its body "
        "returns nothing.");
    if constexpr (!std::is_void_v<Answer>) {
        using Handling = detail::multi_shot_handling<Answer, Body, Clauses...>;
        using Table = typename Handling::template table<std::index_sequence_for<Clauses...>>;
        detail::know_copied_frames();
        auto handling = std::make_shared<Handling>(std::move(body), std::move(clauses)...);
        handling->self = handling;
        return handling->answer_of([&] {
            (void)haft_handle(&Table::handler, handling.get(), &Handling::run, handling.get());
        });
    }
}

} // namespace haft

#endif
