/* SPDX-License-Identifier: MIT */
/*
 * Races: three threads use a few fibers at once, against the rule that a fiber is used by one
 * thread at a time, with an error handler that leaves. Which of them is refused cannot be
 * predicted; what can is in races.c.
 */
#ifndef HAFT_FUZZ_RACES_H
#define HAFT_FUZZ_RACES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Runs the race that is made of these choices; writes what was wrong to `verdict`, or nothing. */
void run_race(const uint16_t *choices, size_t count, char *verdict, size_t size);
/* How many fibers, of all races, are nobody's for ever. */
int fibers_lost_in_races(void);
void show_race(const uint16_t *choices, size_t count, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
