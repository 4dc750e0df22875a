#!/bin/sh
# SPDX-License-Identifier: MIT
# top.sh PROGRAM: haft-top shows what the tasks of PROGRAM do, as text and on a terminal, by process and by path; which users may
# connect; what there is when the program has ended, or was killed; and what is printed where there is nothing.
set -eu
program=$1
. "$HAFT_SOURCE_DIR/io/tests/traces/head.sh"
tool="python3 $HAFT_SOURCE_DIR/tools/haft-top"
trap 'exec 3>&-; rm -rf "$folder"' EXIT
mkfifo lives

# begins PROGRAM'S ARGUMENT...: it lives until `ends`.
begins() {
  "$program" "$@" <lives >said 2>&1 3>&- &
  process=$!
  exec 3>lives
}
ends() {
  exec 3>&-
  wait $process
}
awaits() {
  until [ -S "$1" ]; do
    kill -0 $process || { cat said; exit 1; }
    sleep 0.05
  done
}
# shows WORDS...: all of it is there.
shows() {
  for words in "$@"; do
    grep -q -e "$words" shown || { echo "not shown: $words"; cat shown; exit 1; }
  done
}

export HAFT_IO_TOP="$folder"
for threads in 1 2; do
  begins $threads
  awaits haft-top.$process
  [ "$(stat -c %a haft-top.$process)" = 600 ]
  $tool --once $process >shown
  shows "^process $process, run 1: 6 tasks, $threads threads" "^ *3  .*  'a \"reader\"' waits for: read$" \
    "^ *1  .*  'a slow one' waits for: a time$" "  [1-9][0-9,]*  'a busy one' " "  0  'a \"reader\"'" '  GET goes on$' '  GET /fast = 200$' 'runs/s'
  $tool haft-top.$process </dev/null >shown
  shows "'a busy one'"
  ends
  [ ! -e haft-top.$process ]
done

if command -v tmux >/dev/null; then
  begins 1
  awaits haft-top.$process
  terminal="tmux -S $folder/terminal -f /dev/null"
  LC_ALL=C.UTF-8 $terminal new-session -d -x 100 -y 20 "$tool $process 2>failed || sleep 1000" 3>&-
  until $terminal capture-pane -p >shown && grep -q "^ *3  .*'a \"reader\"' waits for: read" shown; do
    [ ! -s failed ] || { cat failed; exit 1; }
    sleep 0.1
  done
  shows "^process $process" '^    thread .*runs/s' 'GET goes on'
  $terminal send-keys q
  while $terminal has-session 2>/dev/null; do sleep 0.1; done
  ends
fi

# A path of the program's own; it has one owner, and one that was killed has none.
unset HAFT_IO_TOP
begins 1 "$folder/mine"
awaits mine
$tool --once "$folder/mine" >shown
first=$process
HAFT_IO_TOP=$folder/mine "$program" 1 </dev/null >other 2>&1
grep -q 'haft-io: there is no socket for haft-top at HAFT_IO_TOP=.*/mine: Address already in use' other
! "$program" 1 "$folder/mine" >other </dev/null
grep -q 'Address already in use' other
kill -9 $first
exec 3>&-
wait $first 2>/dev/null || true
begins 1 "$folder/mine"
awaits mine
until $tool --once mine >shown 2>/dev/null; do sleep 0.05; done
shows "^process $process,"
ends

# Where a task holds the only thread.
begins 1 "$folder/held" hold
awaits held
until $tool --once held >shown && grep -q 'tasks hold all threads' shown; do sleep 0.05; done
shows 'GET goes on'
ends

# refused WORDS TARGET
refused() {
  if $tool --once "$2" >shown 2>&1; then
    echo "$2: is not refused"
    exit 1
  fi
  shows "^haft-top: .*$1"
}
refused 'No such file' missing
refused 'Connection refused' said
refused 'is a folder: name the process' .
refused 'there is no process' 4194305
refused 'has no socket for haft-top: start it with HAFT_IO_TOP' $$
