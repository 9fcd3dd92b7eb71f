#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Which public functions are called while calls fail, and which are not.

    played.py check INCLUDE_DIR FUNCTIONS.tsv NTH_DIR   each function that waits is called in a scenario (calls_*.c), or
                                                        stands in not_played.tsv with the reason
    played.py print INCLUDE_DIR FUNCTIONS.tsv NTH_DIR   the functions of each header that no scenario calls, and how many do
    played.py --self-test

What waits for other processes is what tests/deadlines/functions.tsv does not call "local"."""
import pathlib
import re
import sys


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def public(headers):
    """function -> header, of (name, text) pairs."""
    found = {}
    for header, text in headers:
        for match in re.finditer(r"TUTTI_API\b[^;{]*?\b(tutti_\w+)\s*\(", without_comments(text)):
            found[match.group(1)] = header
    return found


def called(texts):
    names = set()
    for text in texts:
        names |= set(re.findall(r"\b(tutti_\w+)\s*\(", re.sub(r'"(\\.|[^"\\])*"', '""', without_comments(text))))
    return names


def rows(text, fields):
    return [line.split("\t", fields - 1) for line in text.splitlines() if line and not line.startswith("#")]


def waiting(functions, classes):
    """Those of the public functions that are not local: by a row of their own, else by their header's."""
    kinds = {row[0]: row[1] for row in classes}
    return {name for name, header in functions.items() if kinds.get(name, kinds.get("@" + header)) != "local"}


def faults(functions, classes, played, excused):
    waits = waiting(functions, classes)
    for name in sorted(waits - played - set(excused)):
        yield f"{name} ({functions[name]}) waits, and no scenario calls it: add it to one, or say why not in not_played.tsv"
    for name, why in excused.items():
        if name not in functions:
            yield f"not_played.tsv: {name} is no public function"
        elif name not in waits:
            yield f"not_played.tsv: {name} waits for nobody, and needs no reason"
        elif name in played:
            yield f"not_played.tsv: {name} is called by a scenario"
        if not why:
            yield f"not_played.tsv: {name} has no reason"


def report(functions, classes, played):
    waits = waiting(functions, classes)
    for header in sorted(set(functions.values())):
        names = {name for name, where in functions.items() if where == header}
        absent = sorted(names - played)
        print(f"{header}: {len(names & played)} of {len(names)}, of those that wait {len(names & waits & played)} "
              f"of {len(names & waits)}")
        for name in absent:
            print(f"    {'waits' if name in waits else 'local'}  {name}")
    print(f"all: {len(played & set(functions))} of {len(functions)}, of those that wait {len(waits & played)} of {len(waits)}")


def self_test():
    functions = public([("a.h", "TUTTI_API int tutti_a(int x);\n/* TUTTI_API int tutti_not(void); */"),
                        ("b.h", "TUTTI_API void tutti_b(void);\nTUTTI_API tutti_x *tutti_c(void);")])
    classes = [["tutti_a", "waits", ""], ["@b.h", "local", ""], ["tutti_c", "by", "tutti_a"]]
    assert functions == {"tutti_a": "a.h", "tutti_b": "b.h", "tutti_c": "b.h"}
    assert waiting(functions, classes) == {"tutti_a", "tutti_c"}
    assert called(['f("tutti_a(");  tutti_c (1); /* tutti_b() */']) == {"tutti_c"}
    assert not list(faults(functions, classes, {"tutti_a", "tutti_c"}, {}))
    assert len(list(faults(functions, classes, {"tutti_c"}, {}))) == 1
    assert not list(faults(functions, classes, {"tutti_c"}, {"tutti_a": "why"}))
    for wrong in ({"tutti_c": "called"}, {"tutti_b": "local"}, {"tutti_none": "unknown"}):
        assert len(list(faults(functions, classes, {"tutti_a", "tutti_c"}, wrong))) == 1
    assert len(list(faults(functions, classes, {"tutti_c"}, {"tutti_a": ""}))) == 1


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    command, include, table, nth = sys.argv[1:5]
    functions = public((header.name, header.read_text())
                       for header in sorted((pathlib.Path(include) / "tutti").glob("*.h")))
    classes = rows(pathlib.Path(table).read_text(), 3)
    played = called(file.read_text() for file in sorted(pathlib.Path(nth).glob("calls_*.c")))
    if command == "print":
        return report(functions, classes, played)
    excused = {row[0]: row[1] if len(row) > 1 else "" for row in rows((pathlib.Path(nth) / "not_played.tsv").read_text(), 2)}
    wrong = list(faults(functions, classes, played, excused))
    print("\n".join(wrong or ["every function that waits is called while calls fail, or has a reason"]))
    return 1 if wrong else 0


sys.exit(main())
