#!/bin/sh
# SPDX-License-Identifier: MIT
# demo.sh BUILD: the tour. Runs the example programs of a build that examples/tour lists, each under
# the first sentences of its source's opening comment (those in OCaml where the build has them); then
# the word-frequency pipeline over the text of WordNet, the dictionary (or over the FILEs in
# HAFT_DEMO_TEXT), beside its callback twin; and then the web server of examples/http/hello under load.
set -u
build=$(cd "$1" && pwd) || exit 1
cd "$(dirname "$0")/../examples" || exit 1

# The text of the comment that the file opens with, up to its first full stop or the second if the
# first comes early.
headline() {
  sed '/SPDX-License-Identifier/d' "$1" |
    awk 'NR == 1 && !/^[\/(]\*/ { exit }
       { line = $0; sub(/^[\/(]?\*+\/? ?/, "", line); sub(/^ \*\/? ?/, "", line); text = text " " line }
       /\*[\/)]/ { exit }
       END {
         sub(/\*[\/)].*/, "", text); gsub(/  +/, " ", text); sub(/^ +/, "", text)
         sub(/ \("High-level.*/, "", text)
         print text
       }' | fold -s -w 96 | sed 's/^/   /; s/ *$//'
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() {
  echo "$1"
  failed=1
}

ocaml=no
if [ -f "$build/ocaml/packages/haft/haft.cmxa" ] && [ -x "$build/ocaml/syntax/haft-effect-syntax" ]; then
  ocaml=yes
fi
for source in $(grep -Ev '^(#|$)' tour); do
  case $ocaml:$source in
  no:ocaml/*) continue ;;
  yes:ocaml/io/*) [ -f "$build/ocaml/packages/haft-http/haft_http.cmxa" ] || continue ;;
  esac
  printf '\n== examples/%s\n' "$source"
  headline "$source"
  echo
  "$build/examples/${source%.*}" || fail "examples/$source failed with status $?"
done
[ $ocaml = yes ] ||
  printf '\n== The programs in OCaml are left out: they need OCaml 4.13 or 4.14, ocamlfind, compiler-libs.\n'

compare_word_frequency() {
  texts=${HAFT_DEMO_TEXT:-$(ls /usr/share/wordnet/data.* 2>/dev/null)}
  printf '\n== examples/c/word_frequency.c beside examples/c/word_frequency_callbacks.c\n'
  headline c/word_frequency.c
  if [ -z "$texts" ]; then
    fail 'No text: install the package wordnet-base, or name files in HAFT_DEMO_TEXT.'
    return
  fi

  # Five runs each, in turn; the best counts.
  for _ in 1 2 3 4 5; do
    for program in word_frequency word_frequency_callbacks; do
      # shellcheck disable=SC2086 # a list of files
      "$build/examples/c/$program" $texts >"$work/$program" 2>>"$work/$program.speed" ||
        fail "$program failed with status $?"
    done
  done
  printf '\n'
  cat "$work/word_frequency"
  cmp -s "$work/word_frequency" "$work/word_frequency_callbacks" ||
    fail 'The two programs do not agree.'
  printf '\n   With effects:    %s\n   With callbacks:  %s\n' \
    "$(sort -n -k 4 "$work/word_frequency.speed" | head -n 1)" \
    "$(sort -n -k 4 "$work/word_frequency_callbacks.speed" | head -n 1)"
}
compare_word_frequency

# Runs the examples of Rust, by cargo, which needs the crate cc; and one of them for the other architecture, where there are a
# cross compiler, an emulator and the target's std.
rust_example() {
  printf '\n== rust/haft/examples/%s.rs%s\n' "$1" "$2"
  sed -n 's,^//! ,   ,p' "../rust/haft/examples/$1.rs"
  echo
  shift 2
  (cd ../rust && CARGO_TARGET_DIR=$build/cargo cargo run --quiet --locked -p haft "$@") ||
    fail "the example failed with status $?"
}
if command -v cargo >/dev/null &&
  (cd ../rust && timeout 100 cargo fetch --quiet --locked 2>/dev/null); then
  for name in echo chat generator transaction deterministic durable; do
    rust_example "$name" '' --example "$name"
  done
  other=aarch64-unknown-linux-gnu
  if [ -d "$(rustc --print sysroot)/lib/rustlib/$other" ] && command -v qemu-aarch64 >/dev/null &&
    command -v aarch64-linux-gnu-gcc >/dev/null; then
    CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER='qemu-aarch64 -L /usr/aarch64-linux-gnu'
    export CC_aarch64_unknown_linux_gnu CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER \
      CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER
    rust_example generator ', on AArch64 in an emulator' --target "$other" --example generator
  fi
else
  printf '\n== The programs in Rust are left out: they need cargo and the crate cc.\n'
fi

if [ -x "$build/examples/http/hello" ]; then
  printf '\n== examples/http/hello.c under load: 1,000 kept connections, for five seconds\n\n'
  "${CC:-cc}" -std=gnu11 -O2 ../bench/http/load.c -o "$work/load" &&
    "$work/load" show 0/hello/you 1000 5 "$build/examples/http/hello" ||
    fail 'The server did not answer all, or did not end well.'
else
  printf '\n== The web server is left out: it needs llhttp.\n'
fi
exit $failed
