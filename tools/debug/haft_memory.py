# SPDX-License-Identifier: MIT
"""The objects of Haft in a process, read from its memory or from a core file: fibers, handlers, tasks, scopes,
locks, connections. Nothing is called in the process, and no debug information is needed: the libraries carry
tables of where their fields lie (core/include/haft/shown.h).

The two fronts, haft_gdb.py and haft_lldb.py, give the functions of Memory; everything printed is made in
haft_text.py. Reading is by blocks: what ten thousand tasks need are some ten thousand reads.
"""
import struct


class Unreadable(Exception):
    """An address that cannot be read."""


class Unknown(Exception):
    """Something that the process lacks, in words for the user."""


class Memory:
    """The functions that a front gives."""

    byte_order = "<"

    def read(self, address, size):
        """The bytes there, or Unreadable."""
        raise NotImplementedError

    def notes(self):
        """The addresses (start, end) of the sections .note.haft.shown of all loaded objects."""
        raise NotImplementedError

    def thread_pointers(self):
        """For each thread, its number in the debugger and its thread pointer."""
        raise NotImplementedError

    def symbol(self, address):
        """The name of the function or object at the address, with its distance if that is not 0; or None."""
        raise NotImplementedError

    def location(self, address):
        """`file:line` of a function's code, or None."""
        raise NotImplementedError

    def is_code(self, address):
        raise NotImplementedError

    def entry(self, process, task):
        """The name and `file:line` of the outermost function of the program's on the stack of a suspended task, as far
        as the front can tell; or None."""
        return None

    def place_in(self, process, fiber):
        """The name and `file:line` of the innermost function of the program's on a suspended fiber, as far as the front
        can tell; or None."""
        return None

    def now(self):
        """The clock of a live process on this machine in nanoseconds, or None."""
        raise NotImplementedError

    def word(self, address):
        return struct.unpack("<Q", self.read(address, 8))[0]

    def number(self, address):
        return struct.unpack("<I", self.read(address, 4))[0]


NOTE_NAME = b"Haft-shown\0"
MAGIC = b"HaftShow"
VERSION = 1
RECORD = 40  # bytes of a haft_shown_t
STRING_MOST = 256


def notes_in(content, start):
    """The addresses of tables to which the notes in a section lead."""
    at = 0
    while at + 12 <= len(content):
        name_size, size, kind = struct.unpack_from("<III", content, at)
        name = content[at + 12 : at + 12 + name_size]
        inside = at + 12 + (name_size + 3 & ~3)
        if name == NOTE_NAME and kind == 1 and size == 4:
            yield start + inside + struct.unpack_from("<i", content, inside)[0]
        at = inside + (size + 3 & ~3)


class Process:
    """A stopped process or a core file. Made anew whenever the process has run."""

    def __init__(self, memory):
        self.memory = memory
        self.shown = {}
        self.strings = {}
        self._tasks = None
        self._fibers = self._running = None
        self._threads = None
        self._members = {}
        self._indexes = {}
        self._descriptors = {}
        for start, end in memory.notes():
            for table in notes_in(memory.read(start, end - start), start):
                self._read_table(table)
        if not self.shown:
            raise Unknown("There is no Haft in this process, or one of before 0.4: no table of libhaft was found.")

    def _read_table(self, table):
        content = self.memory.read(table, 16)
        if content[:8] != MAGIC:
            return
        version, address_size = struct.unpack_from("<II", content, 8)
        if version != VERSION or address_size != 8:
            raise Unknown(f"The library's table has version {version}, and these commands know version {VERSION}: "
                          "use the commands that were installed with the library.")
        at = table + 16
        while (records := self.memory.word(at)) != 0:
            self._read_list(records)
            at += 8

    def _read_list(self, at):
        while True:
            content = self.memory.read(at, RECORD)
            if content[0] == 0:
                return
            self.shown[content[:32].split(b"\0")[0].decode()] = struct.unpack_from("<Q", content, 32)[0]
            at += RECORD

    def has(self, name):
        return name in self.shown

    def __getitem__(self, name):
        try:
            return self.shown[name]
        except KeyError:
            raise Unknown(f"The library in this process does not show '{name}': these commands and the library are "
                          "of different versions.") from None

    # ---- Memory by the names of fields ----

    def read(self, address, size):
        return self.memory.read(address, size)

    def word(self, address, field=None):
        return self.memory.word(address + (self[field] if field else 0))

    def number(self, address, field):
        return self.memory.number(address + self[field])

    def byte(self, address, field):
        return self.memory.read(address + self[field], 1)[0]

    def string(self, address):
        if address == 0:
            return ""
        known = self.strings.get(address)
        if known is None:
            known = b""
            try:
                while b"\0" not in known and len(known) < STRING_MOST:
                    known += self.memory.read(address + len(known), 16 - (address + len(known)) % 16)
            except Unreadable:
                known = known or b"?"
            known = known.split(b"\0")[0].decode(errors="replace")
            self.strings[address] = known
        return known

    def of(self, content, field, base=0):
        """A word of a structure that was read."""
        return struct.unpack_from("<Q", content, self[field] + base)[0]

    def byte_of(self, content, field, base=0):
        return content[self[field] + base]

    def number_of(self, content, field, base=0):
        return struct.unpack_from("<I", content, self[field] + base)[0]

    # ---- Threads ----

    def threads(self):
        """By number of the debugger: the address of the library's state of the thread; without those of threads
        that have not used it."""
        if self._threads is None:
            self._threads = {}
            offset = self._signed(self.word(self["&thread_offset"]))
            for number, pointer in self.memory.thread_pointers() if offset != 0 else ():
                try:
                    thread = pointer + offset
                    if self.word(thread, "thread.stamp") != 0:
                        self._threads[number] = thread
                except Unreadable:
                    pass
        return self._threads

    @staticmethod
    def _signed(word):
        return word - (1 << 64) if word >> 63 else word

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
        offset = self._signed(self.word(self["&worker_offset"]))
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


class Context:
    """Registers of code that does not run."""

    def __init__(self, pc, sp, fp, base):
        self.pc, self.sp, self.fp, self.base = pc, sp, fp, base


class Fiber:
    def __init__(self, process, address):
        self.process, self.address = process, address
        self.content = content = process.read(address, process["fiber"])
        self.name = process.string(process.of(content, "fiber.name"))
        self.low, self.high = process.of(content, "fiber.low"), process.of(content, "fiber.high")
        self.function = process.of(content, "fiber.function")
        self.argument = process.of(content, "fiber.argument")
        self.kind = process.byte_of(content, "fiber.kind")
        self.resumer = address + process["fiber.resumer"]
        language = process.of(content, "fiber.language")
        self.language = process.string(process.word(language, "language.name")) if language != 0 else "C"
        state = process.number_of(content, "fiber.state")
        self.state = process.fiber_states().get(state, f"state {state}")
        if language != 0:
            self.state = self._state_of_ocaml()
        elif self.state == "new" and self.high == 0:
            self.state = "dropped"
        elif self.state == "running" and self._gate() != process["=GATE_CLOSED"]:
            self.state = "suspended"
        elif self.state == "running" and process.threads() and address not in process.running_fibers():
            self.state = "suspended inside of another"

    def _gate(self):
        return self.process.number_of(self.content, "context.gate", self.process["fiber.context"])

    # See ocaml/lib/layout.h: what stands in place of a continuation.
    def _state_of_ocaml(self):
        continuation = self.process.of(self.content, "context.pc")
        return "dropped" if continuation == 1 else "running" if continuation < 4 else "suspended"

    def awaits(self):
        """The name of the effect that a suspended fiber has performed, or "" """
        if self.state != "suspended" or self.language != "C":
            return ""
        effect = self.process.of(self.content, "fiber.awaits") & self.process["=AWAITS_MASK"]
        return self.process.string(self.process.word(effect, "effect.name")) if effect != 0 else ""

    def context(self):
        """Where a suspended fiber goes on, with all that is suspended in it; or None."""
        if self.state != "suspended":
            return None
        process, at = self.process, self.process["fiber.context"]
        if self.language != "C":
            sp = process.of(self.content, "context.sp", at)
            return Context(process.word(sp + 8), sp + 16, 0, 0)
        return Context(*(process.of(self.content, "context." + name, at) for name in ("pc", "sp", "fp", "base")))

    def depth(self):
        context = self.context()
        return self.high - context.sp if context is not None and self.low <= context.sp <= self.high else None

    def scope(self):
        return self.address + self.process["fiber.scope"]


class Scope:
    """A handler in the chain."""

    def __init__(self, process, address):
        self.process, self.address = process, address
        content = process.read(address, process["scope"])
        kind = process.byte_of(content, "scope.kind")
        self.kind = {process["=SCOPE_ROOT"]: "root", process["=SCOPE_FIBER"]: "fiber",
                     process["=SCOPE_STACKLESS"]: "in place", process["=SCOPE_DEFAULTS"]: "defaults"}.get(kind, "?")
        self.outer = process.of(content, "scope.outer")
        self.handles = process.of(content, "scope.handles")

    def fiber(self):
        return Fiber(self.process, self.address - self.process["fiber.scope"]) if self.kind == "fiber" else None

    def clauses(self):
        """(name of the effect, kind of clause, function) of each that it handles."""
        process = self.process
        kinds = {process["=" + kind]: kind.lower() for kind in ("REQUEST", "GENERAL", "NEVER", "TAIL")}
        count = process.number(self.handles, "handles.count")
        clauses = process.word(self.handles, "handles.clauses")
        for i in range(min(count, 1000)):
            content = process.read(clauses + i * process["clause"], process["clause"])
            effect = process.of(content, "clause.effect")
            yield (process.string(process.word(effect, "effect.name")) if effect != 0 else "?",
                   kinds.get(process.number_of(content, "clause.kind"), "?"), process.of(content, "clause.function"))

    def handles_all(self):
        return self.process.memory.read(self.handles + self.process["handles.all"], 2) != b"\0\0"


def chain(process, scope):
    """The handlers from a scope outwards, up to the root."""
    seen = set()
    while scope != 0 and scope not in seen:
        seen.add(scope)
        found = Scope(process, scope)
        if found.kind in ("root", "defaults", "?"):
            return
        yield found
        scope = found.outer


class Run:
    def __init__(self, process, address):
        self.process, self.address = process, address
        self.number = process.word(address, "crew.number")
        count = process.number(address, "crew.count")
        at = address + process["crew.workers"]
        self.workers = list(struct.unpack(f"<{count}Q", process.read(at, 8 * count)))
        self.root = address + process["crew.root"]
        self.date_offset = process._signed(process.word(address, "crew.date_offset"))
        self.backend = process.string(process.word(process.word(self.workers[0], "worker.backend"), "backend.name"))
        self.simulated = process.word(self.workers[0], "worker.simulated")

    def seed(self):
        return self.process.word(self.simulated, "simulated.seed") if self.simulated != 0 else None

    def now(self):
        """By the run's clock: now, or for a core file the latest time that the run has written down."""
        process = self.process
        if self.simulated != 0:
            return process._signed(process.word(self.simulated, "simulated.now"))
        now = process.memory.now()
        if now is not None:
            return now
        latest = max(process._signed(process.word(worker, "worker.clock")) for worker in self.workers)
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
            self.since = process._signed(process.of(inside, "runner.waits_since"))

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


class Server:
    """A server of libhaft-http that serves."""

    def __init__(self, process, address):
        self.process, self.address = process, address
        self.port = process.number(address, "server.port")
        self.is_stopping = process.byte(address, "server.stopping") != 0

    @staticmethod
    def all(process):
        server = process.word(process["&servers"]) if process.has("&servers") else 0
        while server != 0:
            yield Server(process, server)
            server = process.word(server, "server.next_served")

    def connections(self):
        link = self.process.word(self.address, "server.connections")
        while link != 0:
            yield Connection(self.process, link)
            link = self.process.word(link, "http_link.next")


class Connection:
    def __init__(self, process, link):
        self.process, self.link = process, link
        self.address = link - process["connection.link"]
        stream = process.word(link, "http_link.stream")
        self.descriptor = process.number(stream, "http_stream.descriptor")
        self.has_tls = process.word(stream, "http_stream.tls") != 0
        self.peer = ""
        if process.byte(stream, "http_stream.knows_peer") != 0:
            self.peer = process.string(stream + process["http_stream.peer"])
        self.is_idle = process.byte(link, "http_link.idle") != 0
        self.served = self.address + process["connection.served"]
        self.has_frames = process.word(link, "http_link.stop") != 0

    def requests(self):
        process = self.process
        if not self.has_frames:
            request = process.word(self.served, "served.request")
            return [Request(process, request)] if request != 0 else []
        requests = []
        stream = process.word(process.word(self.link, "http_link.argument"), "http2.frames.streams")
        while stream != 0 and len(requests) < 10000:
            requests.append(Request(process, stream + process["http2_request.request"],
                                    process.number(stream, "http2_stream.id")))
            stream = process.word(stream, "http2_stream.next")
        return requests

    def task(self):
        """The one that serves it; a task that rests has its record in the connection's."""
        by_runner, by_own = self.process.tasks_by("runner"), self.process.tasks_by("own")
        return (by_runner.get(self.address) or by_own.get(self.served) or [None])[0]


class Request:
    def __init__(self, process, address, stream=0):
        self.process, self.stream = process, stream
        content = process.read(address, process["request"])
        self.method = process.string(process.of(content, "request.method"))
        self.begun_at = process._signed(process.of(content, "request.begun_at"))
        self.status = process.number_of(content, "request.answer.status")
        self.served = process.of(content, "request.served")
        block, at, size = (process.of(content, "request.message." + name) for name in ("block", "target", "target_size"))
        self.target = ""
        if block != 0 and at != 0:
            try:
                self.target = process.read(block + at, min(size, 200)).decode(errors="replace")
            except Unreadable:
                pass

    def task(self):
        return self.process.tasks_by("own").get(self.served, [None])[0]


class OcamlTask:
    """A task of haft-io for OCaml, and its last continuation."""

    def __init__(self, process, address):
        self.process, self.address = process, address
        self.waits_for = process.string(process.word(address, "ocaml_task.waits_for"))
        self.continuation = process.word(address, "ocaml_task.continuation")

    def fiber(self, by_continuation):
        """The fiber on whose stack it is suspended; or None: it runs, or its stack has been moved into OCaml's heap."""
        return by_continuation.get(self.continuation)


class OcamlContext:
    """A context of cancels, with its tasks and the contexts inside."""

    def __init__(self, process, address):
        self.process, self.address = process, address
        self.name = process.string(process.word(address, "ocaml_context.name"))
        self.parent = process.word(address, "ocaml_context.parent")
        self.is_cancelled = process.word(address, "ocaml_context.state") & 1 == 0

    def tasks(self):
        """They are linked by their numbers."""
        process, tasks = self.process, []
        by_id = process.word(process.word(process["&ocaml_tasks"]))
        number = process._signed(process.word(self.address, "ocaml_context.fibers")) >> 1
        while number >= 0 and len(tasks) < 1000000:
            address = process.word(by_id + 8 * number)
            tasks.append(OcamlTask(process, address))
            number = process._signed(process.word(address, "ocaml_task.next")) >> 1
        return tasks[::-1]

    def inner(self):
        process, seen = self.process, []
        at = process.word(self.address, "ocaml_context.children")
        while at not in seen[-1:] and process.word(at, "ocaml_context.next_child") != at and len(seen) < 1000000:
            seen.append(at)
            at = process.word(at, "ocaml_context.next_child")
        return [OcamlContext(process, address) for address in reversed(seen)]


def ocaml_root(process):
    """The outermost context of the run of haft-io for OCaml, or None."""
    if not process.has("&ocaml_running"):
        return None
    reference = process.word(process["&ocaml_running"])
    if reference & 1 or reference == 0:
        return None
    lane = process.word(reference)  # of the carrier that runs the loop
    running = process._signed(process.word(lane)) >> 1  # the number of the task that runs, or -1
    by_id = process.word(process.word(process["&ocaml_tasks"]))
    count = process.word(by_id - 8) >> 10
    # Any task will do where none runs.
    for number in [running] if running >= 0 else range(count):
        context = OcamlContext(process, process.word(process.word(by_id + 8 * number), "ocaml_task.context"))
        if context.parent != context.address:
            break
    else:
        return None
    while True:
        outer = OcamlContext(process, context.parent)
        if outer.parent == outer.address:
            return context
        context = outer


def ocaml_continuations(process):
    """Suspended fibers of OCaml by their continuations."""
    return {process.of(fiber.content, "context.pc"): fiber for fiber in process.fibers()
            if fiber.language != "C" and fiber.state == "suspended"}
