"""Damped oscillators, and motion that nothing pulls back, over a time step: exact solutions (physics 11.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RESOLVED = 1.0
"""ω Δt up to which a mode's swing is followed; from π on it only goes to where the forces balance, in one go."""


@dataclass(frozen=True)
class OscillatorStep:
    """What a time step does to oscillators z̈ + 2γ ż + λ z = f under an even f: the exact solution,

    z ← z + s ż + g (f − λ z),   ż ← e ż + s (f − λ z).
    """

    s: Floats
    g: Floats
    e: Floats


def pace(values: Floats, drag: float, damping: float, dt: float, calm: bool = False) -> OscillatorStep:
    """The pace of modes with ω² = `values` and Rayleigh's damping, γ = ½(α + βω²). What a step cannot resolve is damped
    further, up to critically: no response is then ever negative. `calm` damps all modes so."""
    omega = np.sqrt(values)
    share = 1.0 if calm else np.clip((omega * dt - RESOLVED) / (np.pi - RESOLVED), 0.0, 1.0)
    gamma = np.maximum(0.5 * (drag + damping * values), share * omega)
    root = np.sqrt((gamma**2 - values).astype(complex))
    slow, fast = np.exp((root - gamma) * dt), np.exp(-(root + gamma) * dt)
    even = np.abs(root * dt) < 1e-4
    s = np.where(even, dt * np.exp(-gamma * dt), ((slow - fast) / np.where(even, 1.0, 2 * root)).real)
    c = (0.5 * (slow + fast)).real
    short = (values + gamma**2) * dt**2 < 1e-5
    series = 0.5 * dt**2 * (1 - 2 / 3 * gamma * dt - (values - 4 * gamma**2) * dt**2 / 12)
    g = np.where(short, series, (1 - c - gamma * s) / np.where(values > 0, values, 1.0))
    return OscillatorStep(s, g, c - gamma * s)


def rigid_pace(drag: float, dt: float) -> OscillatorStep:
    """That of a motion nothing pulls back."""
    if drag * dt < 1e-6:
        return OscillatorStep(np.array(dt), np.array(0.5 * dt**2), np.array(1 - drag * dt))
    s = -np.expm1(-drag * dt) / drag
    return OscillatorStep(np.array(s), np.array((dt - s) / drag), np.exp(-drag * dt))
