#!/bin/sh
# SPDX-License-Identifier: MIT
# The manual pages: mandoc, or man, finds nothing wrong with them, and they know the commands and options of the
# programs.
set -eu
cd "$HAFT_SOURCE_DIR/docs/man"
if command -v mandoc >/dev/null; then
  mandoc -T lint -W warning ./*.[0-9]
elif command -v man >/dev/null; then
  for page in ./*.[0-9]; do
    said=$(LC_ALL=C MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l "$page" 2>&1 >/dev/null)
    [ -z "$said" ] || { echo "$page: $said"; exit 1; }
  done
else
  echo 'neither mandoc nor man is here'
  exit 77
fi

# knows PAGE WORD...: it names them.
knows() {
  page=$1
  shift
  for word in "$@"; do
    grep -q -e "^\.\(It \)\?Cm $word" -e "Fl $word" "$page" || { echo "$page does not know $word"; exit 1; }
  done
}
if command -v python3 >/dev/null; then
  # shellcheck disable=SC2046 # words
  knows haft-trace.1 $(python3 ../../tools/haft-trace --help | sed -n 's/^    \([a-z][a-z]*\) .*/\1/p')
  # shellcheck disable=SC2046
  knows haft-trace.1 $(python3 ../../tools/haft-trace otlp --help | sed -n 's/.*\[--\([a-z]*\) .*/-\1/p')
  knows haft-top.1 -once
  knows haft-replay.1 -as-test -expects
fi
# shellcheck disable=SC2046
knows haft-debug.7 $(sed -n 's/^| `\(haft [a-z]*\).*/\1/p' ../debugging.md | tr ' ' '.')
