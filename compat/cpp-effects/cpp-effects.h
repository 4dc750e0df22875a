/* SPDX-License-Identifier: MIT */
/*
 * The interface of cpp-effects ("High-level effect handlers in C++"), on Haft: programs written for
 * that library compile with this header and link with haft (pkg-config: haft-cpp-effects). C++20.
 *
 *     #include "cpp-effects/cpp-effects.h"
 *     namespace eff = cpp_effects;
 *
 *     struct Get : eff::command<int> {};
 *     struct Put : eff::command<> { int value; };
 *
 *     class State : public eff::flat_handler<int, eff::plain<Get>, Put> {
 *         int state = 0;
 *         int handle_command(Get) override { return state; }
 *         int handle_command(Put p, eff::resumption<int()> r) override {
 *             state = p.value;
 *             return std::move(r).tail_resume();
 *         }
 *     };
 *
 *     int last = eff::handle<State>([] { eff::invoke_command(Put{{}, 1});
 *                                        return eff::invoke_command(Get{}); });
 *
 * A command is also an effect of haft.hpp: haft::perform(Get{}) reaches a handler of this header,
 * and haft::handle takes clauses for commands. Sections (§) are those of the paper.
 *
 * How it is made
 *
 * A handler here is an object with virtual functions. A `frame` is a handler of haft.hpp that
 * contains such an object, on the stack of the computation, or a shared pointer to one. The list of
 * every frame begins with an effect that is never performed, `whereabouts`: its clause returns the
 * label, so that handlers are found by label along the runtime's chain, whatever other handlers are
 * in the chain. A handler that was found by label is cached, as for any perform, with
 * HAFTI_OTHER_MARK.
 *
 * tail_resume returns before anything is resumed, so it leaves a note with the clause that has
 * called it. A clause is found by the stack that it runs on (`clause_here`).
 *
 * Mistakes that are undefined in cpp-effects are errors here, reported as haft.h describes: a
 * resumption used twice, a command without a handler, a label or handler_ref that is not around the
 * caller, a null handler. An exception that leaves a body, a general or a no_resume clause leaves
 * the call that let it run (handle, or resume); one that leaves a plain clause leaves
 * invoke_command.
 *
 * Threads: as in haft.h. Every thread has handlers of its own; a resumption may be moved to another
 * thread.
 */
#ifndef HAFT_COMPAT_CPP_EFFECTS_H
#define HAFT_COMPAT_CPP_EFFECTS_H

#if __cplusplus < 202002L
#    error "cpp-effects on Haft needs C++20: compile with -std=c++20 or later"
#endif

#include <haft.hpp>

/* Programs for cpp-effects use some of these without including them. */
#include <atomic>
#include <cstdint>
#include <functional>
#include <iostream>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace cpp_effects {

template <typename Signature>
class resumption;
template <typename Out, typename Answer>
class resumption_data;
class metaframe;
class handler_ref;

/* ---- Commands (§2.1, §3.2) ------------------------------------------------------------------ */

/*
 * A command is a struct that derives from command<Out>, where Out is the type that invoking it
 * returns, or from command<>, if that is void. Its fields are the arguments. It must be copyable.
 */
template <typename... Outs>
struct command;

template <typename Out>
struct command<Out> {
    using out_type = Out;
    using effect_result = Out; /* what makes it an effect of haft.hpp */
    template <typename Answer>
    using resumption_type = Answer(Out);
};

template <>
struct command<> {
    using out_type = void;
    using effect_result = void;
    template <typename Answer>
    using resumption_type = Answer();
};

namespace detail {

template <typename Cmd>
concept is_command = requires {
    typename Cmd::template resumption_type<void>;
};

enum class clause_mode { general, plain, no_resume };

/* An entry in the list of a handler; clause-modifiers.h has entries with a modifier. */
template <typename Entry>
struct clause_entry {
    using command = Entry;
    static constexpr clause_mode mode = clause_mode::general;
};
template <typename Entry>
using command_of = typename clause_entry<Entry>::command;

inline constexpr std::int64_t no_label = -2;

[[noreturn]] inline void fail(haft_error_code_t code, const haft_effect_t *effect,
                              const std::string &message) {
    const haft_error_t error = {code, message.c_str(), effect, nullptr};
    haft_misused(&error);
}

/* ---- Clauses that run ---- */

/*
 * The record of a running general clause, for tail_resume. It lies in the frame of the clause's
 * caller; a resume that is not a tail call keeps one such frame at each level, so it is small.
 */
struct clause_record {
    clause_record *outer;
    haft::detail::computation *task; /* whose clause it is */
    union {
        const void *answer;              /* stands for the type of the answer */
        haft::detail::computation *next; /* what the clause has tail-resumed */
    };
    unsigned depth;        /* handlers without a stack that it runs under */
    unsigned resumes : 31; /* in which other code runs on the clause's stack */
    unsigned tail_resumed : 1;

    /* The word waits with the computation, whose room for the result is no longer needed. */
    HAFT_DETAIL_INLINE void leave(haft::detail::computation *rest, void *word) {
        rest->slot = word;
        next = rest;
        tail_resumed = true;
    }
};

/*
 * The clause whose code runs on this stack; NULL if there is none. The word travels with the fiber:
 * the runtime fills in a fiber's result when its function has returned, and has no use for the
 * state of a thread's root.
 */
struct clause_place {
    clause_record **word;
    unsigned depth;
};
HAFT_DETAIL_INLINE clause_place clause_here() {
    hafti_thread_t *thread = hafti_thread();
    hafti_scope_t *scope = thread->current;
    unsigned depth = 0;
    for (; scope->kind == HAFTI_SCOPE_STACKLESS; scope = scope->outer)
        depth++;
    void **word =
        scope->kind == HAFTI_SCOPE_FIBER ? &hafti_fiber_of(scope)->result : &thread->root.state;
    return {reinterpret_cast<clause_record **>(word), depth};
}

/* Whether tail_resume can return a value that is never taken for the answer. */
template <typename Answer>
inline constexpr bool has_no_answer =
    std::is_void_v<Answer> || std::is_default_constructible_v<Answer>;

/* The clause, if any, whose answer tail_resume may leave for later. */
template <typename Answer>
HAFT_DETAIL_INLINE clause_record *clause_to_leave() {
    clause_place here = clause_here();
    clause_record *clause = *here.word;
    if (clause == nullptr || clause->depth != here.depth || clause->resumes != 0)
        return nullptr;
    if (__builtin_expect(clause->tail_resumed, false))
        fail(HAFT_ERROR_BAD_ARGUMENT, nullptr,
             "A command clause has called tail_resume twice. It is the last thing that a clause "
             "does: use resume for all but the last.");
    return clause->answer == &haft::detail::type_mark<Answer> ? clause : nullptr;
}

/* A clause while it runs. */
template <typename Answer>
struct running_clause : clause_record {
    HAFT_DETAIL_INLINE explicit running_clause(haft::detail::computation *of) {
        clause_place here = clause_here();
        outer = *here.word;
        task = of;
        answer = &haft::detail::type_mark<Answer>;
        depth = here.depth;
        resumes = 0;
        tail_resumed = false;
        *here.word = this;
        haft::detail::change_use(task, haft::detail::task_clause);
    }
    HAFT_DETAIL_INLINE ~running_clause() {
        *clause_here().word = outer;
        haft::detail::clause_ended(task);
        if (__builtin_expect(tail_resumed, false))
            haft::detail::drop(next);
    }
    running_clause(const running_clause &) = delete;
    running_clause &operator=(const running_clause &) = delete;

    /* The computation that the clause has tail-resumed; if there is none, the clause's answer. */
    HAFT_DETAIL_INLINE haft::detail::ending ended(haft::detail::ending answered, void *place) {
        if (!tail_resumed)
            return answered;
        if constexpr (!haft::detail::in_word<Answer>)
            static_cast<Answer *>(place)->~Answer();
        tail_resumed = false;
        return {next, next->slot};
    }
};

/* Lives while other code runs on the stack of a clause. The clause is looked up twice, because a
   pointer to it would take room in every frame of a nested resume. */
struct resuming {
    HAFT_DETAIL_INLINE resuming() {
        if (clause_record *clause = *clause_here().word)
            clause->resumes++;
    }
    HAFT_DETAIL_INLINE ~resuming() {
        if (clause_record *clause = *clause_here().word)
            clause->resumes--;
    }
    resuming(const resuming &) = delete;
    resuming &operator=(const resuming &) = delete;
};

template <typename Answer, typename Out>
class resumption_base;
template <typename Answer, typename Out>
using haft_resumption = haft::resumption<typename haft::detail::signature<Answer, Out>::type>;

} // namespace detail

/* ---- Resumptions (§2.1, §2.4, §3.4) --------------------------------------------------------- */

/* Contents of a resumption while it is released: kept with the computation, so that nothing is
   allocated. */
template <typename Out, typename Answer>
class resumption_data {
    explicit resumption_data(detail::haft_resumption<Answer, Out> &&released) noexcept
        : suspended(std::move(released)) {}
    detail::haft_resumption<Answer, Out> suspended;
    template <typename, typename>
    friend class detail::resumption_base;
};

namespace detail {

template <typename Answer, typename Out>
class resumption_base : haft_resumption<Answer, Out> {
    using base = haft_resumption<Answer, Out>;

  public:
    using data_type = resumption_data<Out, Answer>;

    resumption_base() = default;
    /* Takes back what release() has returned; NULL makes an empty resumption. */
    resumption_base(data_type *released) noexcept
        : base(released != nullptr ? std::move(released->suspended) : base()) {}
    resumption_base(data_type &released) noexcept : base(std::move(released.suspended)) {}
    /* A function as a resumption: resume() calls the function. */
    resumption_base(std::function<typename haft::detail::signature<Answer, Out>::type> function)
        : base(haft::wrap<Out>(std::move(function)).template with_new<haft::handler<>>()) {}
    /* From a resumption of haft.hpp. */
    resumption_base(base &&other) noexcept : base(std::move(other)) {}

    /* Whether there is something to resume. */
    using base::operator bool;
    bool operator!() const noexcept { return this->task == nullptr; }

    /* Gives up the computation, to be owned by a new resumption made of what this returns. NULL if
       there is none. */
    data_type *release() noexcept {
        if (this->task == nullptr)
            return nullptr;
        static_assert(sizeof(data_type) == sizeof this->task->released);
        return ::new (this->task->released) data_type(std::move(*this));
    }

  protected:
    using running = haft::detail::answering<Answer>;
    template <typename... Value>
    HAFT_DETAIL_INLINE running run(Value &&...value) {
        resuming others;
        haft::detail::computation *suspended = this->use("resumed");
        return running(suspended, this->reply(suspended, static_cast<Value &&>(value)...));
    }

    /* Leaves the computation to the clause that runs, if it can. */
    template <typename... Value>
    HAFT_DETAIL_INLINE bool run_later(Value &&...value) {
        clause_record *clause = clause_to_leave<Answer>();
        if (clause == nullptr)
            return false;
        haft::detail::computation *suspended = this->use("resumed");
        clause->leave(suspended, this->reply(suspended, static_cast<Value &&>(value)...));
        return true;
    }
};

} // namespace detail

/*
 * Owns a computation that waits for an Out and, resumed, gives an Answer. One-shot and move-only: a
 * second use is an error that names the command. Destroying a resumption unwinds the computation's
 * stack. It may outlive the handle() that it comes from; its handler lives as long as it does.
 *
 * resume(value)         continues, and returns the answer.
 *
 * tail_resume(value)    to be the last thing that a clause does: continues after the clause is
 *                       gone, so that any number of such clauses run in constant space. The
 *                       clause's answer will be the computation's; tail_resume returns Answer().
 *                       Where that is not possible (outside clauses, in a clause with another type
 *                       of answer, or if there is no Answer()), tail_resume does what resume does.
 */
template <typename Answer, typename Out>
class resumption<Answer(Out)> : public detail::resumption_base<Answer, Out> {
  public:
    using detail::resumption_base<Answer, Out>::resumption_base;
    HAFT_DETAIL_INLINE Answer resume(Out value) && {
        return this->run(static_cast<Out &&>(value)).take();
    }
    HAFT_DETAIL_INLINE Answer tail_resume(Out value) && {
        if constexpr (detail::has_no_answer<Answer>)
            if (this->run_later(static_cast<Out &&>(value)))
                return Answer();
        return this->run(static_cast<Out &&>(value)).take();
    }
};

template <typename Answer>
class resumption<Answer()> : public detail::resumption_base<Answer, void> {
  public:
    using detail::resumption_base<Answer, void>::resumption_base;
    HAFT_DETAIL_INLINE Answer resume() && { return this->run().take(); }
    HAFT_DETAIL_INLINE Answer tail_resume() && {
        if constexpr (detail::has_no_answer<Answer>)
            if (this->run_later())
                return Answer();
        return this->run().take();
    }
};

/* ---- Handlers (§2.1, §2.4, §3.2) ------------------------------------------------------------ */

namespace detail {
struct access;

template <typename T>
const char *type_name() {
#ifdef __cpp_rtti
    return typeid(T).name();
#else
    return haft::detail::name_text_of<T>.text;
#endif
}
} // namespace detail

/* Refers to a handler; handle_ref gives one to its body, and find_handler returns one. May be
   copied freely; valid as long as the handler is around the code that invokes. */
class handler_ref {
  public:
    handler_ref() = default;
    bool operator==(const handler_ref &) const = default;
    /* The handler itself; NULL if it is not of this header. */
    metaframe *operator*() const;

  private:
    hafti_scope_t *scope = nullptr;
    friend struct detail::access;
};

/* The base of all handlers. */
class metaframe {
  public:
    /* The label that handle was given; a number of the library's own for a handler without a label.
       If a handler serves several computations, the label of the last. */
    std::int64_t label = 0;
    virtual ~metaframe() = default;
    /* Writes a line for debug_print_metastack. */
    virtual void debug_print() const { print<metaframe>(); }

  protected:
    template <typename Self, typename... Commands>
    void print() const {
#ifdef __cpp_rtti
        const char *type = typeid(*this).name();
#else
        const char *type = detail::type_name<Self>();
#endif
        std::cout << label << ":" << type;
        ((std::cout << "[" << detail::type_name<Commands>() << "]"), ...);
        std::cout << std::endl;
    }
};

/* The function that a handler has to define for a command. */
template <typename Answer, typename Cmd, detail::clause_mode mode>
class command_clause;

template <typename Answer, typename Cmd>
class command_clause<Answer, Cmd, detail::clause_mode::general> {
  public:
    virtual Answer handle_command(Cmd,
                                  resumption<typename Cmd::template resumption_type<Answer>>) = 0;
};
template <typename Answer, typename Cmd>
class command_clause<Answer, Cmd, detail::clause_mode::plain> {
  public:
    virtual typename Cmd::out_type handle_command(Cmd) = 0;
};
template <typename Answer, typename Cmd>
class command_clause<Answer, Cmd, detail::clause_mode::no_resume> {
  public:
    virtual Answer handle_command(Cmd) = 0;
};

/* The function that a handler has to define for the end of its computation. */
template <typename Answer, typename Body>
class return_clause {
  protected:
    virtual Answer handle_return(Body) = 0;
    friend struct detail::access;
};
template <typename Answer>
class return_clause<Answer, void> {
  protected:
    virtual Answer handle_return() = 0;
    friend struct detail::access;
};

/*
 * A handler is a class that derives from handler<Answer, Body, Commands...> and overrides
 *
 *     Answer handle_command(Cmd, resumption<Answer(Out)>)    for each Cmd; Answer() if Out is void
 *     Answer handle_return(Body)                             or handle_return(), if Body is void
 *
 * The clauses of commands with a modifier are in clause-modifiers.h. A clause runs outside its own
 * handler: what it invokes goes to the handlers further out. A handler lives until its computation
 * and all of its clauses have ended (§3.5).
 */
template <typename Answer, typename Body, typename... Cmds>
class handler
    : public metaframe,
      public return_clause<Answer, Body>,
      public command_clause<Answer, detail::command_of<Cmds>, detail::clause_entry<Cmds>::mode>... {
  public:
    using answer_type = Answer;
    using body_type = Body;
    void debug_print() const override {
        this->template print<handler, detail::command_of<Cmds>...>();
    }

    using command_clause<Answer, detail::command_of<Cmds>,
                         detail::clause_entry<Cmds>::mode>::handle_command...;
};

/* A handler whose answer is what the body returns, of any type, or nothing (§2.4). */
template <typename Answer, typename... Cmds>
class flat_handler : public handler<Answer, Answer, Cmds...> {
  protected:
    Answer handle_return(Answer answer) override { return static_cast<Answer &&>(answer); }
};
template <typename... Cmds>
class flat_handler<void, Cmds...> : public handler<void, void, Cmds...> {
  protected:
    void handle_return() override {}
};

namespace detail {

struct access {
    template <typename Answer, typename Body, typename... Result>
    static HAFT_DETAIL_INLINE Answer finish(return_clause<Answer, Body> &clause,
                                            Result &&...result) {
        return clause.handle_return(static_cast<Result &&>(result)...);
    }
    static hafti_scope_t *scope_of(handler_ref ref) { return ref.scope; }
    static handler_ref ref_to(hafti_scope_t *scope) {
        handler_ref ref;
        ref.scope = scope;
        return ref;
    }
};

/* ---- Frames ---- */

/* One handler of the chain. The label belongs to the frame: one handler may be in several. */
struct place {
    std::int64_t label;
    metaframe *handler;
};
struct HAFT_SHARED whereabouts : haft::effect<place> {};

/* The type of a clause, for haft.hpp, which does not call it: see general_clause below. */
template <typename Answer, typename Cmd, clause_mode mode>
struct frame_clause {
    Answer operator()(const Cmd &command, haft_resumption<Answer, typename Cmd::out_type> k);
};
template <typename Answer, typename Cmd>
struct frame_clause<Answer, Cmd, clause_mode::plain> {
    typename Cmd::out_type operator()(const Cmd &command);
};

template <typename Answer, typename Body, typename... Cmds>
handler<Answer, Body, Cmds...> base_of(const handler<Answer, Body, Cmds...> *);
template <typename H>
using base_handler = decltype(base_of(static_cast<H *>(nullptr)));

/* Stored: the handler, or a pointer to it. */
template <typename H, typename Stored, typename Base = base_handler<H>>
class frame;
template <typename H, typename Stored, typename Answer, typename Body, typename... Cmds>
class frame<H, Stored, cpp_effects::handler<Answer, Body, Cmds...>>
    : public haft::handler<whereabouts, command_of<Cmds>...>,
      public frame_clause<Answer, command_of<Cmds>, clause_entry<Cmds>::mode>... {
  public:
    template <typename... Args>
    HAFT_DETAIL_INLINE explicit frame(std::int64_t label_given, Args &&...args)
        : label(label_given), stored(static_cast<Args &&>(args)...) {
        handler().label = label;
    }

    using frame_clause<Answer, command_of<Cmds>, clause_entry<Cmds>::mode>::operator()...;
    place operator()(whereabouts) { return {label, &handler()}; }

    template <typename... Result>
    Answer on_return(Result &&...result) requires(sizeof...(Result) == !std::is_void_v<Body>) {
        return access::finish<Answer, Body>(handler(), static_cast<Result &&>(result)...);
    }

    H &handler() {
        if constexpr (std::is_same_v<H, Stored>)
            return stored;
        else
            return *stored;
    }

  private:
    std::int64_t label;
    Stored stored;
};

template <typename Cmd, typename Answer, typename Body, typename... Cmds>
constexpr bool lists(const handler<Answer, Body, Cmds...> *) {
    return (std::is_same_v<Cmd, command_of<Cmds>> || ...);
}

template <typename H, typename Cmd>
struct the_handler_does_not_list {
    static_assert(lists<Cmd>(static_cast<const H *>(nullptr)),
                  "cpp_effects: static_invoke_command names a handler that has no clause for this "
                  "command; the two types are above.");
};

/* The clause of a handler for a command. */
template <typename Cmd, typename Answer, clause_mode mode>
HAFT_DETAIL_INLINE command_clause<Answer, Cmd, mode> &
clause_for(command_clause<Answer, Cmd, mode> &clause) {
    return clause;
}

template <typename T>
inline constexpr bool is_frame = false;
template <typename H, typename Stored, typename Base>
inline constexpr bool is_frame<frame<H, Stored, Base>> = true;

} // namespace detail
} // namespace cpp_effects

namespace haft::detail {

/* A command is the invoker's own: a clause, or a default, gets a copy. */
template <typename Cmd>
requires cpp_effects::detail::is_command<Cmd>
struct passed<Cmd> {
    using default_t = typename Cmd::out_type(void *, Cmd *);
    static HAFT_DETAIL_INLINE Cmd on(const Cmd &command) { return command; }
    static default_t *to(default_t *given) {
        if (given == nullptr)
            return nullptr;
        chosen.store(given, std::memory_order_release);
        return [](void *state, Cmd *command) {
            Cmd copy(std::as_const(*command));
            return chosen.load(std::memory_order_acquire)(state, &copy);
        };
    }

  private:
    static inline std::atomic<default_t *> chosen = nullptr;
};

/* A plain clause is called as any function, so exceptions that leave it are the caller's. */
template <typename Holder, typename... Entries>
requires cpp_effects::detail::is_frame<typename Holder::H>
struct clause_table<Holder, effects<Entries...>> {
    template <typename Entry>
    static constexpr bool in_place = kind_of<typename Holder::H, Entry>() == clause_kind::tail;
    template <typename E>
    static result_of<E> call(void *state, E *payload) {
        auto &frame = static_cast<Holder *>(state)->handler();
        if constexpr (std::is_same_v<E, cpp_effects::detail::whereabouts>)
            return frame(*payload);
        else if constexpr (in_place<E>)
            return cpp_effects::detail::clause_for<E>(frame.handler())
                .handle_command(std::as_const(*payload));
        else
            __builtin_unreachable();
    }
    static inline const haft_clause_t clauses[] = {
        {effect_traits<Entries>::id(), reinterpret_cast<haft_function_t *>(&call<Entries>),
         in_place<Entries> ? HAFT_CLAUSE_TAIL : HAFT_CLAUSE_REQUEST, shape_of<Entries>}...};
    static inline const haft_handles_t handles = {sizeof...(Entries), 0, HAFTI_SET_FIXED, clauses};
};

/* The other clauses may tail-resume. */
template <typename Holder, typename Cmd>
requires cpp_effects::detail::is_frame<typename Holder::H>
struct general_clause<Holder, Cmd> {
    using Answer = typename Holder::Answer;
    static HAFT_DETAIL_INLINE ending call(typename Holder::H &frame, captured<Cmd> &computation,
                                          const Cmd &command, void *place) {
        auto &clause = cpp_effects::detail::clause_for<Cmd>(frame.handler());
        cpp_effects::detail::running_clause<Answer> running(computation.task);
        if constexpr (requires { clause.handle_command(command); }) {
            auto unused = computation.template resumption<Answer>();
            return running.ended(invoke(place, clause, command), place);
        } else {
            return running.ended(invoke(place, clause, command, computation), place);
        }
    }

  private:
    /* Like `answered`, without a copy of the answer in this frame. */
    template <typename Clause, typename... Captured>
    static HAFT_DETAIL_INLINE ending invoke(void *place, Clause &clause, const Cmd &command,
                                            Captured &...computation) {
        if constexpr (std::is_void_v<Answer>) {
            clause.handle_command(command, computation.template resumption<Answer>()...);
            return {nullptr, nullptr};
        } else if constexpr (in_word<Answer>) {
            return {nullptr, to_word<Answer>(clause.handle_command(
                                 command, computation.template resumption<Answer>()...))};
        } else {
            ::new (place) Answer(
                clause.handle_command(command, computation.template resumption<Answer>()...));
            return {nullptr, nullptr};
        }
    }
};

} // namespace haft::detail

namespace cpp_effects {
namespace detail {

/* ---- Handlers by label ---- */

/* The place of a scope that is a frame's. */
HAFT_DETAIL_INLINE place place_of(const hafti_scope_t *scope) {
    auto *clause =
        reinterpret_cast<place (*)(void *, whereabouts *)>(scope->handles->clauses[0].function);
    whereabouts asked;
    return clause(scope->state, &asked);
}
inline bool is_frame_scope(const hafti_scope_t *scope) {
    const haft_handles_t *handles = scope->handles;
    return handles != nullptr && handles->count != 0 &&
           handles->clauses[0].effect == haft::effect_traits<whereabouts>::id();
}

/* Entries of commands invoked at a label are marked by HAFTI_OTHER_MARK. */
__attribute__((cold, noinline)) inline hafti_found_t
look_up_label(std::int64_t label, haft_effect_t *effect, unsigned slot, std::uint32_t shape) {
    for (hafti_scope_t *scope = hafti_thread()->current; scope != nullptr; scope = scope->outer) {
        if (!is_frame_scope(scope) || label == no_label || place_of(scope).label != label)
            continue;
        const haft_handles_t *handles = scope->handles;
        for (std::uint32_t i = 0; i < handles->count; i++) {
            if (handles->clauses[i].effect != effect)
                continue;
            hafti_found_t found = haft_lookup_at(scope, effect, slot, shape);
            /* In one step, and unless a signal handler has used the slot since. */
            std::uintptr_t key = reinterpret_cast<std::uintptr_t>(effect) + HAFTI_AT_MARK +
                                 (found.with & HAFTI_CLAUSE_MARK);
            __atomic_compare_exchange_n(&hafti_entry_in(hafti_here().current, slot)->key, &key,
                                        key + HAFTI_OTHER_MARK - HAFTI_AT_MARK, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED);
            return found;
        }
        fail(HAFT_ERROR_UNHANDLED, effect,
             std::string("The command '") + effect->name + "' cannot be invoked at label " +
                 std::to_string(label) +
                 ": the handler with that label does not handle it. Label the handler that does.");
    }
    fail(HAFT_ERROR_NOT_AROUND, effect,
         std::string("The command '") + effect->name + "' cannot be invoked at label " +
             std::to_string(label) +
             ": no handler with that label is around the current code. Give the label to handle, "
             "and invoke the command inside.");
}

[[noreturn]] __attribute__((cold, noinline)) inline void empty_ref(const haft_effect_t *effect) {
    fail(HAFT_ERROR_BAD_ARGUMENT, effect,
         std::string("The command '") + effect->name +
             "' cannot be invoked by an empty handler_ref: handle_ref gives its body one that is "
             "not.");
}

template <typename Cmd>
HAFT_DETAIL_INLINE hafti_found_t find_label(hafti_here_t here, std::int64_t label) {
    using traits = haft::effect_traits<Cmd>;
    unsigned slot = traits::slot + static_cast<unsigned>(label);
    const hafti_cache_entry_t *entry = hafti_entry_in(here.current, slot);
    hafti_found_t found;
    if ((hafti_read_entry(entry, traits::id(), HAFTI_OTHER_MARK, &found) ||
         hafti_read_entry(entry, traits::id(), HAFTI_OTHER_MARK | HAFTI_CLAUSE_MARK, &found)) &&
        __builtin_expect(place_of(found.scope).label == label, true))
        return found;
    return look_up_label(label, traits::id(), slot, haft::detail::shape_of<Cmd>);
}

/* The performed object is the invoker's own: see `passed` above. */
template <typename Cmd>
HAFT_DETAIL_INLINE typename Cmd::out_type invoke_found(hafti_here_t here, hafti_found_t found,
                                                       hafti_scope_t *scope, const Cmd &cmd) {
    return haft::detail::perform_found(here, found, scope, const_cast<Cmd &>(cmd));
}

} // namespace detail

inline metaframe *handler_ref::operator*() const {
    return scope != nullptr && detail::is_frame_scope(scope) ? detail::place_of(scope).handler
                                                             : nullptr;
}

/* ---- Finding handlers ---- */

/* The innermost handler with the label. */
inline handler_ref find_handler(std::int64_t label) {
    for (hafti_scope_t *scope = hafti_thread()->current; scope != nullptr; scope = scope->outer)
        if (detail::is_frame_scope(scope) && label != detail::no_label &&
            detail::place_of(scope).label == label)
            return detail::access::ref_to(scope);
    detail::fail(HAFT_ERROR_NOT_AROUND, nullptr,
                 "No handler with the label " + std::to_string(label) +
                     " is around the current code. Give the label to handle, and look for it "
                     "inside.");
}

/* The innermost handler for the command, which invoke_command would reach; in constant time. */
template <typename Cmd>
HAFT_DETAIL_INLINE handler_ref find_handler() {
    hafti_here_t here = hafti_here();
    hafti_scope_t *scope = haft::detail::find<Cmd>(here).scope;
    if (__builtin_expect(scope->kind == HAFTI_SCOPE_DEFAULTS, false))
        hafti_unhandled(haft::effect_traits<Cmd>::id());
    return detail::access::ref_to(scope);
}

/* ---- Invoking (§2.1, §2.6, §3.3) ------------------------------------------------------------ */

/*
 * Invokes a command: at the innermost handler for it, at the innermost handler with a label, or at
 * the very handler of a reference; in constant time. The clause gets a copy of the command. Returns
 * what the command is resumed with. May not return: the handler may drop the computation, whose
 * destructors then run.
 */
template <typename Cmd>
HAFT_DETAIL_INLINE typename Cmd::out_type invoke_command(const Cmd &cmd) {
    hafti_here_t here = hafti_here();
    hafti_found_t found = haft::detail::find<Cmd>(here);
    return detail::invoke_found(here, found, found.scope, cmd);
}
template <typename Cmd>
HAFT_DETAIL_INLINE typename Cmd::out_type invoke_command(std::int64_t label, const Cmd &cmd) {
    hafti_here_t here = hafti_here();
    hafti_found_t found = detail::find_label<Cmd>(here, label);
    return detail::invoke_found(here, found, found.scope, cmd);
}
template <typename Cmd>
HAFT_DETAIL_INLINE typename Cmd::out_type invoke_command(handler_ref ref, const Cmd &cmd) {
    using traits = haft::effect_traits<Cmd>;
    hafti_here_t here = hafti_here();
    hafti_scope_t *scope = detail::access::scope_of(ref);
    if (__builtin_expect(scope == nullptr, false))
        detail::empty_ref(traits::id());
    hafti_found_t found =
        haft_find_at(here, scope, traits::id(), traits::slot + 2, haft::detail::shape_of<Cmd>);
    return detail::invoke_found(here, found, scope, cmd);
}

/* The same where the type of the handler is known. It makes no difference: handlers are found
   without looking at their types. */
template <typename H, typename Cmd>
HAFT_DETAIL_INLINE typename Cmd::out_type static_invoke_command(const Cmd &cmd) {
    (void)sizeof(detail::the_handler_does_not_list<H, Cmd>);
    return cpp_effects::invoke_command(cmd);
}
template <typename H, typename Cmd>
HAFT_DETAIL_INLINE typename Cmd::out_type static_invoke_command(std::int64_t label,
                                                                const Cmd &cmd) {
    (void)sizeof(detail::the_handler_does_not_list<H, Cmd>);
    return cpp_effects::invoke_command(label, cmd);
}
template <typename H, typename Cmd>
HAFT_DETAIL_INLINE typename Cmd::out_type static_invoke_command(handler_ref ref, const Cmd &cmd) {
    (void)sizeof(detail::the_handler_does_not_list<H, Cmd>);
    return cpp_effects::invoke_command(ref, cmd);
}
template <typename Cmd>
HAFT_DETAIL_INLINE typename Cmd::out_type static_invoke_command(std::int64_t label,
                                                                const Cmd &cmd) {
    return cpp_effects::invoke_command(label, cmd);
}

/* Returns a label that is unique in this process. Labels that programs choose are positive; these
   are not. Any thread may call this. */
inline std::int64_t fresh_label() {
    static std::atomic<std::int64_t> next{-10};
    return next.fetch_sub(1, std::memory_order_relaxed);
}

/*
 * Writes the handlers around the caller, innermost first, to std::cout: a line for each handler,
 * "label:type" and "[type]" for each command, with the compiler's names of types (type_info::name),
 * and -2 for the label of a handler without one; last the line of the thread's own stack. Handlers
 * that are not of this header are left out.
 */
inline void debug_print_metastack() {
    for (hafti_scope_t *scope = hafti_thread()->current; scope != nullptr; scope = scope->outer) {
        if (!detail::is_frame_scope(scope))
            continue;
        detail::place found = detail::place_of(scope);
        found.handler->label = found.label;
        found.handler->debug_print();
    }
    metaframe().debug_print();
}

/* ---- Handling (§2.1, §2.2) ------------------------------------------------------------------ */

namespace detail {

/* Whether this may be the body of a computation under the handler H. */
template <typename Body, typename H, typename... Argument>
inline constexpr bool is_body =
    std::is_invocable_r_v<typename H::body_type, std::decay_t<Body> &, Argument...>;

/* The one argument of an std::function. */
template <typename Body>
struct argument_of {};
template <typename Result, typename A>
struct argument_of<std::function<Result(A)>> {
    using type = A;
};

template <typename H, typename... Argument, typename Body>
HAFT_DETAIL_INLINE auto body_of(Body &&body) {
    return [function = std::decay_t<Body>(static_cast<Body &&>(body))](
               Argument... argument) mutable -> typename H::body_type {
        return static_cast<typename H::body_type>(function(static_cast<Argument &&>(argument)...));
    };
}
/* When a body starts, its own handler is the innermost one. */
template <typename H, typename Body>
HAFT_DETAIL_INLINE auto body_with_ref(Body &&body) {
    return [function = std::decay_t<Body>(static_cast<Body &&>(body))]() mutable ->
           typename H::body_type {
               return static_cast<typename H::body_type>(
                   function(access::ref_to(hafti_thread()->current)));
           };
}

template <typename H, typename Stored, typename Body, typename... Args>
HAFT_DETAIL_INLINE typename H::answer_type run(std::int64_t label, Body &&body, Args &&...args) {
    resuming others;
    return haft::handle(std::move(body))
        .template with_new<frame<H, Stored>>(label, static_cast<Args &&>(args)...);
}

template <typename H, typename Stored, typename Out, typename Body, typename... Args>
HAFT_DETAIL_INLINE auto make(std::int64_t label, Body &&body, Args &&...args) {
    return resumption<typename haft::detail::signature<typename H::answer_type, Out>::type>(
        haft::wrap<Out>(std::move(body))
            .template with_new<frame<H, Stored>>(label, static_cast<Args &&>(args)...));
}

template <typename H>
std::shared_ptr<H> present(std::shared_ptr<H> &&handler, const char *function) {
    if (handler == nullptr)
        fail(HAFT_ERROR_BAD_ARGUMENT, nullptr,
             std::string("cpp_effects::") + function + " was given no handler (a null pointer).");
    return std::move(handler);
}

} // namespace detail

/*
 * handle<H>([label,] body, arguments...)    Runs the body under a new H(arguments...), and returns
 *                                           the answer.
 * handle_with([label,] body, handler)       The same under an existing handler.
 * handle_ref, handle_with_ref               The body is given a handler_ref to its handler.
 *
 * Any callable is a body; it is copied or moved. A handler whose commands are all plain needs no
 * stack of its own. If memory is exhausted: std::bad_alloc.
 */
template <typename H, typename Body, typename... Args>
requires detail::is_body<Body, H> HAFT_DETAIL_INLINE typename H::answer_type
handle(Body &&body, Args &&...args) {
    return detail::run<H, H>(detail::no_label, detail::body_of<H>(static_cast<Body &&>(body)),
                             static_cast<Args &&>(args)...);
}
template <typename H, typename Body, typename... Args>
requires detail::is_body<Body, H> HAFT_DETAIL_INLINE typename H::answer_type
handle(std::int64_t label, Body &&body, Args &&...args) {
    return detail::run<H, H>(label, detail::body_of<H>(static_cast<Body &&>(body)),
                             static_cast<Args &&>(args)...);
}
template <typename H, typename Body, typename... Args>
requires detail::is_body<Body, H, handler_ref> HAFT_DETAIL_INLINE typename H::answer_type
handle_ref(Body &&body, Args &&...args) {
    return detail::run<H, H>(detail::no_label, detail::body_with_ref<H>(static_cast<Body &&>(body)),
                             static_cast<Args &&>(args)...);
}
template <typename H, typename Body, typename... Args>
requires detail::is_body<Body, H, handler_ref> HAFT_DETAIL_INLINE typename H::answer_type
handle_ref(std::int64_t label, Body &&body, Args &&...args) {
    return detail::run<H, H>(label, detail::body_with_ref<H>(static_cast<Body &&>(body)),
                             static_cast<Args &&>(args)...);
}
template <typename H, typename Body>
requires detail::is_body<Body, H> HAFT_DETAIL_INLINE typename H::answer_type
handle_with(std::int64_t label, Body &&body, std::shared_ptr<H> handler) {
    return detail::run<H, std::shared_ptr<H>>(label, detail::body_of<H>(static_cast<Body &&>(body)),
                                              detail::present(std::move(handler), "handle_with"));
}
template <typename H, typename Body>
requires detail::is_body<Body, H> HAFT_DETAIL_INLINE typename H::answer_type
handle_with(Body &&body, std::shared_ptr<H> handler) {
    return cpp_effects::handle_with<H>(detail::no_label, static_cast<Body &&>(body),
                                       std::move(handler));
}
template <typename H, typename Body>
requires detail::is_body<Body, H, handler_ref> HAFT_DETAIL_INLINE typename H::answer_type
handle_with_ref(std::int64_t label, Body &&body, std::shared_ptr<H> handler) {
    return detail::run<H, std::shared_ptr<H>>(
        label, detail::body_with_ref<H>(static_cast<Body &&>(body)),
        detail::present(std::move(handler), "handle_with_ref"));
}
template <typename H, typename Body>
requires detail::is_body<Body, H, handler_ref> HAFT_DETAIL_INLINE typename H::answer_type
handle_with_ref(Body &&body, std::shared_ptr<H> handler) {
    return cpp_effects::handle_with_ref<H>(detail::no_label, static_cast<Body &&>(body),
                                           std::move(handler));
}

/*
 * wrap<H>([label,] body, arguments...)      The computation that handle would run, as a resumption:
 *                                           it starts when it is resumed.
 * wrap<H, A>([label,] body, arguments...)   The body takes an A, which the resumption is given. If
 *                                           the body is an std::function, A need not be written.
 * wrap_with([label,] body, handler)         The same with an existing handler; wrap_with<H, A>.
 */
template <typename H, typename Body, typename... Args>
requires detail::is_body<Body, H> HAFT_DETAIL_INLINE resumption<typename H::answer_type()>
wrap(std::int64_t label, Body &&body, Args &&...args) {
    return detail::make<H, H, void>(label, detail::body_of<H>(static_cast<Body &&>(body)),
                                    static_cast<Args &&>(args)...);
}
template <typename H, typename Body, typename... Args>
requires detail::is_body<Body, H> HAFT_DETAIL_INLINE resumption<typename H::answer_type()>
wrap(Body &&body, Args &&...args) {
    return cpp_effects::wrap<H>(detail::no_label, static_cast<Body &&>(body),
                                static_cast<Args &&>(args)...);
}
template <typename H, typename A, typename Body, typename... Args>
requires detail::is_body<Body, H, A> HAFT_DETAIL_INLINE resumption<typename H::answer_type(A)>
wrap(std::int64_t label, Body &&body, Args &&...args) {
    return detail::make<H, H, A>(label, detail::body_of<H, A>(static_cast<Body &&>(body)),
                                 static_cast<Args &&>(args)...);
}
template <typename H, typename A, typename Body, typename... Args>
requires detail::is_body<Body, H, A> HAFT_DETAIL_INLINE resumption<typename H::answer_type(A)>
wrap(Body &&body, Args &&...args) {
    return cpp_effects::wrap<H, A>(detail::no_label, static_cast<Body &&>(body),
                                   static_cast<Args &&>(args)...);
}
template <typename H, typename Body, typename... Args,
          typename A = typename detail::argument_of<std::decay_t<Body>>::type>
HAFT_DETAIL_INLINE resumption<typename H::answer_type(A)> wrap(std::int64_t label, Body &&body,
                                                               Args &&...args) {
    return cpp_effects::wrap<H, A>(label, static_cast<Body &&>(body),
                                   static_cast<Args &&>(args)...);
}
template <typename H, typename Body, typename... Args,
          typename A = typename detail::argument_of<std::decay_t<Body>>::type>
HAFT_DETAIL_INLINE resumption<typename H::answer_type(A)> wrap(Body &&body, Args &&...args) {
    return cpp_effects::wrap<H, A>(static_cast<Body &&>(body), static_cast<Args &&>(args)...);
}
template <typename H, typename Body>
requires detail::is_body<Body, H> HAFT_DETAIL_INLINE resumption<typename H::answer_type()>
wrap_with(std::int64_t label, Body &&body, std::shared_ptr<H> handler) {
    return detail::make<H, std::shared_ptr<H>, void>(
        label, detail::body_of<H>(static_cast<Body &&>(body)),
        detail::present(std::move(handler), "wrap_with"));
}
template <typename H, typename Body>
requires detail::is_body<Body, H> HAFT_DETAIL_INLINE resumption<typename H::answer_type()>
wrap_with(Body &&body, std::shared_ptr<H> handler) {
    return cpp_effects::wrap_with<H>(detail::no_label, static_cast<Body &&>(body),
                                     std::move(handler));
}
template <typename H, typename A, typename Body>
requires detail::is_body<Body, H, A> HAFT_DETAIL_INLINE resumption<typename H::answer_type(A)>
wrap_with(std::int64_t label, Body &&body, std::shared_ptr<H> handler) {
    return detail::make<H, std::shared_ptr<H>, A>(label,
                                                  detail::body_of<H, A>(static_cast<Body &&>(body)),
                                                  detail::present(std::move(handler), "wrap_with"));
}
template <typename H, typename A, typename Body>
requires detail::is_body<Body, H, A> HAFT_DETAIL_INLINE resumption<typename H::answer_type(A)>
wrap_with(Body &&body, std::shared_ptr<H> handler) {
    return cpp_effects::wrap_with<H, A>(detail::no_label, static_cast<Body &&>(body),
                                        std::move(handler));
}

} // namespace cpp_effects

#include "clause-modifiers.h"

#endif
