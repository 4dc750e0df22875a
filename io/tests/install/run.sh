#!/bin/sh
# libhaft-io as `make install` installs it: a program is compiled against an installed tree by
# pkg-config and by find_package, shared and static, in C and C++, and runs; and what the library shows.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$HAFT_BUILD_DIR" --prefix "$work/prefix" >/dev/null
library=$(find "$work/prefix" -name libhaft-io.so)
libraries=$(dirname "$library")
export PKG_CONFIG_PATH="$libraries/pkgconfig"

for tool in haft-trace haft-top haft-replay; do
  "$work/prefix/bin/$tool" --help >/dev/null || { echo "$tool is not installed"; exit 1; }
  [ -s "$work/prefix/share/man/man1/$tool.1" ] || { echo "$tool(1) is not installed"; exit 1; }
done

expect_42() {
  [ "$(env LD_LIBRARY_PATH="$libraries" "$@")" = 42 ]
}

# shellcheck disable=SC2046 # flags
"$CC" -std=gnu11 -Wall -Wextra -Wpedantic -Werror consumer.c -o "$work/shared" \
  $(pkg-config --cflags --libs haft-io)
expect_42 "$work/shared"

# Without the extensions of GNU, which also hides what is not of C.
# shellcheck disable=SC2046
printf '#include <haft/io.h>\n' | "$CC" -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c - \
  $(pkg-config --cflags haft-io)

# shellcheck disable=SC2046
"$CXX" -x c++ -std=c++20 -Wall -Wextra -Werror -Wno-missing-field-initializers consumer.c \
  -o "$work/cpp" $(pkg-config --cflags --libs haft-io)
expect_42 "$work/cpp"

# The header of C++, first in its file, under users' warnings.
# shellcheck disable=SC2046
"$CXX" -std=c++20 -Wall -Wextra -Wshadow -Wpedantic -Werror consumer.cpp -o "$work/cpp_face" \
  $(pkg-config --cflags --libs haft-io)
expect_42 "$work/cpp_face"

# Where that cannot work it prints the reason, and no more.
refuses() { # WORDS FLAG...
  words=$1
  shift
  # shellcheck disable=SC2046
  if "$CXX" $(pkg-config --cflags haft-io) "$@" -fsyntax-only consumer.cpp >"$work/log" 2>&1 ||
    ! head -8 "$work/log" | grep -q "error: .*$words" || [ "$(wc -l <"$work/log")" -gt 12 ]; then
    echo "with $*:"
    cat "$work/log"
    exit 1
  fi
}
refuses "haft/io.hpp is C++20" -std=c++17
refuses "haft/io.hpp needs exceptions" -std=c++20 -fno-exceptions

cmake -S . -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" >"$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/build" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
expect_42 "$work/build/c_haft_io"
expect_42 "$work/build/c_haft_io_static"
expect_42 "$work/build/cpp_haft_io"
expect_42 "$work/build/cpp_haft_io_static"

strays=$(nm -D --defined-only "$library" | awk '{ print $NF }' | grep -Ev '^haft_' || true)
[ -z "$strays" ] || { echo "libhaft-io.so exports: $strays"; exit 1; }
readelf -d "$library" | grep -q 'SONAME.*\[libhaft-io\.so\.0\.4\]'
# SPDX-License-Identifier: MIT
