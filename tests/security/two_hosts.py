#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tcp:// between two hosts: with a secret, without one, with one on one of them, with two that differ, and with TUTTI_AUTH=none.

Goal    a job on two hosts works with a secret that both know, or where TUTTI_AUTH=none says on both that none is wanted, which warns.
        Else it does not begin, and each rank says why, and what to do.
Method  hosts are network namespaces, as in tests/layouts/tour_hosts.py; a rank on each joins by the URL of the first one's address.
        What each rank says is printed, as it stands.
Skips   (77) where there may be no namespaces.

usage: two_hosts.py --job build/dev/bin/url_job
"""
import argparse
import os
import pathlib
import secrets
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "layouts"))
from tour_hosts import LIMIT_S, Host, join, wait_for_namespaces  # noqa: E402

SKIPPED = 77
URL = "tcp://10.78.0.1:20000"
JOIN_MS = 50000  # of those that are to work
WAIT_MS = 8000  # of one who waits in vain: the other one has said by then why it does not come
WARNING = "TUTTI_AUTH"
NEEDED = "TUTTI_SECRET_FILE"

# What is set on each host, whether it works, and what each rank says.
CASES = [
    ("one secret", [{"TUTTI_SECRET_FILE": "secret"}] * 2, True, ["the sum is 3", "the sum is 3"]),
    ("no secret", [{}, {}], False, [NEEDED, NEEDED]),
    ("a secret on the first host only", [{"TUTTI_SECRET_FILE": "secret"}, {}], False, ["1 of 2", NEEDED]),
    ("another secret on the second host", [{"TUTTI_SECRET_FILE": "secret"}, {"TUTTI_SECRET_FILE": "other"}], False, ["1 of 2", "secret"]),
    ("TUTTI_AUTH=none on both", [{"TUTTI_AUTH": "none"}] * 2, True, [WARNING, WARNING]),
    ("TUTTI_AUTH=none on the second only", [{"TUTTI_SECRET_FILE": "secret"}, {"TUTTI_AUTH": "none"}], False, ["1 of 2", "secret"]),
]


def make_secret(host, name, digits):
    path = host.home / name
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(digits + "\n")


def start_rank(host, rank, program, settings, wait_ms, env):
    words = " ".join(f"{name}={value}" for name, value in settings.items())
    return host.start(f"exec env {words} {program} {URL} {rank} 2 {wait_ms}", env)


def run(case, hosts, program, env):
    """What differs from what was to be."""
    name, settings, works, wanted = case
    ranks = [start_rank(host, rank, program, settings[rank], JOIN_MS if works else WAIT_MS, env) for rank, host in enumerate(hosts)]
    bad = []
    print(f"---- {name}")
    for rank, process in enumerate(ranks):
        try:
            said, _ = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            said, _ = process.communicate()
            bad.append(f"{name}: rank {rank} did not end")
        print("".join(f"rank {rank} | {line}\n" for line in said.splitlines()), end="", flush=True)
        if (process.returncode == 0) != works:
            bad.append(f"{name}: rank {rank} ended with {process.returncode}")
        if wanted[rank] not in said:
            bad.append(f"{name}: rank {rank} does not say '{wanted[rank]}'")
        if works and said.count(WARNING) != (wanted[rank] == WARNING):
            bad.append(f"{name}: rank {rank} warns {said.count(WARNING)} times")
    return bad


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--job", required=True)
    args = args.parse_args()
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TUTTI_", "RANK", "WORLD_SIZE", "MASTER_", "SLURM", "OMPI", "PMI"))}
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        hosts = [Host("n1", folder), Host("n2", folder)]
        try:
            problem = "no namespaces" if not all(map(wait_for_namespaces, hosts)) else join(*hosts, folder, env)
            if problem:
                print(f"two_hosts: skipped: {problem}")
                return SKIPPED
            digits = secrets.token_hex(32)
            for host in hosts:
                make_secret(host, "secret", digits)
                make_secret(host, "other", secrets.token_hex(32))
            for case in CASES:
                bad += run(case, hosts, pathlib.Path(args.job).resolve(), env)
        finally:
            for host in hosts:
                host.end()
    print("\n".join(bad) or "each did and said what it should")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
