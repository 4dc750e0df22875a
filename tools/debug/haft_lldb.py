# SPDX-License-Identifier: MIT
"""The commands `haft ...` of lldb: docs/debugging.md is the user's page. `command script import` reads this file.

lldb has no way to tell it of further stacks but a plug-in for operating systems (haft_lldb_tasks.py), which makes
threads of them. `haft bt` loads it for the stacks that it prints, and unloads it.
"""
import os
import shlex
import sys
import time

import lldb

_here = os.path.dirname(os.path.abspath(__file__))
if _here not in sys.path:
    sys.path.insert(0, _here)
_writes = sys.dont_write_bytecode
sys.dont_write_bytecode = True  # The folder may be the system's.
import haft_fibers  # noqa: E402
import haft_memory  # noqa: E402
import haft_text  # noqa: E402
sys.dont_write_bytecode = _writes

session = haft_text.Session()
_stop = None
shown = []  # contexts that haft_lldb_tasks.py makes threads of


class LldbMemory(haft_memory.Memory):
    def __init__(self, target):
        self.target, self.process = target, target.process
        self._symbols = {}

    def read(self, address, size):
        if size == 0:
            return b""
        error = lldb.SBError()
        content = self.process.ReadMemory(address, size, error)
        if error.Fail() or content is None or len(content) != size:
            # A core file lacks memory that cannot be written, which is in the program's file.
            error = lldb.SBError()
            content = self.target.ReadMemory(self._resolve(address), size, error)
        if error.Fail() or content is None or len(content) != size:
            raise haft_memory.Unreadable(f"{address:#x}")
        return bytes(content)

    def notes(self):
        notes = []
        for module in self.target.modules:
            section = module.FindSection(".note.haft.shown")
            if section.IsValid():
                start = section.GetLoadAddress(self.target)
                if start != lldb.LLDB_INVALID_ADDRESS:
                    notes.append((start, start + section.GetByteSize()))
        return notes

    def thread_pointers(self):
        pointers = []
        name = "tpidr" if self.target.triple.startswith("aarch64") else "fs_base"
        for thread in self.process.threads:
            register = thread.GetFrameAtIndex(0).FindRegister(name)
            if register.IsValid():
                pointers.append((thread.GetIndexID(), register.GetValueAsUnsigned()))
        return pointers

    def _resolve(self, address):
        return self.target.ResolveLoadAddress(address)

    def symbol(self, address):
        if address not in self._symbols:
            place = self._resolve(address)
            symbol = place.GetSymbol()
            name = None
            if symbol.IsValid() and symbol.GetName():
                distance = address - symbol.GetStartAddress().GetLoadAddress(self.target)
                name = symbol.GetName() + (f"+{distance}" if distance and not self.is_code(address) else "")
            self._symbols[address] = name
        return self._symbols[address]

    def location(self, address):
        line = self._resolve(address).GetLineEntry()
        if not line.IsValid() or line.GetLine() == 0:
            return None
        return f"{line.GetFileSpec().GetFilename()}:{line.GetLine()}"

    def is_code(self, address):
        section = self._resolve(address).GetSection()
        return section.IsValid() and section.GetSectionType() == lldb.eSectionTypeCode

    def now(self):
        if self.process.GetPluginName() == "elf-core":
            return None
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def memory_of(debugger):
    global _stop
    target = debugger.GetSelectedTarget()
    process = target.process
    if not process.IsValid() or process.GetState() not in (lldb.eStateStopped, lldb.eStateCrashed, lldb.eStateSuspended):
        raise haft_memory.Unknown("There is no stopped process and no core file.")
    if _stop != (process.GetUniqueID(), process.GetStopID()):
        session.has_run()
        _stop = (process.GetUniqueID(), process.GetStopID())
    return LldbMemory(target)


def is_own(name):
    return name is None or name.startswith(("haft_", "hafti_", "haft::", "<haft::", "__morestack"))


def programs_frames(frames, memory, function):
    """The frames without the library's own, like without_own of haft_gdb.py."""
    last = len(frames)
    for number, frame in enumerate(frames):
        symbol = frame.GetSymbol()
        if function != 0 and symbol.IsValid() and symbol.GetStartAddress().GetLoadAddress(memory.target) == function:
            last = number + 1
    while last > 1 and is_own(frames[last - 1].GetFunctionName()):
        last -= 1
    calls = [number for number, frame in enumerate(frames[:last])
             if (frame.GetFunctionName() or "").startswith(("haft_", "haft::"))]
    with_lines = [number for number, frame in enumerate(frames[:last]) if frame.GetLineEntry().IsValid()]
    first = calls[0] if calls else max(with_lines[0] - 1, 0) if with_lines else 0
    while calls and first + 1 < last and is_own(frames[first + 1].GetFunctionName()):
        first += 1
    return frames[first:last]


def print_stack(debugger, result, memory, fiber, function, whole):
    context = fiber.context()
    if context is None:
        print(f"The fiber is {fiber.state}.", file=result)
        return
    shown[:] = [context]
    plugin = os.path.join(_here, "haft_lldb_tasks.py")
    asynchronous = debugger.GetAsync()
    debugger.SetAsync(False)
    try:
        debugger.HandleCommand(f"settings set target.process.python-os-plugin-path {shlex.quote(plugin)}")
        thread = next((thread for thread in memory.process.threads if thread.GetThreadID() == THREAD_NUMBER), None)
        if thread is None:
            print("lldb has not taken the plug-in for the stacks of tasks.", file=result)
            return
        frames = []
        first_frame = (session.process["&first_frame"], session.process["&first_frame_end"])
        for frame in thread.frames:
            if first_frame[0] <= frame.GetPC() < first_frame[1]:
                break
            frames.append(frame)
        if not whole:
            frames = programs_frames(frames, memory, function)
        for number, frame in enumerate(frames):
            line = frame.GetLineEntry()
            where = f" at {line.GetFileSpec().GetFilename()}:{line.GetLine()}" if line.IsValid() else ""
            print(f"#{number:<3} {frame.GetPC():#018x} in {frame.GetDisplayFunctionName() or '??'}{where}", file=result)
    finally:
        shown[:] = []
        debugger.HandleCommand('settings clear target.process.python-os-plugin-path')
        debugger.SetAsync(asynchronous)


THREAD_NUMBER = 0x48616674


def backtrace(debugger, result, words):
    whole = "-full" in words
    words = [word for word in words if word != "-full"]
    if len(words) != 1:
        raise haft_memory.Unknown("haft bt [-full] TASK: a number of `haft tasks`, or the address of a fiber.")
    memory = memory_of(debugger)
    process = session.at(memory)
    if words[0].startswith("0x") and any(fiber.address == int(words[0], 16) for fiber in process.fibers()):
        fiber = haft_text.fiber_at(session, memory, words[0])
        print_stack(debugger, result, memory, fiber, fiber.function, whole)
        return
    task = session.task(memory, words[0])
    print(f"{haft_text.task_label(session, task)} {haft_text.wait_text(session, [task])}", file=result)
    backtrace_of_task(debugger, result, memory, task, whole)


def backtrace_of_task(debugger, result, memory, task, whole):
    if task.fiber == 0 or task.context() is None:
        print(f"The task {task.state_name()}: it has no stack that waits.", file=result)
        return
    print_stack(debugger, result, memory, haft_fibers.Fiber(session.process, task.fiber), task.function, whole)


def apply_all(debugger, result, words):
    if words[:1] != ["all"] or words[1:2] not in (["bt"], ["backtrace"]):
        raise haft_memory.Unknown("haft apply all bt: lldb has no other form of it.")
    memory = memory_of(debugger)
    for alike in haft_text.group(session.at(memory).tasks()):
        numbers = haft_text.ranges([session.number(task) for task in alike])
        count = f"{len(alike):,} tasks" if len(alike) > 1 else "task"
        each = ", each" if len(alike) > 1 else ""
        print(f"\n{count} {numbers} {haft_text.named(alike[0].name)}{each} {haft_text.wait_text(session, alike)}",
              file=result)
        backtrace_of_task(debugger, result, memory, alike[0], "-full" in words)


def handlers(debugger, result, words):
    memory = memory_of(debugger)
    process = session.at(memory)
    whole = "-full" in words
    words = [word for word in words if word != "-full"]
    if words:
        task = session.task(memory, words[0])
        if task.context() is None:
            raise haft_memory.Unknown(f"{haft_text.task_label(session, task)} {task.state_name()}.")
        innermost = process.of(haft_fibers.Fiber(process, task.fiber).content, "fiber.top")
    else:
        thread = process.threads().get(memory.process.GetSelectedThread().GetIndexID())
        if thread is None:
            raise haft_memory.Unknown("The selected thread has not used Haft, or the core file lacks its thread pointer: "
                                      "`haft handlers TASK` shows those of a task.")
        innermost = process.word(thread, "thread.current")
    show(result, haft_text.handlers(session, memory, innermost, lambda address, fiber: None, whole))


def show(result, lines):
    for line in lines:
        print(line, file=result)


LISTS = {"tasks": haft_text.tasks, "fibers": haft_text.fibers, "locks": haft_text.locks,
         "connections": haft_text.connections}
OTHERS = {"bt": backtrace, "apply": apply_all, "handlers": handlers}


def haft(debugger, command, result, _dictionary):
    """Show what Haft has in this process or core file:
haft tasks, haft bt [-full] TASK, haft apply all bt, haft fibers, haft handlers [-full] [TASK], haft locks,
haft connections"""
    words = shlex.split(command)
    name = words[0] if words else ""
    try:
        if name in LISTS:
            memory = memory_of(debugger)
            show(result, LISTS[name](session, memory))
        elif name in OTHERS:
            OTHERS[name](debugger, result, words[1:])
        else:
            result.SetError(f"haft {name}: it is one of {', '.join([*LISTS, *OTHERS])}.")
    except (haft_memory.Unknown, haft_memory.Unreadable) as error:
        result.SetError(str(error))


def __lldb_init_module(debugger, _dictionary):
    debugger.HandleCommand("command script add -f haft_lldb.haft haft")
