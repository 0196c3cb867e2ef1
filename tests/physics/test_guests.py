"""Phyxel bodies among guests (physics 15.10, 15.11): momenta, energy, rest, Coulomb's friction."""

import numpy as np
import pytest

from tests.physics.guests import INTERVAL, UNIT, GuestBox, RigidSlab, SprungTable
from tests.physics.matter import rotation

GRAVITY = 9.81
INTERVALS = {"leapfrog": INTERVAL, "implicit": 1 / 60}


@pytest.mark.parametrize("integrator", ["leapfrog", "implicit"])
@pytest.mark.parametrize("restitution", [0.0, 0.5])
@pytest.mark.parametrize("ratio", [0.1, 1.0, 10.0, 100.0])
def test_a_spinning_box_hits_a_free_slab(integrator, restitution, ratio):
    """Momentum and angular momentum stay: what single precision rounds off velocities of 2 m/s in 1/10 s is below 1e-6
    of the impulses, and 2e-6 of their moments about the origin. There is never more energy than at first."""
    box = GuestBox(integrator)
    box.throw(np.array([0.5, -2.0, 0.0]), np.array([3.0, 1.0, -2.0]))
    slab = RigidSlab(box, ratio)
    momentum, angular = box.momentum, box.angular_momentum
    energies, impulses, moments, gaps = [box.energy], 0.0, 0.0, []
    for _ in range(24):
        places = box.places
        booked = slab.receive(box, friction=0.3, restitution=restitution)
        push = booked.impulses @ slab.turn.T[[1, 0, 2]]
        impulses += np.abs(push).sum()
        moments += np.abs(np.cross(places, push)).sum()
        energies.append(box.energy + slab.energy)
        gaps.append(booked.gap.min())
    lost = np.abs(box.momentum + slab.mass * slab.v - momentum).max() / impulses
    turned = np.abs(box.angular_momentum + slab.angular_momentum - angular).max() / moments
    gained, deepest = max(energies) / energies[0] - 1, min(gaps) / UNIT
    print(f"momentum {lost:.1e}, angular {turned:.1e}, gained {gained:.1e}, kept {energies[-1] / energies[0]:.3f}")
    assert impulses > 0.5 * min(box.mass, slab.mass)
    assert lost < 1e-6
    assert turned < 2e-6
    assert gained < 1e-4
    assert deepest > -0.05
    assert (box.momentum / box.mass - slab.v)[1] > -0.05, "they part, or go on together"


@pytest.mark.parametrize("integrator", ["leapfrog", "implicit"])
@pytest.mark.parametrize("ratio", [0.1, 100.0])
def test_a_box_rests_on_a_table(integrator, ratio):
    """On a light and on a heavy table, which stands on a spring: it bears the weight of the box, to 1e-4, the spring
    that of both, and what still moves is a thousandth of what an interval's weight would make. Springs of implicit
    steps give way by some thousandths of a spacing."""
    box = GuestBox(integrator, damping=5e-3, gravity=np.array([0.0, -GRAVITY, 0.0]))
    interval = INTERVALS[integrator]
    table = SprungTable(box, ratio, GRAVITY, interval)
    for _ in range(round(1 / interval)):
        booked = table.receive(box, friction=0.5)
    load = booked.impulses[:, 0].sum() / (box.mass * GRAVITY * interval)
    borne = -table.stiffness * table.y / ((box.mass + table.mass) * GRAVITY)
    speed = np.abs(box.v).max()
    print(f"load {load:.6f}, borne {borne:.6f}, {speed:.1e} m/s, gap {booked.gap.min() / UNIT:.1e} spacings")
    assert load == pytest.approx(1.0, abs=1e-4)
    assert borne == pytest.approx(1.0, abs=1e-4)
    assert speed < 1e-3 * GRAVITY * INTERVAL
    assert np.abs(booked.gap).max() < 2e-3 * UNIT


def on_a_plane(integrator: str, share: float, degrees: float, friction: float) -> tuple[float, float]:
    """A box on an immovable plane that is turned, as steep as `share` of what friction holds: how far it goes down in
    the second half second [m], and what it gains there over g (sin θ − μ cos θ)."""
    turn, angle = rotation(degrees), np.arctan(share * friction)
    gravity = GRAVITY * turn @ np.array([np.sin(angle), -np.cos(angle), 0.0])
    box = GuestBox(integrator, damping=2e-3, gravity=gravity, turn=turn)
    # Tangents that lie askew to the way down.
    axes = turn @ np.array([[0.0, 1.0, 0.0], [0.6, 0.0, 0.8], [0.8, 0.0, -0.6]]).T
    down, k, interval = turn @ np.array([1.0, 0.0, 0.0]), box.count, INTERVALS[integrator]
    still, ways = (np.zeros((k, 3)), np.zeros((3 * k, 3 * k))), []
    for _ in range(round(1 / interval)):
        box.meet(axes.T, box.places @ axes[:, 0] + box.half, *still, friction, interval=interval)
        ways.append((box.x.mean(axis=0) @ down, box.v.mean(axis=0) @ down))
    (before, slow), (after, fast) = ways[len(ways) // 2 - 1], ways[-1]
    expected = GRAVITY * (np.sin(angle) - friction * np.cos(angle))
    return after - before, (fast - slow) / 0.5 / expected


@pytest.mark.parametrize("integrator", ["leapfrog", "implicit"])
@pytest.mark.parametrize(("degrees", "friction"), [(0.0, 0.5), (70.0, 0.3), (200.0, 0.5)])
def test_friction_of_a_guest_has_its_limit(integrator, degrees, friction):
    """At 0.95 of the slope that friction holds the box stays, but for 10 µm of what is left of putting it down; at 1.05
    it gains g (sin θ − μ cos θ), to 1 %: a twentieth of what friction takes, which is so right to 5e-4."""
    crept, _ = on_a_plane(integrator, 0.95, degrees, friction)
    _, gained = on_a_plane(integrator, 1.05, degrees, friction)
    print(f"crept {crept:.1e} m, gained {gained:.4f} of what it should")
    assert abs(crept) < 1e-5
    assert gained == pytest.approx(1.0, rel=0.01)
