#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run the checks that a model lists in its top comment.

usage: check.py MODEL.pml [ONLY] | check.py --self-test

Every line `holds OPTIONS`, `wrong OPTIONS` or `stuck OPTIONS` is one exhaustive search by spin: `holds` finds nothing,
`wrong` must find a violated assertion, `stuck` a state that nobody leaves. A comment `= FILE: WORDS` names what the
code says there: if src/FILE does not say so any more, the model is of something else, and the check fails.
ONLY: the checks whose options contain it, with the steps to what was found.

Exit code 77: spin or the compiler is not there.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SRC = pathlib.Path(__file__).resolve().parents[2] / "src"
SEARCH_LIMIT_S = 200
MEMORY_MB = 1024
# What takes time is compiling, most searches are over at once: so each is tried as it is compiled soonest, and what is not
# over then is compiled for searching.
SOON_S = 4
WAYS = [(["-O0"], SOON_S), (["-O2", "-DCOLLAPSE"], SEARCH_LIMIT_S)]
FOUND = {"wrong": "assertion violated", "stuck": "invalid end state"}


def squeeze(text):
    return re.sub(r"\s+", " ", text).strip()


def quotes(text):
    """What the model says that the code says: (file, words)."""
    return [(m[1], squeeze(m[2])) for m in re.finditer(r"/\* = ([\w/.]+): (.*?) \*/", text, re.S)]


def check_quotes(text):
    sources, bad = {}, 0
    for name, words in quotes(text):
        if name not in sources:
            path = SRC / name
            sources[name] = squeeze(path.read_text()) if path.exists() else ""
        if words not in sources[name]:
            print(f"src/{name} does not say any more: {words}\n"
                  "  next: see whether the model still does what the code does, and change both it and this line")
            bad += 1
    return bad


def checks(text):
    """(expectation, options, what it is about) of each line of the top comment."""
    top = text[:text.index("*/")]
    for m in re.finditer(r"^ \*\s+(holds|wrong|stuck)  ((?:-D\S+ ?)*)(.*)$", top, re.M):
        yield m[1], m[2].split(), m[3].strip()


def run(command, where, limit_s=SEARCH_LIMIT_S):
    done = subprocess.run(command, cwd=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=limit_s)
    return done.returncode, done.stdout


def must_run(command, where):
    status, said = run(command, where)
    if status != 0 or not (pathlib.Path(where) / "pan.c").exists():
        raise RuntimeError(f"{' '.join(command)}\n{said}")


def search(model, options, where):
    """The report of pan, which has looked at all states."""
    cc = os.environ.get("CC", "gcc")
    for source in model.parent.glob("*.pml"):
        if not (pathlib.Path(where) / source.name).exists():
            shutil.copy(source, where)
    must_run(["spin", "-a", *options, model.name], where)
    for flags, limit_s in WAYS:
        must_run([cc, *flags, "-w", "-DSAFETY", "-DNOFAIR", f"-DMEMLIM={MEMORY_MB}", "-DVECTORSZ=4096", "-o", "pan", "pan.c"],
                 where)
        try:
            report = run(["./pan", "-m200000", "-w22"], where, limit_s)[1]
        except subprocess.TimeoutExpired:
            report = f"not over in {limit_s} s"
        if outcome(report) in ("holds", *FOUND):
            break
    return report


def outcome(report):
    errors = re.search(r"errors: (\d+)", report)
    if errors is None or "max search depth too small" in report or "Search not completed" in report and errors[1] == "0":
        return "no end of the search"
    if errors[1] == "0":
        return "holds"
    for kind, words in FOUND.items():
        if words in report:
            return kind
    return "another error"


def check(model, expected, options, about, trace):
    with tempfile.TemporaryDirectory(prefix="tutti-model.") as where:
        report = search(model, options, where)
        found = outcome(report)
        states = re.search(r"(\d+) states, stored", report)
        seconds = re.search(r"elapsed time ([\d.]+)", report)
        ok = found == expected
        print(f"{'ok  ' if ok else 'FAIL'}  {expected:5}  {model.stem} {' '.join(options)}: "
              f"{states[1] if states else '?'} states, {seconds[1] if seconds else '0'} s"
              f"{'' if ok else ', came out as: ' + found}{'  (' + about + ')' if about else ''}", flush=True)
        if not ok and found not in FOUND:
            print(report)
        if found in FOUND and (trace or not ok):
            print(run(["spin", "-t", "-p", "-g", "-l", *options, model.name], where)[1][-20000:])
    return ok


SELF = """/* = base/thread.c: atomic_fetch_add(&event->count,
 1); */ /* = base/thread.c: no such words */
init { byte x; if :: x = 1 :: x = 2 fi; assert(x != WRONG); x != STUCK }
"""


def self_test():
    """The checker tells what holds, what is wrong and what is stuck apart, and sees words that are gone."""
    good = check_quotes(SELF) == 1
    with tempfile.TemporaryDirectory(prefix="tutti-model.") as where:
        model = pathlib.Path(where) / "self.pml"
        model.write_text(SELF)
        for expected, options in (("holds", ["-DWRONG=3", "-DSTUCK=3"]), ("wrong", ["-DWRONG=2", "-DSTUCK=3"]),
                                  ("stuck", ["-DWRONG=3", "-DSTUCK=2"])):
            good = check(model, expected, options, "", False) and good
    return 0 if good else 1


def main():
    for tool in ("spin", os.environ.get("CC", "gcc")):
        if shutil.which(tool) is None:
            print(f"skipped: {tool} is not installed\n  next, as root on Debian: apt-get install {tool}")
            return 77
    if sys.argv[1] == "--self-test":
        return self_test()
    model = pathlib.Path(sys.argv[1]).resolve()
    only = sys.argv[2] if len(sys.argv) > 2 else None
    text = model.read_text()
    bad = check_quotes(text)
    todo = [c for c in checks(text) if only is None or only in c[1]]
    if not todo:
        print(f"{model.name} lists no checks")
        return 1
    for expected, options, about in todo:
        bad += not check(model, expected, options, about, only is not None)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
