#!/bin/sh
# SPDX-License-Identifier: MIT
# perf's samples have whole stacks, from the function that computes to the task's and on to main, and docs/debugging.md
# makes a flame graph by tasks of them.
[ -x "$HAFT_TEST_DIR/flame" ] || exit 77
command -v perf >/dev/null || { echo 'perf is not here'; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
if ! perf record -e cpu-clock --call-graph fp -o data -- "$HAFT_TEST_DIR/flame" >said 2>&1 || ! perf script -i data >samples 2>>said; then
  cat said
  echo 'perf may not record here'
  exit 77
fi
sed -n '/^```awk$/,/^```$/p' "$HAFT_SOURCE_DIR/docs/debugging.md" | sed '1d;$d' >collapse.awk
cut=$(sed -n "s/^perf script | awk -f collapse.awk | sed '\\(.*\\)' | .*/\\1/p" "$HAFT_SOURCE_DIR/docs/debugging.md")
[ -s collapse.awk ] && [ -n "$cut" ] || { echo 'docs/debugging.md has no collapse.awk, or no cut'; exit 1; }
awk -f collapse.awk samples >stacks
sed "$cut" stacks >tasks
for pattern in 'main;.*run_tasks;.*parse;.*step [0-9]'; do
  grep -q "$pattern" stacks || { echo "no stack is $pattern"; cat stacks; exit 1; }
done
for pattern in '^\(.*;\)*parse;\(mill;\)*step [0-9]' '^\(.*;\)*compress;\(mill;\)*step [0-9]'; do
  grep -q "$pattern" tasks || { echo "no stack of tasks is $pattern"; cat tasks; exit 1; }
done
