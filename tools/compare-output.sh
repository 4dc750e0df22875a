#!/bin/sh
# SPDX-License-Identifier: MIT
# compare-output.sh EXPECTED COMMAND...: run the command; pass if it exits 0 and its standard
# output is exactly the file's text.
set -u
expected=$1
shift
actual=$(mktemp)
trap 'rm -f "$actual"' EXIT
"$@" >"$actual"
status=$?
diff -u "$expected" "$actual" || exit 1
exit $status
