/* SPDX-License-Identifier: MIT */
/* iterator, Haft, by requests: the fiber emits, the loop that resumes it sums. */
#include "iterator.h"

int main(int argc, char **argv) {
    int64_t last = program_argument(argc, argv, 5), sum = 0;
    const haft_handles_t *emissions = HAFT_HANDLES(emit);
    haft_fiber_t *k = haft_fiber_new(range, &last);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, emissions);
    while (!haft_finished(request)) {
        sum += ((HAFT_PAYLOAD(emit) *)request.payload)->value;
        request = haft_resume(k, HAFT_NO_REPLY, emissions);
    }
    haft_fiber_drop(k);
    return program_result(sum);
}
