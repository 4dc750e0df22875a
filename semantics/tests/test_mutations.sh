#!/bin/sh
# test_mutations.sh OCAMLFIND PACKAGES CALL FIBERS: the comparisons find every one of these mistakes in
# a machine. PACKAGES is the folder of the package haft, CALL the library of compare/call.c, FIBERS the
# program of compare/sheep_fibers.c.
# Skipped (77) unless HAFT_CAMPAIGN=long.
set -eu
[ "${HAFT_CAMPAIGN:-}" = long ] || exit 77
semantics=$HAFT_SOURCE_DIR/semantics
ocamlfind=$1 call=$3 fibers=$4
OCAMLPATH=$2
export OCAMLPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
missed=0

# mutate MACHINE LINE REPLACEMENT: copies of the sources, with the one line that contains LINE changed.
mutate() {
  cp "$semantics"/*.ml "$semantics"/compare/*.ml .
  if [ "$(grep -cF "$2" "$1.ml")" != 1 ]; then
    echo "$1.ml does not have exactly one line with: $2" >&2
    exit 1
  fi
  awk -v line="$2" -v replacement="$3" '
    { at = index($0, line)
      if (at) $0 = substr($0, 1, at - 1) replacement substr($0, at + length(line))
      print }' "$1.ml" >mutated
  mv mutated "$1.ml"
}

# finds NAME COMMAND...: the comparison fails because the outcomes differ, or because the machine never ends
# for a program. It ends at the first such, and the rarest mistake shows in some ten thousand programs.
finds() {
  name=$1
  shift
  if HAFT_SEMANTICS_PROGRAMS=200000 "$@" >output 2>&1 || ! grep -q 'the library: \|raised exception .Stack overflow' output; then
    cat output
    echo "not found: $name"
    missed=$((missed + 1))
  fi
}

core() {
  mutate core_machine "$2" "$3"
  "$ocamlfind" ocamlopt -w -a -package haft,unix,qcheck-core -linkpkg "$call" source.ml \
    core_syntax.ml core_machine.ml core_direct.ml core_random.ml campaign.ml compare_core.ml -o mutant
  finds "$1" ./mutant --through-c
}

sheep() {
  mutate sheep_machine "$2" "$3"
  "$ocamlfind" ocamlopt -w -a -package unix,qcheck-core -linkpkg source.ml core_syntax.ml \
    core_machine.ml sheep_syntax.ml sheep_machine.ml sheep_random.ml campaign.ml compare_sheep.ml \
    -o mutant
  finds "$1" ./mutant "$fibers"
}

core 'shallow handlers' 'let captured = captured @ [ { fiber with frames } ] in' \
  'let captured = captured @ [ { identity_fiber with frames } ] in'
core 'exceptions skip a fiber' 'Some ([ "ExnFwdFib" ], in_ocaml term env (outer :: k) c_stack))' \
  'Some ([ "ExnFwdFib" ], in_ocaml term env (if k = [] then [ outer ] else k) c_stack))'
core 'return cases are left out' 'Some ([ "RetFib" ], in_ocaml (to_term e) ((x, v) :: scope) k c_stack)' \
  'Some ([ "RetFib" ], in_ocaml term env k c_stack)'
core 'Unhandled drops the continuation' 'let k, c_stack = append captured ([], c_stack) in' \
  'let k = [ identity_fiber ] in'
core 'a resumed continuation loses the frames around it' \
  'append resumed.fibers ({ fiber with frames } :: k, c_stack)' \
  'append resumed.fibers ((if k = [] then { fiber with frames } :: k else k), c_stack)'
core 'frames of C are lost' 'let base = { fiber with frames; over_c = Some c_stack.c_frames } in' \
  'let base = { fiber with frames; over_c = Some [] } in'
core 'continuations are multi-shot' 'if Shots.mem k.shot used then' 'if false then'

sheep 'captured handlers in the wrong order' '((part :: outer, pure), rest)' \
  '((outer @ [ part ], pure), rest)'
sheep 'resume changes the inner handlers too' '(outer @ ((pure, labels) :: k))' \
  '(List.map (fun (p, _) -> (p, labels)) outer @ ((pure, labels) :: k))'
sheep 'deep handlers' 'let request = Inject (label, Pair (value, Continuation { outer; pure; shot })) in' \
  'let request = Inject (label, Pair (value, Continuation { outer = outer @ [ (pure, [ label ]) ]; pure = []; shot })) in'
sheep 'a handler that is left still handles' \
  'Some ("M-RetHandler", returning (Inject (ret, interpret env v)) env k)' \
  'Some ("M-RetHandler", returning (interpret env v) env k)'
sheep 'continuations are multi-shot' 'Some shot when Shots.mem shot used ->' \
  'Some shot when false && Shots.mem shot used ->'

[ "$missed" -eq 0 ]
# SPDX-License-Identifier: MIT
