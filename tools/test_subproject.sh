#!/bin/sh
# SPDX-License-Identifier: MIT
# Haft as a part of another project, by add_subdirectory and by FetchContent: a program of C++ links
# haft::haft_http alone; there are no tests, the build type stays the project's, and its installation has nothing of
# Haft's. And CMake for another system prints that Haft does not run there.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# parent NAME LINES: a project that gets Haft by these lines of CMake.
parent() {
  mkdir "$work/$1"
  cp "$HAFT_SOURCE_DIR/examples/http/hello.cpp" "$HAFT_SOURCE_DIR/examples/http/hello.c" "$work/$1"
  cat >"$work/$1/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.21)
project(parent C CXX)
set(CMAKE_CXX_STANDARD 20)
enable_testing()
add_test(NAME own COMMAND hello)
$2
add_executable(hello hello.cpp)
target_link_libraries(hello haft::haft_http)
add_executable(hello_static hello.c)
target_link_libraries(hello_static haft::haft_http_static)
install(TARGETS hello)
if(CMAKE_BUILD_TYPE OR DEFINED CACHE{CMAKE_BUILD_TYPE} AND NOT "\$CACHE{CMAKE_BUILD_TYPE}" STREQUAL "")
  message(FATAL_ERROR "the build type became \${CMAKE_BUILD_TYPE}")
endif()
END
  cmake -S "$work/$1" -B "$work/build_$1" -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" >"$work/log" 2>&1 ||
    { cat "$work/log"; exit 1; }
  tests=$(ctest --test-dir "$work/build_$1" -N | sed -n 's/^ *Test *#[0-9]*: //p')
  [ "$tests" = own ] || { echo "$1: tests: $tests"; exit 1; }
}

parent fetched "include(FetchContent)
FetchContent_Declare(haft SOURCE_DIR \"$HAFT_SOURCE_DIR\")
FetchContent_MakeAvailable(haft)"
parent added "add_subdirectory(\"$HAFT_SOURCE_DIR\" haft)"
cmake --build "$work/build_added" --parallel 2 >"$work/log" 2>&1 || { tail -50 "$work/log"; exit 1; }
cmake --install "$work/build_added" --prefix "$work/prefix" >/dev/null
installed=$(cd "$work/prefix" && find . -type f)
[ "$installed" = ./bin/hello ] || { echo "installed: $installed"; exit 1; }
[ ! -e "$work/build_added/haft/compat" ] || built=$(find "$work/build_added/haft/compat" -name '*.a' -o -name '*.so')
[ -z "${built:-}" ] || { echo "built for nothing: $built"; exit 1; }

if cmake -S "$HAFT_SOURCE_DIR" -B "$work/elsewhere" -DCMAKE_SYSTEM_NAME=Darwin >"$work/log" 2>&1 ||
  ! tr '\n' ' ' <"$work/log" | grep -q 'Haft runs on Linux, on x86-64 and AArch64, and not on Darwin'; then
  cat "$work/log"
  exit 1
fi
