#!/bin/sh
# SPDX-License-Identifier: MIT
# gdb shows the connections of a server: the request and what its handler waits for.
. "$HAFT_SOURCE_DIR/tools/debug/tests/session.sh"
[ -x "$HAFT_TEST_DIR/stuck_server" ] || exit 77
session "$HAFT_TEST_DIR/stuck_server" <<'commands'
run
haft connections
haft tasks
commands
expect 'connections' '^server 0x[0-9a-f]+ at port [0-9]+: 3 connections'
expect 'connections' \
  'descriptor [0-9]+.*: POST /order\?number=7, task [0-9]+ .* waits for: an event \(event paid\), since'
expect 'connections' 'descriptor [0-9]+.*: waits for a request, since'
expect 'connections' 'descriptor [0-9]+.*: is idle, since'
finish
