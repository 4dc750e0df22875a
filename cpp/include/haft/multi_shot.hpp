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
 * error (HAFT_ERROR_NOT_COPYABLE). Captures of the body are one object for all copies. Other
 * handlers of haft.hpp inside of the computation have destructors in their frames; those of haft.h
 * do not.
 */
#ifndef HAFT_MULTI_SHOT_HPP
#define HAFT_MULTI_SHOT_HPP

#include "../haft.hpp"

#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace haft {

namespace detail {

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

template <typename Answer, typename Result>
class multi_shot_base {
    static_assert(in_word<Result>,
                  "haft: the result of an effect with a multi-shot clause has at most "
                  "the size of a pointer, and can be copied byte by byte.");

  public:
    multi_shot_base(const multi_shot_base &other)
        : shared(other.shared), k(haft_resumption_copy(other.k)) {}
    multi_shot_base(multi_shot_base &&other) noexcept
        : shared(std::move(other.shared)), k(std::exchange(other.k, {nullptr, 0})) {}
    multi_shot_base &operator=(multi_shot_base other) noexcept {
        std::swap(shared, other.shared);
        std::swap(k, other.k);
        return *this;
    }
    ~multi_shot_base() {
        if (haft_resumption_effect(k) != nullptr)
            haft_resumption_drop(k);
    }

    /* Whether it has not been moved from, nor resumed by the last of its resumes. */
    explicit operator bool() const noexcept { return haft_resumption_effect(k) != nullptr; }

  protected:
    multi_shot_base(std::shared_ptr<multi_shot_state<Answer>> of, haft_resumption_t captured)
        : shared(std::move(of)), k(captured) {}

    static Answer go_on(multi_shot_state<Answer> &state, haft_resumption_t with, void *word) {
        haft_effect_t *effect = haft_resumption_effect(with);
        haft_reply_t reply{effect == nullptr ? 0 : HAFTI_AWAITING(effect, result_size<Result>),
                           word};
        return state.answer_of([&] { (void)haft_resumption_resume(with, reply); });
    }
    Answer go_on_again(void *word) const { return go_on(*shared, haft_resumption_copy(k), word); }
    Answer go_on_last(void *word) {
        auto state = shared;
        return go_on(*state, std::exchange(k, {nullptr, 0}), word);
    }

  private:
    std::shared_ptr<multi_shot_state<Answer>> shared;
    haft_resumption_t k;
};

} // namespace detail

/*
 * A computation that waits at a perform whose result is a Result, under a handler whose answer is
 * an Answer. To be copied and moved; what is destroyed is dropped.
 *
 * k.resume(value)             goes on in a copy, any number of times; returns the answer
 * std::move(k).resume(value)  goes on for the last time, without a copy
 */
template <typename Signature>
class multi_shot;
template <typename Answer, typename Result>
class [[nodiscard]] multi_shot<Answer(Result)> : public detail::multi_shot_base<Answer, Result> {
    using base = detail::multi_shot_base<Answer, Result>;

  public:
    Answer resume(Result value) const & {
        return this->go_on_again(detail::to_word<Result>(static_cast<Result &&>(value)));
    }
    Answer resume(Result value) && {
        return this->go_on_last(detail::to_word<Result>(static_cast<Result &&>(value)));
    }
    multi_shot(std::shared_ptr<detail::multi_shot_state<Answer>> of, haft_resumption_t captured)
        : base(std::move(of), captured) {}
};
template <typename Answer>
class [[nodiscard]] multi_shot<Answer()> : public detail::multi_shot_base<Answer, void> {
    using base = detail::multi_shot_base<Answer, void>;

  public:
    Answer resume() const & { return this->go_on_again(nullptr); }
    Answer resume() && { return this->go_on_last(nullptr); }
    multi_shot(std::shared_ptr<detail::multi_shot_state<Answer>> of, haft_resumption_t captured)
        : base(std::move(of), captured) {}
};

namespace detail {

/* The effect and the resumption that a clause takes. */
template <typename Clause>
struct multi_shot_clause : multi_shot_clause<decltype(&Clause::operator())> {};
template <typename C, typename R, typename E, typename K>
struct multi_shot_clause<R (C::*)(E, K) const> {
    using effect = std::remove_cvref_t<E>;
    using resumption = std::remove_cvref_t<K>;
};
template <typename C, typename R, typename E, typename K>
struct multi_shot_clause<R (C::*)(E, K)> : multi_shot_clause<R (C::*)(E, K) const> {};

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
        E effect = *static_cast<E *>(payload); /* which ends with the first resume */
        std::optional<Answer> *place = handling->place;
        Answer answer = std::get<I>(handling->clauses)(
            effect, typename Clause::resumption(handling->self.lock(), k));
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
 * returns the answer, of the type that the body returns. Each clause is a lambda that takes an
 * effect and a multi_shot<Answer(Result)>, and returns an answer. Clauses and body live until the
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
        auto handling = std::make_shared<Handling>(std::move(body), std::move(clauses)...);
        handling->self = handling;
        return handling->answer_of([&] {
            (void)haft_handle(&Table::handler, handling.get(), &Handling::run, handling.get());
        });
    }
}

} // namespace haft

#endif
