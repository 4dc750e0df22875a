#!/bin/sh
# test_project.sh PACKAGES PROGRAM: haft-ocaml5-project makes a project for OCaml 5 one that OCaml 4 builds, and
# leaves it alone the second time.
set -eu
OCAMLPATH=$1${OCAMLPATH:+:$OCAMLPATH}
export OCAMLPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -R "$HAFT_SOURCE_DIR/ocaml/ocaml5/tests/project" "$work"
cd "$work"

[ "$("$2" project)" = "$(printf 'project/bin/dune\nproject/lib/dune')" ]
cp -R project again
[ -z "$("$2" again)" ]
diff -r project again

echo '(library (name unfinished)' >again/dune
if "$2" again 2>log; then exit 1; fi
grep -F 'again/dune: not a dune file, from its character 1 on' log >/dev/null || { cat log; exit 1; }

# Conditions on OCaml's version, also of stanzas that this dune may not know, are what they are on OCaml 5.3; others stay.
cat >again/dune <<'END'
(tests
 (names a)
 (libraries haft.ocaml5)
 (build_if (and (>= %{ocaml_version} 5.0.0) (not (= %{ocaml_version} 5.0.0)) %{arch_sixtyfour})))
(alias (enabled_if (or (< "%{ocaml_version}" 5) (<= %{ocaml_version} 5.3) (> 5.3.0~beta2 %{ocaml-config:version}))))
(subdir b (rule (enabled_if (<> %{ocaml_version} 5.3.0+option)) (action (echo "(build_if (< %{ocaml_version} 5))"))))
(cram (enabled_if (>= %{ocaml_version} %{read:version})) (deps (>= %{ocaml_version} 5)))
END
cat >expected <<'END'
(tests
 (names a)
 (libraries haft.ocaml5)
 (build_if (and true (not false) %{arch_sixtyfour})))
(alias (enabled_if (or false false false)))
(subdir b (rule (enabled_if true) (action (echo "(build_if (< %{ocaml_version} 5))"))))
(cram (enabled_if (>= %{ocaml_version} %{read:version})) (deps (>= %{ocaml_version} 5)))
END
"$2" again >/dev/null
diff expected again/dune

command -v dune >/dev/null || exit 0
cd project
dune build --root . ./bin/main.exe ./bin/alone.exe ./bin/since_5.exe 2>log || { cat log; exit 1; }
printf '1 one\n2 two\nfile: Permission denied\n' >expected
_build/default/bin/main.exe | diff expected -
[ "$(echo 'a line' | _build/default/bin/alone.exe)" = 'a line' ]
[ "$(_build/default/bin/since_5.exe)" = 'for OCaml 5' ]
# SPDX-License-Identifier: MIT
