#!/bin/sh
# SPDX-License-Identifier: MIT
# licences.sh check|add: whether every source file has the line that names its licence; `add` puts it
# into those that lack it: at the top, or at the end of a test, whose lines may be counted (its headers: at the top).
# The inputs of the preprocessor's tests are data.
set -eu
cd "$(dirname "$0")/.."

# Files of the tree, with git or from a tarball.
sources() {
  find . \( -path ./build -o -path ./.git -o -name _build \) -prune -o -type f \( -name '*.c' -o -name '*.h' \
    -o -name '*.cpp' -o -name '*.hpp' -o -name '*.cppm' -o -name '*.S' -o -name '*.ml' -o -name '*.mli' \
    -o -name '*.sh' -o -name '*.py' -o -name CMakeLists.txt -o -name '*.cmake' \) -print |
    grep -Ev '^\./ocaml/syntax/tests/(constructs|mended|refusals|library|dune_project)/'
}

# add FILE
add() {
  tag='SPDX-License-Identifier: MIT'
  case $1 in
  *.c | *.h | *.S) line="/* $tag */" ;;
  *.cpp | *.hpp | *.cppm) line="// $tag" ;;
  *.ml | *.mli) line="(* $tag *)" ;;
  *) line="# $tag" ;;
  esac
  new=$(mktemp)
  case $1 in
  */tests/*.h | */tests/*.hpp) { echo "$line"; cat "$1"; } >"$new" ;;
  */tests/*)
    cat "$1" >"$new"
    echo "$line" >>"$new"
    ;;
  *)
    case $(head -n 1 "$1") in
    '#!'*) { head -n 1 "$1"; echo "$line"; tail -n +2 "$1"; } >"$new" ;;
    *) { echo "$line"; cat "$1"; } >"$new" ;;
    esac
    ;;
  esac
  cat "$new" >"$1"
  rm -f "$new"
}

missing=$(sources | while read -r file; do
  grep -q 'SPDX-License-Identifier: MIT' "$file" || echo "$file"
done)
[ -n "$missing" ] || exit 0
case ${1:-} in
add) for file in $missing; do add "$file"; done ;;
check)
  echo 'These files do not name their licence (sh tools/licences.sh add does it):'
  echo "$missing"
  exit 1
  ;;
*)
  echo 'usage: licences.sh check|add' >&2
  exit 2
  ;;
esac
