#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the work of work.c with libhaft-io and its peers, by turns, and prints a table.

    bench/io/run.py [--build DIR] [--repeats N] [--only WORK...] [--quick]

Peers are built here from their sources, in DIR/io/peers: Go with its standard library, Tokio as
its crate. One whose compiler is missing is left out. A figure is the median of the elapsed nanoseconds
an operation (echo: of the server's processor time a message, in microseconds), with the least and the
most, and the ratio is that of Haft's median to the best peer's. One process at a time, each on as many
processors as it has threads.
"""

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
# Operations, and what a ratio to the best peer should be at most on one thread and on two.
WORKS = {
    "spawn": (1_000_000, 0.25, 0.25),
    "yield": (2_000_000, 0.4, 0.4),
    "channel": (1_000_000, 0.4, 1),
    "skynet": (1_000_000, 0.6, 0.6),
    "mutex": (1_000_000, 0.6, 0.6),
    "timers": (1_000_000, 0.7, 0.7),
    "chameneos": (200_000, 0.6, 0.6),
    "cancel": (100_000, None, None),
}
CONNECTIONS = [(1, 64), (64, 64), (1000, 64), (64, 16384)]


def build_peers(folder):
    """The peers' programs, by name."""
    peers = {}
    if shutil.which("go"):
        path = folder / "go" / "work"
        subprocess.run(["go", "build", "-o", path, "."], cwd=HERE / "go", check=True)
        peers["Go"] = path
    if shutil.which("cargo"):
        environment = {**os.environ, "CARGO_TARGET_DIR": str(folder / "tokio")}
        subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=HERE / "tokio",
                       env=environment, check=True)
        peers["Tokio"] = folder / "tokio" / "release" / "work"
    return peers


def measured(command, processors):
    """What one process prints, on so many processors."""
    def pin():
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-processors:])
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True,
                          preexec_fn=pin).stdout


def series(runs, repeats):
    """Figures of each run, taken by turns."""
    figures = {name: [] for name in runs}
    for turn in range(repeats):
        order = list(runs.items())
        for name, run in order if turn % 2 == 0 else reversed(order):
            figures[name].append(run())
    return figures


def row(what, figures, limit):
    cells = [f"{statistics.median(f):.4g} ({min(f):.4g} to {max(f):.4g})" for f in figures.values()]
    others = [statistics.median(f) for name, f in figures.items() if name != "Haft"]
    ratio = f"{statistics.median(figures['Haft']) / min(others):.2f}" if others else "-"
    print(f"| {what} | {' | '.join(cells)} | {ratio} | {limit if limit else '-'} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=lambda folder: pathlib.Path(folder).resolve(), default=HERE.parents[1] / "build" / "bench" / "bench")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", action="append", choices=[*WORKS, "echo"])
    parser.add_argument("--quick", action="store_true", help="a hundredth of the operations, once")
    arguments = parser.parse_args()
    repeats = 1 if arguments.quick else arguments.repeats
    programs = {"Haft": arguments.build / "io" / "work", **build_peers(arguments.build / "io" / "peers")}

    print(f"| work | {' | '.join(f'{name}, ns' for name in programs)} | Haft / best peer | at most |")
    print("|---|" + "---|" * (len(programs) + 2))
    for work, (count, *limits) in WORKS.items():
        if arguments.only and work not in arguments.only:
            continue
        count = count // 100 if arguments.quick else count
        for threads, limit in zip((1, 2), limits):
            runs = {
                name: lambda path=path: float(measured([path, work, threads, count], threads))
                for name, path in programs.items()
            }
            row(f"{work}, {threads} thread{'s' * (threads > 1)}", series(runs, repeats), limit)
    if arguments.only and "echo" not in arguments.only:
        return 0
    kinds = {"by hand, epoll": "loop", "by hand, io_uring": "ring", "Haft, epoll": "epoll", "Haft, io_uring": "io_uring",
             **{name: path for name, path in programs.items() if name != "Haft"}}
    print(f"\n| echo: server's processor time a message, us | {' | '.join(kinds)} |")
    print("|---|" + "---|" * len(kinds))
    for connections, size in CONNECTIONS:
        command = [arguments.build / "io" / "echo"]
        runs = {
            name: lambda kind=kind: float(
                measured([*command, kind, connections, size, 0.1 if arguments.quick else 1], 2)
                .split("messages/s, ")[1].split()[0])
            for name, kind in kinds.items()
        }
        cells = [f"{statistics.median(f):.2f}" for f in series(runs, repeats).values()]
        print(f"| {connections} connections, {size} bytes | {' | '.join(cells)} |", flush=True)
    connections = 1000 if arguments.quick else 10_000
    print(f"\n| memory a connection, KiB, {connections} idle, buffers of 1 KiB | {' | '.join(programs)} |")
    print("|---|" + "---|" * len(programs))
    os.environ["BUFFER"] = "1024"
    cells = [measured([arguments.build / "io" / "echo", path, connections, 64, 0], 2).strip()
             for path in programs.values()]
    print(f"| resident, with page tables | {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
