#!/bin/sh
# SPDX-License-Identifier: MIT
# todo.sh PROGRAM EXPECTED: holds what the program prints, with a PostgreSQL of its own, to the file.
folder=$(cd "$(dirname "$0")/../../.." && pwd)
output=$(sh "$folder/io/posix/tests/libraries/postgres.sh" "$1" epoll)
status=$?
if [ $status -ne 0 ]; then
  printf '%s\n' "$output"
  exit $status
fi
printf '%s\n' "$output" | diff -u "$2" -
