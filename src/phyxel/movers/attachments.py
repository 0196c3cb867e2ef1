"""What ties the bodies of a world to each other (physics 15.15): where, and until when it tears."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from phyxel.body import Body
from phyxel.body.attach import Attach
from phyxel.body.protocols import BodyWorld, Change
from phyxel.errors import PhyxelError
from phyxel.meeting.contacts import nearest_places
from phyxel.meeting.party import SeenBody, turned_out
from phyxel.meeting.stitches import BesideTriangles
from phyxel.meeting.ties import BESIDE, TiedPlaces, tied
from phyxel.movers.outlines import outline_of
from phyxel.movers.sewing import (
    Seam,
    SewnRows,
    Side,
    evened_around,
    near_solid,
    near_surface,
    overloaded,
    seam,
    sewn_ends,
)  # fmt: skip
from phyxel.movers.tied_ends import BY_NODES, Ends, carried, carried_by, summing_up
from phyxel.points.normals import areas_of
from phyxel.points.sampling import scattered, unit
from phyxel.state import State

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

REACH = 0.5
"""Spacings of the finer body within which the other has to be."""
FACING = -0.5
"""Cosine between normals up to which surfaces lie against each other."""
OWN = -2
"""The third number in keys of ties, less that of the attachment: contacts have the number of a collider there."""
OF_ATTACHMENTS = ("areas", "holds", "normals", "pulls")
OF_STITCHES = ("index", "weight", "height")


@dataclass(frozen=True)
class TiedRows:
    """How ties of two bodies are carried."""

    rows: tuple[csr_array, csr_array]
    """φ of the two there, shape (k, n)"""
    slopes: Sequence[csr_array]
    """∂φ of the first, shape (k, n)"""
    by: tuple[object, object]
    """what carries them"""


class Attachments:
    """All that ties bodies of a world."""

    def __init__(self, world: BodyWorld) -> None:
        self._world = world
        self.every: list[Attach] = []
        self._ends: dict[Attach, tuple[Ends, Ends]] = {}
        """on the finer of the two bodies, and on the other"""
        self._rows: dict[tuple[Attach, Body, Body], TiedRows] = {}
        self._sewn: dict[tuple[Attach, Body, Body], SewnRows] = {}
        self.known = True
        """whether bodies are where they were when an attachment comes; else a checkpoint will tell its ties"""

    def add(self, attach: Attach) -> None:
        """Tie two bodies from now on, as they lie."""
        self._check(attach)
        if self.known:
            self._find(attach)
        self.every.append(attach)

    def _check(self, attach: Attach) -> None:
        if attach in self.every:
            raise PhyxelError(f"{attach.label}: it is in this world already")
        for body in (attach.one, attach.other):
            if body not in self._world.bodies:
                raise PhyxelError(f"{attach.label}: {body.name} is not in this world; add it first")
            if body.has_melted:
                raise PhyxelError(f"{attach.label}: {body.name} has melted; only solids can be tied")

    # Where

    def _find(self, attach: Attach) -> None:
        """What it ties, all of which holds and bears nothing yet."""
        if _in_order(attach)[0].sheet is None:
            self._glue(attach)
        else:
            self._sew(attach)
        attach.holds, attach.pulls = np.ones(len(attach.areas), bool), np.zeros((len(attach.areas), 3))

    def _sew(self, attach: Attach) -> None:
        """Stitches: particles of the surface, of the finer one of two, that lie at the other body."""
        body, other = _in_order(attach)
        surface = other.sheet is not None
        near = near_surface(body, other, self._world.device) if surface else near_solid(body, self._seen(other))
        assert body.sheet is not None
        own = body.sheet.X if body is attach.one else near.Y
        chosen = attach.chosen(attach.one.centre + attach.one.unit * own)
        kept = _reached(attach, (body, other), near.gap, chosen, chosen)
        attach.areas, attach.normals = body.unit**2 * body.sheet.areas[kept], near.normal[kept]
        self._ends[attach] = sewn_ends(body, other, kept, near)

    def _glue(self, attach: Attach) -> None:
        """Ties: places of the finer body's surface that lie against the other, a spacing apart."""
        finer, other = _in_order(attach)
        surfels, there = finer.surfels.carried.shape, self._seen(other)
        X = np.asarray(surfels.points, np.float64)
        phi, slopes = carried(finer, X)
        x = self._coefficients(finer)
        places = phi @ x
        near = nearest_places(there, places)
        gap, normal, beside = there.measured(places, near)
        N: Floats = unit(np.cross(surfels.axis_a, surfels.axis_b)).astype(np.float64)
        facing = np.einsum("ka,ka->k", turned_out(np.stack([slope @ x for slope in slopes], axis=2), N)[0], normal)
        Y = there.outline.X[near] + beside
        own = X if finer is attach.one else Y
        chosen = attach.chosen(attach.one.centre + attach.one.unit * own)
        kept = _reached(attach, (finer, other), gap, chosen, chosen & (facing < FACING))
        # Ties lie in the middle of what they stand for: so they know their forces' moments.
        few = X[kept[scattered(X[kept], 1.0, 1.0)[0]]]
        area, cell = _areas(finer, X, N)[kept], cKDTree(few).query(X[kept])[1]
        attach.areas = np.bincount(cell, area, len(few)).astype(np.float64)
        middle, attach.normals = (
            np.stack([np.bincount(cell, area * along, len(few)) for along in part[kept].T], axis=1)
            / attach.areas[:, None]
            for part in (X, N)
        )
        places = carried(finer, middle)[0] @ x
        near = nearest_places(there, places)
        beyond = there.outline.X[near] + there.pulled_back(places, near)
        self._ends[attach] = Ends(middle, [finer] * len(few)), Ends(beyond, [other] * len(few))

    def _coefficients(self, body: Body) -> Floats:
        """Where what carries a body's surface is [m], shape (n, 3)."""
        if body.kind.carried_by == BY_NODES:
            return body.positions
        X = body.space.nodes
        mover: Any = self._world.mover_of(body)
        return body.origin + body.unit * (X if body.nodal.unmoved else X + mover.model_of(body).u)

    def _seen(self, body: Body) -> SeenBody:
        outline = outline_of(body)
        outline.carry(*carried(body, outline.X))
        seen = SeenBody(lambda: outline, body.unit, body.origin, 0.0, 0.0, 0.0)
        seen.see(self._coefficients(body), 0.0)
        return seen

    # In a step

    def among(self, number: dict[Body, int], seen: Sequence[SeenBody]) -> list[TiedPlaces]:
        """What ties bodies that have numbers to each other, as they lie now."""
        found = []
        for k, attach in enumerate(self.every):
            for a, b, which in self._pairs(attach):
                # What else surfaces are sewn to is in their own solve.
                apart = a.sheet is not None and b.kind.carried_by != BY_NODES
                if a in number and b in number and not apart and not self._melts(attach, a, b, which):
                    rows, beyond = self._tied_rows(attach, a, b, which).rows, None
                    if a.kind.carried_by == b.kind.carried_by == BY_NODES:
                        # No guest is told where it was pulled: both have to be at the same place.
                        x, y = seen[number[a]].x, seen[number[b]].x
                        beyond = self._sewn_rows(attach, a, b, which).reaching(rows[0] @ x, y)
                    key = np.column_stack([np.full(len(which), OWN - k), which])
                    ties = tied(seen, number[a], number[b], rows, attach.areas[which], key)
                    found.append(ties if beyond is None else replace(ties, rows=(rows[0], beyond)))
        return found

    @property
    def sewn(self) -> set[tuple[Body, Body]]:
        """Surfaces and what they are sewn to."""
        pairs = ((a, b) for attach in self.every for a, b, _ in self._pairs(attach))
        return {pair for pair in pairs if pair[0].sheet is not None}

    @property
    def glued_phyxels(self) -> list[tuple[Body, Body]]:
        """Phyxel bodies that are tied to each other."""
        pairs = [(a, b) for attach in self.every for a, b, _ in self._pairs(attach)]
        return [pair for pair in pairs if all(body.kind.carried_by == BY_NODES for body in pair)]

    def beside_glue(self, bodies: Sequence[Body], ranges: Sequence[tuple[int, int]]) -> NDArray[np.int32]:
        """For nodes of some phyxel bodies, which begin and end so among all, the number of the body that they are tied
        to, and do not touch there; -1 if none, shape (n,)."""
        tied = np.full(ranges[-1][1], -1, np.int32)
        for attach in self.every:
            ends = self._ends[attach]
            for a, b, which in self._pairs(attach):
                if a in bodies and b in bodies:
                    reach = BESIDE * max(a.unit, b.unit)
                    for body, end, other in ((a, ends[0], b), (b, ends[1], a)):
                        near = cKDTree(end.X[which]).query(body.birth_places)[0] * body.unit < reach
                        tied[ranges[bodies.index(body)][0] + np.flatnonzero(near)] = bodies.index(other)
        return tied

    def seams(self, x: Floats, first: dict[Body, int], guests: dict[Body, tuple[int, Floats, Floats]]) -> list[Seam]:
        """What ties surfaces, whose particles are at x (n, 3) from their `first` on, to each other and to guests: their
        numbers, and how far their coefficients go to where, (n, 3) each."""
        found = []
        for attach in self.every:
            one, other = self._ends[attach]
            for a, b, which in self._pairs(attach):
                if a not in first or self._melts(attach, a, b, which):
                    continue
                if b in guests:
                    number, way, end = guests[b]
                    side, rows = Side(other, 0, number, end, way), self._sewn_rows(attach, a, b, which)
                else:
                    side, rows = Side(other, first[b]), None
                found.append(seam(attach, which, Side(one, first[a]), side, x, rows))
        return found

    def _sewn_rows(self, attach: Attach, a: Body, b: Body, which: Indices) -> SewnRows:
        """How stitches are carried by a solid, found anew when it is carried otherwise, or some have torn."""
        known = self._sewn.get((attach, a, b))
        if known is None or known.by != carried_by(b):
            known = self._sewn[attach, a, b] = SewnRows.of(b, self._ends[attach][1].X[which])
        return known

    def bear_seam(self, one: Seam, force: Floats, time: float) -> None:
        """Stitches have borne a force (k, 3) [N] on their surface until a time [s]: those that were pulled at by more
        than their strength tear."""
        attach = one.attach
        _keep(attach, one.which, force)
        if attach.strength is None:
            return
        pull = evened_around(force, attach.areas[one.which], one.X)
        if (torn := overloaded(pull, one.normals, attach.strength)).any():
            self._tear(attach, one.which[torn], time)

    def _pairs(self, attach: Attach) -> Iterator[tuple[Body, Body, Indices]]:
        """Bodies of the world that an attachment ties, and which of its ties that still hold are theirs."""
        one, other = self._ends[attach]
        pairs: dict[tuple[Body, Body], list[int]] = {}
        for k in np.flatnonzero(attach.holds).tolist():
            pairs.setdefault((one.body[k], other.body[k]), []).append(k)
        for (a, b), which in pairs.items():
            if a in self._world.bodies and b in self._world.bodies:
                yield a, b, np.array(which)

    def _melts(self, attach: Attach, a: Body, b: Body, which: Indices) -> bool:
        """Whether one of two bodies has melted; it lets go then."""
        if not (a.has_melted or b.has_melted):
            return False
        self._tear(attach, which, self._world.time)
        return True

    def _tied_rows(self, attach: Attach, a: Body, b: Body, which: Indices) -> TiedRows:
        """How ties of two bodies are carried, found anew when a body is carried otherwise, or some have torn."""
        by = carried_by(a), carried_by(b)
        known = self._rows.get((attach, a, b))
        if known is None or known.by != by:
            one, other = self._ends[attach]
            beyond = carried(b, other.X[which])[0]
            phi, slopes = (
                carried(a, one.X[which]) if one.stitches is None else one.stitches.carried(which, len(a.birth))
            )
            known = self._rows[attach, a, b] = TiedRows((summing_up(phi), summing_up(beyond)), slopes, by)
        return known

    def bear(self, ties: TiedPlaces, seen: Sequence[SeenBody], force: Floats, time: float) -> None:
        """Ties have borne a force (k, 3) [N] on the first of their bodies until a time [s]: those that were pulled at
        by more than their strength tear."""
        attach, which = self.every[OWN - int(ties.key[0, 2])], ties.key[:, 3]
        one, other = (end.body[which[0]] for end in self._ends[attach])
        _keep(attach, which, force)
        if attach.strength is None:
            return
        if one.sheet is None:
            slopes, x = self._rows[attach, one, other].slopes, seen[ties.one].x
            normal = -turned_out(np.stack([slope @ x for slope in slopes], axis=2), attach.normals[which])[0]
            pull = evened(force, attach.areas[which], ties.place)
        else:
            F = self._sewn_rows(attach, one, other, which).deformation(seen[ties.other].x)
            normal = turned_out(F, attach.normals[which])[0]
            pull = evened_around(force, attach.areas[which], self._ends[attach][0].X[which])
        if (torn := overloaded(pull, normal, attach.strength)).any():
            self._tear(attach, which[torn], time)

    def _tear(self, attach: Attach, which: Indices, time: float) -> None:
        attach.holds = attach.holds.copy()
        attach.holds[which] = False
        if not attach.holds.any():
            attach.torn = time
        self._forget()

    def changed(self, change: Change, body: Body) -> None:
        """Something has happened to a body: what is put elsewhere lets go."""
        for attach, ends in self._ends.items() if change is Change.PLACE else ():
            on_it = [body in pair for pair in zip(*(end.body for end in ends), strict=True)]
            which = np.flatnonzero(attach.holds & on_it)
            if len(which):
                self._tear(attach, which, self._world.time)

    def divide(self, body: Body, pieces: Sequence[Body]) -> None:
        """A body has fallen into pieces: ties go with those that have the nearest nodes."""
        owner = np.repeat(np.arange(len(pieces)), [len(piece.birth) for piece in pieces])
        tree = cKDTree(np.concatenate([piece.birth_places for piece in pieces]))
        for ends in self._ends.values():
            for end in ends:
                home = owner[tree.query(end.X)[1]]
                end.body = [pieces[home[k]] if one is body else one for k, one in enumerate(end.body)]
        self._forget()

    def _forget(self) -> None:
        """Ties are carried otherwise."""
        self._rows.clear()
        self._sewn.clear()

    # Checkpoints

    def state(self) -> State:
        """What a checkpoint keeps of it."""
        kept: State = {}
        for k, attach in enumerate(self.every):
            ends = self._ends[attach]
            kept |= {f"{k}.{name}": getattr(attach, name) for name in OF_ATTACHMENTS}
            kept |= {f"{k}.torn": np.array(np.nan if attach.torn is None else attach.torn)}
            kept |= {f"{k}.X{side}": end.X for side, end in enumerate(ends)}
            kept |= {f"{k}.body{side}": np.array([one.name for one in end.body]) for side, end in enumerate(ends)}
            for side, end in enumerate(ends):
                if end.stitches is not None:
                    kept |= {f"{k}.{name}{side}": getattr(end.stitches, name) for name in OF_STITCHES}
        return kept

    def restore(self, state: State) -> None:
        """Take over what `state` gave."""
        bodies = {body.name: body for body in self._world.bodies}
        for k, attach in enumerate(self.every):
            for name in OF_ATTACHMENTS:
                setattr(attach, name, state[f"{k}.{name}"])
            torn = float(state[f"{k}.torn"])
            attach.torn = None if np.isnan(torn) else torn
            ends = [
                Ends(state[f"{k}.X{side}"], [bodies[name] for name in state[f"{k}.body{side}"].tolist()], stitches)
                for side, stitches in enumerate(_restored(state, k, side) for side in range(2))
            ]
            self._ends[attach] = ends[0], ends[1]
        self._forget()


def _in_order(attach: Attach) -> tuple[Body, Body]:
    """Its bodies, that of the first ends of ties first: a surface, the finer one."""
    one, other = sorted((attach.one, attach.other), key=lambda body: (body.sheet is None, body.unit))
    return one, other


def _reached(
    attach: Attach, bodies: tuple[Body, Body], gap: Floats, chosen: NDArray[np.bool_], faces: NDArray[np.bool_]
) -> Indices:
    """Which places of the first of two bodies, so far from the other (n,) [m], are near enough to be tied: of those
    that are `chosen`, and face it."""
    finer, other = bodies
    reach = REACH * min(finer.unit, other.unit)
    kept = np.flatnonzero(faces & (np.abs(gap) < reach))
    if not len(kept):
        away = f"{gap[chosen].min():.3g} m away" if chosen.any() else "not near that place"
        raise PhyxelError(
            f"{attach.label}: {other.name} is {away}; ties need places of {finer.name} that lie within "
            f"{reach:.3g} m of it, half a node spacing: move them together"
            + (", or give another place" if attach.where is not None else "")
        )
    return kept


def _keep(attach: Attach, which: Indices, force: Floats) -> None:
    """Remember what ties bore on the bodies of their first ends, (k, 3) [N]."""
    attach.pulls = attach.pulls.copy()
    attach.pulls[which] = force if _in_order(attach)[0] is attach.one else -force


def evened(force: Floats, area: Floats, places: Floats) -> Floats:
    """Forces (k, 3) [N] on areas (k,) [m²] at places (k, 3), shared out as faces that stay plane do [Pa], (k, 3):

        t = c + w × r,   ∫ t dA = F,   ∫ r × t dA = M

    the pull, bending and twist of a joint. What single ties bear goes by how nodes happen to lie."""
    arm = places - np.average(places, axis=0, weights=area)
    second = (area[:, None] * arm).T @ arm
    inertia = np.trace(second) * np.eye(3) - second
    w = np.linalg.pinv(inertia, rcond=1e-6, hermitian=True) @ np.cross(arm, force).sum(axis=0)
    return np.asarray(force.sum(axis=0) / area.sum() + np.cross(w, arm))


def _restored(state: State, number: int, side: int) -> BesideTriangles | None:
    """Stitches on one side of an attachment, of a checkpoint."""
    names = [f"{number}.{name}{side}" for name in OF_STITCHES]
    return BesideTriangles(*(state[name] for name in names)) if names[0] in state else None


def _areas(body: Body, X: Floats, N: Floats) -> Floats:
    """What points of a body's surface with normals, (m, 3) each, stand for [m²], (m,): such that they enclose its
    volume, V = ∮ x·n dA/3. Along edges they know too few neighbours."""
    areas = areas_of(X)
    enclosed = areas @ np.einsum("ka,ka->k", X - X.mean(axis=0), N) / 3
    return np.asarray(body.volumes.sum() / body.unit * areas / enclosed)
