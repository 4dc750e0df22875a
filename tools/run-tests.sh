#!/bin/sh
# SPDX-License-Identifier: MIT
# run-tests.sh [CONFIGURATION...]: build and test each configuration, then print the totals. It prints what
# it begins to do, and how long it has been at work.
# Without arguments: the configuration that finds most mistakes, or with CI=true all of them.
# A configuration is a preset of CMakePresets.json, or freestanding-COMPILER. The configurations ocaml-VERSION
# get their compiler from with-ocaml.sh. docs/HACKING.md has what each is for.
# While a configuration is tested, which is mostly waiting, the next is built.
# HAFT_CAMPAIGN=short|long bounds the tests that can go on for as long as one likes. With CI=true they
# are long once as the programs are, once with each sanitizer.
set -u
cd "$(dirname "$0")/.." || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL
root=${HAFT_BUILD_ROOT:-build}
JOBS=${JOBS:-$(nproc)}
export JOBS
mkdir -p "$root"
root=$(cd "$root" && pwd)
totals=$root/test-totals
rm -f "$totals"

full='gcc-release clang-debug clang-address gcc-thread valgrind gcc-debug clang-release gcc-address
  clang-thread freestanding-gcc freestanding-clang'
if [ "$(uname -m)" = x86_64 ]; then
  full="$full aarch64-release freestanding-aarch64-linux-gnu-gcc"
  # (npm gets the compiler's source. ocaml-4.14, without flambda, is run by hand.)
  if [ -f "$(sh tools/with-ocaml.sh --folder 4.14-flambda)/complete" ] || command -v npm >/dev/null; then
    full="$full ocaml-4.14-flambda"
  elif [ "${CI:-}" = true ]; then
    echo 'ocaml-4.14-flambda is left out: there is no npm'
  fi
  # (apt-get gets the compiler.)
  if [ -f "$(sh tools/with-ocaml.sh --folder aarch64)/complete" ] || command -v apt-get >/dev/null; then
    full="$full ocaml-aarch64"
  elif [ "${CI:-}" = true ]; then
    echo 'ocaml-aarch64 is left out: there is no apt-get'
  fi
fi

if [ $# -eq 0 ]; then
  if [ "${CI:-}" = true ]; then
    # shellcheck disable=SC2086 # a list
    set -- $full
  else
    set -- quick
  fi
fi
count=$#
number=0
started=$(date +%s)

# The address and thread sanitizers of older compilers refuse the wide address randomisation of
# newer kernels.
fixed_addresses=
if setarch "$(uname -m)" -R true 2>/dev/null; then
  fixed_addresses="setarch $(uname -m) -R"
fi

passed_total=0
failed_total=0

# progress WORD...: a line with the step's number and the minutes and seconds since the start.
progress() {
  elapsed=$(($(date +%s) - started))
  printf '[%d/%d %2d:%02d] %s\n' "$number" "$count" $((elapsed / 60)) $((elapsed % 60)) "$*"
}

# summary CONFIGURATION PASSED FAILED SKIPPED
summary() {
  skipped=
  [ "$4" -eq 0 ] || skipped=", $4 cannot run here"
  progress "$1: $2 passed, $3 failed$skipped"
  passed_total=$((passed_total + $2))
  failed_total=$((failed_total + $3))
}

campaign_of() {
  case ${CI:-}:$1 in
  true:gcc-release | true:clang-address | true:gcc-thread) echo long ;;
  *) echo short ;;
  esac
}

# Prints the output of the failing tests, and their names.
show_failures() {
  sed -E -e '/^ *Start +[0-9]+: /d' -e '/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: .*(Passed|\*Skipped) /d' \
    -e '/^[0-9]+% tests passed/,/^The following tests FAILED/d' "$1"
}

# The number that the attribute has in the head of a JUnit report.
junit_count() {
  sed -n "s/^[[:space:]]*$1=\"\([0-9]*\)\".*/\1/p; s/.*<testsuite .*[[:space:]]$1=\"\([0-9]*\)\".*/\1/p" "$2" | head -n 1
}

# surroundings CONFIGURATION: sets with and prefix, the commands that its build and its tests run under.
surroundings() {
  with=
  prefix=
  case $1 in
  *-address | *-thread) prefix=$fixed_addresses ;;
  ocaml-*) with="sh tools/with-ocaml.sh ${1#ocaml-}" ;;
  esac
}

# begin_to_build CONFIGURATION: builds it beside what goes on. (A command in the background ignores
# what Ctrl-C sends.)
builder=
trap 'trap - TERM; kill 0' INT
begin_to_build() {
  surroundings "$1"
  $with sh tools/build.sh "$1" >"$root/$1.ahead.log" 2>&1 &
  builder=$!
}

# is_built CONFIGURATION: waits for its build, or makes it if none has begun.
is_built() {
  progress "$1: building"
  if [ -z "$builder" ]; then
    surroundings "$1"
    $with sh tools/build.sh "$1"
    return
  fi
  wait "$builder"
  built=$?
  builder=
  [ $built -eq 0 ] || cat "$root/$1.ahead.log"
  return $built
}

# run_preset CONFIGURATION NEXT: NEXT, if it is one, is built meanwhile.
run_preset() {
  is_built "$1"
  status=$?
  [ -z "$2" ] || begin_to_build "$2"
  if [ $status -ne 0 ]; then
    summary "$1" 0 1 0
    return
  fi
  surroundings "$1"
  progress "$1: testing"
  log=$root/$1.test.log
  report=$root/$1.junit.xml
  rm -f "$report"
  # (Some tests sleep: one more at a time than there are processors.)
  # shellcheck disable=SC2086 # the prefixes are commands with arguments, or nothing
  HAFT_CAMPAIGN=${HAFT_CAMPAIGN:-$(campaign_of "$1")} \
    $with $prefix ctest --test-dir "$root/$1" --parallel $((JOBS + 1)) \
    --output-on-failure --output-junit "$report" >"$log" 2>&1
  status=$?
  tests=$(junit_count tests "$report" 2>/dev/null)
  failed=$(junit_count failures "$report" 2>/dev/null)
  skipped=$(junit_count skipped "$report" 2>/dev/null)
  tests=${tests:-0} failed=${failed:-0} skipped=${skipped:-0}
  # ctest itself failed, or found nothing to run: that is a failure too.
  if [ "$failed" -eq 0 ] && { [ $status -ne 0 ] || [ "$tests" -eq 0 ]; }; then
    failed=1
    tests=$((tests + 1))
  fi
  if [ "$failed" -gt 0 ]; then
    show_failures "$log"
  fi
  summary "$1" $((tests - failed - skipped)) "$failed" "$skipped"
}

# libhaft without libc or virtual memory, built in the folder it is given by a script of its own
# with $CC, and run there under $HAFT_LAUNCHER.
run_freestanding() {
  log=$root/$1.test.log
  mkdir -p "$root/$1"
  compiler=${1#freestanding-}
  launcher=
  case $compiler in
  aarch64-*) launcher='qemu-aarch64 -L /usr/aarch64-linux-gnu' ;;
  esac
  if CC=$compiler HAFT_LAUNCHER=$launcher sh core/tests/freestanding/run.sh "$root/$1" >"$log" 2>&1; then
    summary "$1" 1 0 0
  else
    cat "$log"
    summary "$1" 0 1 0
  fi
}

while [ $# -gt 0 ]; do
  configuration=$1
  shift
  number=$((number + 1))
  case $configuration in
  freestanding-*) run_freestanding "$configuration" ;;
  *)
    next=
    for later; do
      case $later in
      freestanding-*) ;;
      *)
        next=$later
        break
        ;;
      esac
    done
    run_preset "$configuration" "$next"
    ;;
  esac
done

echo "$passed_total passed, $failed_total failed" | tee "$totals"
[ "$failed_total" -eq 0 ] && [ "$passed_total" -gt 0 ]
