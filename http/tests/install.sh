#!/bin/sh
# libhaft-http as `make install` installs it: the first programs, compiled against an installed tree by
# pkg-config, shared and static, and by find_package; and the library shows no names but its own, and those
# that are effects of libhaft-io.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$HAFT_BUILD_DIR" --prefix "$work/prefix" >/dev/null
library=$(find "$work/prefix" -name libhaft-http.so)
libraries=$(dirname "$library")
export PKG_CONFIG_PATH="$libraries/pkgconfig"
hello=$HAFT_SOURCE_DIR/examples/http/hello

# shellcheck disable=SC2046 # flags
"$CC" -std=gnu11 -Wall -Wextra -Wpedantic -Werror "$hello.c" -o "$work/c" \
  $(pkg-config --cflags --libs haft-http)
# shellcheck disable=SC2046
"$CXX" -std=c++20 -Wall -Wextra -Wshadow -Wpedantic -Werror -Wno-missing-field-initializers "$hello.cpp" \
  -o "$work/cpp" $(pkg-config --cflags --libs haft-http)
# shellcheck disable=SC2046
"$CC" -std=gnu11 -static "$hello.c" -o "$work/static" $(pkg-config --static --cflags --libs haft-http) \
  2>"$work/log" || { cat "$work/log"; exit 1; }

mkdir "$work/project"
cp "$hello.cpp" "$work/project"
cat >"$work/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.21)
project(hello CXX C)
set(CMAKE_CXX_STANDARD 20)
find_package(haft REQUIRED COMPONENTS io http)
add_executable(hello hello.cpp)
target_link_libraries(hello haft::haft_http_static haft::haft_cpp)
END
cmake -S "$work/project" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_CXX_COMPILER="$CXX" \
  -DCMAKE_C_COMPILER="$CC" >/dev/null
cmake --build "$work/build" >/dev/null

others=$(nm -D --defined-only "$library" | awk '{ print $3 }' | grep -Ev '^haft_(http|id_haft_io)_' || true)
if [ -n "$others" ]; then
  echo "libhaft-http.so shows: $others"
  exit 1
fi

# The server answers, and ends well.
export LD_LIBRARY_PATH="$libraries"
for program in c cpp static; do
  port=$((20000 + $$ % 10000))
  "$work/$program" $port 2>/dev/null &
  server=$!
  python3 - $port <<'END'
import sys, time, urllib.request
for attempt in range(100):
    try:
        print(urllib.request.urlopen(f'http://localhost:{sys.argv[1]}/hello/you').read().decode(), end='')
        break
    except OSError:
        time.sleep(0.1)
else:
    sys.exit('hello does not answer')
END
  kill $server
  wait $server
done
# SPDX-License-Identifier: MIT
