#!/bin/sh
# SPDX-License-Identifier: MIT
# A user's program with each sanitizer of the compiler calls every function that libhaft-posix
# replaces, outside of tasks and on one. Sanitizers replace many of them, too, and stand before
# libhaft-posix or behind it.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
core=$HAFT_BUILD_DIR/core/libhaft.so
io=$HAFT_BUILD_DIR/io/libhaft-io.so
library=$HAFT_BUILD_DIR/io/posix/libhaft-posix.so
LD_LIBRARY_PATH=$(dirname "$library"):$(dirname "$io"):$(dirname "$core")
headers="-I$HAFT_SOURCE_DIR/core/include -I$HAFT_SOURCE_DIR/io/include"
# (libhaft-io is not built with the thread sanitizer, which so does not see in what order tasks and
# threads of the pool run.)
TSAN_OPTIONS="suppressions=$work/suppressions print_suppressions=0"
# (Nor does it know pthread_mutex_clocklock.)
printf 'race:*\nmutex:*\n' >"$work/suppressions"
export LD_LIBRARY_PATH TSAN_OPTIONS

# fail FILE MESSAGE
fail() {
  echo "$2"
  head -40 "$1"
  exit 1
}

# The functions that are replaced: all that the library exports but its own functions, the headers' effects, and
# what is C++'s.
nm -D --defined-only "$library" | awk 'NF > 2 { sub("@.*", "", $NF); print $NF }' |
  grep -Ev '^(haft_|_Z)' | sort -u >"$work/replaced"

# None of them is called through the linker's table, where a sanitizer's would be found first.
readelf -Wr "$library" | awk 'NF > 4 { sub("@.*", "", $5); print $5 }' | sort -u |
  comm -12 - "$work/replaced" >"$work/by_table"
[ ! -s "$work/by_table" ] || fail "$work/by_table" 'libhaft-posix calls these by its table:'

# try SANITIZER [OPTION]: builds the program, and runs it in an empty folder.
try() {
  sanitizer=$1
  shift
  # shellcheck disable=SC2086 # several options
  "$CC" -std=gnu11 -D_GNU_SOURCE -g -fexceptions -Wno-deprecated-declarations "$@" $headers \
    -I"$HAFT_SOURCE_DIR/io/posix/include" every.c -o "$work/every" \
    -Wl,--no-as-needed "$library" "$io" "$core" -pthread 2>"$work/log" ||
    fail "$work/log" "$CC, $sanitizer, is not built:"
  rm -rf "$work/folder"
  mkdir "$work/folder"
  (cd "$work/folder" && timeout 60 "$work/every") >"$work/called" 2>"$work/log" ||
    fail "$work/log" "$CC, $sanitizer:"
  [ ! -s "$work/log" ] || fail "$work/log" "$CC, $sanitizer:"
  sort -u "$work/called" | comm -13 - "$work/replaced" >"$work/missing"
  [ ! -s "$work/missing" ] || fail "$work/missing" 'every.c does not call these:'
}

try none
for sanitizer in address undefined leak thread; do
  try $sanitizer -fsanitize=$sanitizer
done
