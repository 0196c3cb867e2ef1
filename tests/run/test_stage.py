"""The camera of a scene: it sees what is there, where physics has it, or says what it does not see."""

import warnings

import numpy as np
import pytest

import phyxel as px
from phyxel.errors import PhyxelWarning
from phyxel.run.stage import scene_stage, world_camera
from phyxel.scene import Scene

BALL = '[[body]]\nname = "{}"\nshape = "sphere"\npoints = 500\nnodes = 40\nat = [{}, {}, 0]\nsize = {}\n'
OUTPUT = "[output]\nwidth = 160\nheight = 90\n"
GROUND = '[[collider]]\nkind = "ground"\n'


def camera_of(scene: Scene, world: px.World):
    return world_camera(world, scene.content.camera, scene.content.output)


def shares(scene: Scene, world: px.World) -> np.ndarray:
    """Where the surfels of the first body are in the picture, over its half width and height, (m, 2)."""
    camera = camera_of(scene, world)
    right, up, forward = camera.axes @ (world.bodies[0].surface.positions - np.asarray(camera.eye)).T
    assert (forward > 0).all()
    return 2 * camera.focal / forward[:, None] * np.stack([right / camera.width, up / camera.height], axis=1)


@pytest.mark.parametrize("size", [0.01, 1.0, 300.0])
@pytest.mark.parametrize("place", [(0, 0), (1e3, -40), (-5, 20)])
def test_a_body_is_in_the_picture_wherever_it_starts(size, place):
    """Below the ground it is set down first: the camera knows, and frame 0 has colours of a ball in it."""
    x, y = (size * number for number in place)
    scene = Scene.parse(BALL.format("ball", x, y, size) + GROUND + OUTPUT)
    world = scene.world("cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if y < 0 else "error", PhyxelWarning)
        assert np.abs(shares(scene, world)).max() < 1
    assert world.bodies[0].surface.positions[:, 1].min() == pytest.approx(max(y, 0), abs=0.01 * size)


def test_a_body_that_the_camera_does_not_see_is_told_of():
    two = BALL.format("near", 0, 0.5, 1) + BALL.format("far", 100, 0.5, 1)
    looks = "[camera]\neye = [0, 1, {}]\ntarget = [0, 1, {}]\n"
    ahead, behind = (Scene.parse(two + looks.format(*z) + OUTPUT) for z in ((5, 0), (5, 10)))
    with pytest.warns(PhyxelWarning, match=r"^far: far outside the picture; leave camera\.eye") as told:
        scene_stage(ahead.world("cpu"), ahead.content.camera, ahead.content.output)
    assert sum("picture" in str(one.message) for one in told) == 1
    with pytest.warns(PhyxelWarning, match=r"outside the picture") as told:
        camera_of(behind, behind.world("cpu"))
    assert sum("picture" in str(one.message) for one in told) == 2
    own = Scene.parse(two + OUTPUT)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*picture", PhyxelWarning)
        camera_of(own, own.world("cpu"))
