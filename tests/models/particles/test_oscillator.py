"""The exact step of one oscillator against the exponential of its matrix, in 120 digits, in all regimes."""

import itertools
from decimal import Decimal, localcontext

import numpy as np
import pytest
import warp as wp

from phyxel import device as dev
from phyxel.models.particles.oscillator import response

wp.set_module_options(dev.KERNEL_OPTIONS)

EPS = np.finfo(np.float64).eps


@wp.kernel
def respond(first: int, cases: wp.array(dtype=wp.vec3d), found: wp.array(dtype=wp.vec3d)):
    i = first + wp.tid()
    found[i] = response(cases[i][0], cases[i][1], cases[i][2])


def responses(cases):
    """(a, b, h) of rows (d, w, t)."""
    device = dev.pick("cpu")
    given = wp.array(np.array(cases, np.float64), dtype=wp.vec3d, device=device)
    found = wp.zeros(len(given), dtype=wp.vec3d, device=device)
    dev.launch(respond, len(given), [given, found], device, split=False)
    return found.numpy()


def product(A, B):
    return [[sum(x * y for x, y in zip(row, column, strict=True)) for column in zip(*B, strict=True)] for row in A]


def exponential(d, w, t):
    """(a, b, h) out of exp of [[0, 1, 0], [−w, −d, 1], [0, 0, 0]] t, by Taylor's series of a 2^−k th and squaring."""
    with localcontext() as context:
        context.prec = 120
        d, w, t = Decimal(d), Decimal(w), Decimal(t)
        doublings = max(0, int((t * (1 + d + w)).adjusted() * 3.33) + 8)
        t /= 2**doublings
        M = [[0 * t, t, 0 * t], [-w * t, -d * t, t], [0 * t, 0 * t, 0 * t]]
        total = [[Decimal(int(i == j)) for j in range(3)] for i in range(3)]
        power = total
        for k in range(1, 45):
            power = [[x / k for x in row] for row in product(power, M)]
            total = [[x + y for x, y in zip(one, other, strict=True)] for one, other in zip(total, power, strict=True)]
        for _ in range(doublings):
            total = product(total, total)
        return [float(total[0][2]), float(total[0][1]), float(total[1][1])]


def all_regimes():
    """Under-, over-, critically damped and nearly so, without damping, without stiffness, without both; short, long."""
    for w, t in itertools.product((0.0, 1e-12, 1e-4, 1.0, 3.7e3, 1e10), (1e-6, 1e-4, 0.01, 1.0, 10.0, 1e3)):
        critical = 2 * np.sqrt(w)
        near = [critical * (1 + sign * 10.0**-k) for sign in (-1, 1) for k in (1, 4, 8, 12, 15)]
        for d in (0.0, 1e-9, 1e-3, 0.3, 20.0, 1e4, 1e9, critical, *near):
            yield d, w, t


def test_one_step_is_exact_in_every_regime():
    """a and b to some rounding errors of themselves, h to some of 1. A swing by θ radians is known to θ rounding errors
    of its amplitude, as its frequency is; what faded by e^(−x) to x rounding errors of what is left."""
    cases = list(dict.fromkeys(all_regimes()))
    found = responses(cases)
    assert np.isfinite(found).all()
    for (d, w, t), (a, b, h) in zip(cases, found, strict=True):
        wanted = exponential(d, w, t)
        theta = np.sqrt(max(w - 0.25 * d * d, 0.0)) * t
        swing = 100 * EPS * np.exp(-0.5 * d * t) * theta if theta > 1 else 0.0
        some = 100 * EPS
        slow = 0.5 * d * t if theta > 0 else min(d * t, 2 * w / max(d, 1e-300) * t)
        where = f"d = {d!r}, w = {w!r}, t = {t!r}"
        assert a == pytest.approx(wanted[0], rel=some + swing, abs=0), where
        assert b == pytest.approx(wanted[1], rel=some * (1 + slow), abs=swing * t / max(theta, 1.0) + 1e-300), where
        assert h == pytest.approx(wanted[2], rel=0, abs=some + swing), where


@pytest.mark.parametrize("d", [0.0, 0.7, 2 * np.sqrt(30.0), 2 * np.sqrt(30.0) * (1 + 1e-9), 400.0])
def test_many_short_steps_are_one_long_one(d):
    """1e5 steps of 1e-4 s lead where one of 10 s does, with a force, in every regime: to 1e5 rounding errors."""
    w, f = 30.0, 7.0
    (a, b, h), long = responses([(d, w, 1e-4), (d, w, 10.0)])
    state = np.array([1.3, -4.0])
    step = np.array([[1 - w * a, b], [-w * b, h]])
    kick = np.array([a, b]) * f
    wanted = np.array([[1 - w * long[0], long[1]], [-w * long[1], long[2]]]) @ state + long[:2] * f
    for _ in range(100_000):
        state = step @ state + kick
    np.testing.assert_allclose(state, wanted, atol=1e5 * EPS * 10)


def test_energy_is_kept_without_damping_and_never_grows_with_it():
    """½v² + ½wu² of random oscillators over many decades after one step: the same to rounding with d = 0, else not
    more than before; and no response is beyond that of a free particle, |b| ≤ t and 0 ≤ a ≤ t²/2."""
    random = np.random.default_rng(5)
    w, t = 10.0 ** random.uniform(-8, 10, 20_000), 10.0 ** random.uniform(-6, 3, 20_000)
    d = np.where(np.arange(len(w)) % 2, 10.0 ** random.uniform(-8, 8, len(w)), 0.0)
    a, b, h = responses(np.stack([d, w, t], axis=1)).T
    u, v = random.normal(size=(2, len(w))) / np.sqrt([w, np.ones_like(w)])
    after_u, after_v = u + b * v - a * w * u, h * v - b * w * u
    before, after = 0.5 * (w * u**2 + v**2), 0.5 * (w * after_u**2 + after_v**2)
    free = d == 0
    np.testing.assert_allclose(after[free], before[free], rtol=50 * EPS)
    assert (after <= before * (1 + 50 * EPS)).all()
    assert (np.abs(b) <= t * (1 + 4 * EPS)).all()
    assert (a >= 0).all()
    assert (a <= 0.5 * t**2 * (1 + 4 * EPS)).all()
