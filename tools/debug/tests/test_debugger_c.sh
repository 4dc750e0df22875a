#!/bin/sh
# SPDX-License-Identifier: MIT
# gdb shows what the tasks of a stuck program of C wait for: while it runs, in its core file, without symbols.
. "$HAFT_SOURCE_DIR/tools/debug/tests/session.sh"

expect_tasks() {
  expect "$1" 'run 1: 55 tasks, 1 thread, ' "^scope 'main'" '^ +1  .* runs$' \
    "'branch' waits for: read \(descriptor [0-9]+\), since [0-9:]+ "
  expect "$1" "50 tasks 'customer', each waits for: an event \(event .*\), since "
  expect "$1" "'printer' waits for: a channel to receive from \(channel 0x[0-9a-f]+\), since "
  expect "$1" "^ +[-0-9,]+  2 tasks 'clerk', each waits for: a mutex, since "
}
expect_deadlock() {
  expect "$1" "^mutex .*: held by task [0-9]+ 'clerk'" "^  task [0-9]+ 'clerk' waits, since" '^deadlock:' \
    "  task [0-9]+ 'clerk' waits for mutex .*, which task [0-9]+ 'clerk' holds" \
    "  task [0-9]+ 'clerk' waits for mutex .*, which task [0-9]+ 'clerk' holds"
}
expect_origins() {
  expect "$1" 'listen_to_branch at stuck.c:[0-9]+, spawned at stuck.c:[0-9]+'
  expect "$1" 'transfer at stuck.c:[0-9]+, spawned at stuck.c:[0-9]+'
  expect "$1" "tasks 'customer', each waits for: an event \(event closing_time\)"
  expect "$1" '^mutex household: held by'
}
expect_backtraces() {
  expect "$1" "^task [0-9]+ 'printer' waits for: a channel" '^#0 .* (haft_io_channel_receive|wait_to_receive) \(' \
    '^#1 .* print_letters \(.*stuck\.c:[0-9]+' "^2 tasks [-0-9,]+ 'clerk', each waits" \
    '^#0 .* (haft_io_mutex_lock|haft_io_mutex_lock_until|lock_mutex|await_mutex)[a-z._0-9]* \(' '^#1 .* transfer \(.*stuck\.c:[0-9]+'
  expect_none "$1" '^#[0-9].*(run_tasks|haft_fiber_run|hafti_io_suspend)'
}

for program in stuck stuck_shared; do
  session --args "$HAFT_TEST_DIR/$program" dead <<'commands'
run
haft tasks
haft locks
haft bt printer
haft apply all bt
haft bt -full printer
haft fibers
haft handlers
haft handlers printer
haft task branch
bt
info locals
haft task
bt 1
commands
  expect_tasks "$program, live"
  expect_deadlock "$program, live"
  expect_origins "$program, live"
  expect "$program, whole backtrace" '^#[0-9]+ +.* run_tasks \('
  expect "$program, fibers" "^fiber 50 fibers, .*, of tasks 'customer', suspended by 'hafti_io_park' in " '^55 fibers'
  expect "$program, handlers" '^  0  handles .*haft_io_read \(tail\)' '^  1  handles hafti_io_park, .*, installed in '
  expect "$program, selected" '^#[0-9]+ .*listen_to_branch \(' '^#[0-9]+ .*__morestack' "^order = " \
    '^#0 .*(raise|kill|abort)'
done
# (Of libhaft-io.so gdb knows which functions are its own.)
expect 'handlers' '^  1  handles hafti_io_park, .*, installed in main at stuck.c:[0-9]+'

# A program with 10,000 tasks has one line.
session --args "$HAFT_TEST_DIR/stuck" many <<'commands'
run
haft tasks
haft apply all bt
commands
expect '10,000 tasks' 'run 1: 10,005 tasks' "10,000 tasks 'customer', each waits for: an event \(event closing_time\)"

# A process that runs, as the page has it: gdb -p PID. (The system may forbid that.)
"$HAFT_TEST_DIR/stuck" live &
process=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do
  session -p $process <<'commands'
haft tasks
haft locks
haft bt printer
commands
  if grep -qE "2 tasks 'clerk', each waits for: a mutex|ptrace" "$output"; then
    break
  fi
  sleep 0.2
done
kill $process
wait $process 2>/dev/null
if grep -q ptrace "$output"; then
  echo 'gdb may not attach itself to processes here'
else
  expect 'attached' "^scope 'main'" "50 tasks 'customer', each waits for: an event \(event closing_time\)" \
    "2 tasks 'clerk', each waits for: a mutex" '^deadlock:' '^#1 .* print_letters \(.*stuck\.c:[0-9]+'
fi

# A session of its own: the commands above leave lines that expect_backtraces does not.
session --args "$HAFT_TEST_DIR/stuck" dead <<'commands'
run
haft apply all bt
commands
expect_backtraces 'all backtraces'

# Values of the public types are printed with what there is to know.
session --args "$HAFT_TEST_DIR/stuck" dead <<'commands'
run
print household
print &savings
print closing_time
print savings.mutex
haft task printer
print (haft_io_channel_t *)argument
haft task
python print("task:", gdb.parse_and_eval(f"(haft_io_task_t *){session.at(memory()).tasks()[1].address}").format_string())
commands
expect 'printers' '^.1 = \{mutex = \(held by task [0-9]+ .clerk., task [0-9]+ .clerk. waits\), cents = 5000\}'
expect 'printers' '^\$3 = \(not set, 50 wait: tasks '
expect 'printers' '0x[0-9a-f]+ \(0 of 4 values, to send: nobody waits, to receive: task [0-9]+ .printer. waits\)'
expect 'printers' "^task: 0x[0-9a-f]+ \(task [0-9]+ '.*' waits for: "

# Mistakes are told in words.
session "$HAFT_TEST_DIR/stuck" <<'commands'
python
def told(command):
    try:
        gdb.execute(command)
    except gdb.error as error:
        print("told:", error)
told("haft tasks")
gdb.execute("run dead")
told("haft bt 1000")
told("haft bt nobody")
told("haft bt")
told("haft task 1")
told("haft apply all")
end
commands
expect 'mistakes' '^told: There is no process and no core file' '^told: There is no task 1000: `haft tasks` lists' \
  '^told: There is no task nobody' '^told: haft bt \[-full\] TASK' '^told: task 1 .* runs' '^told: haft apply all'
session /bin/true <<'commands'
python
gdb.execute("starti")
try:
    gdb.execute("haft tasks")
except gdb.error as error:
    print("told:", error)
end
commands
expect 'a program without Haft' '^told: There is no Haft in this process'

for program in stuck stuck_shared; do
  strip -o "$work/stripped" "$HAFT_TEST_DIR/$program"
  session --args "$work/stripped" dead <<'commands'
run
haft tasks
haft locks
haft bt printer
commands
  expect_tasks "$program, stripped"
  expect_deadlock "$program, stripped"
  expect "$program, stripped" '^#[0-9]+ +0x[0-9a-f]+ in '
  if core_of "$HAFT_TEST_DIR/$program" dead; then
    session "$HAFT_TEST_DIR/$program" "$core" <<'commands'
haft tasks
haft locks
commands
    expect_tasks "$program, core file"
    expect_deadlock "$program, core file"
    expect_origins "$program, core file"
    session "$HAFT_TEST_DIR/$program" "$core" <<'commands'
haft apply all bt
commands
    expect_backtraces "$program, core file"
    session "$HAFT_TEST_DIR/$program" "$core" <<'commands'
haft fibers
haft handlers
haft handlers printer
haft task branch
bt
haft task
print household
commands
    expect "$program, core file" "^fiber 50 fibers, .*, of tasks 'customer', suspended by 'hafti_io_park' in " '^55 fibers'
    expect "$program, core file" '^  0  handles .*haft_io_read \(tail\)' '^  1  handles hafti_io_park, .*, installed in ' \
      '^  0  handles .*haft_io_read \(tail\)' '^#[0-9]+ .*listen_to_branch \('
    expect "$program, core file" '^.1 = \{mutex = \(held by task [0-9]+ .clerk., task [0-9]+ .clerk. waits\), cents = 5000\}'
  fi
  if core_of "$work/stripped" dead; then
    session "$work/stripped" "$core" <<'commands'
haft tasks
haft locks
haft fibers
haft handlers printer
haft bt printer
commands
    expect_tasks "$program, core file, stripped"
    expect_deadlock "$program, core file, stripped"
    expect "$program, core file, stripped" '^55 fibers' '^  0  handles .*haft_io_read \(tail\)' '^#[0-9]+ +0x[0-9a-f]+ in '
  fi
done
finish
