# mypy: disable-error-code="valid-type,no-untyped-def"
"""Contact of bodies with each other and with themselves, by impulses.

Node i of one body touches another with the ball about it that touches its own surface. The nearest node j there says
where that is in the other's *reference* shape, X = X_j + J_j⁻¹ (x_i − x_j), whose solid knows the distance d(X):

    n = J_j⁻ᵀ∇d / |J_j⁻ᵀ∇d|,   gap = d / |J_j⁻ᵀ∇d| − ball_i |J_iᵀ n|

The nodes k around node i, with shares s_ik that sum up to one, make the patch that it touches: a rigid one, with centre
c = Σ s_k x_k and inertia I = Σ s_k (|r_k|² − r_k r_kᵀ), r_k = x_k − c. An impulse λ on node i is taken up by it as

    q_k = −s_k (λ + ω × r_k),   I ω = (x_i − c) × λ

which keeps momentum and angular momentum; the same rigid motion says how fast the patch moves where node i is.

A node may take part in many contacts. Each gets a part of its mass in proportion to its share (Tonge et al. 2012), so
that all can be resolved at once and no energy appears: along a direction e, contact i yields

    w_i(e) = S_i/m_i + Σ_k s_ik S_k/m_k |e + ω(e) × r_k|²,   S_k = Σ over contacts of their shares in k

to a unit impulse. Lengths in metres, masses in kilograms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from phyxel import device as dev
from phyxel.contact.candidates import Candidates, Frames, touching_distance
from phyxel.device import Launch
from phyxel.solid.guide import Guide, guided, laid_guide

if TYPE_CHECKING:
    from phyxel.body import Body
    from phyxel.models.phyxel import PhyxelModel

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.floating]

FINEST, CELL = 1 / 48, 0.3
"""Cells of a body's distances: this share of its size, or of its node spacing if that is larger."""
TOUCHING = 1.0e-4
"""Gap, in spacings, below which bodies count as touching."""
PUSHED_OUT = wp.constant(0.005)
"""Share of a depth that is taken back in a step. A shift against the stress of a body does work: it has to be slower
than sound, which crosses most bodies in less than a hundred steps."""
ROUNDS = 4
"""How often impulses are found in a step: contacts that share nodes see each other's only afterwards."""
THINNEST = wp.constant(0.005)
"""Inertia of a patch, over the square of its spacing, that is added lest a row of nodes be twisted about itself."""
FAR = wp.constant(1.0e30)
COARSER = wp.constant(1.5)
"""Nodes that are this many times farther apart than those of the other body are touched, but do not touch."""
NEARER = wp.constant(0.8)
"""Share of its first length to which a pair of nodes that do not see each other may shrink freely."""
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
    own: bool,
    frames: Frames,
    body: wp.array(dtype=wp.int32),
    ball: wp.array(dtype=float),
    x: wp.array(dtype=wp.vec3),
    capacity: int,
    count: wp.array(dtype=wp.int32),
    index: wp.array(dtype=wp.int32),
):
    """The nearest candidate of the own body, or of others, in its own spacings; -1 if none is within touching
    distance."""
    nearest = int(-1)
    least = float(1.0e30)
    entry = i * capacity
    end = entry + count[i]
    while entry < end:
        k = index[entry]
        unit = frames.unit[body[k]]
        distance = wp.length_sq(x[k] - x[i]) / (unit * unit)
        finer = frames.unit[body[i]] < COARSER * unit
        if (
            (body[k] == body[i]) == own
            and finer
            and distance < least
            and pair_weight(i, k, frames, body, ball, x) > 0.0
        ):
            least = distance
            nearest = k
        entry += 1
    return nearest


@wp.struct
class Contacts:
    """What each node touches, shape (n,) each."""

    target: wp.array(dtype=wp.int32)
    """the body, or -1"""
    normal: wp.array(dtype=wp.vec3)
    """outward from the body touched"""
    gap: wp.array(dtype=float)
    """to it, where the step began [m]"""
    per_weight: wp.array(dtype=float)
    """1/Σ_k w_ik"""
    centre: wp.array(dtype=wp.vec3)
    """c of the patch [m]"""
    per_inertia: wp.array(dtype=wp.mat33)
    """I⁻¹ of the patch [1/m²]"""
    yielding: wp.array(dtype=float)
    """S_k/m_k [1/kg]; zero for what is held"""
    impulse: wp.array(dtype=wp.vec3)
    """λ_i [N s]"""
    twist: wp.array(dtype=wp.vec3)
    """ω of the impulse [N s/m]"""
    shift: wp.array(dtype=wp.vec3)
    """what moves apart without any velocity [kg m]"""
    shift_twist: wp.array(dtype=wp.vec3)
    """ω of the shift [kg]"""


@wp.func
def surface_met(
    i: int,
    j: int,
    frames: Frames,
    guides: wp.array(dtype=Guide),
    body: wp.array(dtype=wp.int32),
    ball: wp.array(dtype=float),
    X: wp.array(dtype=wp.vec3),
    support: wp.array(dtype=float),
    gradient: wp.array(dtype=wp.mat33),
    x: wp.array(dtype=wp.vec3),
):
    """Where the surface near node j faces, and how far node i is from it [m]; FAR if there is nothing to touch.

    Parts of one body that are near each other in the reference shape, a bear's legs, are not told apart by its solid's
    distance: there nodes meet as balls, once they are clearly nearer than they were at first. So do crushed ones."""
    if j < 0:
        return wp.vec3(), FAR
    b = body[j]
    unit = frames.unit[b]
    J = gradient[j] + wp.identity(n=3, dtype=float)
    J_i = gradient[i] + wp.identity(n=3, dtype=float)
    alike = body[i] == b
    at_first = wp.length(X[j] - X[i])
    if (alike and at_first < wp.max(support[i], support[j])) or wp.determinant(J) < FLATTEST:
        n = wp.normalize(x[i] - x[j])
        both = ball[i] * wp.length(wp.transpose(J_i) * n) + ball[j] * wp.length(wp.transpose(J) * n)
        if alike:
            both = wp.min(both, NEARER * unit * at_first)
        return n, wp.length(x[i] - x[j]) - both
    J_inverse = wp.inverse(J)
    place = pulled_back(x[i], X[j], x[j], J_inverse, unit)
    # Nearer to where it was itself: that is its own neighbourhood, pressed together.
    if alike and wp.length_sq(place - X[i]) < wp.length_sq(place - X[j]):
        return wp.vec3(), FAR
    d, slope = guided(guides[b], place)
    slope = wp.transpose(J_inverse) * slope
    steep = wp.length(slope)
    if steep < 0.1:
        return wp.vec3(), FAR
    n = slope / steep
    return n, unit * d / steep - ball[i] * wp.length(wp.transpose(J_i) * n)


@wp.kernel
def find_contacts(
    first: int,
    frames: Frames,
    body: wp.array(dtype=wp.int32),
    ball: wp.array(dtype=float),
    x: wp.array(dtype=wp.vec3),
    capacity: int,
    count: wp.array(dtype=wp.int32),
    index: wp.array(dtype=wp.int32),
    contacts: Contacts,
    guides: wp.array(dtype=Guide),
    X: wp.array(dtype=wp.vec3),
    support: wp.array(dtype=float),
    gradient: wp.array(dtype=wp.mat33),
    clock: wp.array(dtype=float),
    drift: int,
    v: wp.array(dtype=wp.vec3),
    nearest: float,
):
    """Which body each node touches, or comes nearer to than `nearest` spacings, and the patch of it that it touches."""
    i = first + wp.tid()
    contacts.target[i] = -1
    if count[i] == 0:
        return
    j = nearest_candidate(i, False, frames, body, ball, x, capacity, count, index)
    n, room = surface_met(i, j, frames, guides, body, ball, X, support, gradient, x)
    own = nearest_candidate(i, True, frames, body, ball, x, capacity, count, index)
    n_own, room_own = surface_met(i, own, frames, guides, body, ball, X, support, gradient, x)
    if room_own < room:
        j = own
        n = n_own
        room = room_own
    if room > frames.unit[body[i]]:
        return
    b = body[j]
    total = float(0.0)
    lever = wp.vec3()
    outer = wp.mat33()
    velocity = wp.vec3()
    entry = i * capacity
    end = entry + count[i]
    while entry < end:
        k = index[entry]
        if body[k] == b:
            w = pair_weight(i, k, frames, body, ball, x)
            r = x[k] - x[i]
            total += w
            lever += w * r
            outer += w * wp.outer(r, r)
            velocity += w * v[k]
        entry += 1
    velocity = frames.unit[body[i]] * v[i] - frames.unit[b] * velocity / total
    if room + clock[drift] * wp.dot(n, velocity) >= nearest * frames.unit[body[i]]:
        return
    lever = lever / total
    outer = outer / total - wp.outer(lever, lever)
    least = THINNEST * frames.unit[b] * frames.unit[b]
    contacts.target[i] = b
    contacts.normal[i] = n
    contacts.gap[i] = room
    contacts.per_weight[i] = 1.0 / total
    contacts.centre[i] = x[i] + lever
    contacts.per_inertia[i] = wp.inverse((wp.trace(outer) + least) * wp.identity(n=3, dtype=float) - outer)


@wp.kernel
def sum_shares(
    first: int,
    frames: Frames,
    body: wp.array(dtype=wp.int32),
    ball: wp.array(dtype=float),
    x: wp.array(dtype=wp.vec3),
    capacity: int,
    count: wp.array(dtype=wp.int32),
    index: wp.array(dtype=wp.int32),
    contacts: Contacts,
    hold: wp.array(dtype=wp.int32),
    mass: wp.array(dtype=float),
):
    """S_k/m_k of each node."""
    k = first + wp.tid()
    if count[k] == 0:
        return
    shares = float(0.0)
    if contacts.target[k] >= 0:
        shares = 1.0
    entry = k * capacity
    end = entry + count[k]
    while entry < end:
        i = index[entry]
        if contacts.target[i] == body[k]:
            shares += pair_weight(i, k, frames, body, ball, x) * contacts.per_weight[i]
        entry += 1
    contacts.yielding[k] = 0.0
    if hold[k] < 0:
        contacts.yielding[k] = shares / (frames.unit[body[k]] * mass[k])


@wp.func
def against_patch(
    i: int,
    frames: Frames,
    body: wp.array(dtype=wp.int32),
    ball: wp.array(dtype=float),
    x: wp.array(dtype=wp.vec3),
    capacity: int,
    count: wp.array(dtype=wp.int32),
    index: wp.array(dtype=wp.int32),
    contacts: Contacts,
    v: wp.array(dtype=wp.vec3),
):
    """Velocity of node i against the patch that it touches [m/s]."""
    b = contacts.target[i]
    centre = contacts.centre[i]
    velocity = wp.vec3()
    spin = wp.vec3()
    entry = i * capacity
    end = entry + count[i]
    while entry < end:
        k = index[entry]
        if body[k] == b:
            part = pair_weight(i, k, frames, body, ball, x) * v[k]
            velocity += part
            spin += wp.cross(x[k] - centre, part)
        entry += 1
    velocity += wp.cross(contacts.per_inertia[i] * spin, x[i] - centre)
    return frames.unit[body[i]] * v[i] - frames.unit[b] * contacts.per_weight[i] * velocity


@wp.kernel
def find_impulses(
    first: int,
    frames: Frames,
    body: wp.array(dtype=wp.int32),
    ball: wp.array(dtype=float),
    x: wp.array(dtype=wp.vec3),
    capacity: int,
    count: wp.array(dtype=wp.int32),
    index: wp.array(dtype=wp.int32),
    contacts: Contacts,
    clock: wp.array(dtype=float),
    drift: int,
    v: wp.array(dtype=wp.vec3),
    shifting: int,
):
    """The impulse that ends the approach of each node, with Coulomb's friction, and the shift that takes a share of the
    depth back, if there is to be one. What is apart may still close its distance in this step."""
    i = first + wp.tid()
    b = contacts.target[i]
    if count[i] == 0 or b < 0:
        return
    velocity = against_patch(i, frames, body, ball, x, capacity, count, index, contacts, v)
    centre = contacts.centre[i]
    arm = x[i] - centre
    per_inertia = contacts.per_inertia[i]
    n = contacts.normal[i]
    approach = -wp.dot(velocity, n)
    along = velocity + approach * n
    sliding = wp.length(along)
    t = wp.vec3()
    if sliding > 0.0:
        t = along / sliding
    turn_n = per_inertia * wp.cross(arm, n)
    turn_t = per_inertia * wp.cross(arm, t)
    gives_n = float(0.0)
    gives_t = float(0.0)
    entry = i * capacity
    end = entry + count[i]
    while entry < end:
        k = index[entry]
        if body[k] == b:
            w = pair_weight(i, k, frames, body, ball, x) * contacts.yielding[k]
            r = x[k] - centre
            gives_n += w * wp.length_sq(n + wp.cross(turn_n, r))
            gives_t += w * wp.length_sq(t + wp.cross(turn_t, r))
        entry += 1
    gives_n = contacts.yielding[i] + contacts.per_weight[i] * gives_n
    gives_t = contacts.yielding[i] + contacts.per_weight[i] * gives_t
    push = float(0.0)
    rub = float(0.0)
    depth = float(0.0)
    if gives_n > 0.0:
        apart = float(0.0)
        if clock[drift] > 0.0:
            apart = wp.max(contacts.gap[i], 0.0) / clock[drift]
        push = wp.max(approach - apart, 0.0) / gives_n
        rub = wp.min(sliding / gives_t, wp.sqrt(frames.friction[body[i]] * frames.friction[b]) * push)
        if shifting == 1:
            depth = PUSHED_OUT * wp.max(-contacts.gap[i], 0.0) / gives_n
    contacts.impulse[i] = push * n - rub * t
    contacts.twist[i] = push * turn_n - rub * turn_t
    contacts.shift[i] = depth * n
    contacts.shift_twist[i] = depth * turn_n


@wp.kernel
def take_impulses(
    first: int,
    frames: Frames,
    body: wp.array(dtype=wp.int32),
    ball: wp.array(dtype=float),
    x: wp.array(dtype=wp.vec3),
    capacity: int,
    count: wp.array(dtype=wp.int32),
    index: wp.array(dtype=wp.int32),
    contacts: Contacts,
    hold: wp.array(dtype=wp.int32),
    mass: wp.array(dtype=float),
    damping: wp.array(dtype=float),
    clock: wp.array(dtype=float),
    drift: int,
    u: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
    y: wp.array(dtype=wp.vec3),
):
    """What the contacts of each node do to it. The step is taken with the velocity they leave; a shift moves only."""
    k = first + wp.tid()
    if count[k] == 0 or hold[k] >= 0:
        return
    pushed = wp.vec3()
    moved = wp.vec3()
    touched = contacts.target[k] >= 0
    if touched:
        pushed = contacts.impulse[k]
        moved = contacts.shift[k]
    entry = k * capacity
    end = entry + count[k]
    while entry < end:
        i = index[entry]
        if contacts.target[i] == body[k]:
            s = pair_weight(i, k, frames, body, ball, x) * contacts.per_weight[i]
            r = x[k] - contacts.centre[i]
            pushed -= s * (contacts.impulse[i] + wp.cross(contacts.twist[i], r))
            moved -= s * (contacts.shift[i] + wp.cross(contacts.shift_twist[i], r))
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
        self.candidates = Candidates(model, np.array([body.unit for body in bodies]), [body.sees for body in bodies])
        device, n = model.device, len(model)
        self.contacts = Contacts()
        for name, variable in Contacts.vars.items():  # type: ignore[attr-defined]
            setattr(self.contacts, name, wp.zeros(n, dtype=variable.type.dtype, device=device))
        self.offsets = np.zeros((len(bodies), 3))
        """origins of the bodies about a common one [m], shape (bodies, 3)"""
        self._guides: dict[int, Guide] = {}
        self._guide_array = wp.array([Guide() for _ in bodies], dtype=Guide, device=device)
        self._closing = np.zeros((len(bodies), len(bodies)))
        self._fresh = False
        self.met = np.zeros((len(bodies), len(bodies)), bool)
        """which bodies were near each other since `parties` was last asked"""

    @property
    def possible(self) -> bool:
        """Whether any node may touch another."""
        return bool(self.candidates.found.any())

    # What the world asks for

    def place(self) -> None:
        """Say where bodies are, after their origins have moved, and how they rub."""
        origins = np.array([body.origin for body in self._bodies])
        found = self.candidates
        self.offsets = origins - origins.mean(axis=0)
        found.offset.host[:] = self.offsets
        found.friction.host[:] = [body.friction for body in self._bodies]
        found.offset.push()
        found.friction.push()

    def outdate(self) -> None:
        """Something happened to the bodies from outside: candidates are to be found anew."""
        self._fresh = False

    @property
    def slack(self) -> NDArray[np.float64]:
        """What bodies may move before candidates are found anew [m], and which are near each other,
        shape (2, bodies, bodies)."""
        return np.stack([self.candidates.slack * self._fresh, self.candidates.near])

    def resume(self, slack: NDArray[np.float64]) -> None:
        """Go on as where `slack` was asked for: find candidates, but for no longer than they would have served."""
        self._renew()
        self.candidates.slack, self.candidates.near = slack[0].copy(), slack[1].astype(bool)

    def longest_step(self) -> float:
        """Step [s] in which nothing that is near something else comes nearer by half a spacing."""
        self._closing = self.candidates.closing_speeds()
        if not np.isfinite(self._closing).all():
            return np.inf  # the world says what is wrong
        units = np.array([body.unit for body in self._bodies])
        way = FARTHEST_MOVE * np.minimum.outer(units, units)
        near = self.candidates.near & (self._closing > 0)
        return float((way[near] / self._closing[near]).min(initial=np.inf))

    def prepare(self, step: float, most: int) -> int:
        """Have candidates for steps of `step` [s] from now on; for how many of `most` steps they serve, at least one.
        `longest_step` has looked at the speeds."""
        if not np.isfinite(self._closing).all():
            return most
        if not self._fresh or self.candidates.serve(step, most, self._closing) < most:
            self._renew()
        serves = max(1, self.candidates.serve(step, most, self._closing))
        self.candidates.spend(serves * step, self._closing)
        return serves

    def _renew(self) -> None:
        moved = self.candidates.renew()
        self._fresh = True
        self.met |= self.candidates.near
        missing = [b for b in np.flatnonzero(self.candidates.found).tolist() if b not in self._guides]
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

        def closest(x: Floats) -> tuple[Floats, Floats, Floats]:
            return x, x, body.solid_distance(x)

        return laid_guide(closest, lower, upper, cell, self._model.device)

    def parties(self) -> list[set[int]]:
        """Bodies that were near each other, or near some that were, since this was last asked."""
        met = self.met | self.candidates.near
        self.met = self.candidates.near.copy()
        _, label = connected_components(met, directed=False)
        return [set(np.flatnonzero(label == party).tolist()) for party in range(label.max() + 1)]

    # What a step does

    @property
    def pairs(self) -> list[Any]:
        """First arguments of all kernels of contact."""
        found = self.candidates
        return [found.frames, self._model.matter.body, found.ball, found.x, *found.lists, self.contacts]

    def finding(self, clock: wp.array, drift: int, nearest: float) -> list[Launch]:
        """Contacts where nodes were before they moved with v for clock[drift] [s], of those that then are nearer than
        `nearest` spacings."""
        model, found = self._model, self.candidates
        shape = [self._guide_array, model.matter.X, found.support, model.forces.gradient]
        return [
            found.place(clock, drift),
            Launch(find_contacts, len(model), [*self.pairs, *shape, clock, drift, model.v, nearest]),
        ]

    def launches(self, clock: wp.array, drift: int, y: wp.array) -> list[Launch]:
        """Contacts in a leap-frog move of clock[drift] [s] that led to u, and what they do to u, v and y = u + βv.

        They are found where the move began: angular momentum is kept when impulses act there, and J is known there."""
        model, n, pairs = self._model, len(self._model), self.pairs
        who = [model.hold, model.mass]

        def impulses(shifting: int) -> list[Launch]:
            return [
                Launch(find_impulses, n, [*pairs, clock, drift, model.v, shifting]),
                Launch(take_impulses, n, [*pairs, *who, model.damping, clock, drift, model.u, model.v, y]),
            ]

        return [
            *self.finding(clock, drift, TOUCHING),
            Launch(sum_shares, n, [*pairs, *who]),
            *impulses(1),
            *(item for _ in range(ROUNDS - 1) for item in impulses(0)),
        ]
