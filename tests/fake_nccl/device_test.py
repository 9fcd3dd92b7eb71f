# SPDX-License-Identifier: BSD-3-Clause
"""Backend "native" on memory of GPUs, over the stand-in for the CUDA runtime.

Goal    order     what a stream is given before and behind a call is in order with it, whatever time each step takes
        left_out  the stand-in sees it if not: with one kind of wait left out the same program gets wrong numbers
        ranks     what device_ranks.c says holds, in worlds and groups of several sizes, also with nothing pinned that is kept,
                  with TCP between the ranks, and with the wrapper that compares calls
        failures  how calls fail: who has not come, a stream that is held up, calls that differ, an abort
        stuck     where a GPU is stuck a call ends in time all the same, and so does the group, whatever is kept pinned
        one_time  what a stream and the other ranks are waited for is one time-out, not two
        ends      the runtime is gone before the group; a variable that one rank cannot read is told to the others
        missing   where the runtime or a GPU is not there, device memory is refused in words that have what to do,
                  and memory of the host is taken
        threads   ThreadSanitizer sees nothing in them
        matrix    the conformance matrix's core, on spans of the device
Method  ranks under `tutti run`, with the plug-in and the library that are named; several seeds of delays.

    device_test.py CASE --bin DIR --plugins DIR --cudart FILE
"""
import argparse
import sys

from job import Job, wrong_numbers

# Those that the reference's table has for gloo on GPUs, and what is made of them; messages are for the host alone.
OPERATIONS = """all_reduce reduce reduce_scatter reduce_scatter_tensor broadcast all_gather all_gather_into_tensor gather scatter all_to_all
    all_to_all_single gather_v scatter_v all_gather_uneven all_gather_into_tensor_v reduce_scatter_tensor_v all_reduce_coalesced
    all_gather_coalesced all_gather_into_tensor_coalesced reduce_scatter_tensor_coalesced scope_all_reduce
    scope_all_gather_into_tensor scope_reduce_scatter_tensor""".split()


def order(job):
    for n, seed, us in ((1, 1, 300), (2, 2, 300), (2, 3, 300), (3, 4, 300), (2, 5, 5000)):  # the last: long beside the host's part
        wrong = wrong_numbers(job.ranks(n, "order", FAKE_CUDA_SEED=str(seed), FAKE_CUDA_DELAY_US=str(us)))
        print("%d ranks, seed %d, up to %d us: wrong numbers %s" % (n, seed, us, wrong))
        if any(wrong):
            sys.exit("numbers are wrong")


def is_noticed(job, which):
    """The program is mostly through with what a caller's stream waits for: of the 90 times it is not a few are seen."""
    for seed in range(5, 10):
        wrong = wrong_numbers(job.ranks(2, "order", FAKE_CUDA_SEED=str(seed), FAKE_CUDA_LEAVE_OUT=which))
        print("2 ranks, seed %d, waits of %s left out: wrong numbers %s" % (seed, which, wrong))
        if any(wrong):
            return True
    return False


def left_out(job):
    for which in ("own", "callers", "host"):
        if not is_noticed(job, which):
            sys.exit("nobody has noticed that waits were left out")


def ranks(job):
    for n, more in ((1, {}), (2, {}), (3, {"TUTTI_PINNED_MAX": "0"}), (2, {"TUTTI_TRANSPORT": "tcp"}),
                    (2, {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"})):
        job.ranks(n, "ranks", FAKE_CUDA_SEED=str(n), **more)
    for n in (2, 3):
        job.ranks(n, "groups", FAKE_CUDA_SEED=str(n))
        job.ranks(n, "shrink", FAKE_CUDA_SEED=str(n))
    job.ranks(2, "alone", FAKE_CUDA_SEED="2")


def failures(job):
    for case in ("late", "absent", "stuck", "differ", "apart", "abort", "abort_early"):
        for n in (2, 3):
            job.ranks(n, case, FAKE_CUDA_SEED=str(n))


def stuck(job):
    job.ranks(2, "stuck", FAKE_CUDA_SEED="2", TUTTI_PINNED_MAX="0")
    job.ranks(2, "stuck_for_good", FAKE_CUDA_SEED="3")


def one_time(job):
    job.ranks(2, "one_time", FAKE_CUDA_SEED="2")


def ends(job):
    job.ranks(2, "unreadable")
    job.ranks(2, "unloaded", FAKE_CUDA_SEED="2")


def missing(job):
    for words, extra in (("TUTTI_CUDART_LIBRARY", {"TUTTI_CUDART_LIBRARY": "/nowhere/libcudart.so"}),
                         ("there is no GPU", {"FAKE_CUDA_DEVICES": "0"})):
        said = job.ranks(2, "refused", **extra)
        if words not in said:
            sys.exit("no '%s' in what was said:\n%s" % (words, said))
        print(said[said.index("refused:"):].splitlines()[0])


def threads(job):
    for case in ("ranks", "groups", "abort"):
        job.ranks(2, case, FAKE_CUDA_SEED="2", FAKE_CUDA_DELAY_US="0")


def matrix(job):
    said = job.run([job.bin / "conformance_matrix", "--core", "--backend", "native", "--op", ",".join(OPERATIONS), "--device", "cuda",
                    "--plugins", job.options.plugins, "--world", "1,2,3", "--size", "0,1,1000", "--mode", "blocking,async", "--seed",
                    "1"], FAKE_CUDA_DELAY_US="100")
    print(said)


def main():
    cases = {"order": order, "left_out": left_out, "ranks": ranks, "failures": failures, "stuck": stuck, "one_time": one_time,
             "ends": ends, "missing": missing, "threads": threads,
             "matrix": matrix}
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=sorted(cases))
    for name in ("bin", "plugins", "cudart"):
        parser.add_argument("--" + name, required=True)
    options = parser.parse_args()
    cases[options.case](Job(options, "device_ranks"))


main()
