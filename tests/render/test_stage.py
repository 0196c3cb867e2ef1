"""A world on stage: what is seen of its colliders."""

import numpy as np
import pytest

import phyxel as px
from phyxel.render.camera import Camera
from phyxel.render.shot import about_vertical
from phyxel.render.stage import Stage, visible_box
from phyxel.run.stage import scene_camera
from phyxel.scene.event_tables import CameraPart, OutputPart

RED = (1.0, 0.0, 0.0)
CAMERA = Camera(eye=(0.0, 0.0, 5.0), target=(0.0, 0.0, 0.0), fov=32.0, width=320, height=240)


def world_of(*colliders) -> px.World:
    cloud = px.load("sphere", points=2000)
    body = px.Body(cloud.with_colors(np.broadcast_to(RED, (2000, 3))), nodes=64, size=0.2)
    world = px.World(gravity=(0, 0, 0), device="cpu")
    for thing in (body, *colliders):
        world.add(thing)
    return world


def drawn(*colliders) -> np.ndarray:
    return Stage(CAMERA, None, "cpu").draw(world_of(*colliders)).astype(int)


def test_a_ball_is_seen_as_large_as_it_is():
    """A ball of radius r at distance d fills a disc of radius f r/√(d² − r²), f = h/(2 tan(fov/2)) pixels. Its surfels
    overlap the edge by less than their spacing, 1/50 of r, and a pixel: 10 % of the area."""
    here = (0.8, 0.0, 0.0)
    more = drawn(px.Sphere(0.4, at=here))[..., 3] - drawn()[..., 3]
    ys, xs = np.nonzero(more > 128)
    f = 120 / np.tan(np.radians(16.0))
    assert xs.mean() == pytest.approx(160 + f * 0.8 / 5, abs=3)
    assert ys.mean() == pytest.approx(120, abs=2)
    assert len(xs) == pytest.approx(np.pi * (f * 0.4 / np.sqrt(5**2 - 0.4**2)) ** 2, rel=0.1)


@pytest.mark.slow
def test_one_looks_into_a_mold_and_a_funnel():
    """The body in the middle is red where it is seen; a solid ball around it would hide it."""
    ball = px.load("sphere", points=300)
    colliders = {
        "hidden": px.Sphere(0.5),
        "mold": px.Mold(ball, inside_out=True, size=1.0),
        "funnel": px.Funnel(0.6, 0.3, 1.0, 0.05, at=(0, -0.5, 0)),
    }
    middle = {name: drawn(one)[120, 160] for name, one in colliders.items()}
    assert middle["hidden"][0] < 1.3 * middle["hidden"][2]
    for name in ("mold", "funnel"):
        assert middle[name][0] > 2 * middle[name][2]
    assert drawn(colliders["mold"])[120, 185, 3] > 128, "and the wall behind it"


def test_the_camera_sees_small_colliders_and_does_not_mind_large_ones():
    bare = visible_box(world_of())
    small = visible_box(world_of(px.Sphere(0.1, at=(0.5, 0, 0))))
    assert small[1][0] == pytest.approx(0.6)
    assert np.allclose(visible_box(world_of(px.Box((-9, -9, -9), (9, -1, 9)))), bare)


def test_a_turntable_turns_the_world_before_the_camera():
    """A ball r = 0.8 m to the right of the axis, after half a turn in two seconds: 0.8 m to the left; after a quarter,
    counterclockwise seen from above, behind the body, which stays. Distances from the eye 5 or 5.8 m."""
    world = world_of(px.Sphere(0.15, at=(0.8, 0, 0), look="clay"))
    stage = Stage(CAMERA, None, "cpu", turntable=90.0)
    f = 120 / np.tan(np.radians(16.0))
    alone = drawn()[..., 3]

    def column() -> float:
        others = (stage.draw(world)[..., 3].astype(int) - alone) > 128
        return float(np.nonzero(others)[1].mean()) if others.any() else np.nan

    assert column() == pytest.approx(160 + f * 0.8 / 5, abs=2)
    world.advance(0.5)
    assert column() == pytest.approx(160 + f * 0.8 * np.sqrt(0.5) / (5 + 0.8 * np.sqrt(0.5)), abs=2)
    world.advance(0.5)
    behind = stage.draw(world)
    world.advance(1.0)
    assert column() == pytest.approx(160 - f * 0.8 / 5, abs=2)
    assert behind[120, 160, 0] > 2 * behind[120, 160, 2], "the red body hides the ball"


def test_the_camera_of_a_turntable_sees_all_sides():
    """However a long box is turned, its corners lie in the picture; it is no farther than its longest side asks."""
    lower, upper = np.array([-0.3, -0.05, -0.05]), np.array([0.3, 0.05, 0.05])
    output = OutputPart(width=160, height=120)
    for direction in ((1.0, 0.2, 0.0), (0.3, 0.5, 1.0)):
        camera = scene_camera(lower, upper, CameraPart(direction=direction, turntable=45.0), output)
        corners = np.array([[x, y, z] for x in (-0.3, 0.3) for y in (-0.05, 0.05) for z in (-0.05, 0.05)])
        reach = []
        for degrees in range(0, 360, 10):
            turned = corners @ about_vertical(degrees).T
            right, up, forward = camera.axes @ (turned - np.asarray(camera.eye)).T
            reach.append(max(np.abs(right / forward).max() / 80, np.abs(up / forward).max() / 60) * camera.focal)
        assert 0.8 < max(reach) < 0.95


def test_bodies_are_drawn_with_their_own_looks():
    """Of two bodies alike but for their looks only the glossy one mirrors the soft box; given another, it does not."""
    world = world_of()
    world.add(
        px.Body(world.bodies[0].cloud, nodes=64, size=0.2, at=(0.5, 0, 0), place="center", look="clay", name="other")
    )
    stage = Stage(CAMERA, None, "cpu")
    picture = stage.draw(world)
    left, right = picture[:, :175, 1], picture[:, 175:, 1]
    assert left.max() > right.max() + 60
    world.bodies[0].look = "clay"
    assert abs(int(stage.draw(world)[:, :175, 1].max()) - int(right.max())) < 25
    with pytest.raises(px.PhyxelError, match="look"):
        world.bodies[0].look = "shiny"
    with pytest.raises(px.PhyxelError, match="sphere: look"):
        px.Sphere(0.1, look="glass")
