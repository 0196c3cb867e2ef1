"""Surfels: what is seen of a body."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.mls.carry import Carriers
from phyxel.mls.seen import Sees
from phyxel.models.phyxel import PhyxelModel
from phyxel.surface.blended import Blended
from phyxel.surface.carried import Carried, Discs, Rest

Floats = NDArray[np.floating]


class Surfels:
    """The surfels of one body. `follow` moves them; what is read are NumPy arrays in metres, shape (m, 3)."""

    def __init__(self, rest: Rest, nodes: Floats, device: wp.Device, sees: Sees | None = None) -> None:
        self.carried = Carried(Discs.at_birth(rest), Carriers.found(rest.positions, nodes, sees), device)
        """the points the body came with, one for one: what meshes and splats are made of"""
        self.blend: Blended | None = None
        """of a body that flows"""
        self._device = device

    def __len__(self) -> int:
        return len(self.position)

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
        return self.origin + self.position.numpy()

    @property
    def normals(self) -> NDArray[np.float32]:
        """unit length, shape (m, 3)"""
        return self.normal.numpy()

    @property
    def colors(self) -> NDArray[np.float32]:
        """red, green, blue in 0..1, shape (m, 3)"""
        return self.shown.colors

    @property
    def shown(self) -> Carried:
        """What is seen: of a body that flows not the points it came with."""
        return self.carried if self.blend is None else self.blend.shown

    def follow(self, model: PhyxelModel, body: int, unit: float, origin: Floats, zombies: bool = False) -> None:
        """Go where the displacement field of a body carries the surfels; `unit` and `origin` lead to metres. Zombies
        are not seen: they go along only when told."""
        self.shown.follow(model, body, unit, origin)
        if self.blend is not None and zombies:
            self.blend.zombies.follow(model, body, unit, origin)

    def absorb(self, unit: float, origin: Floats) -> None:
        """Where the surfels are now becomes their reference shape, in units of `unit` [m] about `origin` [m]."""
        if self.blend is None:
            self.carried.absorb(unit, origin)
        else:
            self.blend.absorb(unit, origin)

    def begin_to_blend(self, outside: Floats) -> None:
        """From now on the body flows; `outside` is P of its phyxels, (n,)."""
        if self.blend is None:
            self.blend = Blended(self.carried, outside, self._device)

    def end_to_blend(self, unit: float, origin: Floats) -> None:
        """What is shown now are the points of the body from now on, as if it had come with them."""
        if self.blend is not None:
            shown = self.blend.shown
            shown.absorb(unit, origin)
            self.carried, self.blend = shown, None

    def find_carriers(self, nodes: Floats) -> None:
        """Let other nodes carry the surfels: the nearest of (n, 3) positions in the reference shape."""
        self.carried.find_carriers(nodes)

    def state(self) -> dict[str, NDArray[Any]]:
        """The reference shape, and which nodes carry it."""
        return self.carried.state()

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        self.carried.restore(state)
