#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_functions.py [--write]: whether the table of public functions in docs/HACKING.md has the numbers of today.

A function is counted where a header declares or defines it: types of functions (names in `_t`) and what only
HAFT_IO_SCOPED_... calls (names in `_scoped`) are none. --write puts the numbers into the table; what they are made of
is written by hand. A public header that has functions and stands in no row is an error. (old_names.h has names of
earlier versions only, for functions that are counted under those of today.)
"""
import re
import sys

sys.dont_write_bytecode = True
from project import files, root

PAGE = root / "docs/HACKING.md"
ATTRIBUTES = re.compile(r"__attribute__\s*\(\(.*?\)\)|HAFT\w*\(.*?\)")
FUNCTION = re.compile(r"\s*(?!typedef|enum)(.*?)\b(haft_[a-z_0-9]+)\s*\(", re.S)


def functions(text):
    text = re.sub(r"/\*.*?\*/|\\\n", " ", text, flags=re.S)
    text = re.sub(r'^[ \t]*#[^\n]*|extern "C" \{', "", text, flags=re.M)
    while (bare := re.sub(r"\{[^{}]*\}", ";", text)) != text:
        text = bare
    found = set()
    for statement in text.split(";"):
        match = FUNCTION.match(statement)
        if match and not re.search(r"[=(]", ATTRIBUTES.sub("", match[1])) and not match[2].endswith(("_t", "_scoped")):
            found.add(match[2])
    return found


PUBLIC = re.compile(r"(?:core|io|io/posix|http|http/tls)/include/(?!haft/inner/).*(?<!old_names)\.h")
public = [name for name in files() if PUBLIC.fullmatch(name)]


def headers_of(cell):
    """The headers that the first cell of a row names."""
    names = re.findall(r"`([^`]+)`", cell)
    for name in public:
        short = name.split("/include/")[1]
        if "http_*.h" in names:
            if re.fullmatch(r"haft/http_\w+\.h", short):
                yield name
        elif short in names or short.removeprefix("haft/") in names:
            yield name


page, wrong = PAGE.read_text(), []
begin = page.index("\n| header | functions |")
end = page.index("\n\n", begin)
rows = page[begin:end].split("\n")
missing = {name for name in public if functions((root / name).read_text())}
for i, row in enumerate(rows):
    cells = row.split(" | ")
    if not row.startswith("| `") and not row.startswith("| the `"):
        continue
    headers = set(headers_of(cells[0]))
    missing -= headers
    count = len(set().union(*(functions((root / name).read_text()) for name in headers)))
    if int(cells[1]) != count:
        wrong.append(f"docs/HACKING.md: {cells[0].strip('| ')}: {count} functions, not {cells[1]}")
        rows[i] = " | ".join([cells[0], str(count), *cells[2:]])

if "--write" in sys.argv[1:]:
    PAGE.write_text(page[:begin] + "\n".join(rows) + page[end:])
    wrong = []
wrong += [f"docs/HACKING.md: {name} has public functions, and stands in no row of the table" for name in sorted(missing)]
print("\n".join(wrong) or f"{len(rows) - 3} rows of functions")
sys.exit(1 if wrong else 0)
