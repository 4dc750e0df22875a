/*
 * State as an effect, and transactions that roll it back.
 *
 *     struct Balance : haft::state<int> {};
 *     struct History : haft::state<std::vector<std::string>> {};
 *
 *     void pay(int amount) {
 *         haft::put<Balance>(haft::get<Balance>() - amount);
 *         haft::update<History>([&](auto &lines) { lines.push_back("paid"); });
 *     }
 *
 *     haft::cells<Balance, History> account(100, {});
 *     haft::handle([] { pay(30); }).with(account);
 *     account.get<Balance>();                                 // 70
 *
 * A state is named by a type: one that derives from haft::state<Value>, or any other, which is then
 * the type of the value, too: haft::get<int>(). There may be any number of states at once, and
 * several cells for one, of which the innermost counts. Reading and writing are effects, handled in
 * place: no fiber, no allocation, some nanoseconds.
 *
 * A transaction names the states that it takes back:
 *
 *     bool paid = haft::transaction<Balance, History>([] {
 *         pay(30);
 *         if (haft::get<Balance>() < 0)
 *             haft::roll_back();
 *     });
 *
 * It handles `write_state` between whoever writes and the cells: it lets the write pass, and copies
 * the value before the first. Left by roll_back(), by an exception, or because the computation is
 * dropped, it puts the copies back. Transactions nest: what an inner one commits, the outer one
 * still takes back, because the inner one's writes pass through it as well. States that it does not
 * name, and cells inside of it, are left alone. There is no isolation: fibers that write the same
 * cells by turns see each other's values, and a value that is put back replaces theirs.
 *
 * Cells that are gone, or that are not around when a transaction is dropped late (a resumption that
 * outlived them), are not restored: there is nobody to see it. Cells of another run of the same
 * program are told apart by their serial number.
 */
#ifndef HAFT_STATE_HPP
#define HAFT_STATE_HPP

#include "default.hpp"

#include <atomic>
#include <functional>
#include <optional>
#include <string>

namespace haft {

/* ---- States and cells ---- */

/* Names a state that holds a Value: struct Balance : haft::state<int> {}; */
template <typename Value>
struct state {
    using state_value = Value;
};

namespace detail {
template <typename S>
struct value_of_state {
    using type = S;
};
template <typename S>
requires requires {
    typename S::state_value;
}
struct value_of_state<S> {
    using type = typename S::state_value;
};
} // namespace detail

template <typename S>
using state_value = typename detail::value_of_state<S>::type;

/* Where a state's value is. `serial` is one for each cell that was ever made in the process. */
template <typename S>
class cell {
  public:
    explicit cell(state_value<S> initial) : value(std::move(initial)) {}
    cell(const cell &other) : value(other.value) {}
    cell(cell &&other) : value(std::move(other.value)) {}
    cell &operator=(const cell &) = delete;

    state_value<S> value;
    const std::uint64_t serial = next.fetch_add(1, std::memory_order_relaxed);

  private:
    static inline std::atomic<std::uint64_t> next = 1;
};

/* ---- The effects ---- */

/* Reads: the reference holds until the state is written. */
template <typename S>
struct read_state : effect<const state_value<S> &> {};
/* Is about to write: a handler between may note the value before, and passes the effect on. */
template <typename S>
struct write_state : effect<cell<S> &> {};
/* Puts `*value` back into the cell with this serial number, if that is around. */
template <typename S>
struct restore_state : effect<> {
    state_value<S> *value;
    std::uint64_t serial;
};
/* Asks the innermost transaction to roll back. Does not return. */
struct rolling_back : effect<> {};

/* ---- Using states ---- */

/* A copy of the value. */
template <typename S>
state_value<S> get() {
    return perform(read_state<S>{});
}

template <typename S>
void put(state_value<S> value) {
    perform(write_state<S>{}).value = std::move(value);
}

/* Puts `function(value)`, which is called with a copy: it may perform anything, and if it throws
 * the state is as it was. */
template <typename S, typename F>
void modify(F function) {
    put<S>(std::invoke(std::move(function), get<S>()));
}

/*
 * Lets `function(value)` change the value where it is, and returns what that returns. It must not
 * perform effects by which it is suspended for good, or resumed away from the cell, and must not
 * begin a transaction of this state. If it throws, the changes that it has made stay, unless a
 * transaction takes them back.
 */
template <typename S, typename F>
decltype(auto) update(F function) {
    return std::invoke(std::move(function), perform(write_state<S>{}).value);
}

/* Lets `function(value)` look at the value where it is: for values that are not to be copied. As
 * for update(), but a constant. */
template <typename S, typename F>
decltype(auto) inspect(F function) {
    return std::invoke(std::move(function), perform(read_state<S>{}));
}

/* ---- Handling states ---- */

namespace detail {

/* Where the cell is not around there is nothing to restore. */
template <typename S>
void nothing_to_restore(void *, restore_state<S> *) {}
template <typename S>
void restore_outside(restore_state<S> restored) {
    ensure_default<restore_state<S>, nothing_to_restore<S>>();
    perform(restored);
}

template <typename S>
struct keeping {
    cell<S> kept;

    const state_value<S> &operator()(read_state<S>) noexcept { return kept.value; }
    cell<S> &operator()(write_state<S>) noexcept { return kept; }
    void operator()(restore_state<S> restored) {
        if (restored.serial == kept.serial)
            kept.value = std::move(*restored.value);
        else
            restore_outside(restored);
    }
};

} // namespace detail

/*
 * A handler that keeps the values of these states; made from their initial values.
 *
 *     haft::handle(body).with_new<haft::cells<Balance>>(100)
 *     haft::cells<Balance, History> account(100, {}); haft::handle(body).with(account);
 *
 * Each of the states is held until the handler is gone, and can be read and changed by get() when
 * the computation is over. Used by one thread at a time.
 */
template <typename... S>
class cells : public handler<read_state<S>..., write_state<S>..., restore_state<S>...>,
              detail::keeping<S>... {
  public:
    /* Each state default-initialised. */
    cells() requires(std::is_default_constructible_v<state_value<S>> &&...)
        : detail::keeping<S>{cell<S>(state_value<S>())}... {}
    explicit cells(state_value<S>... initial) requires(sizeof...(S) > 0)
        : detail::keeping<S>{cell<S>(std::move(initial))}... {}

    using detail::keeping<S>::operator()...;

    template <typename T>
    state_value<T> &get() noexcept {
        return static_cast<detail::keeping<T> &>(*this).kept.value;
    }
};
template <typename... Values>
cells(Values...) -> cells<Values...>;

/* ---- Transactions ---- */

/*
 * Rolls the innermost transaction back: the computation is unwound up to it, and transaction()
 * returns an empty answer. Outside of a transaction: an error that names the effect, rolling_back.
 */
[[noreturn]] inline void roll_back() {
    perform(rolling_back{});
    throw std::logic_error("haft: roll_back() was resumed: a handler of rolling_back must not "
                           "return");
}

/* A transaction by name, which its body is given if it takes one: rolls back that very transaction
 * and all inside of it. Valid in that body. */
class rollback {
  public:
    [[noreturn]] void operator()() const {
        handler.perform(rolling_back{});
        throw std::logic_error("haft: a rollback was resumed");
    }

  private:
    template <typename... S, typename Body>
    friend auto transaction(Body body);
    explicit rollback(instance<rolling_back> of) : handler(of) {}
    instance<rolling_back> handler;
};

namespace detail {

/* A state as it was before the first write in a transaction. */
template <typename S>
struct saved {
    std::optional<state_value<S>> before;
    std::uint64_t serial = 0;

    cell<S> &operator()(write_state<S> write) {
        cell<S> &written = perform(write);
        if (!before) {
            before.emplace(written.value);
            serial = written.serial;
        } else if (serial != written.serial) {
            throw std::logic_error(std::string("haft: a transaction of the state ") +
                                   std::string(pretty_name<S>()) +
                                   " was resumed where that is kept in another cell. Handle the "
                                   "state and the transaction in the same computation.");
        }
        return written;
    }
    void restore() noexcept {
        if (before)
            restore_outside(restore_state<S>{.value = &*before, .serial = serial});
    }
};

struct rolled_back {};

template <typename... S>
struct transaction_handler : handler<write_state<S>...>, saved<S>... {
    using saved<S>::operator()...;

    bool committed = false;
    ~transaction_handler() {
        if (!committed)
            (saved<S>::restore(), ...);
    }
};

template <typename Result>
struct committed {
    static_assert(!std::is_reference_v<Result>,
                  "haft: the body of a transaction returns a value or nothing, not a reference.");
    using type = std::optional<Result>;
};
template <>
struct committed<void> {
    using type = bool;
};

} // namespace detail

/*
 * Runs `body()`, or `body(rollback)`, as a transaction of the states S.... Returns true if the body
 * came to its end, false if it was rolled back; with a body that returns a value, an std::optional
 * of that. An exception rolls back and goes on. The states must be copyable, and must not throw
 * when they are moved back (which ends the program, as in a destructor).
 */
template <typename... S, typename Body>
auto transaction(Body body) {
    static_assert(sizeof...(S) > 0, "haft: name the states that the transaction is to take back: "
                                    "haft::transaction<Balance, History>(body).");
    detail::transaction_handler<S...> states;
    auto run = [&](instance<rolling_back> own) {
        return handle([&]() -> decltype(auto) {
                   if constexpr (std::is_invocable_v<Body &, rollback>)
                       return body(rollback(own));
                   else
                       return body();
               })
            .with(states);
    };
    /* An exception of a clause in place unwinds the performer, and goes on here: leaving needs no
       fiber. */
    auto leave = [](rolling_back) { throw detail::rolled_back(); };
    using Result = decltype(run(std::declval<instance<rolling_back>>()));
    using Answer = typename detail::committed<Result>::type;
    try {
        if constexpr (std::is_void_v<Result>) {
            handle(run).with(leave);
            states.committed = true;
            return true;
        } else {
            Answer answer(handle(run).with(leave));
            states.committed = true;
            return answer;
        }
    } catch (const detail::rolled_back &) {
        return Answer();
    }
}

} // namespace haft

#endif
