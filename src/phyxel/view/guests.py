"""A scan that is set down in a world that runs already: where it stands, and how large it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from phyxel.contact.colliders import Ground
from phyxel.scene.around import GAP, Bare
from phyxel.scene.body_tables import BodyPart
from phyxel.units import length_text
from phyxel.world import World

SMALLEST, LARGEST = 0.25, 4.0
"""Size of a guest over that of the bodies that are there: beyond, it is given theirs."""


def guest(path: Path, world: World, taken: set[str]) -> tuple[BodyPart, str]:
    """The body that a file becomes, beside those that are there, and what is to be said of it. `taken` are names that
    others have."""
    bare = Bare(path.name, path)
    places = [body.surface.positions for body in world.bodies]
    own = bare.cloud.size
    theirs = max((float(np.ptp(one, axis=0).max()) for one in places), default=own)
    fits = SMALLEST * theirs <= own <= LARGEST * theirs
    size = own if fits else theirs
    told = f"{path.name}: {length_text(own)} large" + ("" if fits else f", shown {length_text(size)}, as what is there")
    extent = np.ptp(bare.cloud.positions, axis=0) * size / own
    names = (path.stem, *(f"{path.stem} {k}" for k in range(2, len(taken) + 3)))
    chosen = {"name": next(one for one in names if one not in taken), "at": _beside(places, extent, world)}
    return bare.set_down(size=size).content.body[0].model_copy(update=chosen), told


def _beside(places: list[np.ndarray], extent: np.ndarray, world: World) -> tuple[float, float, float]:
    """Where the middle of its foot is [m]: on the ground (without one, as low as the others), right of all."""
    every = np.concatenate([*places, np.zeros((0, 3))])
    lower, upper = (every.min(axis=0), every.max(axis=0)) if len(every) else (np.zeros(3), np.zeros(3))
    grounds = [one.height for one in world.colliders if isinstance(one, Ground)]
    floor = max(grounds, default=float(lower[1]))
    beside = float(upper[0] + 0.5 * extent[0] + 0.1 * extent.max()) if len(every) else 0.0
    at = (beside, floor + GAP * float(extent.max()), float(0.5 * (lower[2] + upper[2])))
    x, y, z = (float(f"{number:.6g}") for number in at)
    return x, y, z
