#!/bin/sh
# The same HAFT_EFFECT line is one effect in every part of a program: translation units, a static and a
# shared library, plugins opened with RTLD_GLOBAL and RTLD_LOCAL, C and C++. A program that opens plugins
# exports its descriptors to them: with -rdynamic, or as haft.pc and find_package(haft) do it.
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
sources=$HAFT_SOURCE_DIR/core/tests/identity
library=$HAFT_BUILD_DIR/core
flags="-g -O1 -Wall -Wextra -Werror -fPIC -I$HAFT_SOURCE_DIR/core/include -I$sources"
failures=0

c() { $CC $flags -std=gnu11 -fexceptions "$@" || exit 1; }
cpp() { $CXX $flags -std=gnu++20 -x c++ "$@" || exit 1; }

cd "$work" || exit 1
c -c -DPART=part_own "$sources/part.c" -o own_c.o
cpp -c -DPART=part_own "$sources/part.c" -o own_cpp.o
cpp -c -DPART=part_static "$sources/part.c" -o static.o
ar rc libpart.a static.o
c -DPART=part_shared "$sources/part.c" -shared -o libshared.so -L"$library" -lhaft
c -DPART=part_plugin "$sources/part.c" -shared -o plugin_c.so -L"$library" -lhaft
cpp -DPART=part_plugin "$sources/part.c" -shared -o plugin_cpp.so -L"$library" -lhaft
export LD_LIBRARY_PATH="$work:$library"

check() {
    if ! "$@"; then
        echo "failed: $description"
        failures=$((failures + 1))
    fi
}

for unit in own_c.o own_cpp.o; do
    for export in -rdynamic '-Wl,--export-dynamic-symbol=haft_id_*'; do
        # shellcheck disable=SC2086
        c "$sources/main.c" $unit libpart.a libshared.so $export -L"$library" -lhaft -lstdc++ -ldl \
            -o program
        for mode in global local; do
            description="$unit, plugins $mode, linked with $export"
            check ./program $mode ./plugin_c.so ./plugin_cpp.so
        done
    done
done

description='plugins in a program that knows no effects'
c "$sources/host.c" -ldl -o host
check ./host ./plugin_c.so ./plugin_cpp.so

[ "$failures" -eq 0 ]
# SPDX-License-Identifier: MIT
