/* SPDX-License-Identifier: MIT */
/* Functions that know nothing of segments: compiled without -fsplit-stack. */
#ifndef HAFT_TESTS_SEGMENTED_UNAWARE_H
#define HAFT_TESTS_SEGMENTED_UNAWARE_H

#include <haft.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Uses a lot of stack. */
long unaware_sum(long first, long second);
/* Writes on all of some 2000 bytes of stack. */
void unaware_fill(void);
/* Uses a lot of stack and calls back. */
long unaware_call(long (*function)(long), long argument);
/* Uses a lot of stack and resumes the fiber once; returns its effect. */
haft_effect_t *unaware_resume(haft_fiber_t *fiber, const haft_handles_t *handles);
/* Formats the dump of all fibers; true if the text is in it. */
bool unaware_dump_contains(const char *text);

#ifdef __cplusplus
}
#endif
#endif
