// SPDX-License-Identifier: MIT
/*
 * Default handlers of the effects that the headers of haft/ declare. If no handler handles such an
 * effect, its default throws an exception that names the header's functions, or does nothing.
 * Without a default, the program would see the error of an unhandled effect.
 *
 * A default is set when a function of the header first performs its effect, unless the program has
 * set a default before.
 */
#ifndef HAFT_DETAIL_DEFAULT_HPP
#define HAFT_DETAIL_DEFAULT_HPP

#include "../../haft.hpp"

namespace haft::detail {

template <is_effect Effect, result_of<Effect> (*Function)(void *, Effect *)>
HAFT_DETAIL_INLINE void ensure_default() {
    static const bool set = [] {
        if (haft_default(effect_traits<Effect>::id()) == nullptr)
            set_default<Effect>(Function);
        return true;
    }();
    (void)set;
}

/* Whether a perform here would reach a handler; only for effects that have a default. */
template <is_effect Effect>
bool reaches_handler() {
    hafti_here_t here = hafti_here();
    return hafti_clause_of(find<Effect>(here)) != &effect_traits<Effect>::id()->default_clause;
}

} // namespace haft::detail

#endif
