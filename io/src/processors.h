/* SPDX-License-Identifier: MIT */
/* How many processors a program may use (processors.c). */
#ifndef HAFTI_IO_PROCESSORS_H
#define HAFTI_IO_PROCESSORS_H

/* At least one: those that the calling thread may run on, and no more than the time that the
   control groups of the process give it, rounded up. */
unsigned hafti_io_processors(void);
/* The number by its control groups, or UINT_MAX; for a process whose /proc/self/cgroup is `groups`,
   where cgroups are mounted at `root`. */
unsigned hafti_io_processors_of_groups(const char *groups, const char *root);

#endif
