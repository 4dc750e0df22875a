# SPDX-License-Identifier: MIT
"""Fibers of a process, and the handlers around them."""


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
