"""Discs cut along a line: what is shown never bridges an open crack, nor sticks out of the solid (physics 8.10).

A disc p + s a + t b, s² + t² ≤ 1, is cut where a field f is zero. On so small a thing f is nearly linear: in the
disc's own coordinates (s, t) a straight line cuts a circle, whatever the half axes are. The part where f > 0 is the
circle's segment n·(s, t) ≥ c, which three ellipses cover: one as high as the segment, and two along the line, at its
ends. Where f is not linear, at an edge of the solid, the disc is first taken in seven smaller ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from phyxel.cracks.crack import Crack

Floats = NDArray[np.float64]
Field = Callable[[Floats], Floats]
"""A number at each of (n, 3) places, (n,)."""

LOOKS = 16
"""Places on a disc's rim at which a field is looked at."""
BENT = 0.15
"""Deviation of a field from a linear one, over what it changes within the disc, above which the disc is divided."""
DIVIDED = 2
"""How often a disc is divided."""
SLIVER = 0.98
"""Distance of the line from the centre, over the radius, beyond which what is left is none."""
TOUCH = 1e-9
"""How far a disc may reach across, over its own size: rounding."""
SHRUNK = 4
"""How often a disc that still reaches across is made smaller."""
_ANGLES = 2 * np.pi * np.arange(LOOKS) / LOOKS
RIM = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], axis=1)
_HEXAGON = np.pi / 3 * np.arange(6)
SEVEN = 0.62 * np.array([(0.0, 0.0), *zip(np.cos(_HEXAGON), np.sin(_HEXAGON), strict=True)])
"""Centres of seven discs that cover most of one, and hardly more, when they are 0.45 times as large."""
SEVENTH = 0.45
CHORD = np.linspace(-1, 1, 7)
"""Where along a chord is looked whether a crack is open there."""


class Ellipses(NamedTuple):
    """Discs that are cut, in units of the node spacing, each array (m, 3)."""

    points: Floats
    axis_a: Floats
    axis_b: Floats
    owner: NDArray[np.int64]
    """what each was made of, shape (m,)"""

    def some(self, chosen: NDArray[np.generic] | slice) -> Ellipses:
        """Those that are chosen."""
        return Ellipses(self.points[chosen], self.axis_a[chosen], self.axis_b[chosen], self.owner[chosen])

    def joined(self, *others: Ellipses) -> Ellipses:
        """These and then others."""
        points, axis_a, axis_b, owner = (np.concatenate(fields) for fields in zip(self, *others, strict=True))
        return Ellipses(points, axis_a, axis_b, owner)

    def at(self, s: Floats, t: Floats) -> Floats:
        """Places p + s a + t b, for s and t of shape (m, k) or (k,), shape (m, k, 3)."""
        s, t = (np.broadcast_to(x, (len(self.points), x.shape[-1]))[..., None] for x in (s, t))
        return self.points[:, None] + s * self.axis_a[:, None] + t * self.axis_b[:, None]

    def scaled(self, factor: Floats) -> Ellipses:
        """The same, each (m,) times as large."""
        return self._replace(axis_a=factor[:, None] * self.axis_a, axis_b=factor[:, None] * self.axis_b)

    @property
    def longest(self) -> Floats:
        """The longer principal half axis, shape (m,): the root of the larger eigenvalue of the axes' metric."""
        aa, bb, ab = (np.einsum("ma,ma->m", x, y) for x, y in self._axes())
        return np.sqrt(0.5 * (aa + bb) + np.sqrt((0.5 * (aa - bb)) ** 2 + ab**2))

    def _axes(self) -> tuple[tuple[Floats, Floats], ...]:
        a, b = self.axis_a, self.axis_b
        return (a, a), (b, b), (a, b)


def seen_at(discs: Ellipses, field: Field) -> tuple[Floats, Floats]:
    """A field at the centres (m,) and around the rims (m, LOOKS) of discs."""
    m = len(discs.points)
    rims = discs.at(*RIM.T)
    values = field(np.concatenate([discs.points, rims.reshape(-1, 3)]))
    return values[:m], values[m:].reshape(m, LOOKS)


def within(discs: Ellipses, field: Field, divided: int = 0) -> Ellipses:
    """What of discs lies where a field is positive. Discs that lie there wholly stay as they are."""
    if not len(discs.points):
        return discs
    centre, rim = seen_at(discs, field)
    least, most = lowest_and_highest(rim)
    scale = TOUCH * discs.longest
    there = np.maximum(most, centre) > scale
    whole = there & (np.minimum(least, centre) > -scale)
    mixed = np.flatnonzero(there & ~whole)
    mean, slope, steepness = linear(rim[mixed])
    off = np.abs(rim[mixed] - mean[:, None] - slope @ RIM.T).max(axis=1) > BENT * steepness
    cut = ~off if divided < DIVIDED else steepness > 0
    n, c = slope[cut] / steepness[cut, None], -mean[cut] / steepness[cut]
    found = discs.some(whole).joined(shrunk(segments(discs.some(mixed[cut]), c, n), field))
    if divided == DIVIDED or cut.all():
        return found
    return found.joined(within(sevenths(discs.some(mixed[~cut])), field, divided + 1))


def linear(rim: Floats) -> tuple[Floats, Floats, Floats]:
    """The linear function of (s, t) nearest to what a field is around rims (m, LOOKS): its value at the centre (m,),
    its slope (m, 2), and how steep that is (m,)."""
    slope = 2 / LOOKS * rim @ RIM
    return rim.mean(axis=1), slope, np.linalg.norm(slope, axis=1)


def lowest_and_highest(rim: Floats) -> tuple[Floats, Floats]:
    """Of what a field is around rims (m, LOOKS), also between the places looked at if it is linear, each (m,)."""
    mean, _, steepness = linear(rim)
    return np.minimum(rim.min(axis=1), mean - steepness), np.maximum(rim.max(axis=1), mean + steepness)


def segments(discs: Ellipses, c: Floats, n: Floats) -> Ellipses:
    """Ellipses that cover the parts n·(s, t) ≥ c of discs, c (m,) and n (m, 2) of unit length, to 95 % or more, reach
    beyond the line nowhere and beyond the rim by 7 % at most."""
    kept = c < SLIVER
    discs, c, n = discs.some(kept), np.maximum(c[kept], -1.0), n[kept]
    height, width = 1 - c, np.sqrt(1 - np.maximum(c, 0) ** 2)
    main = (0.5 * (1 + c), 0 * c, 0.5 * height, (0.86 - 0.22 * c) * width)
    low = (0.26 - 0.14 * c) * height
    ends = [(c + low, side * 0.4 * width, low, 0.6 * width) for side in (-1, 1)]
    return Ellipses.joined(*(_placed(discs, n, *numbers) for numbers in (main, *ends)))


def _placed(discs: Ellipses, n: Floats, along: Floats, across: Floats, high: Floats, wide: Floats) -> Ellipses:
    """Ellipses around places (along, across) in frames whose first axis is n, with half axes `high` and `wide`."""
    t = np.stack([-n[:, 1], n[:, 0]], axis=1)

    def vectors(s: Floats) -> Floats:
        return s[:, :1] * discs.axis_a + s[:, 1:] * discs.axis_b

    place = along[:, None] * n + across[:, None] * t
    return Ellipses(discs.points + vectors(place), vectors(high[:, None] * n), vectors(wide[:, None] * t), discs.owner)


def sevenths(discs: Ellipses) -> Ellipses:
    """Seven smaller discs for each."""
    points = discs.at(*SEVEN.T).reshape(-1, 3)
    a, b = (SEVENTH * np.repeat(axis, len(SEVEN), axis=0) for axis in discs[1:3])
    return Ellipses(points, a, b, np.repeat(discs.owner, len(SEVEN)))


def shrunk(discs: Ellipses, field: Field) -> Ellipses:
    """Discs made so small that they reach nowhere where a field is negative; without those whose centres do."""
    done = discs.some(slice(0))
    for _ in range(SHRUNK):
        if not len(discs.points):
            break
        centre, rim = seen_at(discs, field)
        least = rim.min(axis=1)
        done = done.joined(discs.some((least >= 0) & (centre > 0)))
        large = (least < 0) & (centre > TOUCH * discs.longest)
        discs = discs.some(large).scaled(centre[large] / (centre[large] - least[large]))
    return done.joined(discs)


def split(discs: Ellipses, field: Field) -> Ellipses:
    """What of discs lies on either side of a field's zero."""
    return within(discs, field).joined(within(discs, lambda x: -field(x)))


def reaching_across(discs: Ellipses, crack: Crack) -> NDArray[np.int64]:
    """Which discs reach across a crack, ψ1 = 0 where ψ2 < 0, shape (k,)."""
    reach = discs.longest
    near = np.flatnonzero(np.abs(crack.values(discs.points)[0]) < reach)
    if not len(near):
        return near
    some = discs.some(near)
    rim = seen_at(some, lambda x: crack.values(x)[0])[1]
    scale = TOUCH * reach[near]
    least, most = lowest_and_highest(rim)
    both = (least < -scale) & (most > scale)
    some, near = some.some(both), near[both]
    # Along the chord in which the disc meets ψ1 = 0: n·(s, t) = c.
    mean, slope, steepness = linear(rim[both])
    n, c = slope / steepness[:, None], np.clip(-mean / steepness, -1, 1)
    along = np.sqrt(1 - c**2)[:, None] * CHORD
    s, t = c[:, None] * n[:, :1] - along * n[:, 1:], c[:, None] * n[:, 1:] + along * n[:, :1]
    places = some.at(s, t)
    behind = crack.values(places.reshape(-1, 3))[1].reshape(len(near), len(CHORD)) < 0
    return near[behind.any(axis=1)]
