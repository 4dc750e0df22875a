#!/bin/sh
# Segmented fibers by both compilers, optimised and not, with the static and the shared library, linked
# by haft-split.pc: installs the build and asks pkg-config.
set -eu
cd "$(dirname "$0")"
# Without optimisation libhaft's own frames are larger than what a segment keeps in reserve.
if grep -q 'CMAKE_BUILD_TYPE:.*=Debug' "$HAFT_BUILD_DIR/CMakeCache.txt"; then exit 77; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$HAFT_BUILD_DIR" --prefix "$work/prefix" >/dev/null
libraries=$(dirname "$(find "$work/prefix" -name libhaft.so)")
export PKG_CONFIG_PATH="$libraries/pkgconfig" LD_LIBRARY_PATH="$libraries"
flags=$(pkg-config --cflags haft)
split=$(pkg-config --cflags haft-split)
libs="$(pkg-config --libs haft-split) -pthread"
# shellcheck disable=SC2086 # flags, here and below
"$CC" -O2 -g $flags -c unaware.c -o "$work/unaware.o"

run() { # NAME COMMAND...
  name=$1
  shift
  "$@" -o "$work/program" || { echo "not built: $name"; exit 1; }
  "$work/program" >"$work/output" 2>&1 || { cat "$work/output"; echo "failed: $name"; exit 1; }
  echo "ok: $name"
}

for compiler in gcc clang; do
  command -v $compiler >/dev/null || continue
  case $compiler in
  gcc) own="$split -maccumulate-outgoing-args" cxx=g++ ;;
  clang) own=$(echo "$split" | sed 's/-maccumulate-outgoing-args//') cxx=clang++ ;;
  esac
  for level in -O0 -O2; do
    run "C, $compiler $level, shared" \
      $compiler -std=gnu11 $level -g -Wall -Wextra -Wshadow -Werror -rdynamic $own fibers.c \
      "$work/unaware.o" $libs
    run "C, $compiler $level, static executable" \
      $compiler -std=gnu11 $level -g $own fibers.c "$work/unaware.o" -static $libs
    command -v $cxx >/dev/null || continue
    run "C++, $compiler $level, shared" \
      $cxx -std=c++20 $level -g -Wall -Wextra -Wshadow -Werror $own fiber_exceptions.cpp \
      "$work/unaware.o" $libs
  done
done
# SPDX-License-Identifier: MIT
