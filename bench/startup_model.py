#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""startup_model: joining a world that no test machine has, played in virtual time. A prediction, not a measurement.

Why     Every rank of a job talks to one store, and all do so in the same moment. What that one process has to do decides
        how long a large job takes to start.
How     The store's server is one queue: what it takes for a connection, for a small request and for each card of a list was
        measured on it alone (startup_store). Ranks are state machines that send what the library sends, in its order:

            connect, hello | the latest world | wait for its number | claim a place | leave a card |
            read the cards, 256 in a request | leave a join | read the joins, 256 in a request

        A list is answered when the last of its cards has come. What a host does by itself, and the first connections
        between hosts, are added as times: `local_ms`, and a handshake of three round trips for each of log2(hosts) steps.
True    Requests are counted as they are made, and are compared with those that a real server has counted.
Limits  Client work is taken to be as long as the server's for the same request, and not to share a core with other ranks.
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
CARD_BYTES, JOIN_BYTES, KEY_BYTES = 240, 232, 48


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

    def __init__(self, connection, request, card, per_host=8, latency_us=25.0, gbit=10.0, exec_ms=4.0, local_ms=1.0):
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
CONNECT, LATEST, NUMBER, CLAIM, CARD, CARDS, JOIN, JOINS, DONE = range(9)


def play(model, ranks):
    """(when the last rank has joined and done its first call, in ns; the server)."""
    server, last, number_open, waits_for_number = Server(model), 0.0, False, []
    lists = {CARDS: Lists(ranks), JOINS: Lists(ranks)}
    events, made = [], 0

    def at(when, rank, state, piece=0):
        nonlocal made
        made += 1
        heapq.heappush(events, (when, made, rank, state, piece))

    def answered(now, rank, state, piece, work, size):
        """Serve it at the server, and let the rank go on when the answer has come and it has read it."""
        then = server.serve(now, work, size) + model.latency + work
        if state in (CARDS, JOINS) and piece + 1 < len(lists[state].left):
            at(then + model.latency, rank, state, piece + 1)
        elif state == CARDS:
            at(then + model.local_ns(ranks) + model.latency, rank, JOIN)
        elif state == JOINS:
            at(then, rank, DONE)
        elif state == LATEST and rank == 0:
            at(then + model.latency, rank, CLAIM)  # it opens the number and waits for none
        else:
            at(then + model.latency, rank, state + 1)

    def cards(piece):
        return min(LIST, ranks - piece * LIST)

    for rank in range(ranks):
        at(model.exec * (rank % model.per_host + 1) + 2 * model.latency, rank, CONNECT)
    while events:
        now, _, rank, state, piece = heapq.heappop(events)
        if state == DONE:
            last = max(last, now)
            continue
        server.requests += state != CONNECT
        if state == CONNECT:
            answered(now + 2 * model.latency, rank, state, 0, model.connection, 100)
        elif state == NUMBER and not number_open:
            waits_for_number.append(rank)
        elif state in lists and lists[state].left[piece] > 0:
            server.serve(now, model.request, 0)
            lists[state].waiting[piece].append(rank)
        elif state in lists:
            answered(now, rank, state, piece, model.request + cards(piece) * model.card, cards(piece) * CARD_BYTES)
        else:
            answered(now, rank, state, 0, model.request, 16)
        if state == CLAIM and rank == 0:
            server.requests += 2  # the number, and which one is the latest
            number_open = True
            for other in waits_for_number:
                answered(now, other, NUMBER, 0, model.request, 16)
        if state in (CARD, JOIN):
            kind = state + 1
            full, waiting = lists[kind].leave(rank)
            for other in waiting:
                answered(now, other, kind, full, model.request + cards(full) * model.card, cards(full) * CARD_BYTES)
    return last + model.first_call_ns(ranks), server


def one_by_one(model, ranks):
    """The server's time if every card were a request of its own, in ns: 2 N requests of each of N ranks."""
    return ranks * (model.connection + (2.0 * ranks + 8) * model.request)


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
    print(f"prediction with {constants[0] / 1e3:.0f} us for a connection, {constants[1] / 1e3:.1f} us for a request, "
          f"{constants[2]:.0f} ns for a card; {s.per_host} ranks on a host, {s.latency_us:g} us, {s.gbit:g} Gb/s\n\n"
          "| ranks | joined, first barrier | server busy | requests per rank | bytes from the server "
          "| one card per request: server busy |\n|---|---|---|---|---|---|")
    for ranks in s.ranks:
        ended, server = play(model, ranks)
        print(f"| {ranks:,} | {ended / 1e9:.2f} s | {server.busy_ns / 1e9:.2f} s | {server.requests / ranks:.1f} | "
              f"{server.sent / 1e9:.2f} GB | {one_by_one(model, ranks) / 1e9:.1f} s |")


if __name__ == "__main__":
    main()
