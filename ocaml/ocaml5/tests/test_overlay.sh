#!/bin/sh
# test_overlay.sh: opam accepts our files, and finds Eio for OCaml 4 in the overlay, for OCaml 5 not there. The
# other packages are stand-ins: their names and versions, and the constraints on them, are opam-repository's.
set -eu
command -v opam >/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
OPAMROOT=$work/root OPAMYES=1 OPAMROOTISOK=1 OPAMCOLOR=never
export OPAMROOT OPAMYES OPAMROOTISOK OPAMCOLOR

quietly() {
  "$@" >log 2>&1 || { cat log; exit 1; }
}

overlay=$HAFT_SOURCE_DIR/opam
# (We have no home page.)
quietly opam lint --strict --warnings=-35-36 "$HAFT_SOURCE_DIR/haft.opam"
quietly opam lint --strict "$overlay"/packages/*/*/opam

# stand_in NAME VERSION [LINE]
stand_in() {
  mkdir -p "others/packages/$1/$1.$2"
  printf 'opam-version: "2.0"\n%s\n' "${3:-}" >"others/packages/$1/$1.$2/opam"
}
mkdir others
echo 'opam-version: "2.0"' >others/repo
for version in 4.12.1 4.13.1 4.14.2 5.3.0; do
  stand_in ocaml $version
done
for package in dune.3.17.2 bigstringaf.0.10.0 cstruct.6.2.0 lwt-dllist.1.1.0 optint.0.3.0 psq.0.2.1 fmt.0.9.0 \
  hmap.0.8.1 mtime.2.1.0 thread-table.1.0.0 ocamlfind.1.9.6 uring.2.7.0; do
  stand_in "${package%%.*}" "${package#*.}"
done
stand_in domain-local-await 1.0.1 'depends: ["ocaml" {>= "4.12.0"} "thread-table" {>= "1.0.0"}]'
stand_in iomux 0.4 'depends: "ocaml" {>= "4.08"}'
stand_in eio 1.5 'depends: "ocaml" {>= "5.2.0"}'
stand_in eio_posix 1.5 'depends: "eio" {= version}'
stand_in eio_linux 1.5 'depends: ["eio" {= version} "uring"]'
stand_in eio_main 1.5 'depends: ["eio_posix" {= version} "eio_linux" {= version}]'
haft=haft.$(sed -n 's/^version: "\(.*\)"/\1/p' "$HAFT_SOURCE_DIR/haft.opam")
mkdir -p "others/packages/haft/$haft"
sed -e '/^name:/d' -e '/^version:/d' "$HAFT_SOURCE_DIR/haft.opam" >"others/packages/haft/$haft/opam"

quietly opam init --bare --no-setup --disable-sandboxing others "$work/others"
quietly opam repository add haft "$overlay" --set-default
quietly opam switch create test --empty

# installs VERSION PACKAGE...: with this OCaml, eio_main comes from these packages.
installs() {
  version=$1
  shift
  quietly opam install --dry-run --no-depexts eio_main "ocaml.$version"
  for package in "$@"; do
    grep -F "installed $package" log >/dev/null || { cat log; exit 1; }
  done
}
installs 4.13.1 "$haft" eio.1.5+haft eio_posix.1.5+haft eio_main.1.5+haft
installs 4.14.2 "$haft" eio.1.5+haft eio_posix.1.5+haft eio_main.1.5+haft
installs 5.3.0 eio.1.5 eio_linux.1.5 eio_main.1.5
if opam install --dry-run --no-depexts eio_main ocaml.4.12.1 >log 2>&1; then
  cat log
  exit 1
fi
# SPDX-License-Identifier: MIT
