#!/bin/sh
# Two translation units that give one name to two different effects are told so when the program starts,
# whether or not the effects ever meet.
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
flags="-std=gnu11 -Wall -Wextra -Werror -fexceptions -I$HAFT_SOURCE_DIR/core/include"
cd "$work" || exit 1

cat > first.c << 'END'
#include <haft.h>
HAFT_EFFECT(library_get, int, {});
END
cat > second.c << 'END'
#include <haft.h>
HAFT_EFFECT(library_get, double, { char name[16]; });
int main(void) { return 0; }
END
$CC $flags first.c second.c "$HAFT_BUILD_DIR/core/libhaft.a" -pthread -o twice || exit 1
message=$(./twice 2>&1) && { echo "the program ran: $message"; exit 1; }
case $message in
*"The effect 'library_get' is declared in two ways, at first.c:2 and at second.c:2"*) ;;
*) echo "unexpected: $message"; exit 1 ;;
esac
# SPDX-License-Identifier: MIT
