/* SPDX-License-Identifier: MIT */
/* iterator, Haft, by a tail-resumptive clause. */
#include "iterator.h"

static void on_emit(void *sum, HAFT_PAYLOAD(emit) * payload) {
    *(int64_t *)sum += payload->value;
}

HAFT_HANDLER(summing, NULL, HAFT_TAIL(emit, on_emit));

int main(int argc, char **argv) {
    int64_t last = program_argument(argc, argv, 5), sum = 0;
    haft_handle(&summing, &sum, range, &last);
    return program_result(sum);
}
