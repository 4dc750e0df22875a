#!/bin/sh
# SPDX-License-Identifier: MIT
# with-ocaml.sh VERSION [COMMAND...]: run the command with this version of OCaml in front, e.g.
#   sh tools/with-ocaml.sh 4.14 ctest --test-dir build/ocaml-4.14 --label-regex ocaml
# VERSION is 4.14; or 4.14-flambda: with the optimizer flambda, frame pointers, and a garbage collector
# that accepts no addresses of other things than blocks; or 5.3, with which the benchmarks compare; or
# aarch64: the distribution's, for AArch64, where qemu-user runs it and gcc for AArch64 assembles and links.
# with-ocaml.sh --folder VERSION: print where that compiler is, or will be; it is there if `complete` is.
# The compiler is made once, below $HAFT_COMPILERS (an absolute name; ~/.cache/haft), for all copies of the repository whose
# script is this one: built from the source in the npm registry's package `ocaml`, in place of which
# ocaml-RELEASE.tgz may lie there already; that for AArch64, from the packages of the machine's own
# distribution, which are unpacked there and not installed. With it go the machine's ocamlfind and, where
# the machine has the sources of qcheck-core, that package.
set -u
wants_folder=
if [ "${1:-}" = --folder ]; then
  wants_folder=1
  shift
fi
version=${1:?usage: with-ocaml.sh VERSION [COMMAND...]}
shift
unset MAKEFLAGS MFLAGS MAKELEVEL
unset OCAMLPATH OCAMLLIB CAMLLIB CAML_LD_LIBRARY_PATH OCAMLFIND_CONF OCAMLFIND_TOOLCHAIN

options=
case $version in
4.14-flambda) options='--enable-flambda --enable-frame-pointers --disable-naked-pointers' ;;
esac
case $version in
4.14 | 4.14-flambda)
  release=4.14.1000
  sha512=f7c9d59ea9e82026b96eb6279bad16c1ebf2ef6fd85248bd2aaa203cf917737e7b8144285c2675bcab3130c13a9f268072e23d393e7fa33ba9a28e2f4e7f0740
  ;;
5.3)
  release=5.3.0
  sha512=0f4b86e38437afa2d8e304b38416691defaad72309e101e09394753acbfba8b5818163d0da313ad2f63aad7809ada2ff1fd7efb16385dca65222ba3f6d2f99f0
  ;;
aarch64) release=distribution ;;
*)
  echo "with-ocaml.sh: no source is known for OCaml $version" >&2
  exit 2
  ;;
esac

root=${HAFT_COMPILERS:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/haft}
compiler=$root/ocaml-$version-$(cksum <"$0" | cut -d ' ' -f 1)
if [ -n "$wants_folder" ]; then
  echo "$compiler"
  exit
fi
mkdir -p "$root" || exit 1
archive=$root/ocaml-$release.tgz
source=$compiler-source
log=$compiler.log
packages=$compiler/packages
library=$compiler/lib/ocaml

fail() {
  echo "with-ocaml.sh: $*" >&2
  exit 1
}

# logged COMMAND...: quiet unless it fails.
logged() {
  if ! "$@" >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    fail "failed: $*"
  fi
}

is_intact() {
  printf '%s  %s\n' "$sha512" "$archive" | sha512sum --check --status 2>/dev/null
}

fetch() {
  is_intact && return
  command -v npm >/dev/null || fail "put $archive there, or install npm, which gets it"
  logged npm pack --silent --pack-destination "$root" "ocaml@$release"
  is_intact || fail "$archive is not the file that was expected"
}

build_compiler() (
  rm -rf "$compiler" "$source"
  mkdir "$source" && tar -xzf "$archive" -C "$source" --strip-components=1 || exit 1
  # (The registry's archives do not keep the permission to execute.)
  cd "$source" && chmod +x configure build-aux/* || exit 1
  # shellcheck disable=SC2086 # a list of options
  logged ./configure --prefix="$compiler" --disable-debugger --disable-debug-runtime \
    --disable-instrumented-runtime --disable-ocamldoc --disable-ocamltest \
    --disable-installing-bytecode-programs $options
  logged make -j "${JOBS:-$(nproc)}" world.opt
  logged make install
  rm -rf "$source"
)

# apt-get for AArch64, with lists of its own: what is installed stays as it is.
apt_for_aarch64() {
  apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::status=/dev/null \
    -o Dir::State::Lists="$source/lists" -o Dir::Cache="$source/cache" -o APT::Sandbox::User=root "$@"
}

unpack_compiler() (
  qemu=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) || fail 'there is no qemu-user'
  command -v aarch64-linux-gnu-gcc >/dev/null || fail 'there is no gcc for AArch64'
  rm -rf "$compiler" "$source"
  mkdir -p "$source/lists/partial" "$source/cache/archives/partial" "$compiler/bin" && cd "$source" || exit 1
  logged apt_for_aarch64 update
  logged apt_for_aarch64 download ocaml ocaml-base ocaml-compiler-libs
  for file in *.deb; do
    dpkg-deb --fsys-tarfile "$file" | tar -x -C "$compiler" --strip-components=2 \
      --wildcards --exclude='*.byte' --exclude='*.cmt*' --exclude='*/share/*' './usr/*' || exit 1
  done
  for name in ocamlopt ocamlc ocamldep ocamlobjinfo ocamlmklib; do
    rm -f "$compiler/bin/$name"
    cat >"$compiler/bin/$name" <<END
#!/bin/sh
OCAMLLIB='$library' exec '$qemu' -L /usr/aarch64-linux-gnu '$compiler/bin/$name.opt' "\$@"
END
    chmod +x "$compiler/bin/$name"
  done
  rm -rf "$source"
)

# package NAME: its META is the standard input.
package() {
  mkdir -p "$packages/$1" && cat >"$packages/$1/META"
}

# Writes the META files of the compiler's own libraries, for ocamlfind.
describe_libraries() {
  package bytes </dev/null
  package unix <<'END'
directory = "^"
archive(byte) = "unix.cma"
archive(native) = "unix.cmxa"
END
  package threads <<'END'
directory = "^"
type_of_threads = "posix"
requires(mt,mt_posix) = "threads.posix"
package "posix" (
  requires = "unix"
  directory = "+threads"
  archive(byte,mt,mt_posix) = "threads.cma"
  archive(native,mt,mt_posix) = "threads.cmxa"
)
END
  package compiler-libs <<'END'
directory = "+compiler-libs"
package "common" (
  requires = "compiler-libs"
  archive(byte) = "ocamlcommon.cma"
  archive(native) = "ocamlcommon.cmxa"
)
END
}

# The machine's ocamlfind, which finds this compiler's packages.
make_ocamlfind() {
  cat >"$compiler/findlib.conf" <<END
path="$packages:$library"
destdir="$packages"
stdlib="$library"
ldconf="$library/ld.conf"
END
  cat >"$compiler/bin/ocamlfind" <<END
#!/bin/sh
PATH='$compiler/bin':\$PATH
OCAMLFIND_CONF='$compiler/findlib.conf'
export PATH OCAMLFIND_CONF
exec '$1' "\$@"
END
  chmod +x "$compiler/bin/ocamlfind"
}

# Packages keep their sources beside what was compiled from them.
build_qcheck() (
  mkdir -p "$packages/qcheck-core" && cd "$packages/qcheck-core" || exit
  cp "$1"/*.ml "$1"/*.mli "$1/META" . 2>/dev/null || exit
  files=$(ocamlfind ocamldep -sort ./*.mli ./*.ml) || exit
  # shellcheck disable=SC2086 # a list of files
  ocamlfind ocamlopt -w -a -g -package unix,bytes -a -o qcheck_core.cmxa $files
)

# (Two that need the same compiler wait for the one that makes it.)
exec 9>"$root/lock"
flock 9
if [ ! -f "$compiler/complete" ]; then
  machine_ocamlfind=$(command -v ocamlfind) || fail 'there is no ocamlfind'
  machine_qcheck=$(ocamlfind query qcheck-core 2>/dev/null)
  if [ "$version" = aarch64 ]; then
    unpack_compiler || exit 1
  else
    fetch
    build_compiler || exit 1
  fi
  PATH=$compiler/bin:$PATH
  # (From 5 on, the libraries' folders do that.)
  case $version in
  5.*) ;;
  *) describe_libraries ;;
  esac
  make_ocamlfind "$machine_ocamlfind"
  # (For AArch64 nothing needs it.)
  if [ "$version" != aarch64 ] && ! build_qcheck "$machine_qcheck" >"$log" 2>&1; then
    rm -rf "$packages/qcheck-core"
    echo 'with-ocaml.sh: without qcheck-core, whose sources are not on this machine' >&2
  fi
  touch "$compiler/complete"
fi
exec 9>&-

PATH=$compiler/bin:$PATH
export PATH
[ $# -eq 0 ] || exec "$@"
