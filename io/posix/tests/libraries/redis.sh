#!/bin/sh
# redis.sh PROGRAM: runs it against a Redis of its own, on a Unix socket, which keeps nothing.
set -eu
program=$1
if ! command -v redis-server >/dev/null; then
  echo 'Redis is not installed'
  exit 77
fi
work=$(mktemp -d)
server=
finish() {
  if [ -n "$server" ]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap finish EXIT

cd "$work"
redis-server --port 0 --unixsocket "$work/socket" --save '' --appendonly no --daemonize no --dir "$work" \
  >server.log 2>&1 &
server=$!
tries=0
until [ "$(redis-cli -s "$work/socket" ping 2>/dev/null)" = PONG ]; do
  tries=$((tries + 1))
  if [ $tries -gt 300 ] || ! kill -0 "$server"; then
    cat server.log
    exit 1
  fi
  sleep 0.1
done

# shellcheck disable=SC2086 # a command with arguments, or nothing
for backend in epoll io_uring; do
  status=0
  HAFT_IO_BACKEND=$backend ${HAFT_LAUNCHER:-} "$program" "$work/socket" || status=$?
  [ $status -eq 0 ] || [ $status -eq 77 ] || exit $status
done
# SPDX-License-Identifier: MIT
