// SPDX-License-Identifier: MIT
/*
 * Haft I/O for C++20: channels, and select() over channels, events, descriptors and signals. Part
 * of haft/io.hpp, which includes it.
 *
 * The channel of C copies bytes. A value that cannot be copied so travels in a box, which belongs
 * to the sender until the send has succeeded, then to the channel, then to the receiver.
 *
 * A case of select() is an object with two functions: choice() describes it to C, and done() is
 * called with the result if it was chosen. on_ready (io_descriptors.hpp) and on_signal
 * (io_processes.hpp) stand beside what they wait for.
 */
#ifndef HAFT_IO_CHANNELS_HPP
#define HAFT_IO_CHANNELS_HPP

#include "io_sync.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

namespace haft::io {

/*
 * Carries values, in order, between tasks and threads. A send waits while `capacity` values are
 * inside; with capacity 0, until a receiver takes the value. After close() nothing can be sent;
 * what is inside can still be received. It is also the range of what is received, until it is
 * closed:
 *     for (std::string name : names) ...
 * Destroy it when no task waits for it; values inside are destroyed, too.
 */
template <typename T>
class channel {
    /* The channel of C copies bytes. Values that cannot be copied so travel in boxes. */
    static constexpr bool boxed =
        !(std::is_trivially_copyable_v<T> && std::is_trivially_default_constructible_v<T>);
    using slot = std::conditional_t<boxed, T *, T>;

  public:
    explicit channel(std::size_t capacity = 0)
        : handle(haft_io_channel_new(sizeof(slot), capacity)) {
        if (handle == nullptr)
            throw std::bad_alloc();
    }
    channel(const channel &) = delete;
    channel &operator=(const channel &) = delete;
    ~channel() {
        slot inside{};
        if constexpr (boxed)
            while (haft_io_channel_try_receive(handle, &inside) == 0)
                delete inside;
        haft_io_channel_free(handle);
    }

    /* False: the channel has been closed. A value that was not sent stays the caller's, also after
       a deadline or a cancel, if T is assignable. */
    bool send(T &&value) { return send_until(forever, std::move(value)); }
    bool send(const T &value) { return send_until(forever, value); }
    template <typename Clock, typename Duration>
    bool send_until(std::chrono::time_point<Clock, Duration> time, T &&value) {
        parcel sent(value);
        return sent.was(haft_io_channel_send_until(handle, sent.at(), detail::deadline_of(time)),
                        value);
    }
    template <typename Clock, typename Duration>
    bool send_until(std::chrono::time_point<Clock, Duration> time, const T &value) {
        return send_until(time, T(value));
    }
    template <typename Rep, typename Period>
    bool send_for(std::chrono::duration<Rep, Period> time, T &&value) {
        return send_until(from_now(time), std::move(value));
    }
    template <typename Rep, typename Period>
    bool send_for(std::chrono::duration<Rep, Period> time, const T &value) {
        return send_until(from_now(time), value);
    }
    /* Sends without waiting. False: the channel is full, has no waiting receiver, or is closed; the
       value stays the caller's. */
    bool try_send(T &value) {
        parcel sent(value);
        int code = haft_io_channel_try_send(handle, sent.at());
        return sent.was(code == -EAGAIN ? -EPIPE : code, value);
    }
    bool try_send(T &&value) { return try_send(value); }

    /* std::nullopt: the channel has been closed and is empty. */
    std::optional<T> receive() { return receive_until(forever); }
    template <typename Clock, typename Duration>
    std::optional<T> receive_until(std::chrono::time_point<Clock, Duration> time) {
        slot got{};
        return opened(got, haft_io_channel_receive_until(handle, std::addressof(got),
                                                         detail::deadline_of(time)));
    }
    template <typename Rep, typename Period>
    std::optional<T> receive_for(std::chrono::duration<Rep, Period> time) {
        return receive_until(from_now(time));
    }
    /* Receives without waiting; std::nullopt also if there is no value now. */
    std::optional<T> try_receive() {
        slot got{};
        int code = haft_io_channel_try_receive(handle, std::addressof(got));
        return code == -EAGAIN ? std::nullopt : opened(got, code);
    }
    void close() { haft_io_channel_close(handle); }

    /* Receives only when it is asked whether there is a value. */
    class iterator {
      public:
        using iterator_concept = std::input_iterator_tag;
        using value_type = T;
        using difference_type = std::ptrdiff_t;
        explicit iterator(channel &from) : of(&from) {}
        T &&operator*() const {
            look();
            return std::move(*value);
        }
        iterator &operator++() {
            look();
            value.reset();
            return *this;
        }
        void operator++(int) { ++*this; }
        bool operator==(std::default_sentinel_t) const {
            look();
            return !value.has_value();
        }

      private:
        void look() const {
            if (!value.has_value())
                if (std::optional<T> got = of->receive())
                    value.emplace(std::move(*got));
        }
        channel *of;
        mutable std::optional<T> value;
    };
    iterator begin() { return iterator(*this); }
    std::default_sentinel_t end() const { return {}; }

    /* For select(): a value to send, or space for a received one. */
    class parcel {
      public:
        explicit parcel(T &value) : inside(packed(value)) {}
        parcel(parcel &&other) noexcept : inside(std::move(other.inside)) {
            if constexpr (boxed)
                other.inside = nullptr;
        }
        ~parcel() {
            if constexpr (boxed)
                delete inside;
        }
        const void *at() const { return std::addressof(inside); }
        bool was(int code) {
            if (code == -EPIPE)
                return false;
            detail::checked(code, "send");
            if constexpr (boxed)
                inside = nullptr;
            return true;
        }
        /* A value that was not sent is moved back. */
        bool was(int code, T &value) {
            if constexpr (boxed && std::is_move_assignable_v<T>)
                if (code != 0)
                    value = std::move(*inside);
            return was(code);
        }

      private:
        static slot packed(T &value) {
            if constexpr (boxed)
                return new T(std::move(value));
            else
                return std::move(value);
        }
        slot inside;
    };

  private:
    template <typename U, typename F>
    friend struct on_receive;
    template <typename U, typename F>
    friend struct on_send;

    static std::optional<T> opened(slot &got, int code) {
        if (code == -EPIPE)
            return std::nullopt;
        detail::checked(code, "receive");
        if constexpr (boxed) {
            std::unique_ptr<T> box(got);
            return std::move(*box);
        } else {
            return std::move(got);
        }
    }
    haft_io_channel_t *handle;
};

/* A case of select(): receive, and call the function with the value, or with std::nullopt if the
   channel has been closed and is empty. A pointer to a channel may be nullptr: such a case is never
   chosen, so a loop sets the pointer of a closed channel to nullptr. */
template <typename T, typename F>
struct on_receive {
    on_receive(channel<T> *from, F call)
        : of(from != nullptr ? from->handle : nullptr), function(std::move(call)) {}
    on_receive(channel<T> &from, F call) : on_receive(std::addressof(from), std::move(call)) {}
    haft_io_select_case_t choice() {
        haft_io_select_case_t made = {};
        made.channel = of;
        made.receive = std::addressof(got);
        return made;
    }
    void done(int code) { function(channel<T>::opened(got, code)); }

  private:
    haft_io_channel_t *of;
    F function;
    typename channel<T>::slot got{};
};
/* A case of select(): send the value, and call the function with true; with false if the channel
   has been closed. */
template <typename T, typename F>
struct on_send {
    on_send(channel<T> *to, std::type_identity_t<T> value, F call)
        : of(to != nullptr ? to->handle : nullptr), sent(value), function(std::move(call)) {}
    on_send(channel<T> &to, std::type_identity_t<T> value, F call)
        : on_send(std::addressof(to), std::move(value), std::move(call)) {}
    haft_io_select_case_t choice() {
        haft_io_select_case_t made = {};
        made.channel = of;
        made.send = sent.at();
        return made;
    }
    void done(int code) { function(sent.was(code)); }

  private:
    haft_io_channel_t *of;
    typename channel<T>::parcel sent;
    F function;
};

/* A case of select(): call the function when the event is set. */
template <typename F>
struct on_event {
    on_event(event &awaited, F call) : of(&awaited), function(std::move(call)) {}
    haft_io_select_case_t choice() {
        haft_io_select_case_t made = {};
        made.event = of->native_handle();
        return made;
    }
    void done(int) { function(); }

  private:
    event *of;
    F function;
};

/*
 * Waits until one of the cases can be done, does it, and returns its index; if several can, no case
 * is passed over again and again. With a time: returns std::nullopt if that passes first. Cases are
 * on_receive, on_send, on_event, on_ready, on_signal.
 *     io::select(io::on_receive(numbers, [](std::optional<int> number) { ... }),
 *                io::on_send(words, "a word", [](bool sent) { ... }));
 */
template <typename Clock, typename Duration, typename... Cases>
std::optional<std::size_t> select_until(std::chrono::time_point<Clock, Duration> time,
                                        Cases &&...cases) {
    std::array<haft_io_select_case_t, sizeof...(Cases)> choices = {cases.choice()...};
    std::int64_t deadline = detail::deadline_of(time);
    int chosen = haft_io_select_until(choices.data(), choices.size(), deadline);
    if (chosen == -ETIMEDOUT && deadline != HAFT_IO_FOREVER)
        return std::nullopt;
    detail::checked(chosen, "select");
    std::size_t index = static_cast<std::size_t>(chosen), at = 0;
    ((at++ == index ? cases.done(choices[index].code) : void()), ...);
    return index;
}
template <typename Rep, typename Period, typename... Cases>
std::optional<std::size_t> select_for(std::chrono::duration<Rep, Period> time, Cases &&...cases) {
    return io::select_until(from_now(time), std::forward<Cases>(cases)...);
}
template <typename... Cases>
std::size_t select(Cases &&...cases) {
    return *io::select_until(forever, std::forward<Cases>(cases)...);
}

} // namespace haft::io

#endif
