#!/bin/sh
# test_names.sh LIBRARY: what <haft.h> shows to a program is for programs, but for names with the prefix
# hafti_ or HAFTI_; and what the library exports is declared in a header for that.
set -eu
library=$1
include=$HAFT_SOURCE_DIR/core/include
status=0

# The macros, by the file that defines them.
for language in c c++; do
  strays=$(echo '#include <haft.h>' | "$CC" -x "$language" -I"$include" -E -dD - | awk '
    $1 == "#" { inner = index($3, "/haft/inner/") }
    $1 == "#define" && inner {
      name = $2
      sub(/\(.*/, "", name)
      if (name !~ /^HAFTI_/)
        print name
    }')
  if [ -n "$strays" ]; then
    echo "macros of haft/inner/ without the prefix HAFTI_ ($language): $strays"
    status=1
  fi
done

# Types, enumerations and inline functions.
strays=$(sed -n 's/^} \(haft_[a-z_]*\);.*/\1/p; s/^HAFTI_INLINE.* \**\(haft_[a-z_]*\)(.*/\1/p
  s/^    \(HAFT_[A-Z_]*\)[, ].*/\1/p' "$include"/haft/inner/*.h |
  grep -vxE 'haft_(request|effect|fiber|handles|clause)_t|HAFT_CLAUSE_(REQUEST|GENERAL|NEVER|TAIL)' || true)
if [ -n "$strays" ]; then
  echo "names of haft/inner/ without the prefix hafti_:" $strays
  status=1
fi

# The names that the library exports.
for symbol in $(nm -D --defined-only "$library" | awk '{ sub(/@.*/, "", $NF); print $NF }'); do
  case $symbol in
    hafti_segments_* | HAFT_*) continue ;; # called by __morestack; the version
    hafti_*) files="$include/haft.h $include/haft/inner/*.h" ;;
    *) files="$include/haft.h $include/haft/language.h $include/haft/observe.h $include/haft/segments.h $include/haft/thread_pointers.h" ;;
  esac
  # shellcheck disable=SC2086 # files
  if ! grep -qw "$symbol" $files; then
    echo "$symbol is exported, and stands in none of: $files"
    status=1
  fi
done

# ROOM PREFIX: the library of the room stands on what every program has, and what is its own begins with the prefix.
stands_on_public_names() {
  strays=$(grep -rhoE 'hafti_\w+|HAFTI_\w+|haft/(inner|language)' "$HAFT_SOURCE_DIR/$1" |
    grep -Evi "^hafti_$2" | sort -u)
  if [ -n "$strays" ]; then
    echo "names of other libraries' own in $1:" $strays
    status=1
  fi
}
stands_on_public_names io '(io|posix)_'
stands_on_public_names http '(http[12]?|tls)(_|$)'
exit $status
# SPDX-License-Identifier: MIT
