#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_refusals.py [--write | --list]: whether each mistake of a program that a call refuses is told in words.

A call that returns an error number because of a mistake of the program tells the reason by
haft_io_refuse (in libhaft-http by hafti_http_refuse, in libhaft by haft_refused). The script holds
three places together:

- Each such call in the sources is seen by a line REFUSES(call, NUMBER, "words") of a test, and each such line
  belongs to a call in the sources.
- The table in docs/misuse.md is made of these lines; --write makes it anew.
- A number of this kind (EINVAL, EPERM, EBUSY, ESRCH, EXDEV) without words stands in tools/refusals.txt, with
  the reason why it has none.

--list prints every place where the sources have such a number, with its class.
"""
import fnmatch
import re
import sys

sys.dont_write_bytecode = True
from project import files, root

ROOMS = {"core/src/": "libhaft", "io/src/": "libhaft-io", "io/posix/src/": "libhaft-posix",
         "http/src/": "libhaft-http", "http/tls/src/": "libhaft-tls"}
NUMBER = r"E(?:INVAL|PERM|BUSY|SRCH|XDEV)\b"
CALLS = {"haft_io_refuse": 0, "haft_refused": 0, "hafti_http_refuse": 1}  # how many arguments come first
BEGIN, END = "<!-- made by tools/check_refusals.py -->\n", "<!-- until here -->\n"
page = root / "docs/misuse.md"
wrong = []


def without_comments(text):
    """The same text, of the same length, whose comments are spaces."""
    blank = lambda found: re.sub(r"[^\n]", " ", found[0]) if found[0].startswith("/") else found[0]
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)


def arguments_at(text, at):
    """The arguments behind the parenthesis at `at`, and where they end."""
    parts, depth, start, i = [], 0, at + 1, at
    while True:
        character = text[i]
        if character in "\"'":
            i += 1
            while text[i] != character:
                i += 2 if text[i] == "\\" else 1
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
            if depth == 0:
                return parts + [text[start:i].strip()], i
        elif character == "," and depth == 1:
            parts.append(text[start:i].strip())
            start = i + 1
        i += 1


def literal(text):
    """The text of literals of C that stand in a row; None: it is something else."""
    if re.sub(r'"(?:\\.|[^"\\])*"', "", text).strip():
        return None
    joined = "".join(re.findall(r'"((?:\\.|[^"\\])*)"', text))
    return joined.replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\")


def function_around(text, at):
    """The name of the function that the place is in."""
    for line in reversed(text[:at].split("\n")):
        line = re.sub(r"__attribute__\(\(.*?\)\)\)? ?", "", line)
        found = re.match(r"(?!#|typedef|struct|\s|\})[\w *]*?\b(\w+)\(", line)
        if found and not line.rstrip().endswith(";"):
            return found[1]
    return "?"


def sources():
    for name in sorted(files()):
        if name.endswith(".c") and any(name.startswith(room) for room in ROOMS) and "/tests/" not in name:
            yield name, without_comments((root / name).read_text(encoding="utf-8"))


def pattern_of(function, format_):
    """The form of a refusal's message: the conversions may be anything."""
    parts = re.split(r"%(?:%|[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|j|t)?[a-zA-Z])", format_)
    return re.compile(f"{function}: " + ".*".join(map(re.escape, parts)), re.S)


def refusals_in(name, text):
    """(line, pattern, where it begins and ends) of each refusal of a source."""
    for found in re.finditer(r"\b(" + "|".join(CALLS) + r")\(", text):
        if text[: found.start()].rsplit("\n", 1)[-1].strip().startswith("int") and text[found.start() - 1] == " ":
            continue  # its definition
        parts, end = arguments_at(text, found.end() - 1)
        number, function, format_ = parts[CALLS[found[1]] :][:3]
        line = text.count("\n", 0, found.start()) + 1
        words = literal(format_)
        if words is None:
            wrong.append(f"{name}:{line}: the words are no literal")
            continue
        known = literal(function)
        if function == "__func__":
            known = function_around(text, found.start())
        elif known is None:
            array = re.search(rf'\b{re.escape(function)}\[\] = "(\w+)"', text)
            known = array[1] if array else r"\w+"
        forwards = words == "%s" and found[1] == "haft_io_refuse" and function == "function"
        yield line, None if forwards else pattern_of(known, words), found.start(), end, number


def shown_call(text, at, call, words):
    """The call as the table has it: what `&name` points to in the test stands in the name's place."""

    def value_of(found):
        begin = text.rfind(f"{found[1]} = {{", 0, at)
        if begin < 0:
            return found[0]
        parts, _ = arguments_at(text, begin + len(found[1]) + 3)
        return "&{" + ", ".join(" ".join(part.split()) for part in parts) + "}"

    call = re.sub(r"( < 0 \? -errno : 0| != NULL)$", "", " ".join(call.split()))
    call = words.split(":")[0] + "(...)" if call.isidentifier() else call
    return re.sub(r"(?<=[ (])&(\w+)", value_of, call)


def rows_of_tests():
    """(room, call, number, words, test) of each REFUSES of a test."""
    for name in sorted(files()):
        if not re.search(r"/tests/test_\w+\.c$", name):
            continue
        text = (root / name).read_text(encoding="utf-8")
        for found in re.finditer(r"\bREFUSES\(", text):
            parts, _ = arguments_at(text, found.end() - 1)
            words = literal(parts[2]) if len(parts) == 3 else None
            line = text.count("\n", 0, found.start()) + 1
            if words is None:
                wrong.append(f"{name}:{line}: REFUSES has three arguments, of which the last is a text")
                continue
            folder = name.split("/tests/")[0]
            room = {"core": "libhaft", "io": "libhaft-io", "http": "libhaft-http", "http/tls": "libhaft-tls"}[folder]
            test = re.sub(r".*/test_(\w+)\.c", r"\1", name)
            yield room, shown_call(text, found.start(), parts[0], words), parts[1], words, test


def exempt():
    """(pattern of files, functions, class, reason) of each line of tools/refusals.txt."""
    for number, line in enumerate((root / "tools/refusals.txt").read_text(encoding="utf-8").splitlines(), 1):
        words = line.split("#")[0].split(None, 3)
        if words and (len(words) < 4 or words[2] not in ("input", "system", "inner", "state")):
            wrong.append(f"tools/refusals.txt:{number}: a line has files, a function or *, a class and a reason")
        elif words:
            yield number, *words


def bare_numbers(name, text, spans):
    """(line, function) of each number that no refusal has, and no comparison."""
    for found in re.finditer(rf"(?<!\w){NUMBER}", text):
        before = text[: found.start()].rstrip("- \n")
        is_compared = before.endswith(("==", "!=", "case"))
        if not is_compared and not any(begin <= found.start() <= end for begin, end in spans):
            yield text.count("\n", 0, found.start()) + 1, function_around(text, found.start())


def table(rows):
    lines = []
    for room in dict.fromkeys(ROOMS.values()):
        of_room = [row for row in rows if row[0] == room]
        if not of_room:
            continue
        lines += ["", f"### {room}", "", "| Call | Result | Words | Test |", "|---|---|---|---|"]
        for _, call, number, words, test in of_room:
            shown = words.replace("\n", "\\n").replace("|", "\\|")
            lines.append(f"| `{call}` | {'-' + number if number != '0' else 'NULL'} | `{shown}` | {test} |")
    return "\n".join(lines) + "\n\n"


rows = list(rows_of_tests())
rules = list(exempt())
used_rules, seen_rows, listed = set(), set(), []
for name, text in sources():
    spans = []
    for line, pattern, begin, end, number in refusals_in(name, text):
        spans.append((begin, end))
        if pattern is None:
            continue
        matches = [row for row in rows if pattern.fullmatch(row[3])]
        seen_rows.update(matches)
        listed.append((name, line, "mistake", number))
        if not matches:
            wrong.append(f"{name}:{line}: no REFUSES of a test has these words: {pattern.pattern}")
    for line, function in bare_numbers(name, text, spans):
        rule = next((r for r in rules if fnmatch.fnmatch(name, r[1]) and r[2] in ("*", function)), None)
        listed.append((name, line, rule[3] if rule else "?", function))
        if rule:
            used_rules.add(rule[0])
        else:
            wrong.append(f"{name}:{line}: {function} returns a number without words: call haft_io_refuse, or give "
                         "the reason in tools/refusals.txt")
wrong += [f"tools/refusals.txt:{rule[0]}: nothing needs this line" for rule in rules if rule[0] not in used_rules]
wrong += [f"a test expects words that no source has: {row[3]}" for row in rows if row not in seen_rows]

if "--list" in sys.argv:
    for name, line, kind, what in listed:
        print(f"{name}:{line}: {kind}: {what}")
    counts = {kind: sum(1 for entry in listed if entry[2] == kind) for kind in sorted({entry[2] for entry in listed})}
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    sys.exit(0)

text = page.read_text(encoding="utf-8")
before, rest = text.split(BEGIN) if BEGIN in text else (text, "")
made = before + BEGIN + table(rows) + END + rest.split(END)[-1]
if "--write" in sys.argv:
    page.write_text(made, encoding="utf-8")
elif made != text:
    wrong.append("docs/misuse.md: the table of refusals is not that of the tests: python3 tools/check_refusals.py --write")
print("\n".join(wrong), end="\n" if wrong else "")
sys.exit(1 if wrong else 0)
