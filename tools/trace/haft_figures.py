# SPDX-License-Identifier: MIT
"""Where the time of tasks goes, in figures."""

import collections
import os
import re
import subprocess

from haft_events import Reader, Trace

SHARES = ((50, "p50"), (90, "p90"), (99, "p99"), (99.9, "p99.9"))


def at_share(ordered, share):
    return ordered[min(len(ordered) - 1, int(len(ordered) * share / 100))]


def in_words(nanoseconds):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.1f} {unit}"
    return f"{nanoseconds:.0f} ns"


def in_source(frames, names):
    """Lines for frames: without those of the library that have waited, functions with their lines."""
    found = [names.get(frame, ("", frame)) for frame in frames]
    first = next((i for i, (name, _) in enumerate(found) if OWN.match(name)), -1)
    while first + 1 < len(found) - 1 and OWN.match(found[first + 1][0]):
        first += 1
    for name, place in found[first + 1 if first + 1 < len(found) else 0:]:
        yield f"{name} at {place}" if name and place else name or place


OWN = re.compile(r"haft(i?_|::)")


def names_of(frames):
    """By frame, "FILE+0xOFFSET SYMBOL": the function, and its line or its place in the file, as addr2line knows them."""
    by_file = collections.defaultdict(list)
    for frame in frames:
        place, _, symbol = frame.rpartition(" ")
        file, _, offset = place.rpartition("+")
        by_file[file].append((frame, offset, symbol if symbol != "?" else ""))
    names = {}
    for file, known in by_file.items():
        try:
            lines = subprocess.run(["addr2line", "-C", "-f", "-s", "-e", file] + [offset for _, offset, _ in known],
                                   capture_output=True, text=True, check=True).stdout.split("\n")
        except (OSError, subprocess.CalledProcessError):
            lines = ["??", "??:0"] * len(known)
        for (frame, offset, symbol), name, line in zip(known, lines[::2], lines[1::2]):
            name = re.sub(r"\.(constprop|isra|part|cold)\.\d+", "", name if name != "??" else symbol)
            line = re.sub(r"(:\?| \(discriminator \d+\))$", "", line)
            names[frame] = (name, line if not line.startswith("??") else "" if name else f"{file}+{offset}")
    return names


NUMBERLESS = ("accept", "connect", "poll")  # operations whose result is no number of bytes


class Stats(Reader):
    def __init__(self, trace):
        self.times = collections.defaultdict(lambda: collections.defaultdict(float))
        self.numbers = collections.defaultdict(set)
        self.delays = collections.defaultdict(list)
        self.runs, self.spans = [], collections.defaultdict(list)
        self.operations = collections.defaultdict(lambda: [0, 0, collections.Counter()])  # number, bytes, errors
        self.of_threads = collections.defaultdict(lambda: collections.defaultdict(float))
        self.stacks = collections.defaultdict(list)  # of runs, by task and begin
        self.effects, self.drops = collections.Counter(), collections.Counter()
        super().__init__(trace)

    def was(self, task, state, begin, end):
        self.times[task.name][state] += end - begin
        self.numbers[task.name].add(task.number)

    def ran(self, task, thread, begin, end):
        self.runs.append((end - begin, task.name, task.number, begin))
        self.of_threads[thread]["tasks"] += end - begin

    def polled(self, thread, what, begin, end):
        self.of_threads[thread][what] += end - begin

    def went_on(self, task, woken, thread, time):
        self.delays[task.name].append(max(0.0, time - woken[0]))

    def span(self, task, thread, span, begin, end):
        self.spans[(span.name, span.value)].append(end - begin)

    def operated(self, kind, descriptor, result):
        sums = self.operations[kind]
        sums[0] += 1
        if result < 0:
            sums[2][os.strerror(-result)] += 1
        elif kind not in NUMBERLESS:
            sums[1] += result

    def frame(self, task, run, index, text):
        stack = self.stacks[(task.number, run[0])]
        if index == len(stack):
            stack.append(text)

    def performed(self, task, thread, effect, by, time):
        self.effects[(effect, f"by '{by}'" if by is not None else "in place")] += 1

    def dropped(self, task, thread, name, effect, time):
        self.drops[name] += 1

    def shares(self, values):
        ordered = sorted(values)
        return "  ".join(f"{name} {in_words(at_share(ordered, share))}" for share, name in SHARES)

    def show(self):
        trace = self.trace
        first, last = (trace.events[0].time, trace.events[-1].time) if trace.events else (0.0, 0.0)
        lost = f"; {trace.lost} older ones were replaced" if trace.lost else ""
        print(f"process {trace.process}: {len(trace.events)} events of {len(trace.threads)} threads in "
              f"{in_words(last - first)}{lost}")
        for thread, times in self.of_threads.items():
            print(f"  thread {thread}: " + ", ".join(f"{what} {in_words(time)}" for what, time in times.items()))
        for name, states in sorted(self.times.items(), key=lambda item: -item[1]["running"]):
            print(f"\n'{name}': {len(self.numbers[name])} tasks")
            for state, time in sorted(states.items(), key=lambda item: -item[1]):
                if time:
                    print(f"  {state:32} {in_words(time)}")
            if self.delays[name]:
                print(f"  {'from wake to run':32} {self.shares(self.delays[name])}")
        if self.runs:
            print("\nlongest runs without a wait:")
            longest = sorted(self.runs, reverse=True)[:5]
            stacks = {run: self.stacks.get(run[2:], []) for run in longest}
            names = names_of({frame for stack in stacks.values() for frame in stack})
            for run in longest:
                time, name, number, begin = run
                print(f"  {in_words(time):>10}  '{name}' (task {number}), {in_words(begin)} after the begin")
                for line in in_source(stacks[run], names):
                    print(f"{'':14}{line}")
        if self.operations:
            print("\noperations:")
            for kind, (count, size, errors) in sorted(self.operations.items()):
                words = [f"{count:,}"] + ([f"{size:,} bytes"] if size else [])
                print(f"  {kind:32} " + "; ".join(words + [f"{number:,} {text}" for text, number in errors.items()]))
        if self.effects or self.drops:
            print("\neffects:")
            for (effect, how), count in self.effects.most_common():
                print(f"  {effect + ' ' + how:48} {count:,}")
            for name, count in self.drops.most_common():
                print(f"  {'dropped: ' + repr(name):48} {count:,}")
        if self.spans:
            print("\nspans:")
            for (name, value), times in sorted(self.spans.items()):
                print(f"  {name} = {value}: {len(times)}  {self.shares(times)}")


def stats(options):
    Stats(Trace(options.file)).show()
