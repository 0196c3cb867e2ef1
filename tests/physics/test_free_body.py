"""An undamped free body keeps what nature keeps, for 10,000 steps in single precision."""

import numpy as np
import pytest

import phyxel as px
from phyxel.movers.phyxel_bodies import phyxels_of
from tests.physics.matter import displace

SOFT = px.Material(young=4.0e5, poisson=0.3, density=1000.0)
"""Stiff enough that the arms of the jack do not swing into each other: contact takes energy."""


@pytest.fixture(scope="module")
def tumbling():
    """A stretched, spinning, flying jack; energies and momenta every 20 steps."""
    body = px.Body(
        px.load("jack", points=100), material=SOFT, nodes=200, velocity=(3.0, 1.0, 0.0), spin=(2.0, 3.0, -1.0)
    )
    world = px.World(gravity=(0, 0, 0), device="cpu")
    world.add(body)
    model = phyxels_of(world).model
    stretched = 0.03 * (body.reference - body.reference.mean(axis=0)) * [1.0, -0.5, 0.2] / body.unit
    displace(model, stretched)
    rows = [body.diagnostics()]
    # Frames of one length, as a user has them: leap-frog is symplectic only while its step stays the same.
    frame = 20 * 0.95 * model.stable_step()
    for _ in range(540):
        world.advance(frame)
        rows.append(body.diagnostics())
    assert world.steps >= 10_000
    return body, rows


@pytest.mark.slow
def test_energy_does_not_drift(tumbling):
    """Leap-frog is symplectic: the running mean of the energy stays. Measured drift must be below 1 %."""
    _, rows = tumbling
    total = np.array([row["kinetic"] + row["elastic"] for row in rows])
    means = [total[part].mean() for part in np.array_split(np.arange(len(total)), 10)]
    drift = max(means) / min(means) - 1
    vibrating = total[0] - 0.5 * rows[0]["mass"] * (3.0**2 + 1.0)
    print(f"energy drift {drift:.2e} of all, {drift * total[0] / vibrating:.2e} of what is not flight")
    assert drift < 0.01
    assert drift * total[0] < 0.01 * vibrating


def test_linear_momentum_stays(tumbling):
    """To rounding: each step rounds v once: 10,000 steps are a random walk of 100 roundings, averaged over phyxels."""
    _, rows = tumbling
    momentum = np.array([row["momentum"] for row in rows])
    speed_scale = np.linalg.norm(momentum[0])
    drift = np.abs(momentum - momentum[0]).max() / speed_scale
    print(f"momentum drift {drift:.1e}")
    assert drift < 100 * np.finfo(np.float32).eps


def test_angular_momentum_stays(tumbling):
    """About the middle of mass, to 1e-4 of itself: a random walk of 10,000 steps' roundings. About the world's origin
    rounding of the momentum (above) would count with an arm of 50 m."""
    body, rows = tumbling
    first, last = (
        row["angular_momentum"] - np.cross(np.average(x, axis=0, weights=body.masses), row["momentum"])
        for x, row in ((body.reference, rows[0]), (body.positions, rows[-1]))
    )
    drift = np.abs(last - first).max() / np.linalg.norm(first)
    print(f"angular momentum drift {drift:.1e}")
    assert drift < 1e-4
