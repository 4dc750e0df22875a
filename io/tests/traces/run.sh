#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh PROGRAM: what the tasks of programs do is kept, and is well formed as JSON: of PROGRAM, on one thread and on
# two, on both back ends; of one that is killed; and what haft-trace says of files that it cannot use.
set -eu
program=$1
command -v python3 >/dev/null || { echo 'python3 is not here'; exit 77; }
tool="python3 $HAFT_SOURCE_DIR/tools/haft-trace"
check="python3 $HAFT_SOURCE_DIR/io/tests/traces/check.py"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# trace THREADS NAME...: its events have these names.
trace() {
  threads=$1
  shift
  $tool record -o trace -- "$program" "$threads" 2>said || { cat said; exit 1; }
  grep -q 'trace: [0-9]* events; ' said
  $tool view -o trace.json trace >/dev/null
  $check trace.json "$@"
  $tool stats trace >stats
}
for backend in epoll ''; do
  HAFT_IO_BACKEND=$backend
  [ -n "$backend" ] && export HAFT_IO_BACKEND || unset HAFT_IO_BACKEND
  trace 1 'a sender' 'a receiver' 'a sleeper that is cancelled' 'a late one' 'a reader' 'a writer' running ready \
    'waits: a channel to receive from' 'waits: a time' read write 'hear all' deadline sleep \
    'a sleeper that is cancelled is cancelled' 'cancel a scope that is cancelled'
  grep -q "^'a receiver': 1 tasks" stats
  grep -q '^  hear all = 45: 1  p50 ' stats
  grep -q '^  from wake to run .*p99.9' stats
  trace 2 'a sender' 'a receiver' 'hear all'
done

# What a program has done until it was killed is there.
HAFT_IO_TRACE=killed sh -c 'kill -9 $$' 2>/dev/null || true
[ ! -e killed ]
HAFT_IO_TRACE=killed "$program" 1 endless &
process=$!
until [ -s killed ] && $tool stats killed 2>/dev/null | grep -q 'a sender'; do sleep 0.05; done
kill -9 $process
wait $process 2>/dev/null || true
$tool view -o killed.json killed >/dev/null
$check killed.json 'a receiver'

# A file that is there is not written over, and the program runs all the same.
echo text >there
HAFT_IO_TRACE=there "$program" 1 2>said
grep -q '^haft-io: no trace is kept in HAFT_IO_TRACE=there: ' said
[ "$(cat there)" = text ]
# refused WORDS COMMAND...: it says so, and fails.
refused() {
  words=$1
  shift
  if "$@" >said 2>&1; then
    echo "$*: is not refused"
    exit 1
  fi
  grep -q "$words" said || { cat said; exit 1; }
}
refused 'is no trace' $tool stats there
refused 'is there, and is no trace' $tool record -o there -- "$program" 1
refused 'has kept no trace' $tool record -o none -- true
refused 'No such file' $tool view missing
head -c 8 trace >short
refused 'is no trace' $tool stats short
