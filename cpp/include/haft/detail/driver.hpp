// SPDX-License-Identifier: MIT
/* The loop around a computation, and the calls of its clauses. */
#ifndef HAFT_DETAIL_DRIVER_HPP
#define HAFT_DETAIL_DRIVER_HPP

namespace haft::detail {

/* Makes an answer: in the word of the ending, or in `place`. */
template <typename Answer, typename Make>
HAFT_DETAIL_INLINE ending answered(void *place, Make &&make) {
    if constexpr (std::is_void_v<Answer>) {
        static_cast<Make &&>(make)();
        return {nullptr, nullptr};
    } else if constexpr (in_word<Answer>) {
        return {nullptr, to_word<Answer>(static_cast<Make &&>(make)())};
    } else {
        ::new (place) Answer(static_cast<Make &&>(make)());
        return {nullptr, nullptr};
    }
}

/* Owns a computation that performs an E until a resumption does. A compiler may make the arguments
   of a clause in either order: if making the payload throws first, this drops the computation. */
template <typename E>
struct captured {
    computation *task;
    room<result_of<E>> *slot;
    HAFT_DETAIL_INLINE ~captured() {
        if (__builtin_expect(task != nullptr, false))
            drop(task);
    }
    template <typename Answer>
    HAFT_DETAIL_INLINE auto resumption() {
        return haft::resumption<typename signature<Answer, result_of<E>>::type>(
            std::exchange(task, nullptr), effect_traits<E>::id(), slot);
    }
};

/* Keeps a handler while one of its clauses runs, if the computation may end before the clause. */
template <typename Holder>
using running_of = std::conditional_t<Holder::counted, running_clause, no_running_clause>;

/* The call of a general clause. */
template <typename Holder, typename E>
struct general_clause {
    using Answer = typename Holder::Answer;
    static HAFT_DETAIL_INLINE ending call(typename Holder::H &handler, captured<E> &computation,
                                          E &payload, void *place) {
        [[maybe_unused]] running_of<Holder> guard(computation.task);
        auto clause = [&]() HAFT_DETAIL_INLINE_LAMBDA -> decltype(auto) {
            return handler(passed<E>::on(payload), computation.template resumption<Answer>());
        };
        if constexpr (std::is_same_v<decltype(clause()), tail<Answer>>) {
            tail<Answer> ended = clause();
            if (ended.next != nullptr)
                return {std::exchange(ended.next, nullptr), ended.word};
            return answered<Answer>(place, [&]() -> Answer { return ended.answer.take(); });
        } else {
            return answered<Answer>(place, [&]() HAFT_DETAIL_INLINE_LAMBDA -> Answer {
                return static_cast<Answer>(clause());
            });
        }
    }
};

/* Whether a payload has nothing that would have to be kept. */
template <typename E>
inline constexpr bool is_nothing =
    std::is_empty_v<E> &&std::is_trivially_copyable_v<E> &&std::is_default_constructible_v<E>;

/* Stands for a function to call where the drive begins with a request, to which its word points.
   (It is the address of a function of libhaft, the same in all libraries of a process.) */
inline raise_t beginning_with_request() {
    return reinterpret_cast<raise_t>(reinterpret_cast<haft_function_t *>(&haft_resume_unwinding));
}
inline __attribute__((cold, noinline)) haft_request_t
resume_specially(haft_fiber_t *fiber, raise_t raise, void *word, const haft_handles_t *handles) {
    return raise == beginning_with_request() ? *static_cast<haft_request_t *>(word)
                                             : haft_resume_calling(fiber, raise, word, handles);
}

/* A drive may become a part of the function that calls it, which saves 27 instructions a handle().
   Where computations are copied it must not, because copies know its frame by its address: then
   multi_shot.hpp has a better match, which the templates below find when they are instantiated, in
   whatever order the headers are included. */
template <typename Holder>
struct driven_by {};
template <typename Drive>
HAFT_DETAIL_INLINE Drive *as_called(Drive *drive, ...) {
    return drive;
}

/* The loop around computations. A resume that is no tail call keeps the frame of `drive` and an
   `answering` in the clause's frame on the stack, so both are kept small. */
struct driver {
    /* Resumes a computation whose handler is a Holder until the computation, or one that replaces
       it, has an answer, or has to be resumed under a handler of another type. */
    template <typename Holder>
    static ending drive(computation *task, void *word, raise_t raise, void *place) {
        constexpr const haft_handles_t *handles = &clause_table<Holder>::handles;
        for (;;) {
            haft_request_t request;
            {
                running_computation running{task};
                request = __builtin_expect(raise != nullptr, false)
                              ? resume_specially(task->fiber, raise, word, handles)
                              : hafti_resume_hot(task->fiber, word, handles);
                running.task = nullptr;
            }
            ending end = dispatch<Holder>(task, request, place, typename Holder::list{});
            if (end.next == nullptr || end.next->drive != &drive<Holder>)
                return end;
            task = end.next;
            word = end.word;
            raise = nullptr;
        }
    }

    template <typename Holder>
    static HAFT_DETAIL_INLINE drive_t *driving() {
        return as_called(&drive<Holder>, driven_by<Holder>());
    }

    /* Unwinds a dropped computation. An answer that a clause gives meanwhile is discarded. */
    template <typename Holder>
    static __attribute__((cold, noinline)) void unwind(computation *task) {
        haft_request_t request = resume_unwinding<Holder>(task);
        if (request.effect == &haft_special_dropped)
            end(task);
        else
            unwind_on<Holder>(task, request);
    }

    /* The first drive of a computation made by wrap: the word is its argument. */
    template <typename Holder>
    static ending start(computation *task, void *word, raise_t raise, void *place) {
        if (raise != nullptr) {
            running_computation running{task};
            raise(word);
        }
        static_cast<computation_of<typename Holder::body_result> *>(task)->word = word;
        drive_t *next = driving<Holder>();
        task->drive = next;
        return next(task, word, nullptr, place);
    }

  private:
    template <typename Holder>
    static haft_request_t resume_unwinding(computation *task) {
        running_computation running{task};
        haft_request_t request = haft_resume_unwinding(task->fiber, &clause_table<Holder>::handles);
        running.task = nullptr;
        return request;
    }
    /* A cleanup has performed. */
    template <typename Holder>
    static void unwind_on(computation *task, haft_request_t request) {
        using Answer = typename Holder::Answer;
        auto run_on = [&](void *place) {
            ending end = driving<Holder>()(task, &request, beginning_with_request(), place);
            while (end.next != nullptr)
                end = end.next->drive(end.next, end.word, nullptr, place);
        };
        if constexpr (std::is_void_v<Answer> || in_word<Answer>) {
            run_on(nullptr);
        } else {
            union unwanted {
                Answer value;
                unwanted() {}
                ~unwanted() {}
            } answer;
            run_on(std::addressof(answer.value));
            answer.value.~Answer();
        }
    }

    template <typename Holder>
    static HAFT_DETAIL_INLINE ending dispatch(computation *task, haft_request_t request,
                                              void *place, effects<>) {
        return finish<Holder>(task, request, place);
    }
    template <typename Holder, typename Entry, typename... Rest>
    static HAFT_DETAIL_INLINE ending dispatch(computation *task, haft_request_t request,
                                              void *place, effects<Entry, Rest...>) {
        constexpr clause_kind kind = kind_in<Holder, Entry>();
        if constexpr (kind != clause_kind::tail) {
            if (request.effect == effect_traits<effect_of<Entry>>::id()) {
                if constexpr (kind == clause_kind::general)
                    return general<Holder, effect_of<Entry>>(task, request.payload, place);
                else
                    return never<Holder>(task, performed<effect_of<Entry>>(request.payload), place);
            }
        }
        return dispatch<Holder>(task, request, place, effects<Rest...>{});
    }

    template <typename Holder, typename E>
    static HAFT_DETAIL_INLINE ending general(computation *task, void *request, void *place) {
        Holder &held = *static_cast<Holder *>(task->held);
        typename Holder::H &handler = held.handler();
        captured<E> computation{task, slot<E>(held, request)};
        return general_clause<Holder, E>::call(handler, computation, *performed<E>(request), place);
    }

    /* A never clause: the stack is unwound first. The effects of the cleanups are handled
       meanwhile, and the drive in which the unwinding ends gets the answer (`leave`). */
    template <typename Holder, typename E>
    static ending never(computation *task, E *request, void *place) {
        suspended_computation left{task};
        forget_leaving(task);
        if constexpr (!is_nothing<E>)
            task->left_with = new E(passed<E>::on(*request));
        task->leave = &leave<Holder, E>;
        task->leave_of = static_cast<Holder *>(task->held);
        left.task = nullptr;
        haft_request_t next = resume_unwinding<Holder>(task);
        return driving<Holder>()(task, &next, beginning_with_request(), place);
    }
    template <typename Holder, typename E>
    static ending leave(computation *task, void *place, const void *answer) {
        using Answer = typename Holder::Answer;
        auto call = [&](E &&payload) {
            if (answer == nullptr)
                return ending{nullptr, nullptr};
            if (answer != &type_mark<Answer>)
                throw std::logic_error(
                    "haft: a computation that a never clause ends was put under a handler "
                    "with an answer of another type (resume_with) by a clause that a "
                    "cleanup has performed");
            typename Holder::H &handler = static_cast<Holder *>(task->leave_of)->handler();
            return answered<Answer>(place, [&]() -> Answer {
                return static_cast<Answer>(handler(std::move(payload)));
            });
        };
        if constexpr (is_nothing<E>) {
            return call(E());
        } else {
            std::unique_ptr<E> payload(static_cast<E *>(task->left_with));
            return call(std::move(*payload));
        }
    }

    /* The stack is unwound: a clause in place has thrown, a never clause answers, or the
       computation was dropped and has no answer. */
    template <typename Holder>
    static __attribute__((cold, noinline)) ending left(computation *task, haft_request_t request,
                                                       void *place) {
        using Answer = typename Holder::Answer;
        if (request.effect == &haft_special_landed)
            std::rethrow_exception(static_cast<holder_base *>(request.payload)->thrown.take());
        if (leave_t *leave = std::exchange(task->leave, nullptr))
            return leave(task, place, &type_mark<Answer>);
        if constexpr (!std::is_void_v<Answer>)
            throw dropped(task);
        return {nullptr, nullptr};
    }

    /* The computation has returned, or a clause in place has thrown and its performer is
       unwound. */
    template <typename Holder>
    static __attribute__((noinline)) ending finish(computation *task, haft_request_t request,
                                                   void *place) {
        using Answer = typename Holder::Answer;
        [[maybe_unused]] Holder &held = *static_cast<Holder *>(task->held);
        running_clause guard(task);
        change_use(task, task_over);
        if (__builtin_expect(request.effect != HAFT_ID(return ), false))
            return left<Holder>(task, request, place);
        auto &result = static_cast<computation_of<typename Holder::body_result> *>(task)->result;
        return answered<Answer>(place, [&]() -> Answer {
            if constexpr (!answer<typename Holder::H, typename Holder::body_result>::changed)
                return result.take();
            else if constexpr (std::is_void_v<typename Holder::body_result>)
                return held.handler().on_return();
            else
                return held.handler().on_return(result.take());
        });
    }

    template <typename E, typename Holder>
    static HAFT_DETAIL_INLINE room<result_of<E>> *slot(Holder &held, void *request) {
        if constexpr (is_call<E>)
            return &static_cast<call<E> *>(request)->result;
        else if constexpr (!in_word<result_of<E>>)
            return &static_cast<foreign_room<E> &>(held).value;
        else
            return nullptr;
    }
};

/* Runs a computation, and those that replace it, to an answer. `answering` is a class and not a
   function, because gcc keeps a copy of an answer for each function that returns it, inlined or
   not. */
HAFT_DETAIL_INLINE void *run(computation *task, void *word, raise_t raise, void *place) {
    ending end = task->drive(task, word, raise, place);
    while (__builtin_expect(end.next != nullptr, false))
        end = end.next->drive(end.next, end.word, nullptr, place);
    return end.word;
}
template <typename Answer>
class answering {
  public:
    HAFT_DETAIL_INLINE answering(computation *task, void *word, raise_t raise = nullptr) {
        run(task, word, raise, std::addressof(value));
    }
    HAFT_DETAIL_INLINE ~answering() { value.~Answer(); }
    answering(const answering &) = delete;
    answering &operator=(const answering &) = delete;
    HAFT_DETAIL_INLINE Answer &&take() { return static_cast<Answer &&>(value); }

  private:
    union {
        Answer value;
    };
};
template <typename Answer>
requires in_word<Answer>
class answering<Answer> {
  public:
    HAFT_DETAIL_INLINE answering(computation *task, void *given, raise_t raise = nullptr)
        : word(run(task, given, raise, nullptr)) {}
    HAFT_DETAIL_INLINE Answer take() { return from_word<Answer>(word); }

  private:
    void *word;
};

template <typename Exception>
struct raised {
    Exception &exception;
    static void *raise(void *argument) {
        throw std::move(static_cast<raised *>(argument)->exception);
    }
};
template <>
struct raised<std::exception_ptr> {
    std::exception_ptr &exception;
    static void *raise(void *argument) {
        std::exception_ptr &exception = static_cast<raised *>(argument)->exception;
        if (exception == nullptr)
            throw std::logic_error("haft: discontinue() was given no exception, a null pointer");
        std::rethrow_exception(std::move(exception));
    }
};

} // namespace haft::detail

#endif
