#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whether C++ has every field of C's option structs, or a reason in LEFT_OUT.

An option struct of C++ is made of a list (io/include/haft/io_options.hpp). The compiler finds a field that C does not
have; this finds one that only C has. LEFT_OUT has those that C++ fills in itself or keeps from its users.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LEFT_OUT = {
    "haft_io_task_options_t": {"scope": "of scope_ref::spawn", "even_without_stack": "a task of C++ has a stack"},
    "haft_io_scope_options_t": {"on_cancel": "with_stop_token sets it", "scope_of_spawns": "libhaft-http sets it"},
    "haft_io_process_options_t": {"streams": "a parameter of its own"},
    "haft_http_cors_options_t": {"origin_count": "of the vector `origins`"},
    "haft_http_proxy_options_t": {"upstreams": "a parameter of its own", "upstream_count": "likewise"},
}
LIST = re.compile(r"#define HAFTI_(?:IO|HTTP)_FIELDS\(FIELD, OWN\)(.*?)\nstruct (\w+) \{\n    HAFT_IO_OPTIONS\((\w+), HAFTI_\w+_FIELDS\)", re.DOTALL)
# (A type may have commas in angle brackets: the name is what stands before the last comma but one.)
FIELD = re.compile(r"\b(?:FIELD|OWN)\((.+), (\w+), [^,]*\)(?= */\*| *\\| *$)", re.MULTILINE)


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def fields_of(body):
    """The names that the body of a struct of C declares."""
    names = []
    for declaration in without_comments(body).split(";"):
        pointer_to_function = re.search(r"\(\s*\*\s*(\w+)\s*\)\s*\(", declaration)
        if pointer_to_function:
            names.append(pointer_to_function[1])
        elif declaration.strip():
            names += [re.search(r"(\w+)\s*$", part)[1] for part in declaration.split(",")]
    return names


def main():
    of_c, lists = {}, []
    for path in sorted(ROOT.glob("*/**/include/haft/*.h")):
        text = path.read_text(encoding="utf-8")
        of_c.update((name, body) for body, name in
                    re.findall(r"^typedef struct \w+ \{\n(.*?)^\} (\w+);", text, flags=re.DOTALL | re.MULTILINE))
    for path in sorted(ROOT.glob("*/**/include/haft/*.hpp")):
        text = path.read_text(encoding="utf-8")
        if path.name != "io_options.hpp":
            lists += [(path, name, c_name, {field for _, field in FIELD.findall(body)})
                      for body, name, c_name in LIST.findall(text)]
    faults = []
    for path, name, c_name, have in lists:
        left_out = LEFT_OUT.get(c_name, {})
        wanted = set(fields_of(of_c[c_name]))
        where = f"{path.relative_to(ROOT)}: {name}"
        faults += [f"{where} has no field {field} of {c_name}: add it to the list, or to LEFT_OUT with the reason"
                   for field in sorted(wanted - have - set(left_out))]
        faults += [f"{where}: LEFT_OUT has {field}, which is there, or which {c_name} does not have"
                   for field in sorted(field for field in left_out if field in have or field not in wanted)]
    print("\n".join(faults) if faults else f"{len(lists)} option structs have all fields of C's")
    return 1 if faults or not lists else 0


if __name__ == "__main__":
    sys.exit(main())
