# SPDX-License-Identifier: MIT
# The parts that the scripts of this folder share: sessions of gdb, and what is expected of their output.
command -v gdb >/dev/null || exit 77
gdb -nx -batch -ex 'python print(1)' 2>/dev/null | grep -q 1 || { echo 'this gdb has no Python'; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
output=$work/output
failures=0

# session PROGRAM-AND-ARGUMENTS... : commands from standard input, in $output
session() {
  { echo 'set debuginfod enabled off'; echo "source $HAFT_SOURCE_DIR/tools/debug/haft_gdb.py"; cat; } >"$work/commands"
  gdb -nx -batch -x "$work/commands" "$@" >"$output" 2>&1 </dev/null
}

fail() {
  echo "$1, in"
  cat "$output"
  failures=$((failures + 1))
}

# expect WHAT PATTERN...: lines of $output, each after the one before
expect() {
  what=$1
  shift
  after=0
  for pattern in "$@"; do
    line=$(grep -nE -- "$pattern" "$output" | cut -d: -f1 | awk -v after="$after" '$1 > after { print; exit }')
    if [ -z "$line" ]; then
      fail "$what: no line matches '$pattern' after line $after"
      return
    fi
    after=$line
  done
}

expect_none() {
  if grep -qE -- "$2" "$output"; then
    fail "$1: a line matches '$2'"
  fi
}

# core_of PROGRAM ARGUMENT...: makes $core, or returns 1: this system keeps core files elsewhere
core_of() {
  read -r pattern </proc/sys/kernel/core_pattern
  case $pattern in
  core | core.%p) ;;
  *) return 1 ;;
  esac
  rm -f "$work"/core*
  (ulimit -c unlimited 2>/dev/null && cd "$work" && "$@") >/dev/null 2>&1
  for core in "$work"/core*; do
    [ -s "$core" ] && return 0
  done
  return 1
}

finish() {
  [ "$failures" -eq 0 ]
  exit
}
