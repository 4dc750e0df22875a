#!/bin/sh
# SPDX-License-Identifier: MIT
# The floors in docs/HACKING.md are those of tools/floors.txt. There is no marker of a merge, no compiled file, and no
# comment that names a file of the project that does not exist; comments are written as tools/check_prose.py asks; option
# structs of C++ have all fields of C's; the public functions are counted in docs/HACKING.md.
# Exit status 77: there is no python3.
set -u
command -v python3 >/dev/null || exit 77
python3 "$HAFT_SOURCE_DIR/tools/draw_floors.py" --check && python3 "$HAFT_SOURCE_DIR/tools/check_refusals.py" && \
  python3 "$HAFT_SOURCE_DIR/tools/check_options.py" && python3 "$HAFT_SOURCE_DIR/tools/check_prose.py" && \
  python3 "$HAFT_SOURCE_DIR/tools/check_functions.py" &&
  exec python3 "$HAFT_SOURCE_DIR/tools/check_hygiene.py"
