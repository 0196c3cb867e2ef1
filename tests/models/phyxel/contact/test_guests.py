"""How a phyxel model takes guests in."""

import os
import subprocess
import sys

import numpy as np
import pytest

from tests.physics.guests import INTERVAL, UPRIGHT, GuestBox

GRAVITY = np.array([0.0, -9.81, 0.0])


def stand(box: GuestBox, gap: float, intervals: int = 3) -> None:
    """Let it stand on what does not move, so far below its samples [m]."""
    k = box.count
    for _ in range(intervals):
        box.meet(UPRIGHT, np.full(k, gap), np.zeros((k, 3)), np.zeros((3 * k, 3 * k)), friction=0.5)


@pytest.mark.parametrize("integrator", ["leapfrog", "implicit"])
def test_guests_that_are_far_or_gone_change_nothing(integrator):
    """The same bits without guests, with guests that are not met, and after they have been."""
    alone, beside = (GuestBox(integrator, gravity=GRAVITY) for _ in range(2))
    for box in (alone, beside):
        box.throw(np.array([0.1, 0.0, 0.2]), np.array([1.0, 2.0, 3.0]))
    for _ in range(4):
        alone.go_on()
    stand(beside, 1.0, 2)
    beside.model.set_guests(None)
    for _ in range(2):
        beside.go_on()
    assert np.array_equal(alone.model.u.numpy(), beside.model.u.numpy())
    assert np.array_equal(alone.model.v.numpy(), beside.model.v.numpy())


def test_room_stays_where_it_is():
    """Arrays are made once, and again only for more contacts than ever."""
    box = GuestBox(gravity=GRAVITY)
    stand(box, 0.0, 1)
    kept = box.model.guests.arrays
    stand(box, 0.0, 2)
    assert box.model.guests.arrays is kept
    box.nodes, box.weights = np.tile(box.nodes, (3, 1)), np.tile(box.weights, (3, 1))
    box.count, box.pressing, box.slip = 48, np.zeros(48, bool), np.zeros((48, 2))
    stand(box, 0.0, 1)
    assert box.model.guests.arrays is not kept


def test_the_same_place_three_times_bears_as_much():
    """Contacts that say the same share the load: it is as with one each, but for what sweeps leave, 1e-4 of the
    impulses of each of sixty substeps."""
    once, thrice = GuestBox(gravity=GRAVITY, damping=2e-3), GuestBox(gravity=GRAVITY, damping=2e-3)
    thrice.nodes, thrice.weights = np.tile(thrice.nodes, (3, 1)), np.tile(thrice.weights, (3, 1))
    thrice.count, thrice.pressing, thrice.slip = 48, np.zeros(48, bool), np.zeros((48, 2))
    for box in (once, thrice):
        stand(box, 0.0, 10)
    assert np.abs(once.v - thrice.v).max() < 1e-3 * np.abs(GRAVITY).max() * INTERVAL


def test_a_depth_is_taken_back_without_speed():
    """A box that begins a twentieth of a spacing inside a guest comes out of it, at a tenth at most of the speed that
    would take it out in an interval: only its skin is moved, and then pushes the rest."""
    box = GuestBox(damping=2e-3)
    gap, k = np.full(box.count, -0.0025), box.count
    fastest = 0.0
    for _ in range(240):
        booked = box.meet(UPRIGHT, gap, np.zeros((k, 3)), np.zeros((3 * k, 3 * k)))
        gap = booked.gap
        fastest = max(fastest, np.abs(box.momentum).max() / box.mass)
    print(f"left {gap.min():.1e} m, at most {fastest:.1e} m/s")
    assert gap.min() > -0.0025 / 20
    assert fastest < 0.1 * 0.0025 / INTERVAL


BITS = """
import hashlib, numpy as np
from tests.physics.guests import GuestBox, RigidSlab
for integrator, intervals in (("leapfrog", 3), ("implicit", 1)):
    box = GuestBox(integrator, cells=10)
    box.throw(np.array([0.5, -2.0, 0.0]), np.array([3.0, 1.0, -2.0]))
    slab = RigidSlab(box, 0.5)
    for _ in range(intervals):
        booked = slab.receive(box, 0.3, 0.5)
    print(hashlib.sha256(b"".join(a.tobytes() for a in (box.x, box.v, slab.x, slab.v, booked.impulses))).hexdigest())
"""


def test_the_same_bits_on_one_and_two_threads():
    def digest(threads: int) -> str:
        environment = os.environ | {"PHYXEL_THREADS": str(threads), "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run([sys.executable, "-c", BITS], env=environment, capture_output=True, text=True, check=True)
        return done.stdout

    assert digest(1) == digest(2)
