#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fit the polynomials of math_f32.h and print them: least squares on Chebyshev points, weighted again
and again by the error (Lawson), until the largest relative error of the function no longer falls.

    python3 train/tensor/math_fit.py      needs numpy and mpmath
"""
import mpmath as mp
import numpy as np

mp.mp.dps = 40
POINTS, ROUNDS = 600, 200


def fit(name, low, high, degree, value, gain):
    """Polynomial P with the smallest largest |gain(x) (P(x) - value(x))| over [low, high]."""
    k = np.arange(POINTS)
    x = (low + high) / 2 + (high - low) / 2 * np.cos(np.pi * (k + 0.5) / POINTS)
    y = np.array([float(value(mp.mpf(v))) for v in x])
    g = np.array([abs(float(gain(mp.mpf(v)))) for v in x])
    a = np.vander(x, degree + 1, increasing=True)
    w, best = np.ones(POINTS) / POINTS, None
    for _ in range(ROUNDS):
        r = np.sqrt(w) * g
        c = np.linalg.lstsq(a * r[:, None], y * r, rcond=None)[0]
        e = np.abs(g * (a @ c - y))
        if best is None or e.max() < best[0]:
            best = (e.max(), c)
        w = w * e / (w * e).sum()
    c32 = best[1].astype(np.float32)
    print(f"{name}: relative error {best[0]:.2e}")
    print("   ", ", ".join(f"{float(v)!r}f" if False else f"{v:.9g}f" for v in c32))


def erfcx(t):
    return mp.erfc(t) * mp.exp(t * t)


# e^r = 1 + r + r^2 P(r)
fit("exp", -0.3468, 0.3468, 4,
    lambda r: (mp.exp(r) - 1 - r) / r**2 if abs(r) > 1e-12 else mp.mpf("0.5") + r / 6,
    lambda r: r**2 / mp.exp(r))
# log(1 + f) = f - f^2 / 2 + f^3 P(f)
fit("log", float(mp.sqrt(0.5) - 1), float(mp.sqrt(2) - 1), 8,
    lambda f: (mp.log1p(f) - f + f**2 / 2) / f**3 if abs(f) > 1e-9 else mp.mpf(1) / 3 - f / 4,
    lambda f: f**3 / mp.log1p(f) if abs(f) > 1e-12 else mp.mpf(0))
# tanh(x) = x + x z P(z), z = x^2
fit("tanh", 1e-6, 0.625**2, 4,
    lambda z: (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: z)
# erf(x) = x + x P(z)
fit("erf", 1e-9, 0.9375**2, 6,
    lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, lambda z: 1)
# erfc(t) = e^(-t^2) s P(s), s = 1 / (1 + t / 2)
fit("erfc", 0.02, float(1 / (1 + mp.mpf("0.9375") / 2)), 7,
    lambda s: erfcx(2 / s - 2) / s, lambda s: s / erfcx(2 / s - 2))
