# SPDX-License-Identifier: MIT
"""Traces as pictures: for Perfetto and Chrome, for flame graphs, and as a drawing."""

import collections
import json
import sys
from xml.sax.saxutils import escape

from haft_events import Reader, Trace, TRACE_LOW, trace_id

# ---- view ----

TASKS = 1  # the "process" whose threads are the tasks


EFFECTS = 1 << 20  # and the task's number: the track of its computations


class View(Reader):
    def __init__(self, trace):
        self.events, self.named, self.flows, self.with_effects = [], {}, 0, {}
        super().__init__(trace)
        process = trace.process if trace.process != TASKS else TASKS + 1
        for event in self.events:
            event["pid"] = process if event["pid"] is None else event["pid"]
        for number, name in ((process, f"threads of process {trace.process}"), (TASKS, "tasks")):
            self.events.append({"ph": "M", "name": "process_name", "pid": number, "args": {"name": name}})
        for thread in trace.threads:
            self.events.append({"ph": "M", "name": "thread_name", "pid": process, "tid": thread,
                                "args": {"name": f"thread {thread}"}})
        for number, name in self.named.items():
            self.events.append({"ph": "M", "name": "thread_name", "pid": TASKS, "tid": number,
                                "args": {"name": f"{name} (task {number})"}})
        for number in self.with_effects:
            self.events.append({"ph": "M", "name": "thread_name", "pid": TASKS, "tid": EFFECTS + number,
                                "args": {"name": f"{self.named.get(number, 'a task')} (task {number}): computations"}})

    def add(self, kind, track, name, time, **more):
        process, thread = track
        self.events.append({"ph": kind, "pid": process, "tid": thread, "name": name, "ts": time / 1000, **more})

    def was(self, task, state, begin, end):
        self.named[task.number] = task.name
        arguments = {"after": task.outcome} if state == "ready" and task.outcome else {}
        self.add("X", (TASKS, task.number), state, begin, dur=(end - begin) / 1000, cat="task", args=arguments)

    def ran(self, task, thread, begin, end):
        self.named[task.number] = task.name
        self.add("X", (None, thread), task.name, begin, dur=(end - begin) / 1000, cat="run",
                 args={"task": task.number})

    def polled(self, thread, what, begin, end):
        self.add("X", (None, thread), what, begin, dur=(end - begin) / 1000, cat="poll")

    def went_on(self, task, woken, thread, time):
        self.flows += 1
        self.add("s", (None, woken[1]), "wake", woken[0], cat="wake", id=self.flows)
        self.add("f", (None, thread), "wake", time, cat="wake", id=self.flows, bp="e")

    def span(self, task, thread, span, begin, end):
        self.flows += 1
        same = {"cat": "span", "id": self.flows}
        arguments = {"value": span.value}
        if TRACE_LOW in span.ids:
            arguments["trace"] = trace_id(span)
        self.add("b", (TASKS, task.number), span.name, begin, **same, args=arguments)
        self.add("e", (TASKS, task.number), span.name, end, **same)

    def track_of(self, task, thread):
        if task is None:
            return None, thread
        self.with_effects[task.number] = True
        self.named.setdefault(task.number, task.name)
        return TASKS, EFFECTS + task.number

    def computed(self, task, thread, computation, end, why):
        self.add("X", self.track_of(task, thread), computation.name, computation.since,
                 dur=(end - computation.since) / 1000, cat="computation", args={"until it": why})

    def performed(self, task, thread, effect, by, time):
        self.add("i", self.track_of(task, thread), f"perform {effect}", time, s="t",
                 args={"handled": f"by {by}" if by is not None else "in place"})

    def dropped(self, task, thread, name, effect, time):
        self.add("i", self.track_of(task, thread), f"drop {name}", time, s="t", args={"waits for": effect})

    def instant(self, event, name, arguments):
        self.add("i", (None, event.thread), name, event.time, s="t", args=arguments)


def view(options):
    trace = Trace(options.file)
    events = View(trace).events
    with open(options.output, "w", encoding="utf-8") if options.output != "-" else sys.stdout as out:
        json.dump({"displayTimeUnit": "ns", "traceEvents": events}, out)
        out.write("\n")
    if options.output != "-":
        print(f"{options.output}: {len(events)} events. Open it in https://ui.perfetto.dev, or chrome://tracing.")


# ---- flame ----


class Flame(Reader):
    """How long tasks were in these states, by spawners, name, spans and state."""

    def __init__(self, trace, states):
        self.states, self.stacks = states, collections.Counter()
        super().__init__(trace)

    def was(self, task, state, begin, end):
        if not state.startswith(self.states):
            return
        own = (task.name,) if task.spawners[-1:] != (task.name,) else ()
        stack = task.spawners + own + tuple(span.name for span in task.spans) + (state,)
        self.stacks[";".join(frame.replace(";", ",") for frame in stack)] += end - begin


STATES = {"waits": ("waits: ",), "ready": ("ready",), "running": ("running",), "all": ("waits: ", "ready", "running")}


def flame(options):
    stacks = Flame(Trace(options.file), STATES[options.of]).stacks
    with open(options.output, "w", encoding="utf-8") if options.output != "-" else sys.stdout as out:
        for stack, time in sorted(stacks.items()):
            if time >= 1e3:
                out.write(f"{stack} {time / 1e3:.0f}\n")


# ---- draw ----

STYLE = """  text { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
  .note { font-size: 11px; fill: #59636e }
  .ground { fill: #ffffff; stroke: #d1d9e0 }
  .waits { fill: #eaeef2 }
  .ready { fill: #d4a72c }
  .running { fill: #0969da }
  .wake { stroke: #cf222e; fill: none }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc }
    .note { fill: #9198a1 }
    .ground { fill: #0d1117; stroke: #3d444d }
    .waits { fill: #21262d }
    .ready { fill: #bb8009 }
    .running { fill: #4493f8 }
    .wake { stroke: #f85149 }
  }
"""
LEFT, WIDTH, ROW, TOP, LETTER = 130, 760, 24, 34, 6  # pixels


class Drawing(Reader):
    """A row a task, in the order in which they began, and an arrow for each task that wakes another."""

    def __init__(self, trace, most):
        self.slices, self.arrows, self.rows, self.most = [], [], {}, most
        super().__init__(trace)
        self.begin = min((begin for _, _, begin, _ in self.slices), default=0.0)
        self.end = max((end for _, _, _, end in self.slices), default=1.0)

    def row(self, task):
        if task not in self.rows and len(self.rows) < self.most:
            self.rows[task] = len(self.rows)
        return self.rows.get(task)

    def was(self, task, state, begin, end):
        if self.row(task) is not None:
            self.slices.append((task, state, begin, end))

    def went_on(self, task, woken, thread, time):
        if woken[2] is not None and woken[2] is not task:
            self.arrows.append((woken[2], woken[0], task, time))

    def x(self, time):
        return LEFT + (time - self.begin) / (self.end - self.begin) * (WIDTH - LEFT - 12)

    def text(self):
        height = TOP + ROW * len(self.rows) + 26
        yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
               f'height="{height}" role="img" aria-label="A trace of {len(self.rows)} tasks">\n<style>\n{STYLE}</style>')
        yield f'<rect class="ground" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="6"/>'
        yield from self.legend()
        for task, row in self.rows.items():
            yield f'<text x="{LEFT - 8}" y="{TOP + ROW * row + 15}" text-anchor="end">{escape(task.name)}</text>'
        for task, state, begin, end in self.slices:
            yield from self.slice(TOP + ROW * self.rows[task], state, self.x(begin), self.x(end))
        for waker, woken, task, runs in self.arrows:
            if waker in self.rows and task in self.rows:
                ends = [TOP + ROW * self.rows[one] + 10 for one in (waker, task)]
                yield f'<path class="wake" d="M{self.x(woken):.1f} {ends[0]}L{self.x(runs):.1f} {ends[1]}"/>'
        for step in range(5):
            time = (self.end - self.begin) * step / 4
            anchor = "end" if step == 4 else "middle" if step else "start"
            yield (f'<text class="note" x="{self.x(self.begin + time):.1f}" y="{height - 10}" '
                   f'text-anchor="{anchor}">{time / 1e6:.1f} ms</text>')
        yield "</svg>"

    def legend(self):
        at = LEFT
        for state, words in (("running", "runs"), ("ready", "is ready"), ("waits", "waits")):
            yield f'<rect class="{state}" x="{at}" y="12" width="12" height="12" rx="2"/>'
            yield f'<text class="note" x="{at + 17}" y="22">{words}</text>'
            at += 90
        yield f'<path class="wake" d="M{at} 18h14"/><text class="note" x="{at + 19}" y="22">wakes</text>'

    def slice(self, y, state, left, right):
        kind, _, words = state.partition(": ")
        least = 2.0 if kind == "running" else 0.5
        width = max(least, right - left)
        yield f'<rect class="{kind}" x="{left:.1f}" y="{y}" width="{width:.1f}" height="20" rx="1"/>'
        if words and len(words) * LETTER < width - 8:
            yield f'<text class="note" x="{left + 5:.1f}" y="{y + 14}">{escape(words)}</text>'


def draw(options):
    drawing = Drawing(Trace(options.file), options.tasks)
    with open(options.output, "w", encoding="utf-8") if options.output != "-" else sys.stdout as out:
        out.write("\n".join(drawing.text()) + "\n")
