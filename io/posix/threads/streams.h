/* SPDX-License-Identifier: MIT */
/* Streams of stdio on tasks: see streams.c. */
#ifndef HAFT_THREADS_STREAMS_H
#define HAFT_THREADS_STREAMS_H

/* From now on a task that reads by a FILE from a pipe, a socket or a terminal waits as a task.
   Called before there are tasks. */
void haft_threads_wait_in_streams(void);

#endif
