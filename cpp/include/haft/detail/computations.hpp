// SPDX-License-Identifier: MIT
/*
 * Computations, their handlers, and clauses in place.
 *
 * A handler is an object with an overload of operator() for each effect; lambdas are gathered into
 * one such object. The runtime searches a constant table of clauses, one table for each type of
 * handler. Clauses without a resumption run in place, on the stack of the performer; a handler that
 * has no others is a scope in the frame of handle() (`in_place_scope`). Otherwise the computation
 * has a fiber, and everything that belongs to the computation lies at the high end of the fiber's
 * stack, so that nothing is allocated:
 *
 *   low                                                                        high
 *   | free ...  <- sp | frames of the body | task                  | haft_fiber_t |
 *                                            |
 *                     computation           -+  fiber, drive, held
 *                     result of the body     |
 *                     holder                 |  the handler, or a reference to it
 *                     body                  -+
 *
 * `drive` is the loop around a computation: it resumes the fiber, calls the clause for the request
 * that comes back, and ends with an answer, or with another computation to resume instead (a clause
 * that ended in tail_resume). A resumption owns a computation that is suspended; a running drive
 * owns a computation that runs. The task lives on while clauses of its own handler run (`use`),
 * even after the computation is over: a clause may use members of its handler after it has resumed
 * (§3.5).
 *
 * The runtime carries an exception that leaves the body to the code that resumed the body. One that
 * leaves a general clause is already in the handler's context, and unwinding the clause drops the
 * resumption. The performer's frames must not see an exception that leaves a clause in place: the
 * exception is caught at once and kept with the handler, the performer's frames are unwound by
 * force up to the handler, and from there the exception goes on (`run_in_place`). One of a clause
 * that is marked `raising` is the performer's: it leaves the perform.
 */
#ifndef HAFT_DETAIL_COMPUTATIONS_HPP
#define HAFT_DETAIL_COMPUTATIONS_HPP

namespace haft::detail {

/* ---- A handler with a computation ---- */

/* An exception, or none. Without a destructor, so that the frame around a handler has none either:
   it may be copied (multi_shot.hpp). */
class kept_exception {
  public:
    bool is_there() const noexcept { return uses != 0; }
    void keep(std::exception_ptr &&exception) noexcept {
        unsigned before = uses;
        forget();
        ::new (static_cast<void *>(bytes)) std::exception_ptr(std::move(exception));
        uses = before + 1;
    }
    /* One of the unwindings on behalf of what is kept has ended. */
    void let_go() noexcept {
        if (uses > 1)
            uses--;
        else
            forget();
    }
    std::exception_ptr take() noexcept {
        std::exception_ptr taken = is_there() ? std::move(*pointer()) : nullptr;
        forget();
        return taken;
    }
    HAFT_DETAIL_INLINE void forget() noexcept {
        if (__builtin_expect(is_there(), false))
            clear();
    }

  private:
    std::exception_ptr *pointer() noexcept {
        return std::launder(reinterpret_cast<std::exception_ptr *>(bytes));
    }
    __attribute__((cold, noinline)) void clear() noexcept {
        pointer()->~exception_ptr();
        uses = 0;
    }
    alignas(std::exception_ptr) unsigned char bytes[sizeof(std::exception_ptr)];
    unsigned uses = 0; /* the unwindings on behalf of it */
};

/* The state of an exception that leaves a clause in place, for handlers of every type. */
struct holder_base {
    haft_landing_t landing = {};
    kept_exception thrown;
    /* For a holder that resume_with made: how to delete it, and the previous holder. */
    void (*destroy)(holder_base *) noexcept = nullptr;
    holder_base *older = nullptr;
};
static_assert(std::is_standard_layout_v<holder_base>, "a landing's address is its holder's");
/* Called when something else has taken the place of the unwinding. If the computation goes on then,
   it may be copied, and each copy would let go of the exception. */
inline void forget_thrown(haft_landing_t *landing) {
    reinterpret_cast<holder_base *>(landing)->thrown.let_go();
}

/* Room for a large result of an effect of C, until the performer has read it. */
template <typename E>
struct foreign_room {};
template <typename E>
requires(!effect_traits<E>::native &&
         !in_word<typename effect_traits<E>::result>) struct foreign_room<E> {
    room<typename effect_traits<E>::result> value;
};
template <typename List>
struct foreign_rooms;
template <typename... Entries>
struct foreign_rooms<effects<Entries...>> : foreign_room<effect_of<Entries>>... {};

template <typename Stored, typename B>
struct holder : holder_base, foreign_rooms<list_of<typename stored<Stored>::handler>> {
    using H = typename stored<Stored>::handler;
    using body_result = B;
    using Answer = typename answer<H, B>::type;
    using list = list_of<H>;
    using held_type = holder;
    /* Whether the computation keeps the handler. */
    static constexpr bool managed = !std::is_same_v<Stored, by_reference<H>>;
    /* Whether clauses may use the handler's state for longer than the computation lasts. */
    static constexpr bool counted = managed && !std::is_empty_v<Stored>;
    /* Whether it may be copied byte by byte while no exception is kept. */
    static constexpr bool copied = std::is_trivially_copyable_v<Stored>;

    template <typename Make>
    HAFT_DETAIL_INLINE explicit holder(Make &&make) : kept(static_cast<Make &&>(make)()) {}
    H &handler() { return stored<Stored>::get(kept); }

    Stored kept;
};

template <typename Holder, typename Entry>
consteval clause_kind kind_in() {
    return kind_of<typename Holder::H, Entry, typename Holder::Answer>();
}

/* ---- Clauses in place ---- */

/* Puts aside the exceptions that the performer is handling: a clause runs in the context of its
   handler. */
class performers_exceptions {
  public:
    performers_exceptions() noexcept : kept(*hafti_thread()->globals) {
        *hafti_thread()->globals = {nullptr, 0};
    }
    ~performers_exceptions() {
        hafti_exceptions_t *now = hafti_thread()->globals;
        now->caught = kept.caught;
        now->uncaught += kept.uncaught;
    }
    performers_exceptions(const performers_exceptions &) = delete;
    performers_exceptions &operator=(const performers_exceptions &) = delete;

  private:
    hafti_exceptions_t kept;
};

/* Restores the count of exceptions in flight. */
struct as_uncaught_before {
    unsigned uncaught = hafti_thread()->globals->uncaught;
    ~as_uncaught_before() { hafti_thread()->globals->uncaught = uncaught; }
};

/* In a catch-all: returns the exception, or continues the unwinding if it is forced. */
inline std::exception_ptr caught_exception() {
    std::exception_ptr exception = std::current_exception();
    if (exception == nullptr) {
        as_uncaught_before rethrown; /* some runtimes count a rethrown exception twice */
        throw;
    }
    return exception;
}

/* Whether this stack has exceptions, caught or on their way. `globals` is asked, since the thread's
   `exceptions` is never empty on a segmented fiber. */
HAFT_DETAIL_INLINE bool has_exceptions() {
    return __builtin_expect(hafti_exceptions_in(hafti_thread()->globals), false);
}

template <typename R, typename E>
__attribute__((cold, noinline)) R without_exceptions(R (*clause)(void *, E *), void *state,
                                                     E *payload) {
    performers_exceptions aside;
    return clause(state, payload);
}

template <typename Holder, typename Entry, typename E = effect_of<Entry>>
typename effect_traits<E>::result tail_clause(void *state, E *payload) {
    [[maybe_unused]] Holder *held = static_cast<Holder *>(state);
    if constexpr (kind_in<Holder, Entry>() != clause_kind::tail) {
        (void)payload;
        __builtin_unreachable();
    } else if constexpr (entry<Entry>::raises ||
                         std::is_nothrow_invocable_r_v<typename effect_traits<E>::result,
                                                       typename Holder::H &, E>) {
        return static_cast<typename effect_traits<E>::result>(
            held->handler()(passed<E>::on(*payload)));
    } else {
        if (has_exceptions())
            return without_exceptions(&tail_clause<Holder, Entry>, state, payload);
        try {
            return static_cast<typename effect_traits<E>::result>(
                held->handler()(passed<E>::on(*payload)));
        } catch (...) {
            std::exception_ptr thrown = caught_exception();
            if (!haft_can_unwind_to(&held->landing)) /* a task with the handlers of another */
                throw;
            held->thrown.keep(std::move(thrown));
            held->landing.let_go = &forget_thrown;
        }
        haft_unwind_to(&held->landing);
    }
}

template <typename Holder, typename List = typename Holder::list>
struct clause_table;
template <typename Holder, typename... Entries>
struct clause_table<Holder, effects<Entries...>> {
    template <typename Entry>
    static constexpr bool in_place = kind_in<Holder, Entry>() == clause_kind::tail;
    static inline const haft_clause_t clauses[] = {
        {effect_traits<effect_of<Entries>>::id(),
         reinterpret_cast<haft_function_t *>(&tail_clause<Holder, Entries>),
         in_place<Entries> ? HAFT_CLAUSE_TAIL : HAFT_CLAUSE_REQUEST,
         shape_of<effect_of<Entries>>}...,
        {nullptr, nullptr, 0, 0}};
    static inline const haft_handles_t handles = {sizeof...(Entries), 0, HAFTI_SET_FIXED, clauses};
};

/* ---- Computations on fibers ---- */

using raise_t = void *(*)(void *);
struct computation;

/* How a drive ends: with another computation to resume instead, `next`, and its word; or, if `next`
   is NULL, with an answer, which lies in the word, or was made in `place`. */
struct ending {
    computation *next;
    void *word;
};
using drive_t = ending(computation *task, void *word, raise_t raise, void *place);
using leave_t = ending(computation *task, void *place, const void *answer);

/* Properties of a computation that follow from the types of its handler and its body. */
struct task_type {
    void (*destroy)(computation *) noexcept;
    const void *result; /* the type_mark of what the body returns */
    bool copied;        /* it may be copied byte by byte while it waits */
};

struct computation {
    haft_fiber_t *fiber = nullptr;
    drive_t *drive = nullptr;
    void (*unwind)(computation *) = nullptr; /* with the handler of `drive` */
    void *held = nullptr;                    /* a holder */
    void *slot = nullptr;   /* room for the result of the perform that waits, if no word holds it */
    void *released[2] = {}; /* the resumption, while compat/cpp-effects has released it */
    /* task_clause for each clause that runs and may use its handler, on whatever thread; and
       task_over once the computation has finished, was thrown out of, or dropped. */
    std::uint32_t use = 0;
    const task_type *type = nullptr;
    /* Set while the stack is unwound on behalf of a never clause: calls the clause, if its answer
       has the type with that mark, or lets go of the payload. */
    leave_t *leave = nullptr;
    void *left_with; /* the payload */
    holder_base
        *leave_of; /* whose clause that is: resume_with may have put in another holder since */
    holder_base *swapped = nullptr; /* the holders that resume_with made */

    static bool is_of(const computation *task, const dropped &unwound) {
        return unwound.of == task;
    }
};

template <typename Holder, typename E>
struct general_clause;
template <typename E>
struct captured;

template <typename B>
struct computation_of : computation {
    void *word = nullptr; /* the argument of a computation made by wrap */
    room<B> result;
};
template <typename B>
inline constexpr char type_mark = 0;

inline void destroy_swapped(computation *task) noexcept {
    while (task->swapped != nullptr) {
        holder_base *held = task->swapped;
        task->swapped = held->older;
        held->destroy(held);
    }
}
/* Whether the stack is unwound on behalf of a clause of a holder, which must stay: a never clause,
   or one in place that has thrown. (The task itself has the holder that no resume_with made.) */
inline bool is_unwound_for_clause(const computation *task) noexcept {
    const holder_base *held = task->swapped;
    while (held != nullptr && !held->thrown.is_there())
        held = held->older;
    return held != nullptr || task->leave != nullptr;
}
/* Lets go of a never clause that was to be called. */
__attribute__((cold, noinline)) inline void forget_leave(computation *task) {
    (void)std::exchange(task->leave, nullptr)(task, nullptr, nullptr);
}
HAFT_DETAIL_INLINE void forget_leaving(computation *task) {
    if (__builtin_expect(task->leave != nullptr, false))
        forget_leave(task);
}
inline void release(computation *task) noexcept {
    haft_fiber_t *fiber = task->fiber;
    forget_leaving(task);
    destroy_swapped(task);
    task->type->destroy(task);
    haft_fiber_drop(fiber);
}
enum : std::uint32_t { task_over = 1, task_clause = 2 };
/* The thread that changes the sum to task_over, with no clause left, releases the task. */
HAFT_DETAIL_INLINE std::uint32_t change_use(computation *task, std::uint32_t by) noexcept {
    if (hafti_is_alone())
        return task->use += by;
    std::uint32_t *use = &task->use;
    __asm__("" : "+r"(use)); /* gcc 12 would take `use` for NULL and warn (-Wstringop-overflow) */
    return __atomic_add_fetch(use, by, __ATOMIC_ACQ_REL);
}
inline void *run_nothing(void *) {
    return nullptr;
}
inline bool is_over(const computation *task) noexcept {
    return (__atomic_load_n(&task->use, __ATOMIC_ACQUIRE) & task_over) != 0;
}
inline void end(computation *task) noexcept {
    if (change_use(task, task_over) == task_over)
        release(task);
}

/* Room for a T at the high end of the stack of a new fiber, which is aligned to 64. */
template <typename T>
HAFT_DETAIL_INLINE void *reserve(haft_fiber_t *fiber) {
    if constexpr (alignof(T) <= 64) {
        return haft_fiber_reserve(fiber, sizeof(T));
    } else {
        auto room = reinterpret_cast<std::uintptr_t>(
            haft_fiber_reserve(fiber, sizeof(T) + alignof(T) - 64));
        return reinterpret_cast<void *>((room + alignof(T) - 1) & ~(alignof(T) - 1));
    }
}

/* Frees a fiber if making what belongs on it fails. */
struct unfinished_fiber {
    haft_fiber_t *fiber;
    HAFT_DETAIL_INLINE ~unfinished_fiber() {
        if (fiber != nullptr)
            haft_fiber_drop(fiber);
    }
};

HAFT_DETAIL_INLINE void clause_ended(computation *task) noexcept {
    if (change_use(task, 0u - task_clause) == task_over)
        release(task);
}

/* Unwinds a suspended computation, under its handler: a cleanup may perform, and the handler's
   clauses run. Returns when the stack is unwound, or when a clause has kept a cleanup waiting. Not
   inlined: every resumption's destructor calls this, and most find nothing to drop. */
__attribute__((noinline)) inline void drop(computation *task) {
    if (is_over(task))
        return;
    switch (haft_fiber_state(task->fiber)) {
    case HAFT_FIBER_NEW:
        end(task);
        return;
    case HAFT_FIBER_RUNNING: /* a cleanup of its own drops it */
        return;
    default:
        break;
    }
    forget_leaving(task);
    try {
        task->unwind(task);
    } catch (const dropped &unwound) {
        if (!computation::is_of(task, unwound))
            throw;
    }
}

/* Like drop, but the effects of the cleanups go to the handlers around the caller. */
inline void drop_under_caller(computation *task) {
    if (is_over(task))
        return;
    change_use(task, task_over + task_clause);
    struct dropping {
        computation *task;
        ~dropping() { clause_ended(task); }
    } left{task};
    haft_fiber_reset(task->fiber, run_nothing, nullptr);
}

/* Drops a computation if an exception is thrown before the computation is resumed or dropped. */
struct suspended_computation {
    computation *task;
    HAFT_DETAIL_INLINE ~suspended_computation() {
        if (task != nullptr)
            drop(task);
    }
};

/* Keeps the task while a clause or return clause runs. */
class running_clause {
  public:
    HAFT_DETAIL_INLINE explicit running_clause(computation *of) : task(of) {
        change_use(task, task_clause);
    }
    HAFT_DETAIL_INLINE ~running_clause() { clause_ended(task); }
    running_clause(const running_clause &) = delete;
    running_clause &operator=(const running_clause &) = delete;

  private:
    computation *task;
};
struct no_running_clause {
    explicit no_running_clause(computation *) {}
};

/* Ends the task if the resume is left by an exception or unwound. */
struct running_computation {
    explicit running_computation(computation *of) : task(of) {}
    running_computation(const running_computation &) = delete;
    running_computation &operator=(const running_computation &) = delete;
    computation *task;
    HAFT_DETAIL_INLINE ~running_computation() {
        if (__builtin_expect(task != nullptr, false))
            leave(task);
    }

  private:
    static __attribute__((cold, noinline)) void leave(computation *task) noexcept { end(task); }
};

} // namespace haft::detail

#endif
