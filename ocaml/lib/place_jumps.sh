#!/bin/sh
# SPDX-License-Identifier: MIT
# place_jumps.sh ARCHITECTURE COMPILER... : in the compiler's assembly of Effect and Haft__syntax, in this folder, puts
# the jumps that OCaml cannot express at the beginnings of functions, and assembles it again.
#
# Where a function ends with a jump to an address from memory, the compiler lets signals be handled at its
# beginning. A clause that ends with `continue` or `discontinue`, or a handler's function that declines, must not be
# such a function: what a signal's handler raises there would be raised outside of the computation. So these jump to a named function,
# and that one jumps at once, without looking for signals. Its own code, which does the same, is never reached.
set -eu
architecture=$1
shift
case $architecture in
x86_64)
  apply='movq %rax, %rdi; movq %rbx, %rax; movq %rdi, %rbx; jmp *(%rdi)'
  jump=jmp
  ;;
aarch64)
  apply='mov x9, x0; mov x0, x1; mov x1, x9; ldr x9, [x1]; br x9'
  jump=b
  ;;
esac

# place MODULE FUNCTION INSTRUCTIONS
place() {
  file=$(echo "$1" | tr '[:upper:]' '[:lower:]').s
  # (flambda has a label of data by the same name, and .loc before .cfi_startproc.)
  awk -v label="^caml$1__$2_[0-9]+:" -v jump="$3" '
    $1 ~ label { begins = 1; print; next }
    begins && /cfi_startproc/ { $0 = $0 "; " jump }
    !/\.loc/ { begins = 0 }
    { print }' "$file" >"$file.placed"
  if cmp -s "$file" "$file.placed"; then
    echo "place_jumps.sh: $file has no function $2" >&2
    exit 1
  fi
  mv "$file.placed" "$file"
}
place Effect continue "$apply"
place Effect discontinue "$jump haft_ocaml_discontinue"
place Haft__syntax decline "$jump haft_ocaml_pass"
place Haft__syntax decline_after_guards "$jump haft_ocaml_pass_after_guards"
for name in effect haft__syntax; do
  "$@" -c "$name.s" -o "$name.o"
done
