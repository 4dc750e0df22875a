#!/bin/sh
# SPDX-License-Identifier: MIT
# The pipeline with effects and the one with callbacks count alike: on a small text with known
# words, and on input of many chunks whose words cross their borders.
set -eu
folder=$HAFT_SOURCE_DIR/examples/c
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

seq 200000 | sed 's/0/zero/g; s/1/one/g; s/[2-9]/number/g; s/5$/ five/' >"$work/chunks.txt"

for program in word_frequency word_frequency_callbacks; do
  # shellcheck disable=SC2086 # the launcher is a command with arguments, or nothing
  $HAFT_LAUNCHER "$HAFT_TEST_DIR/$program" "$folder/word_frequency_test.txt" >"$work/small.$program"
  diff -u "$folder/word_frequency_test.expected" "$work/small.$program"
  # shellcheck disable=SC2086
  $HAFT_LAUNCHER "$HAFT_TEST_DIR/$program" "$work/chunks.txt" >"$work/large.$program"
done
diff -u "$work/large.word_frequency" "$work/large.word_frequency_callbacks"
grep -q "^199999 words, 485 different" "$work/large.word_frequency"
