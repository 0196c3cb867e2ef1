# mypy: disable-error-code="valid-type,no-untyped-def"
"""Contact of bodies with each other and with themselves, by impulses.

Node i of one body touches another with the ball about it that touches its own surface. The nearest node j there says
where that is in the other's *reference* shape, X = X_j + J_j⁻¹ (x_i − x_j), whose solid knows the distance d(X):

    n = J_j⁻ᵀ∇d / |J_j⁻ᵀ∇d|,   gap = d / |J_j⁻ᵀ∇d| − ball_i |J_iᵀ n|

The impulse λ_i goes to node i and, opposite, to the nodes k around it with shares s_ik, Σ_k s_ik = 1: momentum stays.
A node may take part in many contacts. Each gets a part of its mass in proportion to its share (Tonge et al. 2012), so
that all can be resolved at once and no energy appears:

    λ_i = −(v_i − Σ_k s_ik v_k) / (S_i/m_i + Σ_k s_ik S_k/m_k),   S_k = Σ over contacts of their shares in k

Lengths in metres, masses in kilograms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.contact.candidates import Candidates, Frames, touching_distance
from phyxel.device import Launch
from phyxel.solid.guide import Guide, guided, laid_guide

if TYPE_CHECKING:
    from phyxel.body import Body
    from phyxel.models.phyxel import PhyxelModel

wp.set_module_options(dev.KERNEL_OPTIONS)

FINEST, CELL = 1 / 48, 0.3
"""Cells of a body's distances: this share of its size, or of its node spacing if that is larger."""
TOUCHING = wp.constant(1.0e-4)
"""Gap, in spacings, below which bodies count as touching."""
PUSHED_OUT = wp.constant(0.1)
"""Share of what is left of a depth that is taken back in a step."""
FLATTEST = wp.constant(0.05)
"""Volume ratio below which a node's J says nothing of its surroundings."""
FARTHEST_MOVE = 0.5
"""Nothing comes nearer than this share of the smaller spacing in one step."""


@wp.func
def pulled_back(p: wp.vec3, X_j: wp.vec3, x_j: wp.vec3, J_inverse: wp.mat33, unit: float):
    """The place p [m] in the reference shape, in units, as node j sees it: X_j + J_j⁻¹ (p − x_j)."""
    return X_j + J_inverse * (p - x_j) / unit


@wp.func
def share_weight(squared_distance: float, farthest: float):
    """(1 − r²/R²)² inside R, else 0."""
    inside = wp.max(1.0 - squared_distance / (farthest * farthest), 0.0)
    return inside * inside


@wp.func
def pair_weight(
    i: int, k: int, frames: Frames, body: wp.array(dtype=wp.int32), ball: wp.array(dtype=float),
    x: wp.array(dtype=wp.vec3),
):  # fmt: skip
    """How much of what happens to node i happens to node k, before it is shared out; the same from both sides."""
    farthest = touching_distance(ball[i], ball[k], frames.unit[body[i]], frames.unit[body[k]])
    return share_weight(wp.length_sq(x[k] - x[i]), farthest)


@wp.func
def nearest_candidate(
    i: int,
    frames: Frames,
    body: wp.array(dtype=wp.int32),
    ball: wp.array(dtype=float),
    x: wp.array(dtype=wp.vec3),
    begin: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    index: wp.array(dtype=wp.int32),
):
    """The candidate with most weight, or -1 if none is within touching distance."""
    nearest = int(-1)
    most = float(0.0)
    entry = begin[i]
    end = entry + count[i]
    while entry < end:
        k = index[entry]
        w = pair_weight(i, k, frames, body, ball, x)
        if w > most:
            most = w
            nearest = k
        entry += 1
    return nearest


@wp.kernel
def find_contacts(
    first: int,
    frames: Frames,
    guides: wp.array(dtype=Guide),
    body: wp.array(dtype=wp.int32),
    ball: wp.array(dtype=float),
    X: wp.array(dtype=wp.vec3),
    support: wp.array(dtype=float),
    gradient: wp.array(dtype=wp.mat33),
    x: wp.array(dtype=wp.vec3),
    begin: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    index: wp.array(dtype=wp.int32),
    margin: float,
    target: wp.array(dtype=wp.int32),
    normal: wp.array(dtype=wp.vec3),
    gap: wp.array(dtype=float),
    per_weight: wp.array(dtype=float),
):
    """Which body each node touches (or -1), where its surface faces, how far it is, and 1/Σ_k w_ik.

    Parts of one body that are near each other in the reference shape, a bear's legs, are not told apart by its solid's
    distance: there nodes meet as balls, at most as far apart as they were at first. So do crushed ones."""
    i = first + wp.tid()
    target[i] = -1
    if count[i] == 0:
        return
    j = nearest_candidate(i, frames, body, ball, x, begin, count, index)
    if j < 0:
        return
    b = body[j]
    unit = frames.unit[b]
    J = gradient[j] + wp.identity(n=3, dtype=float)
    J_i = gradient[i] + wp.identity(n=3, dtype=float)
    at_first = wp.length(X[j] - X[i])
    n = wp.normalize(x[i] - x[j])
    room = float(0.0)
    alike = body[i] == b
    if (alike and at_first < wp.max(support[i], support[j])) or wp.determinant(J) < FLATTEST:
        both = ball[i] * wp.length(wp.transpose(J_i) * n) + ball[j] * wp.length(wp.transpose(J) * n)
        if alike:
            both = wp.min(both, unit * at_first)
        room = wp.length(x[i] - x[j]) - both
    else:
        J_inverse = wp.inverse(J)
        place = pulled_back(x[i], X[j], x[j], J_inverse, unit)
        # Nearer to where it was itself: that is its own neighbourhood, pressed together.
        if alike and wp.length_sq(place - X[i]) < wp.length_sq(place - X[j]):
            return
        d, slope = guided(guides[b], place)
        slope = wp.transpose(J_inverse) * slope
        steep = wp.length(slope)
        if steep < 0.1:
            return
        n = slope / steep
        room = unit * d / steep - ball[i] * wp.length(wp.transpose(J_i) * n)
    if room >= wp.max(margin, TOUCHING) * frames.unit[body[i]]:
        return
    total = float(0.0)
    entry = begin[i]
    end = entry + count[i]
    while entry < end:
        k = index[entry]
        if body[k] == b:
            total += pair_weight(i, k, frames, body, ball, x)
        entry += 1
    target[i] = b
    normal[i] = n
    gap[i] = room
    per_weight[i] = 1.0 / total


@wp.kernel
def sum_shares(
    first: int,
    frames: Frames,
    body: wp.array(dtype=wp.int32),
    ball: wp.array(dtype=float),
    hold: wp.array(dtype=wp.int32),
    mass: wp.array(dtype=float),
    x: wp.array(dtype=wp.vec3),
    begin: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    index: wp.array(dtype=wp.int32),
    target: wp.array(dtype=wp.int32),
    per_weight: wp.array(dtype=float),
    yielding: wp.array(dtype=float),
):
    """S_k/m_k [1/kg] of each node; zero for what is held."""
    k = first + wp.tid()
    if count[k] == 0:
        return
    shares = float(0.0)
    if target[k] >= 0:
        shares = 1.0
    entry = begin[k]
    end = entry + count[k]
    while entry < end:
        i = index[entry]
        if target[i] == body[k]:
            shares += pair_weight(i, k, frames, body, ball, x) * per_weight[i]
        entry += 1
    yielding[k] = 0.0
    if hold[k] < 0:
        yielding[k] = shares / (frames.unit[body[k]] * mass[k])


@wp.kernel
def find_impulses(
    first: int,
    frames: Frames,
    body: wp.array(dtype=wp.int32),
    ball: wp.array(dtype=float),
    x: wp.array(dtype=wp.vec3),
    begin: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    index: wp.array(dtype=wp.int32),
    target: wp.array(dtype=wp.int32),
    normal: wp.array(dtype=wp.vec3),
    gap: wp.array(dtype=float),
    per_weight: wp.array(dtype=float),
    yielding: wp.array(dtype=float),
    clock: wp.array(dtype=float),
    drift: int,
    v: wp.array(dtype=wp.vec3),
    impulse: wp.array(dtype=wp.vec3),
    shift: wp.array(dtype=wp.vec3),
):
    """λ_i [N s] that ends the approach, with Coulomb's friction, and what pushes the rest of the depth out [kg m].

    What was apart before this step may still close that distance in it."""
    i = first + wp.tid()
    b = target[i]
    if count[i] == 0 or b < 0:
        return
    velocity = frames.unit[body[i]] * v[i]
    gives = yielding[i]
    entry = begin[i]
    end = entry + count[i]
    while entry < end:
        k = index[entry]
        if body[k] == b:
            s = pair_weight(i, k, frames, body, ball, x) * per_weight[i]
            velocity -= s * frames.unit[b] * v[k]
            gives += s * yielding[k]
        entry += 1
    impulse[i] = wp.vec3()
    shift[i] = wp.vec3()
    if gives == 0.0:
        return
    n = normal[i]
    dt = clock[drift]
    approach = -wp.dot(velocity, n)
    before = gap[i] + dt * approach
    stopped = approach
    if before > 0.0 and dt > 0.0:
        stopped = approach - before / dt
    stopped = wp.max(stopped, 0.0)
    along = velocity + approach * n
    sliding = wp.length(along)
    grip = wp.sqrt(frames.friction[body[i]] * frames.friction[b]) * stopped
    if sliding > grip:
        along = along * (grip / sliding)
    impulse[i] = (stopped * n - along) / gives
    depth = wp.max(-gap[i] - dt * stopped, 0.0)
    shift[i] = PUSHED_OUT * depth / gives * n


@wp.kernel
def take_impulses(
    first: int,
    frames: Frames,
    body: wp.array(dtype=wp.int32),
    ball: wp.array(dtype=float),
    hold: wp.array(dtype=wp.int32),
    mass: wp.array(dtype=float),
    damping: wp.array(dtype=float),
    x: wp.array(dtype=wp.vec3),
    begin: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    index: wp.array(dtype=wp.int32),
    target: wp.array(dtype=wp.int32),
    per_weight: wp.array(dtype=float),
    impulse: wp.array(dtype=wp.vec3),
    shift: wp.array(dtype=wp.vec3),
    clock: wp.array(dtype=float),
    drift: int,
    u: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
    y: wp.array(dtype=wp.vec3),
):
    """What the contacts of each node do to it. The step is taken with the velocity they leave; a push moves only."""
    k = first + wp.tid()
    if count[k] == 0 or hold[k] >= 0:
        return
    pushed = wp.vec3()
    moved = wp.vec3()
    touched = target[k] >= 0
    if touched:
        pushed = impulse[k]
        moved = shift[k]
    entry = begin[k]
    end = entry + count[k]
    while entry < end:
        i = index[entry]
        if target[i] == body[k]:
            s = pair_weight(i, k, frames, body, ball, x) * per_weight[i]
            pushed -= s * impulse[i]
            moved -= s * shift[i]
            touched = True
        entry += 1
    if touched:
        b = body[k]
        per_momentum = 1.0 / (frames.unit[b] * frames.unit[b] * mass[k])
        change = per_momentum * pushed
        v[k] = v[k] + change
        u[k] = u[k] + clock[drift] * change + per_momentum * moved
        y[k] = u[k] + damping[b] * v[k]


class BodyContact:
    """Contact between the bodies of a phyxel model, and of each with itself."""

    def __init__(self, model: PhyxelModel, bodies: Sequence[Body]) -> None:
        self._model, self._bodies = model, bodies
        self.candidates = Candidates(model, np.array([body.unit for body in bodies]))
        device, n = model.device, len(model)
        self._target = wp.zeros(n, dtype=wp.int32, device=device)
        self._normal, self._impulse, self._shift = (wp.zeros(n, dtype=wp.vec3, device=device) for _ in range(3))
        self._gap, self._per_weight, self._yielding = (wp.zeros(n, dtype=float, device=device) for _ in range(3))
        self._guides: dict[int, Guide] = {}
        self._guide_array = wp.array([Guide() for _ in bodies], dtype=Guide, device=device)
        self._closing = np.zeros((len(bodies), len(bodies)))
        self._fresh = False
        self.met = np.zeros((len(bodies), len(bodies)), bool)
        """which bodies were near each other since this was last emptied"""

    @property
    def possible(self) -> bool:
        """Whether any node may touch another."""
        return bool(self.candidates.found.any())

    # What the world asks for

    def place(self) -> None:
        """Say where bodies are, after their origins have moved, and how they rub."""
        origins = np.array([body.origin for body in self._bodies])
        found = self.candidates
        found.offset.host[:] = origins - origins.mean(axis=0)
        found.friction.host[:] = [body.friction for body in self._bodies]
        found.offset.push()
        found.friction.push()

    def outdate(self) -> None:
        """Something happened to the bodies from outside: candidates are to be found anew."""
        self._fresh = False

    def longest_step(self) -> float:
        """Step [s] in which nothing that is near something else comes nearer by half a spacing."""
        self._closing = self.candidates.closing_speeds()
        units = np.array([body.unit for body in self._bodies])
        way = FARTHEST_MOVE * np.minimum.outer(units, units)
        near = self.candidates.near & (self._closing > 0)
        return float((way[near] / self._closing[near]).min(initial=np.inf))

    def prepare(self, step: float, most: int) -> int:
        """Have candidates for steps of `step` [s] from now on; for how many of `most` steps they serve, at least one.
        `longest_step` has looked at the speeds."""
        if not self._fresh or self.candidates.serve(step, most, self._closing) < most:
            self._renew()
        serves = max(1, self.candidates.serve(step, most, self._closing))
        self.candidates.spend(serves * step, self._closing)
        return serves

    def _renew(self) -> None:
        moved = self.candidates.renew()
        self._fresh = True
        self.met |= self.candidates.near
        missing = [b for b in np.flatnonzero(self.candidates.found) if b not in self._guides]
        for b in missing:
            self._guides[b] = self._guide_of(self._bodies[b])
        if missing:
            guides = [self._guides.get(b, Guide()) for b in range(len(self._bodies))]
            self._guide_array = wp.array(guides, dtype=Guide, device=self._model.device)
        if moved or missing:
            self._model.contacts_moved()

    def _guide_of(self, body: Body) -> Guide:
        """Distances of a body's solid in its reference shape, in its units about its middle."""
        corners = (body.placed_cloud() - body.centre) / body.unit
        lower, upper = corners.min(axis=0) - 1, corners.max(axis=0) + 1
        cell = max(CELL, FINEST * float((upper - lower).max()))

        def closest(x: NDArray[np.floating]) -> tuple[NDArray[np.floating], ...]:
            return x, x, body.solid_distance(x)

        return laid_guide(closest, lower, upper, cell, self._model.device)

    # What a step does

    def launches(self, clock: wp.array, drift: int, y: wp.array) -> list[Launch]:
        """Contacts at u after a leap-frog move of clock[drift] [s], and what they do to u, v and y = u + βv."""
        model, found = self._model, self.candidates
        matter, n = model.matter, len(self._model)
        who = [found.frames, matter.body, found.ball]
        lists = [found.x, *found.lists]
        contacts = [self._target, self._normal, self._gap, self._per_weight]
        shape = [found.frames, self._guide_array, matter.body, found.ball, matter.X, found.support]
        pushes = [self._impulse, self._shift, clock, drift]
        return [
            found.place(model.u),
            Launch(find_contacts, n, [*shape, model.forces.gradient, *lists, 0.0, *contacts]),
            Launch(
                sum_shares,
                n,
                [*who, model.hold, model.mass, *lists, self._target, self._per_weight, self._yielding],
            ),
            Launch(
                find_impulses,
                n,
                [*who, *lists, *contacts, self._yielding, clock, drift, model.v, self._impulse, self._shift],
            ),
            Launch(
                take_impulses,
                n,
                [
                    *who, model.hold, model.mass, model.damping, *lists, self._target, self._per_weight, *pushes,
                    model.u, model.v, y,
                ],
            ),
        ]  # fmt: skip
