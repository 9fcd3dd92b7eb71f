#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""two_links: two hosts that are joined twice, with one of the links named and with both.

Why     Whether interfaces that are named one by one (TUTTI_SOCKET_IFNAME) carry twice as much is told by the same program on
        the same network, once with each setting.
How     Hosts, shapers and switches are those of links.py; a second pair of devices, "tt1", 10.78.0.(i+1), leads to a switch
        of its own. A rank on each host, pinned to a core of its own; two_links.c measures, and says what its rows are. In a
        round each setting has its turn, each time from another one on.

usage: two_links.py --bin build/release/bin [--out rows.tsv] [--gbit 1] [--sizes 1048576,16777216] [--ms 1500] [--rounds 5]
"""
import argparse
import collections
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

import links

HEADER = "label round ranks bytes under_way calls us tt0 tt1".split()
SETTINGS = {"one": "=tt0", "both": "=tt0,=tt1"}
SECOND, HERE = "tt1", pathlib.Path(__file__).resolve().parent
LIMIT_S, PORT = 60, 29577


class Joined(links.Network):
    """Two hosts with two links."""

    def _join_by_switch(self):
        super()._join_by_switch()
        self.switch.ip("link add br1 type bridge", "link set br1 up")
        for number, host in enumerate(self.hosts):
            self.switch.ip(f"link add r{number} mtu {links.MTU} type veth peer name {SECOND} mtu {links.MTU} netns {host.path()}",
                           f"link set r{number} master br1", f"link set r{number} up")
            host.ip(f"link set {SECOND} up", f"addr add 10.78.0.{number + 1}/24 dev {SECOND}")
            self._shape(host, SECOND)
            self._shape(self.switch, f"r{number}")
        for number, host in enumerate(self.hosts):
            self._wait_until_up(host, SECOND)
            self._wait_until_up(self.switch, f"r{number}")


def run(network, program, label, number, args, port):
    """One rank on each host; the rows of rank 0."""
    with tempfile.TemporaryDirectory() as private:
        secret = pathlib.Path(private, "secret")
        secret.write_text(os.urandom(32).hex())
        secret.chmod(0o600)
        ranks = []
        try:
            for rank in range(2):
                env = {**os.environ, "WORLD_SIZE": "2", "RANK": str(rank), "LOCAL_RANK": "0", "MASTER_ADDR": links.address(0),
                       "MASTER_PORT": str(port), "TUTTI_SECRET_FILE": str(secret), "TUTTI_SOCKET_IFNAME": SETTINGS[label]}
                words = ["taskset", "-c", rank % os.cpu_count(), program, label, number, args.ms, *args.sizes.split(",")]
                ranks.append(network.popen(rank, [str(w) for w in words], env=env, stdout=subprocess.PIPE, text=True))
            said = [rank.communicate(timeout=LIMIT_S)[0] for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
                rank.wait()
    if any(rank.returncode != 0 for rank in ranks):
        raise RuntimeError(f"{label}: ranks ended with {[rank.returncode for rank in ranks]}")
    return [line.split("\t") for line in said[0].splitlines() if line.count("\t") == len(HEADER) - 1]


def environment(network, args):
    commit = subprocess.run(["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    model = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo", encoding="ascii") if line.startswith("model name")]
    facts = {"kernel": platform.release(), "cpu": model[0] if model else platform.machine(), "cores": os.cpu_count(),
             "commit": commit.stdout.strip(), "load": f"{os.getloadavg()[0]:.2f}", "build": args.bin.resolve().parent.name,
             "links": "two of these between the two hosts", **network.facts()}
    return "".join(f"{name}\t{value}\n" for name, value in facts.items())


def say(rows):
    """Medians over rounds, and of the ratios in each."""
    us = collections.defaultdict(dict)
    for row in rows:
        found = dict(zip(HEADER, row))
        us[found["bytes"], found["under_way"]].setdefault(found["round"], {})[found["label"]] = float(found["us"])
    for (size, ways), rounds in us.items():
        whole = [r for r in rounds.values() if len(r) == len(SETTINGS)]
        times = ", ".join(f"{label} {statistics.median(r[label] for r in whole):,.0f} us" for label in SETTINGS)
        ratios = sorted(r["one"] / r["both"] for r in whole)
        print(f"all_reduce of {int(size):,} bytes, {ways} under way: {times}; both is {statistics.median(ratios):.2f} times as fast "
              f"({ratios[0]:.2f} to {ratios[-1]:.2f})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, help="where rows are kept; else they are only printed")
    parser.add_argument("--gbit", type=float, default=1)
    parser.add_argument("--sizes", default=f"{1 << 20},{16 << 20}")
    parser.add_argument("--ms", type=float, default=1500, help="of each size and number of calls under way")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    program, rows, port = (args.bin / "two_links").resolve(), [], PORT
    try:
        with Joined(links.Link(2, 1, args.gbit)) as network:
            if args.out and not args.out.exists():
                args.out.write_text("\t".join(HEADER) + "\n")
                pathlib.Path(f"{args.out}.env").write_text(environment(network, args))
            for number in range(args.rounds):
                for label in sorted(SETTINGS, reverse=number % 2 == 1):
                    port += 1
                    found = run(network, program, label, number, args, port)
                    rows += found
                    if args.out:
                        with args.out.open("a") as out:
                            out.writelines("\t".join(row) + "\n" for row in found)
            print(", ".join(f"{name} {n}" for name, n in network.lost().items()))
    except links.Refused as refused:
        print(f"two_links: {refused}", file=sys.stderr)
        return 77
    say(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
