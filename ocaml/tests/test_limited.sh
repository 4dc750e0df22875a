#!/bin/sh
# SPDX-License-Identifier: MIT
# Where addresses are limited there are stacks for some thousand computations at least, and where those
# are used up, Out_of_memory is an exception.
set -eu
ulimit -v 4000000 2>/dev/null || exit 77
says() {
  expected=$1
  shift
  output=$("$@")
  [ "$output" = "$expected" ] || {
    echo "$*: $output, not $expected"
    exit 1
  }
}
HAFT_TEST_CALLS=8000 "$HAFT_TEST_DIR/test_nests"
HAFT_OCAML_STACKS=0 HAFT_TEST_CALLS=8000 "$HAFT_TEST_DIR/test_nests"
"$HAFT_TEST_DIR/test_clone"
says all "$HAFT_TEST_DIR/waiting" 3000 200
says all "$HAFT_TEST_DIR/waiting" 20000 5
HAFT_OCAML_STACK=64k says Out_of_memory "$HAFT_TEST_DIR/waiting" 20000 500
