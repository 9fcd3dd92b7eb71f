#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""startup_model: joining a world that no test machine has, played in virtual time. A prediction, not a measurement.

Why     Every rank of a job talks to one store, and all do so in the same moment. What that one process has to do decides
        how long a large job takes to start.
How     The store's server is one queue: what it takes for a connection, for a small request and for each card of a list was
        measured on it alone (startup_store). Ranks are state machines that send what the library sends, in its order:

            connect, hello | the latest world | wait for its number | claim a place | leave a will | leave a card | be the host's clerk, or see who is |
            read the cards, 256 in a request | leave a join | read the joins, 256 in a request

        A list is answered when the last of its cards has come. From TOGETHER ranks on one rank of each host reads, and leaves a
        note; the others wait for that. What a host does by itself, and the first connections
        between hosts, are added as times: `local_ms`, and a handshake of three round trips for each of log2(hosts) steps.
True    Requests are counted as they are made, and are compared with those that a real server has counted.
Limits  Ranks that come in time are played: nobody looks around. Client work is taken to be as long as the server's for the same request, and not to share a core with other ranks.
        The network is a latency and the server's line; nothing is lost. Hosts start their ranks one after the other.

usage: startup_model.py --constants 'CONNECTION REQUEST CARD' [--ranks 256,1024,10000 --per-host 8]
       startup_model.py --bin DIR [...]    measures the constants first
"""
import argparse
import heapq
import math
import pathlib
import statistics
import subprocess

LIST, RUNS = 256, 5
TOGETHER = 64  # scribe.h
CARD_BYTES, JOIN_BYTES, CLERK_BYTES, SMALL_BYTES = 280, 264, 128, 16  # tti_card, tti_join, tti_clerk; of most other answers, about


class Server:
    """One core and one line: requests in the order in which they come."""

    def __init__(self, model):
        self.model, self.free_ns, self.requests, self.busy_ns, self.sent = model, 0.0, 0, 0.0, 0

    def serve(self, now_ns, work_ns, answer_bytes):
        """When the answer is on its way."""
        took = max(work_ns, answer_bytes * self.model.line_ns_per_byte)
        self.free_ns = max(now_ns, self.free_ns) + took
        self.busy_ns += took
        self.sent += answer_bytes
        return self.free_ns


class Model:
    """What things take, in ns."""

    def __init__(self, connection, request, card, per_host=8, latency_us=25.0, gbit=10.0, exec_ms=4.0, local_ms=1.0,
                 together=TOGETHER):
        self.together = together
        self.connection, self.request, self.card, self.per_host = connection, request, card, per_host
        self.latency, self.exec, self.local = latency_us * 1e3, exec_ms * 1e6, local_ms * 1e6
        self.line_ns_per_byte = 8 / (gbit * 0.94)

    def hosts(self, ranks):
        return math.ceil(ranks / self.per_host)

    def local_ns(self, ranks):
        return self.local * min(ranks, self.per_host)

    def first_call_ns(self, ranks):
        hosts = self.hosts(ranks)
        return math.ceil(math.log2(hosts)) * (6 * self.latency + self.connection) if hosts > 1 else 0.0


class Lists:
    """Who waits for the cards of one kind: pieces of LIST cards, each complete at its last one's arrival."""

    def __init__(self, ranks):
        self.left = [min(LIST, ranks - at) for at in range(0, ranks, LIST)]
        self.waiting = [[] for _ in self.left]

    def leave(self, rank):
        """The requests that a card's arrival makes answerable."""
        piece = rank // LIST
        self.left[piece] -= 1
        return piece, self.waiting[piece] if self.left[piece] == 0 else []


# What a rank does next; the waits are for what the comment says.
CONNECT, LATEST, NUMBER, CLAIM, WILL, CARD, CLERK, WHO, CARDS, TELL_CARDS, JOIN, JOINS, TELL_JOINS, DONE = range(14)
BYTES = {CARDS: CARD_BYTES, JOINS: JOIN_BYTES}


class Start:
    """One start of a world."""

    def __init__(self, model, ranks):
        self.model, self.ranks, self.server = model, ranks, Server(model)
        self.last, self.number_open, self.waits_for_number = 0.0, False, []
        self.lists = {CARDS: Lists(ranks), JOINS: Lists(ranks)}
        self.has_clerks = ranks >= model.together
        self.clerks = {}  # rank, by host
        self.told = {CARDS: set(), JOINS: set()}  # hosts whose reader is through
        self.waits_for_word = {CARDS: {}, JOINS: {}}
        self.events, self.made = [], 0

    def host(self, rank):
        return rank // self.model.per_host

    def has_neighbours(self, rank):
        first = self.host(rank) * self.model.per_host
        return min(self.model.per_host, self.ranks - first) > 1

    def reads(self, rank, state):
        """Whether a rank reads a list, or waits for the one that does. Cards: the first that came; joins: the first."""
        if not self.has_clerks:
            return True
        return rank == self.clerks[self.host(rank)] if state == CARDS else rank % self.model.per_host == 0

    def tells(self, rank, state):
        """Whether there may be somebody who waits for it. A clerk of cards does not know yet that it is alone."""
        return self.has_clerks and self.reads(rank, state) and (state == CARDS or self.has_neighbours(rank))

    def at(self, when, rank, state, piece=0):
        self.made += 1
        heapq.heappush(self.events, (when, self.made, rank, state, piece))

    def after(self, rank, state, piece):
        """(state, piece, what it does by itself before)"""
        local = self.model.local_ns(self.ranks)
        if state in self.lists and self.reads(rank, state):
            if piece + 1 < len(self.lists[state].left):
                return state, piece + 1, 0
            if self.tells(rank, state):
                return state + 1, 0, 0
        if state in (CARDS, TELL_CARDS):
            return JOIN, 0, local
        if state in (JOINS, TELL_JOINS):
            return DONE, 0, -self.model.latency
        if state == LATEST and rank == 0:
            return CLAIM, 0, 0  # it opens the number and waits for none
        if state == CARD and not self.has_clerks:
            return CARDS, 0, 0
        if state == CLERK and self.reads(rank, CARDS):
            return CARDS, 0, 0
        return state + 1, 0, 0

    def answered(self, now, rank, state, piece, work, size):
        """Serve it at the server, and let the rank go on when the answer has come and it has read it."""
        then = self.server.serve(now, work, size) + self.model.latency + work
        state, piece, own = self.after(rank, state, piece)
        self.at(then + own + self.model.latency, rank, state, piece)

    def small(self, now, rank, state):
        self.answered(now, rank, state, 0, self.model.request, SMALL_BYTES)

    def read(self, now, rank, state, piece):
        lists, model = self.lists[state], self.model
        host = self.host(rank)
        if not self.reads(rank, state):
            if host in self.told[state]:
                self.small(now, rank, state)
            else:
                self.server.serve(now, model.request, 0)
                self.waits_for_word[state].setdefault(host, []).append(rank)
        elif lists.left[piece] > 0:
            self.server.serve(now, model.request, 0)
            lists.waiting[piece].append(rank)
        else:
            self.give(now, rank, state, piece)

    def give(self, now, rank, state, piece):
        n = min(LIST, self.ranks - piece * LIST)
        self.answered(now, rank, state, piece, self.model.request + n * self.model.card, n * BYTES[state])

    def leave(self, now, rank, kind):
        piece, waiting = self.lists[kind].leave(rank)
        for other in waiting:
            self.give(now, other, kind, piece)

    def tell(self, now, rank, kind):
        self.told[kind].add(self.host(rank))
        for other in self.waits_for_word[kind].pop(self.host(rank), []):
            self.small(now, other, kind)

    def open_number(self, now):
        self.server.requests += 2  # the number, and which one is the latest
        self.number_open = True
        for other in self.waits_for_number:
            self.small(now, other, NUMBER)

    def step(self, now, rank, state, piece):
        self.server.requests += state != CONNECT
        if state == CLERK:
            self.clerks.setdefault(self.host(rank), rank)
        if state == CONNECT:
            self.answered(now + 2 * self.model.latency, rank, state, 0, self.model.connection, 100)
        elif state == NUMBER and not self.number_open:
            self.waits_for_number.append(rank)
        elif state in self.lists:
            self.read(now, rank, state, piece)
        else:
            self.answered(now, rank, state, 0, self.model.request, CLERK_BYTES if state == WHO else SMALL_BYTES)
        if state == CLAIM and rank == 0:
            self.open_number(now)
        if state in (CARD, JOIN):
            self.leave(now, rank, CARDS if state == CARD else JOINS)
        if state in (TELL_CARDS, TELL_JOINS):
            self.tell(now, rank, state - 1)

    def play(self):
        model = self.model
        for rank in range(self.ranks):
            self.at(model.exec * (rank % model.per_host + 1) + 2 * model.latency, rank, CONNECT)
        while self.events:
            now, _, rank, state, piece = heapq.heappop(self.events)
            if state == DONE:
                self.last = max(self.last, now)
            else:
                self.step(now, rank, state, piece)
        return self.last + model.first_call_ns(self.ranks), self.server


def play(model, ranks):
    """(when the last rank has joined and done its first call, in ns; the server)."""
    return Start(model, ranks).play()


def one_by_one(model, ranks):
    """The server's time if every card were a request of its own, in ns: 2 N requests of each of N ranks."""
    return ranks * (model.connection + (2.0 * ranks + 8) * model.request)


def line(model, alone, ranks):
    """A row of the table; alone is the model without clerks."""
    (ended, server), (ended_alone, busier) = play(model, ranks), play(alone, ranks)
    return (f"| {ranks:,} | {ended / 1e9:.2f} s | {server.busy_ns / 1e9:.2f} s | {server.requests / ranks:.1f} | "
            f"{server.sent / 1e9:.3f} GB | {ended_alone / 1e9:.2f} s | {busier.busy_ns / 1e9:.2f} s | {busier.sent / 1e9:.3f} GB | "
            f"{one_by_one(model, ranks) / 1e9:.1f} s |")


def measured_constants(directory):
    """Medians of some runs."""
    runs = [subprocess.run([str(directory / "startup_store")], capture_output=True, text=True, check=True).stdout
            for _ in range(RUNS)]
    return tuple(statistics.median(column) for column in zip(*([float(n) for n in said.split()[1:]] for said in runs)))


def main():
    p = argparse.ArgumentParser(description="joining a large world, in virtual time")
    p.add_argument("--bin", type=pathlib.Path, help="where startup_store was built")
    p.add_argument("--constants", type=lambda t: tuple(float(n) for n in t.split()),
                   help="ns of the server: a connection, a request, a card of a list")
    p.add_argument("--ranks", type=lambda t: tuple(int(n) for n in t.split(",")), default=(256, 1024, 4096, 10000))
    p.add_argument("--per-host", type=int, default=8)
    p.add_argument("--latency-us", type=float, default=25.0)
    p.add_argument("--gbit", type=float, default=10.0)
    s = p.parse_args()
    if s.bin is None and not s.constants:
        p.error("--constants, or --bin to measure them, is missing")
    constants = s.constants or measured_constants(s.bin)
    model = Model(*constants, per_host=s.per_host, latency_us=s.latency_us, gbit=s.gbit)
    alone = Model(*constants, per_host=s.per_host, latency_us=s.latency_us, gbit=s.gbit, together=math.inf)
    print(f"prediction with {constants[0] / 1e3:.0f} us for a connection, {constants[1] / 1e3:.1f} us for a request, "
          f"{constants[2]:.0f} ns for a card; {s.per_host} ranks on a host, {s.latency_us:g} us, {s.gbit:g} Gb/s\n\n"
          "| ranks | joined, first barrier | server busy | requests per rank | bytes from the server "
          "| each rank reads: joined | server busy | bytes | one card per request: server busy |\n" + "|---" * 9 + "|")
    for ranks in s.ranks:
        print(line(model, alone, ranks))


if __name__ == "__main__":
    main()
