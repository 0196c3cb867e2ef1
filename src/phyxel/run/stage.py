"""The camera and the stage that a scene asks for."""

from __future__ import annotations

from phyxel.errors import tell
from phyxel.region import Floats
from phyxel.render.camera import Camera
from phyxel.render.stage import Stage, aimed, backdrop_for, far_from, framed, visible_box
from phyxel.scene.event_tables import CameraPart, OutputPart
from phyxel.world import World


def scene_camera(lower: Floats, upper: Floats, camera: CameraPart, output: OutputPart) -> Camera:
    """Eye and target as the scene has them, else the nearest camera that sees a box [m]; on a turntable, from all
    sides."""
    size, turns = (output.width, output.height), range(0, 360, 15) if camera.turntable else [0]
    nearest = framed(lower, upper, camera.direction, size, camera.fov, output.inside, turns)
    return aimed(nearest, camera.eye, camera.target)


def world_camera(world: World, camera: CameraPart, output: OutputPart) -> Camera:
    """The camera of a scene, which sees the bodies, set down, and the ground under them unless it is told. It is said
    of which bodies it sees nothing."""
    world.set_down()
    chosen = scene_camera(*visible_box(world), camera, output)
    for body in far_from(chosen, world):
        tell(f"{body.name}: far outside the picture; leave camera.eye and camera.target out, and all bodies are seen")
    return chosen


def scene_stage(world: World, camera: CameraPart, output: OutputPart) -> Stage:
    """A stage with the camera of a scene."""
    chosen = world_camera(world, camera, output)
    background = output.background or backdrop_for(output.inside)
    return Stage(chosen, background, world.device.alias, camera.turntable, output.inside)
