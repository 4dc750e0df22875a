#!/bin/sh
# The tree that `make install` makes: installs the build into a fresh prefix, compiles programs
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
[ -s "$prefix/share/man/man7/haft-debug.7" ] || { echo 'haft-debug(7) is not installed'; exit 1; }
for file in LICENSE README.md docs/guide.md bench/figures.svg; do
  [ -s "$prefix/share/doc/haft/$file" ] || { echo "$file is not installed"; exit 1; }
done
HAFT_SOURCE_DIR=$prefix/share/doc/haft sh ../../../docs/test_links.sh
for file in "$libraries"/pkgconfig/*.pc; do
  grep -q '^URL: https://' "$file" || { echo "$file has no URL"; exit 1; }
done

step pkg-config, shared
# shellcheck disable=SC2046,SC2086 # flags
"$CC" -std=gnu11 $strict consumer.c -o "$work/shared" $(pkg-config --cflags --libs haft)
expect_42 env LD_LIBRARY_PATH="$libraries" "$work/shared"
readelf -d "$work/shared" | grep -q 'NEEDED.*libhaft\.so\.0\.4'

step the commands of gdb
if command -v gdb >/dev/null && gdb -nx -batch -ex 'python print(1)' 2>/dev/null | grep -q 1; then
  LD_LIBRARY_PATH=$libraries gdb -nx -batch -iex "add-auto-load-safe-path $libraries" -iex 'set debuginfod enabled off' \
    -iex 'set breakpoint pending on' -ex 'break haft_fiber_drop' -ex run -ex 'haft fibers' "$work/shared" >"$work/log" 2>&1 </dev/null
  grep -q '^1 fiber$' "$work/log" || { cat "$work/log"; exit 1; }
fi

step ISO C, pedantic
# shellcheck disable=SC2046,SC2086
"$CC" -std=c11 $strict -fsyntax-only consumer.c $(pkg-config --cflags haft)

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

step a component that does not exist
mkdir "$work/nonsense"
printf 'cmake_minimum_required(VERSION 3.21)\nproject(nonsense C)\nfind_package(haft REQUIRED COMPONENTS nonsense)\n' \
  >"$work/nonsense/CMakeLists.txt"
! cmake -S "$work/nonsense" -B "$work/nonsense/build" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1
tr -s '\n ' ' ' <"$work/log" | grep -q 'no component nonsense: there are io, posix, tls and http'

step libraries find each other
for file in "$libraries"/libhaft*.so; do
  readelf -d "$file" | grep -q 'RUNPATH.*\[\$ORIGIN\]' || { echo "$file looks elsewhere"; exit 1; }
done

step uninstall
cmake --install "$HAFT_BUILD_DIR" --prefix "$work/removed" >/dev/null
sh ../../../tools/uninstall.sh "$HAFT_BUILD_DIR/install_manifest.txt"
[ ! -e "$work/removed" ] || { echo 'left behind:'; find "$work/removed"; exit 1; }

step exported symbols
strays=$(nm -D --defined-only "$library" | awk '{ print $NF }' | grep -Ev '^(hafti?_|HAFT_)' || true)
[ -z "$strays" ] || { echo "libhaft.so exports: $strays"; exit 1; }

step soname
readelf -d "$library" | grep -q 'SONAME.*\[libhaft\.so\.0\.4\]'

step a program of another ABI does not link
sed 's/haft_abi_0_4/haft_abi_0_3/g' "$prefix/include/haft.h" >"$work/other.h"
mkdir -p "$work/other"
cp -r "$prefix/include/." "$work/other/"
mv "$work/other.h" "$work/other/haft.h"
# shellcheck disable=SC2046,SC2086
! "$CC" -I"$work/other" -std=gnu11 $strict consumer.c -o "$work/mismatch" \
  $(pkg-config --cflags --libs haft) 2>"$work/log"
grep -q 'haft_abi_0_3' "$work/log"

step a program that knows fewer, or more, options
cat >"$work/grown.c" <<'END'
#include <haft.h>
#include <string.h>
static void *give(void *it) { return it; }
struct { haft_fiber_options_t options; char later[64]; } more;
int main(void) {
    size_t fewer = offsetof(haft_fiber_options_t, segmented);
    haft_fiber_options_t options;
    memset(&options, 0xff, sizeof options);
    memset(&options, 0, fewer);
    options.name = "old";
    more.options.name = "new";
    haft_fiber_t *old = hafti_fiber_new_sized(&options, fewer, give, &fewer);
    haft_fiber_t *new = hafti_fiber_new_sized(&more.options, sizeof more, give, &fewer);
    return strcmp(haft_fiber_name(old), "old") != 0 || strcmp(haft_fiber_name(new), "new") != 0 ||
           !haft_finished(haft_resume(old, HAFT_NO_REPLY, HAFT_HANDLES())) ||
           strcmp(haft_version(), "0.4.0") != 0;
}
END
# shellcheck disable=SC2046,SC2086
"$CC" -std=gnu11 $strict "$work/grown.c" -o "$work/grown" $(pkg-config --cflags --libs haft)
LD_LIBRARY_PATH="$libraries" "$work/grown"

step haft.h brings no stdio.h
echo '#include <haft.h>' | "$CC" -I"$prefix/include" -M -xc - >"$work/log"
! grep -q stdio.h "$work/log"

step no executable stack
for file in "$library" "$work/shared" "$work/static"; do
  readelf -lW "$file" | grep -Eq 'GNU_STACK.* RW +0x' || { echo "$file"; exit 1; }
done
# SPDX-License-Identifier: MIT
