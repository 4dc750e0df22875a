# SPDX-License-Identifier: MIT
"""Measuring and tables, for bench/io/run.py, bench/http/run.py and rust/bench/run.py.

Measuring: programs of peers are built; a process runs on some of the processors, and gives a figure, or
None if it fails, which the tables leave out. Peers take turns, forwards and backwards, so that none has
the quiet minutes for itself. Pages: tables of medians in Markdown, and whether a page is what the results
make of it.
"""

import argparse
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
THREADS = {1: "one thread", 2: "two threads"}
PARTS_IF_QUICK = 100
NO_SUCH_WORK = 2  # the exit status of a program that does not do the work


# ---- Measuring ----


def builds(command, folder, environment=None):
    """Whether the command is there and succeeds."""
    if not shutil.which(command[0]):
        return False
    done = subprocess.run([str(part) for part in command], cwd=folder, env={**os.environ, **(environment or {})})
    return done.returncode == 0


def first_line(*command):
    if not shutil.which(command[0]):
        return ""
    return subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout.partition("\n")[0]


def pinned_to(processors):
    """Puts a new process on so many processors."""
    return lambda: os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-processors:])


def measured(command, processors, environment=None):
    """The output of one process, on so many processors; None if it fails."""
    try:
        return subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True,
                              preexec_fn=pinned_to(processors), timeout=120, env={**os.environ, **(environment or {})}).stdout
    except subprocess.SubprocessError as failure:
        if getattr(failure, "returncode", None) != NO_SUCH_WORK:
            print(failure, file=sys.stderr)
        return None


def series(runs, repeats):
    """Figures of each run; the peers take turns."""
    figures = {name: [] for name in runs}
    for turn in range(repeats):
        order = list(runs.items())
        for name, run in order if turn % 2 == 0 else reversed(order):
            figure = run()
            if figure is not None:
                figures[name].append(figure)
    return figures


def number_of(text):
    return None if text is None else float(text)


def echo_words(command, environment):
    """The output of echo behind the size; None if it fails."""
    text = measured(command, 2, environment)
    return None if text is None else text.split("bytes:")[1].split()


def used_by(command, processors):
    """The system's time and memory that one process has used; None if it fails."""
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               preexec_fn=pinned_to(processors))
    _, status, usage = os.wait4(process.pid, 0)
    return usage if os.waitstatus_to_exitcode(status) == 0 else None


def mebibytes_of(usage):
    return usage.ru_maxrss / 1024


def milliseconds_of(usage):
    return (usage.ru_utime + usage.ru_stime) * 1000


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.machine()


# ---- Pages ----


def short(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def figure(values):
    if not values:
        return "-"
    low, high = min(values), max(values)
    median = short(statistics.median(values))
    return median if low == high else f"{median} [{short(low)} to {short(high)}]"


def plain(values):
    return f"{statistics.median(values):,.0f}" if values else "-"


def column(values, index):
    return [value[index] for value in values]


def table(head, rows):
    lines = [f"| {' | '.join(head)} |", "|---|" + "---|" * (len(head) - 1)]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows]) + "\n"


def verdict(measure, limit):
    return "" if measure is None or limit is None else "yes" if measure <= limit else "**no**"


def marked(text, figures, by):
    """The text with `figures` between the marks."""
    begin, end = f"<!-- made by {by} -->\n", "<!-- until here -->"
    head, rest = text.split(begin)
    return f"{head}{begin}\n{figures}\n{end}{rest.split(end, 1)[1]}"


def check_pages(made, by):
    """Whether the pages are what the script makes of its results: an exit status."""
    stale = [path for path, text in made if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        print(f"{path.name} is not what results.json makes: {by} --pages", file=sys.stderr)
    return 1 if stale else 0


def arguments_of(documentation, works):
    """The arguments of scripts like this one."""
    parser = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=lambda folder: pathlib.Path(folder).resolve(),
                        default=ROOT / "build" / "bench" / "bench")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", action="append", choices=works)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--pages", action="store_true")
    parser.add_argument("--check", action="store_true")
    return parser.parse_args()
