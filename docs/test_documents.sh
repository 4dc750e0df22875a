#!/bin/sh
# SPDX-License-Identifier: MIT
# The code in the documents compiles without warnings and prints what they claim. The blocks of
# a section in one language make one program; the ```text block after them is its output. A program in
# OCaml may come with ```c blocks, its functions in C, and with a ```dune block, which builds it once more.
# Usage: test_documents.sh c|ocaml FILE... The first does C and C++.
set -u
language=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
programs=0

# compile_LANGUAGE PART: makes $work/program. The part's source is PART.ml, PART.cpp or PART.c.
compile_c() {
  source=$1.c
  compiler="$CC -std=gnu11 -fexceptions"
  if [ -f "$1.cpp" ]; then
    source=$1.cpp
    compiler="$CXX -std=c++20 -Wno-missing-field-initializers"
  fi
  libraries="$HAFT_IO_LIBRARIES $HAFT_BUILD_DIR/compat/libhaft-compat.a $HAFT_BUILD_DIR/core/libhaft.a"
  if grep -q 'haft/posix\.h' "$source"; then # shares the one libhaft-io of the process
    io=$HAFT_BUILD_DIR/io
    libraries="$io/posix/libhaft-posix.so $io/libhaft-io.so $HAFT_BUILD_DIR/core/libhaft.so"
    libraries="$libraries -Wl,-rpath,$io/posix:$io:$HAFT_BUILD_DIR/core"
  fi
  if grep -q 'haft/http\.h' "$source"; then
    libraries="$HAFT_HTTP_LIBRARIES $libraries"
  fi
  # shellcheck disable=SC2086 # a command with arguments
  $compiler $flags -I"$work/compiled" $includes "$source" $libraries -pthread -o "$work/program"
}

compile_ocaml() {
  rm -rf "$work/project"
  mkdir "$work/project"
  cp "$1.ml" "$work/project/main.ml"
  stubs=
  if [ -f "$1.c" ]; then
    cp "$1.c" "$work/project/stubs.c"
    stubs=stubs.c
  fi
  packages=haft,unix,threads.posix
  if grep -q 'Lwt' "$1.ml"; then
    packages=$packages,lwt.unix
  fi
  if grep -q 'Http\.' "$1.ml"; then
    packages=$packages,haft-http
  elif grep -q 'Haft_lwt' "$1.ml"; then
    packages=$packages,haft-lwt
  elif grep -q 'Haft_io' "$1.ml"; then
    packages=$packages,haft-io
  fi
  if grep -q 'Haft_posix' "$1.ml"; then
    packages=$packages,haft-posix
  fi
  (
    cd "$work/project" || exit 1
    ocamlfind ocamlopt -g -w +a-4-9-32-40..42-44-45-70 -warn-error +a -pp haft-effect-syntax -thread \
      -package "$packages" -linkpkg -ccopt "-Wall -Wextra -Werror -I$HAFT_SOURCE_DIR/core/include" \
      $stubs main.ml -o "$work/program" || exit 1
    if [ -f "$1.dune" ] && command -v dune >/dev/null; then
      name=$(sed -n 's/.*(name \([a-z_]*\)).*/\1/p' "$1.dune")
      mv main.ml "$name.ml"
      rm -f main.*
      cp "$1.dune" dune
      echo '(lang dune 2.0)' >dune-project
      dune build --root . --display quiet "./$name.exe" || exit 1
      cp -f "_build/default/$name.exe" "$work/program"
    fi
  )
}

# The programs that need them; io_uring is in only if the build has it.
HAFT_IO_LIBRARIES=$HAFT_BUILD_DIR/io/libhaft-io.a
if grep -q '^Libs.private:.*-luring' "$HAFT_BUILD_DIR/io/haft-io.pc" 2>/dev/null; then
  HAFT_IO_LIBRARIES="$HAFT_IO_LIBRARIES -luring"
fi

HAFT_HTTP_LIBRARIES="$HAFT_BUILD_DIR/http/libhaft-http.a $(sed -n 's/^Libs\.private: //p' \
  "$HAFT_BUILD_DIR/http/haft-http.pc" 2>/dev/null)"
if grep -q '^Requires:.*haft-tls' "$HAFT_BUILD_DIR/http/haft-http.pc" 2>/dev/null; then
  HAFT_HTTP_LIBRARIES="$HAFT_HTTP_LIBRARIES $HAFT_BUILD_DIR/http/tls/libhaft-tls.a -lssl -lcrypto"
fi

flags='-Wall -Wextra -Werror -O1'
includes=
for folder in core/include cpp/include compat io/include io/posix/include http/include; do
  includes="$includes -I$HAFT_SOURCE_DIR/$folder"
done
# haft.hpp, compiled once for the programs that begin with it, of which there are many.
mkdir "$work/compiled"
ln -s "$HAFT_SOURCE_DIR/cpp/include/haft.hpp" "$work/compiled" # for headers that include it once more
if [ "$language" = c ]; then
  # shellcheck disable=SC2086 # a command with arguments
  $CXX -std=c++20 -Wno-missing-field-initializers $flags $includes -pthread -x c++-header \
    "$HAFT_SOURCE_DIR/cpp/include/haft.hpp" -o "$work/compiled/haft.hpp.gch" || exit 1
fi

if [ "$language" = ocaml ]; then
  OCAMLPATH=$HAFT_BUILD_DIR/ocaml/packages:${OCAMLPATH:-}
  PATH=$HAFT_BUILD_DIR/ocaml/syntax:$PATH
  export OCAMLPATH PATH
fi

for document in "$@"; do
  rm -f "$work"/part.*
  # part.N.c and so on: the blocks of the N-th section; part.N.title: its title.
  awk -v work="$work" '
    BEGIN { extension["c"] = "c"; extension["cpp"] = "cpp"; extension["ocaml"] = "ml"
            extension["dune"] = "dune"; extension["text"] = "text" }
    /^```/ { inside = !inside; kind = inside ? substr($0, 4) : ""; next }
    !inside && /^#+ / { part++; file = work "/part." part ".title"; print > file; close(file); next }
    inside && kind in extension {
      file = work "/part." part "." extension[kind]
      print >> file
      close(file)
    }' "$HAFT_SOURCE_DIR/$document"

  for title in "$work"/part.*.title; do
    part=${title%.title}
    case $language in
    ocaml) [ -f "$part.ml" ] || continue ;;
    *) [ ! -f "$part.ml" ] && { [ -f "$part.c" ] || [ -f "$part.cpp" ]; } || continue ;;
    esac
    title="$document, \"$(cat "$title")\""
    if [ "$language" = ocaml ] && grep -qi 'lwt' "$part.ml" && ! ocamlfind query lwt.unix >/dev/null 2>&1; then
      echo "$title needs the package lwt"
      continue
    fi
    programs=$((programs + 1))
    if ! "compile_$language" "$part"; then
      echo "$title does not compile"
      failed=1
      continue
    fi
    if [ -f "$part.cpp" ] && grep -q 'return server\.run(' "$part.cpp"; then
      continue # it would serve for ever
    fi
    # shellcheck disable=SC2086 # a command with arguments, or nothing
    if ! ${HAFT_LAUNCHER:-} "$work/program" >"$work/output" 2>"$work/errors"; then
      cat "$work/errors"
      echo "$title fails"
      failed=1
    elif [ -f "$part.text" ] && ! diff -u "$part.text" "$work/output"; then
      echo "$title prints something else"
      failed=1
    fi
  done
done
echo "$programs programs"
[ $failed -eq 0 ] && [ $programs -gt 0 ]
