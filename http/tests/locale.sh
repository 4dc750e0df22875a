#!/bin/sh
# SPDX-License-Identifier: MIT
# Servers in a program with a Turkish locale, where "I" is no capital of "i" and numbers have commas: they read messages, and
# write lines, as ever.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
localedef -i tr_TR -f UTF-8 "$work/tr_TR.UTF-8" 2>/dev/null || exit 77
export LOCPATH="$work" LC_ALL=tr_TR.UTF-8
# shellcheck disable=SC2086 # words of a command
$HAFT_LAUNCHER "$HAFT_TEST_DIR/test_refusals" && $HAFT_LAUNCHER "$HAFT_TEST_DIR/test_services"
