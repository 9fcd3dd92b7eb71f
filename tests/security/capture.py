#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What somebody sees who reads every packet of a job: a capture by tshark on loopback, searched.

Goal    with TUTTI_TLS=1 no key, no value and no byte of a tensor can be found in it; without, all of those can, which shows
        that the search finds. The secret is in neither: not as bytes, not as digits, not in base64.
Method  a job of three ranks over TCP under `tutti run`, with a key, a value and a tensor made for this run, and its launcher's secret. The capture has begun
        when it has a packet of our own, and has everything when it has another one that was sent behind the job. Searched
        are the packets as they lie in the file, and the streams put together of them, where nothing is cut by the end of a packet.
        It must not have lost any packet: one that has, as others send on loopback, too, says nothing, and is taken again.
        Where there may be a network namespace, it is done in one, whose loopback is nobody else's.
Skips   (77) where there is no tshark, or it may not read packets.

usage: capture.py --tutti build/dev/bin/tutti --job build/dev/bin/capture_job [--keep FOLDER]
"""
import argparse
import base64
import collections
import os
import pathlib
import re
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
from own_net import go_alone  # noqa: E402

SKIPPED = 77
LIMIT_S, TRIES = 60, 5
RUNS = [("plain", {}), ("TLS", {"TUTTI_TLS": "1"}), ("TLS, 4 connections per pair", {"TUTTI_TLS": "1", "TUTTI_TCP_STRIPES": "4"})]
RANKS, TENSOR_BYTES = 3, 256 << 10
WANTED = ("key", "value", "tensor")
OF_A_JOB = ("RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "TORCHELASTIC_", "TUTTI_", "SLURM_", "OMPI_", "PMI", "MPI_")


class Refused(Exception):
    """The machine lets nobody read packets."""


class Capture:
    """tshark on loopback, from the first packet to the last one of what is done within."""

    def __init__(self, path):
        self.path = path
        self.words = open(path.with_suffix(".words"), "w+")
        self.tshark = subprocess.Popen(["tshark", "-q", "-i", "lo", "-B", "64", "-f", "tcp or udp", "-w", path], stdout=subprocess.DEVNULL,
                                       stderr=self.words, start_new_session=True)
        self.await_own_packet()

    def said(self):
        self.words.seek(0)
        return self.words.read().strip()

    def await_own_packet(self):
        """Packets are sent until one is in the file: what was sent before that one is there, too."""
        mark, until = secrets.token_bytes(24), time.monotonic() + LIMIT_S
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        while not (self.path.exists() and mark in self.path.read_bytes()):
            if self.tshark.poll() is not None:
                raise Refused(self.said())
            if time.monotonic() > until:
                self.end()
                raise Refused(f"none of its own packets came in {LIMIT_S} s; it said: {self.said()}")
            sender.sendto(mark, ("127.0.0.1", 9))
            select.select([], [], [], 0.1)  # a packet ten times a second is enough
        sender.close()

    def end(self):
        if self.tshark.poll() is None:
            self.tshark.send_signal(signal.SIGINT)
        self.tshark.wait(LIMIT_S)
        lost = re.search(r"(\d+) packets? dropped from", self.said())
        return int(lost[1]) if lost else 0


def streams_of(path):
    """The bytes of each direction of each connection, in order of capture, which on loopback is that of sending."""
    rows = subprocess.run(["tshark", "-r", path, "-Y", "tcp.len > 0", "-T", "fields", "-e", "tcp.stream", "-e", "tcp.srcport", "-e", "tcp.payload"],
                          capture_output=True, text=True, check=True).stdout
    streams = collections.defaultdict(bytearray)
    for row in rows.splitlines():
        stream, port, payload = row.split("\t")
        streams[stream, port] += bytes.fromhex(payload.replace(":", ""))
    return [bytes(data) for data in streams.values()]


def in_base64(data):
    """What stands in base64 wherever these bytes are part of something longer: one text for each place in a group of three."""
    texts = []
    for skipped in range(3):
        text = base64.b64encode(bytes(skipped) + data).rstrip(b"=")
        texts.append(text[(0, 2, 3)[skipped]:-1])
    return texts


def forms_of(data):
    return [data, data.hex().encode(), data.hex().upper().encode(), *in_base64(data)]


def count(places, data):
    return sum(place.count(form) for place in places for form in forms_of(data))


def run_job(args, folder, env, wanted):
    """Its secret."""
    secret = folder / "secret"
    secret.touch(mode=0o600)
    keep = {name: value for name, value in os.environ.items() if not name.startswith(OF_A_JOB)}
    job = subprocess.run([args.tutti, "run", "--standalone", f"--nproc-per-node={RANKS}", "--", args.job, *(wanted[what] for what in WANTED), secret],
                         env={**keep, "TUTTI_TRANSPORT": "tcp", **env}, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if job.returncode != 0:
        sys.exit(f"the job failed:\n{job.stdout}{job.stderr}")
    return bytes.fromhex(secret.read_text().strip())


def listen_to(args, folder, name, env, wanted):
    """How often each was found, and how many bytes there were; prints a row."""
    path = folder / f"{re.sub(r'[^a-z0-9]+', '-', name.lower())}.pcapng"
    capture = Capture(path)
    try:
        secret = run_job(args, folder, env, wanted)
        capture.await_own_packet()
    finally:  # whatever has failed: it would listen for ever
        lost = capture.end()
    streams = streams_of(path)
    places = [path.read_bytes(), *streams]
    found = {what: count(places, text.encode()) for what, text in wanted.items()} | {"secret": count(places, secret)}
    found |= {"bytes": sum(map(len, streams)), "streams": len(streams), "lost": lost}
    print(f"{name:28} {found['bytes']:9} bytes in {len(streams):3} streams, {lost} packets lost: "
          + ", ".join(f"{what} {found[what]}" for what in (*WANTED, "secret")) + " times", flush=True)
    return found


def listen_to_all(args, folder, name, env, wanted):
    """listen_to, until no packet is lost."""
    for _ in range(TRIES):
        found = listen_to(args, folder, name, env, wanted)
        if found["lost"] == 0:
            break
    return found


def judge(name, found):
    plain = name == "plain"
    bad = [f"{name}: {what} was {'not ' if plain else ''}found" for what in WANTED if (found[what] > 0) != plain]
    if found["secret"] > 0:
        bad.append(f"{name}: the secret was found")
    if found["lost"] > 0 or found["bytes"] < RANKS * TENSOR_BYTES:
        bad.append(f"{name}: not all of the job was captured")
    return bad


def search_finds():
    """The search itself: each form of some bytes, wherever they stand in a longer text."""
    data = bytes(range(200, 232))
    texts = [data, data.hex().encode(), *(base64.b64encode(b"x" * before + data + b"xy") for before in range(4))]
    return all(count([b"before " + text + b" behind"], data) > 0 for text in texts) and count([bytes(1000)], data) == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tutti", required=True)
    parser.add_argument("--job", required=True)
    parser.add_argument("--keep", type=pathlib.Path, help="leave captures and the run's secret in this folder, to look at")
    args = parser.parse_args()
    if shutil.which("tshark") is None:
        print("skipped: there is no tshark (Debian: apt-get install tshark)")
        return SKIPPED
    go_alone()
    if not search_finds():
        sys.exit("the search does not find what is there")
    wanted = {"key": f"key-{secrets.token_hex(12)}", "value": f"value-{secrets.token_hex(12)}", "tensor": secrets.token_hex(16)}
    bad = []
    with tempfile.TemporaryDirectory() as made:
        folder = args.keep or pathlib.Path(made)
        folder.mkdir(exist_ok=True)
        try:
            for name, env in RUNS:
                bad += judge(name, listen_to_all(args, folder, name, env, wanted))
        except Refused as refused:
            print(f"skipped: tshark cannot read packets here: {refused}")
            return SKIPPED
    print("\n".join(bad) or "nothing was found that should not be, and all that should be")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
