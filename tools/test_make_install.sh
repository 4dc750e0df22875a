#!/bin/sh
# SPDX-License-Identifier: MIT
# `make install` installs no packages and uses no network: it runs here where whatever could do either
# leaves a trace and fails. (cmake does nothing here; the test "install" looks at what it installs.) The prefix may have a
# space in it, be relative, or be given by the name that GNU's programs have for it.
set -eu
unset PREFIX
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
for command in apt apt-get apt-cache dpkg-query sudo curl wget npm git; do
  printf '#!/bin/sh\necho "%s $*" >>"%s/trace"\nexit 1\n' "$command" "$work" >"$work/bin/$command"
done
printf '#!/bin/sh\necho "$*" >>"%s/cmake"\n' "$work" >"$work/bin/cmake"
chmod +x "$work"/bin/*
status=0
PATH=$work/bin:$PATH HAFT_BUILD_ROOT=$work/build \
  make -C "$HAFT_SOURCE_DIR" --no-print-directory install PREFIX="$work/prefix" || status=$?
if [ -f "$work/trace" ]; then
  echo 'make install ran:'
  cat "$work/trace"
  exit 1
fi
for given in "PREFIX=$work/a b" PREFIX=below prefix=/opt/haft; do
  PATH=$work/bin:$PATH HAFT_BUILD_ROOT=$work/build make -C "$HAFT_SOURCE_DIR" --no-print-directory install "$given"
done
for folder in "$work/prefix" "$work/a b" "$(cd "$HAFT_SOURCE_DIR" && pwd -P)/below" /opt/haft; do
  grep -q -- "^--install .* --prefix $folder\$" "$work/cmake" || {
    echo "nothing is installed at $folder:"
    cat "$work/cmake"
    exit 1
  }
done
exit $status
