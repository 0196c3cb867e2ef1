"""Surfels: what is seen of a body."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.mls.seen import Sees
from phyxel.models.phyxel import PhyxelModel
from phyxel.surface.carried import Carried
from phyxel.surface.discs import Discs, Rest
from phyxel.surface.pieces import Pieces

Floats = NDArray[np.floating]


class Surfels:
    """The surfels of one body. `follow` moves them; what is read are NumPy arrays in metres, shape (m, 3). Their number
    may be another after each `follow`."""

    def __init__(self, rest: Rest, nodes: Floats, device: wp.Device, sees: Sees | None = None) -> None:
        self.carried = Carried(rest, nodes, device, sees)
        """the points the body came with, one for one: what meshes and splats are made of"""
        self.shown: Discs = self.carried
        """what is seen: as many as it takes"""
        self._pieces = Pieces(rest, self.carried, device)

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

    def follow(self, model: PhyxelModel, body: int, unit: float, origin: Floats) -> None:
        """Go where the displacement field of a body carries the surfels; `unit` and `origin` lead to metres."""
        self.carried.follow(model, body, unit, origin)
        self.shown = self._pieces.shown(model, body, unit)

    def absorb(self, unit: float, origin: Floats) -> None:
        """Where the surfels are now becomes their reference shape, in units of `unit` [m] about `origin` [m]."""
        self.carried.absorb(unit, origin)

    def find_carriers(self, nodes: Floats) -> None:
        """Let other nodes carry the surfels: the nearest of (n, 3) positions in the reference shape."""
        self.carried.find_carriers(nodes)

    def state(self) -> dict[str, NDArray[Any]]:
        """The reference shape, and which nodes carry it."""
        return self.carried.state()

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        self.carried.restore(state)
