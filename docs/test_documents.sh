#!/bin/sh
# The code in the documents compiles without warnings and prints what they say it prints. The ```c (or
# ```cpp) blocks of a section make one program; the ```text block after them is its output.
# Usage: test_documents.sh FILE...
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
programs=0

for document in "$@"; do
  rm -f "$work"/part.*
  # part.N.c, part.N.cpp and part.N.text: the blocks of the N-th section; part.N.title: its title.
  awk -v work="$work" '
    /^```/ { kind = kind == "" ? substr($0, 4) : ""; if (kind == "") kind = ""; else next }
    /^```/ { next }
    kind == "" && /^#+ / { part++; file = work "/part." part ".title"; print > file; close(file); next }
    kind == "c" || kind == "cpp" || kind == "text" {
      file = work "/part." part "." kind
      print >> file
      close(file)
    }' "$HAFT_SOURCE_DIR/$document"

  for source in "$work"/part.*.c "$work"/part.*.cpp; do
    [ -f "$source" ] || continue
    part=${source%.*}
    title="$document, \"$(cat "$part.title")\""
    programs=$((programs + 1))
    case $source in
    *.cpp) compile="$CXX -std=c++20" ;;
    *) compile="$CC -std=gnu11 -fexceptions" ;;
    esac
    # shellcheck disable=SC2086 # a command with arguments
    if ! $compile -Wall -Wextra -Werror -O1 -I"$HAFT_SOURCE_DIR/core/include" \
      -I"$HAFT_SOURCE_DIR/cpp/include" -I"$HAFT_SOURCE_DIR/compat" "$source" \
      "$HAFT_BUILD_DIR/core/libhaft.a" -pthread -o "$work/program"; then
      echo "$title does not compile"
      failed=1
      continue
    fi
    # shellcheck disable=SC2086
    if ! ${HAFT_LAUNCHER:-} "$work/program" >"$work/output" 2>"$work/errors"; then
      cat "$work/errors"
      echo "$title fails"
      failed=1
    elif [ -f "$part.text" ] && ! diff -u "$part.text" "$work/output"; then
      echo "$title prints something else"
      failed=1
    fi
  done
done
echo "$programs programs"
[ $failed -eq 0 ] && [ $programs -gt 0 ]
