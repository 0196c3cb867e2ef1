"""Phyxel brings point-sampled objects to life.

import phyxel as px

bear = px.Body(px.load("bear"), material=px.Material.gelatin(), nodes=800)
world = px.World()
world.add(bear)
world.add(px.Ground())
for frame in world.play(seconds=4, fps=60):
    px.export.ply(frame, f"out/{frame.index:04d}.ply")
"""

from importlib import import_module
from typing import TYPE_CHECKING

from phyxel.errors import did_you_mean
from phyxel.notebook import paint_with

if TYPE_CHECKING:
    from phyxel import export as export
    from phyxel.body.attach import Attach as Attach
    from phyxel.body.body import Body as Body
    from phyxel.body.holds import Handle as Handle
    from phyxel.body.inside import Inside as Inside
    from phyxel.body.skeleton import Bone as Bone
    from phyxel.body.skeleton import Skeleton as Skeleton
    from phyxel.body.vibration import Vibrations as Vibrations
    from phyxel.body.vibration import modes as modes
    from phyxel.contact.colliders import Box as Box
    from phyxel.contact.colliders import Capsule as Capsule
    from phyxel.contact.colliders import Funnel as Funnel
    from phyxel.contact.colliders import Ground as Ground
    from phyxel.contact.colliders import Sphere as Sphere
    from phyxel.contact.colliders import Spike as Spike
    from phyxel.contact.mold import Mold as Mold
    from phyxel.errors import PhyxelError as PhyxelError
    from phyxel.errors import PhyxelWarning as PhyxelWarning
    from phyxel.fields import Attraction as Attraction
    from phyxel.fields import Field as Field
    from phyxel.fields import Filling as Filling
    from phyxel.fields import Push as Push
    from phyxel.fields import Wind as Wind
    from phyxel.fields import Wrap as Wrap
    from phyxel.material.material import Material as Material
    from phyxel.material.membrane import Membrane as Membrane
    from phyxel.material.variation import Channel as Channel
    from phyxel.points.cloud import PointCloud as PointCloud
    from phyxel.points.load import load as load
    from phyxel.region import Ball as Ball
    from phyxel.region import Spot as Spot
    from phyxel.render.picture import render as render
    from phyxel.render.stage import stage as stage
    from phyxel.run.run import Run as Run
    from phyxel.scene.scene import Scene as Scene
    from phyxel.scene.scene import gallery as gallery
    from phyxel.solid.solid import Solid as Solid
    from phyxel.world.world import Frame as Frame
    from phyxel.world.world import World as World
    from phyxel.world.world import settle as settle

__version__ = "0.1.0"

_HOMES = {
    "body.attach": ("Attach",),
    "body.body": ("Body",),
    "body.holds": ("Handle",),
    "body.inside": ("Inside",),
    "body.skeleton": ("Bone", "Skeleton"),
    "body.vibration": ("Vibrations", "modes"),
    "contact.colliders": ("Box", "Capsule", "Funnel", "Ground", "Sphere", "Spike"),
    "contact.mold": ("Mold",),
    "errors": ("PhyxelError", "PhyxelWarning"),
    "fields": ("Attraction", "Field", "Filling", "Push", "Wind", "Wrap"),
    "material.material": ("Material",),
    "material.membrane": ("Membrane",),
    "material.variation": ("Channel",),
    "points.cloud": ("PointCloud",),
    "points.load": ("load",),
    "region": ("Ball", "Spot"),
    "render.stage": ("stage",),
    "run.run": ("Run",),
    "scene.scene": ("Scene", "gallery"),
    "solid.solid": ("Solid",),
    "world.world": ("Frame", "World", "settle"),
}
"""Where the names of `px` are, the same as above. All are imported when the first is used: NumPy, SciPy, Warp and the
kernels take a second or two."""
_HOME = {name: module for module, names in _HOMES.items() for name in names}
_MODULES = ("export", "render")
__all__ = sorted({*_HOME, *_MODULES})

paint_with(lambda thing: import_module("phyxel.render.picture").thumbnail(thing))


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"phyxel.{name}")
    if name not in _HOME:
        raise AttributeError(f'phyxel has no "{name}"{did_you_mean(name, __all__)}')
    import_module("phyxel.world")  # fills the table of models, without which a body is moved by nothing
    globals()[name] = found = getattr(import_module(f"phyxel.{_HOME[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, "__doc__", "__version__"})
