#!/bin/sh
# test_project.sh PACKAGES PROGRAM: haft-ocaml5-project makes a project for OCaml 5 one that OCaml 4 builds, and
# leaves it alone the second time.
set -eu
OCAMLPATH=$1${OCAMLPATH:+:$OCAMLPATH}
export OCAMLPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -R "$HAFT_SOURCE_DIR/ocaml/ocaml5/tests/project" "$work"
cd "$work"

[ "$("$2" project)" = "$(printf 'project/bin/dune\nproject/lib/dune')" ]
cp -R project again
[ -z "$("$2" again)" ]
diff -r project again

echo '(library (name unfinished)' >again/dune
if "$2" again 2>log; then exit 1; fi
grep -F 'again/dune: not a dune file, from its character 1 on' log >/dev/null || { cat log; exit 1; }

command -v dune >/dev/null || exit 0
cd project
dune build --root . ./bin/main.exe ./bin/alone.exe 2>log || { cat log; exit 1; }
printf '1 one\n2 two\nfile: Permission denied\n' >expected
_build/default/bin/main.exe | diff expected -
[ "$(echo 'a line' | _build/default/bin/alone.exe)" = 'a line' ]
# SPDX-License-Identifier: MIT
