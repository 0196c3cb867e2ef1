"""Rest, found for all bodies of a world at once.

Phyxel bodies of a flock find theirs together, all others each for itself: none of them may come into another's way.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from phyxel.body import Body
from phyxel.errors import PhyxelError
from phyxel.movers.phyxel_bodies import PhyxelBodies
from phyxel.units import length_text
from phyxel.world import checkpoint

if TYPE_CHECKING:
    from phyxel.world.world import World

Floats = NDArray[np.float64]

NEAR = 0.5
"""Spacings between the surfaces of two bodies within which one may bear the other."""
MOST_LOOKS = 100
"""Moments on the way to rest at which two bodies are looked at."""
ADVICE = "rest is found for each body by itself; let `world.advance` bring them to rest, for which damping helps"


def settle(world: World, tolerance: float, most_steps: int) -> None:
    """Relax all bodies. If two of them that know nothing of each other's rest come near, all is as it was before, and
    that is said."""
    if not world.bodies:
        raise PhyxelError("settle: the world has no body; call world.add(body) first")
    if tied := world.attachments.every:
        raise PhyxelError(f"settle: {tied[0].one.name} and {tied[0].other.name} are tied, and {ADVICE}")
    world.moving.gather()
    pairs = [pair for pair in combinations(world.bodies, 2) if not _together(*pair)]
    before, start = (checkpoint.taken(world), _surfaces(world)) if pairs else ({}, {})
    for mover in world.movers:
        mover.settle(tolerance, most_steps)
    world.revision += 1
    end = _surfaces(world) if pairs else {}
    for one, other in pairs:
        reach = NEAR * max(one.unit, other.unit)
        if _come_near((start[one], end[one]), (start[other], end[other]), reach):
            checkpoint.put_back(world, before)
            world.revision += 1
            near = f"{one.name} and {other.name} come within {length_text(reach)} of each other"
            raise PhyxelError(f"settle: {near}, and {ADVICE}")


def _together(one: Body, other: Body) -> bool:
    return one.kind.mover is PhyxelBodies and other.kind.mover is PhyxelBodies


def _surfaces(world: World) -> dict[Body, Floats]:
    return {body: np.asarray(body.surface.positions, np.float64) for body in world.bodies}


def _come_near(one: tuple[Floats, Floats], other: tuple[Floats, Floats], reach: float) -> bool:
    """Whether two surfaces that go straight from a start to an end, (m, 3) each, are within `reach` [m] on the way."""
    (lower, upper), (low, high) = (_swept_box(way) for way in (one, other))
    if (lower > high + reach).any() or (low > upper + reach).any():
        return False
    farthest = sum(float(np.linalg.norm(end - start, axis=1).max()) for start, end in (one, other))
    looks = min(1 + math.ceil(farthest / reach), MOST_LOOKS)
    return any(_distance(_between(one, share), _between(other, share)) < reach for share in np.linspace(0, 1, looks))


def _swept_box(way: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    return np.minimum(*(x.min(axis=0) for x in way)), np.maximum(*(x.max(axis=0) for x in way))


def _between(way: tuple[Floats, Floats], share: float) -> Floats:
    return way[0] + share * (way[1] - way[0])


def _distance(one: Floats, other: Floats) -> float:
    """Between the nearest of two sets of places (m, 3) [m]."""
    return float(cKDTree(one).query(other)[0].min())
