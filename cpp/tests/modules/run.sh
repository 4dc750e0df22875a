#!/bin/sh
# SPDX-License-Identifier: MIT
# haft.hpp in the global fragment of a C++20 module.
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
flags="-std=c++20 -I$HAFT_SOURCE_DIR/core/include -I$HAFT_SOURCE_DIR/cpp/include"
if $CXX --version | grep -q clang; then
    $CXX $flags -x c++-module --precompile "$folder/effects.cppm" -o effects.pcm
    $CXX -std=c++20 -c effects.pcm -o effects.o
    $CXX -std=c++20 -fprebuilt-module-path=. -c "$folder/user.cpp" -o user.o
else
    $CXX $flags -fmodules-ts -x c++ -c "$folder/effects.cppm" -o effects.o
    $CXX -std=c++20 -fmodules-ts -c "$folder/user.cpp" -o user.o
fi
$CXX user.o effects.o "$HAFT_BUILD_DIR/core/libhaft.a" -pthread -o program
./program
