#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""net: tutti, PyTorch's gloo, Open MPI over TCP, and bare sockets between hosts, in one run.

How     As peers.py, whose rounds, rows and crews these are; but a place is a network (links.py): hosts that are namespaces, with
        one or more ranks each, on links of a known rate, or with delay and loss. Ranks of a host follow each other. A row's
        label is the network's name, so that nothing is ever compared across networks.
        Beside each small cell, and once in a round for what the link carries, a program that has nothing but sockets does
        the same with one rank on each host: contender "limit", form "bare". iperf3 says, too, what the link carries.
        "limit-each", if asked for, is that program with as many processes on a host as it has ranks, each of which sends to all
        others: what a tiny cell takes where processes take turns on the cores, without an algorithm.
True    What limits a tiny cell is the delay, what limits a large one the rate. In between the shaper lets a burst through as fast
        as the machine can: cells whose bytes fit into it show nothing of the rate (net_report.py: "latency only").
Fails   As peers.py. Without namespaces, or TBF, or the relay where it is needed, a network is left out, with a row that says so.

usage: net.py --bin DIR --out FILE [--hosts 2x1,4x1,2x2 --gbit 1,10 --delay 1,10 --loss 0.1 ...]; make bench-net
"""
import argparse
import itertools
import os
import secrets
import shutil
import subprocess
import sys
import time

import links
import net_report
import peers
import rounds
import rows
from crew import HERE, PRODUCT, Crew, torch_python
from rounds import say

CORE_SHAPES, FULL_SHAPES = "2x1,4x1,2x2", "2x1,4x1,8x1,2x2,2x4,4x2"
OPS = peers.OPS + ("gather", "scatter", "barrier")
MORE_OPS = ("all_gather_v", "gather_v", "scatter_v", "all_to_all_v", "exchange16", "exchange64")  # when they are asked for
CORE = (4, 8 << 10, 512 << 10, 4 << 20, 16 << 20, 64 << 20)
FULL = tuple(4 << (2 * i) for i in range(13))  # 4 B .. 64 MiB
CONTENDERS = ("tutti", "openmpi", "gloo", "limit")
BARE_UP_TO = 64 << 10
RATE_BYTES, RATE_MS = 32 << 20, 1500
FIRST_PORT, IPERF_PORT, IPERF_S = 20000, 5201, 1
RSH = "agent"


# ---- who, and how they are started there -----------------------------------------------------------------

class NetCrew(Crew):
    """A contender with its ranks on the hosts of a network."""

    ports = itertools.count(FIRST_PORT)  # each start of each crew has its own: sockets of the one before may linger

    def __init__(self, name, network, settings):
        self.network, self.link = network, network.link
        super().__init__(name, self.link.hosts if name == "limit" else self.link.ranks, settings)

    def host_of(self, rank):
        return rank * self.link.hosts // self.ranks

    def launch(self, place, log):
        port = next(NetCrew.ports)
        self.write_secret(place)
        if self.name == "openmpi":
            self.spawn(self.mpirun(place), self.environment(TMPDIR=str(self.settings.scratch)), log)
            return
        if self.name == "gloo":
            (self.settings.scratch / "gloo").unlink(missing_ok=True)
        local = self.ranks // self.link.hosts
        for _ in range(local - 1):
            next(NetCrew.ports)  # limits have one for each process of a host
        for rank in range(self.ranks):
            env = self.environment(RANK=str(rank), WORLD_SIZE=str(self.ranks), LOCAL_RANK=str(rank % local),
                                   LOCAL_WORLD_SIZE=str(local), **self.variables(place, port))
            self.spawn(self.network.command(self.host_of(rank), *self.program(place)), env, log)

    def variables(self, place, port):
        if self.name == "gloo":
            return {"GLOO_SOCKET_IFNAME": links.DEVICE}
        if self.name in rows.LIMITS:
            local = self.ranks // self.link.hosts
            return {"BENCH_ADDRESSES": ",".join(f"{links.address(self.host_of(r))}:{port + r % local}" for r in range(self.ranks))}
        return {"MASTER_ADDR": links.address(0), "MASTER_PORT": str(port), "TUTTI_SECRET_FILE": f"{place[0]}.secret"}

    @staticmethod
    def write_secret(place):
        fd = os.open(f"{place[0]}.secret", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(fd, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(32) + "\n")

    def program(self, place):
        s = self.settings
        if self.name == "gloo":
            return [s.torch, "-B", HERE / "contender_gloo.py", *place, s.scratch / "gloo", s.bin / PRODUCT]
        folder = s.before if self.name == "before" else s.bin
        return [folder / ("contender_socket" if self.name in rows.LIMITS else "contender_tutti"), *place]

    def mpirun(self, place):
        """Open MPI as it comes, told which interface is there, and that others need the cores, too."""
        s, local = self.settings, self.link.per_host
        hosts = ",".join(f"{links.address(h)}:{local}" for h in range(self.link.hosts))
        crowded = ["--mca", "mpi_yield_when_idle", "1"] if self.ranks > s.cores else []
        words = [s.mpirun["openmpi"], "-np", self.ranks, "--host", hosts, "--map-by", "slot", "--bind-to", "none",
                 "--oversubscribe", "--leave-session-attached", "--mca", "plm_rsh_agent", self.agent(),
                 "--mca", "btl", "tcp,self,vader", "--mca", "btl_tcp_if_include", links.DEVICE,
                 "--mca", "oob_tcp_if_include", links.DEVICE, *crowded, s.bin / "contender_openmpi", *place]
        return [str(w) for w in self.network.command(0, *words)]

    def agent(self):
        """What Open MPI calls instead of ssh: it goes to another namespace."""
        path = self.settings.scratch / RSH
        cases = "".join(f"{links.address(h)}) exec {' '.join(self.network.command(h, 'sh', '-c'))} \"$*\" ;;\n"
                        for h in range(self.link.hosts))
        path.write_text(f"#!/bin/sh\nhost=$1; shift\ncase $host in\n{cases}esac\necho no host $host >&2; exit 1\n")
        path.chmod(0o700)
        return str(path)


def why_missing(name, settings):
    if name in rows.LIMITS:
        there = (settings.bin / "contender_socket").exists()
        return None if there else "contender_socket is not built; next: make bench-net"
    return peers.why_missing(name, settings)


# ---- the grid on networks --------------------------------------------------------------------------------

class Networks(rounds.Measuring):
    """A place is a Link; its network is there while its cells are measured."""

    def __init__(self, settings, part, old, out):
        super().__init__(settings, part, old, out)
        self.network, self.made, self.refused = None, {}, {}

    def place_of(self, row):
        return row["label"]

    def ranks_of(self, place):
        return place.ranks

    def forms_of(self, name, cell, place):
        op, _, size = cell
        if name not in rows.LIMITS:
            return ["plain"]
        return ["bare"] if size <= BARE_UP_TO or op == "barrier" else []

    def make_crews(self, place, names):
        self.network = links.Network(place, self.settings.bin / "relay", self.settings.congestion)
        self.made[str(place)] = self.network.facts()
        return {name: NetCrew(name, self.network, self.settings) for name in names}

    def label(self, place, before, after):
        return {"label": str(place)}

    def opening(self, place, number):
        """What the link carries: with every host sending and receiving, and one way."""
        if "limit" in self.crews:
            row = self.row(place, number, ("rate", "f32", RATE_BYTES), "limit", "bare")
            row.update(self.ask("limit", place, ("all_gather", "f32", RATE_BYTES), "bare", 4 * RATE_MS), label=str(place))
            if row["status"] == "ok":  # what each host sent and received
                row["moved"] = int(row["moved"] * (place.hosts - 1) / place.hosts)
            self.write([row])
        if self.settings.iperf is not None:
            row = self.row(place, number, ("rate", "f32", 0), "limit", "iperf3")
            row.update(self.iperf3(), label=str(place))
            self.write([row])

    def iperf3(self):
        server = self.network.popen(0, [self.settings.iperf, "-s", "-1", "-p", IPERF_PORT], stdin=subprocess.DEVNULL,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 5
            while time.monotonic() < deadline:
                words = [self.settings.iperf, "-c", links.address(0), "-p", IPERF_PORT, "-t", IPERF_S, "-O", 1, "-J"]
                done = subprocess.run(self.network.command(1, *words), capture_output=True, text=True, check=False, timeout=60)
                found = net_report.iperf_figures(done.stdout)
                if found is not None:
                    moved, us = found
                    return {"status": "ok", "moved": moved, "calls": 1, "median_us": us, "each_us": us}
                time.sleep(0.05)
            return {"status": f"failed: iperf3: {' '.join((done.stdout + done.stderr).split())[-120:]}"}
        except subprocess.TimeoutExpired:
            return {"status": "failed: iperf3 took longer than 60 s"}
        finally:
            server.kill()
            server.wait()

    def round(self, place, number):
        try:
            return super().round(place, number)
        except links.Refused as refused:
            say(f"{place}: left out: {refused}")
            self.refused[str(place)] = str(refused)
            self.out.write(f"# missing: {place}: {str(refused).splitlines()[0]}\n")
            return True
        finally:
            self.leave_network(place)

    def leave_network(self, place):
        self.end_crews()
        if self.network is not None:
            made = self.made[str(place)]
            for name, n in {**self.network.lost(), **self.network.close()}.items():
                made[name] = made.get(name, 0) + n
            self.network = None

    def facts(self):
        found = {}
        for place, facts in self.made.items():
            found.update({f"{place}, {name}": value for name, value in facts.items()})
        found.update({f"{place}, left out": why for place, why in self.refused.items()})
        return {**found, "relays": "beside contenders, on the same cores"} if any(p.relayed for p in self.settings.places) else found


# ---- around it -------------------------------------------------------------------------------------------

def shapes(text):
    found = tuple(tuple(int(n) for n in word.split("x")) for word in text.split(","))
    if any(len(shape) != 2 or min(shape) < 1 or shape[0] > 250 for shape in found):
        raise argparse.ArgumentTypeError(f"'{text}' is not hosts x ranks on each, 2x1 say")
    return found


def floats(text):
    found = tuple(float(word) for word in text.split(","))
    if not all(0 <= value < float("inf") for value in found):
        raise argparse.ArgumentTypeError(f"'{text}' has what is not finite, or is below 0")
    return found


def per_cents(text):
    if not max(found := floats(text)) < 100:
        raise argparse.ArgumentTypeError(f"'{text}': not all are below 100")
    return found


def operations(text):
    known = OPS + MORE_OPS
    if not all(word in known for word in text.split(",")):
        raise argparse.ArgumentTypeError(f"'{text}' has more than {', '.join(known)}")
    return tuple(text.split(","))


def arguments():
    p = argparse.ArgumentParser(description="tutti and its peers between hosts that are namespaces")
    rounds.common_arguments(p)
    p.add_argument("--ops", type=operations, default=OPS, help=",".join(OPS + MORE_OPS) + "; the last ones only by name")
    p.add_argument("--hosts", type=shapes, help="hosts x ranks on each, as 2x1,4x1,2x2")
    p.add_argument("--gbit", type=floats, default=(1.0, 10.0), help="of each link, both ways; 0: as fast as it goes")
    p.add_argument("--delay", type=floats, default=(0.0,), help="ms one way, through the relay")
    p.add_argument("--jitter", type=float, default=0.0, help="ms that a delay varies by at most")
    p.add_argument("--loss", type=per_cents, default=(0.0,), help="per cent of packets, through the relay")
    p.add_argument("--congestion", help="congestion control of the hosts, for all contenders, as the kernel calls it: 'cubic'; else the machine's")
    p.add_argument("--contenders", type=lambda t: tuple(t.split(",")), default=CONTENDERS,
                   help=",".join(CONTENDERS) + ", limit-each, registered, before")
    p.add_argument("--cell-limit", type=float, default=40, help="s until a contender that does not answer is ended")
    return p.parse_args()


def complete(s):
    """What follows from the arguments and the machine."""
    s.sizes = s.sizes or (CORE if s.grid == "core" else FULL)
    s.hosts = s.hosts or shapes(CORE_SHAPES if s.grid == "core" else FULL_SHAPES)
    s.minutes = s.minutes if s.minutes is not None else 40 if s.grid == "core" else None
    s.deadline = time.monotonic() + s.minutes * 60 if s.minutes is not None else float("inf")
    if s.before is not None and "before" not in s.contenders:
        s.contenders += ("before",)
    s.places = tuple(links.Link(*shape, gbit, delay, s.jitter, loss / 100) for gbit in s.gbit for delay in s.delay
                     for loss in s.loss for shape in s.hosts)
    s.place_words = str
    s.cores, s.commit = len(os.sched_getaffinity(0)), rounds.commit()
    s.mpirun = {"openmpi": shutil.which("mpirun.openmpi")}
    s.torch, s.iperf = torch_python(), shutil.which("iperf3")
    s.missing = {n: why for n in s.contenders if (why := why_missing(n, s)) is not None}
    if s.iperf is None:
        say("missing: iperf3: not installed; next: make bench-deps")
    return s


def main():
    s = complete(arguments())
    rounds.run(Networks, s)
    if s.brief:
        print(net_report.brief([rows.read(open(s.out))]), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
