#!/bin/sh
# readme-figures.sh: copies the figures of bench/report.md that the README shows into it, between its
# two "figures" markers. To be run after `make bench`.
set -eu
cd "$(dirname "$0")/.."
report=bench/report.md
new=$(mktemp)
trap 'rm -f "$new"' EXIT

# The part of the report under this heading.
section() {
  awk -v heading="## $1" '$0 == heading { on = 1; next } /^## / { on = 0 } on' "$report"
}

figures() {
  sed -n 's/^Written by `bench\/run.py`, which says how it measures\. /Measured on: /p' "$report"
  echo
  section 'What is promised' | grep '^|'
  echo
  echo 'Nanoseconds an operation, least and median, each in one interleaved series with its peers:'
  echo
  echo '| operation | Haft | Boost.Context | C++20 coroutines | setjmp/longjmp |'
  echo '| --- | ---: | ---: | ---: | ---: |'
  for row in 'round-trip:perform, handle, resume' 'tail-resumptive:tail-resumptive clause' \
    'default-handler:default handler' 'create-run-free:create, run, free' \
    'create-throw-free:create, throw, free'; do
    section Microbenchmarks | awk -F '|' -v name="${row%%:*}" -v title="${row#*:}" '
      { gsub(/ /, "", $2); split($2, of, "/"); if (of[2] == name) figure[of[1]] = $3 "/" $4 }
      function cell(peer) { return peer in figure ? figure[peer] : "" }
      END { print "| " title " |" cell("haft") "|" cell("boost") "|" cell("coroutines") "|" cell("setjmp") "|" }'
  done
  echo
  echo 'The public effect-handler benchmark programs, processor seconds, median and least:'
  echo
  section 'The public effect-handler benchmark programs' | awk '/^\|/ { print; on = 1; next } on { exit }'
}

awk '/<!-- figures -->/ { print; exit } { print }' README.md >"$new"
echo >>"$new"
figures >>"$new"
echo >>"$new"
awk '/<!-- end of figures -->/ { on = 1 } on' README.md >>"$new"
cat "$new" >README.md
