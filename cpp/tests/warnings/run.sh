#!/bin/sh
# SPDX-License-Identifier: MIT
# A program that uses every public name of the C++ headers has no warnings under strict flags, where
# the headers are found by -I and by the installed package; and the headers leave the warnings
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
for flags in "-std=c++20 -O2" "-std=c++2b -fsyntax-only"; do
    # shellcheck disable=SC2086 # flags
    compiles "haft.hpp and haft/*.hpp, $flags" $here $flags "$folder/every_name.cpp"
done
# gcc's warnings of casts; and with clang's way to name headers that are not the program's, nothing of them.
# shellcheck disable=SC2086 # flags
if $CXX --version | grep -q clang; then
    $CXX $here -std=c++20 -Weverything --system-header-prefix=haft -fsyntax-only \
        "$folder/every_name.cpp" 2>&1 | grep "/include/haft.*warning:" && failures=1
else
    compiles "haft.hpp and haft/*.hpp, -Wuseless-cast" $here -std=c++20 -Wuseless-cast -fsyntax-only \
        "$folder/every_name.cpp"
fi
for program in test_commands test_finding test_handlers test_modifiers paper_threads; do
    # shellcheck disable=SC2086 # flags
    compiles "cpp-effects.h" $here -std=c++20 -fsyntax-only \
        "$HAFT_SOURCE_DIR/compat/tests/cpp-effects/$program.cpp"
done

cmake --install "$HAFT_BUILD_DIR" --prefix "$work/prefix" >/dev/null 2>&1
PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name haft.pc)")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046 # flags
compiles "the installed headers" $(pkg-config --cflags haft) -std=c++20 -fsyntax-only "$folder/every_name.cpp"

# One mistake for each flag, behind the headers and behind the macros.
{
    sed -n '/^#include <haft/p' "$folder/every_name.cpp"
    cat <<'EOF'
HAFT_EFFECT(asked, int, { int number; });
HAFT_ADOPT(asked);
struct pair { int a, b; };
pair missing_field_initializers() { return {1}; }
char conversion(int wide) { return wide; }
int shadow(int x) { { int x = 1; (void)x; } return x; }
long old_style_cast(void *p) { return (long)p; }
void unused_variable() { int x = 1; }
struct pedantic { int a; struct { int b; }; };
EOF
} >"$work/mistakes.cpp"
mistakes='missing-field-initializers conversion shadow old-style-cast unused-variable pedantic'
wanted=$(for flag in $mistakes; do echo "-W$flag"; done)
# shellcheck disable=SC2086 # flags
$CXX $here -std=c++20 $wanted -Werror -fsyntax-only "$work/mistakes.cpp" >"$work/log" 2>&1
for flag in $mistakes; do
    case $flag in pedantic) said='pedantic\|gnu-anonymous-struct' ;; *) said=$flag ;; esac
    if ! grep -q "mistakes.cpp:.*error: .*-W[a-z-]*=*\($said\)" "$work/log"; then
        echo "-W$flag is switched off behind the headers"
        failures=1
    fi
done
if grep 'error:' "$work/log" | grep -qv 'mistakes.cpp:.*-W'; then
    echo "behind the headers:"
    head -30 "$work/log"
    failures=1
fi
exit $failures
