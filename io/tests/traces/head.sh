# SPDX-License-Identifier: MIT
# The head of tests of traces, to be sourced: they run in a folder of their own, with these commands.
command -v python3 >/dev/null || { echo 'python3 is not here'; exit 77; }
tool="python3 $HAFT_SOURCE_DIR/tools/haft-trace"
check="python3 $HAFT_SOURCE_DIR/io/tests/traces/check.py"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
