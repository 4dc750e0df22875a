#!/bin/sh
# SPDX-License-Identifier: MIT
# Each name like haft_io_..., haft_http_..., io::... or http::... in the text and the tables of these
# pages is declared in the headers.
set -u
work=$(mktemp -d)
cd "$HAFT_SOURCE_DIR/docs" || exit 1
pages='io.md io-cpp.md simulation.md coming-from.md internals.md http.md'
trap 'rm -rf "$work"' EXIT
failed=0

# A line for each name in the code of a line. One that is cut short (`_receive` after `haft_io_channel_send`) gives
# all that it may stand for.
# shellcheck disable=SC2086 # several pages
awk '
  /^```/ { fenced = !fenced }
  !fenced {
    count = split($0, spans, "`")
    for (i = 2; i <= count; i += 2)
      if (/^\|/ && match(spans[i], /^_[a-z_]+/)) {
        cut = substr(spans[i], 1, RLENGTH)
        names = ""
        for (start = last; sub(/_[a-z]+$/, "", start) && start != "haft";)
          names = names " " start cut
        print names
      } else
        for (rest = spans[i]; match(rest, /(haft_io_|HAFT_IO_|io::|haft_http_|HAFT_HTTP_|http::)[A-Za-z_]*[A-Za-z]/);
             rest = substr(rest, RSTART + RLENGTH)) {
          name = substr(rest, RSTART, RLENGTH)
          before = RSTART > 1 ? substr(rest, RSTART - 1, 1) : ""
          if (before ~ /[a-z]/ || (before == ":" && name ~ /^haft/)) # tokio::, and haft::haft_io of CMake
            continue
          print last = name
        }
  }' $pages | sort -u >"$work/names"

cat "$HAFT_SOURCE_DIR"/io/include/haft/*.h "$HAFT_SOURCE_DIR"/io/src/*.h "$HAFT_SOURCE_DIR"/http/include/haft/*.h >"$work/headers"
is_declared() {
  for name in "$@"; do
    if grep -qw "$name" "$work/headers"; then
      return 0
    fi
  done
  return 1
}
grep -v '::' "$work/names" >"$work/names.c"
while read -r names; do
  # shellcheck disable=SC2086 # several names
  if ! is_declared $names; then
    echo "$pages: nothing is called $names"
    failed=1
  fi
done <"$work/names.c"

{
  echo '#include <haft/io.hpp>'
  echo '#include <haft/io_threads.hpp>'
  echo '#include <haft/http.hpp>'
  echo 'namespace here {'
  sed -n 's/.*::.*/using haft::&;/p' "$work/names"
  echo '}'
} >"$work/names.cpp"
if ! "$CXX" -std=c++20 -fsyntax-only -I"$HAFT_SOURCE_DIR/core/include" -I"$HAFT_SOURCE_DIR/cpp/include" \
  -I"$HAFT_SOURCE_DIR/io/include" -I"$HAFT_SOURCE_DIR/http/include" "$work/names.cpp"; then
  failed=1
fi
count=$(wc -l <"$work/names")
echo "$count names"
[ $failed -eq 0 ] && [ "$count" -gt 50 ]
