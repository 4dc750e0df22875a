#!/bin/sh
# SPDX-License-Identifier: MIT
# gdb shows what the tasks of a stuck program of OCaml wait for, and its suspended computations; also in its core file.
. "$HAFT_SOURCE_DIR/tools/debug/tests/session.sh"
[ -x "$HAFT_TEST_DIR/stuck_ocaml" ] || exit 77
expect_all() {
  expect "$1" "^ +[0-9]+  'OCaml' runs" "^tasks of OCaml, which the task 'OCaml' runs" "^  switch 'run'" "^    switch 'bank'"
  expect "$1" 'tasks? waits? for: a mutex \(fiber 0x[0-9a-f]+, in Stuck\.transfer'
  expect "$1" '50 tasks wait for: a promise'
  expect "$1" 'task waits for: bytes to read'
  expect "$1" '^fiber .*of OCaml, suspended in Stuck\.transfer'
}
session "$HAFT_TEST_DIR/stuck_ocaml" <<'commands'
run
haft tasks
haft fibers
python
for fiber in session.at(memory()).fibers():
    if fiber.language != "C" and fiber.state == "suspended":
        gdb.execute(f"haft bt {fiber.address:#x}")
end
commands
expect_all 'live'
expect 'the backtrace of a computation' '^[0-9]+ fibers' '^#0 .*camlStuck__transfer'
if core_of "$HAFT_TEST_DIR/stuck_ocaml"; then
  session "$HAFT_TEST_DIR/stuck_ocaml" "$core" <<'commands'
haft tasks
haft fibers
commands
  expect_all 'core file'
fi
finish
