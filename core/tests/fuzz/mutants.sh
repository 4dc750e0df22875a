#!/bin/sh
# The test of the fuzzer: each change below breaks the core in one place of a copy, and the fuzzer must
# notice within HAFT_MUTANT_PROGRAMS programs. Skipped (77) unless HAFT_CAMPAIGN=long.
set -u
[ "${HAFT_CAMPAIGN:-}" = long ] || exit 77
source=$HAFT_SOURCE_DIR/core
programs=${HAFT_MUTANT_PROGRAMS:-4000}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
failed=0

# Makes the objects that are not there yet. (In their folder, by relative names: what was compiled before
# somewhere else, ccache need not compile again.)
compiler=$CC
command -v ccache >/dev/null && compiler="ccache $CC"
build() (
  cd "$1" || exit 1
  compile="$compiler -std=gnu11 -O1 -fexceptions -Iinclude"
  for file in src/*.c arch/"$(uname -m)"/*.S; do
    case $file in *morestack_wrap.S | *freestanding.c) continue ;; esac
    object=$(basename "$file").o
    [ -f "$object" ] || $compile -fPIC -Isrc -Iarch/"$(uname -m)" -c "$file" -o "$object" || exit 1
  done
  for file in interpreter effects races; do
    [ -f "$file.o" ] || $compile -c "$source/tests/fuzz/$file.c" -o "$file.o" || exit 1
  done
  for file in exceptions model random_program fuzz; do
    if [ ! -f "$work/$file.o" ]; then
      "$CXX" -std=c++20 -O1 -I"$source/include" -c "$source/tests/fuzz/$file.cpp" \
        -o "$work/$file.o" || exit 1
    fi
  done
  "$CXX" ./*.o "$work"/*.o -o fuzz -Wl,--wrap=mmap -lpthread
)

fresh_copy() {
  rm -rf "$1" && mkdir "$1"
  cp -r "$source/src" "$source/include" "$source/arch" "$1"
}

# The unchanged program must pass, or the rest shows nothing.
unchanged=$work/unchanged copy=$work/copy
fresh_copy "$unchanged"
if ! build "$unchanged" >"$work/log" 2>&1 ||
  ! "$unchanged/fuzz" --seed 1 --programs "$programs" --as-is >"$work/log" 2>&1; then
  cat "$work/log"
  echo "the unchanged core fails"
  exit 1
fi

# mutant NAME FILE SED-SCRIPT
mutant() {
  fresh_copy "$copy"
  sed -i "$3" "$copy/$2"
  case $2 in *.c)
    cp "$unchanged"/*.o "$copy"
    rm "$copy/$(basename "$2").o"
    ;;
  esac
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
mutant 'a new handled set is not noticed' src/resume.c \
  's/bool changed = set_handles(fiber, handles);/(void)set_handles(fiber, handles); bool changed = false;/'
mutant 'the inner scopes of a chain are forgotten' include/haft/inner/hot.h \
  's/fiber->top = here.current;/fiber->top = \&fiber->scope;/'
mutant 'a clause in place runs under its own handler' include/haft/inner/hot.h \
  's/hafti_set_current(here, handler->outer);/hafti_set_current(here, (hafti_scope_t *)(uintptr_t)handler);/'
mutant 'the performer is not restored after a clause in place' include/haft/inner/hot.h \
  's/hafti_set_current(hafti_here(), in_place->performer);/(void)in_place;/'
mutant 'uses of a resumption are not counted' src/lookup.h \
  's/(fiber->scope.shot + 2) & ~UINT64_C(1)/fiber->scope.shot \& ~UINT64_C(1)/'
mutant 'a thrown effect is forgotten' src/unwind.c 's/if (fiber->thrown != NULL)/if (false)/'
mutant 'a clause that is unwound keeps its computation' include/haft/inner/general.h \
  's/^        hafti_drop_left(\*k);/        (void)k;/'
mutant 'a throw to a clause that resumes is let through' src/leaving.c \
  's/clause->kind == HAFT_CLAUSE_GENERAL/false/'
mutant 'a reply to another effect is taken' include/haft/inner/hot.h \
  's/: awaits == replied;/: true;/'
mutant 'a missing reply is taken' include/haft/inner/hot.h \
  's/return replied == 0 ? (awaits \& HAFTI_AWAITS_NOTHING) != 0/return replied == 0 ? true/'
mutant 'a reply of a wrong size is taken' src/replies.c \
  's/if (size != effect->result_size)/if (false)/'
mutant 'a refused reply keeps the fiber claimed' src/resume.c \
  's/^        haft_release(thread, fiber, owner);/        (void)owner;/'
mutant 'a refused reply uses up the resumption' src/handler.c \
  '/^void \*hafti_resumption_resume_slow/,/^}/s/^    haft_check_reply/    haft_use_up(k.fiber);\n    haft_check_reply/'
mutant 'a large promised reply is not copied' src/handler.c \
  's/bool copied = .*;/bool copied = false;/'
mutant 'sets of the same size have one number' src/sets.c \
  's/if (haft_same_effects(&at->set, handles))/if (at->set.count == handles->count)/'
mutant 'every set without a number is the one before' src/resume.c \
  's/fiber->set == number : haft_same_effects(before, handles)/fiber->set == number : true/'
mutant 'a set that was written anew is believed' src/claim.c \
  '/^void haft_handles_changed/,/^}/s/^    haft_check_given(.*/    (void)fiber; return;/'
mutant 'the second entry of an effect is believed whatever it holds' include/haft/inner/hot.h \
  '/^HAFTI_INLINE bool hafti_read_either/,/^}/s/if (HAFTI_UNLIKELY(.*(uintptr_t)effect))/if (key == 0)/'
mutant 'entries of caches outlive a change of the chain' src/lookup.c \
  's/^    scope->filled |= .*/    (void)scope;/'
mutant 'a promise is kept when its clause is unwound' src/handler.c \
  's/if (k.fiber->scope.shot == k.shot + 1)/if (false)/'
mutant 'a promised computation can be used' include/haft.h \
  's/k.fiber->scope.shot = k.shot + 1;/(void)k.shot;/'
mutant 'a forgotten promise is not noticed' src/handler.c \
  's/lasts \&\& shot_of(fiber) == shot + 1/false/'
mutant 'a computation taken from its handler is still promised' src/resume.c \
  's/^        haft_use_up(fiber); .*/        (void)fiber;/'
mutant 'want of memory is no answer like another' src/handler.c \
  's/return HAFT_NO_ANSWER;/return NULL;/'
[ "$failed" -eq 0 ]
# SPDX-License-Identifier: MIT
