# SPDX-License-Identifier: MIT
"""The programs and series that bench/run.py measures, and the limits that are promised of them."""

import collections

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
