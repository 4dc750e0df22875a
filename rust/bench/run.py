#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs what Haft for Rust and its peers do, in turn, and writes the report.

    rust/bench/run.py [--build DIR] [--repeats N]   all figures: results.json, and the pages made of it
    rust/bench/run.py --only WORK...                some of them; the others stay as they were
    rust/bench/run.py --pages                       the pages alone: report.md, and the marked tables
                                                    of rust/README.md
    rust/bench/run.py --check                       whether the pages are what results.json makes
    rust/bench/run.py --quick                       little of everything once; writes nothing

The programs are built here by cargo, in DIR/rust: those of this folder, of peers/ and of bench/io/tokio. The load of
TCP echo is bench/io/echo, built with the benchmarks, in DIR/io.
"""

import json
import os
import pathlib
import platform
import re
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "bench"))
import measuring  # noqa: E402

# The rows that are measured; the peers of which the best is compared with; what the ratio to that should be at most.
EFFECTS = {
    "switch": ("suspend and resume, a value each way", ["corosensei"], 1.0),
    "create": ("create, run to its end, drop", ["corosensei"], 1.0),
    "perform": ("perform, answered in place", ["Haft in C"], 1.3),
    "tree": ("an element of a recursive generator over a tree", ["corosensei", "genawaiter"], 1.0),
}
WORKS = {
    "spawn": ("spawn, run and join a task", 1_000_000),
    "yield": ("yield, two tasks that take turns", 2_000_000),
    "channel": ("a message over a channel and one back", 1_000_000),
    "skynet": ("skynet: a task of a million", 1_000_000),
}
MOST_WORK = 0.5
MOST_OWN = {"yield": 1.2}  # with thread-locals of a task's own, of the time without
CONNECTIONS = [64, 1000]
BACKENDS = ["epoll", "io_uring"]
MOST_ECHO = {"haft::net": 1.0, "std::net": 1.15}  # of Tokio's, on either back end
ROUNDS = 31


# ---- Measuring ----


def built_by_cargo(folder, target, *features):
    if not measuring.builds(["cargo", "build", "--release", "--quiet", *features], folder, {"CARGO_TARGET_DIR": str(target)}):
        return None
    return target / "release"


def programs(build):
    """Haft's first, which has to be there; by name. Where liburing is not installed, Haft has epoll only."""
    own = built_by_cargo(HERE, build / "haft", "--features", "io-uring") or built_by_cargo(HERE, build / "haft")
    if own is None:
        sys.exit("cargo does not build rust/bench")
    found = {"Haft": own / "work"}
    tokio = built_by_cargo(ROOT / "bench" / "io" / "tokio", build / "tokio")
    if tokio is not None:
        found["Tokio"] = tokio / "work"
    peers = built_by_cargo(HERE / "peers", build / "peers")
    if peers is not None:
        found.update({"may": peers / "may", "smol": peers / "smol"})
    return own / "haft-bench", found


def measure_effects(program, repeats, rounds):
    """The program measures in turns itself; each run gives a median."""
    figures = {row: {} for row in EFFECTS}
    for _ in range(repeats):
        for line in (measuring.measured([program, rounds], 1) or "").splitlines():
            row, who, figure = line.split("\t")
            figures[row].setdefault(who, []).append(float(figure))
    return figures


def measure_work(work, found, repeats, divisor):
    """Nanoseconds of processor time, the program's start included."""
    count = WORKS[work][1] // divisor

    def run(path, threads):
        usage = measuring.used_by([path, work, threads, count], threads)
        return None if usage is None else measuring.milliseconds_of(usage) * 1e6 / count
    return {str(threads): measuring.series({name: lambda path=path, threads=threads: run(path, threads)
                                            for name, path in found.items()}, repeats)
            for threads in measuring.THREADS}


def measure_own(path, repeats, divisor):
    """The same on one thread, also where each task has thread-locals of its own."""
    def run(work, *words):
        count = WORKS[work][1] // divisor
        usage = measuring.used_by([path, work, 1, count, *words], 1)
        return None if usage is None else measuring.milliseconds_of(usage) * 1e6 / count
    return {work: measuring.series({"shared": lambda work=work: run(work), "own": lambda work=work: run(work, "own")}, repeats)
            for work in WORKS}


def measure_echo(echo, found, repeats, seconds):
    """The server's microseconds a message, and messages a second."""
    kinds = {"Tokio": ("Tokio", {})}
    for backend in BACKENDS:
        chosen = {"HAFT_IO_BACKEND": backend}
        kinds[f"haft::net, {backend}"] = ("Haft", chosen)
        kinds[f"std::net, {backend}"] = ("Haft", {**chosen, "STD": "1"})

    def run(path, environment, connections):
        words = measuring.echo_words([echo, path, connections, 64, seconds], {"BUFFER": "1024", **environment})
        return None if words is None else [float(words[2]), float(words[0])]
    return {str(connections): measuring.series({name: lambda path=found[who], environment=environment, connections=connections:
                                                run(path, environment, connections)
                                                for name, (who, environment) in kinds.items() if who in found}, repeats)
            for connections in CONNECTIONS}


def versions(found):
    def pinned(path, name):
        return re.search(rf'^{name} = .*?"=([^"]*)"', path.read_text(encoding="utf-8"), re.MULTILINE)[1]
    own, peers, tokio = HERE / "Cargo.toml", HERE / "peers" / "Cargo.toml", ROOT / "bench" / "io" / "tokio" / "Cargo.toml"
    known = [*(f"{name} {pinned(own, name)}" for name in ("corosensei", "genawaiter")),
             *(f"{who} {pinned(path, who.lower())}" if who in found else f"{who} is missing"
               for who, path in (("Tokio", tokio), ("may", peers), ("smol", peers)))]
    return ", ".join([measuring.first_line("rustc", "--version").partition(" (")[0], measuring.first_line("cc", "--version"), *known])


# ---- Pages ----


def median(values):
    return statistics.median(values) if values else None


def ratio(figures, own, others):
    """The ratio of a median to the least of the others'."""
    known = [median(figures[name]) for name in others if figures.get(name)]
    return median(figures[own]) / min(known) if known and figures.get(own) else None


def judged(measure, limit):
    return ["-" if measure is None else f"{measure:.2f}", "-" if limit is None else str(limit), measuring.verdict(measure, limit)]


def effects_table(results):
    names = ["Haft", "corosensei", "genawaiter", "Haft in C", "by hand"]
    rows = [[what, *(measuring.figure(results["effects"][row].get(name)) for name in names),
             *judged(ratio(results["effects"][row], "Haft", peers), limit)]
            for row, (what, peers, limit) in EFFECTS.items()]
    return measuring.table(["an operation, ns", *names, "Haft / better peer", "at most", "met"], rows)


def work_table(results):
    names = ["Haft", "Tokio", "may", "smol"]
    rows = []
    for work, (what, _) in WORKS.items():
        for threads, words in measuring.THREADS.items():
            figures = results["work"][work][str(threads)]
            rows.append([f"{what}, {words}", *(measuring.figure(figures.get(name)) for name in names),
                         *judged(ratio(figures, "Haft", names[1:]), MOST_WORK)])
    return measuring.table(["an operation, ns", *names, "Haft / best peer", "at most", "met"], rows)


def own_section(results):
    if "own" not in results:
        return ""
    rows = []
    for work, (what, _) in WORKS.items():
        figures = results["own"][work]
        rows.append([what, measuring.figure(figures.get("shared")), measuring.figure(figures.get("own")),
                     *judged(ratio(figures, "own", ["shared"]), MOST_OWN.get(work))])
    table = measuring.table(["an operation, ns", "of the thread", "of the task's own", "own / the thread's", "at most", "met"], rows)
    return f"""## Thread-locals of a task's own

The same on one thread, by runs that take turns with and without `Options::own_thread_locals`. Most of the difference of a yield is the processor's for writing the thread pointer (docs/io.md).

{table}
"""


def echo_table(results):
    rows = []
    for connections, pairs in results["echo"].items():
        figures = {name: measuring.column(values, 0) for name, values in pairs.items()}
        for way, limit in MOST_ECHO.items():
            for backend in BACKENDS:
                kind = f"{way}, {backend}"
                rows.append([f"{int(connections):,} connections, by {kind}", measuring.figure(figures.get(kind)),
                             measuring.figure(figures.get("Tokio")), *judged(ratio(figures, kind, ["Tokio"]), limit)])
    return measuring.table(["us a message", "Haft", "Tokio", "Haft / Tokio", "at most", "met"], rows)


def report(results):
    return f"""# Benchmarks of Haft for Rust

Written by `rust/bench/run.py`. {results['machine']}, {results['date']}; {results['versions']}. Medians of {results['repeats']} runs that take turns [least to most]; compare figures of one row only. `cargo bench` in `rust/bench` measures the first table by criterion, one loop after the other.

## Effects

Processor time. Each run is itself a series of {ROUNDS} rounds in which the loops take turns. corosensei's coroutines run on one stack that is used again where they are created, and switch between two stacks, no more: there are no handlers to find, and none that a coroutine carries along. Of the 51 instructions of Haft's resume and perform 10 find and change the handlers in scope, 3 see that they are those of before, and 6 that C++ handles no exception; corosensei's are 32 (docs/rust.md, Effects). "By hand" is an iterator with a stack of its own.

{effects_table(results)}
## Tasks

Processor time of the whole program, on all its threads. Tokio's current-thread runtime and smol's local executor on one thread; Tokio's multi-thread runtime and one executor of smol's for all on two; may's workers. may's channel has no bound. A peer without a figure has failed: may's million coroutines need more mappings of memory than Linux gives a process.

{work_table(results)}
{own_section(results)}## TCP echo

Messages of 64 bytes; the server's processor time a message, from when each connection has exchanged one; server and load have a processor each. `haft::net` reads into memory that is lent; the others have a buffer of 1 KiB for each connection.

{echo_table(results)}"""


def readme_tables(results):
    rows = [[what, f"{median(results['effects'][row]['Haft']):.1f}",
             ", ".join(f"{name} {median(values):.1f}" for name, values in results["effects"][row].items() if name != "Haft")]
            for row, (what, _, _) in EFFECTS.items()]
    for work, (what, _) in WORKS.items():
        figures = results["work"][work]["1"]
        rows.append([what, measuring.plain(figures["Haft"]),
                     ", ".join(f"{name} {measuring.plain(values)}" for name, values in figures.items() if name != "Haft" and values)])
    return measuring.table(["ns, on one thread", "Haft", "beside it"], rows)


def pages(results):
    yield HERE / "report.md", report(results)
    readme = HERE.parent / "README.md"
    yield readme, measuring.marked(readme.read_text(encoding="utf-8"), readme_tables(results), "rust/bench/run.py")


def main():
    arguments = measuring.arguments_of(__doc__, ["effects", *WORKS, "own", "echo"])
    kept = HERE / "results.json"
    results = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {"work": {}}
    if arguments.check:
        return measuring.check_pages(pages(results), "rust/bench/run.py")
    if not arguments.pages:
        quick = arguments.quick
        repeats = 1 if quick else arguments.repeats
        effects, found = programs(arguments.build / "rust")
        for name in arguments.only or ["effects", *WORKS, "own", "echo"]:
            print(f"  {name}", file=sys.stderr)
            if name == "effects":
                results[name] = measure_effects(effects, repeats, 1 if quick else ROUNDS)
            elif name == "own":
                results[name] = measure_own(found["Haft"], repeats, measuring.PARTS_IF_QUICK if quick else 1)
            elif name == "echo":
                results[name] = measure_echo(arguments.build / "io" / "echo", found, repeats, 0.1 if quick else 0.5)
            else:
                results["work"][name] = measure_work(name, found, repeats, measuring.PARTS_IF_QUICK if quick else 1)
        results.update({
            "versions": versions(found),
            "machine": f"{measuring.processor()}, {os.cpu_count()} processors, {platform.system()} {platform.machine()}",
            "date": time.strftime("%Y-%m-%d"), "repeats": repeats})
        if quick:
            report(results)
            return 0
        kept.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    for path, text in list(pages(results)):
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
