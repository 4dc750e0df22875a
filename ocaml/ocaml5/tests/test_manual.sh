#!/bin/sh
# test_manual.sh PACKAGES: a program for OCaml 5 that uses every item as the manual shows it, in native code, in
# bytecode and with dune; PACKAGES is the folder of the package haft.
set -eu
tests=$HAFT_SOURCE_DIR/ocaml/ocaml5/tests
OCAMLPATH=$1${OCAMLPATH:+:$OCAMLPATH}
export OCAMLPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$tests"/manual* "$tests"/signatures.ml "$tests"/uncaught.ml "$tests"/polling.ml .

# runs COMMAND LINE...: the program prints these lines.
runs() {
  program=$1
  shift
  echo 42 | "$program" >output || { cat output; exit 1; }
  printf '%s\n' "$@" | diff -u - output
}

folder=$(ocamlfind query haft.ocaml5)
c_flags="-Wall -Wextra -Wno-unused-parameter -Werror -I$folder -include haft_ocaml5.h"
flags='-g -thread -package haft.ocaml5 -linkpkg -w +a-4-9-40..42-44-45-70 -warn-error +a -open Haft_ocaml5'
# shellcheck disable=SC2086 # a list of flags
ocamlfind ocamlopt $flags -ccopt "$c_flags" manual_stubs.c manual.ml -o manual
# shellcheck disable=SC2086
ocamlfind ocamlopt $flags -c signatures.ml
runs ./manual 'as in the manual, too' 'as in the manual' 'the main domain ends'

# shellcheck disable=SC2086
ocamlfind ocamlc $flags -custom -ccopt "$c_flags" manual_stubs.c manual.ml -o manual.byte
runs ./manual.byte "$(sed -n 's/^ *"\(Haft needs native.*\)"$/\1/p' \
  "$HAFT_SOURCE_DIR/ocaml/lib/bytecode/effect.ml")" 'as in the manual, too' 'as in the manual' 'the main domain ends'

# Each failure once, with its own backtrace, and nothing for Thread.Exit.
# shellcheck disable=SC2086
ocamlfind ocamlopt $flags uncaught.ml -o uncaught
./uncaught >output 2>&1
sed -n -e 's/ in file.*//' -e '/^buffered/p;/^Thread/p;/^Raised/p' output >seen
diff -u - seen <<'END'
bufferedThread 1 killed on uncaught exception Not_found
Raised at Uncaught.fail
Thread 1 uncaught exception handler raised Failure("handler")
Raised at Stdlib.failwith
Thread 4 killed on uncaught exception Not_found
Raised at Uncaught.fail
END

for compiler in ocamlopt ocamlc; do
  # shellcheck disable=SC2086
  ocamlfind $compiler $flags polling.ml -o polling
  runs ./polling 'each had its turn'
done

# A program's own modules are hidden by those of OCaml 5 only.
for name in Threads Latest Chars Hashed Ocaml5; do
  echo "let name = \"$name\"" >"$(echo "$name" | tr '[:upper:]' '[:lower:]').ml"
  echo "let () = print_endline $name.name"
done >own.ml
# shellcheck disable=SC2086
ocamlfind ocamlopt $flags threads.ml latest.ml chars.ml hashed.ml ocaml5.ml own.ml -o own
runs ./own Threads Latest Chars Hashed Ocaml5

# The items of 4.14 stay there, and of the same type.
if [ -f "$(ocamlfind ocamlc -where)/out_channel.mli" ]; then
  cat >of_4_14.ml <<'END'
let channel : Stdlib__Out_channel.t = Out_channel.stdout

let () =
  let once = Stdlib__Seq.(once empty) in
  (match (once (), once ()) with _ -> print_endline "not forced" | exception Seq.Forced_twice -> ());
  Out_channel.set_buffered channel false;
  print_endline (if Out_channel.is_buffered channel then "buffered" else "not buffered")
END
  # The items that 4.13 gets in their place are the same.
  cat >decoded.ml <<'END'
let interesting = "aZ\x00\x20\x7F\x80\x8F\x90\x9F\xA0\xAC\xBF\xC1\xC2\xD7\xD8\xDB\xDC\xDF\xE0\xE2\xED\xEF\xF0\xF4\xF5\xFF"

let decoded get is_valid length uchar bytes =
  List.init (Bytes.length bytes) (fun index ->
      let decode = get bytes index in
      (is_valid decode, length decode, uchar decode))

let () =
  let equal = ref true in
  for _ = 1 to 20_000 do
    let bytes = Bytes.init (Random.int 6) (fun _ -> interesting.[Random.int (String.length interesting)]) in
    let theirs get = Stdlib__Uchar.(decoded get utf_decode_is_valid utf_decode_length utf_decode_uchar) bytes in
    let ours get = Haft_ocaml5__of_4_14.Uchar.(decoded get utf_decode_is_valid utf_decode_length utf_decode_uchar) bytes in
    equal :=
      !equal
      && theirs Stdlib__Bytes.get_utf_8_uchar = ours Haft_ocaml5__of_4_14.Bytes.get_utf_8_uchar
      && theirs Stdlib__Bytes.get_utf_16be_uchar = ours Haft_ocaml5__of_4_14.Bytes.get_utf_16be_uchar
      && theirs Stdlib__Bytes.get_utf_16le_uchar = ours Haft_ocaml5__of_4_14.Bytes.get_utf_16le_uchar
  done;
  print_endline (if !equal then "equal" else "different")
END
  for program in of_4_14 decoded; do
    # shellcheck disable=SC2086
    ocamlfind ocamlopt $flags $program.ml -o $program
  done
  runs ./of_4_14 'not buffered'
  runs ./decoded equal
fi

if command -v dune >/dev/null; then
  mkdir project
  cp manual.ml manual_stubs.c project
  # (So the compiler is told the folder of no library but haft.ocaml5's own.)
  printf '(lang dune 2.0)\n(implicit_transitive_deps false)\n' >project/dune-project
  cat >project/dune <<'END'
(executable
 (name manual)
 (libraries haft.ocaml5)
 (flags
  (:standard -open Haft_ocaml5))
 (foreign_stubs
  (language c)
  (flags
   (:standard -include haft_ocaml5.h))
  (names manual_stubs)))
END
  (cd project && dune build --root . --profile release ./manual.exe 2>log || { cat log; exit 1; })
  runs project/_build/default/manual.exe 'as in the manual, too' 'as in the manual' 'the main domain ends'
fi
# SPDX-License-Identifier: MIT
