// SPDX-License-Identifier: MIT
/*
 * haft::generator<T>: an input range over what a producer yields, from however deep in its calls.
 *
 *     haft::generator<int> squares([](haft::yielder<int> yield) {
 *         for (int i = 1;; i++)
 *             yield(i * i);
 *     });
 *     for (int square : squares | std::views::take(5)) ...
 *
 * A generator is a view that can be moved and not copied: a pipeline refers to one that has a name,
 * as here, and owns one that is moved into it.
 *
 * The producer runs on a fiber of its own, which lies suspended between the elements. It is any
 * callable that takes a yielder, or nothing: then it calls haft::yield(value), which finds the
 * innermost generator of values of that type. A yielder belongs to its generator, so that producers
 * can be nested, and yield to the generator outside. Effects that a producer performs go to the
 * handlers around the code that asks for the next element; so do its exceptions, which end the
 * sequence. A generator that is destroyed early unwinds its producer.
 *
 * The values are not copied: an element is the object that was yielded, in the producer's frame,
 * and is there until the next is asked for. generator<T &> and generator<const T &> hand out
 * references as they were yielded; generator<T> hands out T &, and a copy is made only of a
 * constant that is yielded.
 *
 *   | free ... | frames of the producer | producing<T>: body, place of the element | haft_fiber_t |
 */
#ifndef HAFT_GENERATOR_HPP
#define HAFT_GENERATOR_HPP

#include "detail/default.hpp"

#include <iterator>
#include <ranges>
#include <stdexcept>
#include <string>

namespace haft {

/* The effect of yielding a T, which is handled by generator<T>; that of an object, also by
   generators of references to such. */
template <typename T>
struct yielded : effect<> {
    std::remove_reference_t<T> *value;
};

namespace detail {

template <typename T>
struct producing {
    haft_fiber_t *fiber;
    std::remove_reference_t<T> *element = nullptr; /* NULL: not started, or finished */
    bool finished = false;
    void (*destroy)(producing *) noexcept;

    template <typename Yielded>
    static constexpr haft_clause_t clause_of = {effect_traits<Yielded>::id(), nullptr,
                                                HAFT_CLAUSE_REQUEST, shape_of<Yielded>};
    static inline const haft_clause_t clauses[] = {clause_of<yielded<T>>,
                                                   clause_of<yielded<std::remove_cvref_t<T>>>};
    static inline haft_handles_t handles = {std::is_same_v<T, std::remove_cvref_t<T>> ? 1 : 2, 0,
                                            HAFTI_SET_UNNUMBERED, clauses};

    /* An exception of the producer, or an unwinding that passes through it, is its end. */
    struct left {
        producing *self;
        HAFT_DETAIL_INLINE ~left() {
            if (self != nullptr)
                self->finished = true;
        }
    };

    /* Always inlined, as are its callers: the return of a call around a switch is mispredicted if
       the other side has returned in between. */
    HAFT_DETAIL_INLINE void advance() {
        element = nullptr;
        left guard{this};
        haft_request_t request = hafti_resume_hot(fiber, nullptr, &handles);
        guard.self = nullptr;
        if (__builtin_expect(haft_finished(request), false))
            finished = true;
        else
            element = *static_cast<std::remove_reference_t<T> *const *>(request.payload);
    }
};

} // namespace detail

/* Yields to one generator. To be copied freely; used by its producer only. */
template <typename T>
class yielder {
    using element = std::remove_reference_t<T>;

  public:
    HAFT_DETAIL_INLINE void operator()(element &value) const { yield(std::addressof(value)); }
    HAFT_DETAIL_INLINE void operator()(element &&value) const
        requires(!std::is_lvalue_reference_v<T> || std::is_const_v<element>) {
        yield(std::addressof(value));
    }
    HAFT_DETAIL_INLINE void operator()(const element &value) const
        requires(!std::is_reference_v<T> && !std::is_const_v<element>) {
        element copy(value);
        yield(std::addressof(copy));
    }

  private:
    explicit yielder(haft_fiber_t *of) : fiber(of) {}
    HAFT_DETAIL_INLINE void yield(element *value) const {
        yielded<T> payload{{}, value};
        hafti_yield_hot(fiber, effect_traits<yielded<T>>::id(), effect_traits<yielded<T>>::slot,
                        &payload, 0);
    }
    haft_fiber_t *fiber;
    template <typename>
    friend class generator;
};

namespace detail {
template <typename T>
void no_generator(void *, yielded<T> *) {
    throw std::logic_error("haft: yield() of a value of type " + std::string(pretty_name<T>()) +
                           " was called outside of a haft::generator of that type.");
}
} // namespace detail

/* Yields to the innermost generator<T>, generator<T &> or generator<const T &>, T being the type of
   the value. Outside of such: std::logic_error. */
template <typename T>
void yield(T &&value) {
    using element = std::remove_cvref_t<T>;
    detail::ensure_default<yielded<element>, detail::no_generator<element>>();
    if constexpr (std::is_const_v<std::remove_reference_t<T>>) {
        element copy(value);
        perform(yielded<element>{{}, std::addressof(copy)});
    } else {
        perform(yielded<element>{{}, std::addressof(value)});
    }
}

template <typename T>
class generator : public std::ranges::view_base {
    using producing = detail::producing<T>;

  public:
    using value_type = std::remove_cvref_t<T>;
    using reference = std::conditional_t<std::is_reference_v<T>, T, T &>;

    class iterator {
      public:
        using value_type = generator::value_type;
        using difference_type = std::ptrdiff_t;

        iterator() = default;
        reference operator*() const { return static_cast<reference>(*producer->element); }
        HAFT_DETAIL_INLINE iterator &operator++() {
            producer->advance();
            return *this;
        }
        HAFT_DETAIL_INLINE void operator++(int) { producer->advance(); }
        friend bool operator==(const iterator &at, std::default_sentinel_t) {
            return at.producer == nullptr || at.producer->element == nullptr;
        }

      private:
        explicit iterator(producing *of) : producer(of) {}
        producing *producer = nullptr;
        friend class generator;
    };

    /* An empty sequence. */
    generator() = default;

    /* Nothing of the producer runs before the first element is asked for. */
    template <typename Producer>
    requires(std::is_invocable_v<Producer &, yielder<T>> ||
             std::is_invocable_v<Producer &>) explicit generator(Producer producer) {
        struct state : producing {
            HAFT_DETAIL_INLINE state(haft_fiber_t *of, Producer &&function)
                : producing{of, nullptr, false,
                            [](producing *made) noexcept { static_cast<state *>(made)->~state(); }},
                  body(std::move(function)) {}
            static void *run(void *argument) {
                state *self = static_cast<state *>(argument);
                if constexpr (std::is_invocable_v<Producer &, yielder<T>>)
                    self->body(yielder<T>(self->fiber));
                else
                    self->body();
                return nullptr;
            }
            Producer body;
        };
        haft_fiber_options_t options = {};
        haft_fiber_t *fiber = haft_fiber_new_with(&options, &state::run, nullptr);
        if (fiber == nullptr)
            throw std::bad_alloc();
        detail::unfinished_fiber owned{fiber};
        state *made = ::new (detail::reserve<state>(fiber)) state(fiber, std::move(producer));
        owned.fiber = nullptr;
        fiber->argument = made;
        self = made;
    }

    generator(generator &&other) noexcept : self(std::exchange(other.self, nullptr)) {}
    generator &operator=(generator &&other) {
        generator before(std::exchange(self, std::exchange(other.self, nullptr)));
        return *this;
    }
    ~generator() {
        if (self == nullptr)
            return;
        haft_fiber_t *fiber = self->fiber;
        if (!self->finished)
            haft_fiber_reset(fiber, detail::run_nothing, nullptr);
        self->destroy(self);
        haft_fiber_drop(fiber);
    }

    /* Runs the producer up to its first element, if it has not run yet. */
    iterator begin() {
        if (self == nullptr)
            self = generator([](yielder<T>) {}).release();
        if (self->element == nullptr && !self->finished)
            self->advance();
        return iterator(self);
    }
    std::default_sentinel_t end() const noexcept { return {}; }

    /* The next element, or NULL after the last. */
    HAFT_DETAIL_INLINE std::remove_reference_t<T> *next() {
        if (self == nullptr || self->finished)
            return nullptr;
        self->advance();
        return self->element;
    }

  private:
    explicit generator(producing *state) : self(state) {}
    producing *release() { return std::exchange(self, nullptr); }
    producing *self = nullptr;
};

/* A view that has a name is piped by copying it, which a generator forbids. */
template <typename T, typename Adaptor>
requires std::is_invocable_v<Adaptor, std::ranges::ref_view<generator<T>>>
auto operator|(generator<T> &range, Adaptor &&adaptor) {
    return static_cast<Adaptor &&>(adaptor)(std::ranges::ref_view<generator<T>>(range));
}

} // namespace haft

#endif
