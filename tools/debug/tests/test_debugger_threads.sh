#!/bin/sh
# SPDX-License-Identifier: MIT
# gdb shows tasks on several threads, one that runs among them, and fibers of libhaft alone with their handlers.
. "$HAFT_SOURCE_DIR/tools/debug/tests/session.sh"
session --args "$HAFT_TEST_DIR/stuck_threads" <<'commands'
run
haft tasks
haft locks
haft bt counter
haft fibers
python
for fiber in session.at(memory()).fibers():
    if fiber.name == "customer":
        gdb.execute(f"haft bt {fiber.address:#x}")
        print("fiber:", gdb.parse_and_eval(f"(haft_fiber_t *){fiber.address}").format_string())
end
commands
expect 'tasks' 'run 1: 4 tasks, 2 threads'
expect 'tasks' "'writer' waits for: a time, since"
expect 'tasks' "'counter' runs"
expect 'tasks' "'short-lived' has ended, and is to be joined"
expect 'tasks' "'reader' waits for: a lock to read \(rwlock prices, held by task [0-9]+ 'writer'\), since"
expect 'locks' '^rwlock prices: held by task' "^  task [0-9]+ 'reader' waits"
expect 'a task that runs' "^task [0-9]+ 'counter' runs" '\(on thread [0-9]+, which runs it\)' '^#0 .*compute \(' \
  '^#1 .*count \('
expect 'fibers' "^fiber 0x[0-9a-f]+, 'customer', runs inner at threads.c:[0-9]+, suspended by 'ask_price' in ask"
expect 'the backtrace of a fiber' '^[0-9]+ fibers' '^#[0-9]+ .*ask \(' '^#[0-9]+ .*inner \('
expect 'the printer of a fiber' "^fiber: 0x[0-9a-f]+ \(fiber 'customer', suspended by 'ask_price' in "
finish
