#!/bin/sh
# SPDX-License-Identifier: MIT
# libFuzzer for a bounded time, from the files of corpus/ and the table of test_refusals.c.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
seconds=5
[ "${HAFT_CAMPAIGN:-}" = long ] && seconds=20
seconds=${HAFT_FUZZ_SECONDS:-$seconds}
mkdir "$work/seeds" "$work/kept"
HAFT_FUZZ_SEEDS=$work/seeds "$HAFT_TEST_DIR/fuzz_http" || exit 1
if ! "$HAFT_TEST_DIR/fuzz_http" -max_total_time="$seconds" -max_len=1200 -timeout=60 -rss_limit_mb=0 \
  -dict="$HAFT_SOURCE_DIR/http/tests/fuzz/words" -artifact_prefix="$work/" \
  "${HAFT_FUZZ_FOLDER:-$work/kept}" "$work/seeds" "$HAFT_SOURCE_DIR/http/tests/fuzz/corpus" >"$work/log" 2>&1; then
  cat "$work/log"
  for input in "$work"/crash-* "$work"/timeout-* "$work"/oom-* "$work"/leak-*; do
    [ ! -f "$input" ] || od -c "$input" | head -n 100
  done
  exit 1
fi
tail -n 1 "$work/log"
