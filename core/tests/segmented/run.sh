#!/bin/sh
# Builds and runs the tests of segmented stacks by hand: run.sh BUILD_FOLDER
# Everything that is -fsplit-stack code is built by both compilers, at -O0 and -O2.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
core=$here/../..
mkdir -p "$1"
cd "$1"
warnings='-Wall -Wextra -Wpedantic -Wshadow -Werror'
include="-I$core/include -I$here"
gcc_split="gcc -fsplit-stack -maccumulate-outgoing-args"
clang_split="clang -fsplit-stack"

for compiler in gcc g++ clang clang++; do
    command -v $compiler >/dev/null || { echo "no $compiler"; exit 77; }
done
gcc -std=gnu11 -O2 -g $warnings $include -fPIC -c "$core/src/segments.c"
gcc $include -g -fPIC -c "$core/arch/x86_64/morestack.S"
gcc -std=gnu11 -O2 -g $warnings $include -c "$here/harness.c"
for level in O0 O2; do
    $gcc_split -std=gnu11 -g -$level -DFRAMES=frames_gcc_$level -Wall -Wextra -Wshadow -Werror \
        $include -c "$here/frames.c" -o frames_gcc_$level.o
    $clang_split -std=gnu11 -g -$level -DFRAMES=frames_clang_$level -Wall -Wextra -Wshadow -Werror \
        $include -c "$here/frames.c" -o frames_clang_$level.o
done
$gcc_split -std=gnu11 -O2 -g $warnings $include -c "$here/segmented_frames.c"
gcc -Wl,-z,now segmented_frames.o frames_*.o harness.o segments.o morestack.o -o segmented_frames
timeout 60 ./segmented_frames

wraps=
for name in _Unwind_Resume __cxa_allocate_exception __cxa_throw __cxa_rethrow __cxa_begin_catch \
    __cxa_end_catch pthread_create; do
    gcc -DHAFT_WRAP=$name -g -fPIC -c "$core/arch/x86_64/morestack_wrap.S" -o wrap_$name.o
    wraps="$wraps -Wl,--wrap=$name"
done
rm -f libhaft-split.a
ar rcs libhaft-split.a morestack.o wrap_*.o
g++ -std=c++20 -O2 -g $warnings $include -c "$here/segmented_exceptions.cpp"
for level in O0 O2; do
    for compiler in g++ clang++; do
        flags=
        test $compiler = clang++ || flags=-maccumulate-outgoing-args
        $compiler -std=c++20 -g -$level -fsplit-stack $flags $warnings $include \
            -c "$here/exceptions.cpp" -o exceptions_${compiler}_$level.o
        g++ -Wl,-z,now $wraps segmented_exceptions.o exceptions_${compiler}_$level.o harness.o \
            segments.o -L. -lhaft-split -o segmented_exceptions_${compiler}_$level
        ./segmented_exceptions_${compiler}_$level
    done
done

gcc -std=gnu11 -O2 -g -Wall -Wextra -Wshadow -Werror $include -c "$here/foreign.c"
for level in O0 O2; do
    for compiler in gcc clang; do
        flags=
        test $compiler = clang || flags=-maccumulate-outgoing-args
        $compiler -std=gnu11 -g -$level -fsplit-stack $flags -Wall -Wextra -Wshadow -Werror $include \
            -c "$here/segmented_foreign.c" -o foreign_${compiler}_$level.o
        gcc -Wl,-z,now foreign_${compiler}_$level.o foreign.o harness.o segments.o -L. \
            -lhaft-split -o segmented_foreign_${compiler}_$level
        ./segmented_foreign_${compiler}_$level
    done
done

# The debugger sees every frame, on either side of every border, down to main.
if command -v gdb >/dev/null; then
    for level in O0 O2; do
        for compiler in gcc clang; do
            flags=
            test $compiler = clang || flags=-maccumulate-outgoing-args
            $compiler -std=gnu11 -g -$level -fsplit-stack $flags -fno-optimize-sibling-calls -Wall \
                -Wextra -Wshadow -Werror $include -c "$here/backtrace.c" -o backtrace.o
            gcc -Wl,-z,now backtrace.o foreign.o harness.o segments.o -L. -lhaft-split \
                -o segmented_backtrace
            gdb -nx -batch -ex 'break stop_here' -ex run -ex bt ./segmented_backtrace \
                >backtrace.txt 2>&1
            test "$(grep -c ' inner (' backtrace.txt)" = 5
            test "$(grep -c ' outer (' backtrace.txt)" = 30
            grep -q ' main ()' backtrace.txt
            echo "ok 1 gdb sees every frame ($compiler -$level)"
        done
    done
fi

# Ways to link. The drivers add --wrap=pthread_create when they are given -fsplit-stack.
gcc -std=gnu11 -O2 -g -Wall -Wextra -Wshadow -Werror $include -c "$here/foreign.c"
gcc -shared -Wl,-z,now segments.o -o libhaft-segments.so
linked() {
    timeout 20 ./segmented_linking
    echo "ok 1 linked: $1"
}
for compiler in gcc clang; do
    flags=
    test $compiler = clang || flags=-maccumulate-outgoing-args
    for level in O0 O2; do
        $compiler -std=gnu11 -g -$level -fsplit-stack $flags -Wall -Wextra -Wshadow -Werror $include \
            -c "$here/linking.c" -o linking.o
        $compiler -Wl,-z,now linking.o foreign.o harness.o segments.o -L. -lhaft-split \
            -o segmented_linking
        linked "$compiler -$level, static"
        $compiler -fsplit-stack -Wl,-z,now linking.o foreign.o harness.o segments.o -L. -lhaft-split \
            -o segmented_linking
        linked "$compiler -$level, static, -fsplit-stack"
        $compiler -fsplit-stack -Wl,-z,now linking.o foreign.o harness.o -L. -lhaft-segments \
            -lhaft-split -Wl,-rpath,"$PWD" -o segmented_linking
        linked "$compiler -$level, shared"
        $compiler -fsplit-stack -static linking.o foreign.o harness.o segments.o -L. -lhaft-split \
            -o segmented_linking
        linked "$compiler -$level, static executable"
        if command -v ld.gold >/dev/null; then
            $compiler -std=gnu11 -g -$level -fsplit-stack $flags -DCALLS_UNASKED -Wall -Wextra \
                -Wshadow -Werror $include -c "$here/linking.c" -o linking.o
            $compiler -fuse-ld=gold -fsplit-stack -Wl,-z,now linking.o foreign.o harness.o segments.o \
                -L. -lhaft-split -o segmented_linking
            linked "$compiler -$level, gold"
        fi
    done
done

gcc -std=gnu11 -O1 -g $warnings $include "$here/overflow.c" harness.o segments.o -L. -lhaft-split \
    -o segmented_overflow
./segmented_overflow
# SPDX-License-Identifier: MIT
