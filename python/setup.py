# SPDX-License-Identifier: BSD-3-Clause
"""Builds the shim against the PyTorch that runs this, and the libtutti that pkg-config finds.

    pip install --no-build-isolation ./python                           PKG_CONFIG_PATH=PREFIX/lib/pkgconfig in front, if
                                                                        libtutti is installed below a prefix of its own
"""
import os
import re
import subprocess
import sys

import torch
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

INCLUDED = ["backend.cpp", "collectives.cpp", "errors.cpp", "memory.cpp", "module.cpp", "operation.cpp", "recorder.cpp",
            "regroup.cpp", "store.cpp", "types.cpp", "work.cpp", "backend.h", "call.h", "errors.h", "memory.h", "operation.h",
            "recorder.h", "scope.h", "store.h", "types.h", "work.h"]


def pkg_config(*words):
    """What pkg-config says about libtutti."""
    try:
        return subprocess.run(["pkg-config", *words, "tutti"], check=True, capture_output=True, text=True).stdout.split()
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"libtutti is not found: {getattr(error, 'stderr', None) or error}\n"
                 "  next: make install PREFIX=..., then PKG_CONFIG_PATH=PREFIX/lib/pkgconfig in front of this")


def main():
    libdir = os.path.realpath(pkg_config("--variable=libdir")[0])  # told from where pkg-config's file is, with ".." in it
    shim = CppExtension(
        "tutti_torch._C",
        ["csrc/shim.cpp"],
        depends=[f"csrc/{name}" for name in INCLUDED],
        extra_compile_args=["-Wall", "-Wextra", "-Wno-unused-parameter", *pkg_config("--cflags")],
        extra_link_args=[*pkg_config("--libs"), f"-Wl,-rpath,{libdir}"])
    release = re.match(r"[\d.]*\d", torch.__version__).group()  # it can be loaded with this one only: pip says so to who changes it
    setup(packages=["tutti_torch"], install_requires=[f"torch == {release}"], ext_modules=[shim],
          cmdclass={"build_ext": BuildExtension})


if __name__ == "__main__":
    main()
