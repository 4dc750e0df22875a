/* SPDX-License-Identifier: MIT */
/*
 * Modifiers of commands in the list of a handler (§2.4, §3.5): what the clause does not do, and
 * what it is therefore not asked to write or pay.
 *
 * plain<Cmd>       Out handle_command(Cmd): resumes at once with what it returns. It is called in
 *                  place, on the stack of the code that invokes the command, without a switch. An
 *                  exception that leaves it comes out of invoke_command.
 *
 * no_resume<Cmd>   Answer handle_command(Cmd): never resumes. The computation is unwound when the
 *                  clause has ended.
 *
 * no_manage<Cmd>   The clause does not use its handler after a resume. Nothing is made of this
 *                  promise: keeping a handler alive costs a counter that only its thread uses.
 *
 * no_manage goes with any other, either way around; the other two exclude each other.
 */
#ifndef HAFT_COMPAT_CLAUSE_MODIFIERS_H
#define HAFT_COMPAT_CLAUSE_MODIFIERS_H

#include "cpp-effects.h"

namespace cpp_effects {

template <typename Cmd>
struct plain {};
template <typename Cmd>
struct no_resume {};
template <typename Cmd>
struct no_manage {};

namespace detail {

template <typename Cmd>
struct clause_entry<plain<Cmd>> {
    static_assert(clause_entry<Cmd>::mode != clause_mode::no_resume,
                  "cpp_effects: a clause cannot be both plain, which resumes, and no_resume");
    using command = command_of<Cmd>;
    static constexpr clause_mode mode = clause_mode::plain;
};
template <typename Cmd>
struct clause_entry<no_resume<Cmd>> {
    static_assert(clause_entry<Cmd>::mode != clause_mode::plain,
                  "cpp_effects: a clause cannot be both plain, which resumes, and no_resume");
    using command = command_of<Cmd>;
    static constexpr clause_mode mode = clause_mode::no_resume;
};
template <typename Cmd>
struct clause_entry<no_manage<Cmd>> : clause_entry<Cmd> {};

} // namespace detail
} // namespace cpp_effects

#endif
