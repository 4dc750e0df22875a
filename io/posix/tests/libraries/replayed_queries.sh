#!/bin/sh
# SPDX-License-Identifier: MIT
# replayed_queries.sh CONNECTION: for postgres.sh, which has a server.
exec sh "$HAFT_SOURCE_DIR/io/posix/tests/libraries/replayed.sh" "$HAFT_TEST_DIR/replayed_queries" "$1"
