#!/bin/sh
# SPDX-License-Identifier: MIT
# other_glibc.sh: tasks with thread-locals of their own, and threads as tasks, with the C libraries of later Debian
# releases than the one here, whose package is fetched and used in place: each is accepted and passes, or is refused in
# words. A release that cannot be had is left out. HAFT_GLIBC_RELEASES names others.
set -eu
if [ "${HAFT_CAMPAIGN:-}" != long ] && [ -z "${HAFT_GLIBC_RELEASES:-}" ]; then
  echo 'fetches packages: for a long campaign, or with HAFT_GLIBC_RELEASES'
  exit 77
fi
for command in apt-get dpkg dpkg-deb; do
  command -v $command >/dev/null || { echo "$command is not installed"; exit 77; }
done
# shellcheck disable=SC2016 # apt-get's own names
place=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | head -1)
[ -n "$place" ] || { echo 'apt-get has no repository'; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
architecture=$(dpkg --print-architecture)
host=$(uname -m)-linux-gnu

# fetch RELEASE: the release's C library, in $work/RELEASE.
fetch() (
  mkdir -p "$work/$1/lists/partial" "$work/$1/cache/archives/partial" "$work/$1/root"
  cd "$work/$1"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $place $1 main" >sources.list
  for what in update 'download libc6'; do
    # shellcheck disable=SC2086 # several words
    apt-get -qq -o Dir::Etc::SourceList="$PWD/sources.list" -o Dir::Etc::SourceParts=- -o Dir::State::Lists="$PWD/lists" \
      -o Dir::Cache="$PWD/cache" -o Acquire::Languages=none -o APT::Sandbox::User=root $what || return 1
  done
  dpkg-deb -x libc6_*_"$architecture".deb root
)

# run COMMAND...: 0, or 77 where it is refused.
run() {
  code=0
  "$@" >"$work/said" 2>&1 || code=$?
  cat "$work/said"
  [ $code -eq 0 ] || [ $code -eq 77 ] || { echo "$* has failed: $code"; exit 1; }
}

tested=0
for release in ${HAFT_GLIBC_RELEASES:-trixie forky sid}; do
  if ! fetch "$release" >"$work/fetching" 2>&1; then
    echo "left out: the C library of $release cannot be fetched: $(tail -1 "$work/fetching")"
    continue
  fi
  loader=$(find "$work/$release/root" -name 'ld-linux-*.so.[12]' | head -1)
  libraries=$(dirname "$(find "$work/$release/root" -path "*$host/libc.so.6" | head -1)")
  start="$loader --library-path $libraries"
  echo "$release: $(dpkg-deb -f "$work/$release"/libc6_*.deb Version)"
  # shellcheck disable=SC2086 # several words
  for backend in epoll io_uring; do
    for program in "$HAFT_TEST_DIR/test_own_threads" "$HAFT_BUILD_DIR/io/posix/tests/test_posix_threads"; do
      HAFT_IO_BACKEND=$backend run $start "$program"
    done
  done
  python=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null) || python=
  # shellcheck disable=SC2086
  if [ -n "$python" ]; then
    HAFT_THREADS_LIBRARIES=$HAFT_BUILD_DIR/io/posix
    export HAFT_THREADS_LIBRARIES
    run sh "$HAFT_BUILD_DIR/io/posix/haft-threads" $start "$python" "$HAFT_SOURCE_DIR/io/posix/tests/threads/python.py"
  fi
  tested=$((tested + 1))
done
[ $tested -gt 0 ] || exit 77
