#!/bin/sh
# SPDX-License-Identifier: MIT
# memcached.sh [TEST.t...]: memcached's own tests, all or those that are named, with threads of the system and with
# threads that are tasks: what fails in the second way fails in the first, too, or is expected below. HAFT_MEMCACHED is a
# folder with its sources. In a long campaign, without it, the sources are fetched as a package of Debian's, and so is
# libevent's, if that is not installed.
set -eu
if [ -z "${HAFT_MEMCACHED:-}" ] && [ "${HAFT_CAMPAIGN:-}" != long ]; then
  echo 'fetches and builds memcached: for a long campaign, or with HAFT_MEMCACHED, a folder with its sources'
  exit 77
fi
for command in prove make perl; do
  command -v $command >/dev/null || { echo "$command is not installed"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tasks="sh $HAFT_BUILD_DIR/io/posix/haft-threads"
export HAFT_THREADS_LIBRARIES="$HAFT_BUILD_DIR/io/posix"
if $tasks true 2>&1 | grep 'threads of the system are used'; then
  exit 77
fi

# get ARGUMENT...: apt-get with a list of its own, which has sources, too.
get() {
  apt-get -qq -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=- -o Dir::State::Lists="$work/lists" \
    -o Dir::Cache="$work/cache" -o Acquire::Languages=none -o APT::Sandbox::User=root "$@"
}

# fetch: the sources, in $work/memcached-VERSION; the headers of libevent, in $work/root.
fetch() {
  mkdir -p lists/partial cache/archives/partial root
  # shellcheck disable=SC2016 # apt-get's own names
  place=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' | head -1)
  for kind in deb deb-src; do
    echo "$kind [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $place main"
  done >sources.list
  get update && get --download-only source memcached && get download libevent-dev || return 1
  tar xf memcached_*.orig.tar.* && dpkg-deb -x libevent-dev_*.deb root
}

cd "$work"
sources=${HAFT_MEMCACHED:-}
if [ -z "$sources" ]; then
  if ! fetch >fetching 2>&1; then
    echo "memcached cannot be fetched: $(tail -1 fetching)"
    exit 77
  fi
  sources=$(find "$work" -maxdepth 1 -type d -name 'memcached-*')
fi
cp -r "$sources" built
# (The package for developers has links to the libraries of the installed one.)
libraries=$(find root -type d -path '*/lib/*-linux-gnu' 2>/dev/null | head -1)
if [ -n "$libraries" ]; then
  for link in "$libraries"/*.so; do
    installed=$(ldconfig -p | sed -n "s|.*=> \(.*/$(readlink "$link")\)|\1|p" | head -1)
    installed=${installed:-$(dirname "$(ldconfig -p | sed -n 's|.*=> \(.*/libc.so.6\)|\1|p' | head -1)")/$(readlink "$link")}
    ln -sf "$installed" "$link"
  done
  CPPFLAGS="-I$work/root/usr/include -I$work/root/usr/include/${libraries##*/}"
  LDFLAGS="-L$work/$libraries"
  export CPPFLAGS LDFLAGS
fi
cd built
(./configure && make -j2 memcached memcached-debug timedrun sizes testapp) >"$work/built.log" 2>&1 ||
  { tail -20 "$work/built.log"; exit 1; }
