#!/bin/sh
# Every program of programs/ ends on its machine as in NAME.expected; where there is NAME.one-shot,
# that is how it ends with one-shot continuations, likewise NAME.through-c; and where there is
# NAME.trace, every step is as written there. All the
# programs together take every rule. A text that is no program is refused with its place, as in
# NAME.expected in refused/. UPDATE=1 writes all these files anew.
set -eu
semantics=$HAFT_SOURCE_DIR/semantics
machine=$HAFT_TEST_DIR/haft-semantics
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# same EXPECTED FOUND
same() {
  [ -z "${UPDATE:-}" ] || cp "$2" "$1"
  diff -u "$1" "$2" || failures=$((failures + 1))
}

for language in core sheep; do
  cd "$semantics/programs/$language"
  for program in *."$language"; do
    name=${program%.*}
    "$machine" "$language" "$program" >"$work/found" || true
    same "$name.expected" "$work/found"
    if [ -f "$name.one-shot" ]; then
      "$machine" "$language" --one-shot "$program" >"$work/found" || true
      same "$name.one-shot" "$work/found"
    fi
    if [ -f "$name.through-c" ]; then
      "$machine" "$language" --through-c "$program" >"$work/found" || true
      same "$name.through-c" "$work/found"
    fi
    "$machine" "$language" --one-shot --through-c --trace "$program" >"$work/trace" || true
    "$machine" "$language" --trace "$program" >>"$work/trace" || true
    sed -n 's/^\([A-Z][A-Za-z0-9 -]*\):.*/\1/p' "$work/trace" | tr ' ' '\n' >>"$work/$language.taken"
    if [ -f "$name.trace" ]; then
      "$machine" "$language" --trace "$program" >"$work/trace" || true
      same "$name.trace" "$work/trace"
    fi
  done
  sort -u "$work/$language.taken" >"$work/taken"
  "$machine" "$language" --rules | sort -u >"$work/rules"
  if ! diff "$work/rules" "$work/taken"; then
    echo "the rules of $language, and those that its programs take, differ"
    failures=$((failures + 1))
  fi

  cd "$semantics/tests/refused"
  for program in *."$language"; do
    status=0
    "$machine" "$language" "$program" >"$work/found" 2>&1 || status=$?
    same "${program%.*}.expected" "$work/found"
    [ "$status" = 2 ] || { echo "$program: exit status $status"; failures=$((failures + 1)); }
  done
done

exit "$failures"
# SPDX-License-Identifier: MIT
