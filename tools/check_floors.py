#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_floors.py FOLDER OBJECT...: whether core/src, io/src or http/src keeps to its floors (tools/floors.txt).

A source may include headers of its floor and those below; an object may refer to symbols that are defined
in files above it in the list, or in its own line. Prints what goes up, and what is missing from the list.
"""
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent
folder = sys.argv[1]
room = None
places = {}  # of files: (floor, line)
up = set()
floor = 0
wrong = []

for number, line in enumerate((root / "tools/floors.txt").read_text().splitlines()):
    words = line.split("#")[0].split()
    if not words:
        continue
    if words[0] == "room":
        room = words[1]
    if words[0] == "room" or room != folder:
        continue
    if words[0] == "up":
        up.add(words[1])
        continue
    if words[0] == "floor":
        floor += 1
        words = words[2:]
    for word in words:
        places[word] = (floor, number)

patterns = ("*.[ch]", "*/*.[ch]", "../arch/x86_64/*.S")
sources = [p for pattern in patterns for p in sorted((root / folder).glob(pattern))]
for path in sources:
    if path.name == "morestack_wrap.S":
        continue
    if path.name not in places:
        wrong.append(f"{path.name} stands on no floor")
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
if not defined:
    wrong.append("no objects to look at")

print("\n".join(wrong) or f"{len(sources)} files, {len(defined)} symbols: no use goes up")
sys.exit(1 if wrong else 0)
