"""Bodies that fall apart: what hangs together no longer becomes bodies of their own.

The heaviest part keeps the body and its name, the others are called bear-2, bear-3, ... Nothing moves: each takes its
own nodes with all they have, so mass, momenta and energy are what they were.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from phyxel.body import Body
    from phyxel.world import World

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Break:
    """How a body fell apart: what a checkpoint keeps of it, for the same to happen again."""

    name: str
    """of the body"""
    events: int
    """how many had happened until then"""
    nodes: Integers
    """which part each of its nodes went with, 0 for that which keeps the name, shape (n,)"""
    points: Integers
    """the same of the points of its surface, shape (m,)"""


def break_apart(world: World) -> bool:
    """Make bodies of all parts of bodies that hang together no longer; whether there were any."""
    broken = [body for body in world.bodies if body.may_have_parted()]
    return any([_look_at(world, body) for body in broken])


def _look_at(world: World, body: Body) -> bool:
    label = world.mover_of(body).parts_of(body)
    if label.max() == 0:
        return False
    weight = np.bincount(label, body.masses)
    rank = np.argsort(np.argsort(-weight, kind="stable"), kind="stable")
    nodes = rank[label].astype(np.int64)
    divide(world, Break(body.name, world.past_events, nodes, nodes[body.homes_of_points()]))
    return True


def divide(world: World, what: Break) -> None:
    """Let a body fall apart."""
    body = next(one for one in world.bodies if one.name == what.name)
    names = {one.name for one in world.bodies}
    chosen = [np.flatnonzero(what.nodes == part) for part in range(int(what.nodes.max()) + 1)]
    fresh = (name for k in range(2, 10**6) if (name := f"{body.whole}-{k}") not in names)
    others = [
        body.piece(next(fresh), nodes, np.flatnonzero(what.points == part))
        for part, nodes in enumerate(chosen)
        if part > 0
    ]
    mover = world.mover_of(body)
    body.keep(chosen[0], np.flatnonzero(what.points == 0), [*zip(others, chosen[1:], strict=True)])
    mover.divide(body, others, chosen)
    world.bodies.extend(others)
    world.breaks.append(what)
    world.revision += 1
