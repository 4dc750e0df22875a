// SPDX-License-Identifier: MIT
/* Results of handle() and wrap(): a scope in a frame, or a task on a fiber. Also: clauses as
   defaults. */
#ifndef HAFT_DETAIL_HANDLING_HPP
#define HAFT_DETAIL_HANDLING_HPP

namespace haft::detail {

struct grant_access {
    template <typename... Effects>
    static auto grant(hafti_scope_t *scope, instance<Effects...> *) {
        return instance<Effects...>(scope);
    }
    template <typename... Effects>
    static auto grant(hafti_scope_t *, may<Effects...> *) {
        return may<Effects...>();
    }
};

/* The type of the parameter that a body is given: from the list of its handler, and from the `may`
   around it. */
template <typename Around, typename List>
struct given;
template <typename... Entries>
struct given<void, effects<Entries...>> {
    using type = instance<effect_of<Entries>...>;
};
template <typename... Outer, typename... Entries>
struct given<may<Outer...>, effects<Entries...>> {
    using type = may<Outer..., effect_of<Entries>...>;
};

template <typename Body, typename Given>
struct the_body_cannot_be_called {
    static_assert(sizeof(Body *) == 0,
                  "haft: the body of handle() is called with no arguments, or with the handler's "
                  "instance (haft::instance<Effects...> or haft::may<Effects...>).");
};

template <typename Body, typename Argument>
struct the_body_does_not_take {
    static_assert(sizeof(Body *) == 0, "haft: the body of wrap<Argument>() cannot be called with "
                                       "the argument, the last of the types above.");
};

template <typename Body, typename Given>
HAFT_DETAIL_INLINE decltype(auto) call_body(Body &body, hafti_scope_t *scope) {
    if constexpr (std::is_invocable_v<Body &>)
        return body();
    else
        return body(grant_access::grant(scope, static_cast<Given *>(nullptr)));
}
template <typename Body, typename Given>
using body_result_of = decltype(call_body<Body, Given>(std::declval<Body &>(), nullptr));

/* Whether body and handler fit; if not, nothing else is compiled of the computation. */
template <bool Tell, typename H, typename Body, typename Given>
constexpr bool check_computation() {
    if constexpr (!std::is_invocable_v<Body &> && !std::is_invocable_v<Body &, Given>) {
        explain<Tell, the_body_cannot_be_called<Body, Given>>();
        return false;
    } else {
        return check_handler<Tell, H, body_result_of<Body, Given>>(list_of<H>{});
    }
}

/* ---- Handlers without a stack ---- */

struct HAFT_SHARED landed {};
/* Thrown instead of `landed` where the frame may be copied, which is recognised by this type
   (multi_shot.hpp). */
struct HAFT_SHARED landed_in_copied {};

template <typename Holder>
struct in_place_scope : Holder {
    template <typename Make>
    HAFT_DETAIL_INLINE explicit in_place_scope(Make &&make) : Holder(static_cast<Make &&>(make)) {}
    hafti_scope_t scope;
    unsigned uncaught; /* exceptions in flight around the handler */
};
struct forgetting_thrown {
    holder_base &held;
    HAFT_DETAIL_INLINE ~forgetting_thrown() { held.thrown.forget(); }
};
struct pushed_scope {
    hafti_scope_t *scope;
    ~pushed_scope() { haft_scope_pop(scope); }
};

template <typename Scope, typename Given, typename Body>
__attribute__((noinline)) typename Scope::body_result run_body(Scope &here, Body &body) {
    return call_body<Body, Given>(body, &here.scope);
}

/* Neither this nor run_body is inlined, so that the stack pointer is the same at the call as before
   it. */
template <typename Scope, typename Given, typename Body>
__attribute__((noinline)) typename Scope::body_result run_in_place(Scope &here, Body &body) {
    using Holder = typename Scope::held_type;
    using landing = std::conditional_t<Holder::copied, landed_in_copied, landed>;
    here.landing.sp = haft_stack_pointer();
    here.landing.land = [](haft_landing_t *) { throw landing{}; };
    forgetting_thrown last{here};
    try {
        haft_scope_push(&here.scope, &clause_table<Holder>::handles, static_cast<Holder *>(&here));
        pushed_scope pushed{&here.scope};
        here.uncaught = hafti_thread()->globals->uncaught;
        return run_body<Scope, Given>(here, body);
    } catch (const landing &) {
        hafti_thread()->globals->uncaught = here.uncaught;
    }

    std::rethrow_exception(here.thrown.take());
}

/* ---- Handlers with a fiber ---- */

template <typename Holder, typename Given, typename Body, typename Argument>
struct task : computation_of<typename Holder::body_result> {
    template <typename Make>
    HAFT_DETAIL_INLINE task(Make &&make, Body &&function)
        : held(static_cast<Make &&>(make)), body(std::move(function)) {}
    ~task() { held.thrown.forget(); }
    task(const task &) = delete;
    task &operator=(const task &) = delete;

    /* The body's function; runs on the fiber. */
    static void *run(void *argument) {
        task *self = static_cast<task *>(argument);
        self->result.fill([&]() -> typename Holder::body_result {
            if constexpr (std::is_void_v<Argument>)
                return call_body<Body, Given>(self->body, &self->fiber->scope);
            else if constexpr (in_word<Argument>)
                return self->body(from_word<Argument>(self->word));
            else
                return self->body(self->argument.take());
        });
        return nullptr;
    }
    static void destroy(computation *self) noexcept { static_cast<task *>(self)->~task(); }
    static inline const task_type of_type = {
        &destroy, &type_mark<typename Holder::body_result>,
        Holder::copied &&std::is_trivially_copyable_v<Body> &&
            (in_word<Argument> || std::is_trivially_copyable_v<Argument>)};

    template <typename Make>
    static HAFT_DETAIL_INLINE task *create(const haft_fiber_options_t &options, Make &&make,
                                           Body &&function) {
        haft_fiber_t *fiber = haft_fiber_new_with(&options, &task::run, nullptr);
        if (fiber == nullptr)
            throw std::bad_alloc();
        unfinished_fiber owned{fiber};
        task *self =
            ::new (reserve<task>(fiber)) task(static_cast<Make &&>(make), std::move(function));
        owned.fiber = nullptr;
        fiber->argument = self;
        fiber->scope.state = static_cast<Holder *>(&self->held);
        self->fiber = fiber;
        self->computation::held = &self->held;
        self->drive = driver::driving<Holder>();
        self->unwind = &driver::unwind<Holder>;
        self->type = &task::of_type;
        self->held.landing.fiber = fiber;
        return self;
    }

    Holder held;
    Body body;
    room<std::conditional_t<in_word<Argument>, void, Argument>> argument;
};

inline haft_effect_t start_effect = {"start", "haft.hpp", 0, 0, nullptr, nullptr, {}, 0, false, 0};

/* ---- Default handlers ---- */

/* A clause that is a default. A clause that is replaced is kept: another thread may be running
   it. */
template <typename E, typename Clause>
struct default_clause {
    Clause clause;
    default_clause *older;
    static inline std::atomic<default_clause *> set = nullptr;

    static result_of<E> call(void *, E *payload) {
        return static_cast<result_of<E>>(
            set.load(std::memory_order_acquire)->clause(passed<E>::on(*payload)));
    }
};
template <typename E>
struct only_one_effect {
    using type = void;
};
template <typename E>
struct only_one_effect<effects<E>> {
    using type = E;
};

} // namespace haft::detail

#endif
