#!/bin/sh
# SPDX-License-Identifier: MIT
# C and C++ have the layout of .clang-format (`make format`). Releases of clang-format differ: this
# is for 14, Debian 12's. Exit status 77: it is not here.
set -u
cd "$HAFT_SOURCE_DIR" || exit 1
case $(clang-format --version 2>/dev/null) in
*' 14.'*) ;;
*)
  echo 'clang-format 14 is not here'
  exit 77
  ;;
esac
find . \( -path ./build -o -path ./.git \) -prune -o -type f \( -name '*.c' -o -name '*.h' -o -name '*.cpp' \
  -o -name '*.hpp' \) -print0 | xargs -0 clang-format --dry-run -Werror
