#!/bin/sh
# SPDX-License-Identifier: MIT
# Prints where fields of libhaft's fibers lie, for switch.S, as the C compiler has it.
# Arguments: the compiler; the folder of haft.h.
set -eu
compiler=$1
folder=$2
offsets() {
  cat <<'END'
#include <haft.h>
#include <haft/language.h>
#define TELL(name, number) __asm__ volatile("\n.ascii \"-> " #name " %c0\"" : : "i"((long)(number)))
#define FIELD(name, field) TELL(name, offsetof(haft_fiber_t, field))
void tell(void);
void tell(void) {
    FIELD(FIBER_SCOPE_STATE, scope.state);
    FIELD(FIBER_SCOPE_KIND, scope.kind);
    FIELD(FIBER_SCOPE_SLOW, scope.slow);
    FIELD(FIBER_SCOPE_FILLED, scope.filled);
    FIELD(FIBER_AWAITS, awaits);
    FIELD(FIBER_CACHE, scope.cache[0].key);
    TELL(FIBER_CACHE_SLOTS, HAFTI_CACHE_SLOTS);
    TELL(FIBER_CACHE_STEP, sizeof(hafti_cache_entry_t));
    FIELD(FIBER_HOST, argument);
    FIELD(FIBER_NAME, name);
    FIELD(FIBER_HIGH, high);
    FIELD(FIBER_POOL, pool);
    FIELD(FIBER_TOOLS, tools);
    FIELD(FIBER_WITHIN, within);
    FIELD(FIBER_LANGUAGE, language);
    FIELD(FIBER_STATE, state);
    FIELD(FIBER_OF_LANGUAGE, of_language);
    FIELD(FIBER_LOW, low);
    TELL(FIBER_ROOM, (offsetof(haft_fiber_t, previous) + sizeof(void *) + 15) / 16 * 16);
    TELL(SCOPE_FIBER, HAFTI_SCOPE_FIBER);
    TELL(AWAITS_NOTHING, HAFTI_AWAITS_NOTHING);
}
END
}
offsets | "$compiler" -I"$folder" -x c -std=gnu11 -fexceptions -O1 -S -o - - | sed -n 's/.*"-> \([A-Z_]*\) \([0-9]*\)".*/#define \1 \2/p'
