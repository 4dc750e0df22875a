#!/bin/sh
# SPDX-License-Identifier: MIT
# The package as installed: found by ocamlfind and by dune, with the module Effect and its documentation.
# Argument: where packages go below the prefix.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$HAFT_BUILD_DIR" --prefix "$folder/prefix" >"$folder/log" 2>&1 || {
  cat "$folder/log"
  exit 1
}
# By the installation's own instructions.
settings=$(grep '^ *export OCAMLPATH=' "$folder/log")
OCAMLPATH=${OCAMLPATH:-}
eval "$settings"
[ "$(ocamlfind query haft)" = "$folder/prefix/$1/haft" ]
[ "$(command -v haft-effect-syntax)" = "$folder/prefix/bin/haft-effect-syntax" ]
ocamlfind lint "$(ocamlfind query haft)/META" >"$folder/lint" || { cat "$folder/lint"; exit 1; }
[ -n "$(ocamlfind query -recursive -predicates native -format '%D' haft)" ]
cd "$folder"
cp "$HAFT_SOURCE_DIR"/ocaml/tests/programs/zero_to_four.* .

ocamlfind ocamlopt -package haft -linkpkg zero_to_four.ml -o zero_to_four
./zero_to_four | diff zero_to_four.expected -

# With code that was compiled without looking into the package.
ocamlfind ocamlopt -opaque -package haft -linkpkg zero_to_four.ml -o zero_to_four
./zero_to_four | diff zero_to_four.expected -

# With the effect syntax.
cat >answer.ml <<'END'
module Stdlib = struct include Stdlib end
effect Ask : int
let answer () = match Stdlib.Effect.perform Ask with n -> n | effect Ask, k -> Effect.Deep.continue k 42
let () = print_int (answer ())
END
ocamlfind ocamlopt -package haft -pp haft-effect-syntax -linkpkg answer.ml -o answer
[ "$(./answer)" = 42 ]
ocamlfind ocamlopt -opaque -principal -package haft -pp haft-effect-syntax -linkpkg answer.ml -o answer
[ "$(./answer)" = 42 ]

# Bytecode and the toplevel compile programs with effects, and print what cannot run.
sentence='Haft needs native code: bytecode and the toplevel can compile programs with effects, ocamlopt runs them'
ocamlfind ocamlc -package haft -linkpkg zero_to_four.ml -o zero_to_four.byte
if ./zero_to_four.byte 2>errors; then exit 1; fi
grep -F "$sentence" errors >/dev/null || { cat errors; exit 1; }
ocamlfind ocamlc -package haft -pp haft-effect-syntax -linkpkg answer.ml -o answer.byte
if ./answer.byte 2>errors; then exit 1; fi
grep -F "$sentence" errors >/dev/null || { cat errors; exit 1; }
haft-effect-syntax --source -o answer_source.ml answer.ml
if ocaml -noinit -I "$(ocamlfind query haft)" haft.cma answer_source.ml 2>errors; then exit 1; fi
grep -F "$sentence" errors >/dev/null || { cat errors; exit 1; }
echo '#directory "'"$(ocamlfind query haft)"'";;
#load "haft.cma";;
let _ : int = Effect.Deep.try_with (fun () -> 1) () { Effect.Deep.effc = fun _ -> None };;' |
  ocaml -noinit 2>&1 | tr '\n' ' ' | tr -s ' ' >toplevel
grep -F "$sentence" toplevel >/dev/null || { cat toplevel; exit 1; }

if command -v dune >/dev/null; then
  mkdir project
  cp zero_to_four.ml project
  echo '(lang dune 2.0)' >project/dune-project
  echo '(executable (name zero_to_four) (libraries haft unix))' >project/dune
  (cd project && dune build --root . ./zero_to_four.exe 2>log || { cat log; exit 1; })
  project/_build/default/zero_to_four.exe | diff zero_to_four.expected -

  # In all the modes that dune has without being told.
  mkdir all all/lib
  cp zero_to_four.ml all/lib
  echo 'let run () = Effect.perform (Obj.magic 0)' >all/main.ml
  echo '(lang dune 2.0)' >all/dune-project
  echo '(executable (name main) (modes byte exe) (libraries zero_to_four haft))' >all/dune
  echo '(library (name zero_to_four) (libraries haft))' >all/lib/dune
  mkdir all/syntax
  cp answer.ml all/syntax
  echo '(executable (name answer) (modes byte exe) (libraries haft)
 (preprocess (action (run haft-effect-syntax %{input-file}))))' >all/syntax/dune
  (cd all && dune build --root . 2>log && dune build --root . @all 2>log || { cat log; exit 1; })
fi

# Tasks, I/O and HTTP, where they are built.
if [ -d "$folder/prefix/$1/haft-http" ]; then
  # (They have no plugins, which `ocamlfind lint` asks for.)
  for package in haft-io haft-http haft-posix haft-lwt; do
    [ -d "$folder/prefix/$1/$package" ] || continue
    [ -n "$(ocamlfind query -format '%(requires)' "$package")" ]
    ocamlfind query -recursive -predicates native "$package" >/dev/null
    ls "$folder/prefix/$1/$package"/*.mli >/dev/null
  done
  [ -n "$(ocamlfind query -recursive -predicates native -format '%D' haft-http)" ]
  cp "$HAFT_SOURCE_DIR"/examples/ocaml/io/crawler.* .
  # The command of the documents, and that of a program with threads of its own.
  for with in '' -thread; do
    # shellcheck disable=SC2086 # an option or none
    ocamlfind ocamlopt $with -package haft-http -linkpkg crawler.ml -o crawler
    ./crawler | diff crawler.expected -
  done
  if command -v dune >/dev/null; then
    mkdir web
    cp crawler.ml web
    echo '(lang dune 2.0)' >web/dune-project
    echo '(executable (name crawler) (libraries haft-http))' >web/dune
    (cd web && dune build --root . ./crawler.exe 2>log || { cat log; exit 1; })
    web/_build/default/crawler.exe | diff crawler.expected -
  fi
fi
