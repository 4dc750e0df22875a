#!/bin/sh
# A program that uses every public name of the C++ headers has no warnings under strict flags, where
# the headers are found by -I and as the installed package says; and the headers leave the warnings
# of the file that includes them as they were.
set -u
folder=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
strict="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wold-style-cast
  -Wmissing-field-initializers -Werror"
failures=0

compiles() { # WHAT FLAG... FILE
    what=$1
    shift
    # shellcheck disable=SC2086 # flags
    if ! $CXX $strict "$@" -c -o "$work/object.o" >"$work/log" 2>&1; then
        echo "warnings in $what:"
        head -40 "$work/log"
        failures=1
    fi
}

here="-I$HAFT_SOURCE_DIR/core/include -I$HAFT_SOURCE_DIR/cpp/include -I$HAFT_SOURCE_DIR/compat"
for flags in "-std=c++20 -O2" "-std=c++2b -O0"; do
    # shellcheck disable=SC2086 # flags
    compiles "haft.hpp and haft/*.hpp, $flags" $here $flags "$folder/every_name.cpp"
done
for program in test_commands test_finding test_handlers test_modifiers paper_threads; do
    # shellcheck disable=SC2086 # flags
    compiles "cpp-effects.h" $here -std=c++20 -O0 \
        "$HAFT_SOURCE_DIR/compat/tests/cpp-effects/$program.cpp"
done

cmake --install "$HAFT_BUILD_DIR" --prefix "$work/prefix" >/dev/null 2>&1
PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name haft.pc)")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046 # flags
compiles "the installed headers" $(pkg-config --cflags haft) -std=c++20 -O1 "$folder/every_name.cpp"

# One mistake for each flag, behind the headers and behind the macros.
mistake() { # FLAG CODE
    {
        sed -n '/^#include <haft/p' "$folder/every_name.cpp"
        echo 'HAFT_EFFECT(asked, int, { int number; });'
        echo 'HAFT_ADOPT(asked);'
        echo "$2"
    } >"$work/mistake.cpp"
    # shellcheck disable=SC2086 # flags
    if $CXX $here -std=c++20 "$1" -Werror -fsyntax-only "$work/mistake.cpp" >"$work/log" 2>&1; then
        echo "$1 is switched off behind the headers"
        failures=1
    elif grep 'error:' "$work/log" | grep -qv 'mistake.cpp:.*-Werror'; then
        echo "behind the headers, with $1:"
        head -10 "$work/log"
        failures=1
    fi
}
mistake -Wmissing-field-initializers 'struct pair { int a, b; }; pair half() { return {1}; }'
mistake -Wconversion 'char narrow(int wide) { return wide; }'
mistake -Wshadow 'int outer(int x) { { int x = 1; (void)x; } return x; }'
mistake -Wold-style-cast 'long cast(void *p) { return (long)p; }'
mistake -Wunused-variable 'void unused() { int x = 1; }'
mistake -Wpedantic 'struct extension { int a; struct { int b; }; };'
exit $failures
# SPDX-License-Identifier: MIT
