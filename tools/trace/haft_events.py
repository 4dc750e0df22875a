# SPDX-License-Identifier: MIT
"""Reads traces: their events, and what tasks, threads and spans did. io/src/trace.c has the format."""

import os
import struct

MAGIC = b"HAFTTRC\0"
HEADER = struct.Struct("<8sIIIIQQQQQQQQ")
VERSION = 2
RING = struct.Struct("<QII")
RING_SIZE = 64  # of what stands before the events
EVENT = struct.Struct("<QQQIBBH")
# enum hafti_io_event of io/src/trace.h
(SPAWN, RUN, PARK, YIELD, WAKE, STEAL, OPERATION, END, NAME, POLL, POLLED, DEADLINE, CANCEL, SPAN_BEGIN,
 SPAN_END, SPAN_ID, OPERATED, FRAME, RESUME, PERFORM, HANDLE, FINISH, DROP) = range(1, 24)
OUTCOMES = {2: "woken", 3: "cancelled", 4: "timed out"}


class Unusable(Exception):
    """The file is no trace, or one of another version."""


class Event:
    __slots__ = ("time", "thread", "task", "other", "text", "kind", "code")

    def __init__(self, time, thread, task, other, text, kind, code):
        self.time, self.thread, self.task = time, thread, task
        self.other, self.text, self.kind, self.code = other, text, kind, code


class Trace:
    """The events of all threads, by their time, in nanoseconds since the trace has begun."""

    def __init__(self, path):
        with open(path, "rb") as file:
            begin = file.read(HEADER.size)
            if len(begin) < HEADER.size or begin[:8] != MAGIC:
                raise Unusable(f"{path} is no trace: HAFT_IO_TRACE=FILE or `haft-trace record` makes one")
            (_, version, self.process, rings, self.ring_events, texts_at, rings_at, ring_size, self.first,
             nanoseconds_first, last, nanoseconds_last, self.date_first) = HEADER.unpack(begin)
            if version != VERSION:
                raise Unusable(f"{path} is a trace of version {version}, and this haft-trace reads version {VERSION}")
            ticks = last - self.first
            self.per_tick = (nanoseconds_last - nanoseconds_first) / ticks if ticks > 0 else 1.0
            file.seek(texts_at)
            self.texts = file.read(rings_at - texts_at)
            self.known = {0: ""}
            self.threads, self.lost, self.events = [], 0, []
            for index in range(rings):
                file.seek(rings_at + index * ring_size)
                head = file.read(RING.size)
                if len(head) == RING.size and RING.unpack(head)[2] != 0:
                    file.seek(rings_at + index * ring_size)
                    self.read_ring(file.read(ring_size))
        self.events.sort(key=lambda event: event.time)  # stable: those of a thread stay in order

    def text(self, at):
        if at not in self.known:
            end = self.texts.find(b"\0", at)
            self.known[at] = self.texts[at:end].decode(errors="replace")
        return self.known[at]

    def read_ring(self, ring):
        count, thread, _ = RING.unpack_from(ring)
        self.threads.append(thread)
        # The oldest of a full ring may be being replaced.
        begin = max(0, count - self.ring_events + 1) if count >= self.ring_events else 0
        self.lost += begin
        for number in range(begin, count):
            at = RING_SIZE + number % self.ring_events * EVENT.size
            ticks, task, other, text, kind, code, _ = EVENT.unpack_from(ring, at)
            time = (ticks - self.first) * self.per_tick
            self.events.append(Event(time, thread, task, other, self.text(text), kind, code))


class Span:
    """A span of the program, which may be inside another one of its task."""

    def __init__(self, name, since, outer):
        self.name, self.since, self.outer = name, since, outer
        self.ids = {}  # by enum of io/src/trace.h: of the trace, of the span, of its parent
        self.value = None


TRACE_HIGH, TRACE_LOW, SPAN, SPAN_PARENT = range(4)


def trace_id(span):
    return f"{span.ids.get(TRACE_HIGH, 0):016x}{span.ids[TRACE_LOW]:016x}"


DEEPEST = 32  # spawners of spawners that are remembered


class Task:
    """One task, from its spawn to its end."""

    def __init__(self, number, name, time, spawner=None):
        self.number, self.name, self.since = number, name, time
        self.spawners = ()  # names, the outermost first; the same in a row once
        if spawner is not None:
            inner = (spawner.name,) if spawner.spawners[-1:] != (spawner.name,) else ()
            self.spawners = (spawner.spawners + inner)[-DEEPEST:]
        self.state = "unknown"  # running, ready, or "waits: ..."
        self.woken_at = None  # (time, thread, task or None) of a wake that no run has followed yet
        self.outcome = ""
        self.spans = []


class Computation:
    """A fiber that runs on a task, or on a thread that runs none."""

    def __init__(self, fiber, name, since):
        self.fiber, self.name, self.since = fiber, name, since


class Reader:
    """Goes through the events. The methods of subclasses are called with each state that is over,
    run and span."""

    def __init__(self, trace):
        self.trace = trace
        self.tasks = {}  # by address
        self.count = 0
        self.running = {}  # by thread: (task, since)
        self.polling = {}  # by thread: (what, since)
        self.names = {}  # of fibers, by address
        self.computing = {}  # by task, or thread: computations, the innermost last
        self.last_run = {}  # by thread: (task, begin, end)
        last = 0.0
        for event in trace.events:
            last = event.time
            self.take(event)
        for thread, (task, since) in list(self.running.items()):
            self.stops(thread, last)
        for task in list(self.tasks.values()):
            self.enter(task, "over", last)

    # Methods of subclasses.
    def was(self, task, state, begin, end):
        """The task was in this state."""

    def ran(self, task, thread, begin, end):
        """The thread ran the task."""

    def polled(self, thread, what, begin, end):
        """The thread polled, or slept."""

    def went_on(self, task, woken, thread, time):
        """The task, `woken` as (time, thread, waker), runs."""

    def span(self, task, thread, span, begin, end):
        """A span of the program is over."""

    def operated(self, kind, descriptor, result):
        """An operation has its result."""

    def instant(self, event, name, arguments):
        """Something has happened on the event's thread."""

    def frame(self, task, run, index, text):
        """A frame of the task's stack at the end of the run; 0: the innermost."""

    def performed(self, task, thread, effect, by, time):
        """An effect is handled: by the handler, or fiber, of this name; None: in place."""

    def computed(self, task, thread, computation, end, why):
        """A fiber ran from `computation.since` on; task: None: on a thread without one."""

    def dropped(self, task, thread, name, effect, time):
        """A computation ends that has awaited the reply to `effect`."""

    # ----

    def task_at(self, event):
        task = self.tasks.get(event.task)
        return task if task is not None else self.new_task(event, "a task")

    def new_task(self, event, name, spawner=None):
        self.count += 1
        task = self.tasks[event.task] = Task(self.count, name, event.time, spawner)
        return task

    def enter(self, task, state, time):
        if task.state != "unknown" and time > task.since:
            self.was(task, task.state, task.since, time)
        task.state, task.since = state, time

    def stops(self, thread, time):
        task, since = self.running.pop(thread, (None, 0.0))
        if task is not None:
            self.ran(task, thread, since, time)
            self.last_run[thread] = (task, since, time)
        return task

    def take(self, event):
        take = getattr(self, "take_" + KINDS[event.kind], None) if event.kind < len(KINDS) else None
        if take is not None:
            take(event)

    def take_spawn(self, event):
        old = self.tasks.pop(event.task, None)
        if old is not None:
            self.enter(old, "over", event.time)
        task = self.new_task(event, event.text or "a task", self.tasks.get(event.other))
        self.enter(task, "ready", event.time)
        task.woken_at = (event.time, event.thread, self.tasks.get(event.other))

    def take_run(self, event):
        task = self.task_at(event)
        task.name = event.text or task.name
        if self.running.get(event.thread, (None, 0.0))[0] is task:
            return
        self.stops(event.thread, event.time)
        self.running[event.thread] = (task, event.time)
        self.enter(task, "running", event.time)
        if task.woken_at is not None:
            self.went_on(task, task.woken_at, event.thread, event.time)
        task.woken_at = None

    def take_park(self, event):
        task = self.task_at(event)
        if self.running.get(event.thread, (None, 0.0))[0] is task:
            self.stops(event.thread, event.time)
        # It may have been woken before it was suspended.
        self.enter(task, "ready" if task.woken_at is not None else f"waits: {event.text or 'something'}", event.time)

    def take_yield(self, event):
        task = self.task_at(event)
        self.stops(event.thread, event.time)
        self.enter(task, "ready", event.time)
        task.woken_at = (event.time, event.thread, None)

    def take_wake(self, event):
        if event.task == 0:
            return
        task = self.task_at(event)
        waker = self.tasks.get(event.other)
        task.woken_at, task.outcome = (event.time, event.thread, waker), OUTCOMES.get(event.code, "woken")
        if task.state != "running":
            self.enter(task, "ready", event.time)
        if event.code in (3, 4):
            self.instant(event, f"{task.name} is {OUTCOMES[event.code]}", {"task": task.number})

    def take_end(self, event):
        task = self.task_at(event)
        self.stops(event.thread, event.time)
        self.enter(task, "over", event.time)
        del self.tasks[event.task]

    def take_name(self, event):
        self.task_at(event).name = event.text

    def take_poll(self, event):
        self.polling[event.thread] = ("sleep" if event.code else "poll", event.time)

    def take_polled(self, event):
        what, since = self.polling.pop(event.thread, (None, 0.0))
        if what is not None:
            self.polled(event.thread, what, since, event.time)

    def take_steal(self, event):
        task = self.task_at(event)
        self.instant(event, "steal", {"task": task.number, "from worker": event.other})

    def take_operation(self, event):
        descriptor, size = signed(event.other >> 32, 32), event.other & 0xFFFFFFFF
        self.instant(event, event.text, {"descriptor": descriptor, "bytes": size})

    def take_operated(self, event):
        descriptor, result = signed(event.other >> 32, 32), signed(event.other & 0xFFFFFFFF, 32)
        words = {"descriptor": descriptor, "result": result}
        if result < 0:
            words["error"] = os.strerror(-result)
        self.instant(event, f"{event.text} done", words)
        self.operated(event.text, descriptor, result)

    def take_deadline(self, event):
        self.instant(event, "deadline", {"task": self.task_at(event).number})

    def take_cancel(self, event):
        self.instant(event, f"cancel {event.text or 'a scope'}", {})

    def take_span_begin(self, event):
        if event.task != 0:
            task = self.task_at(event)
            task.spans.append(Span(event.text, event.time, task.spans[-1] if task.spans else None))

    def take_span_id(self, event):
        if event.task != 0:
            task = self.task_at(event)
            if task.spans:
                task.spans[-1].ids[event.code] = event.other

    def take_span_end(self, event):
        if event.task == 0:
            return
        task = self.task_at(event)
        if task.spans:
            span = task.spans.pop()
            span.name, span.value = event.text or span.name, signed(event.other, 64)
            self.span(task, event.thread, span, span.since, event.time)

    def take_frame(self, event):
        run = self.last_run.get(event.thread)
        if run is not None:
            self.frame(run[0], run[1:], event.code, event.text)

    def computations(self, event):
        task = self.task_at(event) if event.task != 0 else None
        return task, self.computing.setdefault(task if task is not None else event.thread, [])

    def take_resume(self, event):
        _, stack = self.computations(event)
        name = self.names[event.other] = event.text or f"fiber {event.other:#x}"
        stack.append(Computation(event.other, name, event.time))

    def leave(self, event, why):
        """The computation is suspended, or over, and those that run inside of it."""
        task, stack = self.computations(event)
        if any(one.fiber == event.other for one in stack):
            while stack:
                one = stack.pop()
                self.computed(task, event.thread, one, event.time, why)
                if one.fiber == event.other:
                    break
        return task

    def take_perform(self, event):
        task = self.leave(event, f"performs {event.text}")
        by = self.names.get(event.other, f"fiber {event.other:#x}")
        self.performed(task, event.thread, event.text, by, event.time)

    def take_handle(self, event):
        task, _ = self.computations(event)
        self.performed(task, event.thread, event.text, None, event.time)

    def take_finish(self, event):
        self.leave(event, f"throws {event.text}" if event.text else "ends")
        self.names.pop(event.other, None)

    def take_drop(self, event):
        task, _ = self.computations(event)
        name = self.names.get(event.other, f"fiber {event.other:#x}")
        self.dropped(task, event.thread, name, event.text, event.time)


def signed(value, bits):
    return value if value < 1 << (bits - 1) else value - (1 << bits)


KINDS = ("none spawn run park yield wake steal operation end name poll polled deadline cancel span_begin "
         "span_end span_id operated frame resume perform handle finish drop").split()
