# mypy: disable-error-code="valid-type,no-untyped-def"
"""Multi-level partition of unity (Ohtake et al. 2003; G04 §4.2): local quadratics, blended into one implicit surface.

An octree is laid over the points. In each cell the points of a ball around it are fitted; the cell is split while the
fit misses a point by more than the tolerance and points are left to fit. Values of the cells are blended with the
quadratic B-spline b(3r/2R):

    f(x) = Σ b_c(x) f_c(x) / Σ b_c(x),   f_c = (w − g(u, v)) / √(1 + |∇g|²)

f is near a signed distance where cells with points are; elsewhere it is not defined.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.device import as_vectors
from phyxel.mls.neighbours import z_order
from phyxel.region import Floats
from phyxel.solid.patches import Patch, Points, b_spline, cell_value, fit_cells

wp.set_module_options(dev.KERNEL_OPTIONS)

BALL = 0.75
"""Radius of a cell's ball over the cell's diagonal."""
FEWEST_IN_BALL = 12
"""Points that a ball is grown to hold."""
SPLITTABLE = 24
"""Points in a ball below which a cell is not split: its children's balls would only grow back."""
COARSEST, DEEPEST = 2, 12
"""Levels of the octree: where fitting begins, and the deepest that may be asked for."""
ROOT = 1.02
"""Side of the root cell over the size of the surface."""


@wp.struct
class Tree:
    """Cells in depth-first order: after a cell come its descendants, `skip` leads past them."""

    cells: int
    centre: wp.array(dtype=wp.vec3)
    reach: wp.array(dtype=float)
    """how far from its centre a cell, or any below it, is felt"""
    skip: wp.array(dtype=int)
    first_patch: wp.array(dtype=int)
    patch_count: wp.array(dtype=int)
    """0 in cells that are split"""
    combined: wp.array(dtype=int)
    patches: wp.array(dtype=Patch)


@wp.func
def implicit_value(tree: Tree, x: wp.vec3):
    """f(x), its gradient, and the sum of weights, which is zero where no cell is felt (physics 9.1)."""
    weights = float(0.0)
    values = float(0.0)
    slopes = wp.vec3()
    weight_slopes = wp.vec3()
    c = int(0)
    while c < tree.cells:
        d = x - tree.centre[c]
        reach = tree.reach[c]
        squared = wp.length_sq(d)
        if squared >= reach * reach:
            c = tree.skip[c]
            continue
        count = tree.patch_count[c]
        if count > 0:
            r = wp.sqrt(squared)
            b, slope = b_spline(r / reach)
            value, gradient = cell_value(tree.patches, tree.first_patch[c], count, tree.combined[c], x)
            outward = slope / (reach * wp.max(r, 1.0e-12)) * d
            weights += b
            values += b * value
            slopes += b * gradient + value * outward
            weight_slopes += outward
        c += 1
    if weights <= 1.0e-12:
        return float(0.0), wp.vec3(), float(0.0)
    f = values / weights
    return f, (slopes - f * weight_slopes) / weights, weights


@dataclass
class _Level:
    """Cells of one level and what was fitted in them, on the host."""

    level: int
    keys: NDArray[np.uint64]
    """Z-order numbers at this level"""
    centres: Floats
    radii: Floats
    patches: NDArray[np.void]
    """three places a cell"""
    patch_count: NDArray[np.int32]
    combined: NDArray[np.int32]
    leaf: NDArray[np.bool_]


class _Fitter:
    """Fits cells level by level."""

    def __init__(self, positions: Floats, normals: Floats, tolerance: float, depth: int, device: wp.Device) -> None:
        self.tolerance, self.depth, self.device = tolerance, depth, device
        cells = np.clip((positions / ROOT + 0.5) * 2**depth, 0, 2**depth - 1).astype(np.uint64)
        codes = z_order(cells)
        order = np.argsort(codes, kind="stable")
        self._cells, self._codes = cells[order], codes[order]
        self._points = Points()
        self._points.position = as_vectors(positions[order], device)
        self._points.normal = as_vectors(normals[order], device)

    def fitted(self, level: int, parents: NDArray[np.uint64] | None) -> _Level:
        """All cells of a level that hold points, below the given ones of the level above."""
        shift = np.uint64(3 * (self.depth - level))
        keys, where = np.unique(self._codes >> shift, return_index=True)
        if parents is not None:
            below = np.isin(keys >> np.uint64(3), parents, assume_unique=False)
            keys, where = keys[below], where[below]
        side = ROOT / 2**level
        corner = self._cells[where] >> np.uint64(self.depth - level)
        centres = (corner.astype(np.float64) + 0.5) * side - 0.5 * ROOT
        return self._fit(level, keys, centres, BALL * np.sqrt(3) * side)

    def _fit(self, level: int, keys: NDArray[np.uint64], centres: Floats, radius: float) -> _Level:
        n, device = len(keys), self.device
        grid = wp.HashGrid(128, 128, 128, device=device)
        grid.build(self._points.position, radius)
        self._points.grid = grid.id
        radii = wp.full(n, value=radius, dtype=float, device=device)
        patches, spare = (wp.zeros(3 * n, dtype=Patch, device=device) for _ in range(2))
        count, combined, held = (wp.zeros(n, dtype=int, device=device) for _ in range(3))
        worst = wp.zeros(n, dtype=float, device=device)
        cells = [as_vectors(centres, device), FEWEST_IN_BALL, radii]
        dev.launch(fit_cells, n, [self._points, *cells, patches, spare, count, combined, held, worst], device)
        misfit = worst.numpy() > self.tolerance
        split = misfit & (held.numpy() >= SPLITTABLE) & (level < self.depth)
        return _Level(level, keys, centres, radii.numpy(), patches.numpy(), count.numpy(), combined.numpy(), ~split)

    def levels(self) -> list[_Level]:
        """All levels: each cell is a leaf or has its children in the next."""
        done = [self.fitted(min(COARSEST, self.depth), None)]
        while not done[-1].leaf.all():
            done.append(self.fitted(done[-1].level + 1, done[-1].keys[~done[-1].leaf]))
        return done


def build_tree(positions: Floats, normals: Floats, tolerance: float, depth: int, device: wp.Device) -> Tree:
    """Fit a surface given by points with outward normals, in units of its size about the middle of its bounding box."""
    levels = _crowned(_Fitter(positions, normals, tolerance, depth, device).levels())
    reach = np.concatenate(_reaches(levels))
    keys, centres, leaf, patch_count, combined = (
        np.concatenate([getattr(level, name) for level in levels])
        for name in ("keys", "centres", "leaf", "patch_count", "combined")
    )
    number = np.repeat([level.level for level in levels], [len(level.keys) for level in levels])
    shift = (3 * (depth - number)).astype(np.uint64)
    begin, end = keys << shift, (keys + np.uint64(1)) << shift
    order = np.lexsort((number, begin))
    count = np.where(leaf, patch_count, 0)[order]
    patches = np.concatenate([level.patches.reshape(-1, 3) for level in levels])[order]
    tree = Tree()
    tree.cells = len(order)
    tree.centre = as_vectors(centres[order], device)
    tree.reach = wp.array(reach[order], dtype=float, device=device)
    tree.skip = wp.array(np.searchsorted(begin[order], end[order]), dtype=int, device=device)
    tree.first_patch = wp.array(np.cumsum(count) - count, dtype=int, device=device)
    tree.patch_count = wp.array(count, dtype=int, device=device)
    tree.combined = wp.array(combined[order], dtype=int, device=device)
    tree.patches = wp.array(patches[np.arange(3) < count[:, None]], dtype=Patch, device=device)
    return tree


def _crowned(levels: list[_Level]) -> list[_Level]:
    """With cells above the coarsest that were fitted, up to the root, so that few are looked at on the way down."""
    while levels[0].level > 0:
        below = levels[0]
        keys, first = np.unique(below.keys >> np.uint64(3), return_index=True)
        n, nothing = len(keys), np.zeros(len(keys), np.int32)
        bare = np.zeros(3 * n, below.patches.dtype)
        split = np.zeros(n, bool)
        crown = _Level(below.level - 1, keys, below.centres[first], np.zeros(n), bare, nothing, nothing, split)
        levels = [crown, *levels]
    return levels


def _reaches(levels: list[_Level]) -> list[Floats]:
    """How far from its centre each cell, or any below it, is felt, level by level."""
    reaches = [np.where(level.leaf, level.radii, 0.0) for level in levels]
    for i in range(len(levels) - 1, 0, -1):
        owner = np.searchsorted(levels[i - 1].keys, levels[i].keys >> np.uint64(3))
        away = np.linalg.norm(levels[i].centres - levels[i - 1].centres[owner], axis=1) + reaches[i]
        np.maximum.at(reaches[i - 1], owner, away)
    return reaches
