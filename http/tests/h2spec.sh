#!/bin/sh
# SPDX-License-Identifier: MIT
# h2spec, all of it, against a server over TLS. HAFT_H2SPEC names the program; without it, the long campaign builds it once,
# by Go, below $HAFT_COMPILERS (an absolute name; ~/.cache/haft), for all copies of the repository.
set -eu
version=v2.2.1+incompatible
program=${HAFT_H2SPEC:-${HAFT_COMPILERS:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/haft}/h2spec-$version/h2spec}
server=$HAFT_TEST_DIR/test_https
[ -x "$server" ] || exit 77

build() (
  folder=$(dirname "$program")
  mkdir -p "$folder"
  exec 9>"$folder/lock"
  flock 9
  [ ! -x "$program" ] || exit 0
  GOPATH=$folder/go GOBIN=$folder GOFLAGS=-modcacherw nice timeout 300 \
    go install "github.com/summerwind/h2spec/cmd/h2spec@$version" >"$folder/log" 2>&1 || exit 77
  rm -rf "$folder/go"
)

if [ ! -x "$program" ]; then
  [ "${HAFT_CAMPAIGN:-}" = long ] && command -v go >/dev/null || exit 77
  build || exit 77
fi

work=$(mktemp -d)
mkfifo "$work/port"
# shellcheck disable=SC2086 # words of a command
$HAFT_LAUNCHER "$server" serve >"$work/port" &
trap 'kill $!; wait $!; rm -rf "$work"' EXIT
exec 3<"$work/port"
read -r port <&3
if ! timeout 100 "$program" -h 127.0.0.1 -p "$port" -t -k -o 5 >"$work/said"; then
  sed -n '/^Failures/,$p' "$work/said"
  exit 1
fi
tail -n 1 "$work/said"
grep -q ', 0 skipped, 0 failed' "$work/said"
