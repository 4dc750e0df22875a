#!/bin/sh
# The package as installed: found by ocamlfind and by dune, with the module Effect and its documentation.
# Argument: where packages go below the prefix.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$HAFT_BUILD_DIR" --prefix "$folder/prefix" >"$folder/log" 2>&1 || {
  cat "$folder/log"
  exit 1
}
OCAMLPATH=$folder/prefix/$1${OCAMLPATH:+:$OCAMLPATH}
export OCAMLPATH
cd "$folder"
cp "$HAFT_SOURCE_DIR"/ocaml/tests/programs/zero_to_four.* .

ocamlfind ocamlopt -package haft -linkpkg zero_to_four.ml -o zero_to_four
./zero_to_four | diff zero_to_four.expected -

# With code that was compiled without looking into the package.
ocamlfind ocamlopt -opaque -package haft -linkpkg zero_to_four.ml -o zero_to_four
./zero_to_four | diff zero_to_four.expected -

if command -v dune >/dev/null; then
  mkdir project
  cp zero_to_four.ml project
  echo '(lang dune 2.0)' >project/dune-project
  echo '(executable (name zero_to_four) (libraries haft unix))' >project/dune
  (cd project && dune build --root . ./zero_to_four.exe 2>log || { cat log; exit 1; })
  project/_build/default/zero_to_four.exe | diff zero_to_four.expected -
fi
