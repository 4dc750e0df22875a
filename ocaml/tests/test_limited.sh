#!/bin/sh
# SPDX-License-Identifier: MIT
# Where addresses are limited there are stacks for some thousand computations at least, those of OCaml code alone need
# none while they wait, and where stacks are used up, Out_of_memory is an exception.
set -eu
ulimit -v 4000000 2>/dev/null || exit 77
# prints EXPECTED MOST COMMAND...: it prints that, and how much memory a computation takes: not more.
prints() {
  expected=$1 most=$2
  shift 2
  output=$("$@")
  [ "${output% *}" = "$expected" ] && [ "${output#* }" -le "$most" ] || {
    echo "$*: $output, not $expected with at most $most"
    exit 1
  }
}
HAFT_TEST_CALLS=8000 "$HAFT_TEST_DIR/test_nests"
HAFT_OCAML_STACKS=0 HAFT_TEST_CALLS=8000 "$HAFT_TEST_DIR/test_nests"
"$HAFT_TEST_DIR/test_clone"
prints all 12000 "$HAFT_TEST_DIR/waiting" 3000 200
prints all 4000 "$HAFT_TEST_DIR/waiting" 20000 5
# (In OCaml 5.3: 720, 1240, 2290 and 8680.)
prints all 930 "$HAFT_TEST_DIR/waiting" 100000 10
prints all 1600 "$HAFT_TEST_DIR/waiting" 100000 50
prints all 2900 "$HAFT_TEST_DIR/waiting" 100000 200
prints all 12500 "$HAFT_TEST_DIR/waiting" 20000 1000 # (11000, and 12129 where each frame has a pointer to the next)
HAFT_OCAML_STACK=64k prints Out_of_memory 100000 "$HAFT_TEST_DIR/waiting" 20000 500 below-c
