#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""compressed: sums that send less, beside dense ones, on two hosts with links of several rates, and inside this host.

Why     They are for slow links. How slow a link has to be, and what is lost, is told by the same program on all of them.
How     Hosts and links are those of links.py; a rank on each, pinned to a core of its own. compressed.c measures, and says what
        its rows are; the file gets them as they come, and beside it what they were measured on.

usage: compressed.py --bin build/release/bin [--out rows.tsv] [--only 1G,10G,unshaped,tcp,shm] [--numbers N] [--rounds N]
"""
import argparse
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

HEADER = ("link ranks row dtype data numbers us us_10 us_90 rounds bits share nmse largest").split()
LINKS = {"1G": "1", "10G": "10", "unshaped": "0"}
HERE = pathlib.Path(__file__).resolve().parent
LIMIT_S = 85


def between(label, command):
    """Two ranks on two hosts; rank r is host r."""
    with tempfile.TemporaryDirectory() as private:
        secret = pathlib.Path(private, "secret")
        secret.write_text(os.urandom(32).hex())
        secret.chmod(0o600)
        env = {**os.environ, "WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_PORT": "29577",
               "TUTTI_SECRET_FILE": str(secret)}
        rank = "RANK=$HOST MASTER_ADDR=$HOST0_ADDR exec taskset -c $HOST \"$0\" \"$@\""
        done = subprocess.run([sys.executable, "-B", str(HERE / "links.py"), "--hosts", "2", "--gbit", LINKS[label],
                               "sh", "-c", rank, *command], env=env, capture_output=True, text=True, timeout=LIMIT_S)
    return done


def inside(label, command, tutti):
    """Two ranks on this host."""
    env = {**os.environ, "TUTTI_TRANSPORT": "tcp" if label == "tcp" else "auto"}
    return subprocess.run([tutti, "run", "--standalone", "--nproc-per-node=2", "sh", "-c",
                           "exec taskset -c $LOCAL_RANK \"$0\" \"$@\"", *command],
                          env=env, capture_output=True, text=True, timeout=LIMIT_S)


def environment(bin_dir):
    commit = subprocess.run(["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    model = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    return (f"kernel\t{platform.release()}\ncpu\t{model[0] if model else platform.machine()}\ncores\t{os.cpu_count()}\n"
            f"commit\t{commit.stdout.strip()}\nload\t{os.getloadavg()[0]:.2f}\nbuild\t{bin_dir.parent.name}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, help="where rows are kept; else they are only printed")
    parser.add_argument("--only", default="1G,10G,unshaped,tcp,shm")
    parser.add_argument("--numbers", type=int, default=2 << 20)
    parser.add_argument("--rounds", type=int, default=11)
    args = parser.parse_args()
    program, failed = str((args.bin / "compressed").resolve()), False
    if args.out and not args.out.exists():
        args.out.write_text("\t".join(HEADER) + "\n")
        pathlib.Path(f"{args.out}.env").write_text(environment(args.bin.resolve()))
    for label in args.only.split(","):
        command = [program, label, str(args.numbers), str(args.rounds)]
        done = between(label, command) if label in LINKS else inside(label, command, str(args.bin / "tutti"))
        rows = [line.partition("]:")[2] or line for line in done.stdout.splitlines() if line.count("\t") == len(HEADER) - 1]
        if args.out:
            with args.out.open("a") as out:
                out.writelines(f"{row}\n" for row in rows)
        print("\n".join(rows), flush=True)
        if done.returncode != 0 or not rows:
            print(f"{label}: ended with {done.returncode}\n{done.stdout}{done.stderr}", file=sys.stderr)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
