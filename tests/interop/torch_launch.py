#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""torch-launch: programs without Python in them, started by torchrun, and on a TCPStore that Python serves.

Checks  torchrun starts two processes of an example, which find each other and compute together, with one
        warning about the store; it starts the tutorial's training, whose parameters come out equal; and on a store of this program, both sides see each other's keys, the
        world's secret is in the store and 32 bytes long, and what is counted comes out right.
Skips   (77) where there is no PyTorch.

usage: torch_launch.py --example FILE --tutti FILE [--mnist FILE --make-digits FILE]
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import torch.distributed as dist
except ImportError:
    import torch_python
    python = str(torch_python.find())
    sys.stdout.flush()
    os.execv(python, [python, "-B", *sys.argv])

LIMIT = 120


def torchrun(*command):
    program = pathlib.Path(sys.executable).with_name("torchrun")
    ran = subprocess.run([program, "--nproc-per-node", "2", "--no-python", *command], capture_output=True, text=True, timeout=LIMIT,
                         check=False)
    assert ran.returncode == 0, ran.stderr
    return ran


def check_torchrun(example):
    ran = torchrun(example)
    for rank in (0, 1):
        assert f"rank {rank} has data 2" in ran.stdout, ran.stdout + ran.stderr
    assert ran.stderr.count("asks nobody for one") == 1, ran.stderr


def check_tutorial(mnist, make_digits):
    """One epoch of a few digits; what it says is shown."""
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder) / "digits"
        subprocess.run([make_digits, data, "--train", "512", "--test", "128"], check=True, timeout=LIMIT, stdout=subprocess.DEVNULL)
        ran = torchrun(mnist, "--data", data, "--epochs", "1")
    print("".join(f"torchrun mnist | {line}\n" for line in (ran.stdout + ran.stderr).splitlines()), end="")
    assert "parameters are bitwise equal on all ranks (2)" in ran.stdout, ran.stdout + ran.stderr
    assert "test accuracy" in ran.stdout and ran.stderr.count("asks nobody for one") == 1, ran.stdout + ran.stderr


def run_ranks(example, port):
    base = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2",
            "TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "3"}
    ranks = [subprocess.Popen([example], env={**base, "RANK": str(r)}, stdout=subprocess.PIPE, text=True)
             for r in (0, 1)]
    for process in ranks:
        out, _ = process.communicate(timeout=LIMIT)
        assert process.returncode == 0 and "has data 2" in out, out


def check_world(store, example):
    run_ranks(example, store.port)
    secrets = [key for key in store.list_keys() if key.endswith("/secret")]
    assert len(secrets) == 1 and secrets[0].startswith("/worker/attempt_3/"), store.list_keys()
    assert len(store.get(secrets[0])) == 32
    run_ranks(example, store.port)  # another world: another secret
    again = [key for key in store.list_keys() if key.endswith("/secret")]
    assert len(again) == 2 and len({store.get(key) for key in again}) == 2


def check_words(store, tutti):
    def word(*words):
        ran = subprocess.run([tutti, "store", "--store", f"torch-tcp://127.0.0.1:{store.port}", *words],
                             capture_output=True, text=True, timeout=LIMIT, check=False)
        return ran.returncode, ran.stdout

    store.set("from python", "1")
    assert word("get", "from python") == (0, "1")
    assert word("set", "from c", "2") == (0, "")
    assert store.get("from c") == b"2"
    assert word("add", "sum", "40") == (0, "40\n") and store.add("sum", 2) == 42
    assert word("push", "q", "first")[0] == 0 and store.queue_pop("q") == b"first"
    store.queue_push("q", "second")
    assert word("pop", "q") == (0, "second")
    assert word("--timeout", "0.2", "wait", "never")[0] == 3
    assert "from c" in word("keys")[1].splitlines()
    waiter = subprocess.Popen([tutti, "store", "--store", f"torch-tcp://127.0.0.1:{store.port}", "get", "later"],
                              stdout=subprocess.PIPE, text=True)
    store.set("later", "now")
    assert waiter.communicate(timeout=LIMIT)[0] == "now"


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--example", required=True)
    args.add_argument("--tutti", required=True)
    args.add_argument("--mnist")
    args.add_argument("--make-digits")
    args = args.parse_args()
    check_torchrun(args.example)
    if args.mnist is not None:
        check_tutorial(args.mnist, args.make_digits)
    store = dist.TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)
    check_world(store, args.example)
    check_words(store, args.tutti)
    print("torch-launch: torchrun, a world and single calls on PyTorch's store")


if __name__ == "__main__":
    main()
