#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run fuzzers, and add up what they did in executions.tsv.

    python3 tests/fuzz/run.py --seconds 60                       libFuzzer on each target, so long (make fuzz SECONDS=60)
    python3 tests/fuzz/run.py --seconds 60 --targets hello,idx   on some
    python3 tests/fuzz/run.py --goal 10000000 --minutes 30       by turns of 60 s, those that have fewer executions in the table
    python3 tests/fuzz/run.py --goal 10000000 --tool swift       the same without sanitizers, which is some ten times as fast
    python3 tests/fuzz/run.py --seconds 60 --tool afl            the same with AFL++
    python3 tests/fuzz/run.py --coverage                         which lines all that was collected reaches
    python3 tests/fuzz/run.py --coverage --seeds                 which lines the seeds of the tree reach

Programs are those of the presets fuzz, fuzz-swift, fuzz-afl and fuzz-coverage. What a fuzzer collects stays in build/fuzz-corpus/TARGET,
where the next run, and the other tool, begin with it. A finding is kept in build/fuzz-found/, and makes this fail: mend it, and
put the input into regressions/TARGET/.

A run may be ended at any time by SIGTERM or SIGINT: it ends its fuzzers, and what they did until then counts. The next one goes on
from the table.
"""
import argparse
import concurrent.futures
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build"
TABLE = HERE / "executions.tsv"  # or what --table says
COLUMNS = ["target", "tool", "commit", "cpu_seconds", "executions", "lines_of_files", "lines_reached_%"]
# Of where memory was taken three callers are remembered, and little of what was given back is kept: an input takes microseconds,
# and what it has given back is looked at within them. To see more of a finding, run it again without these two.
SWIFT = "malloc_context_size=3:quarantine_size_mb=16"
ENV = dict(os.environ, UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1", OMP_NUM_THREADS="1", TUTTI_LOG="error",
           ASAN_OPTIONS=f"allocator_may_return_null=1:detect_leaks=1:{SWIFT}", LSAN_OPTIONS=f"suppressions={ROOT}/tests/lsan.supp:print_suppressions=0")
INTERRUPTED = 72  # what libFuzzer says when it was told to end

stopping = threading.Event()
table_lock = threading.Lock()
running = []  # fuzzers; those of this list are told to end


def targets():
    rows = [line.split("\t") for line in (HERE / "targets.tsv").read_text().splitlines()[1:]]
    return {row[0]: row[3].split() for row in rows}


def longest_inputs():
    rows = [line.split("\t") for line in (HERE / "targets.tsv").read_text().splitlines()[1:]]
    return {row[0]: int(row[4]) for row in rows}


def stop(*_):
    stopping.set()
    for process in list(running):
        process.terminate()


def run_fuzzer(command, env):
    """(exit status, all it said, seconds of a processor). A signal to the group of this process is passed on once, by stop(): a second one would cut what is
    said of the first."""
    process = subprocess.Popen([str(word) for word in command], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace", start_new_session=True)
    running.append(process)
    if stopping.is_set():
        process.terminate()
    text = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    running.remove(process)
    return process.returncode, text, used.ru_utime + used.ru_stime


def commit():
    return subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip() or "-"


def read_table():
    rows = {}
    if TABLE.exists():
        for line in TABLE.read_text().splitlines()[1:]:
            row = dict(zip(COLUMNS, line.split("\t")))
            rows[row["target"], row["tool"]] = row
    return rows


def write_table(rows):
    order = {name: i for i, name in enumerate(targets())}
    lines = ["\t".join(COLUMNS)]
    lines += ["\t".join(row[c] for c in COLUMNS) for key, row in sorted(rows.items(), key=lambda item: (order[item[0][0]], item[0][1]))]
    part = TABLE.with_suffix(".part")
    part.write_text("\n".join(lines) + "\n")
    part.rename(TABLE)


def add(target, tool, cpu_seconds, executions):
    """Runs may go on side by side: one at a time changes the table."""
    (BUILD / "fuzz-found").mkdir(parents=True, exist_ok=True)
    with table_lock, open(BUILD / "fuzz-found" / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        rows = read_table()
        row = rows.setdefault((target, tool), {"target": target, "tool": tool, "cpu_seconds": "0", "executions": "0", "lines_of_files": "-",
                                               "lines_reached_%": "-"})
        row["commit"] = commit()
        row["cpu_seconds"] = f"{float(row['cpu_seconds']) + cpu_seconds:.1f}"
        row["executions"] = str(int(row["executions"]) + executions)
        write_table(rows)


def corpus_of(target):
    corpus = BUILD / "fuzz-corpus" / target
    corpus.mkdir(parents=True, exist_ok=True)
    return corpus


def inputs_of(target):
    return [str(folder) for folder in (HERE / "seeds" / target, HERE / "regressions" / target) if folder.is_dir()]


def run_libfuzzer(target, seconds, preset="fuzz"):
    found = BUILD / "fuzz-found"
    program = BUILD / preset / "bin" / f"fuzz_{target}"
    code, text, used = run_fuzzer([program, f"-max_total_time={seconds}", "-timeout=20", "-rss_limit_mb=2048", "-malloc_limit_mb=256", "-reload=0",
                                   "-entropic=0", f"-max_len={longest_inputs()[target]}", "-print_final_stats=1", "-verbosity=0",
                                   f"-artifact_prefix={found}/{target}-", corpus_of(target), *inputs_of(target)], ENV)
    done = re.search(r"stat::number_of_executed_units:\s*(\d+)", text)
    return used, int(done[1]) if done else 0, 0 if code == INTERRUPTED else code, text


def run_swift(target, seconds):
    """Sanitizers look at what it collects when the other one reads it: each new way through a parser is an input of its own."""
    return run_libfuzzer(target, seconds, "fuzz-swift")


def run_afl(target, seconds):
    program = BUILD / "fuzz-afl" / "bin" / f"fuzz_{target}"
    env = {name: value for name, value in ENV.items() if not name.endswith("SAN_OPTIONS")}  # it minds those, and has no sanitizer
    env.update(AFL_NO_UI="1", AFL_SKIP_CPUFREQ="1", AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES="1", AFL_NO_AFFINITY="1", AFL_BENCH_UNTIL_CRASH="1",
               AFL_NO_STARTUP_CALIBRATION="1")
    out = BUILD / "fuzz-afl-out" / target
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as seeds:
        for i, path in enumerate(p for folder in [*inputs_of(target), corpus_of(target)] for p in sorted(pathlib.Path(folder).iterdir())):
            shutil.copyfile(path, f"{seeds}/{i:06}")
        start = "-" if (out / "default" / "fuzzer_stats").exists() else seeds
        before = afl_executions(out)
        code, text, used = run_fuzzer(["afl-fuzz", "-i", start, "-o", out, "-V", str(seconds), "-t", "2000", "-m", "none", "--", program], env)
    crashes = [p for p in (out / "default" / "crashes").glob("id:*")]
    for path in (out / "default" / "queue").glob("id:*"):
        shutil.copyfile(path, corpus_of(target) / re.sub(r"\W", "_", path.name)[:80])
    for path in crashes:
        shutil.copyfile(path, BUILD / "fuzz-found" / f"{target}-afl-{path.name[:9].replace(':', '_')}")
    return used, afl_executions(out) - before, code or len(crashes), text


def afl_executions(out):
    stats = out / "default" / "fuzzer_stats"
    done = re.search(r"execs_done\s*:\s*(\d+)", stats.read_text()) if stats.exists() else None
    return int(done[1]) if done else 0


def turn(target, tool, seconds):
    """One fuzzer for so long. Whether there was no finding."""
    used, executions, code, text = {"libfuzzer": run_libfuzzer, "swift": run_swift, "afl": run_afl}[tool](target, seconds)
    add(target, tool, used, executions)
    print(f"{target}: {executions} executions, {executions / max(used, 0.001):.0f} a second of a processor{'' if code == 0 else ', and a finding'}", flush=True)
    if code != 0:
        print("\n".join(text.splitlines()[-60:]), file=sys.stderr)
    return code == 0


def those_below(names, tool, goal):
    """Those that have fewer executions in the table, fewest first."""
    rows = read_table()
    have = {name: int(rows[name, tool]["executions"]) if (name, tool) in rows else 0 for name in names}
    return sorted((name for name in names if have[name] < goal), key=have.get)


def round_of(names, tool, seconds, until, jobs):
    """Each once, so many side by side, none beyond the time. Those with a finding."""
    def one(name):
        left = until - time.monotonic()
        return name if not stopping.is_set() and left >= 1 and not turn(name, tool, int(min(seconds, left))) else None

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return [name for name in pool.map(one, names) if name]


def fuzz(names, args):
    """Each once; with a goal round after round, until all have come to it or time is up. Those with a finding have no turn more."""
    (BUILD / "fuzz-found").mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + (args.minutes * 60 if args.minutes else 1e9)
    if not args.goal:
        return round_of(names, args.tool, args.seconds, until, args.jobs)
    found = []
    while not stopping.is_set() and until - time.monotonic() >= 1:
        rest = [name for name in those_below(names, args.tool, args.goal) if name not in found]
        if not rest:
            break
        found += round_of(rest, args.tool, args.seconds, until, args.jobs)
    return found


def lines_of(profile, program, files):
    """(lines, those that were reached). Files are named as the compiler was told, with steps back in their paths."""
    text = subprocess.run(["llvm-cov", "export", "--summary-only", f"--instr-profile={profile}", program], capture_output=True, text=True,
                          check=True).stdout
    lines = {os.path.normpath(file["filename"]): file["summary"]["lines"] for file in json.loads(text)["data"][0]["files"]}
    ours = [lines[str(ROOT / file)] for file in files]
    return sum(file["count"] for file in ours), sum(file["covered"] for file in ours)


def coverage(names, seeds_only):
    """The table has what was reached by all that was collected."""
    rows = read_table()
    for target in names:
        program = BUILD / "fuzz-coverage" / "bin" / f"fuzz_{target}"
        with tempfile.TemporaryDirectory() as folder:
            raw, profile = f"{folder}/raw", f"{folder}/profile"
            inputs = inputs_of(target) if seeds_only else [*inputs_of(target), corpus_of(target)]
            subprocess.run([program, "--mutations", "4000", *inputs], env=dict(ENV, LLVM_PROFILE_FILE=raw), check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            subprocess.run(["llvm-profdata", "merge", "-o", profile, raw], check=True)
            lines, reached = lines_of(profile, program, targets()[target])
        print(f"{target}: {reached} of {lines} lines, {100 * reached / lines:.1f} %", flush=True)
        for (name, _), row in rows.items():
            if name == target:
                row["lines_of_files"], row["lines_reached_%"] = str(lines), f"{100 * reached / lines:.1f}"
    if not seeds_only:
        write_table(rows)


def main():
    global TABLE
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="on each target (60)")
    parser.add_argument("--targets", help="some, with commas between; all")
    parser.add_argument("--tool", choices=["libfuzzer", "swift", "afl"], default="libfuzzer")
    parser.add_argument("--goal", type=int, default=0, help="go round until each has so many executions in the table")
    parser.add_argument("--minutes", type=float, default=0, help="of all together (no bound)")
    parser.add_argument("--jobs", type=int, default=1, help="fuzzers side by side (1)")
    parser.add_argument("--coverage", action="store_true")
    parser.add_argument("--seeds", action="store_true", help="with --coverage: of the seeds alone; the table stays")
    parser.add_argument("--table", type=pathlib.Path, default=TABLE, help="where it is added up (executions.tsv)")
    args = parser.parse_args()
    TABLE = args.table
    names = args.targets.split(",") if args.targets else list(targets())
    unknown = [name for name in names if name not in targets()]
    if unknown:
        sys.exit(f"there is no target '{unknown[0]}'; targets.tsv has them")
    if args.coverage:
        coverage(names, args.seeds)
        return 0
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    return 1 if fuzz(names, args) else 0


if __name__ == "__main__":
    sys.exit(main())
