/* SPDX-License-Identifier: MIT */
#ifndef HAFT_TESTS_SEGMENTED_EXCEPTIONS_H
#define HAFT_TESTS_SEGMENTED_EXCEPTIONS_H

#include "harness.h"

extern int guards_destroyed;
extern int wrong_limits;

/* -fsplit-stack code; each descends `depth` frames first. */
int exceptions_throw(int depth);
int exceptions_throw_foreign(int depth);
int exceptions_throw_in_callback(int depth);
int exceptions_descend_in_callback(int depth);
int exceptions_rethrow(int depth);
void exceptions_forced_unwind(int depth);
int exceptions_count_frames(int depth);

/* Not -fsplit-stack code; they need more stack than a segment has. */
int throw_from_foreign_code(int value);
int call_back(int (*callback)(int), int value);
void start_forced_unwind();
int count_frames();

#endif
