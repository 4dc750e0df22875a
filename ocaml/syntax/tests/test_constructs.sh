#!/bin/sh
# test_constructs.sh [PACKAGES]
# Every program of constructs/, compiled with ocamlfind's -pp, prints what NAME.expected has, and so
# does the source that the preprocessor prints for it. With PACKAGES, the folder of the package haft,
# so do the programs of constructs/ and library/ as native code on the library. With -principal, too, they compile
# without a warning.
# Every file of refusals/ is refused, or warned of, with the message and the place of NAME.expected;
# UPDATE=1 writes those anew.
set -eu
. "$HAFT_SOURCE_DIR/ocaml/syntax/tests/common.sh"

packages=${1:-}

compile() {
  ocamlfind ocamlc -thread -package threads.posix -I . -w +a-4-9-40..42-44-45-70 "$@"
}

# runs PROGRAM EXPECTED
runs() {
  "./$1" >"$1.output"
  diff -u "$2" "$1.output" || fail "$1 printed something else"
}

for program in "$tests"/constructs/*.ml; do
  name=$(basename "$program" .ml)
  expected=$tests/constructs/$name.expected
  cp "$program" "$name.ml"
  compile -pp "$syntax" -linkpkg effect.cmo haft__syntax.cmo "$name.ml" -o "$name"
  runs "$name" "$expected"
  "$syntax" --source -o "${name}_source.ml" "$name.ml"
  compile -linkpkg effect.cmo haft__syntax.cmo "${name}_source.ml" -o "${name}_source"
  runs "${name}_source" "$expected"
  # (types.ml is about what cases know of the whole; that is not principal.)
  [ "$name" = types ] || compile -principal -warn-error +a -pp "$syntax" -c "$name.ml"
done

if [ -n "$packages" ]; then
  # In a folder without the stand-in, and with little stack.
  mkdir native
  cd native
  ulimit -s 1024
  for program in "$tests"/constructs/*.ml "$tests"/library/*.ml; do
    name=$(basename "$program" .ml)
    cp "$program" "$name.ml"
    OCAMLPATH=$packages ocamlfind ocamlopt -g -package haft,unix -linkpkg -w +a-4-9-40..42-44-45-70 \
      -pp "$syntax" "$name.ml" -o "$name"
    runs "$name" "${program%.ml}.expected"
  done
  cd ..
fi

# The compiler's lines about the preprocessor that failed name temporary files.
messages() {
  sed -e '/^Command line: /d' -e '/^Error: Error while running/d' -e '/^File ".*", line 1:$/d' -e '/^$/d'
}

for source in "$tests"/refusals/*.ml "$tests"/refusals/*.mli; do
  file=$(basename "$source")
  name=${file%.*}
  cp "$source" "$file"
  compile -pp "$syntax" -c "$file" 2>&1 | messages >"$name.output" || true
  [ -z "${UPDATE:-}" ] || cp "$name.output" "$tests/refusals/$name.expected"
  diff -u "$tests/refusals/$name.expected" "$name.output" || fail "$file was not refused as expected"
done

# Each part of a file of mended/ without syntax errors is in the tree, and each error is a node at its place.
# (The compiler stops at the first.)
for source in "$tests"/mended/*.ml "$tests"/mended/*.mli; do
  file=$(basename "$source")
  name=${file%.*}
  cp "$source" "$file"
  { "$syntax" --source "$file" 2>&1 >/dev/null || true; } | grep '^File' >"$name.output"
  compile -pp "$syntax" -dsource -c "$file" 2>&1 | sed '/^File/,$d' >>"$name.output"
  [ -z "${UPDATE:-}" ] || cp "$name.output" "$tests/mended/$name.expected"
  diff -u "$tests/mended/$name.expected" "$name.output" || fail "$file was mended otherwise"
done

# No warning comes from what is generated.
cp "$tests/all_warnings.ml" .
ocamlfind ocamlc -w +a-70 -warn-error +a -pp "$syntax" -I . -c all_warnings.ml

# Nor does it need what is in scope by default, nor what an opened module hides.
cat >hiding.ml <<'END'
module Stdlib = struct end
module Effect = struct end
module Haft = struct end
type hidden = false | true | None | Some
END
echo 'effect A : bool
let ask () = Stdlib.Effect.perform A
let answer f = match f () with n -> n | effect A, _ -> 0' >hidden.ml
ocamlfind ocamlc -w -65 -c hiding.ml
ocamlfind ocamlc -w +a-33-70 -warn-error +a -nopervasives -open Hiding -pp "$syntax" -I . -i hidden.ml >hidden.output
grep -q 'val answer' hidden.output || fail "hidden.ml was compiled to $(cat hidden.output)"

# Code that is written for OCaml 5 has names of OCaml 5 only.
echo 'module Stdlib = struct include Stdlib module Effect = Effect end' >ocaml_5.ml
ocamlfind ocamlc -c ocaml_5.ml
for name in cases nesting types; do
  "$syntax" --for-ocaml-5 --source -o "${name}_5.ml" "$name.ml"
  if grep Haft "${name}_5.ml"; then fail "$name.ml was written for OCaml 4"; fi
  compile -open Ocaml_5 -linkpkg effect.cmo ocaml_5.cmo "${name}_5.ml" -o "${name}_5"
  runs "${name}_5" "$tests/constructs/$name.expected"
done

# Without the package, the compiler names the module that is missing.
mkdir alone
cp all_warnings.ml alone
(cd alone && ! ocamlfind ocamlc -pp "$syntax" -c all_warnings.ml 2>log && grep -q 'Unbound module Haft__syntax' log) ||
  fail "without the package: $(cat alone/log)"
! ocamlfind ocamlc -I . -pp "$syntax" all_warnings.ml -o alone/program 2>log || fail "it was linked without the package"
grep -q 'Module .* is unavailable' log || fail "linked without the package: $(cat log)"

# The preprocessor passes trees on, so it can be given twice.
"$syntax" all_warnings.ml >once.tree
"$syntax" once.tree | cmp once.tree -

# Merlin's copies of a file have the name of the file, for "locate"; and any file that which is asked for.
names() {
  ocamlfind ocamlc -w -a -I . -impl "$1" -dparsetree -stop-after parsing 2>&1 | sed -n 's/.*structure_item (\([^[]*\)\[2,.*/\1/p' | uniq
}
cp all_warnings.ml merlinpp0a1b2cedited.ml
"$syntax" merlinpp0a1b2cedited.ml >editor.tree
[ "$(names editor.tree)" = edited.ml ] || fail "the file in the editor is called $(names editor.tree)"
"$syntax" --source-name lib/other.ml all_warnings.ml >named.tree
[ "$(names named.tree)" = lib/other.ml ] || fail "the file is called $(names named.tree)"
# SPDX-License-Identifier: MIT
