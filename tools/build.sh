#!/bin/sh
# SPDX-License-Identifier: MIT
# build.sh PRESET [CMAKE OPTION...]: configure and build one preset below $HAFT_BUILD_ROOT.
# Quiet when all is well, or with HAFT_BUILD_PROGRESS a line for each file; on failure prints what the
# tools printed, and exits 1. Where there is ccache, what was compiled before, in this folder or another copy
# of it, is not compiled again.
set -u
cd "$(dirname "$0")/.." || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL
preset=$1
shift
root=${HAFT_BUILD_ROOT:-build}
log=$root/$preset.build.log
mkdir -p "$root"
if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
  export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=true
fi

generator=
if command -v ninja >/dev/null && [ ! -f "$root/$preset/CMakeCache.txt" ]; then
  generator='-G Ninja'
fi

# shellcheck disable=SC2086 # an option with its value, or nothing
# logged COMMAND...: what it prints goes to the log, and to a person who wants to see it.
logged() {
  if [ -z "${HAFT_BUILD_PROGRESS:-}" ]; then
    "$@" >"$log" 2>&1
  else
    { "$@" 2>&1 && touch "$log.done"; } | tee "$log"
    rm "$log.done" 2>/dev/null
  fi
}

if cmake --preset "$preset" $generator -B "$root/$preset" "$@" >"$log" 2>&1 &&
  logged cmake --build "$root/$preset" --parallel "${JOBS:-$(nproc)}"; then
  exit 0
fi
# The errors, without the progress report.
grep -Ev '^\[ *[0-9]+(%|/[0-9]+)\] |^-- ' "$log"
echo "$preset: build failed"
exit 1
