#!/bin/sh
# SPDX-License-Identifier: MIT
# No marker of a merge, no compiled file, no comment that names a file of the project that does not exist.
# Exit status 77: there is no python3.
set -u
command -v python3 >/dev/null || exit 77
exec python3 "$HAFT_SOURCE_DIR/tools/check_hygiene.py"
