"""The surface of what melts: detail where nothing changed, an implicit skin where topology did (M04 §5.2,
physics 8.5).

Zombies, the surfels a body came with, are carried along for ever and never resampled. Each moves from its own place
onto the implicit skin as the topology around it changes,

    Γ ← max(Γ, λ (|P̄ᵗ − P̄⁰| − noise)),   s = s⁰ + Γ (S − s⁰),   b = (sᵗ − sᵗ⁻¹) / (S − sᵗ⁻¹) = ΔΓ / (1 − Γᵗ⁻¹)

with P̄ the outside probability of the phyxels that carry it. M04 eq. 30 sums |P̄ᵗ − P̄ᵗ⁻¹| over all steps; in a flow
that is mostly noise, which grows with the number of steps and wears every detail off. The net change since the melt
began does not. Detail that is stretched past three times its length is none, and goes the same way.

What is shown are the zombies that still have detail, and new surfels that keep the rest of the surface covered: on the
implicit skin where the nearest zombie is on it, on the zombies' own surface elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.contact.mold import Mold
from phyxel.mls.carry import Carriers
from phyxel.mls.neighbours import nearest
from phyxel.state import unprefixed
from phyxel.surface.carried import Carried
from phyxel.surface.discs import OVERLAP, Discs, DiscShape
from phyxel.surface.ids import Ids
from phyxel.surface.implicit_skin import LOST, WET, ImplicitSkin
from phyxel.surface.resample import (
    CONTACT,
    DETAIL,
    SKIN,
    Crowd,
    SurfelTable,
    beside,
    dressed,
    laid,
    longest_axis,
    parents,
    pushed,
    too_many,
    unit_vectors,
)
from phyxel.surface.truth import HEARD, Truth
from phyxel.surface.walls import NEARS, Walls, cast, closest_wall, keep_out

Floats = NDArray[np.float32]

BURIED = int(LOST)
FALLEN, RISEN = (0.08, 0.16), (0.12, 0.22)
"""How much P̄ has fallen or risen since the beginning where detail begins to go, and where it is gone: λ and what is
noise. A face that becomes inside loses 0.2 to 0.25; strain only adds to P, 0.1 when stretched by 30 %."""
STRETCHED = (2.0, 3.0)
"""Longest half axis over that at birth between which detail is given up."""
FAINT, STRONG = (0.5, 0.25), (1.6, 2.0)
"""F over that at the beginning between which detail is given up. It is 1 at the skin and 2.1 within the body."""
FORWARD = 0.2
"""Cosine between a normal and −∇F above which a surfel looks out of the body. In a crease it may not."""
DRIFTED = 0.2
"""|F − S| over S from which on zombies that belong on the skin are brought back to it: they only lend their colour."""
VARIATION = 1.5
"""Spacing of any surfel over the typical one, or less."""
FILLED, CLOSED = 3, 0.01
"""How often rims grow in one renewal, until they grow by no more than this share of all."""
APART = 0.6
"""How near to others a new surfel may be, in spacings of surfels."""
ENOUGH, MOST_SHOWN = 1.5, 2.9
"""Surfels shown over those at birth from which on new ones are farther apart, and beyond which none are added."""
RELIEF = 0.2
"""How far a wall may be from where the grids of molds have it, in node spacings."""
TOUCHES = 0.02
"""Distance from a wall, in node spacings, at which what comes to it is on it."""
LEFT = 0.9 * float(WET)
"""F on a wall below which what was on it is off it again."""
LONGEST = 2.0
"""Half axis of any disc over the spacing of surfels, at most."""
OUTER = 0.1
"""P above which a phyxel may have the surface beside it."""
EMPTY, DETAILED = 0.35, 0.7
"""Distance, in node spacings, to the nearest surfel, and to one that has detail, from which on the skin is bare."""
FEW, MANY = 14, 200
"""Ways from a phyxel on which its skin is looked at, and on which it is covered at most."""


@dataclass(frozen=True)
class Known:
    """What is known of m zombies and k surfels shown, apart from where they are."""

    first_outside: Floats
    """P̄⁰, shape (m,)"""
    change: Floats
    """Γ, shape (m,)"""
    alive: NDArray[np.bool_]
    """zombies that are still at the surface, shape (m,)"""
    first_field: Floats
    """F at the beginning, shape (m,)"""
    first_forward: NDArray[np.bool_]
    """those that looked the way −∇F does, shape (m,)"""
    first_axis: Floats
    """longest half axes at the beginning, shape (m,)"""
    first_spacing: Floats
    """how far apart surfels were then, shape (m,)"""
    first_ids: NDArray[np.int64]
    """numbers by which they are known, shape (m,)"""
    spacing: Floats
    """how far apart those shown should be, shape (k,)"""
    source: NDArray[np.int32]
    """the zombie that each shown is, −1 for a new one, shape (k,)"""
    layer: NDArray[np.int32]
    """DETAIL, SKIN or CONTACT: where each shown is kept, shape (k,)"""
    renewals: NDArray[np.int64]
    """how often all were renewed, shape (1,)"""


class Blended:
    """The surface of a body that flows. It is changed in the reference shape just after that was absorbed: u = 0."""

    def __init__(self, zombies: Carried, shown: Carried, known: Known, ids: Ids, seed: int = 0) -> None:
        """`ids` are those of what is shown."""
        self.zombies, self.shown, self.known, self.ids = zombies, shown, known, ids
        self._device = zombies.position.device
        self._crowd, self._seed = Crowd(self._device), seed
        self._hold()

    def _hold(self) -> None:
        self._held = wp.array((self.known.layer == SKIN).astype(np.int32), dtype=wp.int32, device=self._device)
        self._limit = wp.array(LONGEST * self.known.spacing, dtype=float, device=self._device)
        self.layer = wp.clone(self._held)
        """DETAIL, SKIN or CONTACT: what each surfel shown lies on now, BURIED if it no longer does, (k,)"""

    @staticmethod
    def begun(
        zombies: Carried, ids: Ids, outside: Floats, skin: ImplicitSkin, spacing: Floats | None = None, seed: int = 0
    ) -> Blended:
        """The surface of a body that begins to flow; `outside` is P of its phyxels, (n,), `skin` theirs. `spacing` is
        how far apart surfels should be, (m,), if it has flowed before: new discs are larger than at birth."""
        m, shape = len(zombies), zombies.shape
        field, slope = skin.measure(shape.points)
        normals = unit_vectors(np.cross(shape.axis_a, shape.axis_b))
        axis = longest_axis(shape)
        if spacing is None:
            typical = float(np.median(axis)) / OVERLAP
            spacing = np.clip(axis / OVERLAP, typical / VARIATION, typical * VARIATION).astype(np.float32)
        known = Known(
            first_outside=zombies.carriers.mean(outside),
            change=np.zeros(m, np.float32),
            alive=np.ones(m, bool),
            first_field=field,
            first_forward=facing(normals, slope) > FORWARD,
            first_axis=axis,
            first_spacing=spacing,
            first_ids=ids.numbers,
            spacing=spacing,
            source=np.arange(m, dtype=np.int32),
            layer=np.zeros(m, np.int32),
            renewals=np.zeros(1, np.int64),
        )
        return Blended(zombies, zombies.copy(), known, ids, seed)

    def state(self) -> dict[str, NDArray[Any]]:
        """What a checkpoint keeps beside the zombies."""
        shown = {f"shown.{name}": array for name, array in self.shown.state().items()}
        return shown | asdict(self.known) | self.ids.state()

    @staticmethod
    def restored(zombies: Carried, state: dict[str, NDArray[Any]], seed: int = 0) -> Blended:
        """From what `state` gave."""
        shown = unprefixed("shown.", state)
        known = Known(**{field.name: state[field.name] for field in fields(Known)})
        return Blended(zombies, Carried.restored(shown, zombies.position.device), known, Ids.restored(state), seed)

    def finish(self, skin: ImplicitSkin, walls: Walls, unit: float) -> None:
        """Put what is shown, just carried, where it belongs: on the skin, on walls, and out of colliders. `unit` [m] is
        the node spacing."""
        self.layer.assign(self._held)
        skin.hold(self.shown, self.layer, self._limit, unit)
        inputs = [walls.table, walls.body, unit, self.shown.position, self.layer, CONTACT]
        dev.launch(keep_out, len(self.shown), inputs, self._device)
        self._press(walls, unit)

    def _press(self, walls: Walls, unit: float) -> None:
        """Put on walls what is on them, or in them."""
        shown = self.shown
        points, normals, depth = closest_wall(walls, shown.position.numpy() / np.float32(unit))
        pressed = np.flatnonzero((depth > 0) | ((self.known.layer == CONTACT) & (depth > -NEARS)))
        self._lay(pressed, unit * points[pressed], normals[pressed])

    def take_relief(self, molds: Sequence[Mold], time: float, unit: float) -> None:
        """Let what lies on the walls of molds now have all their relief."""
        shown = self.shown
        touching = np.flatnonzero(self.layer.numpy() == CONTACT)
        places, normals = cast(shown.positions[touching], shown.normals[touching], molds, time, RELIEF * unit)
        self._lay(touching, places - shown.origin, normals)

    def _lay(self, some: NDArray[np.integer], places: NDArray[np.floating], normals: NDArray[np.floating]) -> None:
        """Some of what is shown, (k,), lies at (k, 3) places [m] of a wall with these normals."""
        if len(some) == 0:
            return
        shown = self.shown
        sheet = SurfelTable.of(shown.present(), self.known.spacing, self.known.source, self.known.layer)
        sheet = laid(sheet.but(some, points=places, normals=normals), some)
        for array, values in zip((shown.position, shown.axis_a, shown.axis_b), sheet.shape[:3], strict=True):
            array.assign(values)
        shown.normal.assign(sheet.normals)
        layers = self.layer.numpy().copy()
        layers[some] = CONTACT
        self.layer.assign(layers)

    def visible(self) -> tuple[Discs, NDArray[np.int32], Ids]:
        """What is shown but for surfels that have just been buried, what each lies on, and their numbers."""
        layers = self.layer.numpy()
        seen = layers != BURIED
        shown = self.shown if seen.all() else self.shown.part(seen)
        return shown, layers[seen], self.ids.some(seen)

    def unburied(self) -> tuple[Carried, Floats, Ids]:
        """What is seen now, to be carried on alone, how far apart it should be, and its numbers; what it came with, if
        all is hidden."""
        seen, shown = self.layer.numpy() != BURIED, self.shown
        if seen.sum() < 2:
            return self.zombies, self.known.first_spacing, Ids(self.known.first_ids, self.ids.given)
        shape, carriers = DiscShape(*(values[seen] for values in shown.shape)), shown.carriers
        kept = Carried(shape, Carriers(carriers.nodes[seen], carriers.shares[seen]), self._device)
        kept.take_places(shown.part(seen))
        return kept, self.known.spacing[seen], self.ids.some(seen)

    def renew(
        self,
        outside: Floats,
        skin: ImplicitSkin,
        walls: Walls,
        nodes: NDArray[np.floating],
        body: int,
        apart: float = 1.0,
    ) -> None:
        """Bring all surfels to where they belong. `outside` is P and `nodes` (n, 3) are the places of the body's
        phyxels, which were `apart` at birth; `skin` is that of all phyxels that flow together."""
        rng = np.random.default_rng([self._seed, body, int(self.known.renewals[0])])
        zombies = self._changed(outside, skin)
        truth = self._truth(zombies)
        outer = np.flatnonzero(skin.owner == body)[outside > OUTER]
        sheet = self._seeded(self._refreshed(zombies), zombies, skin, outer, apart)
        sheet = self._settled(self._resampled(sheet, rng), truth, skin, walls, body)
        rim = np.arange(len(sheet))
        for _ in range(FILLED):
            new = self._children(sheet, rim, rng)
            if len(new) < CLOSED * len(sheet):
                break
            new = self._settled(new, truth, skin, walls, body)
            rim = len(sheet) + np.arange(len(new))
            sheet = sheet.joined(new)
        sheet = dressed(sheet)
        carriers = self.zombies.carriers.refreshed(zombies.points, nodes, self._device, apart)
        self.zombies = Carried(zombies.shape, carriers, self._device)
        self.shown = Carried(sheet.shape, self._carriers_of(sheet, nodes, apart), self._device)
        self.ids = self.ids.after(sheet.row)
        renewals = self.known.renewals + 1
        self.known = replace(
            self.known, spacing=sheet.spacing, source=sheet.source, layer=sheet.layer, renewals=renewals
        )
        self._hold()

    def _carriers_of(self, sheet: SurfelTable, nodes: NDArray[np.floating], apart: float) -> Carriers:
        """What carries surfels that are shown: zombies by what carries them anyway, others by what did until now while
        that is near, new ones by the nearest nodes."""
        zombie, old = sheet.source >= 0, (sheet.source < 0) & (sheet.row >= 0)
        before, known = self.shown.carriers, self.zombies.carriers
        index = np.zeros((len(sheet), known.nodes.shape[1]), np.int32)
        shares = np.zeros(index.shape, np.float32)
        index[zombie], shares[zombie] = known.nodes[sheet.source[zombie]], known.shares[sheet.source[zombie]]
        index[old], shares[old] = before.nodes[sheet.row[old]], before.shares[sheet.row[old]]
        return Carriers(index, shares).refreshed(sheet.points, nodes, self._device, apart)

    def _changed(self, outside: Floats, skin: ImplicitSkin) -> SurfelTable:
        """Zombies moved as far toward the skin as topology around them has changed."""
        carried, known = self.zombies, self.known
        itself = np.arange(len(carried), dtype=np.int32)
        zombies = SurfelTable.of(carried.shape, known.first_spacing, itself, np.zeros_like(itself))
        field, slope = skin.measure(zombies.points)
        lost = np.maximum(self._parted(outside), torn(zombies, known, field, slope))
        change = np.maximum(known.change, np.clip(lost, 0, 1)).astype(np.float32)
        drifted = (change >= 1) & (np.abs(field - 1) > DRIFTED)
        moving = np.flatnonzero(known.alive & ((change > known.change) | drifted))
        onto, normals, found = skin.project(zombies.points[moving])
        alive = known.alive.copy()
        alive[moving[~found]] = False
        left = 1 - known.change[moving, None]
        share = np.where(left > 0, (change[moving, None] - known.change[moving, None]) / np.maximum(left, 1e-6), 1)
        self.known = replace(known, change=change, alive=alive)
        points, upright = zombies.points.copy(), zombies.normals.copy()
        points[moving] += np.where(found[:, None], share * (onto - points[moving]), 0)
        upright[moving] = unit_vectors((1 - share) * upright[moving] + share * normals)
        return laid(replace(zombies, points=points, normals=upright), moving)

    def _parted(self, outside: Floats) -> Floats:
        """λ (|P̄ᵗ − P̄⁰| − noise), or how far a zombie is stretched, if that is more, (m,)."""
        carried, known = self.zombies, self.known
        risen = carried.carriers.mean(outside) - known.first_outside
        stretch = longest_axis(carried.shape) / known.first_axis
        return np.maximum.reduce([along(-risen, FALLEN), along(risen, RISEN), along(stretch, STRETCHED)])

    def _refreshed(self, z: SurfelTable) -> SurfelTable:
        """What is shown of zombies is where they are; those that have lost all detail are new surfels from now on."""
        sheet = SurfelTable.of(self.shown.shape, self.known.spacing, self.known.source, self.known.layer)
        # More surface than there was is covered by fewer surfels.
        coarser = max(1.0, math.sqrt(len(sheet) / (ENOUGH * len(z))))
        typical = np.float32(coarser * np.median(self.known.first_spacing))
        sheet = replace(sheet, spacing=np.where(sheet.source < 0, typical, sheet.spacing))
        copies = np.flatnonzero(sheet.source >= 0)
        of = sheet.source[copies]
        lost = self.known.change[of] >= 1
        taken = {name: getattr(z, name)[of] for name in ("points", "normals", "axis_a", "axis_b")}
        sheet = sheet.but(copies, **taken, source=np.where(lost, -1, of), layer=np.where(lost, SKIN, DETAIL))
        kept = np.ones(len(sheet), bool)
        kept[copies[~self.known.alive[of]]] = False
        return sheet.part(kept)

    def _truth(self, z: SurfelTable) -> Truth:
        farthest = HEARD * float(z.spacing.max())
        alive = self.known.alive
        return Truth(
            z.points[alive], z.normals[alive], z.colors[alive], self.known.change[alive], farthest, self._device
        )

    def _settled(self, sheet: SurfelTable, truth: Truth, skin: ImplicitSkin, walls: Walls, body: int) -> SurfelTable:
        """New surfels brought onto the wall they were on, the skin or the zombies' surface; those that do not get there
        are taken away."""
        sheet = on_walls(sheet, np.flatnonzero(sheet.layer == CONTACT), skin, walls, NEARS)
        new = np.flatnonzero((sheet.source < 0) & (sheet.layer != CONTACT))
        heard = truth.ask(sheet.points[new], sheet.normals[new], sheet.colors[new], sheet.spacing[new])
        bare = (heard.change < 0) | (heard.change >= 1)
        _, slope = skin.measure(heard.onto[~bare])
        bare[~bare] = facing(heard.normals[~bare], slope) < FORWARD
        sheet = sheet.but(new, colors=heard.colors, layer=np.where(bare, SKIN, DETAIL))
        sheet = sheet.but(new[~bare], points=heard.onto[~bare], normals=heard.normals[~bare])
        onto, normals, found = skin.project(sheet.points[new[bare]])
        sheet = sheet.but(new[bare], points=onto, normals=normals)
        sheet = on_walls(sheet, new[bare], skin, walls, TOUCHES)
        kept = np.ones(len(sheet), bool)
        kept[new[bare]] = found & skin.owners(onto, body)
        return sheet.part(kept)

    def _resampled(self, sheet: SurfelTable, rng: np.random.Generator) -> SurfelTable:
        """Too many are thinned, and new ones keep their distance. Zombies around which nothing has changed stay as they
        are."""
        count, push = self._crowd.around(sheet.points, sheet.normals, sheet.spacing)
        settled = (sheet.source >= 0) & (self.known.change[sheet.source] == 0)
        free = sheet.source < 0
        points = np.where(free[:, None], pushed(sheet.points, push, sheet.spacing), sheet.points)
        return replace(sheet, points=points).part(settled | ~too_many(count, rng))

    def _children(self, sheet: SurfelTable, rim: NDArray[np.integer], rng: np.random.Generator) -> SurfelTable:
        """New surfels beside some, (k,), that have too few around them, where there is none yet."""
        if len(sheet) > MOST_SHOWN * len(self.zombies):
            return sheet.part(rim[:0])
        count, _ = self._crowd.around(sheet.points, sheet.normals, sheet.spacing, rim)
        by = rim[parents(count)]
        none = np.full(len(by), -1, np.int32)
        children = sheet.part(by)
        places = beside(children.points, children.normals, children.spacing, rng)
        apart = self._crowd.bare(places, sheet.points, APART * self._typical(sheet))
        return replace(children, points=places, source=none, row=none).part(apart)

    def _seeded(
        self, sheet: SurfelTable, zombies: SurfelTable, skin: ImplicitSkin, nodes: NDArray[np.integer], apart: float
    ) -> SurfelTable:
        """Surfels where the skin is bare around some phyxels: flow lays it open faster than the surfels at a rim can
        multiply. A few places around each tell where; there, as many follow as it takes."""
        onto, normals, seeded = skin.seeds(nodes, FEW)
        nodes = np.unique(seeded[self._bare(onto, sheet, EMPTY * apart, DETAILED * apart)])
        typical = self._typical(sheet)
        onto, normals, _ = skin.seeds(nodes, int(np.clip(4 * (apart / typical) ** 2, FEW, MANY)))
        bare = self._bare(onto, sheet, typical, DETAILED * apart)
        room = max(int(MOST_SHOWN * len(zombies)) - len(sheet), 0)
        onto, normals = onto[bare][:room], normals[bare][:room]
        _, nearby = nearest(onto, zombies.points, 1)
        none = np.zeros_like(onto)
        count = len(onto)
        new = SurfelTable(
            points=onto,
            normals=normals,
            axis_a=none,
            axis_b=none,
            colors=zombies.colors[nearby[:, 0]],
            spacing=np.full(count, typical, np.float32),
            source=np.full(count, -1, np.int32),
            layer=np.full(count, SKIN, np.int32),
            row=np.full(count, -1, np.int32),
        )
        return sheet.joined(new)

    def _typical(self, sheet: SurfelTable) -> float:
        """How far apart surfels should be."""
        return float(np.median(sheet.spacing if len(sheet) else self.known.first_spacing))

    def _bare(self, places: Floats, sheet: SurfelTable, radius: float, detailed: float) -> NDArray[np.bool_]:
        """Which places have no surfel within a radius, nor detail within a larger one: that need not lie on the
        skin."""
        detail = sheet.layer == DETAIL
        bare = self._crowd.bare(places, sheet.points[detail], detailed)
        bare[bare] = self._crowd.bare(places[bare], sheet.points[~detail], radius)
        return bare


def on_walls(
    sheet: SurfelTable, some: NDArray[np.integer], skin: ImplicitSkin, walls: Walls, away: float
) -> SurfelTable:
    """Of some surfels, (k,), those that are less than `away` from a wall that the field reaches are put on it; the
    others belong on the skin."""
    foot, normals, depth = closest_wall(walls, sheet.points[some])
    there = depth > -away
    there[there] = skin.measure(foot[there])[0] > LEFT
    sheet = sheet.but(some, layer=np.where(there, CONTACT, SKIN))
    return sheet.but(some[there], points=foot[there], normals=normals[there])


def torn(zombies: SurfelTable, known: Known, field: Floats, slope: Floats) -> Floats:
    """How much F (m,) and ∇F (m, 3) at zombies say that they are no longer at a surface, (m,): it has become faint or
    strong where they are, or they look into the body."""
    ratio = field / np.maximum(known.first_field, 1e-3)
    backward = known.first_forward & (facing(zombies.normals, slope) < 0)
    return np.maximum.reduce([along(ratio, FAINT), along(ratio, STRONG), backward])


def along(values: NDArray[np.floating], ends: tuple[float, float]) -> Floats:
    """0 at the first of two ends, 1 at the second, straight between and beyond."""
    return ((values - ends[0]) / (ends[1] - ends[0])).astype(np.float32)


def facing(normals: Floats, slope: Floats) -> Floats:
    """Cosine between normals (m, 3) and the way out of a field with slopes (m, 3), shape (m,)."""
    return -np.einsum("ma,ma->m", normals, slope) / np.maximum(np.linalg.norm(slope, axis=1), 1e-12)
