#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""install: the README's way from `make install` to a running program.

Installs a build into a private prefix, which is not the one that it was configured with, compiles the README's first
program with nothing but the flags that pkg-config gives, shared and static, and runs two ranks of it: through the installed `tutti run` if there is
one, else with the variables set by hand. A second program proves that tutti-train's flags are complete. Then each
numbered example is compiled by the line that stands in it.

usage: install_test.py --root DIR --build DIR --cmake CMAKE --cc COMPILER
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
from own_net import take_port  # noqa: E402

TRAIN = """
#include <tutti/train.h>
int main(void)
{
    tutti_tensor *t = tutti_tensor_ones(TUTTI_F32, 0, NULL);
    double        x = 0.0;
    int           ok = tutti_tensor_item(t, &x) == TUTTI_OK && x == 1.0;

    tutti_tensor_release(t);
    return ok ? 0 : 1;
}
"""
LIMIT_S = 60


def run(command, **more):
    done = subprocess.run([str(c) for c in command], text=True, capture_output=True, timeout=LIMIT_S, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def lib(prefix):
    """Where the libraries went: lib, lib64 or lib/<machine>."""
    return next(prefix.rglob("tutti.pc")).parent.parent


def flags(prefix, package, static):
    env = dict(os.environ, PKG_CONFIG_PATH=str(lib(prefix) / "pkgconfig"))
    return run(["pkg-config", "--cflags", "--libs", *(["--static"] if static else []), package], env=env).split()


def compile_program(cc, prefix, package, text, out, static):
    words = flags(prefix, package, static)
    if static:
        words = ["-l:libtutti.a" if w == "-ltutti" else w for w in words] + ["-lm"]
    source = out.with_suffix(".c")
    source.write_text(text)
    run([cc, "-std=c11", source, "-o", out, *words])


def run_ranks(prefix, program, n):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("RANK", "WORLD_", "MASTER_", "TUTTI_"))}
    env["LD_LIBRARY_PATH"] = str(lib(prefix))
    launcher = prefix / "bin/tutti"
    if launcher.exists():
        return run([launcher, "run", "--standalone", f"--nproc-per-node={n}", program], env=env)
    port, port_lock = take_port()
    env.update(WORLD_SIZE=str(n), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    ranks = [subprocess.Popen([program], env=dict(env, RANK=str(r)), text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) for r in range(n)]
    try:
        said = [r.communicate(timeout=LIMIT_S)[0] for r in ranks]
    finally:
        for r in ranks:
            r.kill()
        port_lock.close()
    if any(r.returncode for r in ranks):
        sys.exit("a rank failed:\n" + "".join(said))
    return "".join(said)


def compile_examples(root, cc, prefix, scratch):
    """By their own lines, beside each other, as a reader would."""
    place = scratch / "examples"
    place.mkdir()
    for source in [*(root / "examples").glob("*.c"), *(root / "examples").glob("*.h")]:
        shutil.copy(source, place)
    env = dict(os.environ, PKG_CONFIG_PATH=str(lib(prefix) / "pkgconfig"))
    for source in sorted(place.glob("[0-9]*.c")):
        line = re.search(r"^ \*     cc (.*)$", source.read_text(), re.M)
        if line is None:
            sys.exit(f"{source.name}: no line says how it is compiled")
        run(["sh", "-c", f"{cc} {line.group(1)}"], env=env, cwd=place)


def check_targets(root, build):
    """`make install` builds, into a folder where nothing else was built, all that is installed from there."""
    if not (build / "build.ninja").exists():
        return
    line = re.search(r"^\tcmake --build build/install .* --target (.*)$", (root / "Makefile").read_text(), re.M)
    made = set(run(["ninja", "-C", build, "-t", "commands", *line.group(1).split()]).split())
    kinds = "SHARED_LIBRARY|STATIC_LIBRARY|EXECUTABLE|MODULE"
    for script in build.rglob("cmake_install.cmake"):
        for path in re.findall(rf'file\(INSTALL DESTINATION "[^"]*" TYPE (?:{kinds}) FILES "([^"]+)"', script.read_text()):
            if str(pathlib.Path(path).relative_to(build)) not in made:
                sys.exit(f"{path} is installed, and no target of `make install` makes it\n"
                         "  next: add_dependencies(tutti_plugins ...), or another --target in the Makefile")


def main():
    args = argparse.ArgumentParser()
    for name in ("--root", "--build"):
        args.add_argument(name, type=pathlib.Path, required=True)
    args.add_argument("--cmake", default="cmake")
    args.add_argument("--cc", default="cc")
    args = args.parse_args()

    program = re.search(r"^```c\n(.*?)^```", (args.root / "README.md").read_text(), re.S | re.M).group(1)
    check_targets(args.root, args.build)
    with tempfile.TemporaryDirectory() as scratch:
        prefix = pathlib.Path(scratch) / "prefix"
        run([args.cmake, "--install", args.build, "--prefix", prefix])
        for static in (False, True):
            out = pathlib.Path(scratch) / ("sum_static" if static else "sum")
            compile_program(args.cc, prefix, "tutti", program, out, static)
            said = run_ranks(prefix, out, 2)
            lines = sorted(re.findall(r"rank \d of 2: [\d ]+", said))
            if lines != ["rank 0 of 2: 2 4 6", "rank 1 of 2: 2 4 6"]:
                sys.exit(f"the README's program said:\n{said}")
        out = pathlib.Path(scratch) / "train"
        compile_program(args.cc, prefix, "tutti-train", TRAIN, out, False)
        run([out], env=dict(os.environ, LD_LIBRARY_PATH=str(lib(prefix))))
        compile_examples(args.root, args.cc, prefix, pathlib.Path(scratch))
    print("install: shared, static and train programs compile and run, and the examples by their lines")


if __name__ == "__main__":
    main()
