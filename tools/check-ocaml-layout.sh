#!/bin/sh
# SPDX-License-Identifier: MIT
# check-ocaml-layout.sh FOLDER...: the .ml and .mli files below have no tabs, no blanks at the ends of lines, no two
# blank lines in a row, none at the end, and at most 120 characters a line. (No distribution that we test on has
# ocamlformat.) Files that are meant to be wrong, in folders named refusals and mended, may be anything.
set -eu
LC_ALL=C
export LC_ALL
find "$@" \( -name refusals -o -name mended -o -name _build \) -prune -o \( -name '*.ml' -o -name '*.mli' \) -print |
  sort | {
  wrong=0
  while read -r file; do
    awk '
      function tell(what) { printf "%s:%d: %s\n", FILENAME, FNR, what; wrong = 1 }
      { line = $0; gsub(/[\200-\277]/, "", line) } # a character is counted by its first byte
      /\t/ { tell("a tab") }
      /[ \r]$/ { tell("a blank at the end of the line") }
      length(line) > 120 { tell("more than 120 characters") }
      $0 == "" && blank { tell("two blank lines") }
      { blank = $0 == "" }
      END { if (blank) tell("a blank line at the end"); exit wrong }' "$file" || wrong=1
  done
  exit $wrong
}
