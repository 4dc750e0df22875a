#!/bin/sh
# gdb's backtrace inside nested fibers shows every frame down to main, wherever the stacks lie: above
# and below the stack of the fiber around them, in the pool, in static memory, on the heap.
command -v gdb >/dev/null || exit 77
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failures=0

for options in '-O0 -g' '-O2 -g' '-O2 -fomit-frame-pointer'; do
    # shellcheck disable=SC2086
    $CC $options -std=gnu11 -fexceptions -I"$HAFT_SOURCE_DIR/core/include" \
        "$HAFT_SOURCE_DIR/core/tests/gdb/nested.c" "$HAFT_BUILD_DIR/core/libhaft.a" -pthread \
        -o "$work/nested" || exit 1
    for places in ppp qqq pqp hhh sss shp psh hqs; do
        gdb -nx -batch -ex 'set debuginfod enabled off' -ex 'break here' -ex "run $places" -ex bt \
            "$work/nested" >"$work/output" 2>&1
        frames=$(sed -n 's/^#[0-9]* .*\b\(here\|body_2\|body_1\|body_0\|main\) (.*/\1/p' \
            "$work/output" | tr '\n' ' ')
        if [ "$frames" != 'here body_2 body_1 body_0 main ' ]; then
            echo "compiled with $options, stacks $places: $frames"
            cat "$work/output"
            failures=$((failures + 1))
        fi
    done
done
[ "$failures" -eq 0 ]
# SPDX-License-Identifier: MIT
