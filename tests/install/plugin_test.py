#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""plugin: a backend that somebody else builds, from installed headers alone, is found and used by installed programs.

Installs a build into a private prefix and compiles examples/plugin against the headers that are there. The object must show
one symbol and need none of libtutti's. A program that is compiled against the same prefix then runs two ranks on it: linked with the
shared library it finds the plug-in beside that, linked with the static one by TUTTI_PLUGIN_PATH; without it, it says where it looked.

usage: plugin_test.py --root DIR --build DIR --cmake CMAKE --cc COMPILER
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from install_test import LIMIT_S, compile_program, flags, lib, run

PROGRAM = r"""
#include <stdio.h>
#include <tutti/tutti.h>
int main(void)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    int                x[3] = { 1, 2, 3 };

    opts.backend = "store";
    if (tutti_init_process_group(&opts) != TUTTI_OK || tutti_all_reduce(TUTTI_SPAN(x, 3), TUTTI_SUM, NULL) != TUTTI_OK) {
        fprintf(stderr, "%s\n", tutti_last_error());
        return 1;
    }
    printf("rank %d: %s %d %d %d\n", tutti_get_rank(NULL), tutti_get_backend(NULL), x[0], x[1], x[2]);
    return tutti_destroy_process_group(NULL) == TUTTI_OK ? 0 : 1;
}
"""
WANTED = ["rank 0: store 2 4 6", "rank 1: store 2 4 6"]
LINES_MOST = 200  # of an example of a plug-in


def check(ok, what):
    if not ok:
        sys.exit(f"plugin: {what}")


def build_plugin(cc, prefix, source, out, shows="tutti_plugin_entry"):
    cflags = [w for w in flags(prefix, "tutti", False) if w.startswith("-I")]
    run([cc, "-std=c11", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden", "-shared", "-fPIC", *cflags, source, "-o", out])
    shown = [line.split()[0] for line in run(["nm", "-D", "-P", "--defined-only", out]).splitlines()]
    check(shown == [shows], f"the object shows {shown}")
    needed = [line.split()[0] for line in run(["nm", "-D", "-P", "--undefined-only", out]).splitlines()]
    check(not [n for n in needed if n.startswith(("tutti", "tti"))], f"the object needs {needed}")


def ranks(prefix, command, **variables):
    """The exit code of two ranks under the installed launcher, their lines (it says before each whose it is), and errors."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("RANK", "WORLD_", "MASTER_", "TUTTI_"))}
    env.update(LD_LIBRARY_PATH=str(lib(prefix)), **variables)
    command = command if isinstance(command, list) else [command]
    done = subprocess.run([prefix / "bin/tutti", "run", "--standalone", "--nproc-per-node=2", *command], env=env, text=True,
                          capture_output=True, timeout=LIMIT_S)
    return done.returncode, sorted(re.findall(r"rank \d: .*", done.stdout)), done.stderr


def main():
    args = argparse.ArgumentParser()
    for name in ("--root", "--build"):
        args.add_argument(name, type=pathlib.Path, required=True)
    args.add_argument("--cmake", default="cmake")
    args.add_argument("--cc", default="cc")
    args = args.parse_args()

    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch).resolve()
        prefix = scratch / "prefix"
        run([args.cmake, "--install", args.build, "--prefix", prefix])
        source = scratch / "store_backend.c" # away from the tree: nothing of it is in reach
        shutil.copy(args.root / "examples/plugin/store_backend.c", source)
        lines = len(source.read_text().splitlines())
        check(lines < LINES_MOST, f"the example has {lines} lines, and is to be read in one go: fewer than {LINES_MOST}")
        plugin = scratch / "tutti-backend-store.so"
        build_plugin(args.cc, prefix, source, plugin)
        compile_program(args.cc, prefix, "tutti", PROGRAM, scratch / "shared", False)
        compile_program(args.cc, prefix, "tutti", PROGRAM, scratch / "static", True)

        code, lines, errors = ranks(prefix, scratch / "shared")
        place = f"'{lib(prefix)}/tutti'"
        check(code != 0 and f"'tutti-backend-store.so' is not in {place}" in errors, f"without the plug-in:\n{errors}")
        (lib(prefix) / "tutti").mkdir(exist_ok=True)
        shutil.copy(plugin, lib(prefix) / "tutti")
        code, lines, errors = ranks(prefix, scratch / "shared")
        check(code == 0 and lines == WANTED, f"beside the library: {code}, {lines}\n{errors}")
        code, lines, errors = ranks(prefix, scratch / "static", TUTTI_PLUGIN_PATH=str(scratch))
        check(code == 0 and lines == WANTED, f"by TUTTI_PLUGIN_PATH: {code}, {lines}\n{errors}")
    print("plugin: built from installed headers, found beside the library and by TUTTI_PLUGIN_PATH, and used")


if __name__ == "__main__":
    main()
