#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write a source file of the library with one bug.

usage: mutate.py MUTANTS.txt ROOT NAME OUT.c | mutate.py MUTANTS.txt ROOT --check
"""
import pathlib
import re
import sys


def mutants(path):
    """name -> (about, file, said, says)"""
    found = {}
    for part in re.split(r"^== ", path.read_text(), flags=re.M)[1:]:
        head, rest = part.split("\n", 1)
        name, about = head.split(": ", 1)
        source, edit = rest.split("\n", 1)
        said, says = re.match(r"- (.*?)\n\+ (.*)", edit.strip(), re.S).groups()
        found[name] = (about, source.strip(), said, says)
    return found


def mutate(root, name, mutant):
    _, source, said, says = mutant
    text = (root / source).read_text()
    if text.count(said) < 1:
        sys.exit(f"mutant '{name}': {source} does not say any more: {said}\n"
                 "  next: see what it says now, and change tests/simulation/mutants.txt")
    return text.replace(said, says, 1)


def main():
    all_of_them, root = mutants(pathlib.Path(sys.argv[1])), pathlib.Path(sys.argv[2])
    if sys.argv[3] == "--check":
        for name, mutant in all_of_them.items():
            mutate(root, name, mutant)
    else:
        pathlib.Path(sys.argv[4]).write_text(mutate(root, sys.argv[3], all_of_them[sys.argv[3]]))


main()
