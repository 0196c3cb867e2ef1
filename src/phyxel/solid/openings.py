"""Openings in a sampled surface, and the points that close them (physics 9.2).

Where points leave a gap the winding number still falls from inside to outside: its level ½ is a skin across the gap,
fastened to the rim like a soap film that bulges a little. Points are laid on that skin, from the rim inward.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from phyxel.errors import SolidError
from phyxel.points.normals import Neighbourhoods
from phyxel.region import Floats
from phyxel.rotation import tangents
from phyxel.solid.winding import Soup

LOPSIDED = 0.3
"""How far the middle of a point's neighbours lies from it, over their reach, on the rim of an opening (0.42 there)."""
WIDEST_GAP = 2.0
"""Points farther apart than twice this many spacings leave an opening."""
CLOSING_APART = 0.8
"""Least distance between the points that close an opening, in spacings."""
SPACING_GROWTH = 1.1
"""How much wider the spacing may get from one point to the next."""
WIDEST_SPACING = 0.03
"""Widest spacing of closing points, over the size of the surface."""
IF_A_SHEET = 'If it is a sheet, such as cloth, skin or a thin shell: a body of model = "particles" needs no inside'
MOST_ROUNDS = 200
FEWEST_IN_HOLE = 3


@dataclass(frozen=True)
class Closing:
    """Points that close openings, in units of the surface's size."""

    positions: Floats
    normals: Floats
    areas: Floats
    holes: int
    """openings closed"""

    def __len__(self) -> int:
        return len(self.positions)

    @staticmethod
    def none() -> Closing:
        """Of what has no openings."""
        return Closing(np.empty((0, 3)), np.empty((0, 3)), np.empty(0), 0)

    def share(self, given: float) -> float:
        """Share of the whole surface that is made up, where so much area is given."""
        return float(self.areas.sum() / (self.areas.sum() + given))

    def check(self, name: str, given: float, most: float) -> None:
        """Refuse to make up more than a share of the surface."""
        share = self.share(given)
        if share > most:
            raise SolidError(
                f"{name}: the surface is open: {100 * share:.0f} % of it would have to be made up to close "
                f"{self.holes} opening{'s' * (self.holes != 1)}, and {100 * most:.0f} % are allowed. Close it in a "
                f"modelling tool, or allow more: closing = {np.ceil(100 * share + 1) / 100:.2f}. {IF_A_SHEET}"
            )


class _Front(NamedTuple):
    """Places to look for the skin at."""

    positions: Floats
    normals: Floats
    """across the skin, outward"""
    spacing: Floats

    def chosen(self, which: NDArray[np.bool_] | NDArray[np.intp]) -> _Front:
        return _Front(*(part[which] for part in self))

    @staticmethod
    def joined(fronts: list[_Front]) -> _Front:
        return _Front(*(np.concatenate(parts) for parts in zip(*fronts, strict=True)))


def close_openings(positions: Floats, normals: Floats, areas: Floats, near: Neighbourhoods, soup: Soup) -> Closing:
    """Points on the winding number's skin wherever the given ones leave a gap."""
    given = _Front(positions, normals, np.sqrt(areas))
    skin = _ClosedSkin(soup, given)
    added = skin.settled(_beyond_the_rim(given, near), 0.85 * WIDEST_GAP)
    fronts = [added]
    for _ in range(MOST_ROUNDS):
        if len(added.positions) == 0:
            break
        added = skin.settled(_around(added), CLOSING_APART, _Front.joined(fronts))
        fronts.append(added)
    made = _Front.joined(fronts)
    label, holes = _holes(made)
    kept = made.chosen(label >= 0)
    return Closing(kept.positions, kept.normals, (0.95 * kept.spacing) ** 2, holes)


def _beyond_the_rim(given: _Front, near: Neighbourhoods) -> _Front:
    """Where openings would be: two spacings away from each point whose neighbours lie to one side.

    The skin may go on straight from the rim (a hole in a wall) or turn inward at it (a box without its lid).
    """
    middle = near.x[near.index].mean(axis=1) - near.x
    middle -= (middle * given.normals).sum(axis=1, keepdims=True) * given.normals
    lopsided = np.linalg.norm(middle, axis=1)
    rim = given.chosen(lopsided > LOPSIDED * near.reach)
    out = -middle[lopsided > LOPSIDED * near.reach]
    out /= np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-300)
    aside = np.cross(rim.normals, out)
    fronts = []
    for turn in (0.0, np.pi / 4, -np.pi / 4):
        way = np.cos(turn) * out + np.sin(turn) * aside
        for bend in (0.0, np.pi / 4, np.pi / 2):
            forth = np.cos(bend) * way - np.sin(bend) * rim.normals
            across = np.sin(bend) * way + np.cos(bend) * rim.normals
            fronts.append(_Front(rim.positions + WIDEST_GAP * rim.spacing[:, None] * forth, across, rim.spacing))
    return _Front.joined(fronts)


def _around(front: _Front) -> _Front:
    """Six places around each point, one spacing away."""
    a, b = tangents(front.normals)
    angles = np.arange(6) * np.pi / 3
    step = front.spacing[:, None]
    places = [front.positions + step * (np.cos(angle) * a + np.sin(angle) * b) for angle in angles]
    spacing = np.minimum(SPACING_GROWTH * front.spacing, np.maximum(WIDEST_SPACING, front.spacing))
    return _Front(np.concatenate(places), np.tile(front.normals, (6, 1)), np.tile(spacing, 6))


class _ClosedSkin:
    """The level ½ of the winding number, beside the given points."""

    def __init__(self, soup: Soup, given: _Front) -> None:
        self._soup, self._given, self._tree = soup, given, cKDTree(given.positions)

    def settled(self, front: _Front, apart: float, made: _Front | None = None) -> _Front:
        """Those of the places that lie beside the skin and off the given and the made points, laid onto the skin."""
        made_tree = None if made is None else cKDTree(made.positions)
        for laid in (False, True):
            if laid:
                front = self._laid_on(front)
            front = self._off_the_given(front, apart)
            if made_tree is not None and len(front.positions):
                distance, _ = made_tree.query(front.positions, workers=-1)
                front = front.chosen(distance > CLOSING_APART * front.spacing)
            front = _thinned(front)
        return front

    def _off_the_given(self, front: _Front, apart: float) -> _Front:
        """Those farther from all given points than these may be from each other."""
        if len(front.positions) == 0:
            return front
        distance, index = self._tree.query(front.positions, workers=-1)
        return front.chosen(distance > apart * np.maximum(front.spacing, self._given.spacing[index]))

    def _laid_on(self, front: _Front) -> _Front:
        """Bisection along the normal; places with no skin within 1.5 spacings are dropped."""
        below, above = (front.positions + side * 1.5 * front.spacing[:, None] * front.normals for side in (-1, 1))
        crossed = (self._inside(below)) & ~self._inside(above)
        front, below, above = front.chosen(crossed), below[crossed], above[crossed]
        for _ in range(10):
            middle = 0.5 * (below + above)
            inside = self._inside(middle)[:, None]
            below, above = np.where(inside, middle, below), np.where(inside, above, middle)
        positions = 0.5 * (below + above)
        return _Front(positions, self._normals(positions, front), front.spacing)

    def _inside(self, positions: Floats) -> NDArray[np.bool_]:
        return self._soup.winding_number(positions) > 0.5

    def _normals(self, positions: Floats, front: _Front) -> Floats:
        """Down the slope of the winding number."""
        step = 0.5 * front.spacing
        slope = np.zeros(positions.shape)
        for axis in range(3):
            shift = np.zeros(positions.shape)
            shift[:, axis] = step
            slope[:, axis] = self._soup.winding_number(positions - shift) - self._soup.winding_number(positions + shift)
        length = np.linalg.norm(slope, axis=1, keepdims=True)
        return np.where(length > 1e-3, slope / np.maximum(length, 1e-3), front.normals)


def _thinned(front: _Front) -> _Front:
    """Without those that come near an earlier one."""
    if len(front.positions) < 2:
        return front
    pairs = cKDTree(front.positions).query_pairs(CLOSING_APART * float(front.spacing.max()), output_type="ndarray")
    gap = np.linalg.norm(front.positions[pairs[:, 0]] - front.positions[pairs[:, 1]], axis=1)
    close = gap < CLOSING_APART * front.spacing[pairs].min(axis=1)
    keep = np.ones(len(front.positions), bool)
    keep[pairs[close].max(axis=1, initial=0)] = False
    keep[0] = True
    return front.chosen(keep)


def _holes(made: _Front) -> tuple[NDArray[np.intp], int]:
    """Which opening each point closes, −1 for specks that are none, and how many openings there are."""
    n = len(made.positions)
    if n == 0:
        return np.zeros(0, np.intp), 0
    pairs = cKDTree(made.positions).query_pairs(2.5 * float(made.spacing.max()), output_type="ndarray")
    gap = np.linalg.norm(made.positions[pairs[:, 0]] - made.positions[pairs[:, 1]], axis=1)
    pairs = pairs[gap < 2.5 * made.spacing[pairs].max(axis=1)]
    links = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    _, label = connected_components(links, directed=False)
    size = np.bincount(label)
    label = np.where(size[label] >= FEWEST_IN_HOLE, label, -1)
    return label, len(np.unique(label[label >= 0]))
