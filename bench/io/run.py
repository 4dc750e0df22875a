#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the work of libhaft-io and its peers, in turn, and writes the report.

    bench/io/run.py [--build DIR] [--repeats N]   all figures: results.json, and the pages made of it
    bench/io/run.py --only WORK...                some of them; the others stay as they were
    bench/io/run.py --pages                       the pages alone: report.md, and the marked tables
                                                  of README.md and docs/io.md
    bench/io/run.py --check                       whether the pages are what results.json makes
    bench/io/run.py --quick                       little of everything once; writes nothing

Peers are built here from their sources, in DIR/io/peers: Go with its standard library, Tokio as
its crate; those on Boost and libuv are built with the benchmarks. One whose compiler or
library is missing is left out; where one has no such thing, or fails, or takes longer than two
minutes, there is no figure. One process at a time, each on as many processors as it has threads.
"""

import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "bench"))
from measuring import (PARTS_IF_QUICK, THREADS, arguments_of, builds, check_pages, column, echo_words, figure,  # noqa: E402
                       first_line, marked, measured, mebibytes_of, milliseconds_of, number_of, plain, processor,
                       series, table, used_by, verdict)

# Each work: an operation, how many, and the most that its ratio to the best peer should be on one thread and on two.
WORKS = {
    "spawn": ("spawn, run and join a task", 1_000_000, 0.25, 0.25),
    "yield": ("yield, two tasks that take turns", 2_000_000, 0.4, 0.4),
    "channel": ("a message over a channel and one back", 1_000_000, 0.4, 1),
    "skynet": ("skynet: a task of a million", 1_000_000, 0.6, 0.6),
    "mutex": ("contended mutex, 1,000 tasks: a lock", 1_000_000, 0.6, 0.6),
    "timers": ("a million timers, half cancelled: a timer", 1_000_000, 0.7, 0.7),
    "chameneos": ("chameneos: a meeting", 200_000, 0.6, 0.6),
    "cancel": ("a cancelled wait, to the task's end", 100_000, None, None),
    "nothing": ("nothing to do but a timer of a second (not ns): how often its threads slept",
                1_000, None, None),
}
ON_FRONT = ["spawn", "yield", "channel", "skynet", "mutex"]
CONNECTIONS = [(1, 64), (64, 64), (1000, 64), (10000, 64), (1, 16384), (64, 16384), (1000, 16384), (10000, 16384)]
ON_TWO = [64, 1000, 10000]  # connections of a server with two threads
# Beside as many computing processes as processors, and alone with more threads than processors: work, threads, whether
# beside others, how many. Haft's may take so many times what the better peer's takes.
CROWDED = [("apart", 2, False, 20_000), ("apart", 2, True, 5_000), ("apart", 4, False, 20_000), ("apart", 4, True, 5_000),
           *((work, threads, crowded, 200_000) for work in ("spawn", "channel", "mutex")
             for threads, crowded in ((2, True), (4, False), (4, True)))]
MOST_CROWDED = 1.5
MOST_RECORDED = 60  # ns
MOST_TRACED = 15  # ns an event
READING = "a reading of the counter"
OTHERS = ["echo", "idle", "neighbours", "crowded", "recorded", "traced"]
APART = "a message between two threads and one back"
NEIGHBOURS = {"alone": "alone", "flood": "beside 4 that flood with 16 KiB", "compute": "beside 2 tasks that compute 1 ms and yield"}
IDLE = 19000  # the server and the load each have so many descriptors
MOST_TRIPS = [("spawn", 1, 6), ("spawn", 2, 10), ("yield", 1, 3)]  # in perform-resume round trips


# ---- Measuring ----


def build_peers(folder):
    """The peers' programs, by name."""
    peers = {}
    if builds(["go", "build", "-o", folder / "go" / "work", "."], HERE / "go"):
        peers["Go"] = folder / "go" / "work"
    if builds(["cargo", "build", "--release", "--quiet"], HERE / "tokio", {"CARGO_TARGET_DIR": str(folder / "tokio")}):
        peers["Tokio"] = folder / "tokio" / "release" / "work"
    for name, program in (("Boost.Asio", "asio"), ("asio::spawn", "asio_spawn"), ("Boost.Fiber", "boost_fiber"),
                          ("libuv", "libuv")):
        if (folder.parent / program).exists():
            peers[name] = folder.parent / program
    return peers


def versions(peers):
    """The machine and the versions on which the figures depend."""
    locked = HERE / "tokio" / "Cargo.lock"
    tokio = re.search(r'name = "tokio"\nversion = "([^"]*)"', locked.read_text(encoding="utf-8")) if locked.exists() else None
    header = pathlib.Path("/usr/include/boost/version.hpp")
    boost = re.search(r'BOOST_LIB_VERSION "(.*)"', header.read_text(encoding="utf-8")) if header.exists() else None
    known = {"Go": first_line("go", "version").removeprefix("go version go").split(" ")[0],
             "Tokio": tokio[1] if tokio else "", "Boost.Asio": boost[1].replace("_", ".") if boost else "",
             "asio::spawn": "", "Boost.Fiber": "",
             "libuv": first_line("pkg-config", "--modversion", "libuv")}
    parts = [f"{name} {version}".strip() if name in peers else f"{name} is missing" for name, version in known.items()]
    return ", ".join([f"{platform.system()} {platform.release().split('-')[0]}", first_line("cc", "--version"), *parts])


def echo_on_two(echo, kind, connections, seconds):
    """A server with two threads: messages a second, and microseconds a message."""
    words = echo_words([echo, kind, connections, 64, seconds], {"BUFFER": "1024", "THREADS": "2"})
    return None if words is None else [float(words[0]), float(words[2])]


def echo_figures(echo, kind, connections, size, seconds):
    """Messages a second, and microseconds a message, in all and in user mode, which has a run of its own."""
    command, environment = [echo, kind, connections, size, seconds], {"BUFFER": str(max(size, 1024))}
    whole, in_user_mode = echo_words(command, environment), echo_words([*command, "samples"], environment)
    if whole is None or in_user_mode is None:
        return None
    return [float(whole[0]), float(whole[2]), float(in_user_mode[0])]


def measure_work(work, programs, repeats, divisor):
    return {
        str(threads): series(
            {name: lambda path=path, threads=threads:
                number_of(measured([path, work, threads, WORKS[work][1] // divisor], threads))
             for name, path in programs.items()}, repeats)
        for threads in THREADS
    }


def measure_echo(echo, programs, repeats, seconds):
    kinds = {"by hand, epoll": "loop", "by hand, io_uring": "ring", "Haft, epoll": "epoll",
             "Haft, io_uring": "io_uring",
             **{name: path for name, path in programs.items() if name not in ("Haft", "Boost.Fiber")}}
    return [
        {"connections": connections, "bytes": size,
         "figures": series(
             {name: lambda kind=kind, connections=connections, size=size:
                 echo_figures(echo, kind, connections, size, seconds)
              for name, kind in kinds.items()}, repeats)}
        for connections, size in CONNECTIONS
    ]


def measure_echo_on_two(echo, programs, repeats, seconds):
    kinds = {"Haft, epoll": "epoll", "Haft, io_uring": "io_uring", "Go": programs.get("Go"), "Tokio": programs.get("Tokio")}
    return {str(connections): series({name: lambda kind=kind, connections=connections:
                                      echo_on_two(echo, kind, connections, seconds)
                                      for name, kind in kinds.items() if kind is not None}, repeats)
            for connections in ON_TWO}


class Computing:
    """Starts processes that compute, as many as there are processors, if there are to be any."""

    def __init__(self, wanted):
        self.wanted = os.cpu_count() if wanted else 0

    def __enter__(self):
        self.processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(self.wanted)]

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


def measure_crowded(programs, repeats, divisor):
    entries = []
    for work, threads, crowded, count in CROWDED:
        with Computing(crowded):
            entries.append({"work": work, "threads": threads, "beside": os.cpu_count() if crowded else 0, "figures": series(
                {name: lambda path=programs[name], work=work, threads=threads, count=count:
                    number_of(measured([path, work, threads, count // divisor], os.cpu_count()))
                 for name in ("Haft", "Go", "Tokio") if name in programs}, repeats)})
    return entries


def measure_neighbours(neighbours, programs, repeats, seconds):
    """The median and the 99th percentile of what a quiet connection waits, in microseconds."""
    kinds = {"Haft, epoll": ("Haft", {"HAFT_IO_BACKEND": "epoll"}), "Haft, io_uring": ("Haft", {"HAFT_IO_BACKEND": "io_uring"}),
             "Go": ("Go", {}), "Tokio": ("Tokio", {})}

    def run(path, mode, environment):
        text = measured([neighbours, path, mode, seconds], 2, environment)
        return None if text is None else [float(word) for word in text.split()]
    return {mode: series({name: lambda path=programs[program], mode=mode, environment=environment: run(path, mode, environment)
                          for name, (program, environment) in kinds.items() if program in programs}, repeats)
            for mode in NEIGHBOURS}


def measure_recorded(program, repeats):
    """Returns by back ends what recorded.c prints."""
    file = pathlib.Path("/dev/shm") / f"haft-recorded.{os.getpid()}"

    def run(backend):
        text = measured([program, file], 1, {"HAFT_IO_BACKEND": backend})
        return None if text is None else [float(word) for word in text.split()]
    try:
        return series({backend: lambda backend=backend: run(backend) for backend in ("epoll", "io_uring")}, repeats)
    finally:
        file.unlink(missing_ok=True)


def measure_traced(program, repeats):
    """By work: nanoseconds without a trace and in one, and events; and those of a reading of the counter."""
    figures = {}
    for _ in range(repeats):
        text = measured([program, "/dev/shm"], 1)
        for line in text.splitlines() if text is not None else []:
            name, _, numbers = line.rpartition(":")
            figures.setdefault(name, []).append([float(word) for word in numbers.split()])
    return figures


def measure_trip(micro, repeats):
    """Nanoseconds of a perform and its resumption."""
    runs = [measured([micro, "--only", "haft/round-trip"], 1) for _ in range(repeats)]
    return [float(line.split()[1]) for text in runs if text for line in text.splitlines() if line.startswith("haft/round-trip ")]


def measure_used(work, programs, repeats, divisor, of):
    """`of` what the work uses."""
    def run(path, threads):
        usage = used_by([path, work, threads, WORKS[work][1] // divisor], threads)
        return None if usage is None else of(usage)
    return {str(threads): series({name: lambda path=path, threads=threads: run(path, threads)
                                  for name, path in programs.items()}, repeats)
            for threads in THREADS}


def measure_idle(echo, programs, connections):
    return {
        "connections": connections,
        "figures": {name: [number_of(measured([echo, path, connections, 64, 0], 2, {"BUFFER": "1024", **environment}))]
                    for name, path, environment in [*((name, path, {}) for name, path in programs.items()),
                                                    ("Haft, dense", programs["Haft"], {"DENSE": "1"}),
                                                    ("Haft, dense, lent", "dense", {})] if name != "Boost.Fiber"},
    }


# ---- Pages ----


def ratio(figures):
    """The ratio of Haft's median to the best peer's."""
    others = [statistics.median(values) for name, values in figures.items() if name != "Haft" and values]
    return statistics.median(figures["Haft"]) / min(others) if others and figures.get("Haft") else None


def work_table(results):
    names = list(next(iter(results["work"].values()))["1"])
    rows = []
    for work, (what, _, *limits) in WORKS.items():
        for (threads, words), limit in zip(THREADS.items(), limits):
            figures = results["work"].get(work, {}).get(str(threads))
            if figures is None:
                continue
            measure = ratio(figures) if limit else None
            rows.append([f"{what}, {words}", *(figure(figures.get(name)) for name in names),
                         "" if measure is None else f"{measure:.2f}", str(limit or ""), verdict(measure, limit)])
    return table(["an operation, ns", *names, "Haft / better peer", "at most", "met"], rows)


# The limits of an echo: of which figure (messages a second, time a message, of that in user mode) the least of
# these may be how many times the least of those.
ECHO_LIMITS = [("loops by hand", 1, "by hand", 1.03), ("Tokio", 1, "Tokio", 1), ("Go", 1, "Go", 0.8),
               ("Tokio, user mode", 2, "Tokio", 0.6)]


def echo_ratio(figures, index, peer):
    """The least median of Haft's kinds to the least of the peer's."""
    ours, theirs = ([statistics.median(column(values, index)) for name, values in figures.items()
                     if name.startswith(start) and values] for start in ("Haft", peer))
    return min(ours) / min(theirs) if ours and theirs and min(theirs) > 0 else None


def echo_tables(entries):
    names = list(entries[0]["figures"])
    figures_rows, ratio_rows = [], []
    for entry in entries:
        figures = entry["figures"]
        what = f"{entry['connections']:,} connections, {entry['bytes']:,} bytes"
        figures_rows.append([what, *(
            f"{statistics.median(column(figures[name], 1)):.2f} ({statistics.median(column(figures[name], 2)):.2f}; "
            f"{statistics.median(column(figures[name], 0)) / 1000:.0f}k)" if figures.get(name) else "-"
            for name in names)])
        measures = [(echo_ratio(figures, index, peer), limit) for _, index, peer, limit in ECHO_LIMITS]
        ratio_rows.append([what, *("-" if measure is None else f"{measure:.2f} {verdict(measure, limit)}"
                                   for measure, limit in measures)])
    return (table(["us a message (in user mode; messages a second)", *names], figures_rows) + "\n" +
            table(["Haft, the better back end, to", *(f"{what}: at most {limit}" for what, _, _, limit in ECHO_LIMITS)],
                  ratio_rows))


def echo_on_two_table(entries):
    names = list(next(iter(entries.values())))
    return table(["us a message (messages a second)", *names],
                 [[f"{int(connections):,} connections, 64 bytes", *(
                     f"{figure(column(figures[name], 1))} ({statistics.median(column(figures[name], 0)) / 1000:.0f}k)"
                     if figures.get(name) else "-" for name in names)] for connections, figures in entries.items()])


def crowded_table(entries):
    rows = []
    for entry in entries:
        what = APART if entry["work"] == "apart" else WORKS[entry["work"]][0]
        others = f", beside {entry['beside']} that compute" if entry["beside"] else ""
        measure = ratio(entry["figures"])
        rows.append([f"{what}, {entry['threads']} threads{others}", *(figure(values) for values in entry["figures"].values()),
                     "" if measure is None else f"{measure:.2f}", str(MOST_CROWDED), verdict(measure, MOST_CROWDED)])
    return table(["an operation, ns", *entries[0]["figures"], "Haft / better peer", "at most", "met"], rows)


def neighbours_table(entries):
    names = list(next(iter(entries.values())))
    return table(["us: median; 99th percentile", *names],
                 [[what, *(f"{figure(column(entries[mode][name], 0))}; {figure(column(entries[mode][name], 1))}"
                           if entries[mode].get(name) else "-" for name in names)] for mode, what in NEIGHBOURS.items()])


def recorded_table(entries):
    rows = []
    for backend, runs in entries.items():
        for index, what in ((0, "an operation with its switch of tasks"), (3, "a reading of the time")):
            more = column(runs, index + 2)
            rows.append([f"{what}, {backend}", figure(column(runs, index)), figure(column(runs, index + 1)), figure(more),
                         str(MOST_RECORDED), verdict(statistics.median(more), MOST_RECORDED)])
    return table(["ns", "as it is", "recorded", "more", "at most", "met"], rows)


def traced_table(figures):
    rows = []
    for name, runs in figures.items():
        if name == READING:
            continue
        events = statistics.median(column(runs, 2))
        costs = [(traced - plain) / events for plain, traced, _ in runs]
        rows.append([name, figure(column(runs, 0)), figure(column(runs, 1)), f"{events:.1f}", figure(costs), str(MOST_TRACED),
                     verdict(statistics.median(costs), MOST_TRACED)])
    return table(["ns", "without a trace", "in a trace", "events", "an event", "at most", "met"], rows)


def crowded_report(results):
    text = ""
    if "traced" in results:
        text += f"""
## A trace that is on

By turns in one process, into a file in memory. A reading of the processor's counter takes {figure(column(results["traced"][READING], 0))} ns here.

{traced_table(results["traced"])}"""
    if "recorded" in results:
        bytes_of = statistics.median(column(next(iter(results["recorded"].values())), 6))
        text += f"""
## A run that is recorded

Into a file in memory, by the processor's time of the thread: two tasks exchange a byte over a pair of sockets, and one reads the time. (What comes in takes about a nanosecond a byte beside that: the system's time for new memory of the file.) The record takes {bytes_of:.1f} bytes for each, with what has come.

{recorded_table(results['recorded'])}"""
    if "neighbours" in results:
        text += f"""
## Latency beside neighbours

How long 1,000 quiet connections to an echo server of one thread wait for the answer, which has the second processor for itself; the load is on the first.

{neighbours_table(results['neighbours'])}"""
    if "crowded" in results:
        text += f"""
## On a machine with other work

As many processes that compute as processors, or more threads than these. `apart` keeps its two tasks on two threads: Go's by LockOSThread, Tokio's on two runtimes of a thread each.

{crowded_table(results['crowded'])}"""
    return f"{text.lstrip()}\n" if text else ""


def trips_table(results):
    trip = statistics.median(results["round_trip"])
    rows = []
    for work, threads, limit in MOST_TRIPS:
        measure = statistics.median(results["work"][work][str(threads)]["Haft"]) / trip
        rows.append([f"{WORKS[work][0]}, {THREADS[threads]}", f"{measure:.1f}", str(limit), verdict(measure, limit)])
    return f"A perform and its resumption take {trip:.2f} ns in the same series:\n\n" + table(
        ["in round trips", "Haft", "at most", "met"], rows)


def used_table(used, what, judged, judge):
    """A row for so many threads; `judge` makes the last columns of its figures."""
    names = list(used["1"])
    return table([what, *names, *judged],
                 [[words, *(figure(used[str(threads)].get(name)) for name in names), *judge(used[str(threads)])]
                  for threads, words in THREADS.items()])


def less_than_go(figures):
    go = figures.get("Go")
    return [verdict(statistics.median(figures["Haft"]), statistics.median(go)) if go else ""]


def at_most(limit):
    def judge(figures):
        measure = ratio(figures)
        return ["" if measure is None else f"{measure:.2f}", str(limit), verdict(measure, limit)]
    return judge


def front_table(results):
    names = ["Haft", "Go", "Tokio"]
    return table(["one thread, ns", *names],
                 [[WORKS[work][0], *(plain(results["work"][work]["1"].get(name)) for name in names)]
                  for work in ON_FRONT])


def guide_table(results):
    names = list(results["work"]["spawn"]["1"])
    head = ["ns, on one thread / on two", *names]
    rows = [[WORKS[work][0], *(" / ".join(plain(by_threads[threads].get(name)) for threads in ("1", "2"))
                               for name in names)]
            for work, by_threads in results["work"].items() if work != "nothing"]
    return table(head, rows)


def report(results):
    idle = results["idle"]
    return f"""# Benchmarks of libhaft-io

Written by `bench/io/run.py`. {results['machine']}, {results['date']}; {results['versions']}. Medians of {results['repeats']} runs that take turns [least to most]; compare figures of one row only. The peers use what their own documentation recommends: {results['peers']}.

## Tasks

{work_table(results)}
Haft's million tasks are on small stacks (`.dense`). The last timer fires after 500 ms, so no program can come below 500 ns a timer. What the whole program takes of the processors for them:

{used_table(results['processor'], "a million timers: processor time, ms", ["Haft / better peer", "at most", "met"], at_most(WORKS["timers"][2]))}
{trips_table(results)}
{used_table(results['peaks'], "skynet: peak resident memory, MiB", ["less than Go's"], less_than_go)}
## TCP echo

The server's processor time a message, from when each connection has exchanged one; server and load have a processor each, and each run takes half a second. The peers' buffers are as large as a message, and 1 KiB at least. Time in user mode is from a run of its own, by samples of the kernel every tenth of a millisecond. Haft reads into memory that is lent (`haft_io_read_lent`); the peers have a buffer for each connection.

{echo_tables(results['echo'])}
The same where the server has two threads, which share both processors with the load: each took as much of them as it could get, and the load the rest.

{echo_on_two_table(results['echo_on_two'])}
{crowded_report(results)}## Memory

Resident memory of the server, page tables included, for each of {idle['connections']:,} connections that have exchanged one message and are idle. All have buffers of 1 KiB, Haft's on the stacks, which are small in its second figure (`.dense`); in its last it reads into memory that is lent. To be reached: 5 KiB, and less than Go's.

{table(["", *idle["figures"]], [["KiB", *(figure([value for value in values if value is not None]) for values in idle["figures"].values())]])}"""


def pages(results):
    yield HERE / "report.md", report(results)
    for path, figures in ((ROOT / "README.md", front_table(results)), (ROOT / "docs/io.md", guide_table(results))):
        yield path, marked(path.read_text(encoding="utf-8"), figures, "bench/io/run.py")


def main():
    arguments = arguments_of(__doc__, [*WORKS, *OTHERS])
    kept = HERE / "results.json"
    results = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {"work": {}}
    if arguments.check:
        return check_pages(pages(results), "bench/io/run.py")
    if not arguments.pages:
        quick = arguments.quick
        repeats = 1 if quick else arguments.repeats
        programs = {"Haft": arguments.build / "io" / "work", **build_peers(arguments.build / "io" / "peers")}
        echo = arguments.build / "io" / "echo"
        wanted = arguments.only or [*WORKS, *OTHERS]
        for name in wanted:
            print(f"  {name}", file=sys.stderr)
            if name == "echo":
                results["echo"] = measure_echo(echo, programs, repeats, 0.1 if quick else 0.5)
                results["echo_on_two"] = measure_echo_on_two(echo, programs, repeats, 0.1 if quick else 1)
            elif name == "neighbours":
                results[name] = measure_neighbours(echo.with_name(name), programs, repeats, 0.2 if quick else 1)
            elif name == "crowded":
                results[name] = measure_crowded(programs, repeats, 10 if quick else 1)
            elif name == "recorded":
                results[name] = measure_recorded(echo.with_name(name), repeats)
            elif name == "traced":
                results[name] = measure_traced(echo.with_name(name), repeats)
            elif name == "idle":
                results["idle"] = measure_idle(echo, programs, 1000 if quick else IDLE)
            else:
                parts = PARTS_IF_QUICK if quick and name != "nothing" else 1
                results["work"][name] = measure_work(name, programs, repeats, parts)
        micro = arguments.build / "micro"
        if {"spawn", "yield"} & set(wanted) or "round_trip" not in results:
            results["round_trip"] = measure_trip(micro, repeats)
        parts = PARTS_IF_QUICK if quick else 1
        if "skynet" in wanted or "peaks" not in results:
            results["peaks"] = measure_used("skynet", programs, 1, parts, mebibytes_of)
        if "timers" in wanted or "processor" not in results:
            results["processor"] = measure_used("timers", programs, repeats, parts, milliseconds_of)
        results.update({
            "versions": versions(programs),
            "machine": f"{processor()}, {os.cpu_count()} processors, {platform.system()} {platform.machine()}",
            "date": time.strftime("%Y-%m-%d"), "repeats": repeats,
            "peers": "Go's goroutines and channels, with as many processors as threads; Tokio's runtime of one "
                     "thread, or of as many workers, built with optimisation; Boost.Asio's C++20 coroutines with a "
                     "concurrency hint, without what its 1.74 has not; asio::spawn, the same with stacks; Boost.Fiber with "
                     "its pool of stacks on one thread and work stealing on two; libuv's callbacks, on one thread"})
        if quick:
            report(results)
            return 0
        kept.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    for path, text in list(pages(results)):
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
