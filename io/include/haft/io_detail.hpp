// SPDX-License-Identifier: MIT
/*
 * How haft/io.hpp carries values and exceptions through tasks of C; not for users.
 *
 * A task's function stores its result, or the exception that it throws, in an outcome. Each scope
 * that this header opens has a frame, which lists the outcomes that are exceptions, in order; tasks
 * find the frame by a task-local value, which they inherit. An outcome is listed before the scope
 * is cancelled, and before the task ends.
 */
#ifndef HAFT_IO_DETAIL_HPP
#define HAFT_IO_DETAIL_HPP

#include "io.h"

#include <cxxabi.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <concepts>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <forward_list>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <typeinfo>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace haft::io {

/* Thrown by a cancelled wait. It is not a std::exception, so code that catches these around a
   request lets it pass. */
struct __attribute__((visibility("default"))) cancelled {};

namespace detail {

struct resolve_category final : std::error_category {
    const char *name() const noexcept override { return "resolve"; }
    std::string message(int code) const override {
        return haft_io_error_text(HAFT_IO_ERROR_OF_RESOLVER + code);
    }
};
inline const resolve_category resolve_errors;

inline std::error_code error_of(int result) {
    return result < HAFT_IO_ERROR_OF_RESOLVER
               ? std::error_code(result - HAFT_IO_ERROR_OF_RESOLVER, resolve_errors)
               : std::error_code(-result, std::generic_category());
}

/* The text of a failure, without the words for the error at its end: std::system_error adds
   them. */
inline std::string without_error(std::string text, int result) {
    std::string words = ": " + error_of(result).message();
    if (text.ends_with(words))
        text.erase(text.size() - words.size());
    return text;
}

/* The text is that of the refusal, if the call was refused for a mistake of the program. */
[[noreturn, gnu::cold, gnu::noinline]] inline void throw_error(int result, const char *what) {
    char words[400];
    if (haft_take_refusal(result, words, sizeof words))
        what = words;
    throw std::system_error(error_of(result), what);
}

/* Returns a result of haft/io.h, or throws if it is an error. */
template <std::signed_integral N>
N checked(N result, const char *what) {
    if (result == -ECANCELED)
        throw cancelled();
    if (result < 0)
        throw_error(static_cast<int>(result), what);
    return result;
}
template <std::signed_integral N, std::invocable F>
N checked(N result, F what) {
    return result >= 0 ? result : checked(result, what().c_str());
}
template <std::signed_integral N>
std::size_t counted(N result, const char *what) {
    return static_cast<std::size_t>(checked(result, what));
}
/* True when it was done, false at the deadline. */
inline bool in_time(int result, const char *what) {
    return result != -ETIMEDOUT && checked(result, what) >= 0;
}

/* void, or a reference, as a value. */
template <typename T>
struct as_kept {
    using type = T;
};
template <>
struct as_kept<void> {
    using type = std::monostate;
};
template <typename T>
struct as_kept<T &> {
    using type = std::reference_wrapper<T>;
};
template <typename T>
struct as_kept<T &&> {
    using type = T;
};
template <typename T>
using kept = typename as_kept<T>::type;

template <typename F, typename... Arguments>
auto call(F &function, Arguments &&...arguments) -> kept<std::invoke_result_t<F &, Arguments...>> {
    if constexpr (std::is_void_v<std::invoke_result_t<F &, Arguments...>>)
        return std::invoke(function, std::forward<Arguments>(arguments)...), std::monostate();
    else
        return std::invoke(function, std::forward<Arguments>(arguments)...);
}
template <typename T>
T as_result(kept<T> &&value) {
    if constexpr (!std::is_void_v<T>)
        return std::move(value);
}

/* The exception of a call that threw. */
struct failed_call {
    std::exception_ptr failure;
    bool was_cancelled = false;
    std::atomic<bool> failed =
        false; /* set together with `failure`, for readers before the task's end */
    std::atomic<bool> joined = false;  /* a join has thrown it */
    std::shared_ptr<failed_call> next; /* in a frame */
};

template <typename T>
struct outcome : failed_call {
    std::optional<kept<T>> value;

    /* Calls the function and keeps its exception. The forced unwinding of a fiber passes
       through. */
    template <typename F, typename... Arguments>
    void take_from(F &function, Arguments &&...arguments) {
        try {
            value.emplace(detail::call(function, std::forward<Arguments>(arguments)...));
        } catch (const cancelled &) {
            failure = std::current_exception();
            was_cancelled = true;
        } catch (...) {
            failure = std::current_exception();
            if (failure == nullptr) /* not an exception: a fiber is being unwound */
                throw;
            failed.store(true, std::memory_order_release);
        }
    }
    T take() {
        if (failure != nullptr)
            std::rethrow_exception(failure);
        return as_result<T>(std::move(value).value());
    }
};

/* The identity of the exception being handled. */
inline std::string type_of_exception() {
    const char *name = abi::__cxa_current_exception_type()->name();
    std::unique_ptr<char, decltype(&std::free)> words(
        abi::__cxa_demangle(name, nullptr, nullptr, nullptr), &std::free);
    return words != nullptr ? words.get() : name;
}

inline std::string all_words_of(const std::exception_ptr &failure) {
    try {
        std::rethrow_exception(failure);
    } catch (const std::exception &error) {
        return type_of_exception() + ": " + error.what();
    } catch (...) {
        return type_of_exception();
    }
}
/* The words of an exception. Without memory for them they are "out of memory", because the callers
   return into C. */
inline std::string words_of(const std::exception_ptr &failure) noexcept {
    try {
        return all_words_of(failure);
    } catch (...) {
        return "out of memory"; /* short enough to need none */
    }
}

inline void print_failure(const std::exception_ptr &failure, const char *scope) {
    std::string what = words_of(failure);
    std::fprintf(stderr, "haft: a further failure in the scope '%s': %s\n",
                 scope != nullptr ? scope : "", what.c_str());
}

/* The code of a scope that an exception has ended. */
inline constexpr int by_exception = HAFT_IO_BY_EXCEPTION;

/* Tells exceptions apart: an exception_ptr holds the exception's address and nothing else. */
inline const void *identity_of(const std::exception_ptr &exception) {
    static_assert(sizeof exception == sizeof(const void *));
    const void *address;
    std::memcpy(&address, static_cast<const void *>(&exception), sizeof address);
    return address;
}

/* The function of scope_options::on_failure. */
using failure_function = std::function<void(std::exception_ptr failure, std::string_view task)>;

struct frame {
    frame *outer = nullptr; /* of the surrounding scope; the first scope of a run has none */
    std::size_t depth = 0;
    haft_io_scope_t *scope = nullptr;
    const failure_function *on_failure = nullptr;
    std::mutex mutex; /* never held across a wait */
    std::shared_ptr<failed_call> first, last;
    /* Identities of the listed exceptions, by identity_of(). When memory runs out some are missing,
       so an exception that leaves the scope in two ways may count twice. */
    std::unordered_map<const void *, failed_call *> listed;

    void open_in(frame *around) {
        outer = around;
        depth = around != nullptr ? around->depth + 1 : 0;
    }
    ~frame() { /* one by one: a recursive destructor could overflow the stack */
        last = nullptr;
        while (first != nullptr)
            first = std::exchange(first->next, nullptr);
    }
    /* The exception has left the body or a task: the scope is to throw it, once. */
    void fail(std::shared_ptr<failed_call> call) {
        note(std::move(call));
        haft_io_note_failure(by_exception, "an exception");
        haft_io_scope_cancel(scope); /* which may be further out, if C code has opened a scope in
                                        between */
    }
    /* An exception of a task. A scope that has `on_failure` goes on, unless that throws. */
    void task_failed(std::shared_ptr<failed_call> call) {
        if (on_failure == nullptr) {
            fail(std::move(call));
            return;
        }
        try {
            (*on_failure)(call->failure, haft_io_task_name(haft_io_self()));
        } catch (...) {
            fail(std::current_exception());
        }
    }
    void fail(std::exception_ptr failure) {
        auto call = std::make_shared<failed_call>();
        call->failure = std::move(failure);
        fail(std::move(call));
    }
    void note(std::shared_ptr<failed_call> call) {
        std::lock_guard lock(mutex);
        try {
            auto [known, is_new] = listed.try_emplace(identity_of(call->failure), call.get());
            if (!is_new) { /* a join threw this exception here */
                known->second->joined = false;
                return;
            }
        } catch (const std::bad_alloc &) {
        }
        (last != nullptr ? last->next : first) = call;
        last = std::move(call);
    }
    /* Throws the scope's exception, if there is one; the others go to `failures`, or to standard
       error. */
    std::exception_ptr first_failure(std::vector<std::exception_ptr> *failures, const char *name) {
        std::exception_ptr thrown;
        if (failures != nullptr)
            failures->clear();
        for (auto call = first; call != nullptr; call = call->next) {
            if (call->joined)
                continue;
            if (failures != nullptr)
                failures->push_back(call->failure);
            else if (thrown != nullptr)
                print_failure(call->failure, name);
            if (thrown == nullptr)
                thrown = call->failure;
        }
        return thrown;
    }
};
__attribute__((visibility("default"))) inline char frame_key;

inline frame *current_frame() {
    return static_cast<frame *>(haft_io_local_get(&frame_key));
}
[[noreturn]] inline void throw_outside() {
    throw std::logic_error("haft: a task is started outside of haft::io::run() and scope()");
}

/*
 * Where a task is started. The scope is libhaft-io's; the frame is what this header keeps of it, or
 * nullptr where C code has opened the scope: then an exception of a task is a failure of that scope
 * like any other.
 */
struct home {
    haft_io_scope_t *scope = nullptr; /* nullptr: outside of a run */
    frame *in = nullptr;
    bool is_current =
        false; /* that of its maker; while that is in it, it may send tasks elsewhere */

    static home current() {
        haft_io_scope_t *here = haft_io_this_scope();
        frame *found = current_frame();
        return {here, found != nullptr && found->scope == here ? found : nullptr, true};
    }
    static home of(haft_io_scope_t *scope) {
        frame *found = current_frame();
        while (found != nullptr && found->scope != scope)
            found = found->outer;
        return {scope, found};
    }
    /* The innermost frame that is around the scope, or of it. */
    frame *frame_around() const {
        if (in != nullptr)
            return in;
        frame *found = current_frame();
        while (found != nullptr && found->scope != nullptr &&
               !haft_io_scope_is_in(scope, found->scope))
            found = found->outer;
        return found;
    }
};

/* An exception has left the current task, at its end. */
inline void task_failed(std::shared_ptr<failed_call> call) {
    if (frame *in = home::current().in)
        in->task_failed(std::move(call));
    else
        haft_io_note_failure(by_exception, words_of(call->failure).c_str());
}

/* Sets a value of the current task while the object lives. */
class bound {
  public:
    bound(const void *at, void *value) : key(at), before(haft_io_local_get(at)) {
        if (haft_io_local_set(at, value) != 0)
            throw std::bad_alloc();
    }
    /* If there were no memory the task would keep a dangling value. */
    ~bound() {
        if (haft_io_local_set(key, before) != 0)
            std::terminate();
    }
    bound(const bound &) = delete;
    bound &operator=(const bound &) = delete;

  private:
    const void *key;
    void *before;
};

/* A value of io::local, for the tasks of a scope. */
struct local_binding {
    const void *key;
    void *before;
    local_binding *outer;   /* the task's previous value */
    frame *scope = nullptr; /* the scope of the value; the value is gone when the scope has ended */
};
__attribute__((visibility("default"))) inline char bindings_key;

inline local_binding *current_bindings() {
    return static_cast<local_binding *>(haft_io_local_get(&bindings_key));
}

inline bool is_around(const frame *outer, const frame *inner) {
    while (inner != nullptr && inner->depth > outer->depth)
        inner = inner->outer;
    return inner == outer;
}

/* While the object lives, the current task has the values that a task of that scope is to
   inherit. */
class inherited {
  public:
    explicit inherited(frame *in) {
        if (current_frame() == in)
            return;
        bounds.emplace_front(&frame_key, in);
        local_binding *first = current_bindings(), *kept = first;
        for (; kept != nullptr && !is_around(kept->scope, in); kept = kept->outer)
            bounds.emplace_front(kept->key, kept->before);
        if (kept != first)
            bounds.emplace_front(&bindings_key, kept);
    }

  private:
    std::forward_list<bound> bounds; /* ended in the reverse order */
};

/* A call of a scope's body. F takes the scope, or nothing. */
template <typename F, typename Scope>
struct body {
    static constexpr bool takes_scope = std::is_invocable_v<F &, Scope>;
    static auto result_of() {
        if constexpr (takes_scope)
            return std::type_identity<std::invoke_result_t<F &, Scope>>();
        else
            return std::type_identity<std::invoke_result_t<F &>>();
    }
    using result = typename decltype(result_of())::type;

    F &function;
    std::vector<std::exception_ptr> *failures;
    const char *name;
    bool first; /* of its run: no frame surrounds it */
    outcome<result> out = {};
    frame in = {}; /* it may list `out` */

    static void *enter(void *argument) {
        auto &self = *static_cast<body *>(argument);
        haft_io_return_cancels(true);
        self.in.scope = haft_io_this_scope();
        if (self.first && haft_io_local_set(&frame_key, &self.in) != 0)
            haft_io_fail(-ENOMEM, "no memory for a scope");
        self.call_function();
        if (self.out.failed) /* lives as long as the frame does */
            self.in.fail(std::shared_ptr<failed_call>(std::shared_ptr<void>(), &self.out));
        return nullptr;
    }
    /* Outside of a run. */
    void enter_alone() {
        call_function();
        if (out.failed)
            in.note(std::shared_ptr<failed_call>(std::shared_ptr<void>(), &out));
    }
    void call_function() {
        if constexpr (takes_scope)
            out.take_from(function, Scope(in));
        else
            out.take_from(function);
    }

    /* Called when all tasks have ended. */
    result leave(int code, const char *what) {
        std::exception_ptr thrown = in.first_failure(failures, name);
        /* The body was interrupted after a join had thrown an exception there. */
        if (thrown == nullptr && in.first != nullptr && out.was_cancelled)
            thrown = in.first->failure;
        if (thrown != nullptr)
            std::rethrow_exception(thrown);
        if (!out.value.has_value() || (code != by_exception && code != -ECANCELED))
            checked(code, what);
        return out.take();
    }
};

/* Stops the token's source when the scope is cancelled. */
struct stop_on_cancel : haft_io_on_cancel_t {
    explicit stop_on_cancel(std::stop_source stopped)
        : haft_io_on_cancel_t{&finish, nullptr}, source(std::move(stopped)) {}
    static void finish(haft_io_on_cancel_t *self, bool cancelled) {
        std::unique_ptr<stop_on_cancel> own(static_cast<stop_on_cancel *>(self));
        if (cancelled)
            own->source.request_stop();
    }
    std::stop_source source;
};

template <typename F, typename Scope>
typename body<F, Scope>::result open_scope(haft_io_scope_options_t given,
                                           std::vector<std::exception_ptr> *failures, F &function,
                                           std::unique_ptr<stop_on_cancel> on_cancel = nullptr,
                                           const failure_function *on_failure = nullptr) {
    body<F, Scope> body{function, failures, given.name, false};
    body.in.on_failure = on_failure;
    if (haft_io_this_scope() == nullptr) {
        body.enter_alone();
        return body.leave(0, "scope");
    }
    body.in.open_in(current_frame());
    bound here(&frame_key, &body.in);
    given.on_cancel = on_cancel.release();
    return body.leave(haft_io_scope_with(&given, &body.enter, &body, nullptr), "scope");
}

template <typename F>
struct job : outcome<std::invoke_result_t<F &>> {
    explicit job(F &&from) : function(std::move(from)) {}
    ~job() {
        if (has_function)
            function.~F();
    }
    union {
        F function;
    };
    bool has_function = true;
    std::shared_ptr<job> self; /* until the task has started */
    const char *name = nullptr;

    static void *start(void *argument) {
        std::shared_ptr<job> here = std::move(static_cast<job *>(argument)->self);
        haft_io_return_cancels(true);
        here->take_from(here->function);
        std::exception_ptr further = here->end_function();
        if (here->failed)
            task_failed(here);
        if (further != nullptr) {
            auto call = std::make_shared<failed_call>();
            call->failure = std::move(further);
            task_failed(std::move(call));
        }
        return nullptr;
    }
    /* Destroys the captures at the end of the task. If a destructor throws, the task has failed
       with that exception; if the task had already failed, the exception is returned. */
    std::exception_ptr end_function() {
        has_function = false;
        try {
            function.~F();
        } catch (...) {
            std::exception_ptr thrown = std::current_exception();
            if (thrown == nullptr) /* as in take_from() */
                throw;
            if (this->failed)
                return thrown;
            this->failure = std::move(thrown);
            this->failed.store(true, std::memory_order_release);
        }
        return nullptr;
    }
};

} // namespace detail
} // namespace haft::io

#endif
