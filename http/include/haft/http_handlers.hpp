// SPDX-License-Identifier: MIT
/*
 * Haft HTTP for C++20: how functions become handlers, middleware and clauses of C. haft/http.hpp
 * includes this file.
 *
 * No exception crosses C. detail::call() catches what a function throws and hands it to C as a
 * haft_http_thrown_t, which next::operator() throws again further out; where no middleware catches
 * it, conclude() makes the answer. A cancel goes out as -ECANCELED, and becomes an unwinding of the
 * task in the outermost call only.
 */
#ifndef HAFT_HTTP_HANDLERS_HPP
#define HAFT_HTTP_HANDLERS_HPP

#include <haft.hpp>
#include <haft/http_request.hpp>
#include <haft/scopes.h>

#include <concepts>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace haft::http {

namespace detail {

inline void answer_with(request &, std::monostate) {}
inline void answer_with(request &in, const response &whole) {
    in.answer(whole);
}
inline void answer_with(request &in, std::string_view text) {
    in.answer(200, text);
}
inline void answer_with(request &in, const char *text) {
    in.answer(200, text);
}

template <typename T>
concept answers = std::is_void_v<T> || requires(request &in, T value) {
    answer_with(in, value);
};

/* An exception on its way out through the middleware, as haft/http.h carries it. */
struct thrown : haft_http_thrown_t {
    explicit thrown(std::exception_ptr leaving)
        : haft_http_thrown_t{&conclude, &free}, exception(std::move(leaving)) {}

    static int conclude(haft_http_thrown_t *carried, haft_http_request_t *in) {
        auto *self = static_cast<thrown *>(carried);
        try {
            std::rethrow_exception(self->exception);
        } catch (const error &refused) {
            int status = refused.status();
            if (refused.type().empty() || status < 400 || status > 599)
                return haft_http_request_refuse(in, status,
                                                *refused.what() != '\0' ? refused.what() : nullptr);
            if (haft_http_answer_status(in) != 0) /* otherwise the fields that were set stay */
                haft_http_answer_discard(in);
            return haft_http_answer(in, status, refused.type().c_str(), refused.what(),
                                    std::strlen(refused.what()));
        } catch (...) {
            if (int of_body = haft_http_request_body_error(in))
                return of_body;
            haft_http_request_note_failure(in, io::detail::words_of(self->exception).c_str());
            return HAFT_IO_BY_EXCEPTION;
        }
    }
    static void free(haft_http_thrown_t *carried) { delete static_cast<thrown *>(carried); }

    std::exception_ptr exception;
};

/* While the object lives, a cancelled wait throws io::cancelled, which a catch (...) may catch. */
class throwing_cancels {
  public:
    throwing_cancels() : before(haft_io_return_cancels(true)) {}
    ~throwing_cancels() { haft_io_return_cancels(before); }
    throwing_cancels(const throwing_cancels &) = delete;
    throwing_cancels &operator=(const throwing_cancels &) = delete;

  private:
    bool before;
};

/* Calls the function, and gives what it throws to the middleware around, or to the server. A cancel
   goes out as -ECANCELED up to the outermost call, which lets the task be unwound. */
template <typename F>
int call(haft_http_request_t *state, F &&function) {
    request in(state);
    try {
        throwing_cancels here;
        function(in);
        return 0;
    } catch (const io::cancelled &) { /* goes on below, since no exception may leave the handler */
    } catch (...) {
        std::exception_ptr leaving = std::current_exception();
        if (leaving == nullptr) /* no exception: a task is unwound */
            throw;
        if (auto *carried = new (std::nothrow) thrown(std::move(leaving)))
            return haft_http_request_carry(state, carried);
        return -ENOMEM;
    }
    return haft_io_unwind_cancelled();
}

/* The server with the functions that it owns; it outlives the routes. */
struct server_state {
    server_state() : state(haft_http_server_new()) {
        if (state == nullptr)
            throw std::bad_alloc();
    }
    struct free {
        void operator()(haft_http_server_t *owned) const { haft_http_server_free(owned); }
    };
    std::unique_ptr<haft_http_server_t, free> state;
    std::vector<std::shared_ptr<void>> functions;
};

} // namespace detail

/* A function of the request that returns an answer, or nothing. */
template <typename F>
concept handler =
    std::invocable<F &, request &> && detail::answers<std::invoke_result_t<F &, request &>>;

/* The rest of the handlers, for middleware: next() answers the request, and throws what a handler,
   or middleware further in, has thrown. Where a handler of C has returned an error, next() returns,
   and the error goes on outwards when the middleware does. A copy is used, as it is, while the
   middleware runs. A cancel is io::cancelled; an effect that nobody handles, and haft_io_fail, are
   no exceptions: a catch (...) rethrows them where it ends. */
class next {
  public:
    void operator()() const {
        *code = call();
        if (*code == -ECANCELED) {
            *code = 0;
            throw io::cancelled();
        }
        haft_http_thrown_t *carried =
            *code == HAFT_IO_BY_EXCEPTION ? haft_http_request_take_thrown(wrapped) : nullptr;
        if (carried == nullptr)
            return;
        *code = 0;
        std::exception_ptr exception = static_cast<detail::thrown *>(carried)->exception;
        detail::thrown::free(carried);
        std::rethrow_exception(std::move(exception));
    }

  private:
    friend class routes;
    next(haft_http_next_t *further, haft_http_request_t *request, int *result)
        : inner(further), wrapped(request), code(result) {}
    int call() const {
        try {
            return inner->call(inner, wrapped);
        } catch (...) { /* a task is unwound, since C passes no exceptions on */
            haft_http_request_unwound(wrapped);
            throw;
        }
    }
    haft_http_next_t *inner;
    haft_http_request_t *wrapped;
    int *code;
};

namespace detail {

/* The effect that a function for routes::handle takes. */
template <typename Parameters>
struct taken_by {};
template <typename E>
requires is_effect<std::remove_cvref_t<E>>
struct taken_by<effects<E>> {
    using effect = std::remove_cvref_t<E>;
    template <typename F>
    static decltype(auto) call(F &function, haft_http_request_t *, effect &performed) {
        return function(haft::detail::passed<effect>::on(performed));
    }
};
template <typename E>
requires is_effect<std::remove_cvref_t<E>>
struct taken_by<effects<request &, E>> {
    using effect = std::remove_cvref_t<E>;
    template <typename F>
    static decltype(auto) call(F &function, haft_http_request_t *wrapped, effect &performed) {
        request in(wrapped);
        return function(in, haft::detail::passed<effect>::on(performed));
    }
};
template <typename F>
using taken = taken_by<typename haft::detail::signature_of<decltype(&F::operator())>::parameters>;
template <typename F>
inline constexpr bool is_raising = false;
template <typename F>
inline constexpr bool is_raising<raising<F>> = true;

/* In a clause: what it has thrown goes out through the middleware around the handler. */
[[noreturn]] inline void leave_handling(const haft_http_handling_t *handling,
                                        std::exception_ptr thrown_by_clause) {
    auto *carried = new (std::nothrow) thrown(std::move(thrown_by_clause));
    haft_http_handling_leave(handling, carried != nullptr
                                           ? haft_http_request_carry(handling->request, carried)
                                           : -ENOMEM);
}

} // namespace detail

/* A function object that handles an effect around handlers: it takes the effect, or `request &` and
   the effect, and returns the result of the perform. */
template <typename F>
concept clause = requires {
    typename detail::taken<F>::effect;
};

namespace detail {

/* The functions of routes::handle, and the table for haft_http_server_handle. */
template <clause... F>
struct clauses {
    std::tuple<F...> functions;

    template <typename Function, typename E = typename taken<Function>::effect>
    static result_of<E> call_plainly(const haft_http_handling_t *handling, E *performed) {
        auto &function = std::get<Function>(static_cast<clauses *>(handling->argument)->functions);
        return static_cast<result_of<E>>(
            taken<Function>::call(function, handling->request, *performed));
    }
    template <typename Function, typename E = typename taken<Function>::effect>
    static result_of<E> call(void *state, E *performed) {
        const auto *handling = static_cast<const haft_http_handling_t *>(state);
        if constexpr (is_raising<Function>) {
            return call_plainly<Function>(handling, performed);
        } else {
            if (haft::detail::has_exceptions()) /* of the performer */
                return haft::detail::without_exceptions(&call<Function>, state, performed);
            std::exception_ptr leaving;
            int code = 0;
            try {
                return call_plainly<Function>(handling, performed);
            } catch (const io::cancelled &) {
                code = -ECANCELED;
                if (!haft_http_handling_is_around(handling))
                    throw;
            } catch (...) {
                leaving = haft::detail::caught_exception();
                if (!haft_http_handling_is_around(handling)) /* as io::spawn_handled has it */
                    throw;
            }
            if (code != 0)
                haft_http_handling_leave(handling, code);
            leave_handling(handling, std::move(leaving));
        }
    }
    template <typename Function, typename E = typename taken<Function>::effect>
    static haft_clause_t entry() {
        return {effect_traits<E>::id(), reinterpret_cast<haft_function_t *>(&call<Function>),
                HAFT_CLAUSE_TAIL, haft::detail::shape_of<E>};
    }
    static const haft_handler_t &handler() {
        static const haft_clause_t table[] = {entry<F>()...};
        static const haft_handler_t made = {HAFT_HANDLES_OF(sizeof...(F), table), nullptr,
                                            "haft::http"};
        return made;
    }
};

} // namespace detail

} // namespace haft::http

#endif
