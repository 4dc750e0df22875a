# SPDX-License-Identifier: MIT
"""The memory of a process or of a core file, by the names of the fields of Haft's structures. Nothing is called in the
process, and no debug information is needed: the libraries carry tables of where their fields lie
(core/include/haft/shown.h).

The two fronts, haft_gdb.py and haft_lldb.py, give the functions of Memory; everything printed is made in
haft_text.py. Reading is by blocks: what ten thousand tasks need are some ten thousand reads.

Each module uses those before it: haft_memory, haft_fibers, haft_tasks, haft_process, haft_served, haft_ocaml,
haft_text.
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


class Shown:
    """The memory, and the tables that the libraries have in it."""

    def __init__(self, memory):
        self.memory = memory
        self.shown = {}
        self.strings = {}
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

    @staticmethod
    def signed(word):
        return word - (1 << 64) if word >> 63 else word
