#!/bin/sh
# Programs for libseff, compiled without a change against the installed packages haft-seff and
# haft-seff-segmented: shared and static, with a plugin, with more stack asked for in the environment,
# and with -fsplit-stack.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
folder=$HAFT_SOURCE_DIR/compat/tests

cmake --install "$HAFT_BUILD_DIR" --prefix "$work/prefix" >/dev/null
libraries=$(dirname "$(find "$work/prefix" -name libhaft.so)")
export PKG_CONFIG_PATH="$libraries/pkgconfig"
export LD_LIBRARY_PATH="$libraries"
seff=$(pkg-config --cflags --libs haft-seff)

prints() { # WHAT EXPECTED COMMAND...
  what=$1 expected=$2
  shift 2
  "$@" >"$work/output" 2>&1 || { cat "$work/output"; echo "failed: $what"; exit 1; }
  diff -u "$expected" "$work/output" || { echo "failed: $what"; exit 1; }
}
line() { # a file of these lines
  printf '%s\n' "$@" >"$work/expected"
  echo "$work/expected"
}

# shellcheck disable=SC2086 # flags, here and below
"$CC" -w "$folder/paper_state.c" -o "$work/shared" $seff
prints shared "$folder/paper_state.expected" "$work/shared"
# shellcheck disable=SC2046
"$CC" -w -static "$folder/paper_state.c" -o "$work/static" \
  $(pkg-config --static --cflags --libs haft-seff)
prints static "$folder/paper_state.expected" "$work/static"

# Whether the plugin has brought the library itself or not.
"$CC" -w "$folder/installed/host.c" -o "$work/host" $seff -ldl
"$CC" -w -shared -fPIC "$folder/installed/plugin.c" -o "$work/plugin.so" \
  $(pkg-config --cflags haft-seff)
prints plugin "$(line 42)" "$work/host" "$work/plugin.so"
"$CC" -w -shared -fPIC "$folder/installed/plugin.c" -o "$work/plugin2.so" $seff
prints "plugin with a library" "$(line 42)" "$work/host" "$work/plugin2.so"

"$CC" -w -O0 "$folder/installed/recursion.c" -o "$work/recursion" $seff
prints "more stack" "$(line 3000)" env LIBSEFF_DEFAULT_FRAME_SIZE=8388608 "$work/recursion"
if LIBSEFF_DEFAULT_FRAME_SIZE=128 "$work/recursion" >"$work/output" 2>&1; then
  echo "failed: 3 MiB found room in a stack of 1 MiB"
  exit 1
fi
grep -q "LIBSEFF_DEFAULT_FRAME_SIZE=bytes" "$work/output"

# Segmented stacks are x86-64's.
[ -e "$PKG_CONFIG_PATH/haft-seff-segmented.pc" ] || exit 0

if "$CC" -w -fsplit-stack "$folder/paper_nested.c" -o "$work/wrong" $seff 2>"$work/output"; then
  echo "failed: code compiled with -fsplit-stack has been linked to stacks that do not grow"
  exit 1
fi
grep -q needs_haft_seff_segmented_instead_of_haft_seff "$work/output"

# Without optimisation libhaft's own frames are larger than what a segment keeps in reserve.
if grep -q 'CMAKE_BUILD_TYPE:.*=Debug' "$HAFT_BUILD_DIR/CMakeCache.txt"; then exit 0; fi
for compiler in gcc clang; do
  command -v $compiler >/dev/null || continue
  flags=$(pkg-config --cflags haft-seff-segmented | sed 's/-maccumulate-outgoing-args//')
  if [ $compiler = gcc ]; then flags="$flags -maccumulate-outgoing-args"; fi
  libs="$(pkg-config --libs haft-seff-segmented) -pthread"
  # Whatever the linker, where functions of the system are wrapped.
  bfd=$(echo "$libs" | sed 's/-fuse-ld=gold//')
  $compiler -w -O2 $flags "$folder/installed/current.c" -o "$work/current" $bfd
  prints "current, $compiler" "$(line "0 segments" "0 wrong")" "$work/current"
  for level in -O0 -O2; do
    for link in "$bfd" "$bfd -static" "$libs"; do
      $compiler -w $level $flags "$folder/installed/deep.c" -o "$work/deep" $link
      prints "deep, $compiler $level $link" "$(line 605500 "from a segment" 14)" "$work/deep"
      $compiler -w $level $flags "$folder/installed/recursion.c" -o "$work/recursion" $link
      prints "recursion, $compiler $level $link" "$(line 3000)" "$work/recursion"
    done
    case $libs in *gold*) ;; *) continue ;; esac
    for program in "$folder"/paper_*.c "$folder"/program_*.c; do
      $compiler -w $level $flags "$program" -o "$work/program" $libs
      prints "$program, $compiler $level" "${program%.c}.expected" "$work/program"
    done
  done
done
# SPDX-License-Identifier: MIT
