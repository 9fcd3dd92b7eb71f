# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of ranks under `tutti run`, over the stand-in: what nccl_test.py and device_test.py share."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

LIMIT_S = 280  # of all jobs of a case: CTest has 300
OF_A_JOB = ("RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "TORCHELASTIC_", "TUTTI_", "FAKE_")


class Job:
    def __init__(self, options, program):
        self.options = options
        self.program = program
        self.until = time.monotonic() + LIMIT_S
        self.bin = pathlib.Path(options.bin)
        self.keep = {k: v for k, v in os.environ.items() if not k.startswith(OF_A_JOB) or k.startswith("TUTTI_TEST_")}

    def environment(self, **extra):
        env = dict(self.keep)
        env.update(TUTTI_PLUGIN_PATH=self.options.plugins, TUTTI_CUDART_LIBRARY=self.options.cudart)
        if "nccl" in self.options:
            env.update(TUTTI_NCCL_LIBRARY=self.options.nccl)
        env.update(extra)  # None: not set
        return {name: value for name, value in env.items() if value is not None}

    def run(self, command, **extra):
        """What it said. One that ends too late, or badly, ends this."""
        process = subprocess.Popen([str(word) for word in command], env=self.environment(**extra), text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            said = process.communicate(timeout=max(1, self.until - time.monotonic()))[0]
        except subprocess.TimeoutExpired:
            process.terminate()  # the launcher, asked like this, ends its ranks
            sys.exit("%s\nhas not ended within %d s of the case's beginning; it said:\n%s" % (command, LIMIT_S, process.communicate()[0]))
        if process.returncode != 0:
            sys.exit("%s\nended with %d; it said:\n%s" % (command, process.returncode, said))
        return said

    def ranks(self, n, case, **extra):
        with tempfile.TemporaryDirectory() as scratch:
            said = self.run([self.bin / "tutti", "run", "--standalone", "--nproc-per-node=%d" % n, self.bin / self.program, case,
                             scratch + "/aside"], **extra)
        for rank in range(n):
            if "rank %d of %d: fine" % (rank, n) not in said:
                sys.exit("rank %d of %d has not said that it is fine:\n%s" % (rank, n, said))
        return said


def wrong_numbers(said):
    found = re.findall(r"rank \d+: (\d+) of \d+ numbers are wrong", said)
    if not found:
        sys.exit("nobody said how many numbers are wrong:\n" + said)
    return [int(n) for n in found]
