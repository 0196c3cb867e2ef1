"""The rules by which a body's cracks start and run (G04 §4.3, physics 12.2, 12.3, 12.5).

Rankine: a crack starts where the largest principal stress exceeds the strength, across it, and its front runs where the
mean stress ahead does, the faster the more it exceeds. Stresses of coarse nodes at the tip of a crack are noisy: means
over about a node spacing, smoothed along the front, keep it a clean curve.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from scipy.spatial import cKDTree

from phyxel.cracks.crack import STEEPEST, Crack, Cracks
from phyxel.cracks.front import Front, unit
from phyxel.cracks.grid import LEVEL_SPACING, Floats, LevelGrid
from phyxel.state import State

BIRTH_RADIUS = 1.0
"""Of a new crack, in node spacings."""
SECONDARY = 1.5
"""Stress over strength at which another crack starts in a body that has one (G04: against spurious branching)."""
BRANCHING = 3.0
"""The same within `BRANCHING_WITHIN` of a crack, which takes the load off its surroundings or is about to."""
BRANCHING_WITHIN = 3.0
"""Distance from a crack in node spacings."""
CLEARANCE = 1.0
"""Distance in node spacings from a crack, and from a surface along it, within which none starts: slivers."""
OFF_SKIN = 1.5
"""How deep a crack starts that would peel off a skin, in node spacings: between two layers of nodes."""
HOLDS_AROUND = 4
"""Nearest held places whose mean says where a hold lies: single ones of a held face lie this way and that."""
MOST_AT_ONCE = 3
"""New cracks in one call."""
TOP_SPEED = 0.5
"""Fastest crack over the speed of shear waves."""
RUNNING_LOAD = 0.25
"""Mean stress ahead of a front over the strength from which on it runs. A crack as large as at birth, pulled by the
strength, has somewhat more than that before its tip, but nodes a spacing apart blur it: a bar that bends and is three
spacings thick has a quarter left. With more, cracks would creep through brittle matter."""
SPEED_GAIN = 2.0
"""Share of the fastest speed per excess of that: a crack runs at its fastest from 1.5 times what lets it run."""
LONGEST_WAY = 0.5
"""Of a front in one step, in node spacings."""
SAMPLE_REACH = 1.5
"""Distance up to which samples count at a front, in node spacings: 2.5 widths (physics 12.5)."""
SAMPLE_WIDTH = 0.6
"""Of the Gaussian with which they count, in node spacings."""
MOST_ASKED = 8
"""Most loaded places that are looked at closer in a body with cracks."""
SMOOTHINGS = 3
"""How often speeds and turns are averaged along a front, over about half a node spacing."""
EAGER = 0.5
"""Share of the way to where the stress says that a front turns in a step: the rest would follow noise."""

Distance = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Samples:
    """Places in a body and the stress there, in reference coordinates and body units."""

    points: Floats
    """shape (q, 3)"""
    stress: Floats
    """Cauchy's [Pa], shape (q, 3, 3)"""
    deformation: Floats
    """J, shape (q, 3, 3)"""
    strength: Floats
    """largest principal stress it bears [Pa], inf: any, shape (q,)"""
    speed: Floats
    """of shear waves [spacings/s], shape (q,)"""
    held: Floats = field(default_factory=lambda: np.zeros((0, 3)))
    """places that something has hold of, shape (k, 3)"""

    @cached_property
    def load(self) -> Floats:
        """Largest principal stress over strength, shape (q,): above 1 it cracks (Rankine, physics 12.2)."""
        return largest_principal(self.stress) / self.strength


def largest_principal(stress: Floats) -> Floats:
    """Largest eigenvalue of symmetric matrices (q, 3, 3), shape (q,), in closed form: LAPACK takes a microsecond each.

    σ₁ = p + 2r cos(θ/3) with p the mean, r² = |σ − pI|²/6 and cos θ = det(σ − pI)/(2r³).
    """
    xx, yy, zz = (stress[:, a, a] for a in range(3))
    yz, xz, xy = stress[:, 1, 2], stress[:, 0, 2], stress[:, 0, 1]
    mean = (xx + yy + zz) / 3
    x, y, z = xx - mean, yy - mean, zz - mean
    r = np.sqrt((x * x + y * y + z * z + 2 * (yz * yz + xz * xz + xy * xy)) / 6)
    determinant = x * (y * z - yz * yz) - xy * (xy * z - yz * xz) + xz * (xy * yz - y * xz)
    cosine = np.clip(determinant / np.maximum(2 * r**3, 1e-300), -1, 1)
    return mean + 2 * r * np.cos(np.arccos(cosine) / 3)


def scattered(strength: Floats, scatter: Floats, draws: Floats) -> Floats:
    """Strengths (q,) of places whose material has the given mean [Pa] (NaN: it never cracks) and relative standard
    deviation, both (q,), for `draws` (q,) of a standard normal distribution: lognormal. Those that never crack bear
    inf."""
    width = np.sqrt(np.log1p(np.asarray(scatter, np.float64) ** 2))
    return np.where(np.isnan(strength), np.inf, strength) * np.exp(width * draws - 0.5 * width**2)


class Fracture:
    """A body's cracks and the rules by which they grow."""

    def __init__(
        self, lower: ArrayLike, upper: ArrayLike, distance: Distance | None = None, level_spacing: float = LEVEL_SPACING
    ) -> None:
        """`lower` and `upper` are the body's box, `distance` the signed distance (n,) of places (n, 3) from its
        surface, negative inside; without it all of the box is solid. All in body units."""
        self.cracks = Cracks(LevelGrid.around(lower, upper, level_spacing))
        self._box = np.asarray(lower, np.float64), np.asarray(upper, np.float64)
        self._within = distance
        self._narrowed: Callable[[Floats, Floats], Floats] | None = None
        self._running = False
        self._done: set[Crack] = set()
        """cracks whose fronts have left the solid, for good"""
        self._tree = cKDTree(np.zeros((0, 3)))
        self._tree_of: Floats | None = None

    def of_piece(self, narrowed: Callable[[Floats, Floats], Floats]) -> Fracture:
        """The same cracks, to grow by themselves in a piece of the body: `narrowed` takes places (n, 3) and their
        distance (n,) from the body's surface to that from the piece's."""
        piece = copy(self)
        piece._narrowed, piece._done = narrowed, set()
        piece.restore(self.state())
        return piece

    @property
    def grid(self) -> LevelGrid:
        """On which new cracks are to be made."""
        return self.cracks.grid

    def cut(self, crack: Crack) -> None:
        """Put in a crack that was there before."""
        self.cracks.add(crack)

    def grow(self, samples: Samples, dt: float) -> bool:
        """Let fronts run for dt [s] and new cracks start; whether anything changed."""
        before = self.cracks.revision
        if self._tree_of is not samples.points:
            self._tree, self._tree_of = cKDTree(samples.points), samples.points
        for number, crack in enumerate(self.cracks):
            self._run(number, crack, samples, dt)
        self._start(samples)
        self._running = self.cracks.revision != before
        return self._running

    @property
    def least(self) -> float:
        """Largest stress over strength below which nothing can happen."""
        return RUNNING_LOAD if len(self.cracks) else 1.0

    def longest_step(self, samples: Samples) -> float:
        """[s], in which no front can go farther than `LONGEST_WAY`; inf if none did at last."""
        if not self._running:
            return np.inf
        return float(LONGEST_WAY / (TOP_SPEED * np.max(samples.speed)))

    def state(self) -> State:
        """What a checkpoint keeps, as arrays."""
        return self.cracks.state()

    def restore(self, state: State) -> None:
        """Take the cracks from `state()` of a fracture of the same body."""
        self.cracks, self._done = Cracks.restored(self.grid, state), set()

    def _distance(self, X: Floats) -> Floats:
        """Signed distance (n,) of places (n, 3) from the surface; far outside, from the box."""
        beyond = np.maximum(self._box[0] - X, X - self._box[1]).max(axis=1)
        distance = beyond if self._within is None else np.maximum(beyond, self._within(X))
        return distance if self._narrowed is None else self._narrowed(X, distance)

    def _start(self, samples: Samples) -> None:
        """New cracks where stress exceeds the strength, the most loaded place first (physics 12.2)."""
        for _ in range(MOST_AT_ONCE):
            at = self._overloaded(samples)
            if at is None:
                return
            _, axes = np.linalg.eigh(samples.stress[at])
            normal = unit(samples.deformation[at].T @ axes[:, 2])
            place = self._off_skin(samples.points[at], normal)
            if np.isinf(self._thresholds(place[None])[0]):
                return
            self.cracks.add(Crack.disc(self.grid, place, normal, BIRTH_RADIUS))

    def _overloaded(self, samples: Samples) -> int | None:
        """The sample whose stress exceeds the threshold there by most, if any does. Beside cracks single samples are
        noisy: in a body that has some the mean around it has to exceed the threshold, too."""
        load = samples.load
        if not len(self.cracks):
            return int(np.argmax(load)) if load.max(initial=0) > 1 else None
        some = np.flatnonzero(load > SECONDARY)
        excess = load[some] / self._thresholds(samples.points[some])
        some = some[np.argsort(-excess, kind="stable")[:MOST_ASKED]][: np.count_nonzero(excess > 1)]
        if not len(some):
            return None
        points = samples.points[some]
        excess = _pull(points, None, samples, self._tree, self.cracks).loads() / self._thresholds(points)
        return int(some[np.argmax(excess)]) if excess.max() > 1 else None

    def _off_skin(self, at: Floats, normal: Floats) -> Floats:
        """A place for a crack across `normal`, moved inwards where it would peel off a skin, as at a surface held."""
        above, below, here = self._distance(at + CLEARANCE * np.array([normal, -normal, 0 * normal]))
        return at + (OFF_SKIN + min(here, 0)) * (float(below > 0) - float(above > 0)) * normal

    def _thresholds(self, points: Floats) -> Floats:
        """Stress over strength that starts a crack at places (n, 3), shape (n,)."""
        threshold = np.full(len(points), SECONDARY if len(self.cracks) else 1.0)
        for crack in self.cracks:
            height, ahead = crack.values(points)
            away = np.hypot(height, np.maximum(ahead, 0))
            threshold[away < BRANCHING_WITHIN] = np.maximum(threshold[away < BRANCHING_WITHIN], BRANCHING)
            threshold[away < CLEARANCE] = np.inf
        return threshold

    def _unfinished(self, crack: Crack) -> NDArray[np.bool_]:
        """Which points of a front are in the solid or not yet quite out of it, (k,)."""
        if len(crack.front) == 0:
            return np.zeros(0, bool)
        return self._distance(crack.front.points) < 0.5 * self.grid.spacing

    def _run(self, number: int, crack: Crack, samples: Samples, dt: float) -> None:
        if crack in self._done:
            return
        inside = self._unfinished(crack)
        if not inside.any():
            self._done.add(crack)
            return
        t, f, n = crack.front.frames()
        P = crack.front.points
        pull = _pull(P[inside], f[inside], samples, self._tree, self.cracks)
        turn, speed = np.zeros(len(P)), np.zeros(len(P))
        turn[inside], speed[inside] = pull.turns(t[inside], f[inside], n[inside]), pull.speeds()
        # A web thinner than a spacing is more than nodes can tell: it goes as the front beside it.
        thin = self._distance((P + f)[inside]) > 0
        known = np.flatnonzero(inside)[~thin]
        if len(known):
            _, nearest = cKDTree(P[known]).query(P)
            turn, speed = turn[known[nearest]], speed[known[nearest]]
        else:
            turn[:], speed[:] = 0.0, TOP_SPEED * np.max(samples.speed)
        turn = _past_holds(_smoothed(crack.front, turn), P, f, n, samples.held)
        turn, speed = _smoothed(crack.front, turn), _smoothed(crack.front, speed)
        speed = np.where(self._met(crack, f), 0.0, np.minimum(speed, LONGEST_WAY / dt))
        if speed.any():
            self.cracks.run(number, np.cos(turn)[:, None] * f + np.sin(turn)[:, None] * n, speed, dt)

    def _met(self, crack: Crack, forwards: Floats) -> NDArray[np.bool_]:
        """Which points of a front have just run through another crack by half a cell, (k,): there it ends."""
        others = Cracks(self.grid, [other for other in self.cracks if other is not crack])
        h = self.grid.spacing
        start, end = crack.front.points - (LONGEST_WAY + h) * forwards, crack.front.points - 0.5 * h * forwards
        return ~others.sees(start, end)


@dataclass(frozen=True)
class _Pull:
    """Means at the points of a front (physics 12.5)."""

    stress: Floats
    deformation: Floats
    weakness: Floats
    """of one over the strength"""
    speed: Floats

    def turns(self, t: Floats, f: Floats, n: Floats) -> Floats:
        """Angles (k,) by which the front turns towards its normals n: nearer to the way v̂ = ±N × t with v̂·f > 0
        (physics 12.3)."""
        _, axes = np.linalg.eigh(self.stress)
        N = np.einsum("kba,kb->ka", self.deformation, axes[:, :, 2])
        way = np.cross(N, t)
        along, aside = np.sum(way * f, axis=1), np.sum(way * n, axis=1)
        aside = np.where(along < 0, -aside, aside)
        return EAGER * np.clip(np.arctan2(aside, np.abs(along)), -STEEPEST, STEEPEST)

    def speeds(self) -> Floats:
        """[spacings/s], shape (k,) (physics 12.3)."""
        return TOP_SPEED * self.speed * np.clip(SPEED_GAIN * (self.loads() / RUNNING_LOAD - 1), 0, 1)

    def loads(self) -> Floats:
        """Largest principal stress over strength, shape (k,)."""
        return largest_principal(self.stress) * self.weakness


def _pull(points: Floats, forwards: Floats | None, samples: Samples, tree: cKDTree, cracks: Cracks) -> _Pull:
    """Means over the samples around places (k, 3) that are seen from there; at a front, over those ahead of it, by the
    square of the cosine: beside a crack there is no load."""
    near = cKDTree(points).sparse_distance_matrix(tree, SAMPLE_REACH, output_type="ndarray")
    i, j = near["i"], near["j"]
    weight = np.exp(-0.5 * (near["v"] / SAMPLE_WIDTH) ** 2)
    eye = points
    if forwards is not None:
        eye = points + 0.5 * cracks.grid.spacing * forwards
        ahead = np.sum((samples.points[j] - points[i]) * forwards[i], axis=1) / np.maximum(near["v"], 1e-9)
        i, j, weight = (v[ahead > 0] for v in (i, j, weight * ahead**2))
    weight *= cracks.sees(eye[i], samples.points[j])
    total = np.bincount(i, weight, len(points))
    shares = csr_matrix((weight / np.maximum(total, 1e-300)[i], (i, j)), (len(points), len(samples.points)))
    return _Pull(
        stress=(shares @ samples.stress.reshape(-1, 9)).reshape(-1, 3, 3),
        deformation=(shares @ samples.deformation.reshape(-1, 9)).reshape(-1, 3, 3),
        weakness=shares @ (1 / samples.strength),
        speed=shares @ samples.speed,
    )


def _past_holds(turns: Floats, points: Floats, forwards: Floats, normals: Floats, held: Floats) -> Floats:
    """Turns (k,) of a front that runs past held places at a distance: a crack that left through a held face would leave
    the rest of the body hanging there."""
    if not len(held):
        return turns
    _, which = cKDTree(held).query(points, min(HOLDS_AROUND, len(held)))
    toward = (held[which.reshape(len(points), -1)] - points[:, None]).mean(axis=1)
    near = np.linalg.norm(toward, axis=1)
    toward = toward / np.maximum(near, 1e-9)[:, None]
    ahead, aside = (np.sum(toward * axis, axis=1) for axis in (forwards, normals))
    size = np.maximum(np.hypot(ahead, aside), 1e-9)
    nearing = (np.cos(turns) * ahead + np.sin(turns) * aside) / size
    # Across the way to the hold, on the side that the front turns to anyway.
    across = np.where(np.cos(turns) * -aside + np.sin(turns) * ahead > 0, 1.0, -1.0)
    past = np.arctan2(across * ahead, across * -aside)
    return np.where((near < CLEARANCE) & (nearing > 0), np.clip(past, -STEEPEST, STEEPEST), turns)


def _smoothed(front: Front, values: Floats) -> Floats:
    """Averages (k,) of values (k,) along a front: ¼ from each neighbour."""
    before, after = front.neighbours
    k = np.arange(len(values))
    before, after = np.where(before < 0, k, before), np.where(after < 0, k, after)
    for _ in range(SMOOTHINGS):
        values = 0.5 * values + 0.25 * (values[before] + values[after])
    return values
