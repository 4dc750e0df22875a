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
./segmented_frames

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
