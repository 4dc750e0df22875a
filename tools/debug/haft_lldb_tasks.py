# SPDX-License-Identifier: MIT
"""lldb's plug-in for operating systems, loaded by haft_lldb.py: a thread for each stack that the command prints."""
import struct

import haft_lldb

NAMES = {"x86_64": ("rip", "rsp", "rbp", "rbx", "rax", "rcx", "rdx", "rdi", "rsi", "r8", "r9", "r10", "r11", "r12", "r13",
                    "r14", "r15", "rflags"),
         "aarch64": ("pc", "sp", "x29", "x19", "x30")}
# By lldb's numbers and DWARF's: what unwinding needs.
DWARF = {"x86_64": {"rax": 0, "rdx": 1, "rcx": 2, "rbx": 3, "rsi": 4, "rdi": 5, "rbp": 6, "rsp": 7, "r8": 8, "r9": 9,
                    "r10": 10, "r11": 11, "r12": 12, "r13": 13, "r14": 14, "r15": 15, "rip": 16, "rflags": 49},
         "aarch64": {"x19": 19, "x29": 29, "x30": 30, "sp": 31, "pc": 32}}
GENERIC = {"rip": "pc", "rsp": "sp", "rbp": "fp", "pc": "pc", "sp": "sp", "x29": "fp", "x30": "ra", "rflags": "flags"}


class OperatingSystemPlugIn:
    def __init__(self, process):
        self.process = process if type(process).__name__ == "SBProcess" else None
        triple = self.process.target.triple if self.process is not None else "x86_64"
        self.architecture = "aarch64" if triple.startswith("aarch64") else "x86_64"
        self.names = NAMES[self.architecture]

    def get_thread_info(self):
        threads = [{"tid": haft_lldb.THREAD_NUMBER + number, "name": "task", "queue": "", "state": "stopped",
                    "stop_reason": "none"} for number in range(len(haft_lldb.shown))]
        return threads

    def get_register_info(self):
        registers = []
        for number, name in enumerate(self.names):
            register = {"name": name, "bitsize": 64, "offset": number * 8, "encoding": "uint", "format": "hex", "set": 0,
                        "gcc": DWARF[self.architecture][name], "dwarf": DWARF[self.architecture][name]}
            if name in GENERIC:
                register["generic"] = GENERIC[name]
            registers.append(register)
        return {"sets": ["GPR"], "registers": registers}

    def get_register_data(self, tid):
        number = tid - haft_lldb.THREAD_NUMBER
        if not 0 <= number < len(haft_lldb.shown):
            return None
        context = haft_lldb.shown[number]
        words = [context.pc, context.sp, context.fp, context.base] + [0] * (len(self.names) - 4)
        return struct.pack(f"{len(words)}Q", *words)

    def create_thread(self, tid, context):
        return None
