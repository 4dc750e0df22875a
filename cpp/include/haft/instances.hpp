// SPDX-License-Identifier: MIT
/*
 * Instances and effect safety: performing to one handler, and stating in a function's type which
 * effects it may perform. Part of haft.hpp, which includes it.
 *
 * Only handlers make these objects (detail::grant_access). The program uses one inside the body of
 * that handler; perform() reports one that has escaped from there.
 */
#ifndef HAFT_INSTANCES_HPP
#define HAFT_INSTANCES_HPP

#include <haft.hpp>

namespace haft {

/*
 * A name for one handler: performing through it reaches that handler, in constant time, whatever
 * handlers of the same effects lie between. A body that takes a parameter is given the instance of
 * its own handler:
 *
 *     haft::handle([](haft::instance<Get> cell) { return cell.perform(Get{}); }).with(...)
 *
 * An instance may be copied freely. Performing through it outside that body is an error.
 */
template <typename... Effects>
class instance {
  public:
    template <typename Effect>
    HAFT_DETAIL_INLINE result_of<Effect> perform(Effect effect) const {
        (void)sizeof(detail::an_effect_escapes_its_handlers<Effect, Effects...>);
        using traits = effect_traits<Effect>;
        hafti_here_t here = hafti_here();
        return detail::perform_found(
            here,
            haft_find_at(here, scope, traits::id(), traits::slot + 2, detail::shape_of<Effect>),
            scope, effect);
    }

    /* From an instance of more effects, or of the same in another order. */
    template <typename... More>
    instance(const instance<More...> &other) : scope(other.scope) {
        (void)(sizeof(detail::an_effect_escapes_its_handlers<Effects, More...>) + ... + 0);
    }
    instance(const instance &) = default;
    instance &operator=(const instance &) = default;

  private:
    explicit instance(hafti_scope_t *of) : scope(of) {}
    hafti_scope_t *scope;
    friend struct detail::grant_access;
    template <typename...>
    friend class instance;
};

/*
 * Effect safety: a function states in its type which effects it may perform, by a parameter, and
 * performs them through that:
 *
 *     int next(haft::may<Get, Put> can) {
 *         int value = can.perform(Get{});
 *         can.perform(Put{.value = value + 1});
 *         return value;
 *     }
 *
 * Only handlers make a `may`: handle(body) gives the body one for the effects that it handles, and
 * handle(can, body) gives one for these and the effects of `can`. A `may` converts to a `may` of
 * fewer effects. So a call that could let an effect escape its handlers does not compile. Code that
 * does not use `may` is not checked.
 */
template <typename... Effects>
class may {
  public:
    template <typename... More>
    may(const may<More...> &) {
        (void)(sizeof(detail::an_effect_escapes_its_handlers<Effects, More...>) + ... + 0);
    }
    template <typename... More>
    may(const instance<More...> &) {
        (void)(sizeof(detail::an_effect_escapes_its_handlers<Effects, More...>) + ... + 0);
    }
    may(const may &) = default;
    may &operator=(const may &) = default;

    template <typename Effect>
    HAFT_DETAIL_INLINE result_of<Effect> perform(Effect effect) const {
        (void)sizeof(detail::an_effect_escapes_its_handlers<Effect, Effects...>);
        return haft::perform<Effect>(std::move(effect));
    }

  private:
    may() = default;
    friend struct detail::grant_access;
};

} // namespace haft

#endif
