#!/bin/sh
# A program for libseff, compiled without a change against the installed package haft-seff, shared and
# static, prints what it prints there.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
folder=$HAFT_SOURCE_DIR/compat/tests

cmake --install "$HAFT_BUILD_DIR" --prefix "$work/prefix" >/dev/null
libraries=$(dirname "$(find "$work/prefix" -name libhaft.so)")
export PKG_CONFIG_PATH="$libraries/pkgconfig"

# shellcheck disable=SC2046 # flags
"$CC" -w "$folder/paper_state.c" -o "$work/shared" $(pkg-config --cflags --libs haft-seff)
# shellcheck disable=SC2046
"$CC" -w -static "$folder/paper_state.c" -o "$work/static" \
  $(pkg-config --static --cflags --libs haft-seff)

LD_LIBRARY_PATH=$libraries "$work/shared" | diff -u "$folder/paper_state.expected" -
"$work/static" | diff -u "$folder/paper_state.expected" -
