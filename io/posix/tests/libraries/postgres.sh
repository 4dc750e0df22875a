#!/bin/sh
# postgres.sh PROGRAM [BACKEND...]: runs it on each back end, or on those that are named, against a PostgreSQL of its
# own: a new data directory, a Unix socket in it, and no port. As root, the server runs as a user without rights,
# since it refuses to be root.
set -eu
program=$1
shift
[ $# -gt 0 ] || set -- epoll io_uring
binaries=$(pg_config --bindir 2>/dev/null) || binaries=
if [ ! -x "$binaries/initdb" ]; then
  echo 'PostgreSQL is not installed'
  exit 77
fi
work=$(mktemp -d)
server=
finish() {
  if [ -n "$server" ]; then
    kill -QUIT "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap finish EXIT

as_user=
if [ "$(id -u)" = 0 ]; then
  as_user='setpriv --reuid=nobody --regid=nogroup --clear-groups'
  if ! $as_user true 2>/dev/null; then
    echo 'there is no user to run PostgreSQL as'
    exit 77
  fi
  chown nobody "$work"
fi

cd "$work"
$as_user "$binaries/initdb" -D "$work/data" -U tester -A trust --no-sync --locale=C -E UTF8 \
  >initdb.log 2>&1 || { cat initdb.log; exit 1; }
$as_user "$binaries/postgres" -D "$work/data" -k "$work" -h '' -c fsync=off -c max_connections=120 \
  -c shared_buffers=16MB >server.log 2>&1 &
server=$!
tries=0
until $as_user "$binaries/pg_isready" -q -h "$work"; do
  tries=$((tries + 1))
  if [ $tries -gt 300 ] || ! kill -0 "$server"; then
    cat server.log
    exit 1
  fi
  sleep 0.1
done

# shellcheck disable=SC2086 # a command with arguments, or nothing
for backend in "$@"; do
  "$binaries/psql" -q -h "$work" -U tester -d postgres -c "create database $backend"
  status=0
  HAFT_IO_BACKEND=$backend ${HAFT_LAUNCHER:-} "$program" "host=$work user=tester dbname=$backend" ||
    status=$?
  [ $status -eq 0 ] || [ $status -eq 77 ] || exit $status
done
# SPDX-License-Identifier: MIT
