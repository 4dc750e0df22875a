/* SPDX-License-Identifier: MIT */
/* Applies a macro to each of up to 364 arguments; helpers for haft.h. */
#ifndef HAFTI_MACROS_H
#define HAFTI_MACROS_H

#define HAFTI_EXPAND4(...) HAFTI_EXPAND3(HAFTI_EXPAND3(HAFTI_EXPAND3(__VA_ARGS__)))
#define HAFTI_EXPAND3(...) HAFTI_EXPAND2(HAFTI_EXPAND2(HAFTI_EXPAND2(__VA_ARGS__)))
#define HAFTI_EXPAND2(...) HAFTI_EXPAND1(HAFTI_EXPAND1(HAFTI_EXPAND1(__VA_ARGS__)))
#define HAFTI_EXPAND1(...) HAFTI_EXPAND0(HAFTI_EXPAND0(HAFTI_EXPAND0(__VA_ARGS__)))
#define HAFTI_EXPAND0(...) HAFTI_EXPAND(HAFTI_EXPAND(HAFTI_EXPAND(__VA_ARGS__)))
#define HAFTI_EXPAND(...) __VA_ARGS__
#define HAFTI_PARENS ()

#define HAFTI_FOR_EACH(macro, ...)                                                                 \
    __VA_OPT__(HAFTI_EXPAND4(HAFTI_FOR_EACH_STEP(macro, __VA_ARGS__, )))
/* The arguments end in an empty one: ISO C wants at least one argument for the dots. */
#define HAFTI_FOR_EACH_STEP(macro, first, ...)                                                     \
    macro(first) __VA_OPT__(HAFTI_FOR_EACH_AGAIN HAFTI_PARENS(macro, __VA_ARGS__))
#define HAFTI_FOR_EACH_AGAIN() HAFTI_FOR_EACH_STEP

#define HAFTI_TEXT(...) HAFTI_TEXT_AGAIN(__VA_ARGS__)
#define HAFTI_TEXT_AGAIN(...) #__VA_ARGS__

#endif
