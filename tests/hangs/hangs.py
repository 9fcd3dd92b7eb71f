#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""hangs: seven jobs that hang, and what `tutti doctor hang` says of each.

Each way of stage.c is started as four processes without a launcher, as a scheduler would. When all of them stand where they
hang, the doctor looks. Its words have to name the rank behind it, within LIMIT_S.

usage: hangs.py --bin DIR [--write docs/hangs.md]
--write makes the page; numbers of processes, the host's name and times are left as they came.
"""
import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
from own_net import take_port  # noqa: E402

LIMIT_S = 5.0
STARTED_S = 60
RANKS = 4

# way, title, what it is, regular expressions that the doctor's words match
WAYS = [
    ("dead", "A rank is dead",
     "Rank 2 is killed. The others are told, as the error says, but the program has no plan for that and waits for ever.",
     [r"rank 2 \(pid \d+, \S+\) is dead", r"its last operation: all_reduce #1 \(sum, 1000 f32\)", r"next: see its last lines",
      r"rank \d was told \S+ m?s ago", r"rank 2 \(host '\S+', pid \d+\) is gone"]),
    ("stopped", "A rank is stopped",
     "Somebody has stopped rank 1 with a signal: a terminal, a batch system that wants the node, a hand that slipped.",
     [r"rank 1 \(pid \d+, \S+\) is stopped by a signal", r"ranks 0, 2, 3 wait for it, rank \d since \S+ m?s in all_reduce #2",
      r"next: kill -CONT \d+"]),
    ("late", "A rank is late",
     "Rank 3 has something else to do before the operation in which the others wait for it.",
     [r"rank 3 \(pid \d+, \S+\) has not come", r"ranks 0-2 wait for it, rank \d since \S+ m?s in all_reduce #2",
      r"it sleeps in \S*nanosleep", r"its last operation: all_reduce #1", r"next: see where it is: gdb -p \d+"]),
    ("different", "Ranks call different operations",
     "Ranks 0 and 1 add up over two groups, each in an order of its own, in asynchronous calls. (Different calls in one group, and "
     "groups in blocking calls in different orders, are an error at once, `TUTTI_E_MISMATCH`, and no hang.)",
     [r"ranks 0, 1 wait for each other", r"rank 0 \(pid \d+, \S+\) waits for rank 1, since \S+ m?s, in all_reduce #1 .* on group 'model'",
      r"rank 1 \(pid \d+, \S+\) waits for rank 0, since \S+ m?s, in all_reduce #1 .* on group 'metrics'",
      r"and ranks 2, 3 with them", r"next: all ranks have to call operations of several groups in one order"]),
    ("send", "A send is blocked",
     "Rank 1 waits for a file, and receives then; rank 0 sends 16 MiB, and makes the file then. What is small is on its way when "
     "the send returns; this is not.",
     [r"rank 1 \(pid \d+, \S+\) has not come", r"ranks 0, 2, 3 wait for it, rank 0 since \S+ m?s in send to rank 1, tag 7",
      r"it sleeps in \S*nanosleep", r"next: rank 1 has to post the receive: recv from rank 0, tag 7; or rank 0 sends with tutti_isend"]),
    ("grow", "A rank does not come to let a newcomer in",
     "Ranks 0 to 2 are in `tutti_grow_group`, and rank 3 does not call it. What such a call is made of is not told of: nobody has "
     "called that.",
     [r"rank 3 \(pid \d+, \S+\) has not come", r"ranks 0-2 wait for it, rank \d since \S+ m?s in grow_group \(1 newcomer\) on group '0'",
      r"it sleeps in \S*nanosleep", r"its last operation: all_reduce #1 ", r"      0 .* in grow_group \(1 newcomer\)"]),
    ("shrink", "A rank does not come when others go on without a dead one",
     "Rank 1 is killed. Ranks 0 and 2 go on without it, `tutti_shrink_group`, and rank 3 does not call that.",
     [r"rank 3 \(pid \d+, \S+\) has not come", r"ranks 0, 2 wait for it, rank \d since \S+ m?s in shrink_group \(without rank 1\) on group '0'",
      r"rank 1 \(pid \d+, \S+\) is dead\n  nobody waits for it", r"its last operation, all_reduce #2 .* failed \S+ m?s ago"]),
]

# How the first line begins.
CULPRITS = {"dead": "rank 2 ", "stopped": "rank 1 ", "late": "rank 3 ", "different": "ranks 0, 1 ", "send": "rank 1 ", "grow": "rank 3 ", "shrink": "rank 3 "}

# After a death, in the world of those that are left.
REGROUPED = [r"world 2: 3 ranks, 3 read", r"rank 2 \(pid \d+, [^ ]+, rank 3 at first\) has not come\n  ranks 0, 1 wait for it",
             r"it sleeps in \S*nanosleep", r"not in it:\n  rank 1 of world 1 \(pid \d+, \S+\) is dead"]


class Job:
    """Four ranks of one way; whoever leaves the block ends them."""

    def __init__(self, bin_dir, way, **more):
        self.name = f"hang-{way}-{os.getpid()}"
        self.out = tempfile.TemporaryFile("w+")
        self.ranks = []
        port, self.port_lock = take_port()
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("TUTTI_", "TORCH", "PET_", "SLURM", "OMPI", "PMI"))}
        common = {**keep, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(RANKS),
                  "LOCAL_WORLD_SIZE": str(RANKS), "TORCHELASTIC_RUN_ID": self.name, "TUTTI_TIMEOUT_MS": "600000",
                  "TUTTI_TEST_SIGN": f"/nowhere/{self.name}", **more}
        for rank in range(RANKS):
            self.ranks.append(subprocess.Popen([str(bin_dir / "stage"), way], stdout=self.out, stderr=self.out,
                                               env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)}))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for rank in self.ranks:
            if rank.poll() is None:
                rank.send_signal(signal.SIGKILL)
            rank.wait()
        self.port_lock.close()

    def words(self):
        self.out.seek(0)
        return self.out.read()

    def wait_for(self, words, n):
        end = time.monotonic() + STARTED_S
        while self.words().count(words) < n:
            if time.monotonic() > end:
                sys.exit(f"hangs: {self.name}: {n} times '{words}' did not come; the ranks said:\n{self.words()}")
            time.sleep(0.05)


def settle(command, rules, end):
    """Look again until the words are there: ranks go from saying that they are here to where they hang."""
    while True:
        begin = time.monotonic()
        run = subprocess.run(command, text=True, capture_output=True, timeout=60)
        took = time.monotonic() - begin
        missing = [rule for rule in rules if not re.search(rule, run.stdout)]
        if not missing or time.monotonic() > end:
            return run, took, missing


def check_trace(bin_dir, job):
    """What `tutti trace` makes of the same job: every rank is in it."""
    run = subprocess.run([str(bin_dir / "tutti"), "trace", "--job", job, "--out", "-"], text=True, capture_output=True, timeout=60)
    if run.returncode != 0:
        return [f"trace: {run.stderr}"]
    ranks = {event["pid"] for event in json.loads(run.stdout)["traceEvents"] if event["ph"] == "X"}
    return [] if ranks == set(range(RANKS)) else [f"trace: only ranks {ranks} are in it"]


def look(bin_dir, way, rules):
    """(complaints, what the doctor said, the ranks' own words)"""
    with Job(bin_dir, way) as job:
        job.wait_for("is here", RANKS - (way == "shrink"))
        if way == "dead":
            job.wait_for("has no plan", RANKS - 1)
            job.ranks[2].wait()
        command = [str(bin_dir / "tutti"), "doctor", "hang", "--job", job.name, "--least", "0.2"]
        run, took, missing = settle(command, rules, time.monotonic() + STARTED_S)
        bad = [f"{way}: '{rule}' is not in:\n{run.stdout}{run.stderr}" for rule in missing]
        if run.returncode != 1:
            bad.append(f"{way}: exit code {run.returncode}: {run.stderr}")
        if not re.match(CULPRITS[way], run.stdout):
            bad.append(f"{way}: who is behind it is not in the first line: {run.stdout}")
        if took > LIMIT_S:
            bad.append(f"{way}: took {took:.1f} s")
        bad += check_trace(bin_dir, job.name)
        print(f"hangs: {way}: {took:.2f} s, {len(bad)} complaints", flush=True)
        return bad, run.stdout, took


def look_at_well(bin_dir):
    """Of a job that goes on nothing is said, however often one looks."""
    bad = []
    with Job(bin_dir, "well") as job:
        job.wait_for("is here", RANKS)
        for _ in range(5):
            run = subprocess.run([str(bin_dir / "tutti"), "doctor", "hang", "--job", job.name, "--least", "10"], text=True,
                                 capture_output=True, timeout=60)
            if run.returncode != 0 or "nobody waits in an operation" not in run.stdout:
                bad.append(f"well: exit code {run.returncode}: {run.stdout}{run.stderr}")
    return bad


def look_at_launched(bin_dir, way, rules, *options):
    """A job of `tutti run` is found by its name, too."""
    name = f"hang-launched-{way}-{os.getpid()}"
    job = subprocess.Popen([str(bin_dir / "tutti"), "run", "--nproc-per-node", str(RANKS), "--rdzv-id", name, "--shutdown-timeout", "1",
                            *options, str(bin_dir / "stage"), way], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        command = [str(bin_dir / "tutti"), "doctor", "hang", "--job", name, "--least", "0.2"]
        run, _, missing = settle(command, rules, time.monotonic() + STARTED_S)
        bad = [f"launched: {way}: '{rule}' is not in:\n{run.stdout}{run.stderr}" for rule in missing]
        return bad + look_later(bin_dir, name, rules) if not bad else bad
    finally:
        job.terminate()
        job.wait()


def look_later(bin_dir, name, rules):
    """The same from files, which say what was, not what is."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([str(bin_dir / "tutti"), "doctor", "hang", "--job", name, "--save", folder], stdout=subprocess.DEVNULL, check=False,
                       timeout=60)
        command = [str(bin_dir / "tutti"), "doctor", "hang", "--least", "0.2", "--dumps", *map(str, pathlib.Path(folder).glob("*.rec"))]
        run = subprocess.run(command, text=True, capture_output=True, timeout=60, check=False)
        return [f"from files: '{rule}' is not in:\n{run.stdout}{run.stderr}" for rule in rules
                if "nanosleep" not in rule and not re.search(rule, run.stdout)]


def look_at_unrecorded(bin_dir):
    """Where nothing is recorded, it is said why."""
    rule = r"has 4 processes here \(pid [\d, ]+\), and no recorder: they were started with TUTTI_RECORDER=0"
    with Job(bin_dir, "well", TUTTI_RECORDER="0") as job:
        job.wait_for("is here", RANKS)
        run = subprocess.run([str(bin_dir / "tutti"), "doctor", "hang", "--job", job.name], text=True, capture_output=True, timeout=60,
                             check=False)
        return [] if run.returncode == 2 and re.search(rule, run.stderr) else [f"unrecorded: {run.returncode}: {run.stdout}{run.stderr}"]


def look_at_named(bin_dir):
    """Of processes that were not named it is not said that they have not joined: they were not looked at."""
    rules = [r"rank 2 \(pid \d+\) runs, and was not among those named\n  ranks 0, 1 wait for it", r"next: name it, too: --pid ... \d+"]
    with Job(bin_dir, "late") as job:
        job.wait_for("is here", RANKS)
        command = [str(bin_dir / "tutti"), "doctor", "hang", "--least", "0.2", "--pid", *(str(r.pid) for r in job.ranks[:2])]
        run, _, missing = settle(command, rules, time.monotonic() + STARTED_S)
        bad = [f"named: '{rule}' is not in:\n{run.stdout}{run.stderr}" for rule in missing]
        return bad + [f"named: {run.stdout}"] if "has not joined" in run.stdout else bad


def look_before_joining(bin_dir):
    """Who was stopped before it had a recorder is not said to run."""
    rules = [r"rank 1 \(pid \d+\) is stopped by a signal\n  ranks 0, 2, 3 wait for it to join", r"next: kill -CONT \d+"]
    with Job(bin_dir, "before") as job:
        command = [str(bin_dir / "tutti"), "doctor", "hang", "--job", job.name]
        run, _, missing = settle(command, rules, time.monotonic() + STARTED_S)
        return [f"before joining: '{rule}' is not in:\n{run.stdout}{run.stderr}" for rule in missing]


# All members are in it, and it is for others to come.
NOBODY_COMES = [r"nobody is missing: all members are in it, and wait for newcomers", r"      3 .* in grow_group \(2 newcomers\) on group '0'"]

# Rank 3 comes to it when the others have given up.
CAME_LATE = [r"rank 3 \(pid \d+, \S+\) came too late\n  ranks 0[^\n]* wait for it, rank \d since \S+ m?s in grow_group \(1 newcomer\)",
             r"it came to grow_group \(1 newcomer\) on group '0' \S+ m?s after rank \d had given up", r"next: see what it did before that"]


def look_where_nobody_comes(bin_dir):
    with Job(bin_dir, "nobody-comes") as job:
        job.wait_for("is here", RANKS)
        command = [str(bin_dir / "tutti"), "doctor", "hang", "--job", job.name, "--least", "0.2"]
        run, _, missing = settle(command, NOBODY_COMES, time.monotonic() + STARTED_S)
        bad = [f"nobody comes: '{rule}' is not in:\n{run.stdout}{run.stderr}" for rule in missing]
        run = subprocess.run([str(bin_dir / "tutti"), "trace", "--job", job.name, "--out", "-"], text=True, capture_output=True, timeout=60,
                             check=False)
        spans = {event["pid"] for event in json.loads(run.stdout)["traceEvents"] if event["ph"] == "X" and event["name"] == "grow_group"}
        return bad if spans == set(range(RANKS)) else bad + [f"nobody comes: trace: grow_group is on ranks {spans} only"]


def look_at_files_of_the_late(bin_dir):
    """What ranks write when their time is up, each at its own moment. It is long enough to join in."""
    with tempfile.TemporaryDirectory() as folder:
        more = {"TUTTI_TRACE_FILE": f"{folder}/dump", "TUTTI_TIMEOUT_MS": "8000", "TUTTI_TEST_SIGN": f"{folder}/sign"}
        with Job(bin_dir, "came-late", **more) as job:
            job.wait_for("has given up", RANKS)
        command = [str(bin_dir / "tutti"), "doctor", "hang", "--least", "0.2", "--dumps", *map(str, pathlib.Path(folder).glob("dump*.rec"))]
        run = subprocess.run(command, text=True, capture_output=True, timeout=60, check=False)
        return [f"of the late: '{rule}' is not in:\n{run.stdout}{run.stderr}{job.words()}" for rule in CAME_LATE if not re.search(rule, run.stdout)]


HEAD = """# Jobs that hang

<!-- Made by tests/hangs/hangs.py --write, which starts these jobs and looks at them. -->

`tutti doctor hang` looks at a job that runs and says which rank is missing from what, what it does instead, and who waits for
it. It reads each process's flight recorder (`tutti/recorder.h`) and what the kernel tells of the process. Nothing is attached
to and nothing is stopped; a process that is dead or stopped can be read all the same.

```sh
tutti doctor hang                       # the one job of this host; several are listed
tutti doctor hang --job NAME            # one of them (TORCHELASTIC_RUN_ID, tutti run --rdzv-id)
tutti doctor hang --pid 4711 4712       # these processes
tutti doctor hang --save DIR            # on each host: what was read, a file for each rank
tutti doctor hang --dumps DIR/*.rec     # anywhere: the files of all hosts together
```

Exit code 0: nobody waits; 1: somebody does; 2: there is nothing to look at. `--json` is for programs. A rank of another host
"is not to be seen here": run it there, too, or bring its file. Files say when they were written: what hung then is told as of then.
Files of several jobs are told apart; of several files of one process the latest counts.
Where `TUTTI_TRACE_FILE` is set a rank that runs out of time, or loses a peer, leaves such a file by itself (`.rec`, beside the JSON).

The first line has who is behind it. After a death, when the others have gone on (`tutti_shrink_group`), ranks are those of the world
that is there now, "rank 2 (pid 4711, n1, rank 3 at first)", and those that are not in it any more are named below.

Seven hangs follow: what was done, and what the doctor said. The program is [stage.c](../tests/hangs/stage.c), four ranks of one
host; a test stages them and checks these words, and that each look takes less than 5 s.
"""


def page(said):
    text = HEAD
    for (way, title, what, _), (words, took) in zip(WAYS, said):
        text += f"\n## {title}\n\n{textwrap.fill(what, 118)}\n\n```console\n$ tutti doctor hang --job hang-{way} --least 0.2     # {took:.1f} s\n"
        text += re.sub(r"hang-(\w+)-\d+", r"hang-\1", words) + "```\n"
    return text


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--bin", type=pathlib.Path, required=True)
    args.add_argument("--write", type=pathlib.Path)
    args = args.parse_args()
    bad, said = [], []
    for way, _, _, rules in WAYS:
        more, words, took = look(args.bin, way, rules)
        bad += more
        said.append((words, took))
    bad += look_at_well(args.bin)
    bad += look_at_launched(args.bin, "late", next(rules for way, _, _, rules in WAYS if way == "late"))
    bad += look_at_launched(args.bin, "regrouped", REGROUPED, "--on-failure", "keep")
    bad += look_where_nobody_comes(args.bin)
    bad += look_at_files_of_the_late(args.bin)
    bad += look_at_unrecorded(args.bin)
    bad += look_at_named(args.bin)
    bad += look_before_joining(args.bin)
    for line in bad:
        print(line)
    if args.write and not bad:
        args.write.write_text(page(said))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
