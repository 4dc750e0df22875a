#!/bin/sh
# A dune project uses the syntax as an action and in front of a ppx, and both report errors in the
# user's own source.
set -eu
. "$HAFT_SOURCE_DIR/ocaml/syntax/tests/common.sh"

if ! command -v dune >/dev/null || ! ocamlfind query ppxlib >/dev/null 2>&1; then
  echo "needs dune and ppxlib"
  exit 77
fi

cp -r "$tests/dune_project" project
cp "$tests"/stand_in/effect.ml* project/stand_in
mkdir commands
ln -s "$syntax" commands/haft-effect-syntax
PATH=$work/commands:$PATH
cd project

build() {
  dune build --root . --display quiet ./bin/main.exe
}

build || fail "the project does not build"
output=$(./_build/default/bin/main.exe)
[ "$output" = 47 ] || fail "the program printed $output"

# refused FILE TEXT PLACE: with the text at its end, the file is refused at that place.
refused() {
  cp "$1" saved
  printf '%s\n' "$2" >>"$1"
  if build 2>errors; then fail "$1 was accepted with: $2"; fi
  grep -F "File \"$1\", line $3" errors >/dev/null || { cat errors; fail "$1 was refused elsewhere"; }
  cp saved "$1"
}

refused lib/ask.ml 'let f g = try g () with effect (Ask x) -> x' '9, characters 24-38'
refused lib/ask.ml 'let f g = try g () with effect (Ask x) _ -> x + 1' '9, characters 44-45'
refused bin/main.ml 'let f g = try g () with effect (Local) -> 1' '7, characters 24-38'
refused bin/main.ml 'let f g = try g () with effect Local, k -> ""; g' '7, characters 43-45'
