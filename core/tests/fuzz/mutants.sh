#!/bin/sh
# The test of the fuzzer: each change below breaks the core in one place of a copy, and the fuzzer must
# notice within HAFT_MUTANT_PROGRAMS programs. Skipped (77) unless HAFT_CAMPAIGN=long.
set -u
[ "${HAFT_CAMPAIGN:-}" = long ] || exit 77
source=$HAFT_SOURCE_DIR/core
programs=${HAFT_MUTANT_PROGRAMS:-20000}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
failed=0

build() {
  for file in "$1"/src/*.c "$1"/arch/"$(uname -m)"/*.S; do
    case $file in *morestack_wrap.S | *freestanding.c) continue ;; esac
    "$CC" -std=gnu11 -O1 -fPIC -fexceptions -I"$1/include" -I"$1/src" -I"$1/arch/$(uname -m)" \
      -c "$file" -o "$1/$(basename "$file").o" || return 1
  done
  for file in interpreter races; do
    "$CC" -std=gnu11 -O1 -fexceptions -I"$1/include" -c "$source/tests/fuzz/$file.c" \
      -o "$1/$file.o" || return 1
  done
  for file in exceptions model random_program fuzz; do
    if [ ! -f "$work/$file.o" ]; then
      "$CXX" -std=c++20 -O1 -I"$source/include" -c "$source/tests/fuzz/$file.cpp" \
        -o "$work/$file.o" || return 1
    fi
  done
  "$CXX" "$1"/*.o "$work"/*.o -o "$1/fuzz" -Wl,--wrap=mmap -lpthread
}

fresh_copy() {
  copy=$work/copy
  rm -rf "$copy" && mkdir "$copy"
  cp -r "$source/src" "$source/include" "$source/arch" "$copy"
}

# What is not changed must pass, or the rest shows nothing.
fresh_copy
if ! build "$copy" >"$work/log" 2>&1 ||
  ! "$copy/fuzz" --seed 1 --programs "$programs" --as-is >"$work/log" 2>&1; then
  cat "$work/log"
  echo "the unchanged core fails"
  exit 1
fi

# mutant NAME FILE SED-SCRIPT
mutant() {
  fresh_copy
  sed -i "$3" "$copy/$2"
  if cmp -s "$copy/$2" "$source/$2"; then
    echo "$1: the change does not apply to $2"
    failed=1
  elif ! build "$copy" >"$work/log" 2>&1; then
    cat "$work/log"
    echo "$1: does not compile"
    failed=1
  elif (cd "$work" && timeout 120 "$copy/fuzz" --seed 1 --programs "$programs" --as-is >"$work/log" 2>&1); then
    echo "$1: not noticed in $programs programs"
    failed=1
  else
    echo "$1: $(grep -o 'failed, after [0-9]*' "$work/log" || echo 'did not end')"
  fi
}

mutant 'caches survive a new parent' src/resume.c \
  's/^        renew(thread, fiber->top, fiber->scope.outer);/        (void)renew;/'
mutant 'the inner scopes of a chain are forgotten' include/haft/inner/hot.h \
  's/fiber->top = here.current;/fiber->top = \&fiber->scope;/'
mutant 'a clause in place runs under its own handler' include/haft/inner/hot.h \
  's/hafti_set_current(here, handler->outer);/hafti_set_current(here, (hafti_scope_t *)(uintptr_t)handler);/'
mutant 'the performer is not restored after a clause in place' include/haft/inner/hot.h \
  's/hafti_set_current(hafti_here(), in_place->performer);/(void)in_place;/'
mutant 'uses of a resumption are not counted' src/lookup.h \
  's/(fiber->scope.shot + 2) & ~UINT64_C(1)/fiber->scope.shot \& ~UINT64_C(1)/'
mutant 'a thrown effect is forgotten' src/unwind.c 's/if (thrown != NULL)/if (false)/'
mutant 'a clause that is unwound keeps its computation' src/handler.c 's/^        drop_left(\*k);/        (void)k;/'
mutant 'a throw to a clause that resumes is let through' src/leaving.c \
  's/clause->kind == HAFT_CLAUSE_GENERAL/false/'
[ "$failed" -eq 0 ]
# SPDX-License-Identifier: MIT
