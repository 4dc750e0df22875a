# SPDX-License-Identifier: MIT
"""The commands `haft ...` of gdb: `help haft` lists them, docs/debugging.md is the user's page."""
import os
import re
import sys
import time

import gdb
import gdb.unwinder

_here = os.path.dirname(os.path.abspath(__file__))
if _here not in sys.path:
    sys.path.insert(0, _here)

_writes = sys.dont_write_bytecode
sys.dont_write_bytecode = True  # The folder may be the system's.
import haft_fibers  # noqa: E402
import haft_memory  # noqa: E402
import haft_text  # noqa: E402
sys.dont_write_bytecode = _writes

STACK_POINTERS = {"i386:x86-64": ("rip", "rsp", "rbp", "rbx"), "aarch64": ("pc", "sp", "x29", "x19")}


# Where a function of the program is called or inlined by way of a library, its line there is of no use.
OF_HAFT = re.compile(r"(?:^|/)haft[-\w.]*/src/[\w/]+\.rs$|/haft-sys/c/|/include/haft/[\w./]+$|/haft\.hpp$|_stubs\.c$")
OF_LIBRARIES = re.compile(OF_HAFT.pattern + r"|/include/c\+\+/|/rustc/|/library/(std|core|alloc)/")


class GdbMemory(haft_memory.Memory):
    def __init__(self):
        self._symbols, self._locations = {}, {}
        self._patience = 1.0  # seconds of looks at stacks, where a list asks for them

    def read(self, address, size):
        if size == 0:
            return b""
        try:
            return bytes(gdb.selected_inferior().read_memory(address, size))
        except (gdb.error, OverflowError, ValueError) as error:
            raise haft_memory.Unreadable(str(error)) from None

    def notes(self):
        files = gdb.execute("info files", to_string=True)
        return [(int(start, 16), int(end, 16)) for start, end in
                re.findall(r"(0x[0-9a-f]+) - (0x[0-9a-f]+) is \.note\.haft\.shown", files)]

    def thread_pointers(self):
        name = "tpidr" if architecture() == "aarch64" else "fs_base"
        selected = gdb.selected_thread()
        pointers = []
        try:
            for thread in gdb.selected_inferior().threads():
                thread.switch()
                try:
                    pointers.append((thread.num, int(gdb.newest_frame().read_register(name)) & (1 << 64) - 1))
                except (gdb.error, ValueError):
                    continue
        finally:
            if selected is not None and selected.is_valid():
                selected.switch()
        return pointers

    def symbol(self, address):
        if address not in self._symbols:
            text = gdb.execute(f"info symbol {address:#x}", to_string=True)
            found = re.match(r"(.+?)(?: \+ (\d+))? in section ", text)
            self._symbols[address] = (found.group(1) + (f"+{found.group(2)}" if found.group(2) and
                                                        not self.is_code(address) else "")) if found else None
        return self._symbols[address]

    def location(self, address):
        if address not in self._locations:
            line = gdb.find_pc_line(address)
            name = line.symtab.filename if line.symtab is not None and line.line != 0 else ""
            self._locations[address] = f"{os.path.basename(name)}:{line.line}" if name else None
            if OF_LIBRARIES.search(name):
                self._locations[address] = None
        return self._locations[address]

    def is_code(self, address):
        if not hasattr(self, "_code"):
            files = gdb.execute("info files", to_string=True)
            self._code = [(int(start, 16), int(end, 16)) for start, end in
                          re.findall(r"(0x[0-9a-f]+) - (0x[0-9a-f]+) is \.text", files)]
        return any(start <= address < end for start, end in self._code)

    def entry(self, process, task):
        if task.context() is None or self._patience <= 0:
            return None
        begun = time.monotonic()
        tasks_unwinder.enter(process, haft_fibers.Fiber(process, task.fiber))
        try:
            frames = [frame for frame in without_own(frames_of_context(), task.function, True)
                      if not is_plumbing(frame) and frame.name() is not None]
            if not frames:
                return None
            location = frames[-1].find_sal()
            name = self.symbol(frames[-1].pc() - 1) if frames[-1].type() != gdb.INLINE_FRAME else frames[-1].name()
            if location.symtab is None:
                return name, None
            return name, f"{os.path.basename(location.symtab.filename)}:{location.line}"
        finally:
            tasks_unwinder.leave()
            self._patience -= time.monotonic() - begun

    def place_in(self, process, fiber):
        if fiber.context() is None or self._patience <= 0:
            return None
        begun = time.monotonic()
        tasks_unwinder.enter(process, fiber)
        try:
            for frame in frames_of_context():
                if not is_plumbing(frame) and not re.match(r"caml(Haft|Stdlib|Effect|Dune__exe$|_)", frame.name() or "caml_"):
                    location = frame.find_sal()
                    name = os.path.basename(location.symtab.filename) if location.symtab is not None else "haft_"
                    line = f"{name}:{location.line}" if not name.startswith("haft_") else None
                    return frame.name(), line
            return None
        finally:
            tasks_unwinder.leave()
            self._patience -= time.monotonic() - begun

    def now(self):
        if not is_live():
            return None
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def is_live():
    """A process of this machine, as opposed to a core file or one behind gdbserver."""
    try:
        connection = gdb.selected_inferior().connection
        return connection is not None and connection.type == "native"
    except AttributeError:
        return "native process" in gdb.execute("info files", to_string=True)


def architecture():
    return gdb.selected_inferior().architecture().name()


session = haft_text.Session()
_memory = None


def memory():
    global _memory
    if gdb.selected_inferior().pid == 0 and not gdb.selected_inferior().threads():
        raise haft_memory.Unknown("There is no process and no core file: start the program, or attach to it, first.")
    if _memory is None:
        _memory = GdbMemory()
    return _memory


def forget(_event=None):
    global _memory
    _memory = None
    session.has_run()
    tasks_unwinder.leave()


# ---- Backtraces ----


def register(frame, which):
    """0: program counter, 1: stack pointer, 2: frame pointer; 0 where the frame does not tell."""
    try:
        return int(frame.read_register(STACK_POINTERS[architecture()][which])) & (1 << 64) - 1
    except gdb.error:
        return 0


def is_first_frame(process, fiber, pc, fp):
    return process["&first_frame"] <= pc < process["&first_frame_end"] and fp == fiber.resumer


def is_first_of(process, fiber, frame):
    """Whether the frame is the first of the fiber."""
    return is_first_frame(process, fiber, frame.pc(), register(frame, 2))


class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


class TasksUnwinder(gdb.unwinder.Unwinder):
    """While a context is entered, the frame in which the selected thread is seems to be called by the code of the
    context. The outermost frame of the context's fiber seems to be called by nobody."""

    def __init__(self):
        super().__init__("haft")
        self.context = None
        self.enabled = True

    def enter(self, process, fiber):
        self.leave()
        self.process = process
        self.thread = (gdb.selected_thread().ptid, register(gdb.newest_frame(), 1))
        self.context, self.fiber = fiber.context(), fiber
        gdb.invalidate_cached_frames()

    def leave(self):
        if self.context is not None:
            self.context = None
            gdb.invalidate_cached_frames()

    def __call__(self, pending):
        context = self.context
        if context is None or gdb.selected_thread().ptid != self.thread[0]:
            return None
        pc, sp, fp, base = STACK_POINTERS[pending.architecture().name()]
        word = gdb.selected_inferior().architecture().integer_type(64, False)
        try:
            here, at, frame = (gdb.Value(int(pending.read_register(name)) & (1 << 64) - 1).cast(word)
                               for name in (sp, pc, fp))
        except gdb.error:
            return None  # What is not known of a frame is of none that is looked for.
        if is_first_frame(self.process, self.fiber, int(at), int(frame)):
            unwound = pending.create_unwind_info(FrameId(here, at))
            unwound.add_saved_register(pc, gdb.Value(0).cast(word))
            return unwound
        if here != self.thread[1]:
            return None
        unwound = pending.create_unwind_info(FrameId(gdb.Value(context.sp - 16).cast(word), at))
        for register, value in ((pc, context.pc), (sp, context.sp), (fp, context.fp), (base, context.base)):
            unwound.add_saved_register(register, gdb.Value(value).cast(word))
        return unwound



tasks_unwinder = TasksUnwinder()
gdb.unwinder.register_unwinder(None, tasks_unwinder, replace=True)


def frames_of_context():
    """The frames of the entered context, innermost first."""
    frames = []
    frame = gdb.newest_frame().older()
    while frame is not None and frame.is_valid() and len(frames) < 1000:
        fiber = tasks_unwinder.fiber
        if is_first_of(tasks_unwinder.process, fiber, frame):
            break
        if fiber.language != "C" and not fiber.low <= register(frame, 1) <= fiber.high:
            break
        frames.append(frame)
        try:
            frame = frame.older()
        except gdb.error:
            break
    return frames


def file_of(frame):
    symtab = frame.find_sal().symtab
    return symtab.filename if symtab is not None else ""


def is_own(frame):
    """Whether a frame is the library's, or one of its interface to C++ or Rust."""
    name = frame.name() or ""
    return (name.startswith(("haft_", "hafti_", "haft::", "<haft::", "__morestack")) or
            object_of(frame).startswith("libhaft") or OF_HAFT.search(file_of(frame)) is not None)


def object_of(frame):
    return os.path.basename(gdb.solib_name(frame.pc()) or "")


def function_start(frame):
    """Where the code of the function begins, or 0."""
    try:
        block = frame.function()
        if block is not None:
            return int(block.value().address)
        text = gdb.execute(f"info symbol {frame.pc() - 1:#x}", to_string=True)
        found = re.search(r" \+ (\d+) in section", text)
        return frame.pc() - 1 - int(found.group(1)) if found else 0
    except gdb.error:
        return 0


def is_plumbing(frame):
    """Between the library and a task's function of C++ or Rust."""
    return (is_own(frame) or OF_LIBRARIES.search(file_of(frame)) is not None or
            re.match(r"<?(std|core|alloc|__rust|__gnu_cxx)\b|__rust_|_?rust_", frame.name() or "") is not None)


def without_own(frames, function, is_suspended, is_task=True):
    """Without the library's own frames: those that have called `function`, the task's; and of a task that is
    suspended those in which it is. The function of the library that the program has called stays. (What else a fiber is
    suspended in, by an effect of the program's, is the program's.)"""
    last = next((number + 1 for number in reversed(range(len(frames)))
                 if function != 0 and function_start(frames[number]) == function), len(frames))
    while last > 1 and is_plumbing(frames[last - 1]):
        last -= 1
    first = 0
    if is_suspended:
        calls = [number for number, frame in enumerate(frames[:last]) if is_task and
                 (re.match(r"haft_|haft::|<haft::", frame.name() or "") or
                  (OF_HAFT.search(file_of(frame)) and file_of(frame).endswith(".rs")))]
        first = calls[0] if calls else 0
        end = first
        while calls and end + 1 < last and is_plumbing(frames[end + 1]):
            end += 1
            first = end if is_own(frames[end]) else first
        others = [number for number, frame in enumerate(frames[:last]) if not is_own(frame)]
        # Functions of the archives that are not of the interface have no names by which to know them, nor lines.
        others = [number for number in others if file_of(frames[number])] or others
        if not calls and others:
            first = others[0] if not is_task else max(others[0] - 1, 0)
    return frames[first:last]


def select_programs_frame(function):
    """The innermost one of the entered context that is not the library's."""
    frames = without_own(frames_of_context(), function, True)
    others = [frame for frame in frames if not is_own(frame)]
    chosen = [frame for frame in others if file_of(frame)] or others or frames
    if chosen:
        chosen[0].select()


def print_frames(frames, indent=""):
    selected = gdb.selected_frame()
    try:
        for number, frame in enumerate(frames):
            frame.select()
            text = gdb.execute("frame", to_string=True).splitlines()
            line = re.sub(r"^#\d+\s+|::h[0-9a-f]{16}\b", "", text[0]) if text else "?"
            print(f"{indent}#{number:<3} {line}")
    finally:
        try:
            selected.select()
        except gdb.error:
            pass


def backtrace_of_fiber(process, fiber, whole, indent="", function=0):
    if fiber.context() is None:
        print(f"{indent}The fiber is not suspended: it is {fiber.state}.")
        return
    tasks_unwinder.enter(process, fiber)
    try:
        frames = frames_of_context()
        print_frames(frames if whole else without_own(frames, function or fiber.function, True, function != 0), indent)
    finally:
        tasks_unwinder.leave()


def thread_of(process, task):
    """The gdb thread that runs a task, or None."""
    pthread = process.word(task.worker, "worker.thread")
    for number, pointer in process.memory.thread_pointers():
        if pointer == pthread:
            return next(thread for thread in gdb.selected_inferior().threads() if thread.num == number)
    return None


def backtrace_of_task(process, task, whole, indent=""):
    if task.fiber != 0 and task.context() is not None:
        backtrace_of_fiber(process, haft_fibers.Fiber(process, task.fiber), whole, indent, task.function)
        return
    if task.runner == 0:
        print(f"{indent}The task {task.state_name()}: it has no stack.")
        return
    if task.fiber == 0:
        print(f"{indent}The task rests, and has no stack: it goes on with "
              f"{haft_text.place_of(process.memory, task.function)}.")
        return
    selected = gdb.selected_thread()
    thread = thread_of(process, task)
    if thread is None:
        print(f"{indent}The thread of the task is not there.")
        return
    thread.switch()
    try:
        print(f"{indent}(on thread {thread.num}, which runs it)")
        fiber = haft_fibers.Fiber(process, task.fiber)
        frames, frame = [], gdb.newest_frame()
        while frame is not None and len(frames) < 1000:
            if is_first_of(process, fiber, frame):
                break
            frames.append(frame)
            frame = frame.older()
        print_frames(frames if whole else without_own(frames, task.function, False), indent)
    finally:
        selected.switch()


# ---- Commands ----


def reports(function):
    """Prints what is missing instead of a Python traceback."""

    def invoke(self, argument, from_tty):
        try:
            function(self, argument, from_tty)
        except (haft_memory.Unknown, haft_memory.Unreadable) as error:
            raise gdb.GdbError(str(error)) from None

    return invoke


class Haft(gdb.Command):
    """Show what Haft has in this process or core file: tasks, fibers, handlers, locks, connections."""

    def __init__(self):
        super().__init__("haft", gdb.COMMAND_STATUS, gdb.COMPLETE_NONE, True)


def show(lines):
    for line in lines:
        print(line)


class Tasks(gdb.Command):
    """List scopes and tasks: what each waits for and since when, and where it began.
Tasks of the same name, wait and stack are one line. Numbers are those that `haft bt` takes."""

    def __init__(self):
        super().__init__("haft tasks", gdb.COMMAND_STATUS)

    @reports
    def invoke(self, argument, from_tty):
        show(haft_text.tasks(session, memory()))


class Bt(gdb.Command):
    """Print the backtrace of a task: haft bt [-full] TASK
TASK is a number of `haft tasks`, a task's name or address, or the address of a fiber. The library's own frames at both
ends are left out, but with -full."""

    def __init__(self):
        super().__init__("haft bt", gdb.COMMAND_STACK)

    @reports
    def invoke(self, argument, from_tty):
        words = gdb.string_to_argv(argument)
        whole = "-full" in words
        words = [word for word in words if word != "-full"]
        if len(words) != 1:
            raise gdb.GdbError("haft bt [-full] TASK: a number of `haft tasks`, or the address of a fiber.")
        process = session.at(memory())
        if words[0].startswith("0x") and any(fiber.address == int(words[0], 16) for fiber in process.fibers()):
            backtrace_of_fiber(process, haft_text.fiber_at(session, memory(), words[0]), whole)
            return
        task = session.task(memory(), words[0])
        print(f"{haft_text.task_label(session, task)} {haft_text.wait_text(session, [task])}")
        backtrace_of_task(process, task, whole)


class Task(gdb.Command):
    """Select the stack of a task, or of a fiber: haft task N. Then bt, up, frame, info locals, print work on it,
from frame 1 on, until the process runs or `haft task` without a number goes back to the thread's own."""

    def __init__(self):
        super().__init__("haft task", gdb.COMMAND_STACK)

    @reports
    def invoke(self, argument, from_tty):
        if argument.strip() == "":
            tasks_unwinder.leave()
            return
        process = session.at(memory())
        if argument.startswith("0x") and any(fiber.address == int(argument, 16) for fiber in process.fibers()):
            fiber = haft_text.fiber_at(session, memory(), argument)
            function = fiber.function
        else:
            task = session.task(memory(), argument.strip())
            if task.context() is None:
                raise gdb.GdbError(f"{haft_text.task_label(session, task)} {task.state_name()}: `haft bt` says more.")
            fiber, function = haft_fibers.Fiber(process, task.fiber), task.function
        tasks_unwinder.enter(process, fiber)
        select_programs_frame(function)
        gdb.execute("frame")


class Apply(gdb.Command):
    """Run a command on tasks: haft apply all|N... COMMAND
On each that is suspended the command sees the stack of the task. `bt` prints the backtrace as `haft bt`, once for tasks
that are alike."""

    def __init__(self):
        super().__init__("haft apply", gdb.COMMAND_STACK)

    @reports
    def invoke(self, argument, from_tty):
        words = argument.split()
        process = session.at(memory())
        tasks = []
        if words[:1] == ["all"]:
            tasks, words = list(process.tasks()), words[1:]
        while words and re.fullmatch(r"\d+(-\d+)?", words[0]):
            first, _, last = words.pop(0).partition("-")
            wanted = range(int(first), int(last or first) + 1)
            tasks += [task for task in process.tasks() if session.number(task) in wanted]
        command = " ".join(words)
        if not tasks or not command:
            raise gdb.GdbError("haft apply all|N... COMMAND: as `haft apply all bt`.")
        if re.fullmatch(r"(bt|backtrace|where)( -full)?", command):
            for alike in haft_text.group(tasks):
                numbers = haft_text.ranges([session.number(task) for task in alike])
                count = f"{len(alike):,} tasks" if len(alike) > 1 else "task"
                each = ", each" if len(alike) > 1 else ""
                print(f"\n{count} {numbers} {haft_text.named(alike[0].name)}{each} {haft_text.wait_text(session, alike)}")
                backtrace_of_task(process, alike[0], command.endswith("-full"))
            return
        for task in tasks:
            print(f"\n{haft_text.task_label(session, task)}")
            if task.context() is None:
                print(f"The task {task.state_name()}.")
                continue
            tasks_unwinder.enter(process, haft_fibers.Fiber(process, task.fiber))
            try:
                select_programs_frame(task.function)
                gdb.execute(command)
            finally:
                tasks_unwinder.leave()


class Fibers(gdb.Command):
    """List the fibers of C, C++, OCaml and Rust that are there: `haft bt ADDRESS` prints the backtrace of one."""

    def __init__(self):
        super().__init__("haft fibers", gdb.COMMAND_STATUS)

    @reports
    def invoke(self, argument, from_tty):
        show(haft_text.fibers(session, memory()))


class Handlers(gdb.Command):
    """List the handlers around the selected thread, innermost first, or of a task: haft handlers [-full] [TASK]
For each: the effects that it handles, and where it was installed; with -full all effects, and their clauses."""

    def __init__(self):
        super().__init__("haft handlers", gdb.COMMAND_STATUS)

    @reports
    def invoke(self, argument, from_tty):
        process = session.at(memory())
        whole = "-full" in argument.split()
        argument = argument.replace("-full", "")
        if argument.strip() != "":
            task = session.task(memory(), argument.strip())
            if task.context() is None:
                raise gdb.GdbError(f"{haft_text.task_label(session, task)} {task.state_name()}.")
            fiber = haft_fibers.Fiber(process, task.fiber)
            innermost = process.of(fiber.content, "fiber.top")
            tasks_unwinder.enter(process, fiber)
            try:
                show(haft_text.handlers(session, memory(), innermost, frame_finder(frames_of_context()), whole))
            finally:
                tasks_unwinder.leave()
            return
        thread = process.threads().get(gdb.selected_thread().num)
        if thread is None:
            raise haft_memory.Unknown("The selected thread has not used Haft, or the core file lacks its thread pointer: "
                                      "`haft handlers TASK` shows those of a task.")
        frames = []
        frame = gdb.newest_frame()
        while frame is not None and len(frames) < 1000:
            frames.append(frame)
            frame = frame.older()
        show(haft_text.handlers(session, memory(), process.word(thread, "thread.current"), frame_finder(frames),
                               whole))


def frame_finder(frames):
    """Finds the function of the program's that has installed a handler: the innermost frame that is not the library's,
    from that on in which the handler lies, or which has resumed its fiber."""
    places = []
    for frame in frames:
        try:
            places.append((register(frame, 1), frame))
        except gdb.error:
            continue

    def describe(index):
        for _, frame in places[index:]:
            if not is_own(frame):
                location = frame.find_sal()
                name = haft_text.function_name(frame.name()) or hex(frame.pc())
                if location.symtab is not None:
                    return f"{name} at {os.path.basename(location.symtab.filename)}:{location.line}"
                return name
        return None

    def find(address, fiber):
        if fiber is not None:
            process = session.at(memory())
            if fiber.state != "running":
                return None
            sp = process.of(fiber.content, "context.sp", process["fiber.resumer"])
            for index, (frame_sp, _) in enumerate(places):
                if frame_sp == sp:
                    return describe(index)
            return None
        # The frame's part of the stack ends where its caller's begins.
        best = None
        for index, (frame_sp, _) in enumerate(places):
            if frame_sp <= address and (best is None or frame_sp > places[best][0]):
                best = index
        return describe(best) if best is not None and address - places[best][0] < 1 << 20 else None

    return find


class Locks(gdb.Command):
    """List locks and other objects for which tasks wait, their holders and waiters; and deadlocks."""

    def __init__(self):
        super().__init__("haft locks", gdb.COMMAND_STATUS)

    @reports
    def invoke(self, argument, from_tty):
        show(haft_text.locks(session, memory()))


class Connections(gdb.Command):
    """List the connections of each server of libhaft-http: the request, what its handler waits for, since when."""

    def __init__(self):
        super().__init__("haft connections", gdb.COMMAND_STATUS)

    @reports
    def invoke(self, argument, from_tty):
        show(haft_text.connections(session, memory()))


# ---- Printers ----

# The public types: of C, of C++, and of what haft-sys declares in Rust.
OBJECTS = {"haft_io_mutex": "mutex", "haft_io_rwlock": "rwlock", "haft_io_semaphore": "semaphore",
           "haft_io_condition": "condition", "haft_io_event": "event", "haft_io_promise": "promise",
           "haft_io_barrier": "barrier"}
# Types that programs have by pointers.
OPAQUE = {"haft_io_task": "task", "haft_io_scope_state": "scope", "haft_io_scope": "scope",
          "haft_io_channel": "channel", "haft_fiber": "fiber", "haft_effect": "effect"}
WRAPPERS = re.compile(r"(?:class |struct )?haft::(io|sync)::(mutex|shared_mutex|semaphore|event|condition_variable|barrier|latch|Mutex<|Event|"
                      r"Semaphore|Condvar|RwLock<)|haft::(task::)?JoinHandle<|haft::io::task<")


def plain_name(kind):
    """The name of a type of C, in C or as haft-sys has it."""
    return re.sub(r"^(struct )?(haft_sys::)?|_t$", "", kind.name or kind.tag or "") if kind is not None else ""


def inside(value, depth=5):
    """(kind, address) of the library's object in a value of C++ or Rust, or None."""
    kind = value.type.strip_typedefs()
    if kind.code in (gdb.TYPE_CODE_PTR, gdb.TYPE_CODE_REF):
        target = kind.target().unqualified()
        if plain_name(target) in OPAQUE or plain_name(target.strip_typedefs()) in OPAQUE:
            found = OPAQUE.get(plain_name(target)) or OPAQUE[plain_name(target.strip_typedefs())]
            return (found, int(value)) if int(value) != 0 else None
        if depth == 0 or not re.search(r"haft::", str(target)) or int(value) == 0:
            return None
        return inside(value.dereference(), depth - 1)
    if plain_name(value.type.unqualified()) in OBJECTS or plain_name(kind) in OBJECTS:
        found = OBJECTS.get(plain_name(value.type.unqualified())) or OBJECTS[plain_name(kind)]
        return (found, int(value.address)) if value.address is not None else None
    if kind.code not in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION) or depth == 0:
        return None
    for field in kind.fields():
        if hasattr(field, "bitpos"):
            found = inside(value[field], depth - 1)
            if found is not None:
                return found
    return None


class Printer:
    def __init__(self, kind, address, is_pointer):
        self.kind, self.address, self.is_pointer = kind, address, is_pointer

    def to_string(self):
        try:
            text = haft_text.object_text(session, session.at(memory()), self.kind, self.address)
        except (haft_memory.Unknown, haft_memory.Unreadable) as error:
            text = f"not to be read: {error}"
        return f"{self.address:#x} ({text})" if self.is_pointer else f"({text})"


def printer_for(value):
    kind = value.type.unqualified()
    is_pointer = kind.strip_typedefs().code == gdb.TYPE_CODE_PTR
    name = str(kind)
    if not ("haft_" in name or "haft::" in name) or (not is_pointer and plain_name(kind) not in OBJECTS and
                                                      plain_name(kind.strip_typedefs()) not in OBJECTS and
                                                      not WRAPPERS.match(name)):
        return None
    if is_pointer and plain_name(kind.strip_typedefs().target().unqualified()) not in OPAQUE and \
            plain_name(kind.strip_typedefs().target().unqualified().strip_typedefs()) not in OPAQUE:
        return None
    try:
        found = inside(value)
    except gdb.error:
        return None
    return Printer(*found, is_pointer) if found is not None else None


gdb.pretty_printers.append(printer_for)


for command in (Haft, Tasks, Bt, Task, Apply, Fibers, Handlers, Locks, Connections):
    command()
for event in (gdb.events.cont, gdb.events.stop, gdb.events.exited, gdb.events.new_objfile, gdb.events.memory_changed):
    event.connect(forget)
