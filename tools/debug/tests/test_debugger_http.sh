#!/bin/sh
# SPDX-License-Identifier: MIT
# gdb shows the connections of a server: the request and what its handler waits for; also in its core file.
. "$HAFT_SOURCE_DIR/tools/debug/tests/session.sh"
[ -x "$HAFT_TEST_DIR/stuck_server" ] || exit 77
expect_all() {
  expect "$1" '^server 0x[0-9a-f]+ at port [0-9]+: 3 connections'
  expect "$1" \
    'descriptor [0-9]+.*: POST /order\?number=7, task [0-9]+ .* waits for: an event \(event paid\), since'
  expect "$1" 'descriptor [0-9]+.*: waits for a request, since'
  expect "$1" 'descriptor [0-9]+.*: is idle, since'
}
session "$HAFT_TEST_DIR/stuck_server" <<'commands'
run
haft connections
haft tasks
commands
expect_all live
if core_of "$HAFT_TEST_DIR/stuck_server"; then
  session "$HAFT_TEST_DIR/stuck_server" "$core" <<'commands'
haft connections
commands
  expect_all 'core file'
fi
finish
