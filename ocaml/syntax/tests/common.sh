# What the tests of the syntax share: a folder of their own, in it the stand-in for the Effect
# module, compiled, and in $syntax the preprocessor.
tests=$HAFT_SOURCE_DIR/ocaml/syntax/tests
syntax=$HAFT_TEST_DIR/haft-effect-syntax
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
  echo "$*" >&2
  exit 1
}

cp "$tests"/stand_in/*.ml "$tests"/stand_in/*.mli .
ocamlfind ocamlc -thread -package threads.posix -c effect.mli effect.ml haft.ml
# SPDX-License-Identifier: MIT
