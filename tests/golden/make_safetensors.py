#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write three files with the safetensors package: plain, more and tied.safetensors.

    python3 tests/golden/make_safetensors.py            write them
    python3 tests/golden/make_safetensors.py FILE       read a file back, and compare it with plain.safetensors

needs PyTorch 2.x and safetensors 0.4 or later. plain: one tensor of each type that tensors have here, no
dimensions, no elements, names that sort differently as bytes and as words. more: types that tensors may lack.
tied: what save_model() makes of two layers that share their weight.
"""
import os
import sys

import torch
from safetensors import safe_open
from safetensors.torch import save_file, save_model

HERE = os.path.dirname(os.path.abspath(__file__))


def common():
    """What can be written by us, too."""
    return {
        "z": torch.tensor(7, dtype=torch.int64),
        "b": torch.tensor([1.0, -2.0]),
        "B.weight": torch.arange(6, dtype=torch.float32).reshape(2, 3) / 4,
        "c": torch.zeros((0, 3)),
        "d": torch.tensor([[0.1], [1e300]], dtype=torch.float64),
        "i": torch.tensor([-1, 2**31 - 1], dtype=torch.int32),
        "mask": torch.tensor([True, False, True]),
        "u": torch.tensor([0, 255, 7], dtype=torch.uint8),
        "\u00e4 \"quoted\" \\ name": torch.tensor([0.5]),
    }


def write():
    plain = common()
    save_file(plain, os.path.join(HERE, "plain.safetensors"), metadata={"format": "pt"})
    more = {"half": torch.tensor([[1.0, -2.0]], dtype=torch.bfloat16),
            "scale": torch.tensor([1.0, 2.0]).to(torch.float8_e8m0fnu),
            "after": torch.tensor([3.0], dtype=torch.float32)}
    save_file(more, os.path.join(HERE, "more.safetensors"))
    net = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False), torch.nn.Linear(2, 2, bias=False))
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    net[1].weight = net[0].weight
    save_model(net, os.path.join(HERE, "tied.safetensors"))


def compare(path):
    want = common()
    with safe_open(path, "pt") as file:
        assert file.metadata() == {"format": "pt"}, file.metadata()
        assert sorted(file.keys()) == sorted(want)
        for name, t in want.items():
            got = file.get_tensor(name)
            assert got.dtype == t.dtype and torch.equal(got, t), name
    print("the same")


if __name__ == "__main__":
    compare(sys.argv[1]) if len(sys.argv) > 1 else write()
