#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_hygiene.py: what no commit may hold: markers of a merge, compiled files, comments or pages that name a
file of the project that does not exist, and private headers of io and http whose guard is not HAFTI_..."""
import pathlib
import re
import sys

sys.dont_write_bytecode = True
from project import files, root

wrong = []

paths = files()
known = {pathlib.PurePath(p).name for p in paths}

COMPILED = re.compile(r"\.(pyc|o|a|so|class|cm[aiox]|cmxa|rlib)$")
MARKER = re.compile(r"^(<<<<<<<|=======|>>>>>>>|\|\|\|\|\|\|\|)( |$)", re.M)
SOURCE = re.compile(r"\.(c|h|cpp|hpp|S|rs|ml|mli|py|sh|cmake)$|CMakeLists\.txt$")
PRIVATE = re.compile(r"^(io|io/posix|http|http/tls)/src/.*\.h$")
BLOCK = r"/\*.*?\*/|(?<!:)//[^\n]*"
LINE = r"^\s*#[^\n]*"
COMMENTS = {".ml": r"\(\*.*?\*\)", ".mli": r"\(\*.*?\*\)", ".py": LINE, ".sh": LINE, ".cmake": LINE, ".txt": LINE}
# Headers of the system and of other libraries, and names in capitals that stand for any file.
ELSEWHERE = re.compile(r"^(errno|netdb)\.h$|^(caml|openssl)/|[A-Z]{3}|\.N\.")
NAME = re.compile(r"(?<![:\w<>{}$*./-])([\w/.-]*\w\.(?:c|h|hpp|cpp|S|sh|py|ml|mli|rs|md|txt))(?![\w(*-])")

for path in paths:
    if COMPILED.search(path):
        wrong.append(f"{path}: a compiled file")
        continue
    try:
        text = (root / path).read_text()
    except UnicodeDecodeError:
        continue
    for match in MARKER.finditer(text):
        wrong.append(f"{path}:{text.count(chr(10), 0, match.start()) + 1}: a marker of a merge")
    if not SOURCE.search(path):
        continue
    if PRIVATE.search(path) and not re.search(r"^#ifndef HAFTI_", text, re.M):
        wrong.append(f"{path}: the guard of a private header begins with HAFTI_")
    suffix = pathlib.PurePath(path).suffix
    for comment in re.finditer(COMMENTS.get(suffix, BLOCK), text, re.S | re.M):
        for name in NAME.finditer(comment.group()):
            if not ELSEWHERE.search(name[1]) and pathlib.PurePath(name[1]).name not in known:
                line = text.count("\n", 0, comment.start() + name.start()) + 1
                wrong.append(f"{path}:{line}: no file is called {name[1]}")

print("\n".join(wrong) or f"{len(paths)} files: nothing to object to")
sys.exit(1 if wrong else 0)
