#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""doc-blocks: the public headers are the manual, and stand alone.

Every TUTTI_API declaration below include/ has a /** ... */ block that ends on the line above it, and
every header compiles by itself as C11 and as C++17 without a warning.

usage: doc_blocks.py --include DIR --cc COMPILER --cxx COMPILER | doc_blocks.py --self-test --cc .. --cxx ..
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]


def undocumented(text):
    """(line number, line) of each declaration without its block; and how many declarations there are."""
    lines = text.splitlines()
    bad, n = [], 0
    for i, line in enumerate(lines):
        if not line.startswith("TUTTI_API"):
            if "TUTTI_API" in line and not line.lstrip().startswith(("#", "*", "/*")):
                bad.append((i + 1, line.strip() + "   (TUTTI_API must begin the line)"))
            continue
        n += 1
        begin = i - 1
        if begin < 0 or not lines[begin].rstrip().endswith("*/"):
            bad.append((i + 1, line))
            continue
        while begin > 0 and "/*" not in lines[begin]:
            begin -= 1
        if not lines[begin].startswith("/** "):
            bad.append((i + 1, line))
    return bad, n


def compile_alone(header, include, cc, cxx):
    """What the compilers say about a file that includes nothing but this header."""
    name = header.relative_to(include).as_posix()
    said = []
    for compiler, std, lang in ((cc, "c11", "c"), (cxx, "c++17", "c++")):
        run = subprocess.run([compiler, f"-std={std}", "-x", lang, *WARNINGS, f"-I{include}", "-"],
                             input=f"#include <{name}>\n#include <{name}>\n", text=True, capture_output=True)
        if run.returncode != 0:
            said.append(f"{name} does not stand alone as {std}:\n{run.stderr.rstrip()}")
    return said


def check(include, cc, cxx):
    bad, n, headers = [], 0, sorted(include.rglob("*.h"))
    for header in headers:
        missing, seen = undocumented(header.read_text())
        n += seen
        bad += [f"{header}:{number}: no /** block ends above: {line}" for number, line in missing]
        bad += compile_alone(header, include, cc, cxx)
    if n == 0:
        bad.append(f"no TUTTI_API declaration below {include}")
    return bad, f"{len(headers)} headers, {n} declarations"


GOOD = "#ifndef A\n#define A\n/** A word. */\nTUTTI_API int tutti_a(void);\n\n/** More\n * words. */\nTUTTI_API int tutti_b(void);\n#endif\n"
BAD = {
    "plain.h": "/* not a doc block */\nTUTTI_API int tutti_a(void);\n",
    "gap.h": "/** A word. */\n\nTUTTI_API int tutti_a(void);\n",
    "bare.h": "TUTTI_API int tutti_a(void);\n",
    "inside.h": "/** A word. */\nextern TUTTI_API int tutti_a;\n",
    "c_only.h": "/** A word. */\nTUTTI_API int tutti_a(int class);\n",
    "leans.h": "/** A word. */\nTUTTI_API size_t tutti_a(void);\n",
}


def self_test(cc, cxx):
    bad = []
    with tempfile.TemporaryDirectory() as scratch:
        include = pathlib.Path(scratch)
        prefix = "#ifndef TUTTI_API\n#define TUTTI_API\n#endif\n"
        (include / "good.h").write_text(prefix + GOOD)
        found = check(include, cc, cxx)[0]
        if found:
            bad.append(f"self test: found though right: {found}")
        (include / "good.h").unlink()
        for name, text in BAD.items():
            (include / name).write_text(prefix + text)
            if not check(include, cc, cxx)[0]:
                bad.append(f"self test: {name} was accepted")
            (include / name).unlink()
        if not check(include, cc, cxx)[0]:
            bad.append("self test: an empty folder was accepted")
    return bad


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--include", type=pathlib.Path)
    args.add_argument("--cc", default="cc")
    args.add_argument("--cxx", default="c++")
    args.add_argument("--self-test", action="store_true")
    args = args.parse_args()
    if args.self_test:
        bad, seen = self_test(args.cc, args.cxx), f"{len(BAD)} bad headers"
    else:
        bad, seen = check(args.include, args.cc, args.cxx)
    for line in bad:
        print(line)
    print(f"doc-blocks: {seen}, {len(bad)} complaints")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
