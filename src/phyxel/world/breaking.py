"""Bodies that fall apart: what hangs together no longer becomes bodies of their own (physics 12.9).

The heaviest part keeps the body and its name, the others are called bear-2, bear-3, ... Nothing moves: each takes its
own nodes with all they have, so mass, momenta and energy are what they were.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from phyxel.body.fragments import Thrown, crumble, deal_out_holds, homes_of_points, narrow, piece_of
from phyxel.cracks.crack import Cracks
from phyxel.state import State, unprefixed

if TYPE_CHECKING:
    from phyxel.body import Body
    from phyxel.world.world import World

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
    crumbs: NDArray[np.bool_]
    """which of the parts cannot bend: they are rigid from then on"""
    cracks: State
    """of the body, as they were then"""

    def state(self) -> State:
        """All of it, as arrays."""
        own = {name: np.array(getattr(self, name)) for name in ("name", "events", "nodes", "points", "crumbs")}
        return own | {f"cracks.{name}": array for name, array in self.cracks.items()}

    @staticmethod
    def restored(state: State) -> Break:
        """From what `state` gave."""
        cracks = unprefixed("cracks.", state)
        arrays = {name: state[name] for name in ("nodes", "points", "crumbs")}
        return Break(str(state["name"]), int(state["events"]), **arrays, cracks=cracks)

    def same(self, other: Break) -> bool:
        """Whether it is the same."""
        one, two = self.state(), other.state()
        return one.keys() == two.keys() and all(np.array_equal(one[name], two[name]) for name in one)


def break_apart(world: World) -> bool:
    """Make bodies of all parts of bodies that hang together no longer; whether there were any."""
    looked_at = [_look_at(world, body) for body in list(world.bodies) if _may_have_parted(body)]
    return any(looked_at)


def _may_have_parted(body: Body) -> bool:
    """Whether the cracks of a body have changed since this was last asked."""
    if not body.kind.can("crack"):
        return False
    now = 0 if body.fracture is None else body.fracture.cracks.revision
    before, body.parted_at = body.parted_at, now
    return now != before and not body.reshaped


def _look_at(world: World, body: Body) -> bool:
    label, crumbs = world.mover_of(body).parts(body)
    if label.max() == 0:
        return False
    assert body.fracture is not None
    weight = np.bincount(label, body.masses)
    order = np.argsort(-weight, kind="stable")
    nodes = np.argsort(order, kind="stable")[label].astype(np.int64)
    cracks = {name: np.array(array) for name, array in body.fracture.cracks.state().items()}
    divide(world, Break(body.name, world.past_events, nodes, nodes[homes_of_points(body)], crumbs[order], cracks))
    return True


def divide(world: World, what: Break) -> None:
    """Let a body fall apart."""
    body = next(one for one in world.bodies if one.name == what.name)
    assert body.fracture is not None
    mover, cracks = world.mover_of(body), Cracks.restored(body.fracture.cracks.grid, what.cracks)
    nodes, points = (_chosen(of, len(what.crumbs)) for of in (what.nodes, what.points))
    nodal, places = body.nodal, body.positions
    thrown = {k: Thrown(places[nodes[k]], *nodal.momenta(nodes[k])) for k in np.flatnonzero(what.crumbs)}
    names = {one.name for one in world.bodies}
    fresh = (name for k in range(2, 10**6) if (name := f"{body.whole}-{k}") not in names)
    others = [piece_of(body, next(fresh), *chosen, cracks) for chosen in zip(nodes[1:], points[1:], strict=True)]
    pieces = [body, *others]
    deal_out_holds(list(zip(pieces, nodes, strict=True)))
    narrow(body, nodes[0], points[0], cracks)
    mass, force = sum(piece.masses.sum() for piece in pieces), body.force
    for piece in pieces:
        piece._force = force * (piece.masses.sum() / mass)
    whole = np.flatnonzero(~what.crumbs)
    mover.divide(body, [pieces[k] for k in whole], [nodes[k] for k in whole])
    world.encounters.forget()
    world.attachments.divide(body, pieces)
    for k, start in thrown.items():
        crumble(pieces[k], start)
        world.moving.newcomers(pieces[k].kind).add(pieces[k])
    world.bodies.extend(others)
    world.breaks.append(what)
    world.revision += 1


def _chosen(label: Integers, count: int) -> list[Integers]:
    """The nodes with each label."""
    return [np.flatnonzero(label == k) for k in range(count)]
