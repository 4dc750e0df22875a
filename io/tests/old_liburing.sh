#!/bin/sh
# SPDX-License-Identifier: MIT
# Where liburing is older than the sources need, or is missing, libhaft-io is configured for epoll, and one line has
# the reason.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/old"
echo 'struct io_uring; int io_uring_submit(struct io_uring *ring);' >"$work/old/liburing.h"
echo 'int io_uring_submit(void *ring); int io_uring_submit(void *ring) { return ring != 0; }' >"$work/old.c"
"$CC" -c "$work/old.c" -o "$work/old.o"
ar rc "$work/old/liburing.a" "$work/old.o"

falls_back() { # REASON OPTION...
  reason=$1
  shift
  rm -rf "$work/build"
  cmake -S "$HAFT_SOURCE_DIR" -B "$work/build" -DHAFT_PARTS='core;io' -DCMAKE_C_COMPILER="$CC" \
    -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON "$@" >"$work/said"
  if [ "$(grep -c "libhaft-io is built without io_uring: $reason" "$work/said")" != 1 ] ||
    grep -q 'HAFT_IO_URING\|src/uring\.c' "$work/build/compile_commands.json"; then
    cat "$work/said"
    exit 1
  fi
}
falls_back 'liburing is older than 2.3' \
  -DHAFT_LIBURING_HEADER="$work/old" -DHAFT_LIBURING="$work/old/liburing.a"
falls_back 'liburing is not installed' -DHAFT_LIBURING=OFF
