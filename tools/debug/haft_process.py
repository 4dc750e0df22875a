# SPDX-License-Identifier: MIT
"""A stopped process or a core file: its threads, fibers and tasks."""
import struct

from haft_fibers import Fiber
from haft_memory import Shown, Unreadable
from haft_tasks import Run


class Process(Shown):
    """Made anew whenever the process has run."""

    def __init__(self, memory):
        super().__init__(memory)
        self._tasks = None
        self._fibers = self._running = None
        self._threads = None
        self._members = {}
        self._indexes = {}
        self._descriptors = {}

    # ---- Threads ----

    def threads(self):
        """By number of the debugger: the address of the library's state of the thread; without those of threads
        that have not used it."""
        if self._threads is None:
            self._threads = {}
            offset = self.signed(self.word(self["&thread_offset"]))
            for number, pointer in self.memory.thread_pointers() if offset != 0 else ():
                try:
                    thread = pointer + offset
                    if self.word(thread, "thread.stamp") != 0:
                        self._threads[number] = thread
                except Unreadable:
                    pass
        return self._threads

    # ---- Fibers ----

    def fibers(self):
        if self._fibers is None:
            self._fibers = [Fiber(self, address) for address in self._fiber_addresses()]
            self._fibers = [fiber for fiber in self._fibers if fiber.state != "dropped"]
        return self._fibers

    def running_fibers(self):
        """The fibers on which the threads run, or which wait for one that they have resumed."""
        if self._running is None:
            self._running = set()
            for thread in self.threads().values():
                scope, seen = self.word(thread, "thread.current"), set()
                while scope != 0 and scope not in seen:
                    seen.add(scope)
                    if self.byte(scope, "scope.kind") == self["=SCOPE_FIBER"]:
                        self._running.add(scope - self["fiber.scope"])
                    scope = self.word(scope, "scope.outer")
        return self._running

    def _fiber_addresses(self):
        table = self.word(self["&chunk_table"])
        if table != 0:
            for i in range(self.word(table, "chunk_table.count")):
                yield from self._fibers_of_chunk(self.word(table + self["chunk_table.chunks"] + 8 * i))
        places = [self.word(self["&places"])]
        while places:
            place = places.pop()
            if place != 0:
                yield self.word(place, "place.fiber")
                places += [self.word(place, "place.left"), self.word(place, "place.right")]

    def _fibers_of_chunk(self, chunk):
        slots = self.word(chunk, "chunk.slots")
        used = self.word(chunk, "chunk.used")
        states = self.read(chunk + self["chunk.state"], used) if used != 0 else b""
        base, stride = self.word(chunk, "chunk.base"), self.word(slots, "slots.stride")
        kind, size = self.byte(slots, "slots.kind"), self["fiber"]
        colours = self["=COLOURS"] if self.word(chunk, "chunk.count") > self["=FEW_SLOTS"] else self["=MORE_COLOURS"]
        if stride % 4096 != 0:
            colours = 1
        for index in (i for i, state in enumerate(states) if state & self["=HELD"]):
            end = base + stride * (index + 1)
            if kind == self["=KIND_SEGMENTED"]:
                yield end - size
                continue
            if kind == self["=KIND_UNGUARDED"]:
                end -= self["=CANARY_ROOM"]
            end -= index % colours * self["=COLOUR_STEP"]
            yield (end - size) & ~63

    def fiber_states(self):
        return {self["=FIBER_" + name.upper()]: name for name in ("new", "suspended", "running", "finished", "dropped")}

    # ---- Tasks ----

    def has_tasks(self):
        return self.has("task")

    def runs(self):
        """The addresses of all runs, the first one first. The runs of simulations are found by their threads."""
        runs = []
        run = self.word(self["&runs"])
        while run != 0:
            runs.append(run)
            run = self.word(run, "crew.next_run")
        offset = self.signed(self.word(self["&worker_offset"]))
        for _, pointer in self.memory.thread_pointers() if offset != 0 else ():
            try:
                worker = self.word(pointer + offset)
                run = self.word(worker, "worker.crew") if worker != 0 else 0
            except Unreadable:
                continue
            if run != 0 and run not in runs:
                runs.append(run)
        return [Run(self, run) for run in sorted(runs, key=lambda run: self.word(run, "crew.number"))]

    def tasks(self):
        """All tasks of all runs that have not been freed."""
        if self._tasks is None:
            self._tasks = []
            for run in self.runs() if self.has_tasks() else ():
                first = self.word(run.address, "crew.main")
                self._tasks += sorted(run.tasks(), key=lambda task: (task.address != first, not task.since, task.since,
                                                                     task.address))
        return self._tasks

    def tasks_by(self, attribute):
        """The tasks by the value of an attribute that is not 0, each in a list."""
        if attribute not in self._indexes:
            index = {}
            for task in self.tasks():
                value = getattr(task, attribute)
                if value != 0:
                    index.setdefault(value, []).append(task)
            self._indexes[attribute] = index
        return self._indexes[attribute]

    def task_at(self, address):
        return self.tasks_by("address").get(address, [None])[0]

    def members_of(self, waiting):
        """The places in a list of waiters."""
        known = self._members.get(waiting)
        if known is None:
            known = []
            seen = set()
            try:
                place = self.word(waiting, "waiting.first")
                while place != 0 and place not in seen:
                    seen.add(place)
                    known.append(place)
                    place = self.word(place, "waiting_place.next")
            except Unreadable:
                known = []
            self._members[waiting] = known
        return known

    def descriptors_of(self, run):
        """By the address of a cell: the descriptors that it waits for."""
        known = self._descriptors.get(run.address)
        if known is None:
            known = {}
            table = self.word(run.address, "crew.descriptors")
            middles = self.read(table + self["descriptors.top"], 8 * self["=DESCRIPTORS_TOP"])
            for i, middle in enumerate(struct.unpack(f"<{len(middles) // 8}Q", middles)):
                if middle != 0:
                    self._note_waiters(known, middle, i * self["=DESCRIPTORS_MIDDLE"])
            self._descriptors[run.address] = known
        return known

    def _note_waiters(self, known, middle, first):
        blocks = self.read(middle, 8 * self["=DESCRIPTORS_MIDDLE"])
        size, count = self["descriptor"], self["=DESCRIPTORS_BLOCK"]
        for i, block in enumerate(struct.unpack(f"<{len(blocks) // 8}Q", blocks)):
            if block == 0:
                continue
            entries = self.read(block, size * count)
            for j in range(count):
                for direction in (0, 1):
                    ring = j * size + self["descriptor.waiters"] + direction * self["link"]
                    link = struct.unpack_from("<Q", entries, ring)[0]
                    seen = 0
                    while link not in (0, block + ring) and seen < 100000:
                        waiter = link - self["waiter.links"] - direction * self["link"]
                        cell = self.word(waiter, "waiter.cell")
                        descriptor = (first + i) * count + j
                        numbers = known.setdefault(cell, [])
                        if descriptor not in numbers:
                            numbers.append(descriptor)
                        link = self.word(link, "link.next")
                        seen += 1
