#!/bin/sh
# SPDX-License-Identifier: MIT
# All that the README and the pages of docs/ link to is there, and the README keeps to three screens.
set -eu
cd "$HAFT_SOURCE_DIR"
failed=0
for page in README.md docs/*.md; do
  for link in $(awk '/^```/ { code = !code } !code' "$page" | sed 's/`[^`]*`//g' | grep -o '[]]([^)#]*' | sed 's/^](//' | grep -v '^http' | sort -u); do
    if [ ! -e "$(dirname "$page")/$link" ]; then
      echo "$page links to $link, which is not there"
      failed=1
    fi
  done
done
lines=$(wc -l <README.md)
if [ "$lines" -gt 190 ]; then
  echo "README.md has $lines lines; more than 190 are not four screens, one for each language"
  failed=1
fi
exit $failed
