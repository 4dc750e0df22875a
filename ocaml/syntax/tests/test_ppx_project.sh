#!/bin/sh
# The recipes of docs/ocaml-editors.md with the rewriters that they name: ppx_deriving, and ppx_import as a staged one.
set -eu
. "$HAFT_SOURCE_DIR/ocaml/syntax/tests/common.sh"

if ! command -v dune >/dev/null || ! ocamlfind query ppx_deriving.show ppx_import >/dev/null 2>&1; then
  echo "needs dune, ppx_deriving and ppx_import"
  exit 77
fi

cp -r "$tests/ppx_project" project
cp -r "$tests/dune_project/stand_in" project
copy_stand_in project/stand_in
mkdir commands
ln -s "$syntax" commands/haft-effect-syntax
PATH=$work/commands:$PATH
cd project
dune build --root . --display quiet ./shown/main.exe ./imported/main.exe || fail "the project does not build"
output=$(./_build/default/shown/main.exe)
[ "$output" = '{ text = "who?"; length = 4 }' ] || fail "shown/main.exe printed $output"
output=$(./_build/default/imported/main.exe)
[ "$output" = '{ pos_fname = ""; pos_lnum = 0; pos_bol = 0; pos_cnum = -1 }' ] ||
  fail "imported/main.exe printed $output"
# SPDX-License-Identifier: MIT
