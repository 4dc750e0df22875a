#!/bin/sh
# Fibers on small stacks without a guard that call functions of other libraries, in programs that bind these
# late and early: such a program works, or reports what may have overflowed. It never dies without a word. gcc
# binds the library's own functions when the program starts, whichever way the program is linked.
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
core=$HAFT_BUILD_DIR/core

cat > small.c <<'END_OF_FILE'
#include <haft.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
HAFT_EFFECT(take_turns, int, { int number; });
HAFT_EFFECT(count_on, int, { int number; });
enum { TURNS = 3, MOST = 100 };
static char text[200];
static volatile double number = 3.25;
static void call(int which, int self) {
    switch (which) {
    case 1: (void)snprintf(text, sizeof text, "%d", self); break;
    case 2: (void)snprintf(text, sizeof text, "%f", number); break;
    case 3: free(malloc(64)); break;
    case 4: (void)time(NULL); break;
    case 5: (void)printf("%d\n", self); break;
    case 6: (void)HAFT_PERFORM(count_on, self); break;
    case 7: (void)haft_fiber_current(); break;
    case 8: haft_fiber_drop(NULL); break;
    default: break;
    }
}
static int which;
static void *body(void *argument) {
    int self = (int)(intptr_t)argument;
    for (int turn = 0; turn < TURNS; turn++) {
        if (turn == 1)
            call(which, self);
        HAFT_PERFORM(take_turns, self);
    }
    return NULL;
}
static int counted(void *state, HAFT_PAYLOAD(count_on) *payload) {
    return ++*(int *)state + payload->number;
}
HAFT_HANDLER(counting, NULL, HAFT_TAIL(count_on, counted));

static haft_fiber_t *fibers[MOST];
static int count, ended;
static void *loop(void *unused) {
    for (int turn = 0; turn <= TURNS; turn++)
        for (int i = 0; i < count; i++) {
            haft_reply_t reply = turn == 0 ? HAFT_NO_REPLY : HAFT_REPLY(take_turns, turn);
            ended += haft_finished(haft_resume(fibers[i], reply, HAFT_HANDLES(take_turns)));
        }
    return unused;
}
int main(int arguments, char **argument) {
    static _Alignas(64) char memory[MOST * 8192];
    size_t size = (size_t)atol(argument[2]);
    which = atoi(argument[1]);
    count = arguments > 3 ? atoi(argument[3]) : 1;
    for (int i = 0; i < count; i++) {
        haft_fiber_options_t options = {.name = "small", .stack_size = size, .dense = true};
        if (argument[4][0] == 'm')
            options = (haft_fiber_options_t){
                .name = "small", .memory = memory + (size_t)i * size, .memory_size = size};
        fibers[i] = haft_fiber_new_with(&options, body, (void *)(intptr_t)i);
    }
    int state = 0;
    haft_handle(&counting, &state, loop, NULL);
    printf("%d of %d\n", ended, count);
    return ended != count;
}
END_OF_FILE

failed=0
runs=0
early=now
"$CC" -dM -E - </dev/null | grep -q __clang__ || early="now lazy"
# one LINK CALL SIZE COUNT KIND: runs it once. Calls of our own functions, where these are bound early, work.
one() {
  "./$1" "$2" "$3" "$4" "$5" >out 2>&1
  code=$?
  runs=$((runs + 1))
  if [ $code -ne 0 ]; then
    case "$early: $1$2" in
    *$1*": $1"[0678]) echo "failed: $* ends with $code"; cat out; failed=1 ;;
    *) grep -q '^haft: ' out || { echo "failed: $* dies with $code and without a word"; failed=1; } ;;
    esac
  fi
}
for link in lazy now; do
  "$CC" -std=gnu11 -O2 -fexceptions -I"$HAFT_SOURCE_DIR/core/include" small.c -o $link \
    -L"$core" -lhaft -Wl,-z,$link -Wl,-rpath,"$core" || exit 1
  for call in 0 1 2 3 4 5 6 7 8; do
    for count in 2 40; do
      for size in 2048 8192; do
        one $link $call $size $count dense
        one $link $call $size $count memory
      done
    done
  done
  for call in 1 2 3 4 5; do
    one $link $call 1024 20 dense
    one $link $call 1152 20 memory
  done
done
[ $failed -eq 0 ] && echo "$runs programs worked, or said why not"
exit $failed
# SPDX-License-Identifier: MIT
