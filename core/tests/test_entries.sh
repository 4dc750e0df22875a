#!/bin/sh
# The library links whichever flags of optimisation the C sources and the assembler files have: a program may
# give them for C alone, as -DCMAKE_C_FLAGS=-O1 does. Every entry in assembly has its function in C.
[ "$(uname -m)" = x86_64 ] || exit 77
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
core=$HAFT_SOURCE_DIR/core
flags="-I$core/include -I$core/src -fPIC -fexceptions"
for level in -O0 -O1; do
  # shellcheck disable=SC2086 # flags
  "$CC" -std=gnu11 $level $flags -c "$core/src/suspend.c" -o "$work/suspend$level.o" &&
    "$CC" $level $flags -c "$core/arch/x86_64/entries.S" -o "$work/entries$level.o" || exit 1
done
failed=0
for c in -O0 -O1; do
  for assembler in -O0 -O1; do
    for symbol in $(nm "$work/suspend$c.o" | sed -n 's/.* T \(.*\)_entry$/\1/p') hafti_suspend_slow; do
      nm "$work/suspend$c.o" | grep -q " T ${symbol}_entry$" &&
        nm "$work/entries$assembler.o" | grep -q " U ${symbol}_entry$" &&
        nm "$work/entries$assembler.o" | grep -q " T $symbol$" ||
        { echo "failed: $symbol, C $c, assembler $assembler"; failed=1; }
    done
  done
done
exit $failed
# SPDX-License-Identifier: MIT
