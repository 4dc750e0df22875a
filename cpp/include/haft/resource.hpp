// SPDX-License-Identifier: MIT
/*
 * Scoped resources: a resource that is acquired in a scope, however deep in its calls, is released
 * when the scope is left, in reverse order ("High-level effect handlers in C", §2.3).
 *
 *     haft::scoped([] {
 *         std::FILE *in = haft::acquire(std::fopen("in", "r"), std::fclose);
 *         auto &words = haft::keep<std::vector<std::string>>();
 *         haft::defer([] { std::puts("done"); });
 *         ...
 *     });
 *
 * Acquiring performs the effect `deferred`, and the handler, which scoped() installs, keeps the
 * release. So a function may acquire for its caller's scope, which no destructor can do, and the
 * handler decides how long a resource is kept. A scope has no fiber; each resource that is kept
 * takes one allocation.
 *
 * A scope releases what it keeps when its body returns, when an exception passes through it, and
 * when the computation that it belongs to is dropped: whichever happens, each release runs once. A
 * release runs outside of its scope, in the context of the call of scoped(): what it performs goes
 * to the handlers further out, and what it acquires or defers belongs to the scope further out.
 *
 * Releases that throw: if the body has returned, the exception goes to the caller of scoped() when
 * all other releases have run. While an exception is already on its way, or the computation is
 * dropped, a release is called as a destructor is: it may perform effects, and be suspended, but an
 * exception that leaves it, or dropping it before it is done, ends the program (std::terminate).
 *
 * If a release cannot be kept (no memory, or no scope around: std::logic_error), the resource is
 * released at once, and the exception goes to the caller of acquire().
 */
#ifndef HAFT_RESOURCE_HPP
#define HAFT_RESOURCE_HPP

#include "detail/default.hpp"

#include <memory>
#include <stdexcept>
#include <utility>

namespace haft {

namespace detail {

/* An entry of a scope. Released by run(), or otherwise when it is destroyed. */
struct kept_thing {
    std::unique_ptr<kept_thing> older;
    virtual ~kept_thing() = default;
    virtual void run() = 0;
};

template <typename F>
struct release_by final : kept_thing {
    F function;
    bool done = false;
    HAFT_DETAIL_INLINE explicit release_by(F &&action) : function(std::move(action)) {}
    ~release_by() override {
        if (!done)
            function();
    }
    void run() override {
        done = true;
        function();
    }
};

template <typename T>
struct release_of final : kept_thing {
    T value;
    template <typename... Arguments>
    explicit release_of(Arguments &&...arguments)
        : value(static_cast<Arguments &&>(arguments)...) {}
    void run() override {}
};

/* A resource that bracket() has acquired. Its room is allocated before it is acquired. */
template <typename T, typename Release>
struct bracketed final : kept_thing {
    T thing;
    Release &release;
    bool done = false;
    template <typename Acquire>
    bracketed(Acquire &acquire, Release &by) : thing(acquire()), release(by) {}
    ~bracketed() override {
        if (!done)
            release(thing);
    }
    void run() override {
        done = true;
        release(thing);
    }
};

template <typename F>
HAFT_DETAIL_INLINE std::unique_ptr<kept_thing> make_release(F function) {
    try {
        return std::unique_ptr<kept_thing>(new release_by<F>(std::move(function)));
    } catch (...) {
        function(); /* what was allocated first failed: the function is where it was */
        throw;
    }
}

} // namespace detail

/* The effect of keeping a release until the innermost scope ends. The handler takes it over; one
   that is not taken over is released with the payload. */
struct deferred : effect<> {
    std::unique_ptr<detail::kept_thing> what;
};

/* The handler of a scope: keeps what is deferred. Used by scoped(), or with handle().with to keep
   things for longer than the body runs. Belongs to one thread at a time. */
class resources : public handler<deferred> {
  public:
    resources() = default;
    resources(resources &&) = default;
    resources &operator=(resources &&other) {
        resources before(std::move(*this));
        last = std::move(other.last);
        return *this;
    }
    /* Releases what is still kept; an exception ends the program. */
    ~resources() {
        while (last != nullptr)
            (void)take();
    }

    void operator()(deferred deferred) noexcept {
        if (deferred.what == nullptr)
            return;
        deferred.what->older = std::move(last);
        last = std::move(deferred.what);
    }

    /* Releases all, the latest first. An exception leaves the others kept. */
    void release() {
        while (last != nullptr)
            take()->run();
    }

    bool empty() const noexcept { return last == nullptr; }

  private:
    std::unique_ptr<detail::kept_thing> take() noexcept {
        std::unique_ptr<detail::kept_thing> taken = std::move(last);
        last = std::move(taken->older);
        return taken;
    }
    std::unique_ptr<detail::kept_thing> last;
};

namespace detail {

/* How things are given to a scope, which `Scope` selects by defer_to(). */
template <typename Scope>
struct acquiring {
    template <typename F>
    static void defer(const Scope &scope, F function) {
        scope.defer_to(deferred{{}, make_release(std::move(function))});
    }
    template <typename T, typename Release>
    static T acquire(const Scope &scope, T value, Release release) {
        if constexpr (std::is_pointer_v<T>)
            if (value == nullptr)
                return value;
        defer(scope, [value, release = std::move(release)]() mutable { release(value); });
        return value;
    }
    template <typename T, typename... Arguments>
    static T &keep(const Scope &scope, Arguments &&...arguments) {
        auto made = std::make_unique<release_of<T>>(static_cast<Arguments &&>(arguments)...);
        T &value = made->value;
        scope.defer_to(deferred{{}, std::move(made)});
        return value;
    }
};

/* The default: what was to be kept is released at once. */
inline void no_scope(void *, deferred *) {
    throw std::logic_error(
        "haft: defer(), acquire() or keep() was called outside of haft::scoped(). "
        "Call it in the body of haft::scoped().");
}

struct innermost_scope {
    void defer_to(deferred what) const {
        ensure_default<deferred, no_scope>();
        perform(std::move(what));
    }
};

} // namespace detail

/* Lets `function()` run when the innermost scope ends. */
template <typename F>
void defer(F function) {
    detail::acquiring<detail::innermost_scope>::defer({}, std::move(function));
}

/*
 * Gives `value`, a handle that can be copied (a pointer, a descriptor), to the innermost scope, and
 * returns it: `release(value)` runs when the scope ends. A null pointer is returned as it is: there
 * is nothing to release.
 */
template <typename T, typename Release>
T acquire(T value, Release release) {
    return detail::acquiring<detail::innermost_scope>::acquire({}, std::move(value),
                                                               std::move(release));
}

/* Makes a T that lives as long as the innermost scope. */
template <typename T, typename... Arguments>
T &keep(Arguments &&...arguments) {
    return detail::acquiring<detail::innermost_scope>::template keep<T>(
        {}, static_cast<Arguments &&>(arguments)...);
}

/*
 * A scope by name, which the body of scoped() is given if it takes one: to acquire for it in a
 * scope further in. To be copied freely; valid in that body, its use elsewhere is an error (haft.h:
 * not around).
 */
class scope {
  public:
    template <typename F>
    void defer(F function) const {
        acquiring::defer(*this, std::move(function));
    }
    template <typename T, typename Release>
    T acquire(T value, Release release) const {
        return acquiring::acquire(*this, std::move(value), std::move(release));
    }
    template <typename T, typename... Arguments>
    T &keep(Arguments &&...arguments) const {
        return acquiring::template keep<T>(*this, static_cast<Arguments &&>(arguments)...);
    }

  private:
    using acquiring = detail::acquiring<scope>;
    friend acquiring;
    template <typename Body>
    friend decltype(auto) scoped(Body body);
    explicit scope(instance<deferred> of) : handler(of) {}
    void defer_to(deferred what) const { handler.perform(std::move(what)); }

    instance<deferred> handler;
};

/* Runs `body()`, or `body(scope)`, and returns what it returns, after all is released that was
   acquired for this scope. */
template <typename Body>
decltype(auto) scoped(Body body) {
    resources kept;
    auto run = [&](instance<deferred> handler) -> decltype(auto) {
        if constexpr (std::is_invocable_v<Body &, scope>)
            return body(scope(handler));
        else
            return body();
    };
    using Answer = decltype(run(std::declval<instance<deferred>>()));
    if constexpr (std::is_void_v<Answer>) {
        handle(run).with(kept);
        kept.release();
    } else {
        Answer answer = handle(run).with(kept);
        kept.release();
        return static_cast<Answer>(std::forward<Answer>(answer));
    }
}

/*
 * Acquires, uses, releases: `use(thing)` with the thing that `acquire()` returns, which is released
 * by `release(thing)` whatever happens. Needs no scope around.
 */
template <typename Acquire, typename Use, typename Release>
decltype(auto) bracket(Acquire acquire, Use use, Release release) {
    return scoped([&]() -> decltype(auto) {
        auto made =
            std::make_unique<detail::bracketed<decltype(acquire()), Release>>(acquire, release);
        auto &thing = made->thing;
        perform(deferred{{}, std::move(made)});
        return use(thing);
    });
}

} // namespace haft

#endif
