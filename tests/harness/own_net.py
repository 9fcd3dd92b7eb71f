# SPDX-License-Identifier: BSD-3-Clause
"""What tests in Python have of the network for themselves: a port, as ranks of the harness have (scratch.c), or all of it."""
import os
import random
import shutil
import socket
import subprocess
import sys

ALONE = "TEST_HAS_OWN_NET"  # in the environment of a program that has begun again


def take_port():
    """A port that the kernel hands out to nobody, and what keeps other tests from it while it is open."""
    while True:
        port, lock = random.randrange(20000, 29500), socket.socket(socket.AF_UNIX)
        try:
            lock.bind(f"\0tutti-test-port-{port}")
            with socket.socket() as probe:
                probe.bind(("", port))
            return port, lock
        except OSError:
            lock.close()


def go_alone():
    """Begin this program again in a network of its own, which has loopback and nothing else, if there may be one."""
    own = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if ALONE in os.environ or shutil.which("unshare") is None:
        return
    if subprocess.run([*own, "true"], capture_output=True, check=False).returncode != 0:
        return
    sys.stdout.flush()
    os.execvpe(own[0], [*own, sys.executable, "-B", *sys.argv], {**os.environ, ALONE: "1"})
