# SPDX-License-Identifier: BSD-3-Clause
"""Backend "nccl" over the stand-in for NCCL and the CUDA runtime.

Goal    installed  the libraries that are installed, not the stand-in, are found and taken: where there is no GPU that is what is said,
                  and where there is one, one rank does what "order" and "ranks" ask, on it
        order     what a stream is given before and behind a call is in order with it, whatever time each step takes
        left_out  the stand-in sees it if not: with one kind of wait left out the same program gets wrong numbers
        ranks     what nccl_ranks.c says holds, for one, two and three ranks, one of which has too few queues for its messages, and
                  is told;
        late, absent, left_early, error, abort  how calls fail, for two and for three ranks
        split     groups out of a group are split by NCCL, without an id; with ids where one rank's NCCL cannot split, or
                  does not come, or a rank fails before it has a group; NCCL that fails at it ends the group on all, and
                  what it has made by then
        refusal   who waits for a member that has refused the group is told so at once, be it in the store or in NCCL
        early     ... and who waits over a store whose waits end early is told nothing of the kind
        missing   where NCCL is not there, too old, or there is no GPU, or TUTTI_TLS asks for
                  encryption, the backend is refused in words that have what to set, and memory of the host
                  goes through the other one of the group
        threads   ThreadSanitizer sees nothing in them
        matrix    the conformance matrix's core, on spans of the device
        debug_matrix  a part of it with the wrapper around it, "debug-nccl"
Method  ranks under `tutti run`, with the plug-in and the two libraries that are named; several seeds of delays.

    nccl_test.py CASE --bin DIR --plugins DIR --nccl FILE --cudart FILE
"""
import argparse
import sys
import tempfile

from job import Job, wrong_numbers

SKIPPED = 77

# NCCL moves what it has no arithmetic for as bytes: of types these are all but bool, whose bytes have to be 0 or 1 for it.
TYPES = "u8,i8,u16,i16,u32,i32,u64,i64,f16,bf16,f32,f64,f8e4m3fn,f8e5m2,c64,c128"
# A factor is rounded to the type before it is used, so premul_sum is in nccl_ranks.c, with factors that are exact.
REDUCTIONS = "none,sum,avg,product,min,max,band,bor,bxor"

# any_source is not among them: NCCL has none, so one rank would be refused what others send it.
OPERATIONS = """all_reduce reduce reduce_scatter reduce_scatter_tensor broadcast all_gather all_gather_into_tensor gather scatter all_to_all
    all_to_all_single barrier send_recv isend_irecv batch_isend_irecv gather_v scatter_v all_gather_uneven all_gather_into_tensor_v
    reduce_scatter_tensor_v all_reduce_coalesced all_gather_coalesced all_gather_into_tensor_coalesced reduce_scatter_tensor_coalesced
    scope_all_reduce scope_all_gather_into_tensor scope_reduce_scatter_tensor all_gather_object sparse_all_reduce""".split()


def alone(job, case, **extra):
    with tempfile.TemporaryDirectory() as scratch:
        return job.run([job.bin / "tutti", "run", "--standalone", "--nproc-per-node=1", job.bin / "nccl_ranks", case, scratch + "/aside"],
                       **extra)


def installed(job):
    theirs = {"TUTTI_NCCL_LIBRARY": None, "TUTTI_CUDART_LIBRARY": None}
    if "nccl is available" in alone(job, "asked", **theirs):
        if any(wrong_numbers(job.ranks(1, "order", **theirs))):
            sys.exit("numbers are wrong")
        job.ranks(1, "ranks", **theirs)
        print("on a GPU: order, ranks")
        return
    said = alone(job, "refused", **theirs)
    words = said[said.index("refused:"):]
    print(words)
    if " is not there: " in words or "the first that this backend takes" in words:
        print("skipped: NCCL or the CUDA runtime is not installed here, or too old")
        sys.exit(SKIPPED)
    if "there is no GPU that this process can use" not in words:
        sys.exit("neither used, nor is it said that there is no GPU")


def order(job):
    for n, seed in ((1, 1), (2, 2), (2, 3), (3, 4)):
        wrong = wrong_numbers(job.ranks(n, "order", FAKE_CUDA_SEED=str(seed)))
        print("%d ranks, seed %d: wrong numbers %s" % (n, seed, wrong))
        if any(wrong):
            sys.exit("numbers are wrong")


def left_out(job):
    for which in ("own", "callers"):
        wrong = wrong_numbers(job.ranks(2, "order", FAKE_CUDA_SEED="5", FAKE_CUDA_LEAVE_OUT=which))
        print("2 ranks, waits of %s streams left out: wrong numbers %s" % (which, wrong))
        if not all(wrong):
            sys.exit("nobody has noticed that waits were left out")


def several(case):
    def run(job):
        for n in (2, 3):
            job.ranks(n, case, FAKE_CUDA_SEED=str(n))
    return run


def ranks(job):
    for n, queues, told in ((1, "8", False), (2, "8", False), (3, "8", False), (3, "5", True)):  # 4 lanes, the group's stream and the program's
        said = job.ranks(n, "ranks", FAKE_CUDA_SEED=str(n), CUDA_DEVICE_MAX_CONNECTIONS=queues)
        if ("6 streams share the 5 queues" in said) != told:
            sys.exit("%d ranks, %s queues: %s is told that streams share queues:\n%s" % (n, queues, "nobody" if told else "somebody", said))


def split(job):
    for n in (2, 3):
        for case, extra in (("split", {}), ("split_by_ids", {"FAKE_NCCL_VERSION": "21700"}), ("split_mixed", {}),
                            ("split_absent", {}), ("split_refused", {}), ("split_refused", {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}),
                            ("split_error", {}), ("split_lost", {"FAKE_NCCL_SPLIT_ERROR": "2"})):
            job.ranks(n, case, FAKE_CUDA_SEED=str(n), **extra)
    job.ranks(2, "split", FAKE_CUDA_SEED="4", TORCH_DISTRIBUTED_DEBUG="DETAIL")  # the wrapper around it


def threads(job):
    for case in ("ranks", "left_early", "error", "abort", "split"):
        job.ranks(2, case, FAKE_CUDA_SEED="2", FAKE_CUDA_DELAY_US="0")


def missing(job):
    for words, extra in (("TUTTI_NCCL_LIBRARY", {"TUTTI_NCCL_LIBRARY": "/nowhere/libnccl.so.2"}),
                         ("TUTTI_CUDART_LIBRARY", {"TUTTI_CUDART_LIBRARY": "/nowhere/libcudart.so"}),
                         ("has no function 'ncclGetVersion'", {"TUTTI_NCCL_LIBRARY": job.options.cudart}),
                         ("is of version 21000", {"FAKE_NCCL_VERSION": "21000"}),
                         ("there is no GPU", {"FAKE_CUDA_DEVICES": "0"}),
                         ("the backend 'nccl' sends in the clear, and TUTTI_TLS asks for encryption", {"TUTTI_TLS": "1"})):
        said = alone(job, "refused", **extra)
        if words not in said:
            sys.exit("no '%s' in what was said:\n%s" % (words, said))
        print(said[said.index("refused:"):].splitlines()[0])


def matrix(job):
    said = job.run([job.bin / "conformance_matrix", "--core", "--backend", "nccl", "--op", ",".join(OPERATIONS), "--device", "cuda", "--untagged",
                    "--plugins", job.options.plugins, "--world", "1,2,3", "--size", "0,1,1000", "--mode", "blocking,async", "--dtype",
                    TYPES, "--red", REDUCTIONS, "--seed", "1"], FAKE_CUDA_DELAY_US="100")
    print(said)


def debug_matrix(job):
    operations = [op for op in OPERATIONS if op != "sparse_all_reduce"]  # whose results are memory of the host, which this group has no backend for
    said = job.run([job.bin / "conformance_matrix", "--core", "--backend", "debug-nccl", "--op", ",".join(operations), "--device", "cuda",
                    "--untagged", "--plugins", job.options.plugins, "--world", "2", "--size", "0,1,1000", "--mode", "blocking,async",
                    "--dtype", "f32,i64", "--red", "none,sum,max", "--seed", "1"], FAKE_CUDA_DELAY_US="100")
    print(said)
    if "failed 0, skipped 0" not in said:
        sys.exit("not all cells were run and passed")


def main():
    cases = {"installed": installed, "order": order, "left_out": left_out, "ranks": ranks, "late": several("late"),
             "absent": several("absent"), "left_early": several("left_early"), "error": several("error"),
             "abort": several("abort"), "split": split, "refusal": several("refusal"), "early": several("early"), "missing": missing, "threads": threads, "matrix": matrix,
             "debug_matrix": debug_matrix}
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=sorted(cases))
    for name in ("bin", "plugins", "nccl", "cudart"):
        parser.add_argument("--" + name, required=True)
    options = parser.parse_args()
    cases[options.case](Job(options, "nccl_ranks"))


main()
