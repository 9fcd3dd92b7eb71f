#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""gradients: every public operation that gradients flow through is compared with finite differences.

An operation is a public function that makes tensors out of tensors: it returns a tensor, or gives some by ..._out,
and takes one that it does not promise to leave alone (const). It must have a row CASE(function, ...) or
CASE_BY(function, ..., helper) in train/nn/every_gradient_test.c, whose helper calls it; those of comm.h, a caller
that tests/ranks/tensor_gradient_test.c hands to check(). What has no gradient stands below, with the reason.

usage: gradients.py --root DIR | --self-test
"""
import argparse
import pathlib
import re
import sys

TABLE = "train/nn/every_gradient_test.c"
RANKS = "tests/ranks/tensor_gradient_test.c"

NONE = {
    "tutti_tensor_retain": "the same tensor once more",
    "tutti_tensor_requires_grad_": "says what is a leaf",
    "tutti_tensor_detach": "cuts the graph: tested in engine_test",
    "tutti_forward": "calls what the module is made of",
    "tutti_checkpoint_forward": "tutti_checkpoint() of a module",
    "tutti_ddp_forward": "calls what the module is made of",
    "tutti_tensor_all_reduce_coalesced": "says that it has none",
    "tutti_tensor_all_gather_into_tensor_coalesced": "says that it has none",
    "tutti_tensor_reduce_scatter_tensor_coalesced": "says that it has none",
}


def operations(text):
    """Names of the operations that the text of a header declares."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    found = set()
    for made, name, params in re.findall(r"^TUTTI_API\s+([\w\s]+?\*?)\s*\b(tutti_\w+)\s*\(([^;{]*)\)\s*;", text,
                                         flags=re.M):
        params = [" ".join(p.split()) for p in params.split(",")]
        makes = "tutti_tensor" in made and made.rstrip().endswith("*")
        makes |= any(re.fullmatch(r"tutti_tensor \*\*\w+_out", p) for p in params)
        takes = any(re.fullmatch(r"tutti_tensor \*(const \*)?\w+", p) for p in params)
        if makes and takes:
            found.add(name)
    return found


def bodies(text):
    """name -> body of every function in the text of a source."""
    return dict(re.findall(r"^static [\w\s]+?\*?\s*\b(\w+)\([^;{}]*\)\n\{\n(.*?)^\}", text, flags=re.M | re.S))


def of_table(text):
    """What the rows of the table check, and what is wrong with them."""
    inside, bad = bodies(text), []
    names = set(re.findall(r"^\s*CASE\((\w+),", text, flags=re.M))
    for name, helper in re.findall(r"^\s*CASE_BY\((\w+),\s*\w+,\s*(\w+)\)", text, flags=re.M):
        if f"{name}(" in inside.get(helper, ""):
            names.add(name)
        else:
            bad.append(f"{TABLE}: {helper}() does not call {name}()")
    return names, bad


def of_ranks(text):
    """What the functions that are handed to check() call."""
    inside = bodies(text)
    handed = re.findall(r"\bcheck\(t, \"[^\"]*\",\s*(\w+),", text)
    return {name for f in handed for name in re.findall(r"\b(tutti_\w+)\(", inside.get(f, ""))}


def judge(wanted, wanted_of_ranks, table, ranks):
    names, bad = of_table(table)
    places = ((TABLE, wanted - names), (RANKS, wanted_of_ranks - of_ranks(ranks)))
    for place, missing in places:
        bad += [f"{name}() has no finite differences: add it to {place}" for name in sorted(missing - set(NONE))]
    gone = set(NONE) - wanted - wanted_of_ranks
    return bad + [f"{name}() is no operation any more: take it out of gradients.py" for name in sorted(gone)]


def check(root):
    wanted, of_ranks_too = set(), set()
    for header in sorted((root / "include/tutti").glob("*.h")):
        (of_ranks_too if header.name == "comm.h" else wanted).update(operations(header.read_text()))
    bad = judge(wanted, of_ranks_too, (root / TABLE).read_text(), (root / RANKS).read_text())
    for line in bad:
        print(line)
    print(f"gradients: {len(wanted)} operations and {len(of_ranks_too)} collectives, {len(bad)} problems")
    return 1 if bad or len(wanted) < 50 or len(of_ranks_too) < 10 else 0


def self_test():
    header = """/** not this: TUTTI_API tutti_tensor *tutti_no(tutti_tensor *x); */
TUTTI_API tutti_tensor *tutti_a(tutti_tensor *x,
                                double c);
TUTTI_API tutti_tensor *
tutti_b(tutti_tensor *const *xs, int n);
TUTTI_API tutti_status tutti_c(tutti_tensor *x, int n, tutti_tensor **parts_out);
TUTTI_API tutti_tensor *tutti_lt(const tutti_tensor *a, const tutti_tensor *b);
TUTTI_API tutti_status tutti_copy_(tutti_tensor *t, tutti_tensor *src);
TUTTI_API tutti_dtype tutti_tensor_dtype(const tutti_tensor *t);
"""
    table = """static tutti_tensor *joined(tutti_tensor *const *in)
{
    return tutti_b(in, 2);
}

static tutti_tensor *other(tutti_tensor *const *in)
{
    return tutti_a(in[0], 1.0);
}

    CASE(tutti_a, ONE, in[0], 2.0)
    CASE_BY(tutti_b, TWO, joined)
    CASE_BY(tutti_c, TWO, other)
"""
    ranks = """static tutti_tensor *sum(tt_ctx *t, tutti_tensor *x)
{
    return tutti_d(x);
}

    check(t, "d", sum, 1);
"""
    assert operations(header) == {"tutti_a", "tutti_b", "tutti_c"}, operations(header)
    names, bad = of_table(table)
    assert names == {"tutti_a", "tutti_b"} and len(bad) == 1, (names, bad)
    assert of_ranks(ranks) == {"tutti_d"}, of_ranks(ranks)
    left = judge({"tutti_a", "tutti_d"} | set(NONE), {"tutti_d", "tutti_e"}, table, ranks)
    assert len(left) == 3 and "tutti_d" in left[1] and "tutti_e" in left[2], left
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path)
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    return self_test() if args.self_test else check(args.root)


if __name__ == "__main__":
    sys.exit(main())
