#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write optim.tsv: 20 steps of every optimizer and option, schedules, clipping, as PyTorch computes them.

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


SCHEDULES = [
    ("step", (4, 0.5), lambda o: torch.optim.lr_scheduler.StepLR(o, 4, 0.5)),
    ("multi_step", (3, 7, 7, 12, 0.25),
     lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [3, 7, 7, 12], 0.25)),
    ("exponential", (0.9,), lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.9)),
    ("linear", (0.25, 0.75, 6), lambda o: torch.optim.lr_scheduler.LinearLR(o, 0.25, 0.75, 6)),
    ("cosine", (8, 0.01), lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 8, 0.01)),
    ("warmup_cosine", (4, 16, 0.01), lambda o: torch.optim.lr_scheduler.SequentialLR(o, [
        torch.optim.lr_scheduler.LinearLR(o, 0.25, 1.0, 3),
        torch.optim.lr_scheduler.CosineAnnealingLR(o, 12, 0.01)], [4])),
]


def rates(make):
    """Learning rates of two groups for 16 epochs."""
    optim = torch.optim.SGD([{"params": [parameter(0, torch.float64)], "lr": 0.5},
                             {"params": [parameter(1, torch.float64)], "lr": 0.125}], lr=1.0)
    schedule, got = make(optim), []
    for _ in range(16):
        got += [group["lr"] for group in optim.param_groups]
        optim.step()
        schedule.step()
    return got


def clipped(norm_type, bound):
    """The norm of the gradients of step 1, then the gradients."""
    params = [parameter(i, torch.float32) for i in range(3)]
    for i, p in enumerate(params):
        p.grad = gradient(i, 1, p)
    if norm_type is None:
        norm = torch.nn.utils.clip_grad_value_(params, bound) or torch.zeros(())
    else:
        norm = torch.nn.utils.clip_grad_norm_(params, bound, norm_type, foreach=False)
    return [float(norm)] + [x for p in params for x in p.grad.double().flatten().tolist()]


def write_rows(out):
    out.write("# lr: schedule, its numbers, learning rates of two groups (0.5, 0.125) in 16 epochs\n")
    for name, args, make in SCHEDULES:
        out.write("lr\t%s\t%s\t%s\n" % (name, words(tuple(args)), "\t".join(
            "%.17g" % x for x in rates(make))))
    out.write("# clip: order of the norm (value: none), bound, norm before, all gradients after\n")
    for norm_type, bound in ((2.0, 1.5), (2.0, 100.0), (1.0, 4.0), (3.0, 0.5), (float("inf"), 0.25),
                             (None, 0.375)):
        out.write("clip\t%s\t%r\t%s\n" % ("value" if norm_type is None else norm_type, bound,
                                          "\t".join("%.17g" % x for x in clipped(norm_type, bound))))


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
        write_rows(out)


if __name__ == "__main__":
    main()
