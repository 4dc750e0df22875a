# SPDX-License-Identifier: MIT
"""Runs a module of CPython's own tests, or some of its tests: MODULE [NAME...]. Tests of what threads that are tasks
cannot do are left out, and those of pools of processes, which take minutes and have threads of the system."""
import importlib
import subprocess
import sys
import unittest

LEFT_OUT = {
    # the system has one number for all of them
    "test_various_ops",
    "test_various_ops_large_stack",
    "test_various_ops_small_stack",
    # a loop that neither waits nor yields is not interrupted for the sake of others
    "test_can_interrupt_tight_loops",
    # needs the module of the tests in an isolated interpreter
    "test_4_daemon_threads",
}


def without(suite):
    kept = unittest.TestSuite()
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            kept.addTest(without(test))
        elif test._testMethodName not in LEFT_OUT and not type(test).__name__.startswith("ProcessPool"):
            kept.addTest(test)
    return kept


def run(tests, verbosity):
    result = unittest.TextTestRunner(verbosity=verbosity).run(tests)
    return {case.id() for case, _ in result.failures + result.errors}


if len(sys.argv) > 2:
    sys.exit(1 if run(unittest.defaultTestLoader.loadTestsFromNames(sys.argv[2:]), 1) else 0)
module = importlib.import_module("test." + sys.argv[1])
failed = run(without(unittest.defaultTestLoader.loadTestsFromModule(module)), 2)
# (A program that this one starts has threads of the system. A test that fails there, too, fails for another reason.)
command = [sys.executable, __file__, sys.argv[1]]
excused = {name for name in failed if subprocess.run(command + [name]).returncode != 0}
print("failed:", sorted(failed - excused), "with threads of the system, too:", sorted(excused))
sys.exit(1 if failed - excused else 0)
