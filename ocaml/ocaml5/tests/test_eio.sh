#!/bin/sh
# SPDX-License-Identifier: MIT
# test_eio.sh PACKAGES: the server of docs/eio.md has the types that Eio's documentation asks for: eio/ has the
# interfaces, and there is no Eio here to run it with. PACKAGES is the folder of the package haft.
set -eu
OCAMLPATH=$1${OCAMLPATH:+:$OCAMLPATH}
export OCAMLPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$HAFT_SOURCE_DIR"/ocaml/ocaml5/tests/eio/*.mli "$work"
cd "$work"

compile() {
  ocamlfind ocamlc -thread -package haft.ocaml5 -w +a-4-9-40..42-44-45-70 -warn-error +a -open Haft_ocaml5 -c "$@"
}

sed -n -e '1,/^## A server/d' -e '/^with$/q' -e 's/^    //p' "$HAFT_SOURCE_DIR/docs/eio.md" >server.ml
[ -s server.ml ]
compile eio.mli fmt.mli eio_main.mli
compile server.ml

# A value that is no flow is refused.
sed 's/ flow / (flow : [ `Accept ] Eio.Std.r) /' server.ml >wrong.ml
if compile wrong.ml 2>log; then exit 1; fi
grep 'Eio.Flow.source_ty' log >/dev/null || { cat log; exit 1; }
