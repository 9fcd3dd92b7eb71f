#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write gpt.tsv: a small GPT-2 trained for 50 steps, and modules as seeded, as PyTorch computes them; and
gpt_grads.safetensors: the gradients of its first step, all elements, in f32.

    OMP_NUM_THREADS=1 python3 tests/golden/make_gpt.py > tests/golden/gpt.tsv

needs PyTorch 2 and safetensors. Two layers, no dropout, head tied to the token embedding, AdamW. Parameter number k has
elements 0.2 sin(0.37 i + k), norms have 1 + that and that. Everything is done in f32 and again in f64: the
second says how far rounding alone moves the first.
"""
import math
import os
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

V, T, B, D, HEADS, LAYERS, STEPS = 61, 16, 4, 32, 4, 2, 50


def names():
    yield "wte.weight", (V, D)
    yield "wpe.weight", (T, D)
    for i in range(LAYERS):
        for part, shape in (("ln_1", (D,)), ("attn.c_attn", (3 * D, D)), ("attn.c_proj", (D, D)),
                            ("ln_2", (D,)), ("mlp.c_fc", (4 * D, D)), ("mlp.c_proj", (D, 4 * D))):
            yield f"h.{i}.{part}.weight", shape
            yield f"h.{i}.{part}.bias", shape[:1]
    yield "ln_f.weight", (D,)
    yield "ln_f.bias", (D,)


def start(k, name, shape):
    i = torch.arange(math.prod(shape), dtype=torch.float64)
    x = 0.2 * torch.sin(0.37 * i + k) + (1.0 if "ln_" in name and name.endswith("weight") else 0.0)
    return x.reshape(shape).float()


def forward(p, tokens):
    x = p["wte.weight"][tokens] + p["wpe.weight"]
    for i in range(LAYERS):
        w = lambda part: (p[f"h.{i}.{part}.weight"], p[f"h.{i}.{part}.bias"])
        h = F.layer_norm(x, (D,), *w("ln_1"))
        q, k, v = (a.reshape(B, T, HEADS, D // HEADS).transpose(1, 2)
                   for a in F.linear(h, *w("attn.c_attn")).chunk(3, -1))
        h = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + F.linear(h.transpose(1, 2).reshape(B, T, D), *w("attn.c_proj"))
        h = F.gelu(F.linear(F.layer_norm(x, (D,), *w("ln_2")), *w("mlp.c_fc")), approximate="tanh")
        x = x + F.linear(h, *w("mlp.c_proj"))
    x = F.layer_norm(x, (D,), p["ln_f.weight"], p["ln_f.bias"])
    return F.linear(x, p["wte.weight"])


def batch(step):
    data = [[(7 * step + 13 * b + t * t) % V for t in range(T + 1)] for b in range(B)]
    x = torch.tensor(data)
    return x[:, :T], x[:, 1:]


def train(dtype):
    p = {n: start(k, n, s).to(dtype).requires_grad_() for k, (n, s) in enumerate(names())}
    opt = torch.optim.AdamW(p.values(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
    losses, grads = [], {}
    for step in range(STEPS):
        tokens, target = batch(step)
        loss = F.cross_entropy(forward(p, tokens).reshape(-1, V), target.reshape(-1))
        opt.zero_grad()
        loss.backward()
        if step == 0:
            grads = {n: t.grad.clone() for n, t in p.items()}
        opt.step()
        losses.append(loss.item())
    return losses, grads


def seeded():
    torch.manual_seed(1234)
    yield "embedding", torch.nn.Embedding(7, 5, padding_idx=2)
    yield "attention", torch.nn.MultiheadAttention(8, 2, batch_first=True)
    yield "norm", torch.nn.LayerNorm((3, 2))


def keep(grads, exact):
    here = os.path.dirname(os.path.abspath(__file__))
    save_file(grads, os.path.join(here, "gpt_grads.safetensors"),
              metadata={"format": "pt", "made by": "make_gpt.py with torch " + torch.__version__})
    off = {n: ((g - exact[n]).norm() / exact[n].norm()).item() for n, g in grads.items()}
    worst = max(off, key=off.get)
    print(f"gradients in f32 are within {off[worst]:.1e} of f64, norm-wise: {worst}", file=sys.stderr)


def main():
    print(f"# PyTorch {torch.__version__}; {LAYERS} layers of {D}, {HEADS} heads, {V} tokens, {T} places, batch {B}")
    print("# loss: step, f32, f64; grad: name, sum and norm in f64 at step 0; init: module.name, its values")
    single, grads = train(torch.float32)
    double, exact = train(torch.float64)
    for i, (a, b) in enumerate(zip(single, double)):
        print(f"loss\t{i}\t{a:.9g}\t{b:.15g}")
    for name, g in exact.items():
        print(f"grad\t{name}\t{g.sum().item():.12g}\t{g.norm().item():.12g}")
    for module, m in seeded():
        for name, t in m.named_parameters():
            print(f"init\t{module}.{name}\t" + " ".join(f"{v:.9g}" for v in t.flatten().tolist()))
    keep(grads, exact)


main()
