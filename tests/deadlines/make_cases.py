#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What waits, and what does not: every public function stands in functions.tsv.

    make_cases.py list INCLUDE_DIR TSV OUT.c   the list of cases: one for each function that waits
    make_cases.py check INCLUDE_DIR TSV        every public function is classified, and nothing else is

A row is a function or a header ("@tensor.h": all of it that has no row of its own), a class, and why. Classes:
    waits   it has a case in cases_*.c, which the list names: a function without one does not link
    by      it waits as the function that is named does, which has a case: it is that function, or only calls it
    user    it waits for what its caller wants it to wait for, and says so in its header
    ends    it waits for nobody, whatever peers do: ending_test has it
    elsewhere  it waits, and a test of its own has what it takes
    local   it waits for no other process
"""
import pathlib
import re
import sys

CLASSES = {"waits", "by", "user", "ends", "elsewhere", "local"}


def functions(include):
    """Each public function's header."""
    found = {}
    for header in sorted((pathlib.Path(include) / "tutti").glob("*.h")):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        for match in re.finditer(r"TUTTI_API\b[^;{]*?\b(tutti_\w+)\s*\(", text):
            found[match.group(1)] = header.name
    return found


def rows(tsv):
    table = {}
    for n, line in enumerate(pathlib.Path(tsv).read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != 3 or fields[1] not in CLASSES or not fields[2]:
            sys.exit(f"{tsv}:{n}: not 'function TAB class TAB why'")
        if fields[0] in table:
            sys.exit(f"{tsv}:{n}: {fields[0]} stands there twice")
        table[fields[0]] = (fields[1], fields[2])
    return table


def faults(found, table):
    for name, header in found.items():
        if name not in table and "@" + header not in table:
            yield f"{name} ({header}) is not classified: does it wait for another process, and until when?"
    for name, (kind, why) in table.items():
        if not name.startswith("@") and name not in found:
            yield f"{name} is no public function"
        if name.startswith("@") and kind != "local":
            yield f"{name}: a whole header is only ever local"
        if kind == "by" and table.get(why, ("",))[0] != "waits":
            yield f"{name}: '{why}' has no case"


def write_list(table, out):
    names = sorted(name for name, (kind, _) in table.items() if kind == "waits")
    lines = ["/* Made by make_cases.py from functions.tsv. */", '#include "deadlines/deadlines.h"', ""]
    lines += [f"extern const tt_case tt_case_{name};" for name in names]
    lines += ["", "const tt_case *const tt_cases[] = {"]
    lines += [f"    &tt_case_{name}," for name in names]
    lines += ["};", f"const int tt_n_cases = {len(names)};", ""]
    pathlib.Path(out).write_text("\n".join(lines))


def main():
    command, include, tsv = sys.argv[1:4]
    table = rows(tsv)
    if command == "list":
        write_list(table, sys.argv[4])
        return
    wrong = list(faults(functions(include), table))
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


main()
