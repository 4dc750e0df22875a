#!/bin/sh
# libFuzzer for a bounded time. By hand: fuzz_with_libfuzzer FOLDER goes on for ever and keeps its inputs there.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
seconds=5
[ "${HAFT_CAMPAIGN:-}" = long ] && seconds=60
if ! "$HAFT_TEST_DIR/fuzz_with_libfuzzer" -max_total_time=$seconds -max_len=1200 -timeout=60 -rss_limit_mb=0 \
  -artifact_prefix="$work/" >"$work/log" 2>&1; then
  cat "$work/log"
  exit 1
fi
# SPDX-License-Identifier: MIT
