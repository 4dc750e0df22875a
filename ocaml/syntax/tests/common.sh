# Shared by the tests of the syntax: a folder of their own, in it the stand-in for the Effect
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

# copy_stand_in FOLDER
copy_stand_in() {
  cp "$tests"/stand_in/effect.ml* "$HAFT_SOURCE_DIR/ocaml/lib/haft__syntax.mli" "$1"
  cat "$HAFT_SOURCE_DIR"/ocaml/lib/syntax/names.ml "$HAFT_SOURCE_DIR"/ocaml/lib/syntax/bytecode.ml >"$1/haft__syntax.ml"
}

copy_stand_in .
ocamlfind ocamlc -thread -package threads.posix -c effect.mli effect.ml haft__syntax.mli haft__syntax.ml
# SPDX-License-Identifier: MIT
