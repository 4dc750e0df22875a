#!/bin/sh
# SPDX-License-Identifier: MIT
# hold.sh TEXT: prints it, and waits until its input ends: for a script that wants what another one has started.
echo "$1"
cat >/dev/null
