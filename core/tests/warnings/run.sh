#!/bin/sh
# SPDX-License-Identifier: MIT
# A program that uses every public macro of haft.h has no warnings under strict flags; the header, being no
# system header, hides none of the program's own; and it warns of code that is compiled without -fexceptions.
set -u
folder=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
strict="-std=gnu11 -fexceptions -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wcast-align
  -Wmissing-field-initializers -Wstrict-prototypes -Wmissing-prototypes -Werror"
failures=0

for level in -O0 -O2; do
    # shellcheck disable=SC2086 # flags
    "$CC" $strict $level -I"$HAFT_SOURCE_DIR/core/include" -c "$folder/every_name.c" -o "$work/object.o" \
        >"$work/log" 2>&1 || { cat "$work/log"; failures=1; }
done

cat >"$work/own.c" <<'END'
#include <haft.h>
HAFT_EFFECT(put, void, { char value; });
void perform(int value);
void perform(int value) {
    HAFT_PERFORM(put, value);
}
END
# shellcheck disable=SC2086 # flags
if "$CC" $strict -O0 -I"$HAFT_SOURCE_DIR/core/include" -c "$work/own.c" -o "$work/object.o" \
    >"$work/log" 2>&1; then
    echo "a warning about the program's own code is hidden"
    failures=1
fi

echo '#include <haft.h>' >"$work/bare.c"
bare() { # FLAG...
    "$CC" -std=gnu11 -Wall -Wextra "$@" -fsyntax-only "$work/bare.c" >"$work/log" 2>&1
}
for include in "-I$HAFT_SOURCE_DIR/core/include" "-isystem$HAFT_SOURCE_DIR/core/include"; do
    if bare "$include" -Werror || ! grep -q "no cleanup runs when a fiber or a task is unwound" "$work/log"; then
        echo "nothing is said about C without -fexceptions ($include)"
        failures=1
    fi
    if ! bare "$include" -Werror -DHAFT_WITHOUT_CLEANUPS || ! bare "$include" -Werror -fexceptions; then
        cat "$work/log"
        failures=1
    fi
done
exit $failures
