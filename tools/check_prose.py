#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_prose.py [ROOM...]: what can be counted of how comments are written, room by room.

A sentence of a comment begins with its subject, or is a plain noun: "Of", "Those", "Whoever", "As" and the like
open none. A standard is named as "RFC 9112, section 3.2". A line has at most 100 columns. tools/prose.txt
has for each room how many openings it still has: more are an error, and fewer are to be written there. With
rooms as arguments, the script prints the sentences.
"""
import collections
import pathlib
import re
import sys

sys.dont_write_bytecode = True
from project import files, root

WIDTH = 100
OPENING = re.compile(r"(?:Of|What|Those|Who|Whoever|Whose|As|Such an?)\b(?! (?:long|soon|if|with|follows)\b)")
BARE = re.compile(r"\((?:\d{4}), (?:section )?\d")
COMMENTS = {
    ".ml": re.compile(r"\(\*\*?(.*?)\*\)", re.S),
    ".mli": re.compile(r"\(\*\*?(.*?)\*\)", re.S),
    ".rs": re.compile(r"((?:^[ \t]*//[/!]? ?[^\n]*\n)+)", re.M),
}
C_COMMENT = re.compile(r"/\*(.*?)\*/", re.S)
SUFFIXES = {".c", ".h", ".cpp", ".hpp", ".S", ".rs", ".ml", ".mli"}


def room_of(path):
    parts = pathlib.PurePath(path).parts
    if "tests" in parts or parts[0] in ("bench", "examples"):
        return "tests"
    return "/".join(parts[:2]) if parts[0] in ("io", "http", "ocaml") else parts[0]


def sentences(text, pattern):
    for comment in pattern.finditer(text):
        words = " ".join(re.sub(r"^\s*(?:\*|//[/!]?)? ?", "", comment[1], flags=re.M).split())
        for sentence in re.split(r"(?<=[.!?:]) +(?=[A-Z])", words):
            yield text.count("\n", 0, comment.start()) + 1, sentence


wrong, counts = [], collections.Counter()
shown = sys.argv[1:]
for name in files():
    path = root / name
    if path.suffix not in SUFFIXES:
        continue
    text, room = path.read_text(), room_of(name)
    counts[room] += 0
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > WIDTH and path.suffix in (".c", ".h", ".hpp", ".S") and room not in ("tests",):
            wrong.append(f"{name}:{number}: {len(line)} columns")
    for number, sentence in sentences(text, COMMENTS.get(path.suffix, C_COMMENT)):
        if BARE.search(sentence) and room != "tests":
            wrong.append(f"{name}:{number}: a number without its standard: {sentence[:70]}")
        if OPENING.match(sentence):
            counts[room] += 1
            if room in shown:
                print(f"{name}:{number}: {sentence[:110]}")

if not shown:
    allowed = {}
    for line in (root / "tools/prose.txt").read_text().splitlines():
        words = line.split("#")[0].split()
        if words:
            allowed[words[0]] = int(words[1])
    for room, count in sorted(counts.items()):
        if count != allowed.get(room, 0):
            wrong.append(f"{room}: {count} openings without a subject, not {allowed.get(room, 0)} as in tools/prose.txt: python3 tools/check_prose.py {room}")
    print("\n".join(wrong) or f"{len(counts)} rooms, {sum(counts.values())} openings left")
sys.exit(1 if wrong else 0)
