#!/bin/sh
# The test of the collector's test: without any one of the pieces that scan, keep or end stacks, it fails.
# Arguments: the folder of OCaml's headers; that of the package haft.
set -eu
headers=$1
package=$2
sources=$HAFT_SOURCE_DIR/ocaml
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cp "$package"/* .
case $(uname -m) in
aarch64) target=arm64 ;;
*) target=amd64 ;;
esac
cp "$sources"/lib/*.[chS] "$sources/lib/arch/$(uname -m)"/* "$sources"/tests/collector* "$sources"/tests/cases.ml .
sh "$sources/lib/generate_offsets.sh" "$CC" "$HAFT_SOURCE_DIR/core/include" >offsets.h
flags="-isystem $headers -I$HAFT_SOURCE_DIR/core/include -I. -DNATIVE_CODE -DTARGET_$target -DMODEL_default
  -DSYS_linux -fPIC -O1 -fexceptions -w"

compile() { # shellcheck disable=SC2086
  "$CC" $flags -c "$1" -o "${1%.*}.o"
}
sources_in_c="fiber.c foreign.c frames.c nests.c roots.c shelves.c stacks.c"
# The folder of the changed files.
compile_with() {
  case $1 in
    *.h) for file in $sources_in_c; do compile "$file"; done ;;
    *) compile "$1" ;;
  esac
}
compile_with runtime.h
compile switch.S
compile data.S
compile collector_stubs.c
ocamlfind ocamlopt -g -I . -c cases.ml collector.ml
link() {
  rm -f libhaft_ocaml.a
  ar rcs libhaft_ocaml.a fiber.o foreign.o frames.o nests.o roots.o shelves.o stacks.o switch.o data.o
  # (-lhaft again, for what only the stubs use.)
  ocamlfind ocamlopt -I . -ccopt -L. haft.cmxa collector_stubs.o cases.cmx collector.cmx -cclib -lhaft -o collector
}
# The settings of the tests proper, and one in which everything moves all the time.
passes() {
  timeout 120 ./collector 5000 && OCAMLRUNPARAM=s=256,i=1k,o=10 timeout 120 ./collector 1500 &&
    HAFT_TEST_HOOK=1 OCAMLRUNPARAM=s=256,i=1k,o=10 timeout 120 ./collector 1500 &&
    HAFT_OCAML_STACKS=0 timeout 120 ./collector 5000 &&
    HAFT_TEST_HOOK=1 HAFT_OCAML_STACKS=0 OCAMLRUNPARAM=s=256,i=1k,o=10 timeout 120 ./collector 1500 &&
    HAFT_OCAML_STACKS=0 OCAMLRUNPARAM=s=256,i=1k,o=10 timeout 120 ./collector 1500
}

link
if ! passes >/dev/null 2>&1; then
  echo "the collector's test fails as it is"
  exit 1
fi
mkdir unchanged
cp -- *.o *.[chS] unchanged

failed=0
# mutate NAME FILE SED-PROGRAM: the program takes the piece away.
mutate() {
  sed -i "$3" "$2"
  if cmp -s "unchanged/$2" "$2"; then
    echo "the piece is not there to be taken away: $1"
    failed=1
  else
    compile_with "$2"
    link
    if passes >/dev/null 2>&1; then
      echo "the collector's test passes without it: $1"
      failed=1
    fi
  fi
  cp unchanged/* .
}

mutate 'roots of young suspended fibers' roots.c \
  's/^        scan_young_fiber(action, fiber);/        ;/'
mutate 'roots of young shelves' roots.c \
  's/^        scan_young_fiber(action, young_shelves.at.*/        ;/'
mutate 'roots of young fibers that a minor collection reaches' roots.c \
  's/^            scan_young_fiber(caml_oldify_one, fiber);/            ;/'
mutate 'roots of young shelves that it reaches' roots.c \
  's/^        scan_young_fiber(caml_oldify_one, shelf);/        ;/'
mutate 'the rounds of a minor collection' roots.c 's/^    while (scan_reached.*/    while (scan_reached(\&end, false), false);/'
mutate 'what a minor collection reaches from the major heap' roots.c \
  's/^        caml_oldify_one(\*\*reference, \*reference);/        ;/'
mutate 'local roots of parents' roots.c 's/^    scan_parents(action);//'
mutate 'local roots of parents that have declined an effect' foreign.c \
  's/^    haft_ocaml_list_rooted(inner);//'
mutate 'what effects of C have suspended' roots.c 's/^    haft_ocaml_scan_foreign(action);//'
mutate 'stacks that were not put away, when everything moves' roots.c \
  's/^        haft_ocaml_scan_settled(action);/        ;/'
mutate 'recent stacks, when a cycle begins' roots.c \
  '/settle_seen();/{n;s/scan_recent(action);/;/}'
mutate 'recent stacks, when everything moves' roots.c \
  '/haft_ocaml_scan_settled(action);/{n;s/scan_recent(action);/;/}'
mutate 'the continuations of recent stacks' roots.c \
  's/^        darken_alone(fiber->continuation);/        ;/'
mutate 'the handlers of suspended fibers' frames.c 's/^    action(fiber->handler, &fiber->handler);//'
mutate 'what keeps recent stacks' roots.c 's/^        settle_seen(); .*/        ;/'
mutate 'the links between traps that are moved' runtime.h 's/^        \*link += distance;/        *link += 0;/'
mutate 'the links between traps of what is copied without gaps' nests.c \
  's/^    \*link = at;/    ;/'
mutate 'the roots of captured nested fibers' nests.c \
  's/^    haft_ocaml_list_suspended(to);/    ;/'
mutate 'the roots of copies' stacks.c 's/^        haft_ocaml_list_suspended(to);/        ;/'
mutate 'the roots of placed fibers' nests.c \
  's/^        haft_ocaml_scan_suspended(action, fiber);/        ;/'
mutate 'the continuations of placed fibers' nests.c \
  's/^            fiber->continuation = Field(continuation, 0);/            ;/'
mutate 'placed fibers, where their clauses end' nests.c \
  's/^            shelve(gap);/            gap->fiber = 0, fiber->continuation = FIBER_IDLE;/'
mutate 'the frames of chains that go to stacks' nests.c \
  's/^            move_frames_around(one, child, place);/            ;/'
mutate 'the ends of fibers on stacks that chains have gone to' nests.c \
  's/^    base_trap(to)\[-1\] = .*/    ;/'
mutate 'the roots of settlers' nests.c 's/^    haft_ocaml_list_young(fiber);/    ;/'
mutate 'the end of fibers whose continuation has died' roots.c \
  's/^            haft_ocaml_end(fiber);/            ;/'
mutate 'local roots of the innermost fiber' frames.c \
  's/^    haft_ocaml_scan_roots_blocks(action, fiber->roots);//'
mutate 'local roots of fibers inside' frames.c \
  's/^            haft_ocaml_scan_roots_blocks(action, inner->parent_roots);/            ;/'
mutate 'live slots of continuations that survive' stacks.c \
  's/^        live_here\[index.*/        ;/'
mutate 'live slots of stacks that stay' stacks.c 's/^        store(keeper, 1 + i, slots\[i\]);/        Field(keeper, 1 + i) = 1;/'
mutate 'words that are no values' stacks.c 's/top_bits |= .*/;/'
mutate 'what was reachable when marking began' stacks.c \
  's/^        caml_darken(block, NULL);/        ;/'
mutate 'the end of stacks that are not reachable' stacks.c \
  '/It has been resumed/{n;n;s/haft_ocaml_end.*/;/}'
mutate 'the handler on an image' stacks.c \
  's/fiber->handler = Field(image, Wosize_val(image) - 1);//'
mutate 'the links between traps' stacks.c \
  's/^        \*link = (uintnat)part->fiber - (uintnat)trap;/        *link = (uintnat)part->fiber - (uintnat)trap + 64;/'
mutate 'the images further out' stacks.c 's/^            store(inner, IMAGE_OUTER, image);/            ;/'
mutate 'the live slots of fibers further out' stacks.c 's/^        lives += groups;/        ;/'
exit $failed
# SPDX-License-Identifier: MIT
