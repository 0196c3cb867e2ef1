# mypy: disable-error-code="valid-type,no-untyped-def"
"""Coarser and coarser pictures of a surface: what pulls at one end is felt at the other within a few iterations
(physics 13.4).

Each level has a smooth hat function per cell of the level below, Q (rows sum to 1). A force r on the particles moves
them by Σ_l Q_l D_l⁻¹ Q_lᵀ r: a sum over all levels of Jacobi steps, each with a diagonal that majorizes its links,
D_l = Σ_i Q_iJ/H_i + Σ_e k_e |c_eJ| Σ_K |c_eK| with c of the hats (C Q_l). The mean of such steps majorizes as well
(Bramble, Pasciak and Xu 1990).

Hats end at held particles: they move the others only, and links to held particles count as if each tied its other end
to a place, as 1/H does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from phyxel import device as dev
from phyxel.models.particles.chebyshev import Plan, goes_on
from phyxel.models.particles.links import gathered

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]

CELL_RATIO = 4.0
"""Side of a cell of a level, in those of the level below (particles: in units, which are about their spacing)."""
HAT_RADIUS = 1.4
"""In sides of a cell: neighbouring hats overlap, so that moves are smooth."""
FEWEST_PARTICLES = 200
"""Of a sheet that has levels above its own: fewer are quickly through."""
FEWEST_HATS = 12
"""Of a level that has another above it."""


@wp.struct
class Level:
    """Hats over the level below."""

    up: wp.array(dtype=wp.int32)
    """where the list of what each hat is made of begins, shape (hats + 1,)"""
    up_from: wp.array(dtype=wp.int32)
    up_share: wp.array(dtype=float)
    down: wp.array(dtype=wp.int32)
    """where the list of hats over each entry of the level below begins"""
    down_from: wp.array(dtype=wp.int32)
    down_share: wp.array(dtype=float)
    D: wp.array(dtype=wp.float64)
    """of the links [N/m]"""
    inertia: wp.array(dtype=wp.float64)
    """Σ Q/H [N/m], with links to held particles"""
    force: wp.array(dtype=wp.vec4)
    move: wp.array(dtype=wp.vec4)


@wp.kernel
def gather_inertia(first: int, below: wp.array(dtype=wp.float64), level: Level):
    """Σ Q/H (physics 13.4)."""
    J = first + wp.tid()
    total = wp.float64(0.0)
    for slot in range(level.up[J], level.up[J + 1]):
        total += wp.float64(level.up_share[slot]) * below[level.up_from[slot]]
    level.inertia[J] = total


@wp.kernel
def gather_force(first: int, step: int, plan: Plan, below: wp.array(dtype=wp.vec4), level: Level):
    """Qᵀ r, and how far it moves each hat (physics 13.4)."""
    J = first + wp.tid()
    if not goes_on(plan, step):
        return
    total = gathered(level.up[J], level.up[J + 1], level.up_from, level.up_share, below)
    level.force[J] = total
    level.move[J] = float(wp.float64(1.0) / (level.D[J] + level.inertia[J])) * total


@wp.func
def moved(level: Level, i: int) -> wp.vec4:
    """How far the hats over an entry of the level below take it."""
    return gathered(level.down[i], level.down[i + 1], level.down_from, level.down_share, level.move)


@wp.kernel
def add_moves(first: int, step: int, plan: Plan, above: Level, level: Level):
    """What coarser hats add (physics 13.4)."""
    J = first + wp.tid()
    if goes_on(plan, step):
        level.move[J] += moved(above, J)


class Coarse:
    """All levels above the particles themselves; none for small sheets."""

    def __init__(self, X: Floats, device: wp.Device) -> None:
        self._device = device
        self._hats: list[csr_array] = []
        self.levels: list[Any] = []
        points, cell, n = X, CELL_RATIO, len(X)
        while len(points) >= (FEWEST_HATS if self._hats else FEWEST_PARTICLES):
            hats, points = _hats(points, cell)
            if hats.shape[1] == hats.shape[0]:  # cells of one entry each: the cloud is much sparser than its unit says
                cell *= CELL_RATIO
                continue
            self.levels.append(self._level(hats))
            self._hats.append(hats if not self._hats else self._hats[-1] @ hats)
            cell *= CELL_RATIO
        self._none = self._level(csr_array((n, 0)))

    def _level(self, hats: csr_array) -> Any:
        """A level of these hats, with room for its numbers."""
        level: Any = Level()
        count = hats.shape[1]
        for name, lists in (("down", hats.tocsr()), ("up", hats.T.tocsr())):
            setattr(level, name, wp.array(lists.indptr, dtype=wp.int32, device=self._device))
            setattr(level, name + "_from", wp.array(lists.indices, dtype=wp.int32, device=self._device))
            setattr(level, name + "_share", wp.array(lists.data, dtype=float, device=self._device))
        level.D = wp.zeros(count, dtype=wp.float64, device=self._device)
        level.inertia = wp.zeros(count, dtype=wp.float64, device=self._device)
        level.force = wp.zeros(count, dtype=wp.vec4, device=self._device)
        level.move = wp.zeros(count, dtype=wp.vec4, device=self._device)
        return level

    @property
    def lowest(self) -> Any:
        """The level above the particles; without levels one that moves nothing."""
        return self.levels[0] if self.levels else self._none

    def set_stiffness(self, C: csr_array, k: Floats) -> None:
        """Links e = C x, (E, n), of stiffness k (E,)."""
        for hats, level in zip(self._hats, self.levels, strict=True):
            share = C @ hats
            np.abs(share.data, out=share.data)
            level.D.assign(share.T @ (k * share.sum(axis=1)))

    def prepared(self, inertia: wp.array) -> list[dev.Launch]:
        """Once a step: 1/H of the particles, and so of all levels."""
        launches = []
        for level in self.levels:
            launches.append(dev.Launch(gather_inertia, len(level.D), [inertia, level], 0.5))
            inertia = level.inertia
        return launches

    def moves(self, step: int, plan: Any, force: wp.array) -> list[dev.Launch]:
        """Once an iteration: where forces on the particles take the hats of the lowest level."""
        launches = []
        for level in self.levels:
            launches.append(dev.Launch(gather_force, len(level.D), [step, plan, force, level], 0.5))
            force = level.force
        for level, above in reversed(list(zip(self.levels, self.levels[1:], strict=False))):
            launches.append(dev.Launch(add_moves, len(level.D), [step, plan, above, level], 0.1))
        return launches


def _hats(points: Floats, cell: float) -> tuple[csr_array, Floats]:
    """Hats about the middle of the points in each cell of a grid, (points, hats), with rows that sum to 1; and the
    middles."""
    _, which, count = np.unique(np.floor(points / cell), axis=0, return_inverse=True, return_counts=True)
    middles = np.stack([np.bincount(which.ravel(), axis) for axis in points.T], axis=1) / count[:, None]
    tree, radius = cKDTree(middles), HAT_RADIUS * cell
    near = cKDTree(points).sparse_distance_matrix(tree, radius, output_type="ndarray")
    share = (1 - (near["v"] / radius) ** 2) ** 2
    far, nearest = tree.query(points)
    alone = np.flatnonzero(far > 0.99 * radius)
    rows, columns = np.append(near["i"], alone), np.append(near["j"], nearest[alone])
    hats = csr_array((np.append(share, np.ones(len(alone))), (rows, columns)), (len(points), len(middles)))
    total = np.asarray(hats.sum(axis=1)).ravel()
    return csr_array(hats.multiply(1 / total[:, None])), middles
