# mypy: disable-error-code="valid-type,no-untyped-def"
"""Carried surfels as they are shown (physics 8.2): in pieces where they are stretched, two as one where squeezed.

What is shown is worked out anew from the carried surfels every time. So it depends on the present shape alone: what is
stretched and let go again is as it was, however often, and a checkpoint need not know of it.

A half axis λ times as long as the disc's radius at birth is cut into n = ⌈λ − 1⌉ pieces with half axes of 2/(n + 1) of
it, 2/(n + 1) apart: none is longer than twice the radius at birth, the outermost reach as far as the whole did, and at
the seams they are √3/2 as wide.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.cache import Once, anew
from phyxel.mls.neighbours import nearest
from phyxel.surface.discs import Discs, Floats, Rest
from phyxel.surface.walls import kept_out

wp.set_module_options(dev.KERNEL_OPTIONS)

LONGEST = wp.constant(2.0)
"""Half axis over the radius at birth above which a surfel is shown in pieces."""
SLIMMEST = wp.constant(0.125)
"""The least that is shown of a half axis, over the radius at birth: a needle thinner than a pixel would be drawn
longer, so as not to be lost."""
MOST_ALONG = wp.constant(8)
MOST = wp.constant(24)
"""Pieces along one axis, and in all. What flow has stretched farther is cut off: such a disc tells nothing about the
surface any more."""
CLOSE = wp.constant(0.5)
"""Distance of a pair over that at birth below which it is shown as one."""
SQUEEZED = wp.constant(0.7)
"""Reach of both their discs towards each other over their radii at birth, at most."""
ROUND = wp.constant(0.71)
"""Shorter half axis over the radius at birth above which a disc is not squeezed in any direction: more than SQUEEZED,
for rounding."""
ALIKE = wp.constant(0.8)
"""Cosine between the normals of a pair that is shown as one, at least."""
LOOKING = 0.05
"""What it takes to look at a surfel's axes, in phyxels of a force pass."""
WORTH_SPLITTING = 30_000
"""Surfels whose plans take longer than it takes to wake a second thread."""

Plan = wp.types.vector(4, wp.uint8)
"""Of one surfel: pieces along its longer and its shorter half axis, whether it is shown with its partner as one, and
whether along its principal axes."""


@wp.struct
class Birth:
    """What surfels were like when the body was born."""

    radius: wp.array(dtype=float)
    """of the disc [m]"""
    partner: wp.array(dtype=wp.int32)
    """the other one of the pair, or itself"""
    apart: wp.array(dtype=float)
    """distance to it [m]"""


@wp.struct
class CarriedDiscs:
    """The carried surfels of which pieces are made: see `Discs`."""

    position: wp.array(dtype=wp.vec3)
    axis_a: wp.array(dtype=wp.vec3)
    axis_b: wp.array(dtype=wp.vec3)
    normal: wp.array(dtype=wp.vec3)
    color: wp.array(dtype=wp.vec3)


@wp.struct
class JudgedDisc:
    """One surfel, and the radius it is judged by [m]."""

    x: wp.vec3
    a: wp.vec3
    b: wp.vec3
    normal: wp.vec3
    color: wp.vec3
    radius: float


@wp.func
def is_squeezed(s: int, way: wp.vec3, birth: Birth, seen: CarriedDiscs):
    """Whether a disc reaches much less far in a direction, as seen in its plane, than it did at birth."""
    within = way - wp.dot(way, seen.normal[s]) * seen.normal[s]
    a = wp.dot(seen.axis_a[s], way)
    b = wp.dot(seen.axis_b[s], way)
    reach = SQUEEZED * birth.radius[s] * wp.length(within)
    return a * a + b * b < reach * reach


@wp.func
def is_merged(s: int, other: int, birth: Birth, seen: CarriedDiscs):
    """Whether a surfel and its partner are shown as one: close together, because the body is squeezed there and not
    because a collider keeps them out, and facing the same way. The same for both."""
    way = seen.position[other] - seen.position[s]
    if not wp.length(way) < CLOSE * birth.apart[s]:
        return False
    if wp.dot(seen.normal[s], seen.normal[other]) < ALIKE:
        return False
    return is_squeezed(s, way, birth, seen) and is_squeezed(other, way, birth, seen)


@wp.func
def is_extreme(a: wp.vec3, b: wp.vec3, radius: float):
    """Whether an ellipse is too long or too slim to be shown as it is: its principal half axes are the roots of the
    eigenvalues of the metric ((a·a, a·b), (a·b, b·b))."""
    mean = 0.5 * (wp.length_sq(a) + wp.length_sq(b))
    half = 0.5 * (wp.length_sq(a) - wp.length_sq(b))
    mixed = wp.dot(a, b)
    root = wp.sqrt(half * half + mixed * mixed)
    longest = 1.0005 * LONGEST * radius
    slimmest = SLIMMEST * radius
    return mean + root > longest * longest or mean - root < slimmest * slimmest


@wp.func
def principal(disc: JudgedDisc):
    """The same ellipse with perpendicular half axes, the longer one first, and neither too slim."""
    half = 0.5 * (wp.length_sq(disc.a) - wp.length_sq(disc.b))
    mixed = wp.dot(disc.a, disc.b)
    root = wp.sqrt(half * half + mixed * mixed)
    longer = wp.vec2(half + root, mixed)  # eigenvector; of its two forms the one without cancellation
    if half < 0.0:
        longer = wp.vec2(mixed, root - half)
    if root == 0.0:
        longer = wp.vec2(1.0, 0.0)
    longer = wp.normalize(longer)
    area = wp.length(wp.cross(disc.a, disc.b))
    a = longer[0] * disc.a + longer[1] * disc.b
    length = wp.max(wp.length(a), 1.0e-30)
    # Taken from a and b, the shorter axis of a needle would be lost in rounding.
    disc.a = wp.max(length, SLIMMEST * disc.radius) * (a / length)
    disc.b = wp.max(area / length, SLIMMEST * disc.radius) * wp.cross(disc.normal, a / length)
    return disc


@wp.func
def merged(s: int, other: int, birth: Birth, seen: CarriedDiscs):
    """One disc for two. An ellipse with the half axes a, b reaches √(n·M n) in the direction n, M = a aᵀ + b bᵀ. Both,
    a way of 2d apart, lie within (1 + 1/ε) d dᵀ + (1 + ε) M for every ε > 0, which is least for ε² = d²/tr M."""
    d = 0.5 * (seen.position[other] - seen.position[s])
    M = 0.5 * (
        wp.outer(seen.axis_a[s], seen.axis_a[s])
        + wp.outer(seen.axis_b[s], seen.axis_b[s])
        + wp.outer(seen.axis_a[other], seen.axis_a[other])
        + wp.outer(seen.axis_b[other], seen.axis_b[other])
    )
    ratio = wp.sqrt(wp.max(wp.length_sq(d), 1.0e-12 * wp.trace(M)) / wp.trace(M))
    M = (1.0 + 1.0 / ratio) * wp.outer(d, d) + (1.0 + ratio) * M
    disc = JudgedDisc()
    disc.x = seen.position[s] + d
    disc.normal = wp.normalize(seen.normal[s] + seen.normal[other])
    # Half axes whose M that is, within the plane: its Cholesky factor.
    e = wp.normalize(seen.axis_a[s] - wp.dot(seen.axis_a[s], disc.normal) * disc.normal)
    f = wp.cross(disc.normal, e)
    ee = wp.sqrt(wp.dot(e, M * e))
    fe = wp.dot(f, M * e) / ee
    disc.a = ee * e + fe * f
    disc.b = wp.sqrt(wp.max(wp.dot(f, M * f) - fe * fe, 0.0)) * f
    here = wp.length(wp.cross(seen.axis_a[s], seen.axis_b[s]))
    there = wp.length(wp.cross(seen.axis_a[other], seen.axis_b[other]))
    share = here / (here + there)
    disc.color = share * seen.color[s] + (1.0 - share) * seen.color[other]
    disc.radius = wp.max(birth.radius[s], birth.radius[other])
    return disc


@wp.func
def alone(s: int, birth: Birth, seen: CarriedDiscs):
    """A surfel as it is carried."""
    disc = JudgedDisc()
    disc.x = seen.position[s]
    disc.a = seen.axis_a[s]
    disc.b = seen.axis_b[s]
    disc.normal = seen.normal[s]
    disc.color = seen.color[s]
    disc.radius = birth.radius[s]
    return disc


@wp.func
def cuts(length: float, radius: float, most: int):
    """Pieces along a half axis. An even stretch by a whole number must not be judged by its rounding."""
    return wp.clamp(int(wp.ceil(wp.min(length / radius, 1.0e6) - 1.001)), 1, most)


@wp.func
def cuts_of(disc: JudgedDisc):
    """Pieces along both half axes. Up to twice the radius at birth there is one."""
    along = cuts(wp.length(disc.a), disc.radius, MOST_ALONG)
    return wp.vec2i(along, cuts(wp.length(disc.b), disc.radius, wp.min(MOST_ALONG, MOST // along)))


@wp.func
def limited(axis: wp.vec3, radius: float, count: int):
    """A half axis no longer than `count` pieces reach."""
    return wp.min(float(count + 1) * radius / wp.length(axis), 1.0) * axis


@wp.kernel
def look_for_deformed(
    first: int,
    birth: Birth,
    axis_a: wp.array(dtype=wp.vec3),
    axis_b: wp.array(dtype=wp.vec3),
    found: wp.array(dtype=wp.int32),
):
    """Whether any surfel might not be shown as it is carried: it is long, or slim enough to be squeezed, since a disc
    reaches at least as far as its shorter half axis. Most often none is, and the axes alone say so: both eigenvalues of
    their metric are below a bound if and only if the bound minus the metric is positive definite, and likewise above.
    """
    s = first + wp.tid()
    aa = wp.length_sq(axis_a[s])
    bb = wp.length_sq(axis_b[s])
    ab = wp.dot(axis_a[s], axis_b[s])
    area = birth.radius[s] * birth.radius[s]
    most = LONGEST * LONGEST * area
    least = ROUND * ROUND * area
    short = most > aa and (most - aa) * (most - bb) > ab * ab
    wide = aa > least and (aa - least) * (bb - least) > ab * ab
    if not (short and wide):
        found[0] = 1  # all that write here write the same


@wp.kernel
def plan_pieces(
    first: int,
    birth: Birth,
    seen: CarriedDiscs,
    plan: wp.array(dtype=Plan),
    counts: wp.array(dtype=wp.int32),
    differs: wp.array(dtype=wp.int32),
):
    """What becomes of each surfel, and in how many pieces it is shown; whether any is not shown as it is carried."""
    s = first + wp.tid()
    counts[s] = 1
    plan[s] = Plan(wp.uint8(1), wp.uint8(1), wp.uint8(0), wp.uint8(0))
    other = birth.partner[s]
    together = is_merged(s, other, birth, seen)
    if not together and not is_extreme(seen.axis_a[s], seen.axis_b[s], birth.radius[s]):
        return
    differs[0] = 1  # all that write here write the same
    if together and other < s:
        counts[s] = 0
        return
    disc = JudgedDisc()
    if together:
        disc = merged(s, other, birth, seen)
    else:
        disc = alone(s, birth, seen)
    extreme = is_extreme(disc.a, disc.b, disc.radius)
    if extreme:
        disc = principal(disc)
    n = cuts_of(disc)
    counts[s] = n[0] * n[1]
    plan[s] = Plan(wp.uint8(n[0]), wp.uint8(n[1]), wp.uint8(together), wp.uint8(extreme))


@wp.kernel
def show_pieces(
    first: int,
    birth: Birth,
    seen: CarriedDiscs,
    plan: wp.array(dtype=Plan),
    counts: wp.array(dtype=wp.int32),
    ends: wp.array(dtype=wp.int32),
    colliders: Any,
    body: int,
    unit: float,
    position: wp.array(dtype=wp.vec3),
    axis_a: wp.array(dtype=wp.vec3),
    axis_b: wp.array(dtype=wp.vec3),
    normal: wp.array(dtype=wp.vec3),
    color: wp.array(dtype=wp.vec3),
):
    """What is shown for each surfel: its pieces, in rows along its half axes, from ends[s] − counts[s] on. One that is
    neither split nor merged nor too slim comes out bit by bit as it went in."""
    s = first + wp.tid()
    if counts[s] == 0:
        return
    # As planned, not judged again: the same sum may be rounded otherwise in another kernel.
    rows = int(plan[s][0])
    columns = int(plan[s][1])
    disc = JudgedDisc()
    if plan[s][2] != wp.uint8(0):
        disc = merged(s, birth.partner[s], birth, seen)
    else:
        disc = alone(s, birth, seen)
    if plan[s][3] != wp.uint8(0):
        disc = principal(disc)
    a = limited(disc.a, disc.radius, rows)
    b = limited(disc.b, disc.radius, columns)
    entry = ends[s] - counts[s]
    for i in range(rows):
        for j in range(columns):
            along = float(2 * i + 1 - rows) / float(rows + 1)
            across = float(2 * j + 1 - columns) / float(columns + 1)
            x = disc.x + along * a + across * b
            if rows * columns > 1:
                x = unit * kept_out(x / unit, colliders, body)
            position[entry] = x
            axis_a[entry] = 2.0 / float(rows + 1) * a
            axis_b[entry] = 2.0 / float(columns + 1) * b
            normal[entry] = disc.normal
            color[entry] = disc.color
            entry += 1


def pairs(positions: Floats, normals: Floats) -> tuple[NDArray[np.int32], Floats]:
    """Each point's partner, or itself if it is left over, and the distance to it: the nearest that face the same way
    find each other first. Both (m,)."""
    m = len(positions)
    if m < 2:
        return np.arange(m, dtype=np.int32), np.zeros(m)
    distance, near = nearest(positions, positions, min(7, m))
    distance, near = distance[:, 1:], near[:, 1:]
    chance = np.random.default_rng(0).random(m)
    rank = distance * (1 + 1e-3 * ((chance[:, None] + chance[near]) % 1))  # a lattice must know where to begin
    rank[np.einsum("ma,mka->mk", normals, normals[near]) < ALIKE] = np.inf
    partner = np.arange(m)
    everyone = np.arange(m)
    for _ in range(12):
        rank[(partner != everyone)[near]] = np.inf
        best = rank.argmin(axis=1)
        chosen = np.where(np.isfinite(rank[everyone, best]) & (partner == everyone), near[everyone, best], everyone)
        mutual = (chosen[chosen] == everyone) & (chosen != everyone)
        if not mutual.any():
            break
        partner[mutual] = chosen[mutual]
    return partner.astype(np.int32), np.linalg.norm(positions[partner] - positions, axis=1)


class Pieces:
    """Splits and merges the surfels it was made for. Their sizes at birth and the distance to their partners are in
    metres: what is absorbed and counted in other units is still judged by its birth."""

    def __init__(self, radius: Floats, partner: NDArray[np.int32], apart: Floats, device: wp.Device) -> None:
        """Of surfels with discs of a `radius` [m] that have partners, `apart` [m] from them; each (m,)."""
        self._device = device
        self._birth = Birth()
        self._birth.radius = wp.array(radius, dtype=float, device=device)
        self._birth.partner = wp.array(partner, dtype=wp.int32, device=device)
        self._birth.apart = wp.array(apart, dtype=float, device=device)
        self._counts, self._ends = (wp.zeros(len(partner), dtype=wp.int32, device=device) for _ in range(2))
        self._plan = wp.zeros(len(partner), dtype=Plan, device=device)
        self._found = dev.Flag(device)
        self._looked_at: Discs | None = None
        self._room = Discs.empty(0, device)

    @staticmethod
    def of(rest: Rest, device: wp.Device, once: Once = anew) -> Pieces:
        """For surfels at birth."""
        partner, apart = once("partners", lambda: pairs(rest.positions, rest.normals))
        return Pieces(rest.unit * rest.radii, partner, rest.unit * apart, device)

    @property
    def partner(self) -> NDArray[np.int32]:
        """The other one of the pair each surfel is of, or itself, shape (m,)."""
        return self._birth.partner.numpy()

    @property
    def owners(self) -> NDArray[np.int64]:
        """Which surfel each disc that was last shown is a piece of, if not all were shown as they are."""
        return np.repeat(np.arange(len(self._counts)), self._counts.numpy())

    def parted(self, radius: Floats, alone: NDArray[np.bool_]) -> Pieces:
        """For the same surfels and k more, with other radii [m], shape (m + k,). Those that are `alone`, shape (m,),
        have no partner any more, nor have those that come after."""
        many = np.arange(len(radius), dtype=np.int32)
        partner, apart = many.copy(), np.zeros(len(radius), np.float32)
        paired = np.flatnonzero(~alone)
        partner[paired], apart[paired] = self.partner[paired], self._birth.apart.numpy()[paired]
        return Pieces(radius, partner, apart, self._device)

    def shown(self, carried: Discs, colliders: Any, body: int, unit: float) -> Discs:
        """What is seen of a body's surfels as they are now: themselves, if none is stretched or squeezed much. Pieces
        keep out of colliders."""
        if not self._may_differ(carried):
            return carried
        seen = CarriedDiscs()
        for name, array in carried.arrays().items():
            setattr(seen, name, array)
        many = len(carried)
        planned = [self._birth, seen, self._plan, self._counts]
        self._found.lower()
        dev.launch(plan_pieces, many, [*planned, self._found.array], self._device, split=many > WORTH_SPLITTING)
        if not self._found.raised():
            return carried
        wp.utils.array_scan(self._counts, self._ends, inclusive=True)
        total = int(self._ends[many - 1 :].numpy()[0])
        if total > len(self._room):
            self._room = Discs.empty(total + total // 4, self._device)
        shown = self._room.beginning(total, carried.origin)
        around = [colliders, body, unit]
        dev.launch(show_pieces, many, [*planned, self._ends, *around, *shown.arrays().values()], self._device)
        return shown

    def _may_differ(self, carried: Discs) -> bool:
        """Whether any surfel may have to be shown otherwise than it is carried."""
        if self._looked_at is not carried:
            inputs = [self._birth, carried.axis_a, carried.axis_b, self._found.array]
            launch = dev.Launch(look_for_deformed, len(carried), inputs, LOOKING)
            self._looked_at, self._look = carried, dev.Program([launch], self._device)
        self._found.lower()
        self._look.run()
        return self._found.raised()
