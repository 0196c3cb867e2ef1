"""Surfels: what is seen of a body."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.cache import Once, anew
from phyxel.cracks.crack import Cracks
from phyxel.mls.carry import Carriers
from phyxel.mls.shape_values import ShapeValues
from phyxel.mls.visibility import Sees
from phyxel.state import unprefixed
from phyxel.surface.blended import Blended
from phyxel.surface.carried import Carried
from phyxel.surface.discs import Discs, DiscShape, Floats, Rest
from phyxel.surface.ids import Ids
from phyxel.surface.implicit_skin import ImplicitSkin
from phyxel.surface.motion import Motion
from phyxel.surface.parted import Parted
from phyxel.surface.pieces import Pieces
from phyxel.surface.resample import longest_axis, unit_vectors
from phyxel.surface.woven import Woven


class Surfels:
    """The surfels of one body. `follow` moves them; what is read are NumPy arrays in metres, shape (m, 3). Their number
    may be another after each `follow`."""

    def __init__(
        self,
        rest: Rest,
        nodes: Floats,
        device: wp.Device,
        sees: Sees | None = None,
        values: ShapeValues | None = None,
        once: Once = anew,
        ids: NDArray[np.int64] | None = None,
    ) -> None:
        """`nodes` (n, 3) [spacings] carry them: those around each that are seen from it, or those that shape functions
        with these `values` at the positions of `rest`, in its coordinates, say. What `once` keeps is for the same
        surfels and nodes, whatever their colours. `ids` are their numbers if they are not 0, 1, ..."""
        self._carried: Any = (
            Carried(
                DiscShape.at_birth(rest), once("carriers", lambda: Carriers.found(rest.positions, nodes, sees)), device
            )
            if values is None
            else Woven(DiscShape.at_birth(rest), nodes, values, device, once)
        )
        self.shown: Discs = self._carried
        """what is seen: as many as it takes"""
        self.blend: Blended | None = None
        """of a body that flows"""
        self._layers: NDArray[np.int32] | None = None
        self._ids = Ids.counted(np.arange(len(rest.positions)) if ids is None else ids)
        """of those that `tracked` has"""
        self._pieces = Pieces.of(rest, device, once)
        self._spacing: NDArray[np.float32] | None = None
        """how far apart they should be if it has flowed and is solid again, in node spacings, shape (m,)"""
        self._device = device
        self._whole, self._unit = self._pieces, rest.unit

    def part(self, found: Parted, cracks: Cracks, nodes: Floats, sees: Sees, values: ShapeValues | None = None) -> None:
        """Show what cracks have made of the surfels. `nodes` (n, 3) carry them as at birth; `values` are those at all
        surfels that were found."""
        if values is None:
            carriers = self._beside(found.shape.points, cracks, nodes, sees)
            self._carried = Carried(found.shape, carriers, self._device)
        else:
            self._carried = Woven(found.shape, nodes, values, self._device)
        self.shown, self._ids = self._carried, Ids(found.ids, self._ids.given)
        partner = self._whole.partner
        points, cut = found.shape.points[: len(partner)], found.was_cut
        alone = cut | cut[partner] | ~cracks.sees(points, points[partner])
        self._pieces = self._whole.parted(self._unit * found.radii, alone)

    def _beside(self, points: Floats, cracks: Cracks, nodes: Floats, sees: Sees) -> Carriers:
        """What carries surfels at `points`, the first of which are those that there were at birth: what did, where no
        crack is near."""
        known, own = self._carried.carriers, points[: len(self._whole.partner)]
        known = Carriers(known.nodes[: len(own)], known.shares[: len(own)])
        reach = np.linalg.norm(nodes[known.nodes] - own[:, None], axis=2).max(axis=1)
        near = np.zeros(len(points), bool)
        near[len(own) :] = True
        for crack in cracks:
            height, ahead = crack.values(own)
            near[: len(own)] |= (np.abs(height) < reach) & (ahead < reach)
        new = Carriers.beside_cracks(points[near], nodes, sees, cracks.sees)
        index = np.empty((len(points), new.nodes.shape[1]), np.int32)
        shares = np.empty(index.shape, np.float32)
        far = ~near[: len(own)]
        index[: len(own)][far], shares[: len(own)][far] = known.nodes[far], known.shares[far]
        index[near], shares[near] = new.nodes, new.shares
        return Carriers(index, shares)

    @property
    def carried(self) -> Carried:
        """The points the body came with, one for one: what meshes and splats are made of. After it has flowed and is
        solid again, those that were shown then."""
        return self._carried if self.blend is None else self.blend.zombies

    @property
    def tracked(self) -> Discs:
        """What can be followed from one moment to the next: all that is carried, neither in pieces nor two as one; of
        what flows, what is shown."""
        return self._carried if self.blend is None else self.shown

    @property
    def ids(self) -> NDArray[np.int64]:
        """Numbers of those that are tracked, shape (k,). Each keeps its own for ever, and no other gets it."""
        return self._ids.numbers

    @property
    def owners(self) -> NDArray[np.int64]:
        """Which of those that are carried each surfel that is shown is, or is a piece of, shape (m,). Not of what
        flows."""
        whole = self.shown is self._carried
        return np.arange(len(self._carried)) if whole else self._pieces.owners

    def __len__(self) -> int:
        return len(self.shown)

    @property
    def origin(self) -> NDArray[np.float64]:
        """Where `position` on the device is counted from [m], in double: far away costs no digits."""
        return self.shown.origin

    @property
    def position(self) -> wp.array:
        """[m] about `origin`"""
        return self.shown.position

    @property
    def axis_a(self) -> wp.array:
        """half axis of the disc [m]"""
        return self.shown.axis_a

    @property
    def axis_b(self) -> wp.array:
        """half axis of the disc [m]"""
        return self.shown.axis_b

    @property
    def normal(self) -> wp.array:
        """unit length, outward"""
        return self.shown.normal

    @property
    def color(self) -> wp.array:
        """red, green, blue in 0..1"""
        return self.shown.color

    @property
    def positions(self) -> NDArray[np.float64]:
        """[m], shape (m, 3)"""
        return self.shown.positions

    @property
    def normals(self) -> NDArray[np.float32]:
        """unit length, shape (m, 3)"""
        return self.shown.normals

    @property
    def colors(self) -> NDArray[np.float32]:
        """red, green, blue in 0..1, shape (m, 3)"""
        return self.shown.colors

    @property
    def layers(self) -> NDArray[np.int32]:
        """What each lies on, shape (m,): 0 detail of its own, 1 the implicit skin of what flows, 2 a collider that
        skin was pressed on."""
        return np.zeros(len(self), np.int32) if self._layers is None else self._layers

    def follow(self, motion: Motion) -> None:
        """Let the surfels that are seen go where the body's nodes carry them; those of a body that flows onto its
        implicit skin and the walls of molds, where they belong there."""
        self.carry(motion)
        if self.blend is None:
            self.shown = self._pieces.shown(self._carried, motion.walls.table, motion.walls.body, motion.unit)
        elif motion.skin is not None:
            self.blend.finish(motion.skin(), motion.walls, motion.unit)
            self.shown, self._layers, self._ids = self.blend.visible()

    def carry(self, motion: Motion) -> None:
        """Let all surfels go there, seen or not."""
        for surfels in self._all():
            surfels.follow(motion)

    def absorb(self, unit: float, origin: Floats) -> None:
        """Where all surfels are becomes their reference shape, in units of `unit` [m] about `origin` [m]."""
        for surfels in self._all():
            surfels.absorb(unit, origin)

    def _all(self) -> list[Any]:
        return [self._carried] if self.blend is None else [self.blend.zombies, self.blend.shown]

    def begin_to_blend(self, outside: Floats, skin: ImplicitSkin) -> None:
        """From now on the body flows; `outside` is P of its phyxels, (n,), `skin` that of all that flow with them."""
        if self.blend is None:
            self.blend = Blended.begun(self._carried, self._ids, outside, skin, self._spacing)
            self.shown = self._carried

    def end_to_blend(self, unit: float, origin: Floats) -> None:
        """What is shown now are the points of the body from now on, as if it had come with them. One that is hidden in
        another keeps those it has."""
        if self.blend is not None:
            self._carried, self._spacing, self._ids = self.blend.unburied()
            self.blend = self._layers = None
            self._carried.absorb(unit, origin)
            self._be_born(unit)

    def _be_born(self, unit: float) -> None:
        shape = self._carried.shape
        normals = unit_vectors(np.cross(shape.axis_a, shape.axis_b))
        self._pieces = Pieces.of(Rest(shape.points, normals, shape.colors, unit, longest_axis(shape)), self._device)

    def find_carriers(self, nodes: Floats, spacing: float = 1.0) -> None:
        """Let other nodes carry the surfels: the nearest of (n, 3) positions in the reference shape, which were a
        `spacing` apart."""
        self._carried.find_carriers(nodes, spacing)

    def state(self) -> dict[str, NDArray[Any]]:
        """The reference shape, and which nodes carry it; of a body that flows, all that is known of its surface."""
        ids, blend = (self._ids.state(), {}) if self.blend is None else ({}, self.blend.state())
        again = {} if self._spacing is None else {"spacing": self._spacing}
        return self.carried.state() | ids | again | {f"blend.{name}": array for name, array in blend.items()}

    def restore(self, state: dict[str, NDArray[Any]], unit: float) -> None:
        """Take over what `state` gave; `unit` [m] is the node spacing."""
        self._carried, self.blend, self._layers = Carried.restored(state, self._device), None, None
        blend = unprefixed("blend.", state)
        if blend:
            self.blend = Blended.restored(self._carried, blend)
        self._ids = Ids.restored(blend or state)
        self._spacing = state.get("spacing")
        if self._spacing is not None or len(self._carried) != len(self._pieces.partner):
            self._be_born(unit)
