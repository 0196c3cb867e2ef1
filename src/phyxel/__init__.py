"""Phyxel brings point-sampled objects to life.

import phyxel as px

bear = px.Body(px.load("bear"), material=px.Material.gelatin(), nodes=800)
world = px.World()
world.add(bear)
world.add(px.Ground())
for frame in world.play(seconds=4, fps=60):
    px.export.ply(frame, f"out/{frame.index:04d}.ply")
"""

from phyxel.body import Body
from phyxel.body.holds import Handle
from phyxel.body.inside import Inside
from phyxel.body.skeleton import Bone, Skeleton
from phyxel.body.vibration import Vibrations, modes
from phyxel.contact.colliders import Box, Capsule, Funnel, Ground, Sphere, Spike
from phyxel.contact.mold import Mold
from phyxel.errors import PhyxelError
from phyxel.fields import Attraction, Field, Filling, Push, Wind, Wrap
from phyxel.material import Material, Membrane
from phyxel.material.variation import Channel
from phyxel.points.cloud import PointCloud
from phyxel.points.load import load
from phyxel.region import Ball, Spot
from phyxel.solid.solid import Solid
from phyxel.world import Frame, World, settle

__version__ = "0.1.0"
__all__ = [
    "Attraction",
    "Ball",
    "Body",
    "Bone",
    "Box",
    "Capsule",
    "Channel",
    "Field",
    "Filling",
    "Frame",
    "Funnel",
    "Ground",
    "Handle",
    "Inside",
    "Material",
    "Membrane",
    "Mold",
    "PhyxelError",
    "PointCloud",
    "Push",
    "Skeleton",
    "Solid",
    "Sphere",
    "Spike",
    "Spot",
    "Vibrations",
    "Wind",
    "World",
    "Wrap",
    "load",
    "modes",
    "settle",
]


def __getattr__(name: str) -> object:
    """What needs more than NumPy, SciPy and Warp, or is heavy, is imported when first used."""
    import importlib

    if name in ("Scene", "gallery"):
        return getattr(importlib.import_module("phyxel.scene"), name)
    if name == "stage":
        return importlib.import_module("phyxel.render.stage").stage
    if name in ("export", "render"):
        return importlib.import_module(f"phyxel.{name}")
    raise AttributeError(f"module 'phyxel' has no attribute '{name}'")
