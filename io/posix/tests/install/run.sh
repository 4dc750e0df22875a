#!/bin/sh
# libhaft-posix as `make install` installs it: a program that names nothing of it is linked with it by
# pkg-config and by find_package, or runs with it preloaded, and its tasks wait by themselves.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$HAFT_BUILD_DIR" --prefix "$work/prefix" >/dev/null
library=$(find "$work/prefix" -name libhaft-posix.so)
libraries=$(dirname "$library")
export PKG_CONFIG_PATH="$libraries/pkgconfig"

# expect NUMBER COMMAND...
expect() {
  number=$1
  shift
  printed=$(env LD_LIBRARY_PATH="$libraries" "$@")
  [ "$printed" = "$number" ] || { echo "$*: $printed instead of $number"; exit 1; }
}

# (Some linkers leave out what is not named by default, and some when they are told to.)
# shellcheck disable=SC2046 # flags
"$CC" -std=gnu11 -Wall -Wextra -Wpedantic -Werror -Wl,--as-needed consumer.c -o "$work/linked" \
  $(pkg-config --cflags --libs haft-posix)
expect 42 "$work/linked"

cmake -S . -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_C_COMPILER="$CC" >"$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/build" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
expect 42 "$work/build/linked"

# shellcheck disable=SC2046
"$CC" -std=gnu11 -Wall -Werror consumer.c -o "$work/preloaded" $(pkg-config --cflags --libs haft-io)
expect 0 "$work/preloaded"
expect 42 env LD_PRELOAD="$library" "$work/preloaded"

# A program that has no tasks is served as ever.
expect text env LD_PRELOAD="$library" sh -c 'echo text | cat'

# It shows functions of the libraries of the system and of C++ that it answers, the effects of the headers, and
# haft_posix_.
names() { nm -D --defined-only "$@" | awk 'NF > 2 { sub("@.*", "", $NF); print $NF }' | sort -u; }
systems=$(ldd "$library" | awk '$3 ~ "^/" && $1 !~ "haft" { print $3 }')
# shellcheck disable=SC2086 # several
names $systems >"$work/system"
strays=$(names "$library" | grep -Ev '^haft_(id|posix)_|^__cxa_guard_|random_device' | comm -23 - "$work/system")
[ -z "$strays" ] || { echo "libhaft-posix.so exports: $strays"; exit 1; }
# SPDX-License-Identifier: MIT
