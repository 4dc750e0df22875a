#!/bin/sh
# SPDX-License-Identifier: MIT
# replayed.sh PROGRAM [ARGUMENT...]: the program is recorded, and replayed a hundred times: each replay asks for the same
# in the same order, or would end with status 3, and prints the same. It works in an empty folder, which a replay gets
# anew, so that there is nothing of what the program has written.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/work"
cd "$folder/work"
HAFT_IO_RECORD=$folder/run ${HAFT_LAUNCHER:-} "$@" >"$folder/first" || exit $?
[ -s "$folder/first" ] || { echo 'it has printed nothing'; exit 1; }
for number in $(seq 100); do
  cd "$folder"
  rm -rf work
  mkdir work
  cd work
  HAFT_IO_REPLAY=$folder/run ${HAFT_LAUNCHER:-} "$@" >"$folder/again" ||
    { echo "replay $number of $*"; exit 1; }
  cmp "$folder/first" "$folder/again" || { diff "$folder/first" "$folder/again" | head -20; exit 1; }
  [ -z "$(ls)" ] || { echo "replay $number has written files: $(ls)"; exit 1; }
done
