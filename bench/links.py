#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""links: hosts on this machine, joined by links of a known rate.

Why     What a collective takes between hosts is told by links that are as slow as real ones, and the same for everybody
        who is measured. A machine has one host, and its loopback is no link.
How     A host is a network namespace, with a host name of its own; one more namespace is the switch, a bridge. From each
        host a veth pair leads to it, "tt0" at the host, 10.77.0.(i+1). Both ends are shaped by a token bucket (TBF):
        the host's end is what it sends, the switch's end what it receives, so that many who send to one share its link.

            host 0  tt0 [TBF] --- s0 [TBF]  bridge  [TBF] s1 --- [TBF] tt0  host 1

        Instead, for delay and loss, which this kernel may not have: a program in user space that holds a TUN device in
        each host (relay.h); then there is no bridge, and it keeps the rate, too.
True    Namespaces have no names: descriptors of this process hold them, and the processes inside. Nothing has to be
        removed; they end with the last of those, also after kill -9.
Fails   Refused: the machine does not let us (no root, no veth, no TBF, no TUN). That is a reason to skip.

usage: links.py [--hosts 2 --gbit 1 --delay-ms 0 --loss 0 ...] COMMAND ...: run it on every host at once, with HOST,
HOSTS, and HOST0_ADDR in its environment; ends with the last of them
"""
import argparse
import collections
import contextlib
import ctypes
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

CLONE_NEWNET, CLONE_NEWUTS = 0x40000000, 0x04000000
DEVICE, MTU = "tt0", 1500
HEADERS = 52  # of a segment of TCP over IPv4 with time stamps: 20 + 20 + 12
LINK_HEADER = 14  # TBF counts it, preamble and gap it does not
BURST_S, BURST_LEAST = 0.0002, 80 << 10
QUEUE_BYTES = 1 << 20  # what waits at a shaper before packets are dropped, as at a port of a switch
UP_S, READY_S = 5, 10
RELAY_LIFE_S, RELAY_QUEUE_BYTES = 7200, 4 << 20

_libc = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """This machine has no such links, and why."""


class Link(collections.namedtuple("Link", "hosts per_host gbit delay_ms jitter_ms loss", defaults=(0.0, 0.0, 0.0, 0.0))):
    """A network to be made, and how many ranks are on each of its hosts. gbit 0: as fast as it goes. loss: of packets, 0.001 is
    one in a thousand."""
    __slots__ = ()

    @property
    def ranks(self):
        return self.hosts * self.per_host

    @property
    def relayed(self):
        return self.delay_ms > 0 or self.loss > 0

    def __str__(self):
        jitter = f"~{self.jitter_ms:g}" if self.jitter_ms else ""
        extra = f" {self.delay_ms:g}{jitter}ms" if self.delay_ms or self.loss else ""
        extra += f" {self.loss * 100:g}%" if self.loss else ""
        return f"{self.hosts}x{self.per_host} {self.gbit:g}G{extra}" if self.gbit else f"{self.hosts}x{self.per_host}{extra}"

    @classmethod
    def read(cls, text):
        """The Link whose str() that is."""
        shape, *words = text.split()
        given = {"G": "0", "ms": "0", "%": "0"}
        for word in words:
            unit = next(u for u in given if word.endswith(u))
            given[unit] = word[:-len(unit)]
        hosts, per_host = (int(n) for n in shape.split("x"))
        delay, _, jitter = given["ms"].partition("~")
        return cls(hosts, per_host, float(given["G"]), float(delay), float(jitter or 0), float(given["%"]) / 100)

    def burst(self):
        """Bytes that a shaper lets through at once: at least one large segment of the kernel's, or it has to cut it."""
        return max(BURST_LEAST, int(self.gbit * 1e9 / 8 * BURST_S))

    def goodput(self):
        """Bytes of payload per second that such a link can carry."""
        return self.gbit * 1e9 / 8 * (MTU - HEADERS) / (MTU + (0 if self.relayed else LINK_HEADER))


def address(host):
    return f"10.77.0.{host + 1}"


# ---- namespaces ------------------------------------------------------------------------------------------

def _call(what, *arguments):
    if getattr(_libc, what)(*arguments) != 0:
        raise Refused(f"{what}: {os.strerror(ctypes.get_errno())}")


class Place:
    """A network namespace and a host name, held by two descriptors of this process."""

    def __init__(self, name):
        home = [os.open(f"/proc/thread-self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in ("net", "uts")]
        self.fds = []
        try:
            _call("unshare", CLONE_NEWNET | CLONE_NEWUTS)
            socket.sethostname(name)
            self.fds = [os.open(f"/proc/thread-self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in ("net", "uts")]
        finally:
            for fd in home:
                _call("setns", fd, 0)
                os.close(fd)

    def path(self, kind="net"):
        return f"/proc/{os.getpid()}/fd/{self.fds[kind != 'net']}"

    def command(self, *words):
        """The words as a command that runs here."""
        return ["nsenter", f"--net={self.path()}", f"--uts={self.path('uts')}", *map(str, words)]

    def run(self, *words, given=None):
        done = subprocess.run(self.command(*words), input=given, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Refused(f"{' '.join(map(str, words))}: {(done.stderr or done.stdout).strip().splitlines()[:1]}")
        return done.stdout

    def ip(self, *lines):
        self.run("ip", "-batch", "-", given="".join(f"{line}\n" for line in lines))

    def end_processes(self):
        """Those that nobody ended: a launcher's, that have left its group."""
        mine = os.stat(self.path()).st_ino
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if os.stat(entry / "ns/net").st_ino == mine:
                    os.kill(int(entry.name), signal.SIGKILL)

    def close(self):
        for fd in self.fds:
            os.close(fd)
        self.fds = []


# ---- the network -----------------------------------------------------------------------------------------

class Network:
    """The hosts of a link, there until close(). relay: the program, where the link has delay or loss. congestion: what
    connections have that choose none, in place of the machine's."""

    def __init__(self, link, relay=None, congestion=None):
        self.link, self.hosts, self.switch, self.relay = link, [], None, None
        try:
            for host in range(link.hosts):
                self.hosts.append(Place(f"n{host}"))
                if congestion is not None:
                    self.hosts[-1].run("sysctl", "-q", "-w", f"net.ipv4.tcp_congestion_control={congestion}")
            if link.relayed:
                self._join_by_relay(relay)
            else:
                self._join_by_switch()
        except BaseException:
            self.close()
            raise

    def _join_by_switch(self):
        self.switch = Place("switch")
        self.switch.ip("link add br0 type bridge", "link set br0 up")
        for number, host in enumerate(self.hosts):
            self.switch.ip(f"link add s{number} mtu {MTU} type veth peer name {DEVICE} mtu {MTU} netns {host.path()}",
                           f"link set s{number} master br0", f"link set s{number} up")
            host.ip("link set lo up", f"link set {DEVICE} up", f"addr add {address(number)}/24 dev {DEVICE}")
            self._shape(host, DEVICE)
            self._shape(self.switch, f"s{number}")
        for number, host in enumerate(self.hosts):
            self._wait_until_up(host, DEVICE)
            self._wait_until_up(self.switch, f"s{number}")

    def _shape(self, place, device):
        if self.link.gbit:
            place.run("tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{self.link.gbit * 1e9:.0f}bit",
                      "burst", self.link.burst(), "limit", self.link.burst() + QUEUE_BYTES)

    @staticmethod
    def _wait_until_up(place, device):
        """A link that has just been set up loses packets until the kernel has seen its carrier."""
        deadline = time.monotonic() + UP_S
        while "LOWER_UP" not in json.loads(place.run("ip", "-j", "link", "show", device))[0]["flags"]:
            if time.monotonic() > deadline:
                raise Refused(f"{device} did not come up")
            time.sleep(0.005)

    def _join_by_relay(self, program):
        link = self.link
        if program is None or not os.access(program, os.X_OK):
            raise Refused(f"no relay program at {program}; next: make release")
        # It is the cable and the switch of these hosts: it waits for no core that they compute on.
        words = ["nice", "-n", "-10", program, "--delay-ms", link.delay_ms, "--jitter-ms", link.jitter_ms, "--loss", link.loss,
                 "--mbit", link.gbit * 1000, "--queue", RELAY_QUEUE_BYTES, "--mtu", MTU, "--seconds", RELAY_LIFE_S, *(h.path() for h in self.hosts)]
        self.relay = subprocess.Popen([str(w) for w in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True)
        said = self.relay.stdout.readline().strip()
        if said != "ready":
            raise Refused(said or "the relay ended without a word")
        for host in self.hosts:
            self._shape(host, DEVICE)

    def command(self, host, *words):
        return self.hosts[host].command(*words)

    def popen(self, host, words, **how):
        return subprocess.Popen(self.command(host, *words), **how)

    def facts(self):
        """What was made, for whoever reads figures that were measured on it."""
        link, found = self.link, collections.OrderedDict()
        found["link"] = f"{link}: {link.hosts} hosts, MTU {MTU}"
        if link.relayed:
            found["relay"] = f"delay {link.delay_ms:g} ms, jitter {link.jitter_ms:g} ms, loss {link.loss:g}, queue {RELAY_QUEUE_BYTES} B"
        if not link.gbit:
            found["shaper"] = "none"
        else:
            ends = "where hosts send" if link.relayed else "at both ends"
            found["shaper"] = f"TBF {link.gbit:g} Gb/s {ends}, burst {link.burst()} B, queue {QUEUE_BYTES} B"
        if not link.relayed:
            device = json.loads(self.hosts[0].run("ip", "-d", "-j", "link", "show", DEVICE))[0]
            found["large segments"] = f"GSO at most {device.get('gso_max_size')} B, {device.get('gso_max_segs')} segments"
        found["congestion control"] = self.hosts[0].run("cat", "/proc/sys/net/ipv4/tcp_congestion_control").strip()
        found["goodput"] = f"{link.goodput() / 1e6:.2f} MB/s at most" if link.gbit else "-"
        return found

    def lost(self):
        """{"dropped": packets at shapers, "retransmitted": segments of all hosts} so far"""
        places = [(h, DEVICE) for h in self.hosts] + [(self.switch, f"s{n}") for n in range(len(self.hosts)) if self.switch]
        dropped = 0
        for place, device in places if self.link.gbit and not self.link.relayed else ():
            dropped += sum(q.get("drops", 0) for q in json.loads(place.run("tc", "-s", "-j", "qdisc", "show", "dev", device)))
        return {"dropped": dropped, "retransmitted": sum(self._retransmitted(h) for h in self.hosts)}

    @staticmethod
    def _retransmitted(host):
        names, values = [line.split() for line in host.run("cat", "/proc/net/snmp").splitlines() if line.startswith("Tcp:")]
        return int(values[names.index("RetransSegs")])

    def close(self):
        """End it, and what still runs inside. What the relay says of its packets, if there was one."""
        found = self._close_relay() if self.relay is not None else {}
        places = self.hosts + ([self.switch] if self.switch else [])
        self.hosts, self.switch = [], None
        for place in places:
            place.end_processes()
            place.close()
        return found

    def _close_relay(self):
        relay, self.relay = self.relay, None
        try:
            said, _ = relay.communicate(timeout=5)  # it ends when nobody holds its standard input
        except subprocess.TimeoutExpired:
            relay.kill()
            said, _ = relay.communicate()
        names, *values = [line.split("\t") for line in said.splitlines() if "\t" in line] or [[]]
        return {f"relay: {name}": int(value) for name, value in zip(names, values[0])} if values else {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# ---- a command on every host -----------------------------------------------------------------------------

def arguments():
    p = argparse.ArgumentParser(description="a command on every one of some hosts that are namespaces")
    p.add_argument("--hosts", type=int, default=2)
    p.add_argument("--gbit", type=float, default=1, help="of each link; 0: as fast as it goes")
    p.add_argument("--delay-ms", type=float, default=0, help="one way")
    p.add_argument("--jitter-ms", type=float, default=0, help="at most so much more, or less")
    p.add_argument("--loss", type=float, default=0, help="of packets, 0 to 1")
    p.add_argument("--relay", type=pathlib.Path, default=pathlib.Path("build/release/bin/relay"))
    p.add_argument("--seconds", type=float, default=600, help="end them after so long")
    p.add_argument("command", nargs=argparse.REMAINDER)
    a = p.parse_args()
    if not 1 <= a.hosts <= 250:
        p.error(f"{a.hosts} hosts: 1 to 250 have an address")
    if min(a.gbit, a.delay_ms, a.jitter_ms) < 0 or not 0 <= a.loss < 1:
        p.error("a rate, a delay and a jitter are not negative, and a loss is below 1")
    if not a.command:
        p.error("the command is missing")
    return a


def main():
    a = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    link = Link(a.hosts, 1, a.gbit, a.delay_ms, a.jitter_ms, a.loss)
    started = []
    try:
        with Network(link, a.relay) as network:
            for name, value in network.facts().items():
                print(f"{name}: {value}", flush=True)
            try:
                for host in range(a.hosts):
                    env = dict(os.environ, HOST=str(host), HOSTS=str(a.hosts), HOST0_ADDR=address(0))
                    started.append(network.popen(host, a.command, env=env, start_new_session=True))
                deadline = time.monotonic() + a.seconds
                codes = [p.wait(max(0, deadline - time.monotonic())) for p in started]
            finally:
                for process in started:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            print(", ".join(f"{name} {n}" for name, n in {**network.lost(), **network.close()}.items()))
    except Refused as refused:
        print(f"links: {refused}", file=sys.stderr)
        return 77
    except subprocess.TimeoutExpired:
        print(f"links: ended after {a.seconds:g} s", file=sys.stderr)
        return 1
    return max(codes, default=0)


if __name__ == "__main__":
    sys.exit(main())
