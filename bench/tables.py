# SPDX-License-Identifier: MIT
"""The text of bench/report.md, from what bench/results.json holds."""

import statistics

from judging import spread
from promised import MEMORY_TIMES, NOISE, PEER_NAMES, PROMISE_COLUMNS, SERIES_TITLES, SPREAD


def table(header, rows):
    alignment = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, alignment, *rows])


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
