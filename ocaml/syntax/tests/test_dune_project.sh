#!/bin/sh
# A dune project uses the syntax as an action, in front of a ppx, beside a staged one and with instrumentation;
# errors are reported in the user's own source.
set -eu
. "$HAFT_SOURCE_DIR/ocaml/syntax/tests/common.sh"

if ! command -v dune >/dev/null || ! ocamlfind query ppxlib >/dev/null 2>&1; then
  echo "needs dune and ppxlib"
  exit 77
fi

cp -r "$tests/dune_project" project
copy_stand_in project/stand_in
mkdir commands
ln -s "$syntax" commands/haft-effect-syntax
PATH=$work/commands:$PATH
cd project

build() {
  dune build --root . --display quiet "$@"
}

# prints FOLDER TEXT: what the program of the folder prints.
prints() {
  output=$("./_build/default/$1/main.exe")
  [ "$output" = "$2" ] || fail "$1/main.exe printed $output"
}

build ./bin/main.exe ./staged/main.exe ./instrumented/main.exe || fail "the project does not build"
prints bin 47
prints staged '42 42'
prints instrumented 5
build ./instrumented/main.exe --instrument-with counting_ppx || fail "the instrumented program does not build"
prints instrumented 'instrumented
5'

# merlin_is_told FILE FLAGS: what dune answers Merlin, and so ocaml-lsp, when it asks about the file.
merlin_is_told() {
  file=$PWD/$1
  printf '(4:File%d:%s)' "${#file}" "$file" | dune ocaml-merlin --root . >answer 2>/dev/null
  grep -F -e "$2" answer >/dev/null || { cat answer; fail "Merlin is not told $2 about $1"; }
}

if [ "$(dune --version | cut -d . -f 1)" -ge 2 ]; then
  preprocessor=$(command -v haft-effect-syntax)
  merlin_is_told lib/ask.ml "(3:FLG(3:-pp${#preprocessor}:$preprocessor))"
  merlin_is_told staged/main.ml "(3:FLG(3:-pp${#preprocessor}:$preprocessor))"
  merlin_is_told staged/both.effects.ml '3:-pp18:haft-effect-syntax'
  merlin_is_told instrumented/main.ml '3:-pp18:haft-effect-syntax'
fi

# refused FILE TEXT PLACE: with the text at its end, the file is refused at that place.
refused() {
  cp "$1" saved
  printf '%s\n' "$2" >>"$1"
  if build ./bin/main.exe 2>errors; then fail "$1 was accepted with: $2"; fi
  grep -F "File \"$1\", line $3" errors >/dev/null || { cat errors; fail "$1 was refused elsewhere"; }
  cp saved "$1"
}

refused lib/ask.ml 'let f g = try g () with effect (Ask x) -> x' '9, characters 24-38'
refused lib/ask.ml 'let f g = try g () with effect (Ask x) _ -> x + 1' '9, characters 44-45'
refused bin/main.ml 'let f g = try g () with effect (Local) -> 1' '7, characters 24-38'
refused bin/main.ml 'let f g = try g () with effect Local, k -> ""; g' '7, characters 43-45'
# SPDX-License-Identifier: MIT
