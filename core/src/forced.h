/* SPDX-License-Identifier: MIT */
/* Unwinding by force, as the platform does it: for unwind.c and landing.c. */
#ifndef HAFT_FORCED_H
#define HAFT_FORCED_H

#include "unwinding.h"

#include <unwind.h>

/* Surrounds a forced unwinding, if there is a C++ runtime: std::uncaught_exceptions() must count
   it, so that guards that commit or roll back at the end of a scope roll back. The regular end of
   the unwinding (haft_leave, or the landing) restores the count; haft_unwinding_was_left is for all
   other ends. */

/* To be called by `swallowed`: a catch-all lets go of the unwinding that it has caught. True:
   another unwinding leaves the block. False: the block has ended, and has not rethrown. */
bool haft_unwinding_was_left(struct _Unwind_Exception *exception);
void haft_unwinding_goes_on(bool goes_on); /* from frame to frame; false: it has landed */

/* Unwinds the frames from here until `stop` leaves; comes back if the unwinder fails. `record`, an
   _Unwind_Exception, lies elsewhere; `swallowed` is called if a catch-all ends the unwinding. */
void haft_force_unwinding(void *record, _Unwind_Exception_Cleanup_Fn swallowed,
                          _Unwind_Stop_Fn stop, void *argument);

#endif
