#!/bin/sh
# SPDX-License-Identifier: MIT
# setup.sh build|demo|test|ci|bench|format: make sure that the Debian or Ubuntu packages which that
# command needs are installed. Touches no network when none is missing. As root, or with sudo that
# asks no password, it installs the missing ones; otherwise it names them and exits 1.
#
# A list entry `a|b` is satisfied by either package and installs the first that the distribution
# has; an entry ending in `?` is skipped where the distribution does not have it.
set -u

clang_version() {
  depends=$(dpkg-query -W -f '${Depends}' clang 2>/dev/null ||
    apt-cache show clang 2>/dev/null | sed -n 's/^Depends://p' | head -n 1)
  printf '%s\n' "$depends" | sed -n 's/.*clang-\([0-9][0-9]*\).*/\1/p'
}

# clang's sanitizer runtimes; where they have no package of their own they come with clang.
clang_runtime() {
  version=$(clang_version)
  echo "libclang-rt-${version:+$version-}dev|libclang-rt-dev?"
}

packages() {
  build='gcc g++ libc6-dev cmake liburing-dev?'
  http='libllhttp-dev|node-llhttp? libssl-dev? libwslay-dev? libnghttp2-dev?' # libhaft-http: parser, TLS, WebSocket, HTTP/2
  http="$http zlib1g-dev? libzstd-dev? libbrotli-dev? libpsl-dev?"            # and its compression, and whose domains are
  ocaml='ocaml|ocaml-nox? ocaml-findlib? ocaml-compiler-libs|libcompiler-libs-ocaml-dev?'
  test="$build ninja-build ccache? binutils gdb pkgconf|pkg-config python3 $ocaml libqcheck-core-ocaml-dev?"
  test="$test libalcotest-ocaml-dev? $http"
  case $1 in
  build) echo "$build" ;;
  demo) echo "$build $http wordnet-base $ocaml" ;;
  bench) echo "$build $http nginx? nghttp2-client? nghttp2-server? libboost-context-dev libboost-coroutine-dev? libboost-fiber-dev? python3 $ocaml liblwt-ocaml-dev? libcohttp-lwt-unix-ocaml-dev? binutils golang-go? cargo? libuv1-dev? libjansson-dev? libsqlite3-dev? libpq-dev? postgresql?" ;;
  format) echo clang-format ;;
  test) echo "$test" ;;
  ci)
    echo "$test clang $(clang_runtime) lldb? python3-lldb? gdb-multiarch? libc6-dbg? systemtap-sdt-dev? mandoc? tmux? valgrind libboost-context-dev clang-format"
    echo 'ocaml-dune? libppxlib-ocaml-dev? liblwt-ocaml-dev? libcohttp-lwt-unix-ocaml-dev? libppx-deriving-ocaml-dev? libppx-import-ocaml-dev? opam?'
    echo 'libpostgresql-ocaml-dev? libsqlite3-ocaml-dev? libcurl-ocaml-dev? libmysql-ocaml-dev? libyojson-ocaml-dev?'
    echo 'libcurl4-openssl-dev|libcurl4-gnutls-dev? libpq-dev? postgresql? libhiredis-dev? redis-server? openssl?'
    echo 'libhttp-parser-dev? libsqlite3-dev? libjansson-dev? nlohmann-json3-dev?'
    if [ "$(uname -m)" = x86_64 ]; then
      echo 'qemu-user|qemu-user-static gcc-aarch64-linux-gnu g++-aarch64-linux-gnu'
      echo 'libc6-dev-arm64-cross'
    fi
    ;;
  *)
    echo "setup.sh: no package list for '$1'" >&2
    exit 2
    ;;
  esac
}

installed() {
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

available() {
  apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [^(]'
}

# The entries of the list of which no alternative is installed.
missing_entries() {
  for entry in $(packages "$1"); do
    satisfied=no
    for package in $(echo "${entry%\?}" | tr '|' ' '); do
      if installed "$package"; then
        satisfied=yes
      fi
    done
    [ $satisfied = yes ] || echo "$entry"
  done
}

# The packages to install for the missing entries, by what the distribution is known to have.
missing_packages() {
  for entry in $(missing_entries "$1"); do
    chosen=
    for package in $(echo "${entry%\?}" | tr '|' ' '); do
      if [ -z "$chosen" ] && available "$package"; then
        chosen=$package
      fi
    done
    case $entry in
    *\?) ;;
    *) chosen=${chosen:-${entry%%|*}} ;;
    esac
    [ -z "$chosen" ] || echo "$chosen"
  done
}

command_name=${1:?usage: setup.sh build|demo|test|ci|bench|format}
packages "$command_name" >/dev/null || exit 2

if ! command -v dpkg-query >/dev/null 2>&1; then
  echo "Not a Debian or Ubuntu system: going on with the tools that are here. On Debian this needs:"
  packages "$command_name"
  exit 0
fi

# With no package index at all (a fresh container) nothing is known to be available, so ask for
# an update before deciding that an optional package does not exist.
missing=$(missing_packages "$command_name" | tr '\n' ' ')
if [ -z "$missing" ]; then
  if [ -z "$(missing_entries "$command_name")" ] || available gcc; then
    exit 0
  fi
fi

if [ "$(id -u)" = 0 ]; then
  as_root=
elif sudo -n true 2>/dev/null; then
  as_root=sudo
else
  echo "Missing packages: $missing"
  echo 'Install them with:'
  echo "  sudo apt-get update && sudo apt-get install -y $missing"
  exit 1
fi

apt() {
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq "$@" </dev/null
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! apt update >"$log" 2>&1; then
  cat "$log"
  echo "setup.sh: apt-get update failed; trying the package index as it is"
fi
missing=$(missing_packages "$command_name" | tr '\n' ' ')
[ -n "$missing" ] || exit 0
echo "Installing $missing"
# shellcheck disable=SC2086 # a list of packages
if ! apt install -y --no-install-recommends $missing >"$log" 2>&1; then
  cat "$log"
  echo "setup.sh: could not install: $missing"
  exit 1
fi
