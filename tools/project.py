# SPDX-License-Identifier: MIT
"""The facts that the checks of this folder share: the project's files, and the lines of tools/floors.txt."""
import pathlib
import subprocess

root = pathlib.Path(__file__).resolve().parent.parent


def files():
    """The files of the project: those that git does not ignore, or all of a release's archive."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root, capture_output=True, text=True)
    if listed.returncode == 0 and listed.stdout:
        names = [name for name in listed.stdout.split("\0") if name]
    else:
        built = ("build", "target")
        names = [str(p.relative_to(root)) for p in root.rglob("*") if p.is_file() and p.relative_to(root).parts[0] not in built]
    return [name for name in names if (root / name).is_file()]


def floor_lines():
    """(number, room, words) of each line of tools/floors.txt within a room that has words."""
    room = None
    for number, line in enumerate((root / "tools/floors.txt").read_text().splitlines(), 1):
        words = line.split("#")[0].split()
        if words and words[0] == "room":
            room = words[1]
        elif words:
            yield number, room, words
