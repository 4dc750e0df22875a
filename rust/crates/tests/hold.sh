#!/bin/sh
# SPDX-License-Identifier: MIT
# hold.sh WORD: prints it, and ends when its standard input does. A script that starts a server and runs this so keeps
# the server until the test that has started the script closes its end.
echo "$1"
cat >/dev/null
