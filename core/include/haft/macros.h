/* SPDX-License-Identifier: MIT */
/* Applies a macro to each of up to 364 arguments; helpers for haft.h. */
#ifndef HAFT_MACROS_H
#define HAFT_MACROS_H

#define HAFT_EXPAND4(...) HAFT_EXPAND3(HAFT_EXPAND3(HAFT_EXPAND3(__VA_ARGS__)))
#define HAFT_EXPAND3(...) HAFT_EXPAND2(HAFT_EXPAND2(HAFT_EXPAND2(__VA_ARGS__)))
#define HAFT_EXPAND2(...) HAFT_EXPAND1(HAFT_EXPAND1(HAFT_EXPAND1(__VA_ARGS__)))
#define HAFT_EXPAND1(...) HAFT_EXPAND0(HAFT_EXPAND0(HAFT_EXPAND0(__VA_ARGS__)))
#define HAFT_EXPAND0(...) HAFT_EXPAND(HAFT_EXPAND(HAFT_EXPAND(__VA_ARGS__)))
#define HAFT_EXPAND(...) __VA_ARGS__
#define HAFT_PARENS ()

#define HAFT_FOR_EACH(macro, ...) __VA_OPT__(HAFT_EXPAND4(HAFT_FOR_EACH_STEP(macro, __VA_ARGS__, )))
/* The arguments end in an empty one: ISO C wants at least one argument for the dots. */
#define HAFT_FOR_EACH_STEP(macro, first, ...)                                                      \
    macro(first) __VA_OPT__(HAFT_FOR_EACH_AGAIN HAFT_PARENS(macro, __VA_ARGS__))
#define HAFT_FOR_EACH_AGAIN() HAFT_FOR_EACH_STEP

#define HAFT_TEXT(...) HAFT_TEXT_(__VA_ARGS__)
#define HAFT_TEXT_(...) #__VA_ARGS__

#endif
