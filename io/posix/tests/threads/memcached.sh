#!/bin/sh
# SPDX-License-Identifier: MIT
# memcached.sh [TEST.t...]: memcached's own tests, all or those that are named, with threads that are tasks, on one
# thread of the system and on two. A test that fails is run with threads of the system, too: it may fail then.
# HAFT_MEMCACHED is a folder with its sources, or "fetch": then they are fetched as a package of Debian's, and so are
# libevent's headers. (It takes some ten minutes.)
set -eu
if [ -z "${HAFT_MEMCACHED:-}" ]; then
  echo 'builds memcached: with HAFT_MEMCACHED, a folder with its sources, or "fetch"'
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
sources=$HAFT_MEMCACHED
if [ "$sources" = fetch ]; then
  if ! fetch >fetching 2>&1; then
    echo "memcached cannot be fetched: $(tail -1 fetching)"
    exit 77
  fi
  sources=$(find "$work" -maxdepth 1 -type d -name 'memcached-*')
fi
cp -a "$sources" built
# (The package for developers has links to the libraries of the installed one.)
libraries=$(find root -type d -path '*/lib/*-linux-gnu' 2>/dev/null | head -1)
if [ -n "$libraries" ]; then
  for link in "$libraries"/*.so; do
    ln -sf "/usr/lib/${libraries##*/}/$(readlink "$link")" "$link"
  done
  CPPFLAGS="-I$work/root/usr/include -I$work/root/usr/include/${libraries##*/}"
  LDFLAGS="-L$work/$libraries"
  export CPPFLAGS LDFLAGS
fi
cd built
(./configure && make -j2 memcached memcached-debug timedrun sizes testapp) >"$work/built.log" 2>&1 ||
  { tail -20 "$work/built.log"; exit 1; }
# (The tests start ./memcached-debug.)
mv memcached-debug memcached-itself
cat >memcached-debug <<'END'
#!/bin/sh
exec $MEMCACHED_BY "${0%/*}/memcached-itself" "$@"
END
chmod +x memcached-debug
export LC_ALL=C

# run COMMAND TEST.t...: writes the names of the tests that fail with memcached started by the command.
run() {
  by=$1
  shift
  MEMCACHED_BY=$by prove -j4 "$@" >"$work/said" 2>&1 || true
  grep -q '^Files=' "$work/said" || { tail -20 "$work/said" >&2 && exit 1; }
  sed -n 's|^\(t/[^ ]*\.t\) *(Wstat.*|\1|p' "$work/said"
}

[ $# -gt 0 ] || set -- t/*.t
code=0
for threads in 1 2; do
  failed=$(run "$tasks -t $threads" "$@")
  grep '^Files=' "$work/said"
  for test in $failed; do # alone, since a machine that is busy is what some fail by
    if [ -z "$(run "$tasks -t $threads" "$test")" ]; then
      echo "$test has failed once beside others"
    elif [ -n "$(run '' "$test")" ]; then
      echo "$test fails with threads of the system, too"
    else
      run "$tasks -t $threads" "$test" && tail -40 "$work/said"
      echo "$test fails on $threads thread(s) of the system"
      code=1
    fi
  done
done
exit $code
