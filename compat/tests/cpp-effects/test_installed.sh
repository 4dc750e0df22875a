#!/bin/sh
# A program for cpp-effects, compiled without a change against the installed package
# haft-cpp-effects, prints what it prints there.
set -eu
work=$(mktemp -d)
folder=$HAFT_SOURCE_DIR/compat/tests/cpp-effects

cmake --install "$HAFT_BUILD_DIR" --prefix "$work/prefix" >/dev/null
libraries=$(dirname "$(find "$work/prefix" -name libhaft.so)")
export PKG_CONFIG_PATH="$libraries/pkgconfig"

# shellcheck disable=SC2046 # flags
"$CXX" -std=c++20 "$folder/paper_state.cpp" -o "$work/shared" \
  $(pkg-config --cflags --libs haft-cpp-effects)
# shellcheck disable=SC2046
"$CXX" -std=c++20 -static "$folder/paper_state.cpp" -o "$work/static" \
  $(pkg-config --static --cflags --libs haft-cpp-effects)

LD_LIBRARY_PATH=$libraries "$work/shared" | diff -u "$folder/paper_state.expected" -
"$work/static" | diff -u "$folder/paper_state.expected" -

# Earlier standards are refused in words.
# shellcheck disable=SC2046
if "$CXX" -std=c++17 -fsyntax-only "$folder/paper_state.cpp" \
  $(pkg-config --cflags haft-cpp-effects) 2>"$work/said"; then
  exit 1
fi
grep -q 'needs C++20' "$work/said"
rm -rf "$work"
# SPDX-License-Identifier: MIT
