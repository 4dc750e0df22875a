#!/bin/sh
# SPDX-License-Identifier: MIT
# A block that names a file, ```cpp examples/http/errors.cpp, shows lines of that file, each run of them as they stand
# there but for how far they are indented; a line /* ... */ stands for what is left out. So a program stands in one
# place, where it is compiled and run. docs/http.md links to each program of examples/http, and none has more than
# 150 lines.
set -eu
cd "$HAFT_SOURCE_DIR"
python3 - <<'PYTHON'
import glob, re, sys

failed = False


def complain(*words):
    global failed
    failed = True
    print(*words)


def lines_of(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def follows(piece, lines, start):
    """Where the piece ends in the lines, if it is there from start on."""
    for first in range(start, len(lines) - len(piece) + 1):
        if lines[first:first + len(piece)] == piece:
            return first + len(piece)
    return None


def check_block(place, path, body):
    try:
        with open(path) as file:
            lines = lines_of(file.read())
    except OSError as missing:
        return complain(place, missing)
    at, piece = 0, []
    for line in lines_of(body) + ['/* ... */']:
        if line != '/* ... */':
            piece.append(line)
            continue
        end = follows(piece, lines, at)
        if end is None:
            return complain(f'{place}: {path} does not have these lines, or not behind those before:\n  ' +
                            '\n  '.join(piece))
        at, piece = end, []


shown = 0
for page in ['README.md', *sorted(glob.glob('docs/*.md'))]:
    with open(page) as file:
        text = file.read()
    for block in re.finditer(r'^```[a-z]+ (\S+)\n(.*?)^```$', text, re.S | re.M):
        check_block(f'{page}:{text.count(chr(10), 0, block.start()) + 1}', block[1], block[2])
        shown += 1

with open('docs/http.md') as file:
    linked = set(re.findall(r'\]\(\.\./(examples/http/[^)#]*)\)', file.read()))
for program in glob.glob('examples/http/**/*.c*', recursive=True):
    with open(program) as file:
        size = len(file.readlines())
    if size > 150:
        complain(f'{program} has {size} lines')
    if program not in linked:
        complain(f'docs/http.md does not link to {program}')
print(f'{shown} blocks')
sys.exit(failed or shown == 0)
PYTHON
