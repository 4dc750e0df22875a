#!/bin/sh
# SPDX-License-Identifier: MIT
# gdb-multiarch shows the tasks in a core file of another architecture, written by qemu.
. "$HAFT_SOURCE_DIR/tools/debug/tests/session.sh"
command -v gdb-multiarch >/dev/null || exit 77
cd "$work" || exit 1
# shellcheck disable=SC2086 # a command with arguments
(ulimit -c unlimited 2>/dev/null && $HAFT_LAUNCHER "$HAFT_TEST_DIR/stuck" dead) >/dev/null 2>&1
core=
for file in "$work"/qemu_*.core; do
  [ ! -s "$file" ] || core=$file
done
[ -n "$core" ] || { echo 'the emulator writes no core file here'; exit 77; }
{
  echo 'set debuginfod enabled off'
  echo "source $HAFT_SOURCE_DIR/tools/debug/haft_gdb.py"
  printf 'haft tasks\nhaft locks\nhaft bt printer\n'
} >"$work/commands"
gdb-multiarch -nx -batch -x "$work/commands" "$HAFT_TEST_DIR/stuck" "$core" >"$output" 2>&1 </dev/null
expect 'tasks' 'run 1: 55 tasks, 1 thread, epoll' "'branch' waits for: read \(descriptor [0-9]+\), since" \
  'listen_to_branch at stuck.c:[0-9]+, spawned at stuck.c:[0-9]+'
expect 'tasks' "tasks 'customer', each waits for: an event \(event closing_time\)"
expect 'locks' '^deadlock:' "task [0-9]+ 'clerk' waits for mutex .*, which task [0-9]+ 'clerk' holds"
expect 'backtrace' '^#0 .*(haft_io_channel_receive|wait_to_receive)' '^#1 .*print_letters'
finish
