#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""torch-store: the conformance suite of all stores, on PyTorch's own TCPStore.

Method  torch_keeper.py, in the Python that has PyTorch, starts a fresh TCPStore for each test of the
        suite; the suite asks it through two pipes.
Skips   (77) where there is no PyTorch.

usage: torch_store.py --conformance FILE [--old]     --old: the server without libuv
"""
import argparse
import pathlib
import subprocess
import sys

import torch_python


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--conformance", required=True)
    args.add_argument("--old", action="store_true")
    args = args.parse_args()
    python = torch_python.find()
    keeper = pathlib.Path(__file__).with_name("torch_keeper.py")
    old = ["--old"] if args.old else []
    with subprocess.Popen([python, "-B", keeper, *old], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as torch:
        ask, answer = torch.stdin.fileno(), torch.stdout.fileno()
        suite = subprocess.run([args.conformance, "--torch", str(ask), str(answer)] +
                               (["old"] if args.old else []), pass_fds=(ask, answer), check=False)
        torch.stdin.close()
    sys.exit(suite.returncode)


if __name__ == "__main__":
    main()
