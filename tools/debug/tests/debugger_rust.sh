#!/bin/sh
# SPDX-License-Identifier: MIT
# debugger_rust.sh PROGRAM: gdb shows the tasks of the stuck program of Rust, also in its core file. (The test `rust`
# runs it, which has built the program with line tables only: so tasks need not have the names of their closures.)
. "$HAFT_SOURCE_DIR/tools/debug/tests/session.sh"
expect_all() {
  expect "$1" "50 tasks 'customer', each waits for: an event \(event stuck::CLOSING_TIME\)"
  expect "$1" "'branch' waits for: "
  expect "$1" "'clerk' waits for: a mutex \(mutex 0x[0-9a-f]+, held by task [0-9]+ 'clerk'\)" '^deadlock:'
  expect "$1" '^#0 .*lock' 'transfer.*stuck\.rs:[0-9]+' '\{closure.*stuck.rs:[0-9]+'
  expect "$1" "^50 tasks .* 'customer', each waits for: an event" 'stuck\.rs:[0-9]+'
  expect "$1" "of tasks 'customer', suspended by 'hafti_io_park' in " '^[0-9]+ fibers' \
    '^  [0-9]  handles .*haft_io_read \(tail\)'
}
session --args "$1" dead <<'commands'
run
haft tasks
haft locks
haft bt clerk
haft apply all bt
haft fibers
haft handlers clerk
commands
expect_all 'live'
if core_of "$1" dead; then
  session "$1" "$core" <<'commands'
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
