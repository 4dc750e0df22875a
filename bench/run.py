#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the benchmarks, Haft beside its peers, and writes the report.

    bench/run.py [--build DIR]              all figures: results.json, and the pages made of it
    bench/run.py --pages                    the pages alone, report.md and figures.svg, from
                                            results.json: nothing else writes figures into a page
    bench/run.py --check                    whether the pages are what results.json makes
    bench/run.py --only micro --only depth  some of them, put in place of what results.json had
    bench/run.py --program skynet           some of the programs
    bench/run.py --large                    the programs at the sizes of the public set, and
                                            a batch of a million fibers (13 GB)
    bench/run.py --quick                    every program once at its small size, results checked;
                                            writes nothing, what the tests run

Whatever is compared runs in one interleaved series, because a figure alone means nothing on a
shared machine: programs are run round robin, one process each; microbenchmarks interleave their
slices inside one process, and a ratio is the median of the ratios within a round. A binary that
was not built (a peer that is not installed) is left out and named.
"""

import argparse
import json
import os
import pathlib
import platform
import sys
import time

import measuring
from drawing import drawing
from judging import spread, targets_of
from promised import EVERYTHING, PROGRAMS, PROMISE_COLUMNS, SPREAD, TARGETS
from running import (
    Failure,
    check,
    compare_objects,
    executables,
    run,
    run_compile,
    run_memory,
    run_programs,
    run_series,
    run_waiting,
    series_binaries,
    waiting_commands,
)
from tables import report


def pages(results):
    """Every page that has figures, by its name, from what results.json holds."""
    return {"report.md": report(results), "figures.svg": drawing(results)}


def write_pages(results, folder):
    for name, text in pages(results).items():
        (folder / name).write_text(text, encoding="utf-8")


def check_pages(results, folder):
    stale = [
        name
        for name, text in pages(results).items()
        if (folder / name).read_text(encoding="utf-8") != text
    ]
    for name in stale:
        print(f"{folder / name} is not what results.json makes: run bench/run.py --pages")
    return 1 if stale else 0


def quick(build):
    failures = ran = 0
    commands = [
        ([*command, a_program.small.argument], a_program.small)
        for a_program in PROGRAMS
        for _, command in executables(build, a_program)
    ]
    commands += [
        ([path, "--quick"], None) for name in TARGETS for _, path in series_binaries(build, name)
    ]
    commands += [(command, None) for _, command, _ in waiting_commands(build, "small")]
    for command, size in commands:
        ran += 1
        try:
            output, _, _ = run(command)
            if size:
                check(command[0], size, output)
        except Failure as failure:
            print(failure, file=sys.stderr)
            failures += 1
    try:
        ran += len(run_memory(build, quick=True))
    except Failure as failure:
        print(failure, file=sys.stderr)
        failures += 1
    print(f"{ran} benchmarks, {failures} failures")
    return 1 if failures or not ran else 0


def measure(arguments, wanted):
    """Everything that was asked for; what fails is noted and does not stop the rest."""
    build = arguments.build
    results = {
        "machine": f"{measuring.processor()}, {os.cpu_count()} processors, "
        f"{platform.system()} {platform.machine()}",
        "date": time.strftime("%Y-%m-%d"),
        "failures": [],
        "series": {},
    }
    for name in wanted:
        print(f"  {name}", file=sys.stderr)
        try:
            if name == "programs":
                results[name] = run_programs(
                    build, arguments.repeats, arguments.large, arguments.program
                )
            elif name == "memory":
                results[name] = run_memory(build, quick=False)
            elif name == "waiting":
                results[name] = run_waiting(build, arguments.repeats)
            elif name == "compile":
                results[name] = run_compile(build, arguments.repeats)
            elif series_binaries(build, name):
                results["series"][name] = run_series(
                    build, name, arguments.processes, arguments.rounds
                )
                if name == "ocaml/table1":
                    results["ocaml_objects"] = compare_objects(build)
        except Failure as failure:
            print(failure, file=sys.stderr)
            results["failures"].append(name)
    return results


def summarise(results):
    """The results without the samples of the series."""
    return {
        **results,
        "series": {
            name: {
                loop: dict(zip(SPREAD, (float(f"{figure:.4g}") for figure in spread(figures))))
                for loop, figures in samples.items()
            }
            for name, samples in results["series"].items()
        },
        "promised": [
            {"of": name, **dict(zip(PROMISE_COLUMNS, row))}
            for name in EVERYTHING
            for row in targets_of(part_of(results, name))
        ],
    }


def part_of(results, name):
    """The figures by which the promises of one benchmark are judged."""
    samples = results["series"].get(name)
    part = {"series": {name: samples} if samples else {}}
    parts = (
        ("ocaml_objects", "ocaml/table1"),
        ("memory", "memory"),
        ("programs", "programs"),
        ("waiting", "waiting"),
    )
    for key, of in parts:
        if of == name and key in results:
            part[key] = results[key]
    return part


def in_order(programs):
    """In the order of PROGRAMS."""
    return {a_program.name: programs[a_program.name] for a_program in PROGRAMS if a_program.name in programs}


def merged(before, results, measured):
    """The results of before, but those of what was measured now, whose dates name the machine if it is another one."""
    series = {**before["series"], **results["series"]}
    rows = [row for row in before["promised"] if row["of"] not in measured] + results["promised"]
    failures = [name for name in before["failures"] if name not in measured]
    machine = before["machine"]
    date = results["date"] + ("" if results["machine"] == machine else f" on {results['machine']}")
    dates = {**before.get("dates", {}), **{name: date for name in measured}}
    return {
        **before,
        **results,
        "date": before["date"],
        "machine": machine,
        "dates": dates,
        "failures": failures + results["failures"],
        "series": {name: series[name] for name in EVERYTHING if name in series},
        "promised": sorted(rows, key=lambda row: EVERYTHING.index(row["of"])),
    }


def main():
    here = pathlib.Path(__file__).resolve().parent
    built = here.parent / "build" / "bench" / "bench"
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=pathlib.Path, default=built, help="folder of the binaries")
    parser.add_argument("--only", action="append", choices=EVERYTHING)
    parser.add_argument(
        "--program",
        action="append",
        choices=[a_program.name for a_program in PROGRAMS],
        help="of the programs these; the others stay as they were",
    )
    parser.add_argument("--pages", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--repeats", type=int, default=5, help="of each program")
    parser.add_argument("--processes", type=int, default=5, help="of each series")
    parser.add_argument("--rounds", type=int, default=31, help="in each process")
    parser.add_argument("--output", type=pathlib.Path, default=here, help="folder for what is written")
    arguments = parser.parse_args()
    if arguments.large:
        os.environ["HAFT_BENCH_LARGE"] = "1"  # the series of the harness
    if arguments.pages or arguments.check:
        results = json.loads((arguments.output / "results.json").read_text(encoding="utf-8"))
        if arguments.check:
            return check_pages(results, arguments.output)
        write_pages(results, arguments.output)
        return 0
    if not arguments.build.is_dir():
        parser.error(f"{arguments.build}: no such folder; build first, or give --build")
    if arguments.quick:
        return quick(arguments.build)

    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    stored = arguments.output / "results.json"
    if arguments.program:
        arguments.only = ["programs"]
    results = measure(arguments, arguments.only or EVERYTHING)
    if arguments.program and stored.exists():
        older = json.loads(stored.read_text(encoding="utf-8")).get("programs", {})
        results["programs"] = in_order({**older, **results["programs"]})
    results = summarise(results)
    if arguments.only and stored.exists():
        before = json.loads(stored.read_text(encoding="utf-8"))
        results = merged(before, results, arguments.only)
    text = json.dumps(results, indent=1) + "\n"
    stored.write_text(text, encoding="utf-8")
    write_pages(results, arguments.output)
    print(report(results))
    return 1 if results["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
