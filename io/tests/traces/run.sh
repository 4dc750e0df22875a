#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh PROGRAM: what the tasks of programs do is kept, and is well formed as JSON: of PROGRAM, on one thread and on
# two, on both back ends; of one that is killed; and what haft-trace prints for files that it cannot use.
set -eu
program=$1
. "$HAFT_SOURCE_DIR/io/tests/traces/head.sh"

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
  # Where the longest hold has ended, if the file has it: its functions, or places in it.
  sed -n '/^longest runs/,/^$/p' stats | sed -n "/'a busy one'/,/^  *[0-9.]* [a-z]*s  '/p" >hold
  grep -q "^ *\(compute_long\|.*traced+0x\)" hold || { cat stats; exit 1; }
  trace 2 'a sender' 'a receiver' 'hear all'
done

# The results of operations, and the waits of tasks, as stacks.
trace 1 'read done' 'write done'
grep -q '^  read  *1; 1 bytes$' stats
$tool flame trace >stacks
for stack in 'a task;a receiver;hear all;waits: a channel to receive from' 'a task;a late one;waits: a time'; do
  grep -q "^$stack [0-9]*$" stacks || { cat stacks; exit 1; }
done
$tool draw -o trace.svg trace
python3 -c 'import xml.etree.ElementTree as tree; tree.parse("trace.svg")'
grep -q '>a sender</text>' trace.svg
$tool flame --of ready trace | grep -q '^a task;a sender;ready [0-9]*$'

# Spans for a collector; one that refuses is quoted.
unset OTEL_EXPORTER_OTLP_TRACES_ENDPOINT OTEL_SERVICE_NAME http_proxy HTTP_PROXY all_proxy ALL_PROXY
python3 "$HAFT_SOURCE_DIR/io/tests/traces/collector.py" port >collected &
collector=$!
until [ -s port ]; do kill -0 $collector; sleep 0.05; done
OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:$(cat port)
export OTEL_EXPORTER_OTLP_ENDPOINT
$tool otlp --service 'of the test' --header 'Key: value' trace | grep -q '^1 spans sent to http://127.0.0.1:[0-9]*/v1/traces$'
! $tool otlp trace >said 2>&1
grep -q '/v1/traces answers 503: not now$' said
wait $collector
[ "$(cat collected)" = "$(printf 'of the test 1 hear all value\nunknown_service 1 hear all None')" ]
! $tool otlp --to nowhere trace >said 2>&1
grep -q 'begins with http' said

# A trace that a signal begins and ends, again and again.
HAFT_IO_TRACE=switched HAFT_IO_TRACE_SIGNAL=USR2 "$program" 1 endless &
process=$!
until $tool switch $process >said 2>&1; do kill -0 $process; sleep 0.05; done
until [ -s switched ] && $tool stats switched 2>/dev/null | grep -q "^'a task'"; do sleep 0.05; done
$tool switch $process >/dev/null
until [ -e switched.2 ]; do
  $tool switch $process >/dev/null
  sleep 0.1
done
kill -9 $process
wait $process 2>/dev/null || true
HAFT_IO_TRACE=odd HAFT_IO_TRACE_SIGNAL=KILL "$program" 1 2>said
grep -q 'no trace can be begun by HAFT_IO_TRACE_SIGNAL=KILL' said && [ ! -e odd ]

# The probes, where the library has them; gdb attaches itself to one, as bpftrace does.
if command -v readelf >/dev/null && readelf -n "$program" | grep -q 'Provider: haft'; then
  for name in spawn run park wake operation operated end span__begin; do
    readelf -n "$program" | grep -q "Name: $name\$" || { echo "no probe $name"; exit 1; }
  done
  if command -v gdb >/dev/null; then
    gdb -nx -batch -iex 'set debuginfod enabled off' -ex 'break -probe-stap haft:spawn' -ex run \
      -ex 'print (char *)$_probe_arg1' -ex kill --args "$program" 1 >said 2>&1 </dev/null || true
    grep -q 'ptrace\|No symbol table\|a sender' said || { cat said; exit 1; }
  fi
fi

# The trace of a killed program has all that it did.
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
# refused WORDS COMMAND...: it prints these words, and fails.
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
refused '^haft-trace: missing: No such file' $tool view missing
refused "there is no folder $PWD/nowhere$" $tool record -o nowhere/trace -- "$program" 1
refused 'there is no process 4194305' $tool switch 4194305
cp trace kept
refused 'there is no program ./misspelt' $tool record -o kept -- ./misspelt
$tool stats kept >/dev/null
# Its output may be a pipe that is closed early, or a full disk.
$tool stats trace 2>said | true
[ ! -s said ] || { cat said; exit 1; }
if [ -e /dev/full ]; then
  ! $tool stats trace >/dev/full 2>said
  grep -qx 'haft-trace: standard output: No space left on device' said
fi
head -c 8 trace >short
refused 'is no trace' $tool stats short
