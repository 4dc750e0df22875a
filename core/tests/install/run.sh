#!/bin/sh
# What a user gets from `make install`: installs the build into a fresh prefix, compiles programs
# against it by pkg-config and by find_package, shared and static, in C and C++, and runs them;
# then looks at what libhaft.so shows to the world.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

step() {
  echo "-- $*"
}

step install
cmake --install "$HAFT_BUILD_DIR" --prefix "$work/elsewhere" >/dev/null
# A tree that was moved after installation must still work.
mv "$work/elsewhere" "$prefix"
library=$(find "$prefix" -name libhaft.so)
libraries=$(dirname "$library")
export PKG_CONFIG_PATH="$libraries/pkgconfig"

expect_42() {
  [ "$("$@")" = 42 ]
}

strict='-Wall -Wextra -Wpedantic -Werror'

step licence and documents
for file in LICENSE README.md docs/guide.md bench/figures.svg; do
  [ -s "$prefix/share/doc/haft/$file" ] || { echo "$file is not installed"; exit 1; }
done
for file in "$libraries"/pkgconfig/*.pc; do
  grep -q '^URL: https://' "$file" || { echo "$file has no URL"; exit 1; }
done

step pkg-config, shared
# shellcheck disable=SC2046,SC2086 # flags
"$CC" -std=gnu11 $strict consumer.c -o "$work/shared" $(pkg-config --cflags --libs haft)
expect_42 env LD_LIBRARY_PATH="$libraries" "$work/shared"
readelf -d "$work/shared" | grep -q 'NEEDED.*libhaft\.so\.0'

step pkg-config, static
# shellcheck disable=SC2046,SC2086
"$CC" -std=gnu11 $strict -static consumer.c -o "$work/static" \
  $(pkg-config --static --cflags --libs haft)
expect_42 "$work/static"

step find_package
cmake -S . -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" >"$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/build" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
for program in c_haft c_haft_static cpp_haft cpp_haft_static; do
  expect_42 "$work/build/$program"
done

step exported symbols
strays=$(nm -D --defined-only "$library" | awk '{ print $NF }' | grep -Ev '^(haft_|HAFT_)' || true)
[ -z "$strays" ] || { echo "libhaft.so exports: $strays"; exit 1; }

step soname
readelf -d "$library" | grep -q 'SONAME.*\[libhaft\.so\.0\]'

step no executable stack
for file in "$library" "$work/shared" "$work/static"; do
  readelf -lW "$file" | grep -Eq 'GNU_STACK.* RW +0x' || { echo "$file"; exit 1; }
done
# SPDX-License-Identifier: MIT
