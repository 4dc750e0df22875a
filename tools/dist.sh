#!/bin/sh
# SPDX-License-Identifier: MIT
# dist.sh FOLDER: pack what is committed as FOLDER/haft-VERSION.tar.gz. The unpacked
# archive builds, tests and installs itself without git.
set -eu
cd "$(dirname "$0")/.."
mkdir -p "$1"
version=$(sed -n 's/^#define HAFT_VERSION_[A-Z]* \([0-9]*\)$/\1/p' core/include/haft.h | paste -s -d .)
git archive --format=tar.gz --prefix="haft-$version/" -o "$1/haft-$version.tar.gz" HEAD
echo "$1/haft-$version.tar.gz"
