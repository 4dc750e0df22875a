#!/bin/sh
# demo.sh BUILD: the tour. Runs the example programs of a build, each under the first sentence of
# its source's opening comment. examples/tour lists them in the order to read them in, a line each;
# without it they run in the order of their names.
set -u
build=$(cd "$1" && pwd) || exit 1
cd "$(dirname "$0")/../examples" || exit 1

tour() {
  if [ -f tour ]; then
    grep -Ev '^(#|$)' tour
  else
    ls c/*.c
  fi
}

# "/* Name: what it shows. More. */" gives "Name: what it shows."
headline() {
  sed -n '1,8p' "$1" | tr '\n' ' ' |
    sed -e 's|^/[*/]* *||' -e 's|^\* *||' -e 's|\*/.*||' -e 's| // *| |g' \
      -e 's| \* *| |g' -e 's|  *| |g' -e 's|^\([^.]*\.\) .*|\1|'
}

failed=0
for source in $(tour); do
  printf '\n== %s\n   %s\n\n' "examples/$source" "$(headline "$source")"
  "$build/examples/${source%.*}" || {
    echo "examples/$source failed with status $?"
    failed=1
  }
done
exit $failed
