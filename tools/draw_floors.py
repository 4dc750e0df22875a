#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""draw_floors.py [ROOM...]: draws rooms such as io/src by their floors, for Graphviz:

    python3 tools/draw_floors.py http/src | dot -Tsvg >http.svg

A box is a floor with its files, and an arrow means that files of one include a header of the other (in Rust:
name a module of it). Without a room, all are drawn. `--text` prints the list that docs/HACKING.md has,
`--write` puts it there, and `--check` compares the two.
"""
import re
import sys
import textwrap

sys.dont_write_bytecode = True
from project import floor_lines, root

page = root / "docs/HACKING.md"
BEGIN, END = "<!-- made by tools/draw_floors.py -->\n", "<!-- until here -->\n"


def read_rooms():
    """{room: [(floor, [file, ...]), ...]}, lowest first, in the order of tools/floors.txt."""
    rooms = {}
    for _, room, words in floor_lines():
        floors = rooms.setdefault(room, [])
        if words[0] == "floor":
            floors.append((words[1], words[2:]))
        elif words[0] != "up":
            floors[-1][1].extend(words)
    return rooms


def uses(room, floors):
    """{(floor, lower floor)}: which use which."""
    home = {file: name for name, files in floors for file in files}
    found = set()
    for path in (root / room).rglob("*"):
        if path.name not in home:
            continue
        text = path.read_text()
        if path.suffix == ".rs":
            others = [f"{module}.rs" for module in re.findall(r"\bcrate::(\w+)", text)]
        else:
            others = re.findall(r'^#\s*include "(?:\.\./)*([^"/]+)"', text, re.M)
        found |= {(home[path.name], home[other]) for other in others if other in home}
    return {(a, b) for a, b in found if a != b}


def draw(rooms):
    print('digraph floors {\n  rankdir=TB; node [shape=box, fontname="sans-serif", fontsize=10];')
    for number, (room, floors) in enumerate(rooms.items()):
        print(f'  subgraph cluster_{number} {{\n    label="{room}"; fontname="sans-serif";')
        for name, files in floors:
            label = "\\n".join([name] + textwrap.wrap(" ".join(files), 60))
            print(f'    "{room}:{name}" [label="{label}"];')
        for (upper, _), (lower, _) in zip(reversed(floors), list(reversed(floors))[1:]):
            print(f'    "{room}:{upper}" -> "{room}:{lower}" [style=invis, weight=10];')
        for user, used in sorted(uses(room, floors)):
            print(f'    "{room}:{user}" -> "{room}:{used}" [constraint=false];')
        print("  }")
    print("}")


def listed(rooms):
    lines = ["```text"]
    for room, floors in rooms.items():
        lines += [room]
        for name, files in reversed(floors):
            wrapped = textwrap.wrap(" ".join(files), 95) or [""]
            lines += [f"  {name:<13}| {wrapped[0]}"] + [f"  {'':<13}| {more}" for more in wrapped[1:]]
        lines += [""]
    return "\n".join(lines[:-1] + ["```"]) + "\n"


def main():
    arguments = sys.argv[1:]
    flags = {word for word in arguments if word.startswith("--")}
    rooms = read_rooms()
    unknown = [word for word in arguments if not word.startswith("--") and word not in rooms]
    if unknown or not flags <= {"--text", "--write", "--check"}:
        sys.exit(f"draw_floors.py: {' '.join(unknown) or 'an option'} is not known; the rooms are {', '.join(rooms)}")
    chosen = {word: rooms[word] for word in arguments if word in rooms} or rooms
    if not flags:
        draw(chosen)
    elif "--text" in flags:
        print(listed(chosen), end="")
    else:
        before, rest = page.read_text().split(BEGIN)
        old, after = rest.split(END, 1)
        if "--write" in flags:
            page.write_text(before + BEGIN + listed(rooms) + END + after)
        elif old != listed(rooms):
            sys.exit("docs/HACKING.md has other floors than tools/floors.txt: python3 tools/draw_floors.py --write")


main()
