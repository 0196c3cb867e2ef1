"""How a body vibrates: its lowest frequencies and what it looks like in each (`px.modes`, `phyxel modes`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from phyxel.errors import PhyxelError
from phyxel.material import Material
from phyxel.models.modal.modes import MOST_MODES, Clamp, Compliance, ModalMatrices, Progress, curls, eigenmodes
from phyxel.models.modal.warping import warp

if TYPE_CHECKING:
    from phyxel.body.body import Body

Floats = NDArray[np.float64]

FAR, FURTHEST_TURN = 0.12, 0.7
"""How far a mode is shown: the largest displacement over the body's size, and rotation [rad], whichever is less."""


@dataclass(frozen=True)
class Vibrations:
    """The lowest modes of a body, as it was held when `px.modes` was asked.

    >>> found = px.modes(px.gallery("cantilever").changed(nodes=64).body(), 3)
    >>> len(found), found.shapes.shape == (3, len(found.body.positions), 3)
    (3, True)
    """

    body: Body
    """that vibrates"""
    frequencies: Floats
    """[Hz], ascending, shape (l,)"""
    coefficients: Floats
    """of the displacement fields, in the body's Galerkin space, shape (n, 3, l)"""

    def __len__(self) -> int:
        return len(self.frequencies)

    @property
    def shapes(self) -> Floats:
        """Displacements of the nodes, the largest 1 m long, shape (l, n, 3)."""
        moved = np.stack([self.body.space.at_nodes.values @ part for part in np.moveaxis(self.coefficients, 2, 0)])
        return moved / np.linalg.norm(moved, axis=2).max(axis=1)[:, None, None]

    def visible(self, mode: int) -> tuple[Floats, Floats]:
        """A mode as large as is good to see: displacement and rotation of each node's coefficient, in the body's units
        and radians, shape (n, 3) each."""
        shape, space = self.coefficients[:, :, mode], self.body.space
        turns = curls(space.at_nodes, shape[:, :, None])[:, :, 0]
        furthest = np.linalg.norm(space.at_skin.values @ shape, axis=1).max()
        size = np.ptp(space.nodes, axis=0).max()
        scale = min(FAR * size / furthest, FURTHEST_TURN / max(np.linalg.norm(turns, axis=1).max(), 1e-30))
        return scale * shape, scale * turns

    def bent(self, mode: int, swing: float = 1.0) -> Floats:
        """Coefficients of the body bent by `swing` times the visible mode, along arcs, in its units, shape (n, 3)."""
        shape, turns = self.visible(mode)
        return warp(swing * np.concatenate([shape, turns], axis=1))


def modes(body: Body, count: int = 12, progress: Progress | None = None) -> Vibrations:
    """The lowest `count` modes of vibration about the reference shape of a `body`, held where it is held now.

    K x = ω² M x over its nodes, with all that holds have hold of at rest; motions without strain are left out. Whatever
    its model, and with the elastic part of its material. Remembered on disk. `progress(stage, share)` hears how far it
    is.

    >>> bar = px.gallery("cantilever").changed(nodes=64).body()
    >>> soft = px.modes(bar, 3).frequencies  # [Hz]
    >>> bar.change(young=4 * bar.material.young)
    >>> (px.modes(bar, 3).frequencies / soft).round(3)
    array([2., 2., 2.])
    """
    if not (isinstance(count, int | np.integer) and 1 <= count <= MOST_MODES):
        raise PhyxelError(f"{body.name}: modes = {count}: give a whole number from 1 to {MOST_MODES}")
    body.needs_solid("modes")
    if not body.kind.bends:
        raise PhyxelError(f'{body.name}: modes: model = "{body.model}" never bends; ask a body of another model')
    if any(material.viscosity is not None for material in body.mixture.materials):
        raise PhyxelError(f"{body.name}: is molten: it has no shape to vibrate about; ask before it melts")
    space = body.space
    matter = ModalMatrices.of(
        space, replace(body.mixture, materials=tuple(map(_elastic, body.mixture.materials))), body.shape.rotation
    )
    holds = [handle.in_units(body.born.centre, body.born.unit) for handle in body.handles]
    clamp = Clamp(space, holds) if holds else None
    loose = 0 if clamp is None else _loose(clamp.points)
    found = eigenmodes(matter, clamp, count + loose, lambda: Compliance(matter, clamp), progress)
    values = np.maximum(found.values[loose:], 0.0) * matter.modulus / (matter.density * body.born.unit**2)
    return Vibrations(body, np.sqrt(values) / (2 * np.pi), found.shapes[:, :, loose:])


def _elastic(material: Material) -> Material:
    """The same without yield."""
    return material.but(yield_strain=None, yield_stress=None)


def _loose(points: Floats) -> int:
    """How many ways there are to move a body as a whole, by little, with these points held."""
    fields = [np.tile(axis, (len(points), 1)) for axis in np.eye(3)] + [np.cross(axis, points) for axis in np.eye(3)]
    return 6 - int(np.linalg.matrix_rank(np.stack([field.ravel() for field in fields], axis=1), tol=1e-6))
