# SPDX-License-Identifier: MIT
"""Functions that run the programs of promised.py, and return the samples."""

import collections
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

from promised import (
    COMPILED,
    MEMORY_REPEATS,
    MEMORY_RUNS,
    MEMORY_TIMES,
    OCAML_PEERS,
    OCAML_PROGRAMS,
    PEERS,
    PEER_NAMES,
    PROGRAMS,
    PUBLIC_SET,
    SLICES,
    WAITING,
)


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
