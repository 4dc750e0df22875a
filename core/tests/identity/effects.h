/* SPDX-License-Identifier: MIT */
/* One declaration, in every part of the program. */
#ifndef EFFECTS_H
#define EFFECTS_H

#include <haft.h>

HAFT_EFFECT(shared_ask, int, { int question; });

#ifdef __cplusplus
extern "C" {
#endif
/* Each part prints what the effect is there, performs it, and handles it around a call. */
typedef struct part {
    haft_effect_t *(*identity)(void);
    int (*perform)(int question);
    int (*handle)(int (*perform)(int question), int question);
} part_t;
#ifdef __cplusplus
}
#endif

#endif
