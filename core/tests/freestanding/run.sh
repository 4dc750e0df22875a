#!/bin/sh
# run.sh FOLDER: builds libhaft-freestanding.a there with $CC, looks at what it needs of its
# surroundings, and runs programs with it that have no libc, under $HAFT_LAUNCHER.
set -eu
build=$1
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
CC=${CC:-cc}

target=$("$CC" -dumpmachine)
machine=${target%%-*}
toolchain=
if [ "$machine" != "$(uname -m)" ]; then
  toolchain=-DCMAKE_TOOLCHAIN_FILE=$root/cmake/$machine-linux-gnu.cmake
fi
outline=
if [ "$machine" = aarch64 ]; then
  outline=-mno-outline-atomics
fi

# compile OUTPUT FLAG...: a test program on the system's calls alone.
compile() {
  output=$1
  shift
  # shellcheck disable=SC2086 # flags
  "$CC" -std=gnu11 -Wall -Wextra -Wpedantic -Werror -ffreestanding -fno-exceptions \
    -fno-stack-protector -fno-pie -static -nostdlib $outline -DHAFT_FREESTANDING \
    -I"$root/core/include" "$@" "$here/program.c" "$here/system.c" "$library" -o "$output"
}

# docs/freestanding.md: its commands as they stand there, with this compiler and architecture, make a
# library that lacks nothing; and the size of a header that it states is the size.
document=$root/docs/freestanding.md
rm -rf "$build/recipe"
mkdir -p "$build/recipe"
awk '/^    for file in/ { on = 1 } on && !/^    / { exit } on { print }' "$document" |
  sed -e "s|^ *cc |\"\$CC\" $outline |" -e "s|core/arch/x86_64|core/arch/$machine|" >"$build/recipe/run"
ln -s "$root/core" "$build/recipe/core"
(cd "$build/recipe" && CC=$CC sh ./run)
nm -P "$build"/recipe/*.o | awk '
  $2 == "U" { needed[$1] = 1 }
  $2 ~ /^[A-TV-Za-tv-z]$/ { defined[$1] = 1 }
  END {
    for (name in needed)
      if (!(name in defined) && name !~ /^(mem(cpy|set|move|cmp)|_GLOBAL_OFFSET_TABLE_)$/) {
        print "what the recipe of docs/freestanding.md builds lacks " name
        strays = 1
      }
    exit strays
  }'
stated=$(sed -n "s/^A fiber's header is \([0-9]*\) bytes.*/\1/p" "$document")
printf '#include "ground.h"\n_Static_assert(sizeof(haft_fiber_t) == %s, "docs/freestanding.md");\n' \
  "$stated" >"$build/recipe/header.c"
"$CC" -DHAFT_FREESTANDING -ffreestanding -I"$root/core/include" -I"$root/core/src" -fsyntax-only \
  "$build/recipe/header.c"
echo "ok   the recipe and the size of a header in docs/freestanding.md"

for type in Release Debug; do
  cmake -S "$root" -B "$build/$type" -DCMAKE_BUILD_TYPE=$type -DCMAKE_C_COMPILER="$CC" \
    ${toolchain:+"$toolchain"} -DHAFT_FREESTANDING=ON -DHAFT_TESTS=OFF -DHAFT_EXAMPLES=OFF \
    -DHAFT_WARNINGS_AS_ERRORS=ON >"$build/log" || { cat "$build/log"; exit 1; }
  cmake --build "$build/$type" --target haft_freestanding >"$build/log" 2>&1 ||
    { cat "$build/log"; exit 1; }
  library=$build/$type/core/libhaft-freestanding.a

  # The linker makes the global offset table.
  nm -P "$library" | awk '
    $2 == "U" { needed[$1] = 1 }
    $2 ~ /^[A-TV-Za-tv-z]$/ { defined[$1] = 1 }
    END {
      for (name in needed)
        if (!(name in defined) && name !~ /^(mem(cpy|set|move|cmp)|_GLOBAL_OFFSET_TABLE_)$/) {
          print "the library needs " name
          strays = 1
        }
      exit strays
    }'
  echo "ok   the $type library needs nothing but memcpy and its like"

  for level in -O0 -O2; do
    echo "---- $type library, program with $level"
    size=8192
    if [ "$type$level" = Release-O2 ]; then
      size=1152
    fi
    compile "$build/program" "$level" -DSIZE=$size
    # shellcheck disable=SC2086 # a command with arguments
    ${HAFT_LAUNCHER:-} "$build/program"
  done
done

compile "$build/program" -O2 -DSIZE=4096 -DWITHOUT_PANIC
status=0
# shellcheck disable=SC2086
${HAFT_LAUNCHER:-} "$build/program" >"$build/log" 2>&1 || status=$?
[ $status -ge 128 ] || { cat "$build/log"; echo "an error without a haft_panic did not trap"; exit 1; }
echo "ok   an error traps if the program defines no haft_panic"
# SPDX-License-Identifier: MIT
