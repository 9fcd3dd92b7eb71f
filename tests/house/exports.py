#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""exports: what the shared libraries show is what the headers promise, and nothing else.

libtutti shows tutti_* under the version TUTTI_1 and the names of TUTTI_PRIVATE_1 in libtutti.map, all of
them; libtutti_train shows tutti_* only. Whatever a header declares with TUTTI_API is there; a header
none of whose functions exists yet is named, not counted. libtutti needs neither a CBLAS nor zlib.

usage: exports.py --include DIR --map FILE --libtutti FILE [--libtrain FILE]
"""
import argparse
import pathlib
import re
import subprocess
import sys

# What instrumented builds add by themselves.
INSTRUMENTED = ("__odr_asan", "__asan_", "__ubsan_", "__tsan_", "__gcov_", "mangle_path", "__sancov_")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported(library):
    """name -> version of every dynamic symbol that a library defines."""
    symbols = {}
    for line in run("nm", "-D", "--defined-only", "-P", str(library)).splitlines():
        name, kind = line.split()[:2]
        if kind == "A" or name.startswith(INSTRUMENTED):
            continue
        name, _, version = name.partition("@")
        symbols[name] = version.lstrip("@")
    return symbols


def declared(header):
    """Names of the functions that a header declares with TUTTI_API."""
    text = re.sub(r"/\*.*?\*/", " ", header.read_text(), flags=re.S)
    found = re.findall(r"^TUTTI_API\s([^;{(]*?)\b(\w+)\s*\(", text, flags=re.M)
    return [name for _, name in found]


def check_libtutti(symbols, private):
    bad = []
    for name, version in sorted(symbols.items()):
        if name in private and version == "TUTTI_PRIVATE_1":
            continue
        if not name.startswith("tutti_") or version != "TUTTI_1":
            bad.append(f"libtutti shows {name} under the version '{version}'")
    return bad + [f"libtutti does not show {name} of TUTTI_PRIVATE_1" for name in sorted(private - set(symbols))]


def check_headers(include, symbols):
    bad, missing_headers, n = [], [], 0
    for header in sorted(include.rglob("*.h")):
        names = declared(header)
        missing = [name for name in names if name not in symbols]
        n += len(names) - len(missing)
        if names and len(missing) == len(names):
            missing_headers.append(header.name)
            continue
        bad += [f"{header.name} declares {name}, which no library shows" for name in missing]
    return bad, missing_headers, n


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--include", type=pathlib.Path, required=True)
    args.add_argument("--map", type=pathlib.Path, required=True)
    args.add_argument("--libtutti", type=pathlib.Path, required=True)
    args.add_argument("--libtrain", type=pathlib.Path)
    args = args.parse_args()

    block = re.search(r"TUTTI_PRIVATE_1\s*{([^}]*)}", args.map.read_text()).group(1)
    private = set(re.findall(r"\b(tti_\w+)\s*;", block))
    core = exported(args.libtutti)
    train = exported(args.libtrain) if args.libtrain else {}
    bad = check_libtutti(core, private)
    bad += [f"libtutti_train shows {name}" for name in sorted(train) if not name.startswith("tutti_")]
    bad += [f"both libraries define {name}" for name in sorted(set(core) & set(train))]
    more, absent, n = check_headers(args.include, {**core, **train})
    needs = run("readelf", "-d", str(args.libtutti))
    bad += more + [f"libtutti needs {lib}" for lib in ("blas", "libz.") if lib in needs]
    if n == 0:
        bad.append("no declared function was found in any library")
    for line in bad:
        print(line)
    if absent:
        print("not there yet: " + ", ".join(absent))
    print(f"exports: {len(core)} + {len(train)} symbols, {n} of them declared in headers, {len(bad)} complaints")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
