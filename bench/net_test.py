#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""net_test
Goal    Names of networks survive being read back; what a link has to carry is right; networks are never compared with
        each other; cells that a burst hides, that lose, or leave the link idle are named; a bare socket program gives right
        results. Between hosts: contenders are measured, the relay delays and is counted, a run is taken up, nothing is left behind.
Method  Rows made here; the built contenders, on loopback and, where the machine has namespaces, on hosts; tiny budgets.

usage: net_test.py --bin DIR [--contenders LIST]
"""
import argparse
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import types
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import links  # noqa: E402
import net_report  # noqa: E402
import peers_test  # noqa: E402
import report_test  # noqa: E402
import rows  # noqa: E402
import sim_check  # noqa: E402
from crew import Crew  # noqa: E402
from links import Link  # noqa: E402

MIB = 1 << 20
V_OPS = ("all_gather_v", "gather_v", "scatter_v", "all_to_all_v")
OPS = ("all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all", "gather", "scatter", "send_recv", "barrier")
LIMIT_S = 240
args = argparse.Namespace()


def read(path):
    with open(path, encoding="utf-8") as file:
        return rows.read(file)


def row(us, label="2x1 1G", **other):
    return report_test.row(us, label=label, **{"moved": other.get("bytes", 4096), **other})


def rate(mb_per_s, label="2x1 1G", number=0):
    return row(1e6, label, op="rate", contender="limit", form="bare", bytes=MIB, moved=mb_per_s * 10**6, round=number)


def pair(mine, theirs, label="2x1 1G", number=0, **other):
    return [row(mine, label, round=number, **other), row(theirs, label, round=number, contender="gloo", **other)]


class Links(unittest.TestCase):
    def test_a_name_is_read_back(self):
        for link in (Link(2, 1, 1), Link(4, 2, 10), Link(2, 1, 0), Link(2, 1, 1, 10), Link(2, 2, 1, 1, 0, 0.001),
                     Link(2, 1, 0, 0, 0, 0.01), Link(2, 1, 1, 10, 2)):
            self.assertEqual(Link.read(str(link)), link)
        self.assertEqual(str(Link(2, 2, 1, 10, 0, 0.001)), "2x2 1G 10ms 0.1%")

    def test_simulations_are_compared_with_them(self):
        measured = sim_check.measured_cells([row(7.0, str(Link(4, 2, 10))), row(9.0, str(Link(2, 1, 1, 10)))], "median_us")
        self.assertEqual([(cell.hosts, cell.per_host, cell.gbit, us) for (cell, _), us in measured.items()], [(4, 2, "10", 7.0)])

    def test_what_a_link_carries(self):
        self.assertAlmostEqual(Link(2, 1, 1).goodput() / 1e6, 125 * 1448 / 1514)
        self.assertGreaterEqual(Link(2, 1, 1).burst(), 64 << 10)

    def test_the_busiest_host(self):
        wire = net_report.wire_bytes
        self.assertEqual([wire("all_reduce", 1000, Link(h, 1)) for h in (2, 4)], [1000, 1500])
        self.assertEqual([wire("all_gather", 1000, Link(4, n)) for n in (1, 2)], [750, 750])
        self.assertEqual([wire(op, 1000, Link(4, 2)) for op in ("gather", "scatter")], [750, 750])
        self.assertEqual([wire("all_to_all", 1000, Link(4, n)) for n in (1, 2)], [750, 1500])
        # of three parts of 1, 2 and 3 sixths
        self.assertEqual([round(wire(op, 600, Link(3, 1))) for op in V_OPS], [500, 500, 500, 500])
        self.assertEqual(round(wire("all_to_all_v", 1000, Link(2, 2))), 1200)  # shares 3, 4 and 4, 1 of ten go to the other host
        self.assertEqual([wire("broadcast", 1000, Link(4, 2)), wire("barrier", 0, Link(4, 2))], [1000, 0])
        self.assertEqual([wire("send_recv", 1000, Link(2, n)) for n in (1, 2)], [1000, 0])


class Report(unittest.TestCase):
    def cells(self, *runs):
        return net_report.Cells(runs, "median_us")

    def goal(self, start, *runs):
        goal, = [g for g in net_report.all_goals(self.cells(*runs)) if g.what.startswith(start)]
        return goal.found, goal.reached, [str(c.label) for _, c in goal.missed]

    def test_goodput_is_that_of_the_round(self):
        size = 16 * MIB
        run = [rate(100), rate(50, number=1), row(size / 96, bytes=size), row(size / 48, bytes=size, round=1)]
        (share, _), = self.cells(run).goodputs()
        self.assertAlmostEqual(share, 0.96)
        run += [rate(100, "2x2 1G"), row(size / 90, "2x2 1G", bytes=size), row(9, "2x1 10G", bytes=size), rate(900, "2x1 10G")]
        self.assertEqual(self.goal("share of the goodput", run), ("1 of 2 cells", False, ["2x2 1G"]))

    def test_networks_are_not_confused(self):
        """Behind in one run on each of two networks is lost on neither."""
        slow, fast = [pair(12, 10, label) for label in ("2x1 1G", "4x1 1G")], [pair(10, 12, label) for label in ("2x1 1G", "4x1 1G")]
        self.assertEqual(self.goal("cells lost", slow[0] + fast[1], fast[0] + slow[1])[:2], ("0 of 2", True))
        self.assertEqual(self.goal("cells lost", slow[0] + fast[1], slow[0] + fast[1]), ("1 of 2", False, ["2x1 1G"]))

    def test_cells_without_room_have_a_mean_of_their_own(self):
        """Who is as fast as the link leaves nothing to win."""
        size = 64 * MIB
        full = [rate(100)] + pair(size / 100, size / 98, bytes=size)  # the peer fills the link
        some = pair(size / 80, size / 40, bytes=size // 2) + pair(10, 20, bytes=4096)  # it does not; only latency
        self.assertEqual([self.goal("the same where", run)[0] for run in (full + some, some)], ["2.00", "2.00"])
        self.assertEqual([g.what for g in net_report.all_goals(self.cells(full + some)) if "2 cells" in g.what],
                         ["the same where the best peer is not as fast as the link, geometric mean of 2 cells"])
        self.assertFalse([g for g in net_report.all_goals(self.cells(full)) if g.what.startswith("the same where")])

    def test_tiny_cells_stand_beside_bare_sockets(self):
        bare = {"contender": "limit", "form": "bare", "bytes": 4}
        run = [row(16, bytes=4), row(10, **bare), row(14, "4x1 1G", bytes=4), row(10, "4x1 1G", **bare)]
        self.assertEqual(self.goal("up to 64 B", run), ("1 of 2 cells", False, ["2x1 1G"]))

    def test_bare_sockets_are_no_rival(self):
        """Those with a process for each rank neither, nor are they what a tiny cell stands beside."""
        each = {"contender": "limit-each", "form": "bare", "bytes": 4}
        cell = {("tutti", "plain"): row(16, bytes=4), ("limit-each", "bare"): row(10, **each)}
        self.assertIsNone(rows.best_rival(cell, "median_us"))
        self.assertIsNone(rows.bare(cell, "bare", "median_us"))

    def test_bursts_hide_and_pages_say_so(self):
        run = [rate(100)] + pair(30, 20, bytes=4096) + pair(9e5, 1e6, bytes=64 * MIB)
        words = net_report.text(["x"], [run], {})
        self.assertIn("| 4 KiB | 30 | gloo | 20 | 1.50 | behind | latency only |", words)
        self.assertIn("| 64 MiB | 900,000 | gloo | 1,000,000 | 0.90 | won | 75% |", words)
        order = [words.index(w) for w in ("| 2x1 1G | 100.0 | - | 119.6 |", "Worst cell: all_reduce 4 KiB, 2x1 1G: 1.50 times",
                                          "| cells lost", "Cells behind the best peer in one run; these cells are:", "#### all_reduce")]
        self.assertEqual(order, sorted(order))
        self.assertIn("1.50  gloo", net_report.brief([run]))
        far = Link(2, 1, 1, 10)  # 1.2 MB are under way
        self.assertEqual([net_report.is_latency_only("broadcast", n * MIB, far) for n in (1, 2)], [True, False])
        script = net_report.script([run], "all_reduce", ["2x1 1G"], "x.svg")
        self.assertIn("title 'tutti'", script)
        self.assertIn("title 'link'", script)

    def test_what_iperf3_says(self):
        self.assertEqual(net_report.iperf_figures('{"end": {"sum_received": {"bytes": 1250, "seconds": 0.5}}}'), (1250, 5e5))
        self.assertIsNone(net_report.iperf_figures('{"end": {}, "error": "unable to connect"}'))


class SocketCrew(Crew):
    """Bare sockets on loopback."""
    kept = None

    def end(self, by_force=False):
        super().end(by_force)
        if self.kept is not None:
            self.kept.close()
            self.kept = None

    def launch(self, place, log):
        # each rank on an address of its own: then one port is enough, which nobody else is given while a socket that does not listen has it
        self.kept = socket.socket()
        self.kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.kept.bind(("", 0))
        port = self.kept.getsockname()[1]
        addresses = ",".join(f"127.0.0.{r + 1}:{port}" for r in range(self.ranks))
        for rank in range(self.ranks):
            env = self.environment(RANK=str(rank), WORLD_SIZE=str(self.ranks), BENCH_ADDRESSES=addresses)
            self.spawn([str(self.settings.bin / "contender_socket"), *place], env, log)


class Sockets(unittest.TestCase):
    def test_results_are_right(self):
        with tempfile.TemporaryDirectory() as folder:
            settings = types.SimpleNamespace(bin=args.bin, scratch=pathlib.Path(folder), stems=iter(range(99)), cell_limit=60)
            for ranks in (2, 3):
                crew = SocketCrew("socket", ranks, settings)
                try:
                    for op in OPS + V_OPS:
                        for size in (4, 4000, 300000):
                            said = crew.ask(f"{op} f32 {size} bare blocking warm 4 1 ordinary")
                            self.assertTrue(said.startswith("ok "), f"{op} {size} {ranks}: {said}")
                    self.assertTrue(crew.ask("all_reduce f32 300000 bare async warm 20 1 ordinary", "overlap").startswith("ok "))
                    self.assertTrue(crew.ask("all_reduce bf16 4 bare blocking warm 4 1 ordinary").startswith("cannot "))
                finally:
                    crew.end()


class Hosts(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.scratch = pathlib.Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)
        try:
            links.Network(Link(2, 1, 1)).close()
        except links.Refused as refused:
            self.skipTest(str(refused))

    def net(self, out, *more, script="net.py"):
        env = dict(os.environ, TMPDIR=str(self.scratch))
        words = [sys.executable, "-B", HERE / script, "--bin", args.bin, "--out", out, "--budget-ms", 4, *more]
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=LIMIT_S, check=False, env=env)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        peers_test.nothing_is_left(self.scratch)
        return done.stdout

    def test_everybody_is_measured_or_named(self):
        out = self.scratch / "rows.tsv"
        said = self.net(out, "--hosts", "2x1,2x2", "--gbit", 10, "--sizes", "4,64K", "--rounds", 1, "--contenders", args.contenders,
                        "--brief")
        found = read(out)
        for name in args.contenders.split(","):
            for label in ("2x1 10G", "2x2 10G"):
                fine = [r for r in found if (r["contender"], r["label"], r["status"]) == (name, label, "ok")]
                self.assertTrue(fine or f"missing: {name}: " in said, f"{name} was measured on {label}, or is missing: {said}")
        ours = [r for r in found if r["contender"] == "tutti"]
        self.assertEqual([r["status"] for r in ours], ["ok"] * 2 * (9 * 2 + 1))
        self.assertFalse([r for r in found if "wrong" in r["status"]])
        self.assertEqual({r["op"] for r in found if r["form"] == "bare"}, {*OPS, "rate"})
        self.assertIn("2x2 10G, shaper", pathlib.Path(f"{out}.env").read_text())
        self.net(out, "--hosts", "2x1", "--gbit", 10, "--sizes", "4", "--ops", "barrier", "--rounds", 2, "--contenders", "tutti")
        added = read(out)[len(found):]
        self.assertEqual({(r["round"], r["part"]) for r in added if r["op"] == "barrier"}, {(1, 1)})

    def test_sizes_may_differ_by_rank(self):
        """Results are looked at; of one element all ranks but the last have nothing."""
        out = self.scratch / "uneven.tsv"
        said = self.net(out, "--hosts", "2x1,3x1,2x2", "--gbit", 10, "--sizes", "4,40000", "--rounds", 1, "--ops", ",".join(V_OPS),
                        "--contenders", args.contenders, "--brief")
        found = [r for r in read(out) if r["op"] != "rate"]
        for name in {"tutti", "openmpi", "limit"} & set(args.contenders.split(",")):
            mine = [r["status"] for r in found if r["contender"] == name]
            self.assertTrue(mine == ["ok"] * 3 * 4 * 2 or f"missing: {name}: " in said, (name, mine, said))
        theirs = {(r["op"], r["status"]) for r in found if r["contender"] == "gloo"}
        if theirs:
            self.assertEqual(theirs, {("all_to_all_v", "ok"), *((op, "cannot: parts of one size only") for op in V_OPS[:3])})
        self.assertFalse([r for r in found if "wrong" in r["status"]])

    def test_each_rank_may_have_bare_sockets(self):
        out = self.scratch / "each.tsv"
        self.net(out, "--hosts", "2x2", "--gbit", 10, "--sizes", "4", "--ops", "all_reduce,all_to_all", "--rounds", 1,
                 "--contenders", "limit,limit-each", "--congestion", "reno")
        self.assertIn("2x2 10G, congestion control\treno", pathlib.Path(f"{out}.env").read_text())
        found = {(r["contender"], r["op"], r["status"]) for r in read(out) if r["op"] != "rate"}
        self.assertEqual(found, {(name, op, "ok") for name in ("limit", "limit-each") for op in ("all_reduce", "all_to_all")})

    def test_all_that_may_be_taken_is_measured(self):
        out = self.scratch / "choice.tsv"
        self.net(out, "--hosts", "3x1", "--gbit", 10, "--sizes", "4", "--ops", "all_gather,broadcast", "--rounds", 1,
                 script="net_choice.py")
        found = read(out)
        self.assertEqual({r["form"] for r in found if r["op"] == "all_gather"}, {"plain", "direct", "bruck", "ring"})
        self.assertEqual({r["form"] for r in found if r["op"] == "broadcast"},
                         {"plain", "flat", "binomial", "knomial4", "chain", "sliced"})
        self.assertEqual({(r["contender"], r["status"], r["label"]) for r in found}, {("tutti", "ok", "3x1 10G")})

    def test_a_relay_delays(self):
        out = self.scratch / "far.tsv"
        said = self.net(out, "--hosts", "2x1", "--gbit", 0, "--delay", 5, "--sizes", "4", "--ops", "all_reduce", "--rounds", 1,
                 "--contenders", "tutti,limit")
        if "left out: no TUN device" in said:
            self.skipTest(said)
        found = [r for r in read(out) if r["op"] == "all_reduce"]
        self.assertEqual({(r["contender"], r["status"]) for r in found}, {("tutti", "ok"), ("limit", "ok")}, said)
        self.assertTrue(all(r["least_us"] >= 5000 for r in found), found)
        self.assertIn("relay: packets", pathlib.Path(f"{out}.env").read_text())

    def test_an_all_reduce_between_hosts_goes_on_behind_products(self):
        out = self.scratch / "overlap.tsv"
        done = subprocess.run([sys.executable, "-B", HERE / "overlap.py", "--bin", args.bin, "--out", out, "--hosts", "2x1", "--gbit", "10",
                               "--bytes", "64K", "--rounds", "1", "--budget-ms", "4", "--contenders", "tutti,limit"],
                              capture_output=True, text=True, timeout=LIMIT_S, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        head, *lines = [line.split("\t") for line in out.read_text().splitlines()]
        found = [dict(zip(head, line)) for line in lines]
        self.assertEqual([(r["contender"], r["status"], r["label"]) for r in found], [(n, "ok", "2x1 10G") for n in ("tutti", "limit")])
        self.assertEqual(len({r["products"] for r in found}), 1, found)
        self.assertIn("shaper\tTBF 10 Gb/s", pathlib.Path(f"{out}.env").read_text())

    def test_networks_that_cannot_be_are_refused(self):
        for words in ("--hosts 0 true", "--gbit -1 true", "--loss 1 true", "--hosts 2"):
            done = subprocess.run([sys.executable, "-B", HERE / "links.py", *words.split()], capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, timeout=LIMIT_S)
            self.assertEqual(done.returncode, 2, done.stderr)

    def test_a_command_on_every_host_ends_with_the_last(self):
        done = subprocess.run([sys.executable, "-B", HERE / "links.py", "--hosts", "3", "--gbit", "0", "sh", "-c",
                               "echo host $HOST of $HOSTS, $(hostname); exit $HOST"], capture_output=True, text=True, timeout=60,
                              check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        for host in range(3):
            self.assertIn(f"host {host} of 3, n{host}", done.stdout)

    def test_links_that_cannot_be_are_refused(self):
        for wrong, words in (("--hosts 0 true", "0 hosts"), ("--hosts 251 true", "251 hosts"), ("--gbit -1 true", "not negative"),
                             ("--loss 5 true", "a loss is below 1"), ("--hosts 2", "the command is missing")):
            done = subprocess.run([sys.executable, "-B", HERE / "links.py", *wrong.split()], capture_output=True, text=True, timeout=60,
                                  check=False)
            self.assertEqual(done.returncode, 2, wrong)
            self.assertIn(words, done.stderr)

    def test_grids_that_cannot_be_are_refused(self):
        for option, wrong in (("--hosts", "2"), ("--hosts", "0x1"), ("--hosts", "251x1"), ("--gbit", "nan"), ("--loss", "100"),
                              ("--ops", "all_redcue")):
            done = subprocess.run([sys.executable, "-B", HERE / "net.py", "--bin", args.bin, "--out", self.scratch / "none.tsv", option,
                                   wrong], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 2, option + wrong)
            self.assertIn(f"argument {option}: '{wrong}'", done.stderr)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--bin", type=pathlib.Path, required=True)
    p.add_argument("--contenders", default="tutti,openmpi,gloo,limit")
    p.parse_args(namespace=args)
    args.bin = args.bin.resolve()
    unittest.main(argv=["net_test"], verbosity=2)


if __name__ == "__main__":
    main()
