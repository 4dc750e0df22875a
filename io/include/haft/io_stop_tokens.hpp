// SPDX-License-Identifier: MIT
/*
 * Haft I/O for C++20: between the cancels of scopes and the stop tokens of the standard library, in
 * both directions. Part of haft/io.hpp, which includes it.
 */
#ifndef HAFT_IO_STOP_TOKENS_HPP
#define HAFT_IO_STOP_TOKENS_HPP

#include "io_sync.hpp"
#include "io_tasks.hpp"

#include <functional>
#include <memory>
#include <stop_token>
#include <utility>

namespace haft::io {

/* Calls the body in a scope that is cancelled when the token is stopped, by any thread. */
template <scope_body F>
decltype(auto) with_stop(std::stop_token token, F function) {
    event ended;
    std::stop_callback stopped(token, [&] { ended.set(); });
    return io::scope([&](scope_ref outside) -> decltype(auto) {
        outside.spawn([&, outside] {
            ended.wait();
            if (token.stop_requested())
                outside.cancel();
        });
        struct at_end {
            event &of;
            ~at_end() { of.set(); }
        } here{ended};
        return io::scope(std::ref(function));
    });
}

/* Calls the body with a token that is stopped when the surrounding scope is cancelled: for code
   that checks tokens, also on other threads. The cancelling thread stops the token, so the body
   need not wait to notice; if the scope has been cancelled before, the token is stopped from the
   beginning. Callbacks of the token run on the cancelling thread and must not wait. A deadline
   passes only when the thread looks at its timers: code that computes under one on a task's thread
   must yield now and then, or be called by call_blocking(). Outside of a run nothing stops the
   token. */
template <std::invocable<std::stop_token> F>
decltype(auto) with_stop_token(F function) {
    std::stop_source source;
    auto body = [&]() -> decltype(auto) { return std::invoke(function, source.get_token()); };
    return detail::open_scope<decltype(body), scope_ref>(
        {}, nullptr, body, std::make_unique<detail::stop_on_cancel>(source));
}

} // namespace haft::io

#endif
