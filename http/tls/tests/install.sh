#!/bin/sh
# SPDX-License-Identifier: MIT
# libhaft-tls as `make install` installs it: the example HTTPS, compiled against an installed tree by
# pkg-config, shared and static, and by find_package; and the library shows no names but its own.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$HAFT_BUILD_DIR" --prefix "$work/prefix" >/dev/null
library=$(find "$work/prefix" -name libhaft-tls.so)
libraries=$(dirname "$library")
export PKG_CONFIG_PATH="$libraries/pkgconfig"
example=$HAFT_SOURCE_DIR/examples/http/https
found=haft-tls
http=
if [ -f "$PKG_CONFIG_PATH/haft-http.pc" ]; then
  found=haft-http
  http=http
else
  example=$work/plain
  printf '#include <haft/tls.h>\nint main(void) { return haft_tls_server_context() == NULL; }\n' >"$example.c"
  printf '#include <haft/tls.hpp>\nint main() { haft::tls::server_context context; }\n' >"$example.cpp"
fi

# shellcheck disable=SC2046 # flags
"$CC" -std=gnu11 -Wall -Wextra -Wpedantic -Werror "$example.c" -o "$work/c" \
  $(pkg-config --cflags --libs $found haft-tls)
# shellcheck disable=SC2046
"$CXX" -std=c++20 -Wall -Wextra -Wshadow -Wpedantic -Werror -Wno-missing-field-initializers "$example.cpp" \
  -o "$work/cpp" $(pkg-config --cflags --libs $found haft-tls)
# shellcheck disable=SC2046
"$CC" -std=gnu11 -static "$example.c" -o "$work/static" $(pkg-config --static --cflags --libs $found haft-tls) \
  2>"$work/log" || { cat "$work/log"; exit 1; }

mkdir "$work/project"
cp "$example.cpp" "$work/project/example.cpp"
cat >"$work/project/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.21)
project(example CXX C)
set(CMAKE_CXX_STANDARD 20)
find_package(haft REQUIRED COMPONENTS io tls $http)
add_executable(example example.cpp)
target_link_libraries(example haft::haft_${http:-tls}_static haft::haft_tls_static haft::haft_cpp)
END
cmake -S "$work/project" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_CXX_COMPILER="$CXX" \
  -DCMAKE_C_COMPILER="$CC" >/dev/null
cmake --build "$work/build" >/dev/null

others=$(nm -D --defined-only "$library" | awk '{ print $3 }' | grep -Ev '^haft_(tls|id_haft_io)_' || true)
if [ -n "$others" ]; then
  echo "libhaft-tls.so shows: $others"
  exit 1
fi

# A certificate that is not there is an error with its name.
export LD_LIBRARY_PATH="$libraries"
for program in c cpp static; do
  if [ -n "$http" ] && "$work/$program" /nowhere/chain /nowhere/key 2>"$work/said"; then
    echo "$program has begun without a certificate"
    exit 1
  fi
  [ -z "$http" ] || grep -q '/nowhere/chain: No such file' "$work/said" || { cat "$work/said"; exit 1; }
done
