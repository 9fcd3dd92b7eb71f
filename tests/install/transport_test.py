#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""transport: one that somebody else builds, from installed headers alone, carries the bytes of installed programs.

Installs a build into a private prefix and compiles examples/plugin/post_transport.c against the headers that are there. The object
must show one symbol and need none of libtutti's. A program that is compiled against the same prefix finds it by its name, says
so, and says where it looked without it; a rank that is killed is named by the other one. Then a part of the conformance matrix
goes over it: all collectives and messages, with parcels that fill the sockets.

usage: transport_test.py --root DIR --build DIR --matrix FILE --cmake CMAKE --cc COMPILER
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from install_test import compile_program, lib, run
from plugin_test import LINES_MOST, build_plugin, check, ranks

MATRIX_S = 300
PROGRAM = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/tutti.h>
enum { N = 1 << 20 };
static int sum(int *x)
{
    for (int i = 0; i < N; i++)
        x[i] = tutti_get_rank(NULL) + i;
    return tutti_all_reduce(TUTTI_SPAN(x, N), TUTTI_SUM, NULL);
}
int main(int argc, char **argv)
{
    int *x = malloc(N * sizeof *x), wrong = 0;

    if (tutti_init_process_group(NULL) != TUTTI_OK || sum(x) != TUTTI_OK) {
        fprintf(stderr, "%s\n", tutti_last_error());
        return 1;
    }
    for (int i = 0; i < N; i++)
        wrong += x[i] != 2 * i + 1;
    printf("rank %d: %d are wrong\n", tutti_get_rank(NULL), wrong);
    fflush(stdout);
    if (argc > 1 && strcmp(argv[1], "die") == 0) {
        if (tutti_get_rank(NULL) == 1)
            return raise(SIGKILL);
        fprintf(stderr, "told: %s: %s\n", tutti_status_name(sum(x)), tutti_last_error());
        return 1;
    }
    return tutti_destroy_process_group(NULL) == TUTTI_OK ? 0 : 1;
}
"""
WANTED = ["rank 0: 0 are wrong", "rank 1: 0 are wrong"]


def matrix(program, plugins):
    command = [program, "--core", "--carried", "post", "--plugins", plugins, "--transport", "tcp", "--world", "2,3", "--size",
               "0,1,1000,65537,1048577", "--dtype", "f32,i64", "--mode", "blocking,async"]
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True, timeout=MATRIX_S, check=False)
    last = done.stdout.strip().splitlines()[-1:]
    print("matrix over 'post':", *last)
    check(done.returncode == 0 and last and "0 failed, 0 skipped" in last[0], f"the matrix ended with {done.returncode}:\n{done.stdout}{done.stderr}")


def main():
    args = argparse.ArgumentParser()
    for name in ("--root", "--build", "--matrix"):
        args.add_argument(name, type=pathlib.Path, required=True)
    args.add_argument("--cmake", default="cmake")
    args.add_argument("--cc", default="cc")
    args = args.parse_args()

    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch).resolve()
        prefix = scratch / "prefix"
        run([args.cmake, "--install", args.build, "--prefix", prefix])
        source = scratch / "post_transport.c"  # away from the tree: nothing of it is in reach
        shutil.copy(args.root / "examples/plugin/post_transport.c", source)
        lines = len(source.read_text().splitlines())
        check(lines < LINES_MOST, f"the example has {lines} lines, and is to be read in one go: fewer than {LINES_MOST}")
        plugins = scratch / "plugins"
        plugins.mkdir(mode=0o755)
        program = scratch / "program"
        compile_program(args.cc, prefix, "tutti", PROGRAM, program, False)
        wishes = {"TUTTI_TRANSPORT": "only:post", "TUTTI_PLUGIN_PATH": str(plugins), "TUTTI_LOG": "info"}

        code, lines, errors = ranks(prefix, program, **wishes)
        check(code != 0 and "tutti-transport-post.so" in errors and str(plugins) in errors, f"without the plug-in:\n{errors}")
        build_plugin(args.cc, prefix, source, plugins / "tutti-transport-post.so", "tutti_transport_entry")
        code, lines, errors = ranks(prefix, program, **wishes)
        check(code == 0 and lines == WANTED and "'post'" in errors, f"with it: {code}, {lines}\n{errors}")
        code, lines, errors = ranks(prefix, ["--on-failure=keep", program, "die"], **wishes)
        check(lines == WANTED and "told: TUTTI_E_PEER" in errors and "rank 1" in errors, f"where rank 1 dies: {code}, {lines}\n{errors}")
        matrix(args.matrix, plugins)
    print("transport: built from installed headers, found by its name, and used")


if __name__ == "__main__":
    main()
