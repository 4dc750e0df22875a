#!/bin/sh
# The backtrace of §2 (figure 1d) in gdb: through OCaml, C and OCaml on a fiber, into the code that runs the
# fiber, and to the start of the program.
set -eu
command -v gdb >/dev/null || exit 77
program=$HAFT_TEST_DIR/meander
[ "$("$program")" = 42 ]
backtrace=$(gdb -q -batch -ex 'break caml_raise_exn' -ex run -ex backtrace "$program" 2>&1)
position=0
for frame in caml_raise_exn camlMeander__c_to_ocaml caml_start_program caml_callback ocaml_to_c \
  camlMeander__omain __morestack camlMeander__entry caml_program caml_main main; do
  line=$(printf '%s\n' "$backtrace" | grep -n "^#.* ${frame}[_ 0-9]*[a-z_]* *(" | cut -d: -f1 |
    awk -v after="$position" '$1 > after { print; exit }')
  if [ -z "$line" ]; then
    echo "no frame of $frame where it belongs, in"
    printf '%s\n' "$backtrace"
    exit 1
  fi
  position=$line
done
case $backtrace in
*corrupt* | *'inner to this frame'*) echo "$backtrace"; exit 1 ;;
esac
# SPDX-License-Identifier: MIT
