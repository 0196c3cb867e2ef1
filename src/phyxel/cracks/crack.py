"""Cracks of a body: each is two level sets, ψ1 whose zero is its surface and ψ2 that is negative where it is cut, and
a front (G04 §4.3.2, physics 12)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phyxel.cracks.front import Front, unit
from phyxel.cracks.grid import Floats, LevelGrid, vectors
from phyxel.cracks.sight import CrackSight
from phyxel.cracks.sweeping import run_crack
from phyxel.errors import PhyxelError
from phyxel.state import State, prefixed, unprefixed

STEEPEST = np.radians(70)
"""How far a front turns at most in one step."""
CORNERS = np.array([[(c >> 2) & 1, (c >> 1) & 1, c & 1] for c in range(8)])
"""of a cell, shape (8, 3)"""
TETRAHEDRA = np.array([np.cumsum([0, *order]) for order in permutations((4, 2, 1))])
"""Corners of the six tetrahedra of Kuhn in a cell, shape (6, 4): from its first corner to its last, one axis after the
other."""


class Crack:
    """ψ1 = 0 where ψ2 < 0, in a body's reference coordinates and units. Make one by `disc`, `slit` or `plane`."""

    def __init__(self, grid: LevelGrid, psi1: Floats, psi2: Floats, front: Front) -> None:
        self.grid, self.front = grid, front
        self.psi1, self.psi2 = np.ascontiguousarray(psi1), np.ascontiguousarray(psi2)
        self._sight: CrackSight | None = None

    @staticmethod
    def disc(grid: LevelGrid, at: ArrayLike, normal: ArrayLike, radius: float) -> Crack:
        """A round one (physics 12.1): ψ1 = N·(X − X₀), ψ2 = |(X − X₀)_∥| − r₀."""
        at, normal = _place("at", at), _direction("normal", normal)
        if not 0 < radius < np.inf:
            raise PhyxelError(f"crack: radius = {radius}: give a length above 0, or none for a cut all through")
        away = grid.points() - at
        height = away @ normal
        aside = np.linalg.norm(away - height[..., None] * normal, axis=-1)
        if not aside.min() < radius < aside.max():  # its edge is beyond the body, and may be too long to be sampled
            return Crack(grid, height, aside - radius, Front.none())
        front = Front.circle(at, normal, radius, grid.spacing)
        return Crack(grid, height, aside - radius, front.inside(grid))

    @staticmethod
    def slit(grid: LevelGrid, at: ArrayLike, normal: ArrayLike, ahead: ArrayLike) -> Crack:
        """A half plane, cut from its straight front through `at` all the way back: ψ2 = f·(X − X₀).

        f is the part of `ahead` in the plane."""
        at, normal, ahead = _place("at", at), _direction("normal", normal), _direction("ahead", ahead)
        forward = ahead - (ahead @ normal) * normal
        if np.linalg.norm(forward) < 1e-6:
            raise PhyxelError(f"crack: ahead = {ahead}: it stands upright on the crack; give a way in its plane")
        forward = unit(forward)
        away = grid.points() - at
        return Crack(grid, away @ normal, away @ forward, Front.line(at, normal, forward, grid))

    @staticmethod
    def plane(grid: LevelGrid, at: ArrayLike, normal: ArrayLike) -> Crack:
        """A cut all through: no front, ψ2 far below 0."""
        at, normal = _place("at", at), _direction("normal", normal)
        through = np.full(grid.shape, -np.linalg.norm(grid.upper - grid.origin))
        return Crack(grid, (grid.points() - at) @ normal, through, Front.none())

    @property
    def sight(self) -> CrackSight:
        """Its level sets on the device, and lines of sight."""
        if self._sight is None:
            self._sight = CrackSight(self.grid, self.psi1, self.psi2)
        return self._sight

    def values(self, X: ArrayLike) -> tuple[Floats, Floats]:
        """ψ1 and ψ2 at places (n, 3), each of shape (n,)."""
        return self.sight.levels(vectors(X))

    def normals(self, X: ArrayLike) -> Floats:
        """Unit ∇ψ1 at places (n, 3), shape (n, 3)."""
        return unit(self.sight.slopes(vectors(X), 1))

    def sees(self, one: ArrayLike, other: ArrayLike) -> NDArray[np.bool_]:
        """Whether the straight ways between places (n, 3) and (n, 3) do not cross it, (n,)."""
        seen = np.ones(len(vectors(one)), bool)
        self.sight.look(vectors(one), vectors(other), seen)
        return seen

    def run(self, directions: ArrayLike, speeds: ArrayLike, dt: float) -> None:
        """Let the front's points run along directions (k, 3) at speeds (k,) [spacings/s] for dt [s] (physics 12.3).

        Of a direction the part across the front counts, turned by at most 70° from the way ahead. Points of speed 0
        stay as they are.
        """
        ways = dt * np.maximum(np.asarray(speeds, np.float64), 0.0)
        if not ways.any():
            return
        t, f, n = self.front.frames()
        wanted = np.asarray(directions, np.float64)
        turn = np.arctan2(np.sum(wanted * n, axis=1), np.sum(wanted * f, axis=1))
        turn = np.where(ways > 0, np.clip(turn, -STEEPEST, STEEPEST), 0.0)[:, None]
        ahead = np.cos(turn) * f + np.sin(turn) * n
        normals = np.cross(t, ahead)
        changed = run_crack(self.grid, self.psi1, self.psi2, self.front, ahead, normals, ways)
        if self._sight is not None:
            self._sight.refresh(*changed)
        moved = self.front.moved(self.front.points + ways[:, None] * ahead, ahead, normals)
        self.front = self._unswallowed(moved).inside(self.grid).even(self.grid.spacing)

    def _unswallowed(self, front: Front) -> Front:
        """The front without points that have met another part of the crack."""
        height, ahead = self.values(front.points)
        h = self.grid.spacing
        return front.kept(~((ahead < -h) & (np.abs(height) < h)))

    def sheet(self) -> Floats:
        """Triangles (k, 3, 3) of its surface; their normals look to where ψ1 > 0."""
        return _sheet(self.grid, self.psi1, self.psi2, self.sight.cut)

    def state(self) -> State:
        """What a checkpoint keeps, as arrays."""
        return {"psi1": self.psi1, "psi2": self.psi2} | prefixed("front_", self.front.state())

    @staticmethod
    def restored(grid: LevelGrid, state: State) -> Crack:
        """From `state()`."""
        front = Front.restored(unprefixed("front_", state))
        return Crack(grid, np.array(state["psi1"]), np.array(state["psi2"]), front)


class Cracks:
    """The cracks of a body, on one grid."""

    def __init__(self, grid: LevelGrid, cracks: list[Crack] | None = None) -> None:
        self.grid = grid
        self._cracks = list(cracks or [])
        self.revision = 0
        """how often they have changed"""

    def __len__(self) -> int:
        return len(self._cracks)

    def __iter__(self) -> Iterator[Crack]:
        return iter(self._cracks)

    def __getitem__(self, number: int) -> Crack:
        return self._cracks[number]

    def add(self, crack: Crack) -> None:
        """One more."""
        self._cracks.append(crack)
        self.revision += 1

    def run(self, number: int, directions: ArrayLike, speeds: ArrayLike, dt: float) -> None:
        """Let one of them run: see `Crack.run`."""
        self._cracks[number].run(directions, speeds, dt)
        self.revision += 1

    def sees(
        self, one: NDArray[np.floating], other: NDArray[np.floating], within: tuple[Floats, Floats] | None = None
    ) -> NDArray[np.bool_]:
        """Whether the straight ways between places (n, 3) and (n, 3) cross no crack, (n,); or none in a box.

        A place on a crack belongs to the side where ψ1 > 0."""
        one, other = vectors(one), vectors(other)
        seen = np.ones(len(one), bool)
        for crack in self._cracks:
            crack.sight.look(one, other, seen, within)
        return seen

    def state(self) -> State:
        """What a checkpoint keeps, as arrays by name: `0_psi1`, `0_psi2`, `0_front_points`, ... of each crack."""
        state = {"revision": np.array(self.revision), "count": np.array(len(self))}
        for i, crack in enumerate(self):
            state |= prefixed(f"{i}_", crack.state())
        return state

    @staticmethod
    def restored(grid: LevelGrid, state: State) -> Cracks:
        """From `state()`."""
        every = [Crack.restored(grid, unprefixed(f"{i}_", state)) for i in range(int(state["count"]))]
        cracks = Cracks(grid, every)
        cracks.revision = int(state["revision"])
        return cracks


def _place(name: str, value: ArrayLike) -> Floats:
    place = np.asarray(value, np.float64)
    if place.shape != (3,) or not np.isfinite(place).all():
        raise PhyxelError(f"crack: {name} = {value!r}: give three finite numbers")
    return place


def _direction(name: str, value: ArrayLike) -> Floats:
    direction = _place(name, value)
    if not np.linalg.norm(direction) > 0:
        raise PhyxelError(f"crack: {name} = {value!r}: give a direction, not zero")
    return unit(direction)


# The surface as triangles


def _sheet(grid: LevelGrid, psi1: Floats, psi2: Floats, cut: NDArray[np.int8]) -> Floats:
    """Triangles (k, 3, 3) of ψ1 = 0 in the cells that are `cut`, by marching tetrahedra, clipped to ψ2 < 0
    (physics 8.10); their normals look to where ψ1 > 0."""
    cells = np.argwhere(cut)
    corners = cells[:, None] + CORNERS
    i, j, k = np.moveaxis(corners, -1, 0)
    places = (grid.origin + grid.spacing * corners)[:, TETRAHEDRA].reshape(-1, 4, 3)
    # Places carry ψ2 as a fourth coordinate: it is linear in a tetrahedron, as they are.
    behind = psi2[i, j, k][:, TETRAHEDRA].reshape(-1, 4, 1)
    triangles = _zero_of(np.concatenate([places, behind], axis=2), psi1[i, j, k][:, TETRAHEDRA].reshape(-1, 4))
    return _clipped(triangles)[..., :3]


def _zero_of(places: Floats, values: Floats) -> Floats:
    """Triangles (k, 3, d) in tetrahedra (m, 4, d) where values (m, 4) are zero; their normals look to larger values."""
    above = values >= 0
    count = above.sum(axis=1)
    order = np.argsort(~above, axis=1, kind="stable")  # those above first: then three cases are left
    places = np.take_along_axis(places, order[..., None], axis=1)
    values = np.take_along_axis(values, order, axis=1)
    upward = places[:, 0, :3] - places[:, 3, :3]

    def crossing(rows: NDArray[np.bool_], one: int, other: int) -> Floats:
        p, q = values[rows, one][:, None], values[rows, other][:, None]
        return (p * places[rows, other] - q * places[rows, one]) / (p - q)

    tip, pair, three = count == 1, count == 2, count == 3
    first = np.stack([crossing(tip, 0, 1), crossing(tip, 0, 2), crossing(tip, 0, 3)], axis=1)
    quad = [crossing(pair, 0, 2), crossing(pair, 1, 2), crossing(pair, 1, 3), crossing(pair, 0, 3)]
    halves = [np.stack([quad[0], quad[m], quad[m + 1]], axis=1) for m in (1, 2)]
    last = np.stack([crossing(three, 0, 3), crossing(three, 1, 3), crossing(three, 2, 3)], axis=1)
    triangles = np.concatenate([first, *halves, last])
    upward = np.concatenate([upward[tip], upward[pair], upward[pair], upward[three]])
    edges = triangles[:, 1:, :3] - triangles[:, :1, :3]
    downward = np.sum(np.cross(edges[:, 0], edges[:, 1]) * upward, axis=1) < 0
    triangles[downward] = triangles[downward][:, ::-1]
    return triangles


def _clipped(triangles: Floats) -> Floats:
    """The parts of triangles (k, 3, 4) whose last coordinate is below 0, turned as they are."""
    inside = triangles[..., 3] < 0
    count = inside.sum(axis=1)
    # Turn each one until its odd corner is the first.
    odd = np.where(count == 1, np.argmax(inside, axis=1), np.argmin(inside, axis=1))
    turned = np.take_along_axis(triangles, ((odd[:, None] + np.arange(3)) % 3)[..., None], axis=1)

    def crossing(rows: NDArray[np.bool_], one: int, other: int) -> Floats:
        p, q = turned[rows, one], turned[rows, other]
        return (p[:, 3:] * q - q[:, 3:] * p) / (p[:, 3:] - q[:, 3:])

    one, two = count == 1, count == 2
    small = np.stack([turned[one, 0], crossing(one, 0, 1), crossing(one, 0, 2)], axis=1)
    start, end = crossing(two, 0, 1), crossing(two, 0, 2)
    first = np.stack([start, turned[two, 1], turned[two, 2]], axis=1)
    second = np.stack([start, turned[two, 2], end], axis=1)
    return np.concatenate([triangles[count == 3], small, first, second])
