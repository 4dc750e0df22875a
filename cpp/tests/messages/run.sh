#!/bin/sh
# SPDX-License-Identifier: MIT
# Each case of cases.cpp must not compile, and the first lines of the compiler's message must name
# what its line `// CASE name: words` has; the case `fine` must compile.
set -u
folder=$(dirname "$0")
here="-std=c++20 -I$HAFT_SOURCE_DIR/core/include -I$HAFT_SOURCE_DIR/cpp/include"
flags="-fsyntax-only $here"
failures=0
work=$(mktemp -d)
log=$work/log
trap 'rm -rf "$work"' EXIT

# The headers that the cases include, compiled once.
first="-include $work/first.hpp"
grep '^#include' "$folder/cases.cpp" >"$work/first.hpp"
$CXX $here -x c++-header "$work/first.hpp" -o "$work/first.hpp.gch"

if ! $CXX $flags $first -DCASE_fine "$folder/cases.cpp" >"$log" 2>&1; then
    echo "the case that is right does not compile:"
    head -20 "$log"
    failures=1
fi
cases=$(sed -n 's|^#ifdef \(CASE_[a-z_]*\) *// *\(.*\)|\1 \2|p' "$folder/cases.cpp" | tr ' ' ',')
for case in $cases; do
    name=${case%%,*}
    if $CXX $flags $first -D"$name" "$folder/cases.cpp" >"$log" 2>&1; then
        echo "$name compiles"
        failures=1
        continue
    fi
    # One mistake, one message: the second error at most tells what the first means for the caller.
    errors=$(grep -c 'error:' "$log")
    if [ "$errors" -gt 2 ] || [ "$(wc -l <"$log")" -gt 40 ]; then
        echo "$name: $errors errors in $(wc -l <"$log") lines"
        cat "$log"
        failures=1
    fi
    for word in $(echo "${case#*,}" | tr ',' ' '); do
        if ! head -15 "$log" | grep -q -- "$word"; then
            echo "$name: the first lines do not name $word:"
            head -15 "$log"
            failures=1
        fi
    done
done

# Code that cannot work gets one message, and no more.
refuses() { # WORDS FLAG...
    words=$1
    shift
    if $CXX $flags "$@" -DCASE_fine "$folder/cases.cpp" >"$log" 2>&1; then
        echo "compiles with $*"
        failures=1
    elif ! head -8 "$log" | grep -q "error: .*$words" || [ "$(wc -l <"$log")" -gt 12 ]; then
        echo "with $*:"
        cat "$log"
        failures=1
    fi
}
refuses "haft.hpp is C++20" -std=c++17
refuses "haft.hpp needs exceptions" -fno-exceptions

exit $failures
