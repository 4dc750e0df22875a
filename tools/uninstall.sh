#!/bin/sh
# SPDX-License-Identifier: MIT
# uninstall.sh MANIFEST: remove the files that cmake's manifest of an installation names, below $DESTDIR,
# and the folders that are empty then.
set -u
manifest=$1
if [ ! -f "$manifest" ]; then
  echo "uninstall.sh: $manifest is not there: nothing was installed from this folder" >&2
  exit 1
fi
{ cat "$manifest"; echo; } | while IFS= read -r file; do
  [ -n "$file" ] || continue
  rm -f "${DESTDIR:-}$file"
  folder=$(dirname "${DESTDIR:-}$file")
  while rmdir "$folder" 2>/dev/null; do
    folder=$(dirname "$folder")
  done
done
rm -f "$manifest"
