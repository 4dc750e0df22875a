// SPDX-License-Identifier: MIT
/* The base of resumptions; and which arguments `with` and resume_with take as handlers. */
#ifndef HAFT_DETAIL_RESUMPTIONS_HPP
#define HAFT_DETAIL_RESUMPTIONS_HPP

namespace haft::detail {

/* How a handler that `with` or resume_with is given is kept. */
template <typename... Handlers>
struct kept;
template <typename H>
requires is_handler<std::remove_cvref_t<H>>
struct kept<H> {
    static constexpr bool right = true;
    using type = std::remove_cvref_t<H>;
    static HAFT_DETAIL_INLINE type make(std::remove_reference_t<H> &handler) {
        return std::move(handler);
    }
};
template <typename H>
requires is_handler<H>
struct kept<H &> {
    static constexpr bool right = true;
    using type = by_reference<H>;
    static HAFT_DETAIL_INLINE type make(H &handler) { return {std::addressof(handler)}; }
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
    static HAFT_DETAIL_INLINE type make(std::remove_reference_t<P> &pointer) {
        if (__builtin_expect(pointer == nullptr, false))
            no_handler();
        return static_cast<P &&>(pointer);
    }
};

/* How a part of a handler is kept. */
template <typename F>
struct kept_part {
    using type = clause_type<std::decay_t<F>>;
    static HAFT_DETAIL_INLINE type make(std::remove_reference_t<F> &function) {
        if constexpr (std::is_same_v<type, no_clause>)
            return {};
        else
            return as_clause(std::decay_t<F>(static_cast<F &&>(function)));
    }
};
template <typename H>
requires(is_handler<std::remove_cvref_t<H>> || points_to_handler<H>) struct kept_part<H> {
    using type = part_of_handler<typename kept<H>::type>;
    static HAFT_DETAIL_INLINE type make(std::remove_reference_t<H> &handler) {
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
    static HAFT_DETAIL_INLINE type make(Handlers &...parts) {
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
    HAFT_DETAIL_INLINE ~resumption_base() {
        if (task != nullptr)
            drop_last();
    }

    /* noexcept, unlike the assignment: a swap drops nothing, so it reports no error. */
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

    /* Not for users: as drop(), but what destructors perform goes to the handlers around the
       caller, for a scheduler whose threads unwind each other and wait for each other's
       destructors. */
    void drop_under_caller() && { detail::drop_under_caller(use("dropped")); }

    /* The fiber of the computation, NULL once used: for its name, backtrace and state (haft.h). */
    haft_fiber_t *fiber() const noexcept { return task == nullptr ? nullptr : task->fiber; }

  private:
    /* A clause may put the computation back here, if a cleanup performs what the clause keeps. */
    __attribute__((noinline)) void drop_last() {
        while (computation *last = std::exchange(task, nullptr))
            detail::drop(last);
    }

  protected:
    HAFT_DETAIL_INLINE resumption_base(computation *captured, haft_effect_t *performed,
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

    /* If making the reply throws, the computation is dropped. */
    static void *reply(computation *) { return nullptr; }
    template <typename Value>
    static HAFT_DETAIL_INLINE void *reply(computation *suspended, Value &&value) {
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
    HAFT_DETAIL_INLINE auto put_under(H &...handlers) {
        using Holder = holder<typename kept<H...>::type, Body>;
        if (task == nullptr)
            haft_used_resumption(effect, "resumed");
        if (task->type->result != &type_mark<Body>)
            throw std::logic_error(
                "haft: resume_with was given a handler for another result of the "
                "body: name that type, resume_with<Body>(handler, value)");
        drive_t *drive = haft_fiber_state(task->fiber) == HAFT_FIBER_NEW
                             ? &driver::start<Holder>
                             : driver::driving<Holder>();
        bool same = task->drive == drive;
        bool needed = is_unwound_for_clause(task);
        if constexpr (!Holder::managed) {
            if (same && !needed) {
                static_cast<Holder *>(task->held)->kept = kept<H...>::make(handlers...);
                return task;
            }
        }
        if (!needed && __atomic_load_n(&task->use, __ATOMIC_ACQUIRE) == 0)
            destroy_swapped(task);
        Holder *held =
            new Holder([&]() HAFT_DETAIL_INLINE_LAMBDA { return kept<H...>::make(handlers...); });
        held->landing.fiber = task->fiber;
        held->destroy = [](holder_base *made) noexcept {
            made->thrown.forget();
            delete static_cast<Holder *>(made);
        };
        held->older = std::exchange(task->swapped, held);
        task->held = held;
        task->drive = drive;
        task->unwind = &driver::unwind<Holder>;
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

} // namespace haft::detail

#endif
