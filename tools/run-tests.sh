#!/bin/sh
# SPDX-License-Identifier: MIT
# run-tests.sh [CONFIGURATION...]: build and test each configuration, a line each, then the totals.
# Without arguments: a few configurations that find most mistakes, or with CI=true all of them. OCaml 4.14 is
# among the few where its compiler has been made before.
# A configuration is a preset of CMakePresets.json, or freestanding-COMPILER. Those of ocaml-VERSION
# get their compiler from with-ocaml.sh, and test what is in OCaml.
# HAFT_CAMPAIGN=short|long bounds the tests that can go on for as long as one likes. With CI=true they are long once as
# the programs are, once with each sanitizer.
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

quick='gcc-release gcc-address clang-debug freestanding-gcc'
full='gcc-debug gcc-release clang-debug clang-release gcc-address clang-address
  gcc-thread clang-thread valgrind freestanding-gcc freestanding-clang'
if [ "$(uname -m)" = x86_64 ]; then
  full="$full aarch64-release freestanding-aarch64-linux-gnu-gcc"
  # (npm gets the compiler's source.)
  # (ocaml-4.14, without flambda, is run by hand: it builds a second compiler.)
  for version in 4.14-flambda; do
    if [ -f "$root/compilers/ocaml-$version/complete" ]; then
      full="$full ocaml-$version"
      quick="$quick ocaml-$version"
    elif command -v npm >/dev/null; then
      full="$full ocaml-$version"
    elif [ "${CI:-}" = true ]; then
      echo "ocaml-$version is left out: there is no npm"
    fi
  done
  # (apt-get gets the compiler.)
  if command -v apt-get >/dev/null || [ -f "$root/compilers/ocaml-aarch64/complete" ]; then
    full="$full ocaml-aarch64"
  elif [ "${CI:-}" = true ]; then
    echo 'ocaml-aarch64 is left out: there is no apt-get'
  fi
fi

if [ $# -gt 0 ]; then
  configurations=$*
elif [ "${CI:-}" = true ]; then
  configurations=$full
else
  configurations=$quick
fi

# The address and thread sanitizers of older compilers refuse the wide address randomisation of
# newer kernels.
fixed_addresses=
if setarch "$(uname -m)" -R true 2>/dev/null; then
  fixed_addresses="setarch $(uname -m) -R"
fi

passed_total=0
failed_total=0

# summary CONFIGURATION PASSED FAILED SKIPPED STARTED
summary() {
  skipped=
  [ "$4" -eq 0 ] || skipped=", $4 cannot run here"
  printf '%-36s %3d passed, %d failed%s (%d s)\n' "$1" "$2" "$3" "$skipped" $(($(date +%s) - $5))
  passed_total=$((passed_total + $2))
  failed_total=$((failed_total + $3))
}

campaign_of() {
  case ${CI:-}:$1 in
  true:gcc-release | true:clang-address | true:gcc-thread) echo long ;;
  *) echo short ;;
  esac
}

# What the failing tests printed, and their names.
show_failures() {
  sed -E -e '/^ *Start +[0-9]+: /d' -e '/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: .*(Passed|\*Skipped) /d' \
    -e '/^[0-9]+% tests passed/,/^The following tests FAILED/d' "$1"
}

# The number that the attribute has in the head of a JUnit report.
junit_count() {
  sed -n "s/^[[:space:]]*$1=\"\([0-9]*\)\".*/\1/p; s/.*<testsuite .*[[:space:]]$1=\"\([0-9]*\)\".*/\1/p" "$2" | head -n 1
}

run_preset() {
  started=$(date +%s)
  with=
  prefix=
  labels=
  case $1 in
  *-address | *-thread) prefix=$fixed_addresses ;;
  ocaml-*)
    with="sh tools/with-ocaml.sh ${1#ocaml-}"
    labels='ocaml|semantics'
    ;;
  esac
  if ! $with sh tools/build.sh "$1"; then
    summary "$1" 0 1 0 "$started"
    return
  fi
  log=$root/$1.test.log
  report=$root/$1.junit.xml
  rm -f "$report"
  # shellcheck disable=SC2086 # the prefixes are commands with arguments, or nothing
  HAFT_CAMPAIGN=${HAFT_CAMPAIGN:-$(campaign_of "$1")} \
    $with $prefix ctest --test-dir "$root/$1" --parallel "$JOBS" ${labels:+--label-regex "$labels"} \
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
  summary "$1" $((tests - failed - skipped)) "$failed" "$skipped" "$started"
}

# libhaft without libc or virtual memory, built in the folder it is given by a script of its own
# with $CC, and run there under $HAFT_LAUNCHER.
run_freestanding() {
  script=core/tests/freestanding/run.sh
  [ -f "$script" ] || return 0
  started=$(date +%s)
  log=$root/$1.test.log
  mkdir -p "$root/$1"
  compiler=${1#freestanding-}
  launcher=
  case $compiler in
  aarch64-*) launcher='qemu-aarch64 -L /usr/aarch64-linux-gnu' ;;
  esac
  if CC=$compiler HAFT_LAUNCHER=$launcher sh "$script" "$root/$1" >"$log" 2>&1; then
    summary "$1" 1 0 0 "$started"
  else
    cat "$log"
    summary "$1" 0 1 0 "$started"
  fi
}

for configuration in $configurations; do
  case $configuration in
  freestanding-*) run_freestanding "$configuration" ;;
  *) run_preset "$configuration" ;;
  esac
done

echo "$passed_total passed, $failed_total failed" | tee "$totals"
[ "$failed_total" -eq 0 ] && [ "$passed_total" -gt 0 ]
