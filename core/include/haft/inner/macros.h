/* SPDX-License-Identifier: MIT */
/* Applies a macro to each of up to 364 arguments; helpers for haft.h. */
#ifndef HAFTI_MACROS_H
#define HAFTI_MACROS_H

/* gcc's -std=c11 -Wpedantic warns of __VA_OPT__, and has no switch against that. So it treats this
   file as the system's. It still warns of what programs write in these macros. */
#if defined(__STRICT_ANSI__) && !defined(__clang__) && !defined(__cplusplus)
#    pragma GCC system_header
#endif

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
