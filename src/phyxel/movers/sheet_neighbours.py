"""Who of particle surfaces may come to touch something soon (physics 15.16)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from phyxel.body import Body
from phyxel.meeting.layers import SHALLOW
from phyxel.meeting.near import Near
from phyxel.meeting.skin import Skin, Skins
from phyxel.rotation import cross

Floats = NDArray[np.float64]

ONE_WAY = 0.2
"""Cosine between the normals of a surface and their mean above which it faces one way."""
APART = 0.3
"""Spacings between parts of a surface that make them far from each other."""
MARGIN = 1.5
"""Spacings that a surface may lie outside the box around nodes."""


@dataclass(frozen=True)
class Company:
    """Who meets."""

    sheets: list[Body]
    solids: list[Body]

    @property
    def layers(self) -> list[tuple[Body, Body]]:
        """Surfaces that may come nearer to each other."""
        return [(one, other) for k, one in enumerate(self.sheets) for other in self.sheets[k + 1 :]]

    def sunk_within(self) -> float:
        """Time in which nothing gets deeper into a solid than may be told from its far side [s]."""
        return min((_sunk_within(one, other) for one in self.sheets for other in self.solids), default=math.inf)


def swept(body: Body, span: float, gravity: Floats) -> tuple[Floats, Floats]:
    """Corners of the box in which a body stays within a span of time [s]: links may turn what it falls with any way.
    A surface ends at its particles, a solid outside its nodes."""
    x, v = body.positions, body.velocities
    skin = MARGIN * body.unit if body.sheet is None else float(body.mixture.number("thickness").max())
    around = skin + span * float(np.linalg.norm(v, axis=1).max()) + 0.5 * span**2 * float(np.linalg.norm(gravity))
    return x.min(axis=0) - around, x.max(axis=0) + around


class Boxes:
    """Boxes in which bodies stay within a span of time [s]; who is never asked for costs nothing."""

    def __init__(self, span: float, gravity: Floats) -> None:
        self._span, self._gravity = span, gravity
        self._of: dict[Body, tuple[Floats, Floats]] = {}

    def around(self, body: Body) -> tuple[Floats, Floats]:
        """Corners of a body's box."""
        if body not in self._of:
            self._of[body] = swept(body, self._span, self._gravity)
        return self._of[body]

    def overlap(self, one: Body, other: Body) -> bool:
        (a, b), (c, d) = self.around(one), self.around(other)
        return bool((a < d).all() and (c < b).all())


def come_close(one: Body, other: Body, span: float, gravity: Floats) -> bool:
    """Whether two bodies may come to touch within a span of time [s], by the distances between their nodes."""
    x, y, v, w = one.positions, other.positions, one.velocities, other.velocities
    closing = float(np.linalg.norm(np.maximum(v.max(axis=0) - w.min(axis=0), w.max(axis=0) - v.min(axis=0))))
    reach = MARGIN * (one.unit + other.unit) + span * (closing + span * float(np.linalg.norm(gravity)))
    lower, upper = y.min(axis=0) - reach, y.max(axis=0) + reach
    x = x[((x > lower) & (x < upper)).all(axis=1)]
    return bool(len(x)) and bool(np.isfinite(cKDTree(y).query(x, distance_upper_bound=reach)[0]).any())


def _sunk_within(sheet: Body, solid: Body) -> float:
    """See `Company.sunk_within`. Only what is near a solid counts: a hem may swing past it as fast as it likes."""
    nodes, low, high = solid.positions, solid.velocities.min(axis=0), solid.velocities.max(axis=0)
    closing = np.linalg.norm(np.maximum(sheet.velocities - low, high - sheet.velocities), axis=1)
    far, _ = cKDTree(nodes).query(sheet.positions)
    way = np.maximum(far - MARGIN * solid.unit, 0.0) + SHALLOW * solid.unit
    return float((way / np.maximum(closing, 1e-30)).min())


class SelfWatch:
    """Watches whether surfaces may come to touch themselves."""

    def __init__(self) -> None:
        self.looked: dict[Body, Floats] = {}
        """where surfaces were when they were last seen to be far from themselves"""

    def may_meet(self, body: Body, skin: Skin, span: float) -> bool:
        """Whether parts of a surface that are no neighbours may come to touch. A surface all of which faces one way
        more or less does not; what was far from itself has to go some way first."""
        x, v = body.positions, body.velocities
        assert body.world is not None and body.sheet is not None
        # Particles each by themselves do not; and what is filled has shorter steps than a meeting.
        if not len(body.sheet.elements) or body.sheet.closed:
            return False
        a, b, c = (x[skin.triangles[:, k]] for k in range(3))
        normal = cross(b - a, c - a)
        facing = normal @ normal.sum(axis=0)
        if (facing > ONE_WAY * np.linalg.norm(normal.sum(axis=0)) * np.sqrt(np.square(normal).sum(axis=1))).all():
            return False
        slack, even = APART * body.unit, v.mean(axis=0)
        seen = self.looked.get(body)
        going = span * float(np.linalg.norm(v - even, axis=1).max())
        if seen is not None:
            moved = x - seen
            if 2 * (np.linalg.norm(moved - moved.mean(axis=0), axis=1).max() + going) < slack:
                return False
        near = Near(Skins.of([skin], np.zeros(0)), body.world.device)
        here, there = (wp.array(one, dtype=wp.vec3d, device=body.world.device) for one in (x, x + span * (v - even)))
        found = len(near.pairs(here, there, 0.5 * slack))
        self.looked[body] = x
        if found:
            del self.looked[body]
        return found > 0
