#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write optim.tsv: 20 steps of every optimizer and option as PyTorch computes them.

    python3 tests/golden/make_optim.py

needs PyTorch 2.x. Three parameters, gradients by a formula that is exact in f32 (parameter and gradient
below); the third parameter has none in every fourth step. One process, no foreach, no fused step.
"""
import os

import torch

SHAPES, STEPS, RECORDED = ([7], [3, 5], []), 20, (1, 20)

CASES = [
    ("sgd", {}),
    ("sgd", {"lr": 0.1, "weight_decay": 0.125}),
    ("sgd", {"lr": 0.1, "momentum": 0.9}),
    ("sgd", {"lr": 0.1, "momentum": 0.9, "dampening": 0.25, "weight_decay": 0.1, "maximize": True}),
    ("sgd", {"lr": 0.05, "momentum": 0.7, "nesterov": True, "weight_decay": 0.1}),
    ("adam", {}),
    ("adam", {"lr": 0.02, "betas": (0.8, 0.95), "eps": 1e-4, "weight_decay": 0.1}),
    ("adam", {"lr": 0.02, "betas": (0.3, 0.9), "amsgrad": True, "maximize": True}),
    ("adamw", {}),
    ("adamw", {"lr": 0.05, "betas": (0.9, 0.95), "weight_decay": 0.1}),
    ("adamw", {"lr": 0.05, "weight_decay": 0.2, "amsgrad": True}),
    ("adamax", {}),
    ("adamax", {"lr": 0.05, "betas": (0.7, 0.9), "weight_decay": 0.1, "maximize": True}),
    ("adagrad", {}),
    ("adagrad", {"lr": 0.1, "lr_decay": 0.05, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("rmsprop", {}),
    ("rmsprop", {"lr": 0.02, "alpha": 0.9, "weight_decay": 0.1, "momentum": 0.8}),
    ("rmsprop", {"lr": 0.02, "alpha": 0.9, "centered": True, "eps": 1e-3}),
    ("rmsprop", {"lr": 0.02, "centered": True, "momentum": 0.5, "eps": 1e-2, "maximize": True}),
    ("adadelta", {}),
    ("adadelta", {"lr": 0.5, "rho": 0.8, "eps": 1e-4, "weight_decay": 0.1, "maximize": True}),
    ("rprop", {}),
    ("rprop", {"lr": 0.1, "etas": (0.4, 1.5), "step_sizes": (0.02, 0.3), "maximize": True}),
]

CLASSES = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW,
           "adamax": torch.optim.Adamax, "adagrad": torch.optim.Adagrad,
           "rmsprop": torch.optim.RMSprop, "adadelta": torch.optim.Adadelta,
           "rprop": torch.optim.Rprop}


def parameter(i, dtype):
    numel = int(torch.tensor(SHAPES[i]).prod()) if SHAPES[i] else 1
    values = [((k * 29 + 17 * i) % 61 - 30) / 16 for k in range(numel)]
    return torch.tensor(values, dtype=dtype).reshape(SHAPES[i]).requires_grad_()


def gradient(i, t, like):
    if i == 2 and t % 4 == 3:
        return None
    values = [((k * 37 + t * (23 + i) + 11 * i) % 67 - 33) / 32 for k in range(like.numel())]
    return torch.tensor(values, dtype=like.dtype).reshape(like.shape)


def words(value):
    return ",".join(repr(float(x)) for x in (value if isinstance(value, tuple) else (value,)))


def numbers(t):
    return "\t".join("%.17g" % x for x in t.detach().double().flatten().tolist())


def run(out, number, name, options, dtype):
    params = [parameter(i, dtype) for i in range(3)]
    optim = CLASSES[name](params, foreach=False, **options)
    kind = "f32" if dtype == torch.float32 else "f64"
    out.write("case\t%d\t%s\t%s\t%s\n" % (number, name, kind, ";".join(
        "%s=%s" % (key, words(value)) for key, value in options.items())))
    for t in range(1, STEPS + 1):
        for i, p in enumerate(params):
            p.grad = gradient(i, t, p)
        optim.step()
        if t not in RECORDED:
            continue
        for i, p in enumerate(params):
            out.write("value\t%d\t%d\t%d\tparam\t%s\n" % (number, t, i, numbers(p)))
            for key, value in optim.state[p].items():
                if t == STEPS and value is not None:
                    out.write("value\t%d\t%d\t%d\t%s\t%s\n" % (number, t, i, key, numbers(value)))


def main():
    torch.set_num_threads(1)
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "optim.tsv"), "w") as out:
        out.write("# made by make_optim.py with torch %s\n" % torch.__version__)
        out.write("# case: number, optimizer, dtype, options that are not the default\n")
        out.write("# value: case, step, parameter, what, elements\n")
        number = 0
        for name, options in CASES:
            for dtype in (torch.float32, torch.float64):
                run(out, number, name, options, dtype)
                number += 1


if __name__ == "__main__":
    main()
