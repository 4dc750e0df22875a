#!/bin/sh
# SPDX-License-Identifier: MIT
# place_jumps.sh ARCHITECTURE COMPILER... : in the compiler's assembly of Effect and Haft__syntax, in this folder, puts
# the jumps that OCaml cannot say at the beginnings of functions, and assembles it again.
#
# Where a function ends with a jump to an address from memory, the compiler lets signals be handled at its
# beginning. A clause that ends with `continue`, or a handler's function that declines, must not be such a function:
# what a signal's handler raises there would be raised outside of the computation. So these jump to a named function,
# and that one jumps at once, without looking for signals. Its own code, which does the same, is never reached.
set -eu
architecture=$1
shift
case $architecture in
x86_64)
  apply='jmp *(%rbx)'
  jump=jmp
  ;;
aarch64)
  apply='ldr x9, [x1]; br x9'
  jump=b
  ;;
esac

# place MODULE FUNCTION INSTRUCTIONS
place() {
  file=$(echo "$1" | tr '[:upper:]' '[:lower:]').s
  sed "/^caml$1__$2_[0-9][0-9]*:/,/cfi_startproc/s/cfi_startproc/&; $3/" "$file" >"$file.placed"
  if cmp -s "$file" "$file.placed"; then
    echo "place_jumps.sh: $file has no function $2" >&2
    exit 1
  fi
  mv "$file.placed" "$file"
}
place Effect apply "$apply"
place Haft__syntax decline "$jump haft_ocaml_pass"
place Haft__syntax decline_after_guards "$jump haft_ocaml_pass_after_guards"
for name in effect haft__syntax; do
  "$@" -c "$name.s" -o "$name.o"
done
