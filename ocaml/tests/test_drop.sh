#!/bin/sh
# Stacks that were dropped make room for others: with addresses for some hundred of them.
set -eu
ulimit -v 2000000 2>/dev/null || exit 77
"$HAFT_TEST_DIR/drop" 400
# SPDX-License-Identifier: MIT
