# SPDX-License-Identifier: MIT
"""Tasks and contexts of haft-io for OCaml."""


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
        number = process.signed(process.word(self.address, "ocaml_context.fibers")) >> 1
        while number >= 0 and len(tasks) < 1000000:
            address = process.word(by_id + 8 * number)
            tasks.append(OcamlTask(process, address))
            number = process.signed(process.word(address, "ocaml_task.next")) >> 1
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
    running = process.signed(process.word(lane)) >> 1  # the number of the task that runs, or -1
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
