"""Hands that turn what they hold: a bar twisted at one end, its energy, and that a saved scene keeps the turn."""

import numpy as np
import pytest

from phyxel.errors import PhyxelError
from phyxel.rotation import about_axis, euler, euler_angles, nearest_rotation, rotation_vector
from phyxel.scene import Scene
from phyxel.view.commands import Grab, TurnHeld, checked
from phyxel.view.hands import Hands
from phyxel.view.journal import Journal
from phyxel.view.pace import rate_for


def bar(size, model="phyxel"):
    """A bar from x = 0 to x = size, a quarter as thick, clamped at x = 0."""
    return f"""
gravity = [0, 0, 0]
seconds = 0.1
fps = 60
[[body]]
name = "bar"
shape = "bar"
points = 1500
nodes = 300
size = {size}
model = "{model}"
place = "file"
material = {{ young = 1e5, poisson = 0.3, density = 1000, damping = 5e-2 }}
[[body.hold]]
lower = [-1, -1, -1]
upper = [{0.12 * size}, 1, 1]
"""


class Twisted:
    """The bar, held by a hand in the middle of its end, which looks along it."""

    def __init__(self, size, model="phyxel"):
        played = Scene.parse(bar(size, model), "bar")
        self.performance, self.journal = played.performance("cpu"), Journal(played)
        self.hands, self.world = Hands(self.performance, self.journal), self.performance.world
        self.hands.happen(rate=rate_for(self.world, 1.0))
        self.body = self.world.bodies[0]
        eye = (3 * size, 0.0, 0.0)
        self.hands.grab(1, Grab(do="grab", ray=eye, way=(-1.0, 0.0, 0.0), ahead=(-1.0, 0.0, 0.0)))

    def turn(self, degrees, steps=5):
        """About the axis of the bar."""
        for _ in range(steps):
            self.hands.turn(1, TurnHeld(do="turn", spin=(float(np.radians(degrees)) / steps, 0.0, 0.0)))
            self.live_on(2)

    def live_on(self, ticks):
        for _ in range(ticks):
            self.hands.follow()
            self.world.tick()

    @property
    def angle(self):
        """By which the nodes in the hand are turned about x [degrees], as the rotation that fits them best."""
        handle = self.body.handles[-1]
        born, now = self.body.birth[handle.nodes], self.body.positions[handle.nodes]
        fitted = nearest_rotation((now - now.mean(axis=0)).T @ (born - born.mean(axis=0)))
        return float(np.degrees(rotation_vector(fitted)[0]))


@pytest.mark.parametrize(("size", "degrees"), [(1.0, 30.0), (0.2, -50.0)])
def test_what_is_held_turns_as_far_as_the_hand(size, degrees):
    twisted = Twisted(size)
    twisted.turn(degrees)
    twisted.live_on(60)
    assert twisted.angle == pytest.approx(degrees, rel=0.03)
    shares = twisted.body.birth[:, 0] / size
    middle = np.abs(shares - 0.5) < 0.1
    born, now = twisted.body.birth[middle], twisted.body.positions[middle]
    fitted = nearest_rotation((now - now.mean(axis=0)).T @ (born - born.mean(axis=0)))
    between = np.degrees(rotation_vector(fitted)[0]) / degrees
    assert 0.1 < between < 0.7, "and between the ends the bar is twisted by a part of it"


def test_its_work_is_elastic_energy():
    """Of a bar that is twisted a little, as the square of the angle; and it is all given back."""
    energies = {}
    for degrees in (10.0, 20.0):
        twisted = Twisted(0.5)
        twisted.turn(degrees)
        twisted.live_on(150)
        energies[degrees] = twisted.body.diagnostics()["elastic"]
        assert twisted.body.diagnostics()["kinetic"] < 0.02 * energies[degrees]
    assert energies[20.0] / energies[10.0] == pytest.approx(4, rel=0.15)
    twisted.turn(-20.0)
    twisted.live_on(150)
    assert twisted.body.diagnostics()["elastic"] < 0.02 * energies[20.0]


def test_a_saved_scene_keeps_the_turn():
    """To the bit, also of a hand that pulled before, turned about several axes, and let go."""
    twisted = Twisted(0.5)
    twisted.hands.in_hand[1].goal = np.array([0.02, 0.03, 0.0])
    twisted.live_on(4)
    for spin in ((0.3, 0.0, 0.0), (0.0, 0.2, -0.3), (2.5, 0.0, 0.0), (2.5, 0.0, 0.0)):
        twisted.hands.turn(1, TurnHeld(do="turn", spin=spin))
        twisted.live_on(7)
    twisted.hands.let_go(1)
    twisted.live_on(5)
    again = twisted.journal.scene(twisted.performance)
    world = again.world("cpu")
    rate = twisted.world.rate
    while world.time < twisted.world.time - 0.5 / rate:
        world.advance(min(1 / rate, twisted.world.time - world.time))
    assert world.time == twisted.world.time
    assert np.array_equal(world.bodies[0].positions, twisted.body.positions)
    assert not np.allclose(twisted.body.positions, twisted.body.birth, atol=0.01)


def test_one_point_cannot_be_turned():
    twisted = Twisted(1.0, "modal")
    with pytest.raises(PhyxelError, match='only one spot is held, as "modal" bodies are'):
        twisted.turn(10)


def test_more_than_half_a_turn_is_refused():
    with pytest.raises(PhyxelError, match="at most half a turn"):
        checked({"do": "turn", "spin": [3.0, 1.5, 0.0]})


def test_angles_come_back_and_go_on_beyond_half_a_turn():
    rng = np.random.default_rng(3)
    for degrees in rng.uniform(-80, 80, (20, 3)):
        assert euler_angles(euler(degrees)) == pytest.approx(degrees)
    assert euler_angles(about_axis((1, 0, 0), 190.0), (175.0, 0, 0)) == pytest.approx([190, 0, 0])
