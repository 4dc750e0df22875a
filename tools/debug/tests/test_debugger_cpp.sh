#!/bin/sh
# SPDX-License-Identifier: MIT
# gdb names the tasks of a stuck program of C++ by their lambdas, also in its core file.
. "$HAFT_SOURCE_DIR/tools/debug/tests/session.sh"
[ -x "$HAFT_TEST_DIR/stuck_cpp" ] || exit 77
expect_all() {
  expect "$1" "50 tasks 'customer', each waits for: an event \(event closing_time\)" \
    'a lambda in open_bank at stuck.cpp:[0-9]+'
  expect "$1" "'auditor' waits for: the tasks of its scope \(scope 'audit'\)" "scope 'audit', opened by task [0-9]+ 'auditor'"
  expect_none "$1" "'auditor' waits for .*a task of its scope"
  expect "$1" "'branch' waits for: read \(descriptor [0-9]+\)" 'a lambda in open_bank at stuck.cpp:[0-9]+'
  expect "$1" "'clerk' waits for: a mutex \(mutex household, held by task [0-9]+ 'clerk'\)" '^deadlock:'
  expect "$1" '^#0 .*haft::io::mutex::lock' 'transfer \(.*stuck.cpp:[0-9]+' 'operator\(\).*stuck.cpp:[0-9]+'
  expect "$1" "^50 tasks .* 'customer', each waits for: an event" '^#0 .*haft::io::event::wait' 'operator\(\).*stuck.cpp:[0-9]+'
  expect "$1" "of tasks 'customer', suspended by 'hafti_io_park' in " '^[0-9]+ fibers' \
    '^  [0-9]  handles .*haft_io_read \(tail\)'
}
session --args "$HAFT_TEST_DIR/stuck_cpp" dead <<'commands'
run
haft tasks
haft locks
haft bt clerk
haft apply all bt
haft fibers
haft handlers clerk
print household
print closing_time
commands
expect_all live
expect 'printers' '^.1 = \{mutex = \(held by task [0-9]+ .clerk., task [0-9]+ .clerk. waits\), cents = 5000\}' \
  '^.2 = \(not set, 50 wait: tasks '
if core_of "$HAFT_TEST_DIR/stuck_cpp" dead; then
  session "$HAFT_TEST_DIR/stuck_cpp" "$core" <<'commands'
haft tasks
haft locks
haft bt clerk
haft apply all bt
haft fibers
haft handlers clerk
commands
  expect_all 'core file'
fi
finish
