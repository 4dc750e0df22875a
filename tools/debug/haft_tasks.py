# SPDX-License-Identifier: MIT
"""Runs of libhaft-io, their tasks, and what these wait for."""
import struct

from haft_fibers import Fiber
from haft_memory import Unreadable


class Run:
    def __init__(self, process, address):
        self.process, self.address = process, address
        self.number = process.word(address, "crew.number")
        count = process.number(address, "crew.count")
        at = address + process["crew.workers"]
        self.workers = list(struct.unpack(f"<{count}Q", process.read(at, 8 * count)))
        self.root = address + process["crew.root"]
        self.date_offset = process.signed(process.word(address, "crew.date_offset"))
        self.backend = process.string(process.word(process.word(self.workers[0], "worker.backend"), "backend.name"))
        self.simulated = process.word(self.workers[0], "worker.simulated")

    def seed(self):
        return self.process.word(self.simulated, "simulated.seed") if self.simulated != 0 else None

    def now(self):
        """By the run's clock: now, or for a core file the latest time that the run has written down."""
        process = self.process
        if self.simulated != 0:
            return process.signed(process.word(self.simulated, "simulated.now"))
        now = process.memory.now()
        if now is not None:
            return now
        latest = max(process.signed(process.word(worker, "worker.clock")) for worker in self.workers)
        return max([latest] + [task.since for task in process.tasks() if task.run.address == self.address])

    def tasks(self):
        process = self.process
        size = process["task"]
        running = {process.word(worker, "worker.running"): worker for worker in self.workers}
        for worker in self.workers:
            records = worker + process["worker.tasks"]
            fresh = process.word(records, "records.fresh")
            blocks = []
            block = process.word(worker, "worker.blocks")
            while block != 0:
                if process.word(block, "block.kind") == records:
                    blocks.append(block)
                block = process.word(block, "block.next")
            for block in reversed(blocks):
                end = block + process.word(block, "block.size")
                if block < fresh <= end:
                    end = fresh
                first = block + process["block"]
                count = (end - first) // size
                content = process.read(first, count * size)
                for i in range(count):
                    if content[i * size + process["task.state"]] != process["=FREE"]:
                        yield Task(process, self, first + i * size, content[i * size : (i + 1) * size], running)


class Task:
    def __init__(self, process, run, address, content, running):
        self.process, self.run, self.address = process, run, address
        self.name = process.string(process.of(content, "task.name"))
        self.home = process.of(content, "task.home")
        self.joiner = process.of(content, "task.joiner")
        self.worker = process.of(content, "task.worker")
        self.function = process.of(content, "task.function")
        self.argument = process.of(content, "task.argument")
        self.state = process.byte_of(content, "task.state")
        self.runner = process.of(content, "task.runner")
        self.fiber = self.cell = self.scope = self.since = self.own = 0
        self.spawned_at = process.of(content, "task.spawned_at") if self.state == process["=NEW"] else 0
        self.waits_for = ""
        self._context = None
        if self.state == process["=ENDED"]:
            self.runner = self.function = 0
        if self.runner == 0:
            return
        try:
            inside = process.read(self.runner, process["runner"])
        except Unreadable:
            return
        if process.of(inside, "runner.task") != address:
            return  # its runner has another by now
        self.fiber = process.of(inside, "runner.fiber")
        self.scope = process.of(inside, "runner.scope")
        self.spawned_at = process.of(inside, "runner.spawned_at")
        self.own = process.of(inside, "runner.own")
        self.is_running = self.runner in running
        if self.state == process["=PARKED"]:
            self.cell = process.of(inside, "runner.cell")
            self.waits_for = process.string(process.of(inside, "runner.waits_for"))
            self.since = process.signed(process.of(inside, "runner.waits_since"))

    def state_name(self):
        process = self.process
        if self.waits_for:
            return "waits for: " + self.waits_for
        names = {"NEW": "has not started", "READY": "is ready", "OFFERED": "is ready", "RUNNING": "runs",
                 "PARKED": "is about to wait", "ENDED": "has ended, and is to be joined"}
        for state, name in names.items():
            if self.state == process["=" + state]:
                return name
        return f"state {self.state}"

    def waits(self):
        return self.waits_for != ""

    def context(self):
        """Where it goes on, or None: it runs, has no stack, or has not started."""
        if self._context is None and self.fiber != 0:
            self._context = Fiber(self.process, self.fiber)
        return self._context.context() if self._context is not None else None

    def depth(self):
        return self._context.depth() if self.context() is not None else None

    def likeness(self):
        """Tasks of which this is the same are shown as one."""
        context = self.context()
        return (self.home, self.name, self.state_name(), self.function, context.pc if context else 0, self.depth(),
                self.fiber == 0)

    # ---- What it waits for ----

    def _words_of_stack(self):
        MOST = 4096
        context = self.context()
        if context is None:
            return 0, ()
        size = min(MOST, max(self._context.high - context.sp, 0)) & ~7
        try:
            return context.sp, struct.unpack(f"<{size // 8}Q", self.process.read(context.sp, size))
        except Unreadable:
            return 0, ()

    def cells(self):
        """The cells by which it may wait. One of a wait that no cancel ends is found on its stack."""
        if self.cell > 1:
            return [self.cell]
        at, words = self._words_of_stack()
        offset = self.process["cell.task"]
        return [at + 8 * i - offset for i, word in enumerate(words) if word == self.address]

    def waiting_lists(self):
        """The addresses of the lists of waiters in which it stands."""
        cells = set(self.cells())
        at, words = self._words_of_stack()
        process = self.process
        found = []
        for i, word in enumerate(words):
            if word not in cells:
                continue
            place = at + 8 * i - process["waiting_place.cell"]
            try:
                waiting = process.word(place, "waiting_place.list")
                if waiting != 0 and place in process.members_of(waiting) and waiting not in found:
                    found.append(waiting)
            except Unreadable:
                continue
        return found

    OBJECTS = {"a mutex": ("mutex", "mutex.waiting"), "a semaphore": ("semaphore", "semaphore.waiting"),
               "a condition": ("condition", "condition.waiting"), "a lock to read": ("rwlock", "rwlock.waiting"),
               "a lock to write": ("rwlock", "rwlock.waiting"), "an event": ("event", "event.waiting"),
               "a promise": ("promise", "event.waiting"), "a task to end": ("event", "event.waiting"),
               "the others at a barrier": ("barrier", "barrier.waiting"),
               "a channel to send to": ("channel", "channel.senders"),
               "a channel to receive from": ("channel", "channel.receivers")}

    def objects(self):
        """(kind, address) of each object of the library that it waits for."""
        if self.waits_for not in self.OBJECTS:
            return []
        kind, field = self.OBJECTS[self.waits_for]
        return [(kind, waiting - self.process[field]) for waiting in self.waiting_lists()]

    def descriptors(self):
        if not self.waits():
            return []
        known = self.process.descriptors_of(self.run)
        return sorted({number for cell in self.cells() for number in known.get(cell, ())})

    def joins(self):
        """The tasks for whose end it waits."""
        cells = self.cells() if self.waits_for == "a task to end" else ()
        return [task for cell in cells for task in self.process.tasks_by("joiner").get(cell, ())]

    def closes(self):
        """The scope for whose tasks it waits, or None."""
        if self.waits_for != "the tasks of its scope":
            return None
        closing = [scope.address for scope in TaskScope(self.process, self.scope).inner() if scope.owner == self.address]
        return closing[0] if closing else self.scope


class TaskScope:
    def __init__(self, process, address):
        self.process, self.address = process, address
        content = process.read(address, process["task_scope"])
        self.name = process.string(process.of(content, "task_scope.name"))
        self.outer = process.of(content, "task_scope.outer")
        self.owner = process.of(content, "task_scope.owner")
        self.marks = [mark for mark in ("cancelled", "late", "shielded")
                      if process.byte_of(content, "task_scope." + mark) != 0]

    def inner(self):
        process = self.process
        head = self.address + process["task_scope.inner"]
        link = process.word(head, "link.next")
        scopes = []
        while link not in (0, head) and len(scopes) < 1000000:
            scopes.append(TaskScope(process, link - process["task_scope.sibling"]))
            link = process.word(link, "link.next")
        return scopes
