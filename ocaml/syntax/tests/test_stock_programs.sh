#!/bin/sh
# Programs of stock OCaml are read as the stock parser reads them: the installed libraries' sources,
# and a file that uses `effect` as an identifier in every way.
set -eu
. "$HAFT_SOURCE_DIR/ocaml/syntax/tests/common.sh"

cp "$tests/same_tree.ml" .
OCAMLFIND_IGNORE_DUPS_IN=$(ocamlfind query compiler-libs.common)
export OCAMLFIND_IGNORE_DUPS_IN
ocamlfind ocamlopt -package compiler-libs.common -linkpkg \
  -I "$HAFT_TEST_DIR" "$HAFT_TEST_DIR/effect_tokens.cmx" same_tree.ml -o same_tree
./same_tree "$tests/identifiers.ml" $(find "$(ocamlfind ocamlc -where)" -name '*.ml' -o -name '*.mli')
# SPDX-License-Identifier: MIT
