#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_floors.py FOLDER [OBJECT...]: whether a room, such as core/src, keeps to its floors (tools/floors.txt).

A source may include headers of its floor and those below; an object may refer to symbols that are defined
in files above it in the list, or in its own line. The script prints each use that goes up, each file that the
list lacks, and each word of the list that is no file or that no file needs. Modules of Rust name each other
in the text, as crate::NAME, and have no objects: a module may name those above it in the list.
"""
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
from project import floor_lines, root

folder = sys.argv[1]
places = {}  # of files: (floor, line)
up = set()
floor = 0
wrong = []

for number, room, words in floor_lines():
    if room != folder:
        continue
    if words[0] == "up":
        up.add(words[1])
        if len(words) < 3:
            wrong.append(f"line {number}: `up {words[1]}` gives no reason")
        continue
    if words[0] == "floor":
        floor += 1
        words = words[2:]
    for word in words:
        if word in places:
            wrong.append(f"line {number}: {word} stands on two floors")
        places[word] = (floor, number)

patterns = ("*.rs", "*.[ch]", "*/*.[ch]", "../arch/x86_64/*.S")
sources = [p for pattern in patterns for p in sorted((root / folder).glob(pattern))]
sources = [path for path in sources if path.name != "lib.rs"]  # which has all modules
names = {path.name for path in sources}
wrong += [f"line {place[1]}: {word} is no file of {folder}" for word, place in places.items() if word not in names]
for path in sources:
    if path.name == "morestack_wrap.S":
        continue
    if path.name not in places:
        wrong.append(f"{path.name} stands on no floor")
        continue
    if path.suffix == ".rs":
        text = re.sub(r"//.*", "", path.read_text())
        for module in sorted(set(re.findall(r"\bcrate::(\w+)", text))):
            other = places.get(f"{module}.rs")
            if other is not None and other[1] > places[path.name][1]:
                wrong.append(f"{path.name} uses {module}.rs, which stands above it")
        continue
    for header in re.findall(r'^#\s*include "(?:\.\./)*([^"/]+)"', path.read_text(), re.M):
        if header not in places:
            wrong.append(f"{path.name} includes {header}, which stands on no floor")
        elif places[header][0] > places[path.name][0]:
            wrong.append(f"{path.name} includes {header}, of a floor above")

defined, used = {}, {}
for name in sys.argv[2:]:
    file = re.sub(r"\.o$", "", pathlib.Path(name).name)
    if file not in places:
        continue
    for line in subprocess.run(["nm", name], check=True, capture_output=True, text=True).stdout.splitlines():
        *_, kind, symbol = line.split()
        if kind in "Uw":
            used.setdefault(file, set()).add(symbol)
        elif kind.isupper():
            defined[symbol] = file
for file in sorted(used):
    for symbol in sorted(used[file]):
        other = defined.get(symbol)
        if other is not None and symbol not in up and places[other][1] > places[file][1]:
            wrong.append(f"{file} uses {symbol} of {other}, which stands above it")
if not defined and any(path.suffix == ".c" for path in sources):
    wrong.append("no objects to look at")
# (A use is looked for in the text: some sources are only compiled where a library is absent.)
texts = {path.name: path.read_text() for path in sources if path.name in places}
for symbol in sorted(up):
    home = places.get(defined.get(symbol))
    mentions = (name for name, text in texts.items() if name.endswith((".c", ".S")) and re.search(rf"\b{symbol}\b", text))
    # (An architecture may lack the file that defines it.)
    if not any(home is None or places[name][1] < home[1] for name in mentions):
        wrong.append(f"nothing uses {symbol} from below: `up {symbol}` is no exception")

print("\n".join(wrong) or f"{len(sources)} files, {len(defined)} symbols: no use goes up")
sys.exit(1 if wrong else 0)
