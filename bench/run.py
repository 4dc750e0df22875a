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
import collections
import html
import json
import os
import pathlib
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

import measuring

PEERS = ["plain", "haft", "cpp", "boost", "coroutines", "setjmp"]
PEER_NAMES = {
    "plain": "plain C",
    "haft": "Haft",
    "cpp": "Haft, C++",
    "boost": "Boost.Context",
    "coroutines": "C++20 coroutines",
    "setjmp": "setjmp/longjmp",
    "ocaml/haft": "Haft, OCaml",
    "ocaml/ocaml5": "OCaml 5",
}
# Compilers and libraries that a program of ocaml/ is built with.
OCAML_PEERS = ["stock", "haft", "ocaml5"]

Size = collections.namedtuple("Size", "argument expected")
Program = collections.namedtuple("Program", "name small usual large variants source")


def program(name, small, usual, large, variants=(), source=None):
    return Program(name, Size(*small), Size(*usual), Size(*large), variants, source or name)


# Variants are further binaries of the same program, by their suffix: mostly Haft's. `source`: of the same
# program at another size.
PROGRAMS = [
    program("countdown", (5, 0), (20_000_000, 0), (200_000_000, 0), ("general", "tail", "seff", "segmented")),
    program("fibonacci_recursive", (5, 5), (36, 14930352), (42, 267914296)),
    program("product_early", (5, 0), (3000, 0), (100_000, 0), ("never", "cleanups")),
    program(
        "iterator",
        (5, 15),
        (20_000_000, 200000010000000),
        (40_000_000, 800000020000000),
        ("tail", "seff", "segmented"),
    ),
    program("generator", (5, 57), (24, 33554406), (25, 67108837), ("seff", "segmented")),
    program("generator_next", (5, 57), (22, None), (25, 67108837), ("seff", "clang", "seff_clang")),
    program("parsing_dollars", (10, 55), (6000, 18003000), (20_000, 200010000), ("tail",)),
    program("resume_nontail", (5, 37), (5000, None), (10_000, 860)),
    program("handler_sieve", (10, 17), (15_000, None), (60_000, 171848738), ("tail", "seff", "segmented")),
    program("handler_sieve_60000", (10, 17), (60_000, 171848738), (60_000, 171848738), ("seff",), "handler_sieve"),
    program("nqueens", (5, 10), (10, 724), (12, 14200)),
    program("tree_explore", (5, 946), (14, None), (16, 1005)),
    program("triples", (10, 779312), (200, 306102599), (300, 460212934)),
    program(
        "skynet",
        (100, 4950),
        (100_000, 4999950000),
        (1_000_000, 499999500000),
        ("seff", "seff_dense", "segmented"),
    ),
    program("skynet_calls", (100, 4950), (100_000, 4999950000), (1_000_000, 499999500000), ("seff",)),
    program("threads", (5, 10), (5000, 12497500), (20_000, 199990000), ("seff",)),
]

# All of the public set are functions of one program of OCaml, which takes the name. OCaml 5 has those that
# resume no copies.
ONE_SHOT = (
    "countdown",
    "fibonacci_recursive",
    "product_early",
    "iterator",
    "generator",
    "parsing_dollars",
    "resume_nontail",
    "handler_sieve",
)
MULTI_SHOT = ("nqueens", "tree_explore", "triples")
PUBLIC_SET = {"ocaml/haft": {*ONE_SHOT, *MULTI_SHOT}, "ocaml/ocaml5": {*ONE_SHOT}}
OCAML_PROGRAMS = "public_set"

# Promises of programs: the processor time of one peer's, over another's, is at most a limit.
ProgramTarget = collections.namedtuple("ProgramTarget", "what program peer baseline limit")
PROGRAM_TARGETS = [
    ProgramTarget(f"{what} / Boost.Context", name, peer, "Boost.Context", limit)
    for what, name, peer, limit in (
        ("a general clause that works on the answer", "resume_nontail", "Haft", 1),
        ("a generator", "generator", "Haft", 1),
        ("the same through seff.h", "generator", "Haft, seff", 1),
        ("a generator through a function that resumes", "generator_next", "Haft", 1),
        ("the same through seff.h", "generator_next", "Haft, seff", 1),
        ("C++: a generator through a function that resumes", "generator_next", "Haft, C++", 1),
        ("a sieve of 15,000 with a fiber for each prime", "handler_sieve", "Haft", 1),
        ("the same through seff.h", "handler_sieve", "Haft, seff", 1.2),
        ("a sieve of 60,000 with a fiber for each prime", "handler_sieve_60000", "Haft", 1.2),
        ("the same through seff.h", "handler_sieve_60000", "Haft, seff", 1.3),
        ("skynet, 100,000 that sleep at once", "skynet", "Haft", None),
        ("the same through seff.h", "skynet", "Haft, seff", 1.2),
        ("the same through seff.h, with system calls", "skynet_calls", "Haft, seff", 1.2),
        ("the same through seff.h, on dense stacks of 8 KiB", "skynet", "Haft, seff_dense", 1.2),
        ("a thread with one fiber", "threads", "Haft", 1),
        ("the same through seff.h", "threads", "Haft, seff", 1),
        ("segmented, seff.h: countdown", "countdown", "Haft, segmented", 1.5),
        ("segmented, seff.h: iterator", "iterator", "Haft, segmented", 1.5),
        ("segmented, seff.h: generator", "generator", "Haft, segmented", 1.5),
        ("segmented, seff.h: a sieve of 15,000", "handler_sieve", "Haft, segmented", 1.5),
        ("segmented, seff.h: skynet", "skynet", "Haft, segmented", 1.5),
    )
] + [
    ProgramTarget(f"clang, {what} / Boost.Context", "generator_next", f"{peer}clang", "Boost.Context, clang", 1)
    for what, peer in (
        ("a generator through a function that resumes", "Haft, "),
        ("the same through seff.h", "Haft, seff_"),
        ("C++: a generator through a function that resumes", "Haft, C++, "),
    )
] + [
    ProgramTarget(f"copies in C: {name} / Haft's OCaml", name, "Haft", "Haft, OCaml", 0.8)
    for name in MULTI_SHOT
] + [
    ProgramTarget(f"OCaml: {name}, a whole program / OCaml 5", name, "Haft, OCaml", "OCaml 5", 1)
    for name in ONE_SHOT
]

# The project's promises: one loop's time, over another's in the same series, is at most a limit.
# Several loops stand for the mean of their ratios. Without a baseline: its least time in nanoseconds. Without
# a limit: stated for comparison.
Target = collections.namedtuple("Target", "what loop baseline limit")
TABLE1 = ["exnval", "exnraise", "extcall", "callback", "ack", "fib", "motzkin", "sudan", "tak"]
TABLE2 = ["ack", "fib", "motzkin", "sudan", "tak"]
TARGETS = {
    "micro": [
        Target(
            "perform, handle, resume / bare loop of two switches",
            "haft/round-trip",
            "haft/two-switches",
            None,
        ),
        Target(
            "the same / the least that is a switch",
            "haft/round-trip",
            "plain/two-switches",
            None,
        ),
        Target(
            "the same / a switch that saves all callee-saved registers",
            "haft/round-trip",
            "plain/two-full-switches",
            1.35,
        ),
        Target(
            "the same / resume and suspend of a C++20 coroutine",
            "haft/round-trip",
            "coroutines/round-trip",
            2,
        ),
        Target(
            "by general clauses that end by continuing / by requests",
            "haft/general-clause",
            "haft/round-trip",
            1.25,
        ),
        Target(
            "tail-resumptive clause / indirect call",
            "haft/tail-resumptive",
            "plain/indirect-call",
            2.5,
        ),
        Target(
            "create, run, finish, free (warm pool) / round trip",
            "haft/create-run-free",
            "haft/round-trip",
            4,
        ),
        Target("a copy of 256 bytes of frames, resumed", "haft/copy-and-resume", None, 60),
        Target(
            "C++: general lambda / round trip in C", "cpp/general-lambda", "haft/round-trip", 1.1
        ),
        Target(
            "C++: tail-resumptive lambda / virtual call",
            "cpp/tail-resumptive",
            "plain/virtual-call",
            2.5,
        ),
        Target(
            "C++: general clause, named handler / innermost handler",
            "cpp/general-lambda-by-name",
            "cpp/general-lambda",
            None,
        ),
    ],
    "batch": [
        Target(
            "a fiber's life among 100 / alone", "haft/batch/100", "haft/batch/001", 1.5
        ),
        Target(
            "a fiber's life among 1,000 / alone", "haft/batch/1000", "haft/batch/001", 1.5
        ),
        *[
            Target(
                f"a fiber's life among {count:,} / touching as many lines",
                f"haft/batch/{count}",
                f"plain/touch-batch/{count}",
                None,
            )
            for count in (10_000, 100_000)
        ],
    ],
    "round_robin": [
        *[
            Target(
                f"round robin of {count:,} fibers, {kind} / Boost.Context on 8 KiB stacks from malloc",
                f"haft/round-robin{suffix}/{count:03}",
                f"boost/round-robin/{count:03}",
                limit,
            )
            for kind, suffix, limit in (("pooled", "", 1), ("dense", "-dense", 0.9))
            for count in (10, 100, 1_000, 5_000, 10_000, 100_000)
        ],
        *[
            Target(
                f"round robin of {count:,} fibers, pooled / touching two lines of as many pages",
                f"haft/round-robin/{count:03}",
                f"plain/two-lines-apart/{count:03}",
                None,
            )
            for count in (10_000, 100_000)
        ],
        *[
            Target(
                f"round robin of {count:,} coroutines, seff.h, {kind} / Boost.Context on 8 KiB stacks from malloc",
                f"seff/round-robin{suffix}/{count:03}",
                f"boost/round-robin/{count:03}",
                1.2,
            )
            for kind, suffix in (("pooled", ""), ("dense", "-dense"))
            for count in (10, 100, 1_000, 5_000, 10_000, 100_000)
        ],
    ],
    "depth": [
        Target("100 handlers between / 1, general", "depth-general/100", "depth-general/001", 1.3),
        Target(
            "100 handlers between / 1, tail-resumptive",
            "depth-tail/100",
            "depth-tail/001",
            1.3,
        ),
        Target(
            "100 fibers between / 1, tail-resumptive",
            "depth-tail-across-fibers/100",
            "depth-tail-across-fibers/001",
            1.3,
        ),
    ],
    "alternating": [
        *[
            Target(
                f"8 alternating effects, {how}: all in one slot / each in its own",
                f"alternating-{how}-together/008",
                f"alternating-{how}-apart/008",
                1.15,
            )
            for how in ("requests", "tail", "general")
        ],
        Target("resumed at 8 places in turn / at one", "places/008", "places/001", 1.15),
    ],
    "signals": [
        Target(
            "perform in place, 10,000 signals a second whose handler performs / no signals",
            "haft/signal-loaded",
            "haft/signal-free",
            None,
        ),
        Target(
            "the same / as many signals whose handler does nothing",
            "haft/signal-loaded",
            "haft/signal-loaded-idle",
            None,
        ),
    ],
    "hotsplit": [
        Target(
            "hot split / unsplit call, no work in it",
            "hotsplit-segmented/000",
            "hotsplit-plain/000",
            4,
        ),
    ],
    "prefetch": [],
    "state": [
        Target(
            "C++: state, plain handler / two virtual calls",
            "cpp/state-plain",
            "plain/state-virtual-calls",
            None,
        ),
    ],
    "generators": [
        Target(
            f"C++: generator / coroutine, tree of depth {depth}",
            f"cpp/trees/{depth:03}",
            f"coroutines/trees/{depth:03}",
            limit,
        )
        for depth, limit in [(3, None), (4, 1), (10, 1), (20, 1)]
    ],
    "exceptions": [
        Target("C++: effect raised / native throw", "cpp/raised", "plain/raised", 1),
        Target(
            "C++: effect raised below ten frames / native throw",
            "cpp/raised-deep",
            "plain/raised-deep",
            1,
        ),
    ],
    "unwinding": [
        Target(
            "throw through 40,000 fibers / native throw through as many frames",
            "haft/throw/40000",
            "plain/throw/40000",
            None,
        ),
        Target(
            "throw beside 300,000 fibers in memory of the caller / beside none",
            "haft/throw-beside/300000",
            "haft/throw-beside/000",
            1.5,
        ),
        Target(
            "drop beside 300,000 fibers in memory of the caller / beside none",
            "haft/drop-beside/300000",
            "haft/drop-beside/000",
            1.5,
        ),
    ],
    "leaving": [
        Target(
            f"{what}{' through seff.h' if peer == 'seff' else ''} / bare jumps of Boost.Context",
            f"{peer}/{loop}",
            f"boost/{loop}",
            None,
        )
        for peer in ("haft", "seff")
        for loop, what in (
            ("new", "an effect thrown out of a new fiber"),
            ("reused", "out of one that is reset"),
            ("rethrow", "through a hundred, thrown again in each"),
        )
    ],
    "ocaml/micro": [
        Target("OCaml: install a handler and return", "haft/install-return", None, 8),
        Target(
            "the same / a bare loop of two switches in C",
            "haft/install-return",
            "plain/two-switches",
            None,
        ),
        Target("the same / OCaml 5", "haft/install-return", "ocaml5/install-return", 8 / 22),
        Target("OCaml: perform and continue", "haft/perform-continue", None, 13),
        Target(
            "the same / a bare loop of two switches in C",
            "haft/perform-continue",
            "plain/two-switches",
            None,
        ),
        Target("the same / OCaml 5", "haft/perform-continue", "ocaml5/perform-continue", 1),
        *(
            Target(
                f"OCaml: through {count} handlers that decline / OCaml 5",
                f"haft/reperform-{count}",
                f"ocaml5/reperform-{count}",
                1,
            )
            for count in (1, 10, 100)
        ),
    ],
    # (The paper: differences under 15 % come from where loops happen to be aligned.)
    "ocaml/table1": [
        Target(
            f"OCaml: {name}, linked with the library / without", f"haft/{name}", f"stock/{name}", 1.15
        )
        for name in TABLE1
    ],
    "ocaml/table2": [
        Target(
            "OCaml: recursion under handlers / plain, the mean of five programs",
            [f"haft/{name}" for name in TABLE2],
            [f"ocaml/{name}" for name in TABLE2],
            5,
        ),
        *(Target(f"the same, {name}", f"haft/{name}", f"ocaml/{name}", None) for name in TABLE2),
        Target(
            "OCaml: recursion under handlers / OCaml 5, the mean",
            [f"haft/{name}" for name in TABLE2],
            [f"ocaml5/{name}" for name in TABLE2],
            5 / 10,
        ),
        Target(
            "OCaml: recursion in a concurrency monad / plain, the mean",
            [f"monad/{name}" for name in TABLE2],
            [f"ocaml/{name}" for name in TABLE2],
            None,
        ),
    ],
    "ocaml/generators": [
        Target("OCaml: generator / by hand in CPS", "haft/generator", "cps/generator", None),
        Target("the same / in a monad", "haft/generator", "monad/generator", None),
        Target("the same / OCaml 5", "haft/generator", "ocaml5/generator", 0.8),
    ],
    "ocaml/chameneos": [
        Target("OCaml: chameneos / Lwt", "haft/chameneos", "lwt/chameneos", 0.25),
        Target("the same / concurrency monad", "haft/chameneos", "monad/chameneos", None),
        Target("the same / OCaml 5", "haft/chameneos", "ocaml5/chameneos", None),
    ],
    "ocaml/round_robin": [
        Target(
            "OCaml: round robin of 20,000 threads / concurrency monad",
            "haft/round-robin-20000",
            "monad/round-robin-20000",
            None,
        ),
        Target("the same / OCaml 5", "haft/round-robin-20000", "ocaml5/round-robin-20000", 1),
        Target(
            "OCaml: round robin of 100 threads / OCaml 5",
            "haft/round-robin-100",
            "ocaml5/round-robin-100",
            1,
        ),
    ],
    "ocaml/nested": [
        *(
            Target(
                f"OCaml: recursion with a handler at each of {depth:,} levels / OCaml 5",
                f"haft/nested-{depth}",
                f"ocaml5/nested-{depth}",
                1.1,
            )
            for depth in (10, 300, 3_000, 10_000, 100_000, 1_000_000)
        ),
        *(
            Target(
                f"OCaml: the same with an effect that passes {depth:,} handlers / OCaml 5",
                f"haft/nested-pass-{depth}",
                f"ocaml5/nested-pass-{depth}",
                1.1,
            )
            for depth in (10, 300, 3_000, 10_000, 100_000, 1_000_000)
        ),
        *(
            Target(
                f"OCaml: a sieve of {limit:,} with a handler for each prime / OCaml 5",
                f"haft/sieve-{limit}",
                f"ocaml5/sieve-{limit}",
                1.5,
            )
            for limit in (4_000, 10_000, 20_000)
        ),
    ],
    "ocaml/programs": [
        *(
            Target(f"OCaml: {name}, a step / OCaml 5", f"haft/{name}", f"ocaml5/{name}", 1)
            for name in ("countdown", "iterator", "parsing-dollars")
        ),
    ],
    "ocaml/cloning": [],
}
# Where the garbage collector's work has to be spread over a slice: its milliseconds, more than one.
SLICES = {
    "batch": 20,
    "round_robin": 20,
    "ocaml/micro": 4,
    "ocaml/table1": 4,
    "ocaml/table2": 4,
    "ocaml/generators": 20,
    "ocaml/chameneos": 20,
    "ocaml/round_robin": 20,
    "ocaml/nested": 20,
    "ocaml/programs": 4,
    "ocaml/cloning": 4,
}
SERIES_TITLES = {
    "micro": "Microbenchmarks",
    "batch": "Fibers that live at the same time: made, then run, then freed; the life of one",
    "round_robin": "Many fibers in turn, each of which counts and yields; a turn",
    "depth": "Handlers between performer and handler (§4.1.1, figure 5)",
    "alternating": "Alternating effects, by the slots they share; fibers resumed at several places in turn",
    "signals": "Performing in place while signal handlers perform",
    "hotsplit": "Hot split: multiplications in the called function (§4.1.2, figure 6)",
    "prefetch": "Prefetching binary search: searches in flight (§4.2.2, figure 10)",
    "state": "C++: mutable state, a turn of put(get() + 1) (figures 6 and 7)",
    "generators": "C++: generators, an element; trees by their depth (figures 8 and 9)",
    "exceptions": "C++: an effect that never resumes, and exceptions (figures 10 and 11)",
    "unwinding": "Leaving nested fibers by a throw or a drop, beside exceptions and beside other fibers",
    "leaving": "Exceptions as effects without cleanups, beside jumps that find no handler",
    "ocaml/micro": "OCaml: operations of handlers, calls to and from C (§6.3)",
    "ocaml/table1": "OCaml: programs without effects, with and without the library (table 1)",
    "ocaml/table2": "OCaml: handlers and no perform (table 2)",
    "ocaml/generators": "OCaml: generators of a tree of depth 25, an element (§6.3)",
    "ocaml/chameneos": "OCaml: chameneos, a meeting (§6.3)",
    "ocaml/round_robin": "OCaml: threads in turn, a turn",
    "ocaml/nested": "OCaml: handlers around one another, a level; a sieve of them",
    "ocaml/programs": "OCaml: loops of the public programs, a step",
    "ocaml/cloning": "OCaml: runs of two programs that resume copies",
}
MEMORY_RUNS = [  # peer, kind, computations, limit on resident bytes each, limit on mappings
    ("haft", "pool", 1_000_000, 4.5 * 1024, 1000),
    ("haft", "dense", 1_000_000, 1.2 * 1024, 1000),
    ("haft", "fixed", 1_000_000, 1.2 * 1024, 1000),
    ("haft", "segmented", 1_000_000, 1.2 * 1024, 1000),
    ("coroutines", None, 1_000_000, None, None),
    ("boost", None, 100_000, None, None),
    ("ocaml/haft", None, 1_000_000, None, None),
    ("ocaml/ocaml5", None, 1_000_000, None, None),
]
MEMORY_REPEATS = 5
MEMORY_TIMES = ("create", "resume_and_free")  # nanoseconds a computation
OCAML_PEAK = 420  # bytes a continuation of the million

# Programs of ocaml/ whose peak memory counts, and their time, beside OCaml 5's: arguments (small,
# usual), and the most of both.
Waiting = collections.namedtuple("Waiting", "what name small usual memory_limit time_limit")
WAITING = [
    *(
        Waiting(f"{count:,} that wait below {calls:,} calls", "waiting", (10, calls), (count, calls), 1.3, None)
        for count, calls in ((100_000, 10), (100_000, 50), (100_000, 200), (20_000, 1_000))
    ),
    Waiting("1,600,000, half of which are dropped", "dropping", (1000,), (1_600_000,), 1.3, 1.3),
]

# Compile time and size of the state example: peer, sources below bench/.
COMPILED = [("plain C++", "plain/state_program"), ("Haft, C++", "cpp/state_program")]

SPREAD = ("least", "median", "90th percentile")
# A ratio of one series moves by about as much from run to run.
NOISE = 0.05
PROMISE_COLUMNS = ["what", "promised", "measured", "least / least", "met"]

EVERYTHING = ["programs", *TARGETS, "compile", "memory", "waiting"]


class Failure(Exception):
    """A benchmark printed something wrong or ended badly."""


def run(command):
    """Standard output, processor seconds and peak resident bytes of one process."""
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise Failure(f"{' '.join(map(str, command))}: exit status {process.returncode}")
    return output, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def executables(build, a_program):
    """(label, command without the argument) of every built binary of a program, the floor first."""
    found = []
    for peer in PEERS:
        names = [("", a_program.source)]
        names += [
            (f", {variant}", f"{a_program.source}_{variant}") for variant in a_program.variants
        ]
        for suffix, name in names:
            path = build / peer / name
            if path.exists():
                found.append((PEER_NAMES[peer] + suffix, [path]))
    for peer, names in PUBLIC_SET.items():
        path = build / peer / OCAML_PROGRAMS
        if path.exists() and a_program.source in names:
            found.append((PEER_NAMES[peer], [path, a_program.source]))
    return found


def check(path, size, output):
    if size.expected is not None and output.strip() != str(size.expected):
        raise Failure(f"{path} {size.argument}: printed {output.strip()}, expected {size.expected}")


def run_programs(build, repeats, large, wanted):
    results = {}
    for a_program in PROGRAMS:
        if wanted and a_program.name not in wanted:
            continue
        size = a_program.large if large else a_program.usual
        binaries = executables(build, a_program)
        rows = {label: {"seconds": [], "resident": 0} for label, _ in binaries}
        outputs = set()
        for _ in range(repeats):
            for label, command in binaries:
                output, seconds, resident = run([*command, size.argument])
                check(command[0], size, output)
                outputs.add(output)
                rows[label]["seconds"].append(seconds)
                rows[label]["resident"] = max(rows[label]["resident"], resident)
        if len(outputs) > 1:
            what = f"{a_program.name} {size.argument}"
            raise Failure(f"{what}: the peers disagree: {sorted(outputs)}")
        results[a_program.name] = {"argument": size.argument, "rows": rows}
        print(f"    {a_program.name}", file=sys.stderr)
    return results


def series_binaries(build, name):
    """(peer, path) of every built program of a series; only OCaml's have several."""
    folder, _, base = name.rpartition("/")
    paths = [(peer, build / folder / peer / base) for peer in OCAML_PEERS] if folder else []
    return [(peer, path) for peer, path in paths or [(None, build / name)] if path.is_file()]


def loop_name(peer, loop):
    """A loop that names no peer is its program's own; of others' there is one a compiler."""
    if "/" not in loop:
        return f"{peer}/{loop}"
    return f"ocaml5-{loop}" if peer == "ocaml5" else loop


def run_series(build, name, processes, rounds):
    """Samples of every loop of the harness binaries, round by round, over several processes: where
    the memory of one process happens to lie is luck, too."""
    samples = collections.defaultdict(list)
    slice_milliseconds = SLICES.get(name, 1)
    if slice_milliseconds > 1:
        rounds = rounds // 4
    for _ in range(processes):
        for peer, path in series_binaries(build, name):
            command = [path, "--samples", "--rounds", rounds, "--slice", slice_milliseconds]
            output, _, _ = run(command)
            for line in output.splitlines():
                loop, *figures = line.split()
                samples[loop_name(peer, loop)] += [float(figure) for figure in figures]
    return dict(samples)


def compare_objects(build):
    """Bytes of the machine code of table 1's programs and whether they are the same object files
    in the build with the library and the one without."""
    folders = [build / "ocaml" / peer / "table1.build" for peer in ("stock", "haft")]
    names = ["recursion.o", "table1.o"]
    text = 0
    for name in names:
        output, _, _ = run(["size", folders[0] / name])
        text += int(output.splitlines()[1].split()[0])
    same = all(
        (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes() for name in names
    )
    return {"bytes": text, "same": same}


def run_memory(build, quick):
    """The bytes and mappings of one run each; the times of several in turn."""
    results = {}
    for _ in range(1 if quick else MEMORY_REPEATS):
        for peer, kind, count, resident_limit, mappings_limit in MEMORY_RUNS:
            path = build / peer / "memory"
            if not path.exists():
                continue
            command = [path] + ([kind] if kind else []) + [1000 if quick else count]
            output, _, _ = run(command)
            if not output:  # this kind of stack is not available here
                continue
            label = PEER_NAMES[peer] + (f", {kind}" if kind else "")
            entry = results.setdefault(
                label,
                {
                    "label": label,
                    "resident_limit": resident_limit,
                    "mappings_limit": mappings_limit,
                    **{name: [] for name in MEMORY_TIMES},
                },
            )
            for line in output.splitlines():
                name, value = line.split()
                if name in MEMORY_TIMES:
                    entry[name].append(int(value))
                else:
                    entry[name] = int(value)
    return list(results.values())


def waiting_commands(build, arguments):
    """(label, command) of each peer's build."""
    return [
        (PEER_NAMES[peer], [build / peer / waiting.name, *getattr(waiting, arguments)], waiting)
        for waiting in WAITING
        for peer in ("ocaml/haft", "ocaml/ocaml5")
        if (build / peer / waiting.name).is_file()
    ]


def run_waiting(build, repeats):
    """Processor seconds and peak resident bytes."""
    results = {waiting.what: {} for waiting in WAITING}
    for _ in range(repeats):
        for label, command, waiting in waiting_commands(build, "usual"):
            _, seconds, resident = run(command)
            row = results[waiting.what].setdefault(label, {"seconds": [], "resident": []})
            row["seconds"].append(seconds)
            row["resident"].append(resident)
    return results


def run_compile(build, repeats):
    """Seconds of compiling each program of COMPILED as the build did, and bytes of the outcome."""
    database = json.loads((build.parent / "compile_commands.json").read_text(encoding="utf-8"))
    results = []
    for label, name in COMPILED:
        source = f"bench/{name}.cpp"
        entry = next((item for item in database if item["file"].endswith(source)), None)
        if entry and (build / name).exists():
            results.append({"label": label, "seconds": [], "entry": entry, "path": build / name})
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "output"
        for _ in range(repeats):
            for result in results:
                command = shlex.split(result["entry"]["command"])
                command[command.index("-o") + 1] = str(output)
                _, seconds, _ = run(command)
                result["seconds"].append(seconds)
        for result in results:
            del result["entry"]
            subprocess.run(["strip", "-o", output, result.pop("path")], check=True)
            result["bytes"] = output.stat().st_size
    return results


def paired_ratio(samples, loop, baseline):
    if isinstance(loop, list):
        return statistics.mean(paired_ratio(samples, *pair) for pair in zip(loop, baseline))
    pairs = zip(samples[loop], samples[baseline])
    return statistics.median(one / other for one, other in pairs)


def least_ratio(samples, loop, baseline):
    if isinstance(loop, list):
        return statistics.mean(least_ratio(samples, *pair) for pair in zip(loop, baseline))
    return min(samples[loop]) / min(samples[baseline])


def spread(samples):
    ordered = sorted(samples)
    return ordered[0], statistics.median(ordered), ordered[len(ordered) * 9 // 10]


def table(header, rows):
    alignment = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, alignment, *rows])


def verdict(met):
    return "yes" if met else "**no**"


def judged(what, limit, ratio, least):
    """A row of the promises: two ratios, and whether they keep to the limit, if there is one. A
    promise that noise decides is given no digits."""
    if limit is None:
        return what, "", f"{ratio:.2f} ×", f"{least:.2f} ×", ""
    promised = f"≤ {limit:.3g} ×"
    if min(ratio, least) <= limit * (1 + NOISE) and max(ratio, least) >= limit * (1 - NOISE):
        return what, promised, "at the limit", "", "undecided"
    return what, promised, f"{ratio:.2f} ×", f"{least:.2f} ×", verdict(ratio <= limit)


def targets_of_programs(programs):
    rows = []
    for target in PROGRAM_TARGETS:
        measured = programs.get(target.program, {}).get("rows", {})
        seconds = {label: row["seconds"] for label, row in measured.items()}
        pair = target.peer, target.baseline
        if all(label in seconds for label in pair):
            ratio, least = paired_ratio(seconds, *pair), least_ratio(seconds, *pair)
            rows.append(judged(target.what, target.limit, ratio, least))
    return rows


def targets_of_waiting(results):
    rows = []
    for waiting in WAITING:
        measured = results.get(waiting.what, {})
        pair = PEER_NAMES["ocaml/haft"], PEER_NAMES["ocaml/ocaml5"]
        if any(label not in measured for label in pair):
            continue
        for what, key, limit in (
            (f"OCaml: {waiting.what}: peak memory / OCaml 5", "resident", waiting.memory_limit),
            ("the same: processor time / OCaml 5", "seconds", waiting.time_limit),
        ):
            samples = {label: measured[label][key] for label in pair}
            ratio, least = paired_ratio(samples, *pair), least_ratio(samples, *pair)
            rows.append(judged(what, limit, ratio, least))
    return rows


def targets_of(results):
    rows = targets_of_programs(results.get("programs", {}))
    rows += targets_of_waiting(results.get("waiting", {}))
    for name, samples in results.get("series", {}).items():
        for target in TARGETS[name]:
            if str(target.baseline).startswith("ocaml5/") and target.baseline not in samples:
                continue
            if target.baseline is None and target.loop in samples:
                least, middle, _ = spread(samples[target.loop])
                met = verdict(least <= target.limit)
                promised = f"≤ {target.limit} ns"
                rows.append((target.what, promised, f"{middle:.1f} ns", f"{least:.1f} ns", met))
                continue
            loops = [target.loop, target.baseline]
            if isinstance(target.loop, list):
                loops = target.loop + target.baseline
            if any(loop not in samples for loop in loops):
                promised = f"≤ {target.limit:.3g} ×" if target.limit else ""
                rows.append((target.what, promised, "not measured", "", ""))
                continue
            ratio = paired_ratio(samples, target.loop, target.baseline)
            least = least_ratio(samples, target.loop, target.baseline)
            rows.append(judged(target.what, target.limit, ratio, least))
    if "ocaml_objects" in results:
        objects = results["ocaml_objects"]
        rows.append(
            (
                "OCaml: object files of table 1's programs, with the library / without",
                "the same",
                "the same" if objects["same"] else "different",
                "",
                verdict(objects["same"]),
            )
        )
    for entry in results.get("memory", []):
        if "peak" in entry:
            met = verdict(entry["peak"] <= OCAML_PEAK) if "Haft" in entry["label"] else ""
            rows.append(
                (
                    f"peak resident memory a live continuation, {entry['label']}",
                    f"≤ {OCAML_PEAK} bytes" if met else "",
                    f"{entry['peak']} bytes",
                    "",
                    met,
                )
            )
        if entry["resident_limit"]:
            rows.append(
                (
                    f"resident memory a suspended fiber, {entry['label']}",
                    f"≤ {entry['resident_limit'] / 1024:.1f} KiB",
                    f"{entry['resident'] / 1024:.2f} KiB",
                    "",
                    verdict(entry["resident"] <= entry["resident_limit"]),
                )
            )
            whole = entry["resident"] + entry["page_tables"]
            rows.append(("the same with its page tables", "", f"{whole / 1024:.2f} KiB", "", ""))
            rows.append(
                (
                    f"mappings with {entry['count']:,} of them",
                    f"< {entry['mappings_limit']}",
                    f"{entry['mappings']}",
                    "",
                    verdict(entry["mappings"] < entry["mappings_limit"]),
                )
            )
    rows += life_of_a_million(results.get("memory", []))
    return rows


def life_of_a_million(entries):
    """Continuations made, resumed twice, and finished: beside OCaml 5's, in the same order."""
    whole = {
        entry["label"]: [sum(times) for times in zip(*(entry[name] for name in MEMORY_TIMES))]
        for entry in entries
    }
    pair = PEER_NAMES["ocaml/haft"], PEER_NAMES["ocaml/ocaml5"]
    if any(label not in whole for label in pair):
        return []
    what = "OCaml: a million continuations made, resumed twice and finished / OCaml 5"
    return [judged(what, 1, paired_ratio(whole, *pair), least_ratio(whole, *pair))]


def program_tables(programs):
    labels = []
    for entry in programs.values():
        labels += [label for label in entry["rows"] if label not in labels]
    lines, ratios = [], []
    for name, entry in programs.items():
        first = f"{name} {entry['argument']}"
        floor = entry["rows"].get(PEER_NAMES["plain"])
        cells, ratio_cells = [], []
        for label in labels:
            row = entry["rows"].get(label)
            if not row:
                cells.append("")
                ratio_cells.append("")
                continue
            least, middle, _ = spread(row["seconds"])
            cells.append(f"{middle:.3f} [{least:.3f}]")
            if floor:
                pairs = zip(row["seconds"], floor["seconds"])
                ratio_cells.append(f"{statistics.median(a / max(b, 1e-3) for a, b in pairs):.1f}")
            else:
                ratio_cells.append("")
        lines.append([first, *cells])
        ratios.append([first, *ratio_cells])
    return (
        "Processor seconds, median [least]:\n\n"
        + table(["program", *labels], lines)
        + "\n\nThe same as multiples of plain C:\n\n"
        + table(["program", *labels], ratios)
    )


def series_table(loops):
    """A row a size for loops that are named loop/size in digits, a row a loop for the others."""
    sized, single = {}, []
    for loop, figures in sorted(loops.items()):
        base, _, size = loop.rpartition("/")
        if size.isdigit():
            sized.setdefault(base, {})[int(size)] = figures
        else:
            single.append([loop, *(f"{figures[name]:.2f}" for name in SPREAD)])
    tables = []
    if single:
        tables.append(table(["ns an operation", "least", "median", "90th percentile"], single))
    if sized:
        rows = []
        for size in sorted({size for sizes in sized.values() for size in sizes}):
            cells = [
                f"{sizes[size]['median']:.2f}" if size in sizes else ""
                for sizes in sized.values()
            ]
            rows.append([str(size), *cells])
        tables.append(table(["ns an operation, median", *sized], rows))
    return "\n\n".join(tables)


def memory_table(entries):
    rows = [
        [
            entry["label"],
            f"{entry['count']:,}",
            f"{entry['resident']:,}",
            f"{entry['page_tables']:,}",
            f"{entry['mappings']:,}",
            *(
                f"{middle:,.0f} [{least:,}]"
                for least, middle, _ in (spread(entry[name]) for name in MEMORY_TIMES)
            ),
        ]
        for entry in entries
    ]
    header = [
        "suspended computations",
        "count",
        "resident bytes each",
        "page-table bytes each",
        "mappings",
        "ns to create and suspend, median [least]",
        "ns to resume and free",
    ]
    return table(header, rows)


def waiting_table(results):
    labels = [PEER_NAMES["ocaml/haft"], PEER_NAMES["ocaml/ocaml5"]]
    rows = []
    for what, measured in results.items():
        present = [measured.get(label) for label in labels]
        seconds = ["{1:.2f} [{0:.2f}]".format(*spread(row["seconds"])) if row else "" for row in present]
        resident = [f"{spread(row['resident'])[1] / 1e6:,.0f}" if row else "" for row in present]
        rows.append([what, *seconds, *resident])
    header = ["computations", *(f"{label}, s" for label in labels), *(f"{label}, MB" for label in labels)]
    return table(header, rows)


def compile_table(entries):
    rows = [
        [
            entry["label"],
            "{1:.2f} [{0:.2f}]".format(*spread(entry["seconds"])),
            f"{entry['bytes']:,}",
        ]
        for entry in entries
    ]
    header = ["state example", "seconds to compile, median [least]", "bytes, stripped"]
    return table(header, rows)


def later(results):
    """The rows that were measured again, and when."""
    names = {}
    for name, date in results.get("dates", {}).items():
        names.setdefault(date, []).append(name)
    return "".join(f"; {', '.join(names[date])}: {date}" for date in names)


def report(results):
    """The text of report.md, from what results.json holds."""
    parts = [
        "# Benchmarks",
        "Written by `bench/run.py`, which has how it measures. "
        f"{results['machine']}, {results['date']}{later(results)}. "
        "Compare figures of one table only; other programs may have run on the machine, so two figures "
        "that differ by less than half may be equal.",
        "## What is promised",
        table(
            PROMISE_COLUMNS,
            [[row[column] for column in PROMISE_COLUMNS] for row in results["promised"]],
        ),
        f"*at the limit*: one of the two ratios is within {NOISE:.0%} of what is promised, or they lie on "
        "either side of it, so that noise decides; no digits are stated then.",
    ]
    if results["failures"]:
        parts.append(f"**Failed, and not measured: {', '.join(results['failures'])}.**")
    if "programs" in results:
        parts += [
            "## The public effect-handler benchmark programs",
            program_tables(results["programs"]),
            "`tail` uses tail-resumptive or never-resuming clauses where the program allows them. "
            "A peer has no column where it cannot express the program sensibly.",
        ]
    for name, loops in results.get("series", {}).items():
        parts += [f"## {SERIES_TITLES[name]}", series_table(loops)]
    if results.get("compile"):
        parts += ["## C++: compile time and size", compile_table(results["compile"])]
    if results.get("memory"):
        parts += ["## Memory of suspended computations", memory_table(results["memory"])]
    if any(results.get("waiting", {}).values()):
        parts += [
            "## OCaml: computations that wait: processor seconds, median [least], and peak memory",
            waiting_table(results["waiting"]),
        ]
    return "\n\n".join(parts) + "\n"


# The drawing: five operations, each with a bar a peer, the median of its loop in nanoseconds.
Operation = collections.namedtuple("Operation", "title series bars")
DRAWN = [
    Operation(
        "Suspend in a request, resume with the reply",
        "micro",
        [
            ("Haft", "haft/round-trip"),
            ("C++20 coroutine", "coroutines/round-trip"),
            ("Boost.Context", "boost/round-trip"),
            ("setjmp/longjmp", "setjmp/round-trip"),
        ],
    ),
    Operation(
        "Ask the nearest handler, which answers in place",
        "micro",
        [
            ("Haft", "haft/tail-resumptive"),
            ("virtual call", "plain/virtual-call"),
            ("indirect call", "plain/indirect-call"),
        ],
    ),
    Operation(
        "Create a computation, run it to its end, free it",
        "micro",
        [
            ("Haft", "haft/create-run-free"),
            ("C++20 coroutine", "coroutines/create-run-free"),
            ("Boost.Context", "boost/create-run-free"),
        ],
    ),
    Operation(
        "An element of a recursive generator, tree of depth 10",
        "generators",
        [
            ("Haft, C++", "cpp/trees/010"),
            ("Boost.Context", "boost/trees/010"),
            ("C++20 coroutine", "coroutines/trees/010"),
        ],
    ),
    Operation(
        "OCaml: two threads meet (chameneos)",
        "ocaml/chameneos",
        [
            ("Haft, OCaml 4", "haft/chameneos"),
            ("OCaml 5", "ocaml5/chameneos"),
            ("Lwt, OCaml 4", "lwt/chameneos"),
        ],
    ),
]
# The drawing has a ground of its own, so that it is legible on a page of either colour.
DRAWING_STYLE = """
  text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
  .title { font-weight: 600 }
  .note { font-size: 12px; fill: #59636e }
  .ground { fill: #ffffff; stroke: #d1d9e0 }
  .ours { fill: #0969da }
  .peer { fill: #8c959f }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc }
    .note { fill: #9198a1 }
    .ground { fill: #0d1117; stroke: #3d444d }
    .ours { fill: #4493f8 }
    .peer { fill: #656c76 }
  }
"""


def drawing(results):
    """The text of figures.svg. The bars of an operation share a scale: the longest takes the width."""
    width, left, longest, line = 720, 160, 460, 17
    parts, y = [], 12
    for operation in DRAWN:
        loops = results["series"].get(operation.series, {})
        bars = [(peer, loops[loop]["median"]) for peer, loop in operation.bars if loop in loops]
        if not bars:
            continue
        y += 14
        parts.append(f'<text class="title" x="20" y="{y}">{operation.title}</text>')
        y += 5
        scale = longest / max(figure for _, figure in bars)
        for peer, figure in bars:
            kind = "ours" if peer.startswith("Haft") else "peer"
            end = left + figure * scale
            parts += [
                f'<text x="{left - 10}" y="{y + 12}" text-anchor="end">{peer}</text>',
                f'<rect class="{kind}" x="{left}" y="{y + 2}" width="{figure * scale:.1f}" '
                'height="12" rx="2"/>',
                f'<text x="{end + 8:.1f}" y="{y + 12}">{two_digits(figure)} ns</text>',
            ]
            y += line
        y += 10
    machine = html.escape(results["machine"])
    note = f"Medians, each operation in one interleaved series; shorter is better. {machine}."
    parts.append(f'<text class="note" x="20" y="{y + 10}">{note}</text>')
    height = y + 24
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" aria-label="Five operations beside peers">',
            f"<style>{DRAWING_STYLE}</style>",
            f'<rect class="ground" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="6"/>',
            *parts,
            "</svg>",
        ]
    ) + "\n"


def two_digits(figure):
    return f"{figure:.1f}" if figure < 10 else f"{float(f'{figure:.2g}'):.0f}"


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
