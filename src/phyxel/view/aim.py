"""What a pointer aims at: the surfels that its ray from the eye meets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from phyxel.body import Body
from phyxel.region import Vector
from phyxel.rotation import Floats
from phyxel.surface.discs import Discs
from phyxel.world import World

NEAR_MISS = 0.01
"""Angle by which a ray may miss all surfels [rad]: a dozen pixels of a usual window."""


@dataclass(frozen=True)
class Ray:
    """From the eye in a direction of length 1."""

    eye: Floats
    way: Floats

    @staticmethod
    def of(eye: Vector, way: Vector) -> Ray:
        direction = np.asarray(way, np.float64)
        return Ray(np.asarray(eye, np.float64), direction / np.linalg.norm(direction))

    def distances(self, positions: Floats) -> tuple[Floats, Floats]:
        """How far along the ray (n, 3) positions are, and how far beside it [m], each (n,)."""
        away = positions - self.eye
        along = away @ self.way
        return along, np.linalg.norm(away - along[:, None] * self.way, axis=1)

    def on_plane(self, place: Floats, across: Floats) -> Floats | None:
        """Where it meets the plane through `place` across a direction of length 1 [m]; nowhere if it hardly does."""
        slope = float(self.way @ across)
        reach = float((place - self.eye) @ across)
        return None if slope < 0.05 or reach <= 0 else self.eye + reach / slope * self.way


@dataclass(frozen=True)
class Hit:
    """A surfel that a ray has met."""

    body: Body
    surfel: int
    """its number among those that the body carries"""
    place: Floats
    """where it is now [m], shape (3,)"""
    distance: float
    """from the eye [m]"""

    @property
    def reference(self) -> Floats:
        """Where it was at birth [m], shape (3,)."""
        born = self.body.born
        return np.asarray(born.centre + born.unit * self.body.surface.carried.shape.points[self.surfel], np.float64)

    @property
    def spot(self) -> dict[str, Any]:
        """How a scene names the surfel: by its number in the cloud; on a body that has melted by its place now, on the
        face of a crack by its place at birth."""
        if self.body.has_melted:
            return {"near": tuple(self.place.tolist())}
        if self.surfel < len(self.body.cloud):
            return {"surfel": self.surfel}
        return {"near": tuple(self.reference.tolist())}


def aimed_at(world: World, ray: Ray) -> Hit | None:
    """The first surfel whose disc a ray meets; if there is none, the one it misses by the least angle, if by little."""
    every = [(body, body.surface.carried) for body in world.bodies]
    met = [Hit(body, *found) for body, discs in every if (found := _met(discs, ray)) is not None]
    if met:
        return min(met, key=lambda hit: hit.distance)
    missed = [(angle, Hit(body, *hit)) for body, discs in every for angle, hit in _missed(discs, ray)]
    return min(missed, key=lambda entry: entry[0])[1] if missed else None


def through(body: Body, ray: Ray) -> list[Hit]:
    """The first and the last surfel of a body whose discs a ray meets: where it comes in and out."""
    discs = body.surface.carried
    ends = [_met(discs, ray, last) for last in (False, True)]
    return [Hit(body, *end) for end in ends if end is not None]


def _met(discs: Discs, ray: Ray, last: bool = False) -> tuple[int, Floats, float] | None:
    """The first (or last) disc that a ray meets: its number, its place and how far along the ray it is met [m]."""
    positions = discs.positions
    along, beside = ray.distances(positions)
    a, b = discs.axis_a.numpy(), discs.axis_b.numpy()
    longest = np.sqrt(np.maximum((a * a).sum(axis=1), (b * b).sum(axis=1)))
    near = np.flatnonzero((along > 0) & (beside <= longest))
    if not len(near):
        return None
    a, b, away = a[near].astype(np.float64), b[near].astype(np.float64), positions[near] - ray.eye
    normal = np.cross(a, b)
    slope = normal @ ray.way
    reach = (away * normal).sum(axis=1) / np.where(slope == 0, np.inf, slope)
    off = reach[:, None] * ray.way - away
    # off = α a + β b: its parts along the half axes, which need not be at right angles
    area = np.maximum((normal * normal).sum(axis=1), np.finfo(float).tiny)
    alpha = (np.cross(off, b) * normal).sum(axis=1) / area
    beta = (np.cross(a, off) * normal).sum(axis=1) / area
    inside = np.flatnonzero((alpha**2 + beta**2 <= 1) & (slope != 0) & (reach > 0))
    if not len(inside):
        return None
    # Discs overlap: of those of the same place of the surface, the one whose middle is nearest is meant.
    end = reach[inside].max() if last else reach[inside].min()
    inside = inside[np.abs(reach[inside] - end) <= longest[near[inside]]]
    best = inside[(alpha**2 + beta**2)[inside].argmin()]
    return int(near[best]), positions[near[best]], float(reach[best])


def _missed(discs: Discs, ray: Ray) -> list[tuple[float, tuple[int, Floats, float]]]:
    """The disc that a ray misses by the least angle, with that angle [rad], if by little."""
    along, beside = ray.distances(discs.positions)
    angle = np.where(along > 0, np.arctan2(beside, along), np.inf)
    best = int(angle.argmin()) if len(angle) else 0
    if not len(angle) or angle[best] > NEAR_MISS:
        return []
    return [(float(angle[best]), (best, discs.positions[best], float(along[best])))]
