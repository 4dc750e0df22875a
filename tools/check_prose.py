#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_prose.py [ROOM...]: what can be counted of how comments are written, room by room.

A sentence of a comment begins with its subject, or is a plain noun: "Of", "Those", "Whoever", "As" and the like
open none. Only a person "says", "hears" or "foresees" something, and only a
person is meant by `who`. A standard is named as "RFC 9112, section 3.2". A line has at most 100 columns.
tools/prose.txt has for each room how many such sentences it still has: more are an error, and fewer are to be
written there. With rooms as arguments, the script prints the sentences. In pages (.md) openings are not looked at,
since headings are nouns, and in CHANGELOG.md only [Unreleased] is.
"""
import collections
import pathlib
import re
import sys

sys.dont_write_bytecode = True
from project import files, root

WIDTH = 100
OPENING = re.compile(r"(?:Of|What|Those|Who|Whoever|Whose|As|Such an?)\b(?! (?:long|soon|if|with|follows|root)\b)")
SPEAKING = re.compile(r"\b(?:says?|said|saying|hears?|heard|foresees?|foretells?)\b")
WHO = re.compile(r"\b(?:who|whom|whoever)\b", re.I)
PERSON = re.compile(r"\b(?:attacker|author|person|reader|somebody|user|nobody|programmer)s?\b|\bpeople\b")
BARE = re.compile(r"\((?:\d{4}), (?:section )?\d|\bRFC \d+, \d|\bRFC RFC\b|^\d+\.\d+(?:\.\d+)?[ ;:]+[A-Za-z]")
CODE = re.compile(r"```.*?```|`[^`]*`|\{\[.*?\]\}|\"[^\"]*\"")
LINES = re.compile(r"((?:^[ \t]*# ?[^\n]*\n)+)", re.M)
COMMENTS = {
    ".ml": re.compile(r"\(\*\*?(.*?)\*\)", re.S),
    ".mli": re.compile(r"\(\*\*?(.*?)\*\)", re.S),
    ".rs": re.compile(r"((?:^[ \t]*//[/!]? ?[^\n]*\n)+)", re.M),
    ".py": re.compile(r'^[ \t]*"""(.*?)"""|""".*?"""|' + LINES.pattern, re.M | re.S),
    ".sh": LINES,
    ".cmake": LINES,
    ".txt": LINES,
}
C_COMMENT = re.compile(r"(?<![\w;*])/\*(.*?)\*/", re.S)
SUFFIXES = {".c", ".h", ".cpp", ".hpp", ".S", ".md", *COMMENTS}


def room_of(path):
    parts = pathlib.PurePath(path).parts
    if parts[-1].endswith(".md"):
        return "pages"
    if "tests" in parts or parts[0] in ("bench", "examples"):
        return "tests"
    return "/".join(parts[:2]) if parts[0] in ("io", "http", "ocaml") else parts[0]


def sentences(text, pattern):
    for comment in pattern.finditer(text):
        if comment.lastindex is None:  # a string of Python
            continue
        words = re.sub(r"^\s*(?:\*|//[/!]?|#)? ?", "", comment[comment.lastindex], flags=re.M)
        words = re.sub(r"^!/[\w/ ]+$|SPDX-\S+ MIT$", "", words, flags=re.M)
        words = " ".join(CODE.sub("`code`", words).split())
        for sentence in re.split(r"(?<=[.!?:]) +(?=[A-Z])", words):
            yield text.count("\n", 0, comment.start()) + 1, sentence


def sentences_of_page(name, text):
    if name == "CHANGELOG.md":
        text = text[:text.find("\n## [0")]
    text = re.sub(r"^```.*?^```$|^    [^\n]*$", lambda code: "\n" * code[0].count("\n"), text, flags=re.M | re.S)
    for number, line in enumerate(text.split("\n"), 1):
        for sentence in re.split(r"(?<=[.!?:]) +(?=[A-Z])| \| ", CODE.sub("`code`", line)):
            yield number, sentence


def is_wrong(sentence, is_page):
    return (SPEAKING.search(sentence) or WHO.search(sentence) and not PERSON.search(sentence)
            or not is_page and OPENING.match(sentence))


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
    is_page = path.suffix == ".md"
    found = sentences_of_page(name, text) if is_page else sentences(text, COMMENTS.get(path.suffix, C_COMMENT))
    for number, sentence in found:
        if BARE.search(sentence) and room not in ("tests", "pages"):
            wrong.append(f"{name}:{number}: a number without its standard: {sentence[:70]}")
        if is_wrong(sentence, is_page):
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
            wrong.append(f"{room}: {count} sentences of this kind, not {allowed.get(room, 0)} as in tools/prose.txt: python3 tools/check_prose.py {room}")
    print("\n".join(wrong) or f"{len(counts)} rooms, {sum(counts.values())} sentences left")
sys.exit(1 if wrong else 0)
