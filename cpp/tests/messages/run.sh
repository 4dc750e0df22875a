#!/bin/sh
# Each case of cases.cpp must not compile, and the first lines of the compiler's message must name
# what its line `// CASE name: words` says; the case `fine` must compile.
set -u
folder=$(dirname "$0")
flags="-std=c++20 -fsyntax-only -I$HAFT_SOURCE_DIR/core/include -I$HAFT_SOURCE_DIR/cpp/include"
failures=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

if ! $CXX $flags -DCASE_fine "$folder/cases.cpp" >"$log" 2>&1; then
    echo "the case that is right does not compile:"
    head -20 "$log"
    failures=1
fi
cases=$(sed -n 's|^#ifdef \(CASE_[a-z_]*\) *// *\(.*\)|\1 \2|p' "$folder/cases.cpp" | tr ' ' ',')
for case in $cases; do
    name=${case%%,*}
    if $CXX $flags -D"$name" "$folder/cases.cpp" >"$log" 2>&1; then
        echo "$name compiles"
        failures=1
        continue
    fi
    for word in $(echo "${case#*,}" | tr ',' ' '); do
        if ! head -15 "$log" | grep -q -- "$word"; then
            echo "$name: the first lines do not name $word:"
            head -15 "$log"
            failures=1
        fi
    done
done
exit $failures
