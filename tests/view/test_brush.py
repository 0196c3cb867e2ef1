"""A brush melts a body, or makes it of another material, where it goes and nowhere else. Saved scenes keep it."""

import numpy as np
import pytest

from phyxel.scene import Scene
from tests.view.driven import Driven, differs

BALL = """
gravity = [0, -1, 0]
seconds = 0.2
[[body]]
name = "ball"
shape = "sphere"
points = 600
nodes = {nodes}
size = {size}
material = {{ young = 4e4, poisson = 0.3, density = 1000, damping = 1e-2 }}
[[collider]]
kind = "ground"
"""


def ball(size, nodes=250):
    return Driven(Scene.parse(BALL.format(size=size, nodes=nodes), "ball"))


def painted(driven, what, share, ways):
    """Strokes from the front with a brush of a share of the body's size, at parts of its half size from its middle."""
    body = driven.world.bodies[0]
    places = body.surface.positions
    middle, half = 0.5 * (places.min(axis=0) + places.max(axis=0)), 0.5 * np.ptp(places, axis=0)
    for x, y in ways:
        eye = middle + half * np.array([x, y, 8.0])
        driven.ask(do="brush", ray=eye.tolist(), way=[0.0, 0.0, -1.0], radius=share * 2 * half[0], what=what)
        driven.go_on(1)
    return middle, half[0]


@pytest.mark.parametrize(("size", "side"), [(0.5, 1), (0.1, -1)])
def test_it_melts_where_it_goes(size, side):
    driven = ball(size)
    driven.go_on(2)
    body = driven.world.bodies[0]
    born = body.birth.copy()
    middle, radius = 0.5 * (born.min(axis=0) + born.max(axis=0)), 0.5 * size
    painted(driven, "melt", 0.25, [(side * 0.5, 0.0), (side * 0.6, 0.1)])
    molten = body.substance.is_molten
    at = middle + radius * np.array([side * 0.5, 0.0, np.sqrt(0.75)])
    away = np.linalg.norm(born - at, axis=1)
    assert molten[away < 0.2 * size].all()
    assert not molten[away > 0.45 * size].any()
    count = len(driven.live.play.journal.events)
    painted(driven, "melt", 0.05, [(side * 0.5, 0.0)])
    assert len(driven.live.play.journal.events) == count, "what has melted is not told to melt again"
    painted(driven, "melt", 0.2, [(5.0, 5.0)])
    assert not driven.hub.of("notice"), "beside the body the stroke goes on"


def test_it_makes_it_of_a_material_and_the_scene_keeps_that():
    driven = ball(0.4, 120)
    driven.go_on(3)
    body = driven.world.bodies[0]
    painted(driven, "gelatin", 0.2, [(0.4, 0.3), (0.5, 0.2)])
    young = body.mixture.number("young")
    assert 0 < (young > 4.1e4).mean() < 0.5
    painted(driven, "melt", 0.15, [(-0.5, 0.0)])
    driven.go_on(8)
    assert 0 < body.substance.is_molten.mean() < 0.4
    painted(driven, "solidify", 0.5, [(-0.5, 0.0)])
    driven.go_on(4)
    assert not driven.hub.of("notice")
    assert differs(driven, driven.saved()) == ""


def test_what_it_cannot_do_is_told():
    driven = ball(0.4)
    painted(driven, "rubbber", 0.2, [(0.0, 0.0)])
    assert 'did you mean "rubber"' in driven.hub.of("notice")[-1]["text"]
