/* SPDX-License-Identifier: MIT */
/* Unwinding by force, as the platform does it: for unwind.c and landing.c. */
#ifndef HAFT_FORCED_H
#define HAFT_FORCED_H

#include "unwinding.h"

#include <unwind.h>

/* While a stack is unwound by force, std::uncaught_exceptions() counts that, if there is a C++
   runtime: so guards that commit or roll back at the end of a scope roll back. The regular end of
   the unwinding (haft_leave, or the landing) restores the count; haft_unwinding_let_go is for all
   other ends. */

/* To be called first by `stop`, for each frame; and when the unwinding has landed. */
void haft_unwinding_goes_on(struct _Unwind_Exception *unwinding);
void haft_unwinding_landed(struct _Unwind_Exception *unwinding);

/* How a catch-all lets go of an unwinding that it has caught. */
typedef enum haft_let_go {
    HAFT_SWALLOWED,  /* it has ended, and has not rethrown */
    HAFT_REPLACED,   /* an exception is in flight, perhaps one that leaves the block; or another
                        unwinding leaves it: that goes on */
    HAFT_BEGUN_AGAIN /* the same, by an unwinding with the same record */
} haft_let_go_t;
/* To be called by `let_go`, below. */
haft_let_go_t haft_unwinding_let_go(struct _Unwind_Exception *unwinding);

/* Unwinds the frames from here until `stop` leaves; comes back if the unwinder fails. `record`, an
   _Unwind_Exception, lies elsewhere; `let_go` is called when a catch-all lets go of it. */
void haft_force_unwinding(void *record, _Unwind_Exception_Cleanup_Fn let_go, _Unwind_Stop_Fn stop,
                          void *argument);

#endif
