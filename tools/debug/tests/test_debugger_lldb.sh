#!/bin/sh
# SPDX-License-Identifier: MIT
# lldb has the same commands: for a process, and for its core file.
. "$HAFT_SOURCE_DIR/tools/debug/tests/session.sh"
command -v lldb >/dev/null || exit 77
# (Debian 12's looks for its Python in a folder that does not exist.)
for folder in /usr/lib/llvm-*/lib/python3*/dist-packages; do
  [ ! -d "$folder/lldb" ] || PYTHONPATH=$folder${PYTHONPATH:+:$PYTHONPATH}
done
export PYTHONPATH
lldb --batch -o 'script print(6 * 7)' 2>/dev/null | grep -q '^42' || { echo 'this lldb has no Python'; exit 77; }

expect_all() {
  expect "$1" 'run 1: 55 tasks, 1 thread, ' "^scope 'main'" "50 tasks 'customer', each waits for: an event" \
    'serve_customer at stuck.c:[0-9]+, spawned at stuck.c:[0-9]+'
  expect "$1" "'branch' waits for: read \(descriptor [0-9]+\), since"
  expect "$1" '^deadlock:' "task [0-9]+ 'clerk' waits for mutex .*, which task [0-9]+ 'clerk' holds"
  expect "$1" "^task [0-9]+ 'printer' waits" '^#0 .* (haft_io_channel_receive|wait_to_receive)' '^#1 .* print_letters at stuck.c:[0-9]+'
  expect "$1" '^55 fibers' '^  0  handles .*haft_io_read \(tail\)'
  expect "$1" "^2 tasks [-0-9,]+ 'clerk', each waits" '^#1 .* transfer at stuck.c:[0-9]+'
}
import="command script import $HAFT_SOURCE_DIR/tools/debug/haft_lldb.py"
lldb --batch -o "$import" -o run -k 'haft tasks' -k 'haft locks' -k 'haft bt printer' -k 'haft fibers' \
  -k 'haft handlers printer' -k 'haft apply all bt' -k quit \
  "$HAFT_TEST_DIR/stuck" -- dead >"$output" 2>&1 </dev/null
# A container may forbid lldb to start a process without randomised addresses.
if grep -q 'personality set failed' "$output"; then
  echo 'lldb may not start processes here'
else
  expect_all live
fi
if core_of "$HAFT_TEST_DIR/stuck" dead; then
  lldb --batch -o "$import" -o 'haft tasks' -o 'haft locks' -o 'haft bt printer' -o 'haft fibers' \
    -o 'haft handlers printer' -o 'haft apply all bt' -c "$core" \
    "$HAFT_TEST_DIR/stuck" >"$output" 2>&1 </dev/null
  expect_all 'core file'
fi
finish
