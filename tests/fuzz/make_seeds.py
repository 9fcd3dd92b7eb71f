#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write tests/fuzz/seeds: for each target some inputs that are sound, or nearly, made of what the formats say.

    python3 tests/fuzz/make_seeds.py [FOLDER]

A fuzzer begins with them; without one they are run as they are, and mutated. Small on purpose.
"""
import gzip
import json
import pathlib
import struct
import sys

u8 = lambda n: struct.pack("<B", n)
u16 = lambda n: struct.pack("<H", n)
u32 = lambda n: struct.pack("<I", n)
u64 = lambda n: struct.pack("<Q", n & (1 << 64) - 1)
i32 = lambda n: struct.pack("<i", n)
i64 = lambda n: struct.pack("<q", n)


def sized(data):
    """A part of an input whose size stands before it (tt_take_sized)."""
    return u16(len(data)) + data


# ---- the store ----

OPS = ["set", "get", "add", "wait", "check", "compare_set", "delete", "num_keys", "cancel", "append", "multi_get", "multi_set",
       "queue_push", "queue_pop", "queue_len", "list_keys"]


def key(name):
    return u16(len(name)) + name


def value(data):
    return u32(len(data)) + data


def keys(*names):
    return u32(len(names)) + b"".join(map(key, names))


BODIES = {
    "set": key(b"/a") + value(b"1"), "get": key(b"/a"), "add": key(b"/n") + i64(5), "wait": keys(b"/a", b"/b"),
    "check": keys(b"/a"), "compare_set": key(b"/a") + value(b"1") + value(b"2"), "delete": key(b"/a"), "num_keys": b"",
    "cancel": b"", "append": key(b"/a") + value(b"xyz"), "multi_get": keys(b"/a", b"/b"),
    "multi_set": u32(2) + key(b"/a") + value(b"1") + key(b"/b") + value(b"22"), "queue_push": key(b"/q") + value(b"v"),
    "queue_pop": key(b"/q") + i64(1), "queue_len": key(b"/q"), "list_keys": key(b"/"),
}


def frame(op, body, ident=1, status=0):
    return u32(len(body)) + u8(2) + u8(OPS.index(op) + 1) + u16(status) + u32(ident) + body


def store_frames():
    for op in OPS:
        yield op, frame(op, BODIES[op])
    yield "failed", frame("get", b"no such key", 7, 5)
    yield "values", u32(2) + value(b"1") + value(b"")
    yield "names", u32(2) + key(b"/a") + key(b"/bc")


def store_server():
    raw = lambda conn, data: u8(conn << 5 | 4) + sized(data)
    made = lambda conn, op, *rest: u8(conn << 5 | 12) + u8(OPS.index(op)) + u8(1) + b"".join(rest)
    for op in OPS:
        yield f"raw_{op}", raw(0, frame(op, BODIES[op]))
    everything = b"".join(frame(op, BODIES[op], i) for i, op in enumerate(OPS) if op not in ("wait", "multi_get", "queue_pop", "get"))
    yield "all_in_one", raw(0, everything)
    yield "in_pieces", b"".join(raw(0, everything[i:i + 7]) for i in range(0, len(everything), 7))
    yield "a_wait_that_ends", raw(0, frame("wait", BODIES["wait"])) + raw(1, frame("multi_set", BODIES["multi_set"]))
    yield "a_wait_that_is_cancelled", raw(0, frame("get", BODIES["get"], 9)) + raw(0, frame("cancel", b"", 9))
    yield "a_pop_that_is_served", raw(0, frame("queue_pop", BODIES["queue_pop"])) + raw(1, frame("queue_push", BODIES["queue_push"]))
    yield "made", b"".join(made(i % 3, op, u8(1), u64(3), u8(4), b"abcd", u8(2), b"ab", bytes(5)) for i, op in enumerate(OPS))
    large = frame("set", key(b"/a") + value(bytes(500)))
    yield "slow_sockets", raw(0, large) + u8(11) + u8(3) + raw(0, frame("get", BODIES["get"]) * 30) + raw(1, frame("get", BODIES["get"])) + u8(1)
    yield "a_full_store", raw(0, large + frame("set", key(b"/b") + value(bytes(400))) + frame("set", key(b"/c") + value(bytes(500))) +
                              frame("add", key(b"/n") + i64(1)) + frame("append", key(b"/a") + value(bytes(150))) +
                              frame("queue_push", key(b"/q") + value(bytes(150))) + frame("compare_set", key(b"/a") + value(b"") + value(bytes(140))) +
                              frame("multi_set", BODIES["multi_set"][:4] + key(b"/a") + value(b"1") + key(b"/b") + value(bytes(900))))
    half = u32(1200) + frame("set", b"")[4:] + bytes(800)
    yield "too_much_input", raw(0, half) + raw(1, half) + raw(2, half)
    yield "too_many", b"".join(u8(i << 5 | 1) for i in range(8)) + b"".join(u8(i << 5) for i in range(8))
    yield "no_number", raw(0, frame("set", key(b"/n") + value(b"  x")) + frame("add", BODIES["add"]))
    yield "a_large_number", raw(0, frame("set", key(b"/n") + value(b" 99999999999999999999")) + frame("add", BODIES["add"]))
    yield "a_stranger", u8(0) + u8(4) + sized(b"GET / HTTP/1.1\r\n") + u8(3) + u16(5000)
    stage = lambda kind: u8(kind << 5 | 31)
    opens, goes, room = (lambda conn: u8(conn << 5 | 1)), (lambda conn: u8(conn << 5 | 2)), (lambda conn, most: u8(conn << 5 | 30) + u8(most))
    said = hello_fields(72, purpose=1, rank=0xffffffff, generation=0, scope=0)
    comes = lambda conn, data: u8(conn << 5) + raw(conn, data)
    yield "with_a_secret", stage(1) + raw(0, frame("set", BODIES["set"]) + frame("get", BODIES["get"])) + comes(1, said) + goes(1) + comes(2, said) + goes(2)
    yield "a_wrong_secret", stage(1) + comes(0, said + bytes(32)) + comes(1, said + bytes(32)) + opens(2)
    yield "few_descriptors", stage(1) + b"".join(comes(i, said if i % 2 else b"") for i in range(4)) + opens(4) + room(5, 2) + room(6, 0)
    yield "the_newest_stays", room(0, 0) + comes(1, said) + room(2, 1) + room(0, 1)
    put = lambda name, n: frame("set", key(name) + value(bytes(n)))
    yield "small_shares", stage(2) + raw(0, put(b"/a", 100) + put(b"/b", 300) + put(b"/b", 1) + put(b"/c", 1) + put(b"/d", 1)) + raw(1, put(b"/d", 1) + put(b"/e", 1) + put(b"/f", 1) + put(b"/a", 2))
    yield "small_replies", stage(4) + raw(0, put(b"/a", 500)) + u8(11) + u8(0) + raw(0, frame("get", key(b"/a")) * 9)
    yield "many_replies", raw(0, put(b"/a", 900)) + u8(11) + u8(255) + raw(0, frame("get", key(b"/a")) * 90) + raw(1, b"") * 40 + opens(2) + raw(1, b"")
    yield "gone_while_waiting", raw(0, frame("wait", BODIES["wait"])) + goes(0)
    yield "a_slow_one", u8(0) + u8(4) + sized(b"TUTI\1\0") + u8(3) + u16(2000)


def store_client():
    fits = lambda body, status=None: (u8(1) if status is None else u8(3)) + sized(body) + (b"" if status is None else u16(status))
    ask = lambda what, answer: u8(0x50 | what) + answer
    yield "get", ask(0, fits(b"value"))
    yield "refused", ask(0, fits(b"no", 7)) + ask(1, fits(b"", 5)) + ask(1, fits(b"", 21))
    yield "numbers", ask(3, fits(i64(7))) + ask(4, fits(b"\1")) + ask(5, fits(i64(2))) + ask(6, fits(b""))
    yield "values", ask(7, fits(u32(3) + value(b"1") + value(b"") + value(b"333")))
    yield "values_by_one", ask(7, fits(u32(1) + value(b"1")) * 3)
    yield "names", ask(8, fits(u32(2) + key(b"/a") + key(b"/bc")))
    yield "lists", ask(9, fits(b"")) + ask(10, fits(b"\1")) + ask(11, fits(b""))
    yield "silence", ask(0, u8(0)) + ask(9, u8(0) + fits(b"", 5))
    yield "raw", ask(0, u8(2) + sized(frame("get", b"v", 1)))


def torch_client():
    yield "numbers", u8(255) + u8(4) + i64(7) + u8(7) + i64(3) + u8(8) + i64(1) + u8(5) + u8(0)
    yield "value", u8(3) + u8(2) + u64(5) + b"value"
    yield "pop", u8(3) + u8(15) + i64(1) + u64(3) + b"abc"
    yield "names", u8(7) + u8(17) + i64(3) + u64(2) + b"/a" + u64(3) + b"/ab" + u64(0)
    yield "set", u8(9) + u8(1) + bytes(4) + u8(0x41) + bytes(4)
    yield "batch", u8(9) + u8(0x80) + (u64(2) + b"xy") * 3
    yield "wait", u8(9) + u8(0xc0) + u8(0)
    yield "late", u8(9) + u8(0xc0) + b"\xee\1" + u8(0xc0) + b"\xee\0\1"
    yield "alive", u8(9) + u8(0x7f) + u8(0)


def file_log():
    record = lambda k, v: u32(len(k)) + k + u32(len(v)) + v
    yield "empty", u8(7)
    yield "records", u8(1) + record(b"/a", b"1") + record(b"/b", b"22") + record(b"-/a", b"")
    yield "torn", u8(3) + record(b"/a", b"1") + record(b"refcount/", b"2")[:-3]
    yield "others", u8(15) + record(b"refcount/", b"1") + record(b"cleanup/", b"")
    yield "large", u8(4) + record(b"/a", bytes(70000)) + record(b"/b", b"x")
    yield "no_room", u8(0x17) + record(b"/a", b"1")
    yield "some_room", u8(0xf0) + record(b"/a", b"1")
    yield "cut", u8(0x21) + record(b"/a", b"1")
    yield "nothing_to_cut", u8(0x20)
    yield "no_log", u8(0) + b"#!/bin/sh\nexec true\n"


# ---- connections ----

def hello_fields(size, purpose=2, rank=5, generation=7, scope=9):
    return b"TUTI" + u16(1) + u16(size) + u32(purpose) + u32(rank) + u64(generation) + u8(scope) + bytes(15) + bytes(32)


def hello():
    cut = lambda data, n: b"".join(u8(n - 1) + data[i:i + n] for i in range(0, len(data), n))
    yield "to_server", u8(0) + cut(hello_fields(72), 72) + cut(bytes(32), 32)
    yield "to_server_in_pieces", u8(0) + cut(hello_fields(72), 5)
    yield "to_client", u8(1) + cut(hello_fields(104) + bytes(32), 104)
    for what, data in (("purpose", hello_fields(72, purpose=1)), ("generation", hello_fields(72, generation=8)),
                       ("scope", hello_fields(72, scope=1)), ("size", hello_fields(71)), ("http", b"GET / HTTP/1.1\r\n")):
        yield "other_" + what, u8(0) + cut(data, 80)
    yield "stream_of_client", u8(0xf1) + b"\xff\xff\0\xff\0\xff\0\xff" * 8
    yield "stream_of_server", u8(0xf0) + b"\xff\0\xff\xff\0\xff\0\xff" * 8
    yield "stream_in_pieces", u8(0xf1) + b"\7\7\0\7\0" * 100
    yield "stream_that_ends", u8(0xf1) + b"\xff\3"
    yield "honest", u8(2) + b"\xff\0" * 20
    yield "honest_in_pieces", u8(2) + b"\3\0" * 200
    yield "changed", u8(2) + b"\xff\0\xff\0\xff\x17" + b"\xff\0" * 8


def peer_frame(plane, group, tag, payload=b"", word=0, dtype=None, size=None, last=0):
    """dtype: uint8 unless told."""
    return (u16(0x7475) + u8(1) + u8(40) + u8(plane) + u8(U8 if dtype is None else dtype) + u16(0) + u32(group) + i32(tag) + u64(word) +
            u64(len(payload) if size is None else size) + u64(last) + payload)


U8 = 1  # TUTTI_U8
P2P, COLLECTIVE, NOTICE, WINDOW, REPLY, CALL = 0, 1, 2, 3, 4, 5


def peer_frames():
    piece = lambda n, data: u8(n - 1) + data
    message = peer_frame(P2P, 1, 0, b"abcd")
    yield "message", piece(256, message)
    yield "in_pieces", piece(7, message + peer_frame(P2P, 1, 1, bytes(40)))
    yield "not_asked_for", piece(200, peer_frame(P2P, 1, 77, b"x" * 300) + message)
    yield "another_size", piece(200, peer_frame(P2P, 1, 0, b"abc") + message)
    yield "any_source", piece(200, message + peer_frame(P2P, 1, 2))
    yield "collective", piece(200, peer_frame(COLLECTIVE, 3, 0, bytes(8), word=5))
    yield "another_call", piece(200, peer_frame(COLLECTIVE, 3, 0, bytes(8), word=7))
    yield "left_group", piece(200, peer_frame(P2P, 0, 0, bytes(64)) + message)
    yield "notice", piece(200, peer_frame(NOTICE, 1, 4, b"it failed", word=2) + message)
    yield "call", piece(200, peer_frame(CALL, 3, 0, struct.pack("<8Q", 7, 1, 2, 3, 3, 0, 0, 0)))
    yield "put", piece(200, peer_frame(WINDOW, 2, 1, b"12345678", word=8, dtype=1))
    yield "put_outside", piece(200, peer_frame(WINDOW, 2, 1, b"12345678", word=60, dtype=1))
    yield "get", piece(200, peer_frame(WINDOW, 2, 1, word=8, dtype=2, last=16))
    yield "get_outside", piece(200, peer_frame(WINDOW, 2, 1, word=1 << 63, dtype=2, last=1 << 63))
    yield "signal", piece(200, peer_frame(WINDOW, 2, 1, dtype=3) + peer_frame(WINDOW, 2, 1, dtype=4))
    yield "no_window", piece(200, peer_frame(WINDOW, 2, 9, dtype=3))
    yield "signals", piece(200, peer_frame(WINDOW, 2, 1, dtype=3) * 3)
    yield "put_in_part", piece(200, peer_frame(WINDOW, 2, 1, b"1234", word=8, dtype=1, size=40))
    yield "get_clogged", piece(5, peer_frame(WINDOW, 2, 1, dtype=2, last=16) * 2)
    yield "get_broken", piece(33, peer_frame(WINDOW, 2, 1, dtype=2, last=16))
    yield "held_get", piece(12, peer_frame(WINDOW, 2, 1, dtype=2, last=16) * 8)
    yield "held_messages", piece(44, peer_frame(P2P, 1, 77, b"x" * 900) * 5)
    yield "wanted_meanwhile", piece(15, peer_frame(REPLY, 2, 1, bytes(16)) + message)
    yield "refused_meanwhile", piece(15, peer_frame(REPLY, 2, 1, bytes(90)) + message)
    yield "dropped_meanwhile", piece(200, peer_frame(P2P, 1, 77, b"half", size=99))
    yield "kept_of_another_call", piece(200, peer_frame(COLLECTIVE, 3, 1, bytes(8), word=6) + peer_frame(COLLECTIVE, 3, 1, bytes(8), word=5))
    yield "in_doubt", piece(200, peer_frame(COLLECTIVE, 3, 0, bytes(8), word=7) * 3)
    yield "ends", piece(3, message)
    yield "fails", piece(13, message)
    yield "not_known", piece(7, message)
    yield "zeros", piece(251, peer_frame(P2P, 1, 9, b"few", size=8 << 20))
    yield "too_many_zeros", piece(252, peer_frame(P2P, 1, 9, b"few", size=8 << 20))
    yield "huge", piece(200, peer_frame(P2P, 1, 9, b"few", size=1 << 45))
    yield "too_huge", piece(200, peer_frame(P2P, 1, 9, b"few", size=1 << 47))


def carried():
    """Steps: 0 bytes of the connection, 1 and 2 a parcel behind its token, lent or not, 3 a parcel as it is, 4 read, 5 write, ..."""
    token = b"\x88" * 16

    def card(name=b"loop", version=2, size=64, window=1 << 20, address=b"there"):
        return b"TUTC" + u16(version) + u16(size) + u32(len(address)) + u32(window) + token + name.ljust(32, b"\0") + address

    def word(what, number):
        return u32(what) + u32(0) + u64(number)

    def parcel(number, data=b"", kind=1, taken=0, rank=1, version=1):
        return u32(rank) + u16(version) + u16(kind) + u64(number) + u64(taken) + data

    def heard(data):
        return u8(0) + sized(data)

    def lent(data):
        return u8(1) + sized(data)

    def copied(data):
        return u8(2) + sized(data)

    read, write, look, told, late, broken, ended = u8(4) + u16(1000), u8(5) + u16(200), u8(6), u8(7), u8(8), u8(19), u8(129)
    met = heard(card())
    yield "meets", met + write + look + read
    yield "meets_in_pieces", b"".join(heard(card()[i:i + 7]) for i in range(0, len(card()), 7)) + write
    for name, wrong in (("name", card(name=b"other")), ("version", card(version=1)), ("window", card(window=7)), ("address", card(address=b"")),
                        ("unreachable", card(address=b"X"))):
        yield "card_" + name, heard(wrong) + read + write
    yield "in_order", met + lent(parcel(0, b"first")) + copied(parcel(1, b"second")) + read + read
    yield "large_and_lent", met + lent(parcel(0, bytes(4096))) + lent(parcel(2, bytes(5000))) + read * 6
    yield "out_of_order", met + lent(parcel(2, b"third")) + copied(parcel(1, b"second")) + read + lent(parcel(0, b"first")) + look + read * 3
    yield "before_its_card", lent(parcel(0, b"early")) + read + met + read
    yield "twice", met + lent(parcel(1, b"x")) + lent(parcel(1, b"x")) + read
    yield "old_number", met + lent(parcel(0, b"x")) + read + lent(parcel(0, b"x")) + read
    yield "empty", met + lent(parcel(0)) + read
    yield "taken", met + late + write * 400 + copied(parcel(0, b"", 2, 3241)) + told + write + copied(parcel(0, b"", 2, 1 << 60)) + read
    yield "strangers", met + u8(3) + sized(b"\0" * 16 + parcel(0, b"x")) + u8(3) + sized(b"short") + lent(parcel(0, b"x", rank=2)) + lent(parcel(0, b"x", rank=77)) + read
    yield "ends", met + lent(parcel(0, b"last")) + heard(word(1, 1)) + read + read
    yield "ends_early", met + heard(word(1, 2)) + lent(parcel(0, b"first")) + read + lent(parcel(1, b"last")) + read * 3
    yield "ends_twice", met + heard(word(1, 0)) + heard(word(1, 5)) + read
    yield "is_cut", met + lent(parcel(0, b"x")) + ended + read * 3
    yield "is_broken", met + lent(parcel(0, b"x")) + broken + read * 3 + write
    yield "word_of_nothing", met + heard(word(9, 9)) + read


def health():
    def digest(kind, stamps=(), words=(), deeds=()):
        records = [u32(r) + u32(0) + u64(v) for part in (stamps, words, deeds) for r, v in part]
        return (u32(0x74616562) + u16(1) + u16(kind) + u32(len(stamps)) + u32(len(words)) + u32(len(deeds)) + u32(0) + b"".join(records))
    said = lambda ms, life, detail=0: ms << 24 | life << 20 | detail
    yield "beat", digest(1, [(2, 1000), (4, 1000)])
    yield "dead", digest(1, [(2, 1000)], [(3, said(900, 6, 2 << 16 | 9))], [(3, 3 << 56 | 4)])
    yield "all_lives", b"".join(digest(1, [(4, 100 + life)], [(4, said(100, life)), (5, said(100, life, 20))]) for life in range(8))
    yield "goodbye", digest(1, [(2, 5)]) + digest(2)
    yield "hang_up", digest(3)
    yield "many", digest(1, [(r, 7) for r in range(8)], [(r, said(7, 1)) for r in range(8)], [(r, 1 << 56) for r in range(8)])
    yield "cut_off", digest(1, [(2, 1000)])[:-1]


def cards():
    yield "honest", b"\0\0\0\0"
    yield "one_is_missing", b"\0\0\xff\0"
    yield "changed", b"\1" + u16(40) + b"x" + b"\0\2" + u16(8) + b"\7" + u16(4) + b"\1" + b"\0"
    yield "raw", b"\xf0" + bytes(280) + b"\0\0\0"
    yield "short", b"\xfe" + bytes(100)
    changed = lambda rank, at, to, behind: b"\0" * rank + b"\1" + u16(at) + u8(to) + b"\0" * (3 - rank) + bytes(behind)
    for behind in range(14):  # the size says who is said to have ended
        yield f"missing_{behind}", b"\0\0\xff\xff" + bytes(behind)
    for at, what in ((0, "magic"), (4, "version"), (8, "rank"), (12, "size"), (132, "name"), (264, "family")):
        yield f"other_{what}", changed(0, at, 9, 0)
    yield "been_here", bytes(60)
    yield "trouble", b"\xff\0\0\0" + i32(4) + b"rank 2: no memory"

    def together(how, notes, changes=b""):  # the size says that a host reads together
        said = bytes(4) + u8(how) + changes + notes
        return said + bytes((4 - len(said)) % 5)
    yield "clerk_done", together(0, u8(1) + u8(2) + u8(2) + u8(0))
    yield "clerk_alone", together(2, u8(3) + u8(0))
    yield "clerk_is_this_rank", together(1, u8(2) + u8(0))
    yield "clerk_none", together(0xf0, b"")
    yield "clerk_short", together(0xf9, b"")
    yield "clerk_other_hint", together(4, u8(2) + u8(0), u16(20) + u8(9))


def joining():
    claim = lambda pid, host=b"host": i64(pid) + u64(4026531836) + b"boot".ljust(40, b"\0") + host.ljust(64, b"\0") + bytes(16)
    yield "nobody", b""
    yield "open", u8(0x84) + u8(0x85)
    yield "taken", u8(0x84) + u8(0x85) + u8(3) + claim(1)
    yield "taken_by_0", u8(2) + claim(99999999)
    yield "used_up", u8(0x84) + u8(0x23) + claim(2) + u8(0x22) + claim(2)
    yield "dead", u8(0x84) + u8(0x23) + claim(999999999) + u8(0x22) + claim(999999999)
    yield "over", u8(4) + sized(b"over") + u8(0x85)
    yield "another_size", u8(4) + sized(b"3")
    yield "damaged", u8(0x84) + u8(3) + claim(-1) + u8(1) + sized(b"no claim")
    yield "the_last_number", u8(0xc5) + u64((1 << 63) - 1) + u8(0x42) + u64((1 << 63) - 1) + claim(1)
    yield "no_number", u8(5) + sized(b"many")
    for who in (0x02, 0x0c, 0x0e):
        yield f"gone_{who:02x}", u8(who)
        yield f"gone_{who:02x}_open", u8(0x84) + u8(0x85) + u8(0x22) + claim(99999999)[:-1] + u8(who)
    yield "another_backend", u8(4) + sized(b"4 cpu:nccl") + u8(0x85)
    yield "this_process", u8(0x84) + u8(0x22) + claim(2) + u8(0x85)


def agreement():
    def said(rank, kind, status=0, ballot=0, accepted=0, origin=0, place=b"", words=b"", value=b"", has_list=0):
        return (u8(rank << 4 | 7) + u8(has_list << 7 | kind) + u32(status) + u64(ballot) + u64(accepted) + u64(origin) +
                place.ljust(320, b"\0") + words.ljust(512, b"\0") + value.ljust(2, b"\0"))
    tick = lambda n: u8(0) + u8(n)
    came = lambda rank: u8(rank << 4 | 2)
    gone = lambda rank: u8(rank << 4 | 4)
    built, failed = u8(5), u8(0x85)
    join, prepare, promise, busy, propose, accept, reject, commit, refuse, alive = range(1, 11)
    ballot = 1 << 16 | 0
    own = 1 << 16 | 2
    yield "follow", (u8(0) + came(0) + said(0, prepare, ballot=ballot) +
                     said(0, propose, ballot=ballot, origin=ballot, place=b"tcp 127.0.0.1 4711 0", value=b"\x1d") + built +
                     said(0, commit, origin=ballot, value=b"\x1d"))
    yield "lead", (u8(0) + gone(0) + gone(1) + came(3) + came(4) + tick(40) + said(3, promise, ballot=own) + said(4, promise, ballot=own) +
                   built + said(3, accept, ballot=own) + said(4, accept, ballot=own))
    yield "lead_in_vain", (u8(0) + gone(0) + gone(1) + came(3) + came(4) + tick(40) + said(3, promise, ballot=own) +
                           said(4, promise, ballot=own) + failed + said(3, reject, 4, own, words=b"cannot") + tick(100) + tick(100))
    yield "recover", (u8(0) + gone(0) + gone(1) + came(3) + came(4) + tick(40) + said(3, promise, ballot=own, accepted=65537, origin=65536, value=b"\x1c") +
                      said(4, promise, ballot=own) + said(3, accept, ballot=own) + said(4, accept, ballot=own))
    yield "refused", u8(0) + came(0) + said(0, refuse, 4, ballot, words=b"too few")
    yield "busy", u8(0) + gone(0) + gone(1) + came(3) + came(4) + tick(40) + said(3, busy, ballot=own, accepted=9 << 16) + tick(60)
    yield "listed", u8(2) + came(0) + came(1) + said(1, join) + said(0, promise, has_list=1) + came(3) + came(4) + said(0, alive)
    yield "minority", u8(1) + gone(0) + gone(1) + gone(3) + came(4) + tick(40) + said(4, promise, ballot=own) + built
    yield "expires", u8(0) + b"".join(tick(255) for _ in range(4))
    yield "raw", u8(0) + u8(6) + sized(u32(0x65657267) + u16(1) + bytes(20))


def assembly():
    comes = lambda rank, tcp=0, strange=0: u8((tcp | strange << 1 | rank << 2) << 3)
    says = lambda conn, data: u8(1 | conn << 3) + sized(data)
    message = lambda conn, data=b"": u8(2 | conn << 3) + data.ljust(24, b".")
    ends = lambda conn, how=0: u8(3 | conn << 3) + u8(how)
    sends = lambda rank: u8(4 | rank << 3)
    waits = lambda n=1, halves=0: u8(5 | halves << 3) * n
    manner = lambda rank, how: u8(6 | (rank + 4 * how) << 3)
    reaches = lambda *ranks: u8(7 | sum(4 << r for r in ranks) << 3)
    short_of_files = u8(7 | 3 << 3)
    for name, flags in (("", 0), ("_sealed", 1), ("_local", 2)):
        none, all_of_them = u8(flags), u8(flags | 0xd << 2)
        yield "comers" + name, none + comes(0) + comes(2, 1) + comes(3, 1) + waits(6) + message(0) + message(1) + says(2, b"half") + waits() + ends(0) + ends(1, 1)
        yield "strangers" + name, none + comes(7) + comes(1, 1) + comes(0, 1, 1) + says(2, b"GET / HTTP/1.1") + waits(5) + ends(2)
        yield "ways" + name, all_of_them + sends(0) + waits(6) + sends(0) + sends(2) + sends(3) + waits(4) + ends(0) + ends(1, 1) + waits(5)
        yield "refused" + name, u8(flags | 8 << 2) + manner(3, 3) + manner(0, 1) + manner(2, 2) + reaches(0, 2) + waits(9, 1) + comes(0) + waits(4)
        yield "gone" + name, u8(flags) + comes(0, 1) + waits(6) + manner(0, 1) + reaches(0) + waits(3) + message(0) + waits(3) + ends(0) + waits(3) + sends(0)
    yield "breaks_when_sent_to", u8(0xd << 2) + sends(0) + sends(0) + sends(2) + waits(9)
    yield "too_many", u8(0) + comes(0, 1, 1) * 90 + waits(3) + waits(1, 31)
    yield "crowds", u8(0) + comes(7, 1, 1) * 3 + waits(9) + comes(2) + comes(7, 0, 1) * 2 + comes(3, 1) + waits(9) + message(0) + waits(4, 31)
    yield "no_files", u8(0) + short_of_files + comes(0) + comes(2, 1) + waits(8)
    yield "strange_ways", u8(0xd << 2) + manner(0, 4) + manner(2, 4) + waits(3) + says(0, bytes(104)) + says(1, b"TUTI") + waits(3) + ends(0) + waits(4, 3)


def meet_signs():
    ask, give = 1, 2
    told = lambda what, ranks=(), more=0: u8(0) + u8(what | len(ranks) << 2 | more) + bytes(ranks).ljust(8, b"\0")
    yield "office", u8(0)
    yield "office_of_many", u8(2)
    yield "office_few_files", u8(4)
    yield "office_refused", u8(0) + b"\0\0\0\xf8\xf9\0\xfa"
    yield "office_late", u8(0) + b"\xf0\xfe"
    for how, name in ((0xd1, "no_heap"), (0xd3, "nothing"), (0xd5, "another_heap"), (0xf1, "end"), (0xf2, "no_files"), (0xf3, "too_many"), (0xf4, "reset"), (0xef, "part")):
        yield "office_" + name, u8(0) + u8(how) * 9
        yield "office_then_" + name, u8(0) + bytes(3) + u8(how) * 9
        yield "visitor_" + name, u8(1) + told(ask) + u8(how)
    yield "office_told_something_else", u8(0) + u8(0xe0) + told(give, (2,))[1:] + u8(0xe0) + told(3)[1:]
    yield "office_asked", u8(0) + bytes(3) + u8(0xe0) + told(give, (1,))[1:]
    yield "visitor", u8(1) + told(ask) + told(give, (0, 2, 3))
    yield "visitor_one_by_one", u8(5) + told(give, (0,)) + told(give, (2,)) + told(ask) + told(give, (3,))
    yield "visitor_of_many", u8(3) + told(ask) + told(give, (0, 2, 3, 4, 5)) + told(give, (6, 7)) + told(ask)
    yield "visitor_twice", u8(1) + told(give, (2,)) + told(give, (2,))
    yield "visitor_itself", u8(1) + told(give, (0, 1))
    yield "visitor_elsewhere", u8(9) + told(give, (3,))
    yield "visitor_nonsense", u8(1) + told(3) + told(0)
    yield "visitor_other_descriptors", u8(1) + told(give, (0, 2), 0x80) + u8(8) + u8(1)
    yield "visitor_few_descriptors", u8(1) + told(give, (0, 2), 0x80) + u8(5) + u8(0)
    yield "visitor_large_numbers", u8(1) + u8(0) + u8(give | 0x60) + u32(1 << 31) + u32(0xffffffff) * 8


# ---- texts ----

def addresses():
    for i, text in enumerate((
            "10.0.0.1", "::1", "fe80::1%2", "::ffff:127.0.0.1", "10.0.0.1:29500", "[fe80::1%3]:80", "localhost:0", "::1:80", "host:",
            "env://", "env://?rank=1&world_size=2", "tcp://127.0.0.1:29500?rank=0&world_size=4", "tcp://[::1]:0/", "file:///tmp/x?rank=3&world_size=9",
            "torch-tcp://h:1?use_libuv=0", "tcp://h:99999", "etcd://h:1", "tcp://h:1?rank=1&rank=2", "n[01-04,7],m3", "rack[1-3]host", "n1,n2",
            "a" * 300 + ":1", "file:///" + "p" * 4200, "tcp://h:1?world_size=1048577")):
        yield f"{i:02}", text.encode()


def environment():
    for name, lines in {
            "torchrun": ("RANK=1", "WORLD_SIZE=4", "LOCAL_RANK=1", "MASTER_ADDR=10.0.0.1", "MASTER_PORT=29500", "TORCHELASTIC_USE_AGENT_STORE=True"),
            "slurm": ("SLURM_PROCID=3", "SLURM_NTASKS=8", "SLURM_LOCALID=1", "SLURM_STEP_ID=0", "SLURM_JOB_ID=77", "SLURMD_NODENAME=n02",
                      "SLURM_STEP_NUM_NODES=2", "SLURM_STEP_NODELIST=n[01-04,7],m3"),
            "slurm_alone": ("SLURM_PROCID=0", "SLURM_NTASKS=1", "SLURM_STEP_ID=0"),
            "openmpi": ("OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_RANK=0", "OMPI_COMM_WORLD_LOCAL_SIZE=2",
                        "PMIX_NAMESPACE=prterun-1"),
            "pmi": ("PMI_RANK=1", "PMI_SIZE=2", "PMI_FD=4", "MPI_LOCALNRANKS=2"),
            "pmi_lost": ("PMI_RANK=1", "PMI_SIZE=2", "PMI_FD=6", "MPI_LOCALNRANKS=1"),
            "slurm_place": ("SLURM_PROCID=0", "SLURM_NTASKS=2", "SLURM_STEP_ID=0", "SLURMD_NODENAME=n3", "SLURM_JOB_NODELIST=n[3"),
            "slurm_apart": ("SLURM_PROCID=1", "SLURM_NTASKS=3", "SLURM_STEP_ID=0", "SLURMD_NODENAME=n1", "SLURM_GTIDS=1,2", "SLURM_STEP_NODELIST=n[1-2]"),
            "pmix": ("PMIX_RANK=1", "SLURM_JOB_ID=9"),
            "half": ("PMI_RANK=1",),
            "contradiction": ("SLURM_PROCID=3", "SLURM_NTASKS=8", "SLURM_STEP_ID=0", "PMI_SIZE=8", "PMI_RANK=4"),
            "places": ("TUTTI_SOCKET_IFNAME=^docker,lo,eth", "TUTTI_PORT_RANGE=20000-20049", "TUTTI_LISTEN=any", "TUTTI_ADVERTISE=10.0.0.1"),
            "names": ("TUTTI_SOCKET_IFNAME==eth0,=ib0", "GLOO_SOCKET_IFNAME=eth0"),
            "address": ("TUTTI_SOCKET_IFNAME=10.0.0.7",),
            "numbers": ("TUTTI_TIMEOUT_MS=-1", "TUTTI_HEARTBEAT_MS=100", "TUTTI_SILENT_MS=60000", "TUTTI_OBJECT_MAX=1e9", "TUTTI_TCP_STRIPES=8",
                        "TUTTI_REPRODUCIBLE=yes"),
            "unknown": ("TUTTI_TIMEOUT=1", "TUTTI_SOCKET_IFNAMES=x", "TUTTI_TEST_X=1"),
            "by_number": ("0=1", "1=2", "4=h", "5=1"),
    }.items():
        yield name, "\n".join(lines).encode()
    yield "replacement", b"RANK=1\nWORLD_SIZE=4\nTUTTI_REPLACEMENT=2"
    yield "two_sizes", b"PMI_RANK=0\nPMI_SIZE=2\nWORLD_SIZE=3"
    yield "alone", b"PMI_RANK=0\nPMI_SIZE=1\nMASTER_ADDR=" + b"h" * 300
    yield "alone_anywhere", b"PMI_RANK=0\nPMI_SIZE=1\nMASTER_ADDR=h"
    yield "many_interfaces", b"TUTTI_SOCKET_IFNAME=" + b"a," * 70
    yield "short_url", "\n".join(["X"] * 32 + ["tcp://h:1?rank=0"]).encode()
    yield "urls", "\n".join(["RANK=1", "WORLD_SIZE=4"] + ["X"] * 31 + ["tcp://h:1?rank=0&world_size=4"]).encode()


def secret_file():
    digits = b"0123456789abcdef" * 4
    yield "sound", u8(32) + digits
    yield "named", u8(2) + digits.upper() + b"\n"
    yield "open_to_others", u8(33) + digits
    yield "two_newlines", u8(32) + digits + b"\n\n"
    yield "short", u8(32) + digits[:-1]
    yield "no_hex", u8(32) + b"g" * 64
    yield "none_wanted", u8(4)
    yield "none_there", u8(16)
    yield "nonsense", u8(12) + digits
    for place in range(4):
        yield f"place_{place}", u8(64 | 32) + u8(place << 4) + digits
    for tls in range(4):
        for named in (0, 1, 3):
            yield f"tls_{tls}_{named}", u8(64 | (32 if named else 16)) + u8(tls | named << 2) + digits
    for whose in (0x00, 0x01, 0x80, 0xc0):
        yield f"user_{whose:02x}", u8(64) + u8(whose)
    yield "user_from_afar", u8(64) + u8(0x3f)
    yield "user_none_wanted", u8(64 | 4) + u8(0)


def msgpack():
    for name, text in {
            "nil": "c0", "numbers": "98 00 7f ff e0 cc80 cd8000 ce80000000 cf8000000000000000", "signed": "94 d080 d18000 d280000000 d38000000000000000",
            "floats": "92 ca3f800000 cb3ff0000000000000", "strings": "94 a3616263 d903616263 da0003616263 db00000003616263",
            "bytes": "93 c403616263 c50003616263 c600000003616263", "map": "82 a16101 a16290", "lists": "93 dc000101 dd0000000102 de000101 02 df00000001 0304"[:-2],
            "ext": "98 d401ff d5010102 d60101020304 d7010102030405060708 d801" + "00" * 16 + "c70301616263 c8000301616263 c90000000301616263",
            "deep": "91" * 31 + "c0", "too_deep": "91" * 40 + "c0", "claims": "ddffffffff", "claims_map": "dfffffffff", "claims_string": "dbffffffff", "nothing": "c1",
            "bools": "92 c2 c3"}.items():
        yield name, bytes.fromhex(text)


def tune():
    row = {"op": "all_reduce", "algorithm": "one_phase", "bytes": [0, 16384], "ranks": [2, 4], "hosts": "one"}
    yield "two_rows", json.dumps({"tutti_tune": 1, "rows": [row, {"op": "all_reduce", "algorithm": "ring", "bytes": [16385, None], "ranks": 4}]},
                                 indent=1).encode()
    yield "wish", b"all_reduce=ring,broadcast=tree"
    yield "wishes", b"all_reduce=sliced,all_to_all=direct,barrier=rung"
    yield "none", b'{"tutti_tune":1,"rows":[]}'
    yield "many_hosts", json.dumps({"tutti_tune": 1, "rows": [dict(row, algorithm="ring", hosts="many")]}).encode()
    yield "another_version", b'{"tutti_tune": 2, "rows": []}'
    yield "a_slip", json.dumps({"tutti_tune": 1, "rows": [dict(row, algoritm="ring")]}).encode()
    yield "no_such", json.dumps({"tutti_tune": 1, "rows": [dict(row, op="all_reduse"), dict(row, algorithm="rung")]}).encode()
    yield "a_wrong_range", json.dumps({"tutti_tune": 1, "rows": [dict(row, bytes=[5, 4])]}).encode()
    yield "no_json", b'{"tutti_tune": 1,\n "rows": [}'


def figures():
    far = {"message_us": 30, "post_us": 3, "send_ns_per_byte": 0.2, "recv_ns_per_byte": 0.2, "gbit_per_s": 10}
    whole = {"tutti_figures": 1, "host": {"line_ns": 100, "give_ns": 900, "copy_all_ns_per_byte": 0.15, "cache_bytes": 1048576}, "far": far,
             "local": {k: v for k, v in far.items() if k != "gbit_per_s"}}
    yield "whole", json.dumps(whole, indent=1).encode()
    yield "version_alone", b'{"tutti_figures":1}'
    yield "far_alone", json.dumps({"tutti_figures": 1, "far": dict(far, message_us=1e8, post_us=1e7)}).encode()
    yield "unknown", b'{"tutti_figures":1,"host":{"lines":1}}'
    yield "out_of_range", b'{"tutti_figures":1,"far":{"gbit_per_s":0}}'
    yield "no_object", b'[1,2,3]'


# ---- files ----

def idx():
    be = lambda *numbers: struct.pack(f">{len(numbers)}I", *numbers)
    labels = be(0x801, 5) + bytes([0, 1, 9, 3, 4])
    pictures = be(0x803, 2, 3, 4) + bytes(range(24))
    yield "labels", labels
    yield "pictures", pictures
    yield "labels_gz", gzip.compress(labels, mtime=0)
    yield "pictures_gz", gzip.compress(pictures, mtime=0)
    yield "truncated", pictures[:-1]
    yield "too_long", labels + b"\0"
    yield "two_members", gzip.compress(labels, mtime=0) * 2
    yield "a_wrong_label", labels[:-1] + b"\12"
    yield "claims", be(0x803, 1 << 24, 4096, 4096)
    yield "claims_gz", gzip.compress(be(0x803, 1 << 20, 100, 100) + bytes(5000), mtime=0)


def safetensors():
    def file(header, data=b"", pad=True):
        text = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8 if pad else 0)
        return u64(len(text)) + text + data
    tensor = lambda dtype, shape, begin, end: {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    yield "empty", file({})
    yield "one", file({"a": tensor("F32", [2, 2], 0, 16)}, bytes(16))
    yield "several", file({"__metadata__": {"format": "pt", "tied": "a"}, "a": tensor("F32", [2], 0, 8), "b.c": tensor("I64", [], 8, 16),
                           "z": tensor("U8", [0, 4], 16, 16), "h": tensor("F16", [3], 16, 22)}, bytes(range(22)))
    yield "unaligned", file({"a": tensor("F32", [1], 1, 5), "b": tensor("U8", [1], 0, 1)}, bytes(5), pad=False)
    yield "four_bits", file({"a": tensor("F4", [4], 0, 2)}, bytes(2))
    yield "a_gap", file({"a": tensor("U8", [1], 1, 2)}, bytes(2))
    yield "overlap", file({"a": tensor("U8", [2], 0, 2), "b": tensor("U8", [2], 1, 3)}, bytes(3))
    yield "overflow", file({"a": tensor("F32", [1 << 40, 1 << 40], 0, 4)}, bytes(4))
    yield "many_dimensions", file({"a": tensor("U8", [1] * 20, 0, 1)}, bytes(1))
    yield "twice", file(b'{"a":{},"a":{}}')
    yield "claims", u64(1 << 40) + b"{}"
    yield "no_words", file({"__metadata__": {"a": 1}})


HEAD = struct.Struct("<8sIIQQQQQIIIIIIIIqQii64s64s64s40sQqqQQqQQQQQ1024s")
MASK = (1 << 64) - 1


def recorder_image(records=(), groups=(), names=(), ranks=(), record_count=8, group_count=2, name_count=2, rank_count=8, saved=None, **other):
    """As tutti/recorder.h lays it out."""
    group = struct.Struct("<QIIiiiiQQQQQQ64s64s32s64s" + ("QIIQ" if groups and len(groups[0]) > 17 else ""))  # without: as older ones had it
    name = struct.Struct("<QQQQ64s")
    slot = struct.Struct("<16Q")
    behind = struct.Struct("<qQQQ"[:1 + len(saved or ())])  # in files of writers that are not old
    head_bytes = HEAD.size + behind.size
    groups_at = (head_bytes + 7) // 8 * 8
    names_at = groups_at + group.size * group_count
    ranks_at = names_at + name.size * name_count
    records_at = ranks_at + 4 * rank_count
    total = records_at + slot.size * record_count
    made = bytearray(total)
    fields = dict(magic=b"tuttirec", version=1, head_bytes=head_bytes, total_bytes=total, records_at=records_at, groups_at=groups_at,
                  names_at=names_at, ranks_at=ranks_at, record_bytes=slot.size, record_count=record_count, group_bytes=group.size,
                  group_count=group_count, name_bytes=name.size, name_count=name_count, rank_count=rank_count, clock=1, pid=1, pid_began=2,
                  rank=0, world_size=4, job=b"job", host=b"host", program=b"program", boot=b"boot", ticks_first=1000, mono_first_ns=1000,
                  real_first_ns=5000, last_turn=2, ticks_last=9000, mono_last_ns=9000, use=1, issued=8, failures=1, dumps=0, failed_id=1,
                  failed_words=b"it failed\nnext: look")
    fields.update(other)
    HEAD.pack_into(made, 0, *fields.values())
    if saved:
        behind.pack_into(made, HEAD.size, *saved)
    for i, g in enumerate(groups):
        group.pack_into(made, groups_at + i * group.size, *g)
    for i, n in enumerate(names):
        name.pack_into(made, names_at + i * name.size, *n)
    struct.pack_into(f"<{len(ranks)}i", made, ranks_at, *ranks)
    for r in records:
        slot.pack_into(made, records_at + (r[0] - 1) % record_count * slot.size, *r)
    return bytes(made)


def record(ident, kind=2, group=0, name=0, dtype=1, op=0, seq=3, place=0, count=16, began=2000, ended=3000, ran=2500, state=3, flags=0,
           status=0, more=(64, 64, 7, 2, 500)):
    call = kind | dtype << 8 | op << 16 | group << 32 | name << 48
    x = ident ^ call ^ seq ^ place ^ count ^ began
    x ^= x >> 32
    check = (x ^ x >> 16) & 0xffff
    return (ident, (ident << 32 | flags << 16 | status << 8 | state) & MASK, call, check << 48 | seq, place, count, began, ended, ran, *more, 0, 0)


def recorder():
    world = (2, 0, 1, 0, 4, 0, -1, 1, 500, 8, 8, 7, 2, b"0", b"default_pg", b"native", b"w")
    other = (4, 1, 3, 1, 2, 0, 2, 2, 600, 1, 1, 1, 0, b"1", b"", b"native", b"w")
    names = ((1, 0, 0, 0, b"loss"), (1, 3, 5000, 4000, b"forward"))
    ranks = (0, 1, 0, 3, 0, 0, 0, 0)
    some = [record(1, state=4, status=4), record(2, kind=1, flags=1 | 2), record(3, kind=32, place=2 | 7 << 32, flags=4, group=1),
            record(4, kind=33, place=1, flags=8), record(5, kind=64, name=2), record(6, flags=16, name=1), record(7, state=2), record(8, kind=8, state=1)]
    yield "empty", recorder_image()
    yield "some", recorder_image(some, (world, other), names, ranks)
    yield "counter", recorder_image(some, (world, other), names, ranks, clock=2)
    yield "bad_bounds", recorder_image(records_at=1 << 60)
    yield "bad_count", recorder_image(rank_count=7)
    yield "bad_text", recorder_image(some[:2], ((world[:13] + (b"\xff\x1b[2J" * 12, b"\xe2\x82", b"n", b"w")),), names, ranks)
    yield "bad_ranks", recorder_image(some[:2], (world[:6] + (7,) + world[7:],), names, ranks)
    yield "cut_off", recorder_image(some)[:2500]
    kinds = [record(i, kind=i, place=2, more=(0, 0, 0, 0, 0)) for i in range(1, 12)] + [record(i + 12, kind=32 + i, place=1) for i in range(4)]
    both = (world, world[:1] + (1, 1, 1) + world[4:])
    yield "kinds", recorder_image(kinds, both, names, ranks, record_count=16)
    yield "kinds_of_a_root", recorder_image([record(r + 1, kind=k, place=1) for r, k in enumerate((3, 4, 6, 7, 40, 41, 44, 35))], both, names, ranks)
    saved = (9500, 9500, ord("S"), 0)
    for life in range(1, 16, 2):
        yield f"alive_{life}", recorder_image(some, both, names, ranks, saved=saved, boot=b"here", pid=7, pid_began=life, clock=1 + life // 2 % 2) + u8(0)
    yield "gone", recorder_image(some, both, names, ranks, saved=saved, boot=b"here", pid=7) + u8(0)
    yield "of_another_boot", recorder_image(some, both, names, ranks, saved=saved) + u8(0)
    yield "of_an_old_writer", recorder_image(some, both, names, ranks) + u8(0)
    for n in (*range(1, 16), 25, 40, 70, 100, 128, 150, 200, 250):
        yield f"fails_{n}", recorder_image(some, both, names, ranks, saved=saved)[:-1] + u8(n)
        yield f"memory_fails_{n}", recorder_image(some, both, names, ranks, saved=saved, boot=b"here", pid=7, pid_began=1) + u8(n)


def jobs_of_several_worlds():
    """What a world leaves behind that another one took the place of."""
    def world(number, ident, generation, size, place, follows=0, there=1, name=b"0", ranks_at=-1, count=8):
        return (2, number, there, place, size, place, ranks_at, 1, 500, count, count, count - 1, 2, name, b"default_pg", b"native", b"w%d" % ident, ident,
                generation, size, follows)
    def rank(n, groups, *records, **other):
        return sized(recorder_image(records, groups, ((1, 3, 5000, 4000, b"forward"),), (0, 2, 0, 0, 0, 0, 0, 0), pid=100 + n, rank=n, world_size=3,
                                    issued=8, group_count=4, **other))
    done = record(1, seq=1, began=1500, ended=1800)
    stuck = lambda group=0, kind=2, **more: record(2, kind=kind, group=group, seq=2, state=2, ended=0, **more)
    old, new = (lambda n, there=1: world(0, 11, 1, 3, n, there=there)), (lambda n: world(0, 12, 2, 2, n, follows=11))
    pair = lambda n: world(1, 11, 1, 2, n, name=b"1", ranks_at=0)
    yield "regrouped", rank(0, (old(0, 0), new(0)), done, stuck(1)) + rank(1, (old(1, 0), new(1)), done) + rank(2, (old(2),), done, stuck())
    yield "left_behind", rank(0, (new(0),), stuck()) + rank(1, (new(1),), stuck()) + rank(2, (old(2),), done, record(2, kind=33, seq=1, place=1, state=2, ended=0))
    yield "subgroups", rank(0, (old(0), pair(0)), done, stuck(1)) + rank(1, (old(1),), done, stuck()) + rank(2, (old(2), pair(1)), done, stuck())
    yield "elsewhere", rank(0, (old(0), world(0, 13, 1, 2, 0)), done, stuck(1)) + rank(1, (old(1),), done, stuck()) + rank(2, (old(2),), stuck())
    yield "failed", rank(0, (old(0),), record(2, seq=2, state=4, status=7, flags=8)) + rank(1, (old(1),), done, stuck()) + rank(2, (old(2),))
    yield "messages", (rank(0, (old(0),), *(record(i, kind=32, seq=i, place=2 | 7 << 32, began=1000 + i, ended=1100 + i) for i in range(1, 6)), stuck(kind=32, place=3)) +
                       rank(1, (old(1),), *(record(i, kind=33, seq=i, place=1 | 7 << 32, began=1000 + i, ended=1200 + i) for i in range(1, 6))) +
                       rank(2, (old(2),), record(3, kind=33, seq=1, place=0, state=2, ended=0)))
    yield "destroyed", rank(0, (old(0, 0),), done) + rank(1, (old(1),), done, stuck()) + rank(2, (old(2),), done, stuck(), use=2)
    yield "other_calls", rank(0, (old(0),), stuck(kind=2)) + rank(1, (old(1),), stuck(kind=3, count=5)) + rank(2, (old(2),), stuck(kind=2, dtype=5))
    yield "never_done", rank(0, (old(0),), record(1, seq=1, state=1, began=0, ended=0)) + rank(1, ()) + rank(2, (old(2),))
    yield "no_recorder", sized(b'{"version": 1}') + rank(1, (old(1),), stuck()) + sized(b"")


def jobs(saved=None):
    def rank(n, *records, size=2, **other):
        world = (2, 0, 1, n, size, n, -1, 1, 500, 8, 8, 7, 2, b"0", b"default_pg", b"native", b"w")
        return sized(recorder_image(records, (world,), ((1, 3, 5000, 4000, b"forward"),), pid=100 + n, rank=n, world_size=size, issued=8, saved=saved, **other))
    done = record(1, kind=2, seq=1, began=1500, ended=1800)
    yield "one_is_missing", rank(0, done, record(2, kind=2, seq=2, state=2, ended=0)) + rank(1, done)
    yield "a_circle", (rank(0, done, record(2, kind=33, seq=1, place=2 | 7 << 32, state=2, ended=0)) +
                       rank(1, done, record(2, kind=33, seq=1, place=1 | 7 << 32, state=2, ended=0)))
    yield "a_message", (rank(0, done, record(2, kind=32, seq=1, place=2 | 7 << 32), record(5, kind=64, name=1)) +
                        rank(1, done, record(2, kind=33, seq=1, place=1 | 7 << 32)))
    yield "two_hosts", rank(0, done, record(2, kind=1, seq=2)) + rank(1, done, record(2, kind=1, seq=2), host=b"other", boot=b"other", mono_first_ns=1 << 50)
    yield "one_has_left", rank(0, done, record(2, kind=2, seq=2, state=2, ended=0)) + rank(1, done, use=2)
    yield "three", rank(0, done, size=3) + rank(1, done, size=3) + rank(2, done, record(2, kind=6, seq=2, state=2, ended=0, place=1), size=3)
    yield "the_same_twice", rank(0, done) + rank(0, done)
    yield "no_group", sized(recorder_image((record(1, group=9),), pid=1)) + sized(b"nothing")


def job_dumps():
    how = lambda alive, life, manner: u8(alive | life << 3 | manner << 6)
    for name, data in (*jobs(), *jobs_of_several_worlds()):
        yield name, how(0, 0, 0) + data
        yield name + "_alive", how(7, 2, 1) + data
        yield name + "_stopped", how(1, 3, 0) + data
        yield name + "_of_more", how(7, 1, 2) + data
    for name, data in (*jobs(), *jobs_of_several_worlds()):
        for life in range(8 if name in ("regrouped", "other_calls", "never_done", "one_is_missing", "no_group") else 0):
            yield f"{name}_life_{life}", how((5, 2, 6, 7)[life % 4], life, life % 4) + data
    for name, data in jobs(saved=(9500, 9500, ord("S"))):
        for life in range(8 if name in ("one_is_missing", "no_group") else 1):
            yield f"{name}_saved_{life}", how(0, life, 0) + data
            if name == "one_is_missing":
                yield f"{name}_live_{life}", how(3, life, 1 + life % 3) + data
                yield f"{name}_seen_{life}", how(1, life, 2) + data


TARGETS = (store_server, store_frames, store_client, torch_client, file_log, hello, peer_frames, carried, health, cards, joining, agreement, assembly, meet_signs, addresses, environment,
           secret_file, msgpack, recorder, job_dumps, tune, figures, idx, safetensors)


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "seeds"
    for target in TARGETS:
        folder = root / target.__name__
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in target():
            (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
