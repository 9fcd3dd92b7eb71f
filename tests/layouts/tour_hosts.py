#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tour_hosts: the commands of docs/tour.md's section about several hosts, as they stand there, on two hosts.

Hosts are network namespaces joined by a veth pair, each with a name, a home folder and an /etc/hosts of its own; scp copies
from one folder to the other. All four ranks have to say what they should, and both launchers to end with 0.

usage: tour_hosts.py --page docs/tour.md --tutti TUTTI --program PROGRAM
"""
import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

SKIPPED = 77
LIMIT_S = 60
SECTION = re.compile(r"^## \d+\. Several hosts\n(.*?)^## ", re.S | re.M)
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.S | re.M)


class Host:
    """A process that keeps the namespaces of a host."""

    def __init__(self, name, folder):
        self.name = name
        self.home = folder / name
        self.home.mkdir()
        self.keeper = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "--uts", "sleep", "600"])

    def end(self):
        self.keeper.kill()
        self.keeper.wait()

    def start(self, script, env):
        command = ["nsenter", "--target", str(self.keeper.pid), "--net", "--mount", "--uts", "bash", "-euc", f"cd {self.home}\n{script}"]
        return subprocess.Popen(command, env={**env, "HOME": str(self.home)}, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                start_new_session=True)

    def run(self, script, env):
        process = self.start(script, env)
        words, _ = process.communicate(timeout=LIMIT_S)
        return process.returncode, words


def join(a, b, folder, env):
    """A cable between them, and names; words of what fails."""
    hosts = folder / "hosts"
    hosts.write_text("127.0.0.1 localhost\n10.78.0.1 n1\n10.78.0.2 n2\n")
    for host, other, number in ((a, b, 1), (b, a, 2)):
        cable = f"ip link add tt0 type veth peer name tt0 netns {other.keeper.pid}\n" if number == 1 else ""
        code, words = host.run(f"{cable}hostname {host.name}\nmount --bind {hosts} /etc/hosts\nip link set lo up\n"
                               f"ip addr add 10.78.0.{number}/24 dev tt0\nip link set tt0 up", env)
        if code != 0:
            return words
    return ""


def wait_for_namespaces(host):
    """unshare has not done it yet when it is started; its program's name tells."""
    while pathlib.Path(f"/proc/{host.keeper.pid}/comm").read_text().strip() != "sleep":
        if host.keeper.poll() is not None:
            return False
    return True


def follow(page, a, b, env):
    blocks = BLOCK.findall(SECTION.search(page).group(1))
    if len(blocks) != 3:
        return [f"the section has {len(blocks)} blocks, not 3"]
    code, words = a.run(f"scp() {{ cp -p \"$2\" {b.home}; }}\n{blocks[0]}", env)
    if code != 0:
        return [f"making the secret: {words}"]
    jobs = [b.start(blocks[2], env), a.start(blocks[1], env)]  # the second host first: the order does not matter
    bad, said = [], ""
    for job in jobs:
        try:
            words, _ = job.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            words, _ = job.communicate()
            bad.append("it did not end")
        said += words
        if job.returncode != 0:
            bad.append(f"exit code {job.returncode}")
    bad += [f"rank {rank} did not speak" for rank in range(4) if not re.search(rf"rank {rank} of 4", said)]
    return [*bad, said] if bad else []


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--page", type=pathlib.Path, required=True)
    args.add_argument("--tutti", type=pathlib.Path, required=True)
    args.add_argument("--program", type=pathlib.Path, required=True)
    args = args.parse_args()
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("TUTTI_", "TORCH", "PET_", "SLURM", "OMPI", "PMI"))}
    env = {**keep, "PATH": f"{args.tutti.parent}:{keep.get('PATH', '')}"}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        a, b = Host("n1", folder), Host("n2", folder)
        try:
            problem = "no namespaces" if not (wait_for_namespaces(a) and wait_for_namespaces(b)) else join(a, b, folder, env)
            if problem:
                print(f"tour_hosts: skipped: {problem}")
                return SKIPPED
            for host in (a, b):
                (host.home / "program").symlink_to(args.program)
            bad = follow(args.page.read_text(), a, b, env)
        finally:
            a.end()
            b.end()
    for line in bad:
        print(line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
