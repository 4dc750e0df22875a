# SPDX-License-Identifier: MIT
"""The text that the commands print, for either debugger. Each function yields lines."""
import datetime
import re

from haft_fibers import chain
from haft_memory import Unknown
from haft_ocaml import ocaml_continuations, ocaml_root
from haft_process import Process
from haft_served import Server
from haft_tasks import TaskScope

MOST_GROUPS_OF_SCOPE = 1000


class Session:
    """Numbers of tasks: a task keeps its number for as long as the debugger runs."""

    def __init__(self):
        self.numbers = {}
        self.process = None

    def at(self, memory):
        if self.process is None:
            self.process = Process(memory)
            for task in self.process.tasks():
                self.numbers.setdefault(task.address, len(self.numbers) + 1)
        return self.process

    def has_run(self):
        self.process = None

    def number(self, task):
        return self.numbers.get(task.address, 0)

    def task(self, memory, word):
        """The task with this number or address; or, by a word that is no number, the one with this name."""
        tasks = self.at(memory).tasks()
        number = int(word, 0) if re.fullmatch(r"\d+|0x[0-9a-fA-F]+", word) else None
        found = [task for task in tasks if (number in (self.number(task), task.address) if number is not None
                                            else task.name == word.strip("'\""))]
        if not found:
            raise Unknown(f"There is no task {word}: `haft tasks` lists them.")
        return found[0]


def duration(nanoseconds):
    seconds = max(nanoseconds, 0) / 1e9
    if seconds < 1:
        return f"{int(seconds * 1000)} ms"
    if seconds < 600:
        return f"{seconds:.1f} s"
    if seconds < 36000:
        return f"{int(seconds / 60)} min"
    return f"{int(seconds / 3600)} h"


def since(run, begun, latest=None):
    """Since when something lasts: the date on the wall, and how long."""
    if run.simulated != 0:
        return f"since {begun / 1e9:.3f} s of the {'simulation' if run.seed() != 0 else 'record'}"
    date = datetime.datetime.fromtimestamp((begun + run.date_offset) / 1e9)
    now = run.now()
    day = "" if date.date() == datetime.datetime.fromtimestamp((now + run.date_offset) / 1e9).date() else "%Y-%m-%d "
    text = f"since {date.strftime(day + '%H:%M:%S')} ({duration(now - begun)})"
    if latest is not None and duration(now - latest) != duration(now - begun):
        text = f"since {date.strftime(day + '%H:%M:%S')} ({duration(now - latest)} to {duration(now - begun)})"
    return text


def ranges(numbers, most=4):
    """1-3,7: the numbers in order, where there are many only the first."""
    parts, numbers = [], sorted(numbers)
    first = last = None
    for number in numbers + [None]:
        if number is not None and last is not None and number == last + 1:
            last = number
            continue
        if first is not None:
            parts.append(str(first) if first == last else f"{first}-{last}")
        first = last = number
    return ",".join(parts[:most]) + (",..." if len(parts) > most else "")


LAMBDA = re.compile(r"([\w:~]+)(?:\([^()]*\))?::\{lambda\([^()]*\)#(\d+)\}")
CLOSURE = re.compile(r"([\w:]+)::\{?\{closure(?:_env)?[#0-9]*\}?\}")


def function_name(symbol):
    """A function of the program's, as its author calls it: of a task of C++ or Rust, its closure."""
    if symbol is None:
        return None
    symbol = re.sub(r"::h[0-9a-f]{16}$", "", symbol)
    found = LAMBDA.search(symbol)
    if found and "haft::" not in found.group(1):
        return f"a lambda in {found.group(1)}"
    for closure in CLOSURE.finditer(symbol):
        if not closure.group(1).strip().startswith(("haft::", "core::", "std::")):
            return f"a closure in {closure.group(1).strip()}"
    name = symbol.split("(")[0]
    return name if name and name.count("<") == name.count(">") else symbol


def named(name):
    return f"'{name}'" if name else "(no name)"


def place_of(memory, address):
    """A function or object: its name and where it is written, or its address."""
    name = function_name(memory.symbol(address))
    location = memory.location(address)
    return f"{name or hex(address)}{f' at {location}' if location else ''}"


def entry_of(memory, task):
    """The function of a task; where that is the library's, which calls a closure, the closure."""
    name, location = function_name(memory.symbol(task.function)), memory.location(task.function)
    if location is None or (name or "").startswith(("haft::", "<haft::")):
        entry = memory.entry(task.process, task)
        if entry is not None:
            name, location = (name if name and name.startswith("a lambda") else function_name(entry[0]) or name), entry[1]
    return f"{name or hex(task.function)}{f' at {location}' if location else ''}"


def call_of(memory, address):
    """Where a call was made that returns to the address."""
    if address == 0 or not memory.is_code(address - 1):
        return None
    symbol = memory.symbol(address - 1)
    location = memory.location(address - 1)
    if location is None and symbol is not None and re.match(r"<?haft", re.sub(r"^[\w ]*? (?=[\w:]*<)", "", symbol)):
        return None  # by way of the library
    return location or function_name(symbol) or hex(address)


# ---- Waits ----


def task_label(session, task):
    return f"task {session.number(task)} {named(task.name)}"


def object_label(process, kind, address):
    symbol = process.memory.symbol(address)
    return f"{kind} {function_name(symbol)}" if symbol else f"{kind} {address:#x}"


def holder_of(session, process, kind, address):
    """The holder of a lock, in words; the task, or None."""
    if kind not in ("mutex", "rwlock"):
        return None, None
    writes = kind == "mutex" or process.byte(address, "rwlock.writer") != 0
    if not writes:
        readers = process.word(address, "rwlock.readers")
        return (f"held by {readers} reader{'s' if readers != 1 else ''}" if readers else "free"), None
    if kind == "mutex" and process.byte(address, "mutex.held") == 0:
        return "free", None
    if not process.has(kind + ".holder"):
        return "held", None
    holder = process.word(address, kind + ".holder")
    if holder == 0:
        return "held by a thread outside of tasks", None
    task = process.task_at(holder)
    if task is None or task.function == 0:
        return "held by a task that has ended", None
    return f"held by {task_label(session, task)}", task


def wait_details(session, task):
    """The object for which a task waits, exactly."""
    process = task.process
    for kind, address in task.objects():
        holder, _ = holder_of(session, process, kind, address)
        label = object_label(process, kind, address)
        yield label + (f", {holder}" if holder else "")
    for joined in task.joins():
        yield task_label(session, joined)
    descriptors = task.descriptors()
    if descriptors:
        yield f"descriptor{'s' if len(descriptors) > 1 else ''} {', '.join(map(str, descriptors[:8]))}" + (
            f" and {len(descriptors) - 8} more" if len(descriptors) > 8 else "")
    if task.closes():
        yield f"scope {named(TaskScope(process, task.closes()).name)}"


def wait_text(session, tasks):
    """The wait of tasks that are alike."""
    task = tasks[0]
    text = task.state_name()
    if not task.waits():
        return text
    if len(tasks) == 1:
        details = list(wait_details(session, task))
    else:
        common = None
        for other in tasks[:64]:
            found = list(wait_details(session, other))
            common = found if common is None else [detail for detail in common if detail in found]
        details = common or []
    if details:
        text += " (" + "; ".join(details) + ")"
    begun = [other.since for other in tasks]
    return text + ", " + since(task.run, min(begun), max(begun))


# ---- Objects of the program's ----


def waiters_text(session, process, waiting):
    by_cell = {cell: tasks[0] for cell, tasks in process.tasks_by("cell").items()}
    places = process.members_of(waiting)
    cells = [process.word(place, "waiting_place.cell") for place in places]
    known = [by_cell[cell] for cell in cells if cell in by_cell]
    if not places:
        return "nobody waits"
    if len(known) == 1 == len(places):
        return f"{task_label(session, known[0])} waits"
    numbers = ranges([session.number(task) for task in known])
    return f"{len(places)} wait{f': tasks {numbers}' if known else ''}"


def object_text(session, process, kind, address):
    """An object of the library's, in a line."""
    def waiters(field):
        return waiters_text(session, process, address + process[field])

    if kind in ("mutex", "rwlock"):
        return f"{holder_of(session, process, kind, address)[0]}, {waiters(kind + '.waiting')}"
    if kind == "semaphore":
        return f"{process.word(address, 'semaphore.count')} free, {waiters('semaphore.waiting')}"
    if kind == "event" or kind == "promise":
        words = ("set", "not set") if kind == "event" else ("kept", "not kept")
        return f"{words[0] if process.byte(address, 'event.set') else words[1]}, {waiters('event.waiting')}"
    if kind == "condition":
        return waiters("condition.waiting")
    if kind == "barrier":
        arrived, needed = (process.number(address, "barrier." + name) for name in ("arrived", "needed"))
        return f"{arrived} of {needed} have arrived, {waiters('barrier.waiting')}"
    if kind == "channel":
        closed = "closed, " if process.byte(address, "channel.closed") else ""
        count, capacity = (process.word(address, "channel." + name) for name in ("count", "capacity"))
        return (f"{closed}{count} of {capacity} values, to send: {waiters('channel.senders')}, to receive: "
                f"{waiters('channel.receivers')}")
    if kind == "task":
        task = process.task_at(address)
        return f"{task_label(session, task)} {wait_text(session, [task])}" if task is not None else "a task that is over"
    if kind == "scope":
        scope = TaskScope(process, address)
        count = len(process.tasks_by("home").get(address, ()))
        return f"scope {named(scope.name)}, {count} task{'s' if count != 1 else ''}" + "".join(", " + m for m in scope.marks)
    if kind == "fiber":
        fiber = next((fiber for fiber in process.fibers() if fiber.address == address), None)
        return (f"fiber{f' {fiber.name!r}' if fiber.name else ''}, {fiber_state(process, fiber)}" if fiber is not None
                else "a fiber that is over")
    if kind == "effect":
        return f"effect '{process.string(process.word(address, 'effect.name'))}'"
    return hex(address)


# ---- haft tasks ----


def group(tasks):
    groups = {}
    for task in tasks:
        groups.setdefault(task.likeness(), []).append(task)
    return list(groups.values())


def task_lines(session, tasks, indent):
    memory = tasks[0].process.memory
    for alike in group(tasks):
        task = alike[0]
        numbers = ranges([session.number(other) for other in alike])
        count = f"{len(alike):,} tasks " if len(alike) > 1 else ""
        each = ", each" if len(alike) > 1 else ""
        yield f"{indent}{numbers:>4}  {count}{named(task.name)}{each} {wait_text(session, alike)}"
        origin = []
        if task.function != 0:
            origin.append(entry_of(memory, task))
        spawned = call_of(memory, task.spawned_at)
        if spawned:
            origin.append(f"spawned at {spawned}")
        if origin:
            yield f"{indent}      {', '.join(origin)}"


def scope_lines(session, process, scope, by_home, depth, seen):
    indent = "  " * min(depth, 32)
    owner = process.task_at(scope.owner) if scope.owner != 0 else None
    marks = "".join(", " + mark for mark in scope.marks)
    opened = f", opened by {task_label(session, owner)}" if owner is not None else ""
    yield f"{indent}scope {named(scope.name)}{opened}{marks}"
    seen.add(scope.address)
    tasks = by_home.get(scope.address, [])
    if tasks:
        yield from task_lines(session, tasks, indent + "  ")
    for inner in scope.inner():
        if inner.address not in seen:
            yield from scope_lines(session, process, inner, by_home, depth + 1, seen)


def tasks(session, memory):
    process = session.at(memory)
    runs = process.runs() if process.has_tasks() else []
    if not runs:
        yield "There is no run of libhaft-io in this process. `haft fibers` lists the fibers."
    for run in runs:
        by_home = {}
        count = 0
        for task in process.tasks():
            if task.run.address == run.address:
                by_home.setdefault(task.home, []).append(task)
                count += 1
        threads = len(run.workers)
        seed = "" if run.simulated == 0 else f", simulated with seed {run.seed()}" if run.seed() != 0 else ", replayed"
        yield (f"run {run.number}: {count:,} task{'s' if count != 1 else ''}, {threads} "
               f"thread{'s' if threads != 1 else ''}, {run.backend}{seed}")
        yield from scope_lines(session, process, TaskScope(process, run.root), by_home, 0, set())
    yield from ocaml_lines(process, memory)


# ---- Tasks of OCaml ----


def ocaml_name(symbol):
    """The name of a function of OCaml: camlStuck__transfer_123 is Stuck.transfer."""
    found = re.match(r"caml([A-Z]\w*?)__(\w+?)(?:_\d+)?(?:_\d+_code)?$", symbol or "")
    if not found:
        return symbol
    inner = found.group(2)
    return f"{found.group(1).replace('__', '.')}.{'a function' if inner.startswith('fun') else inner}"


def ocaml_place(memory, process, fiber):
    place = memory.place_in(process, fiber)
    if place is None:
        return ocaml_name(memory.symbol(fiber.context().pc - 1))
    return f"{ocaml_name(place[0])}{f' at {place[1]}' if place[1] else ''}"


def ocaml_context_lines(process, memory, context, depth, by_continuation):
    indent = "  " * min(depth, 32)
    mark = ", cancelled" if context.is_cancelled else ""
    yield f"{indent}{f'switch {context.name!r}' if context.name else 'context'}{mark}"
    groups = {}
    for task in context.tasks():
        fiber = task.fiber(by_continuation)
        groups.setdefault((task.waits_for, fiber.context().pc if fiber else 0), []).append(fiber)
    for (waits_for, _), fibers_alike in groups.items():
        count = f"{len(fibers_alike):,} tasks wait for" if len(fibers_alike) > 1 else "task waits for"
        text = f"{count}: {waits_for}" if waits_for else "task runs, or is ready"
        fiber = fibers_alike[0]
        if fiber is not None:
            place = ocaml_place(memory, process, fiber)
            text += f" (fiber {fiber.address:#x}{f', in {place}' if place else ''})"
        yield f"{indent}  {text}"
    for inner in context.inner():
        yield from ocaml_context_lines(process, memory, inner, depth + 1, by_continuation)


def ocaml_lines(process, memory):
    root = ocaml_root(process)
    if root is not None:
        yield "tasks of OCaml, which the task 'OCaml' runs"
        yield from ocaml_context_lines(process, memory, root, 1, ocaml_continuations(process))


# ---- haft fibers ----


def fiber_state(process, fiber):
    memory = process.memory
    if fiber.state == "suspended":
        context = fiber.context()
        awaits = fiber.awaits()
        place = ocaml_place(memory, process, fiber) if fiber.language != "C" else None
        text = f"suspended{f' by {awaits!r}' if awaits else ''} in {place or place_of(memory, context.pc - 1)}"
        depth = fiber.depth()
        return text + (f", stack {depth:,} of {fiber.high - fiber.low:,} bytes" if depth is not None else "")
    return fiber.state


def fibers(session, memory):
    process = session.at(memory)
    by_fiber = {task.fiber: task for task in process.tasks() if task.fiber != 0}
    count = 0
    groups = {}
    for fiber in process.fibers():
        count += 1
        task = by_fiber.get(fiber.address)
        context = fiber.context()
        key = (fiber.name, fiber.language, fiber.state, fiber.function if fiber.language == "C" else 0,
               context.pc if context else 0, fiber.depth(), task is not None, task.name if task else "")
        groups.setdefault(key, []).append((fiber, task))
    for alike in groups.values():
        fiber, task = alike[0]
        label = f"{fiber.address:#x}" if len(alike) == 1 else f"{len(alike):,} fibers, {fiber.address:#x}..."
        parts = [label]
        if task is not None:
            parts.append(task_label(session, task) if len(alike) == 1 else f"of tasks {named(task.name)}")
        elif fiber.name.startswith("a task, see "):
            yield f"fiber {label}, waits for a task to run"
            continue
        elif fiber.name:
            parts.append(f"'{fiber.name}'")
        if fiber.language != "C":
            parts.append(f"of {fiber.language}")
        elif task is None and fiber.function != 0:
            parts.append(f"runs {place_of(memory, fiber.function)}" if fiber.state != "finished" else "")
        parts.append(fiber_state(process, fiber))
        yield "fiber " + ", ".join(part for part in parts if part)
    yield f"{count:,} fiber{'s' if count != 1 else ''}"


def fiber_at(session, memory, word):
    process = session.at(memory)
    try:
        address = int(word, 0)
    except ValueError:
        address = 0
    for fiber in process.fibers():
        if fiber.address == address:
            return fiber
    raise Unknown(f"There is no fiber {word}: `haft fibers` lists them.")


# ---- haft handlers ----


def handlers(session, memory, innermost, frame_of, whole=False):
    """`frame_of(address)` is the frame of the selected thread in which an address of its stacks lies: where the
    handler was installed; or None."""
    process = session.at(memory)
    found = False
    for number, scope in enumerate(chain(process, innermost)):
        found = True
        clauses = list(scope.clauses())
        most = len(clauses) if whole else 6
        effects = "every effect" if scope.handles_all() else ", ".join(
            f"{name} ({kind})" if kind != "request" else name for name, kind, _ in clauses[:most])
        if len(clauses) > most:
            effects += f" and {len(clauses) - most} more"
        fiber = scope.fiber()
        if fiber is not None:
            where = frame_of(fiber.resumer, fiber)
            what = f"around fiber {fiber.address:#x}{f' {fiber.name!r}' if fiber.name else ''}"
        else:
            where = frame_of(scope.address, None)
            what = "without a fiber"
        yield f"{number:>3}  handles {effects or 'nothing'}; {what}{f', installed in {where}' if where else ''}"
        for name, kind, function in clauses if whole else ():
            if function != 0 and kind != "request":
                symbol = place_of(memory, function)
                yield f"       {name}: {symbol}"
    if not found:
        yield "There is no handler here: effects go to their defaults."


# ---- haft connections ----


def request_text(session, request, begun, task):
    text = f"{request.method} {request.target}".strip() or "a request whose head has not come"
    if request.stream != 0:
        text = f"stream {request.stream}: {text}"
    if task is not None:
        text += f", {task_label(session, task)} {wait_text(session, [task])}"
        if request.begun_at != 0:
            text += f"; the request {since(task.run, request.begun_at)}"
    return text


def connections(session, memory):
    process = session.at(memory)
    found = False
    for server in Server.all(process):
        found = True
        all_connections = list(server.connections())
        ending = ", stopping" if server.is_stopping else ""
        yield (f"server {server.address:#x}{f' at port {server.port}' if server.port > 0 else ''}: "
               f"{len(all_connections):,} connection{'s' if len(all_connections) != 1 else ''}{ending}")
        idle = {}
        for connection in all_connections:
            task = connection.task()
            label = (f"descriptor {connection.descriptor}{f' from {connection.peer}' if connection.peer else ''}"
                     f"{', TLS' if connection.has_tls else ''}{', HTTP/2' if connection.has_frames else ''}")
            requests = connection.requests()
            if not requests:
                state = "is idle" if connection.is_idle else "waits for a request" if not connection.has_frames else \
                    "has no request"
                idle.setdefault(state, []).append((label, task))
                continue
            for request in requests:
                handler = request.task() or (task if not connection.has_frames else None)
                yield f"  {label}: {request_text(session, request, 0, handler)}"
        for state, some in idle.items():
            tasks_known = [task for _, task in some if task is not None and task.waits()]
            when = ""
            if tasks_known:
                begun = [task.since for task in tasks_known]
                when = ", " + since(tasks_known[0].run, min(begun), max(begun))
            if len(some) == 1:
                yield f"  {some[0][0]}: {state}{when}"
            else:
                yield f"  {len(some):,} connections: each {state}{when}"
    if not found:
        yield "No server of libhaft-http serves in this process."


# ---- haft locks ----


def edges(session, process, task):
    """The tasks that have to do something before the task can go on, and in words why."""
    for kind, address in task.objects():
        _, holder = holder_of(session, process, kind, address)
        if holder is not None:
            yield holder, f"waits for {object_label(process, kind, address)}, which {task_label(session, holder)} holds"
    for joined in task.joins():
        yield joined, f"waits for the end of {task_label(session, joined)}"
    closes = task.closes()
    if closes:
        name = named(TaskScope(process, closes).name)
        for other in process.tasks_by("home").get(closes, ()):
            if other.function != 0:
                yield other, f"waits for {task_label(session, other)}, a task of its scope {name}"


def deadlocks(session, process):
    """Circles of tasks that wait for each other, each once, as lists of (task, why)."""
    kinds = {"a mutex", "a lock to read", "a lock to write", "a task to end", "the tasks of its scope"}
    graph = {}
    for task in process.tasks():
        if task.waits_for in kinds:
            graph[task.address] = list(edges(session, process, task))
    done, circles = set(), []
    for start in graph:
        if start in done:
            continue
        path, on_path, steps = [], {start: 0}, [(start, iter(graph[start]))]
        while steps:
            address, further = steps[-1]
            step = next(further, None)
            if step is None:
                steps.pop()
                done.add(address)
                del on_path[address]
                if path:
                    path.pop()
                continue
            other, why = step
            if other.address in on_path:
                circles.append(path[on_path[other.address] :] + [(process.task_at(address), why)])
            elif other.address in graph and other.address not in done:
                on_path[other.address] = len(steps)
                path.append((process.task_at(address), why))
                steps.append((other.address, iter(graph[other.address])))
    return circles


def locks(session, memory):
    process = session.at(memory)
    objects = {}
    for task in process.tasks():
        if task.waits():
            for kind, address in task.objects():
                objects.setdefault((kind, address), []).append(task)
    for (kind, address), waiters in objects.items():
        holder, _ = holder_of(session, process, kind, address)
        label = object_label(process, kind, address)
        yield f"{label}{f': {holder}' if holder else ''}"
        for alike in group(waiters):
            task = alike[0]
            numbers = ranges([session.number(other) for other in alike])
            begun = [other.since for other in alike]
            count = f"{len(alike):,} tasks " if len(alike) > 1 else "task "
            waits = "wait" if len(alike) > 1 else "waits"
            yield f"  {count}{numbers} {named(task.name)} {waits}, {since(task.run, min(begun), max(begun))}"
    if not objects:
        yield "No task waits for a lock or another object of the library."
    for circle in deadlocks(session, process):
        yield "deadlock:"
        for task, why in circle:
            yield f"  {task_label(session, task)} {why}"
