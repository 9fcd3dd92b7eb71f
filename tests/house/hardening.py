#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""hardening: the built files have what cmake/flags.cmake asks for.

Of every file that is given: nothing is both written and run, the stack included; what the loader fills is closed before
the program runs, and all of it is filled then; the code moves nothing in its text. Programs lie anywhere. Stacks are guarded,
with --fortified calls into libc know the sizes of their buffers, with --landing every exported function begins where an
indirect call may land, and with --checked calls through pointers look at the type of what they reach. What leaves no mark in a file, guards of large stack frames, is looked for in the commands
that compiled it.

usage: hardening.py [--fortified] [--landing] [--checked] [--commands compile_commands.json] FILE...
       hardening.py --self-test --cc CC
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

WANTED = ("-fstack-protector-strong", "-fstack-clash-protection", "-D_FORTIFY_SOURCE=3")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def segments(path):
    """(type, flags) of every segment."""
    lines = run("readelf", "-lW", str(path)).splitlines()
    found = []
    for line in lines:
        match = re.match(r"\s+([A-Z_]+)\s+0x\S+\s+0x\S+\s+0x\S+\s+0x\S+\s+0x\S+\s+([RWE ]{3})", line)
        if match:
            found.append((match.group(1), match.group(2)))
    return found


def dynamic(path):
    return run("readelf", "-dW", str(path))


def imports(path):
    return {line.split()[0].split("@")[0] for line in run("nm", "-D", "--undefined-only", "-P", str(path)).splitlines() if line}


def lands(path, name):
    """Whether an exported function begins with the instruction that an indirect call has to meet."""
    code = run("objdump", "-d", "--no-show-raw-insn", f"--disassemble={name}", str(path))
    first = re.search(rf"<{name}(?:@@\w+)?>:\n\s*[0-9a-f]+:\s+(.*)", code)
    return first is not None and re.match(r"endbr64|bti|paciasp", first.group(1).strip()) is not None


def exported(path):
    names = [line.split()[0].split("@")[0] for line in run("nm", "-D", "--defined-only", "-P", str(path)).splitlines()
             if line.split()[1] == "T"]
    return sorted(name for name in names if name.startswith("tutti_"))


def checks_calls(path):
    """Whether the linker has made the check of who may be called, and calls ask it."""
    names = {line.split()[0] for line in run("nm", "--defined-only", "-P", str(path)).splitlines() if line}
    return {"__cfi_check", "__cfi_slowpath"} <= names


def wrong_in(path, fortified, landing, checked=False):
    """What is missing in a file."""
    wrong = []
    found = segments(path)
    tags = dynamic(path)
    if any("W" in flags and "E" in flags for _, flags in found):
        wrong.append("has memory that is both written and run")
    if not any(kind == "GNU_STACK" for kind, _ in found):
        wrong.append("does not say that its stack is not run")
    if not any(kind == "GNU_RELRO" for kind, _ in found):
        wrong.append("leaves open what the loader fills (relro)")
    if not re.search(r"BIND_NOW|FLAGS_1\).*\bNOW\b", tags):
        wrong.append("is not filled before it runs (now)")
    if "TEXTREL" in tags:
        wrong.append("moves its text")
    if ".so" not in path.name and not re.search(r"FLAGS_1\).*\bPIE\b", tags):
        wrong.append("lies at one address (no PIE)")
    needed = imports(path)
    if "__stack_chk_fail" not in needed:
        wrong.append("has no guarded stack")
    if fortified and not any(re.fullmatch(r"__\w+_chk", name) for name in needed - {"__stack_chk_fail"}):
        wrong.append("calls nothing of libc with the size of its buffer (_FORTIFY_SOURCE)")
    if checked and not checks_calls(path):
        wrong.append("calls through pointers whatever their type (TUTTI_CFI)")
    if landing:
        lost = [name for name in exported(path)[:20] if not lands(path, name)]
        if lost:
            wrong.append(f"has functions without a place to land: {', '.join(lost)}")
    return wrong


def wrong_commands(path, fortified):
    wanted = [flag for flag in WANTED if fortified or not flag.startswith("-D")]
    wrong = []
    for entry in json.loads(pathlib.Path(path).read_text()):
        name = entry["file"]
        if not re.search(r"/(src|train|tools)/[^.]*\.c$", name) or name.endswith("_test.c") or "torture_counted" in entry["command"]:
            continue
        lost = [flag for flag in wanted if flag not in entry["command"]]
        if lost:
            wrong.append(f"{name} was compiled without {' '.join(lost)}")
    return wrong


def self_test(cc):
    """A program without any of it is told by all that it lacks."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "bare.c")
        source.write_text("int main(void) { return 0; }\n")
        bare = pathlib.Path(folder, "bare")
        run(cc, "-O0", "-fno-stack-protector", "-no-pie", "-fno-pie", "-Wl,-z,norelro,-z,lazy,-z,execstack", str(source), "-o",
            str(bare))
        found = " ".join(wrong_in(bare, True, False, True))
        for part in ("run", "relro", "now", "PIE", "guarded", "FORTIFY", "TUTTI_CFI"):
            if part not in found:
                sys.exit(f"hardening: the self-test found nothing about '{part}': {found}")
    print("hardening: a program without any of it is found out")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fortified", action="store_true")
    parser.add_argument("--landing", action="store_true")
    parser.add_argument("--checked", action="store_true")
    parser.add_argument("--commands")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    args = parser.parse_args()
    if args.self_test:
        self_test(args.cc)
        return
    wrong = [f"{path.name} {what}" for path in args.files
             for what in wrong_in(path, args.fortified, args.landing and ".so" in path.name, args.checked)]
    if args.commands:
        wrong += wrong_commands(args.commands, args.fortified)
    for line in wrong:
        print(line)
    if wrong:
        sys.exit("hardening: see cmake/flags.cmake")
    print(f"hardening: {len(args.files)} files are as they should be")


main()
