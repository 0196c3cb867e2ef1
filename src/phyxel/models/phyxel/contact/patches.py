# mypy: disable-error-code="valid-type,no-untyped-def"
"""Where nodes meet a body, and the patch of it that they touch (physics 15.4, 15.5).

The nodes k around node i, with shares s_ik that sum up to one, make the patch that it touches, with centre
c = Σ s_k x_k. It says where node i is in the other's *first* shape, whose solid knows the distance d there; node i
touches with the ball about it that touches its own surface:

    X = Σ s_k X_k + J⁻¹ (x_i − c),   J = Σ s_k J_k,   n = J⁻ᵀ∇d / |J⁻ᵀ∇d|,   gap = d / |J⁻ᵀ∇d| − ball_i |J_iᵀ n|

The patch is a rigid one, of inertia I = Σ s_k (|r_k|² − r_k r_kᵀ), r_k = x_k − c. An impulse λ on node i is taken up as

    q_k = −s_k (λ + ω × r_k),   I ω = (x_i − c) × λ

which keeps momentum and angular momentum, but for torque about a row of nodes, which they cannot bear; the same rigid
motion says how fast the patch moves where node i is. The gap is to that patch, too: measured to the one node of it that
is nearest it would open while the patch is held, and be closed by a blow in each of the next steps, which took a
quarter of the energy of elastic balls. Lengths in metres.
"""

from __future__ import annotations

import warp as wp

from phyxel import device as dev
from phyxel.contact.table import deformed
from phyxel.models.phyxel.contact.candidates import ContactNodes, touching_distance
from phyxel.solid.distance_grid import DistanceGrid, guided

wp.set_module_options(dev.KERNEL_OPTIONS)

THINNEST = wp.constant(0.001)
"""Inertia of a patch about an axis, over the square of its spacing, below which it is hardly twisted about it."""
FAR = wp.constant(1.0e30)
COARSER = wp.constant(1.5)
"""Nodes that are this many times farther apart than those of the other body are touched, but do not touch."""
NEARER = wp.constant(0.8)
"""Share of its first length to which a pair of nodes that do not see each other may shrink freely."""
FLATTEST = wp.constant(0.05)
"""Volume ratio below which a node's J says nothing of its surroundings."""
LEVEL = wp.constant(0.1)
"""Slope of a distance below which it faces nowhere."""


@wp.func
def pulled_back(p: wp.vec3, X_j: wp.vec3, x_j: wp.vec3, J_inverse: wp.mat33, unit: float):
    """The place p [m] in the reference shape, in units, as node j sees it: X_j + J_j⁻¹ (p − x_j) (physics 15.4)."""
    return X_j + J_inverse * (p - x_j) / unit


@wp.func
def share_weight(squared_distance: float, farthest: float):
    """(1 − r²/R²)² inside R, else 0 (physics 15.5)."""
    inside = wp.max(1.0 - squared_distance / (farthest * farthest), 0.0)
    return inside * inside


@wp.func
def pair_weight(
    i: int, k: int, unit: wp.array(dtype=float), body: wp.array(dtype=wp.int32), ball: wp.array(dtype=float),
    x: wp.array(dtype=wp.vec3),
):  # fmt: skip
    """How much of what happens to node i happens to node k, before it is shared out; the same from both sides. It takes
    arrays of `ContactNodes`: a struct would be copied for each pair."""
    farthest = touching_distance(ball[i], ball[k], unit[body[i]], unit[body[k]])
    return share_weight(wp.length_sq(x[k] - x[i]), farthest)


@wp.func
def inverse_inertia(outer: wp.mat33, unit: float):
    """I⁻¹ [1/m²] of I = tr(Σ s r rᵀ) − Σ s r rᵀ, as I (I² + ε²)⁻¹: of a row of nodes along an axis I vanishes about it,
    and of others the square of ε over I is all that is left of angular momentum (physics 15.5)."""
    inertia = (wp.trace(outer) * wp.identity(n=3, dtype=float) - outer) / (unit * unit)
    least = THINNEST * THINNEST * wp.identity(n=3, dtype=float)
    return inertia * wp.inverse(inertia * inertia + least) / (unit * unit)


@wp.struct
class NodeContacts:
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
    """S_k/m_k [1/kg]; zero for held nodes"""
    impulse: wp.array(dtype=wp.vec3)
    """λ_i [N s]"""
    twist: wp.array(dtype=wp.vec3)
    """ω of the impulse [N s/m]"""
    shift: wp.array(dtype=wp.vec3)
    """moves nodes apart without any velocity [kg m]"""
    shift_twist: wp.array(dtype=wp.vec3)
    """ω of the shift [kg]"""
    moved: wp.array(dtype=wp.vec3)
    """by shifts, in units of the node's body"""
    total: wp.array(dtype=wp.vec3)
    """impulse of all rounds of a step [N s]"""
    pressed_on: wp.array(dtype=wp.int32)
    """the body that pressed on the node in the last step, or -1"""
    force: wp.array(dtype=wp.vec3)
    """that it pressed with [N]"""
    held_on: wp.array(dtype=wp.int32)
    """the body on which friction held the node in the last step, or -1"""
    slip: wp.array(dtype=wp.vec3)
    """how far it has slipped on that since it held [m]"""


@wp.func
def face_met(
    i: int,
    n: wp.vec3,
    room: float,
    nodes: ContactNodes,
    guide: DistanceGrid,
    unit: float,
    X: wp.vec3,
    J: wp.mat33,
    arm: wp.vec3,
    J_i: wp.mat33,
):
    """Where the surface of a patch faces, and how far node i is from it [m], `arm` [m] from the middle of the patch,
    which was at X and is deformed by J; n and room, which a single node says, where the patch is crushed or faces
    nowhere."""
    if wp.determinant(J) < FLATTEST:
        return n, room
    J_inverse = wp.inverse(J)
    d, slope = guided(guide, pulled_back(arm, X, wp.vec3(), J_inverse, unit))
    slope = wp.transpose(J_inverse) * slope
    steep = wp.length(slope)
    if steep < LEVEL:
        return n, room
    n = slope / steep
    return n, unit * d / steep - nodes.ball[i] * wp.length(wp.transpose(J_i) * n)


@wp.func
def surface_met(
    i: int,
    j: int,
    nodes: ContactNodes,
    guides: wp.array(dtype=DistanceGrid),
    X: wp.array(dtype=wp.vec3),
    support: wp.array(dtype=float),
    past: wp.array(dtype=wp.mat33),
    gradient: wp.array(dtype=wp.mat33),
):
    """Where the surface near node j faces, and how far node i is from it [m]; FAR if there is nothing to touch.

    Parts of one body that are near each other in the reference shape, a bear's legs, are not told apart by its solid's
    distance: there nodes meet as balls, once they are clearly nearer than they were at first. So do crushed ones, and
    bodies that have ever melted are touched at the balls of their nodes (physics 15.4)."""
    if j < 0:
        return wp.vec3(), FAR
    b = nodes.body[j]
    unit = nodes.unit[b]
    J = deformed(past[j], gradient[j])
    J_i = deformed(past[i], gradient[i])
    melted = nodes.melted[b] == 1
    if melted:
        J = wp.identity(n=3, dtype=float)
    if nodes.melted[nodes.body[i]] == 1:
        J_i = wp.identity(n=3, dtype=float)
    alike = nodes.body[i] == b
    at_first = wp.length(X[j] - X[i])
    if melted and nodes.melted[nodes.body[i]] == 1 and at_first < wp.max(support[i], support[j]):
        return wp.vec3(), FAR  # they have flowed together
    if melted and not alike:
        n = wp.normalize(nodes.x[i] - nodes.x[j])
        return n, wp.length(nodes.x[i] - nodes.x[j]) - nodes.ball[i] * wp.length(wp.transpose(J_i) * n) - nodes.ball[j]
    if (alike and (melted or at_first < wp.max(support[i], support[j]))) or wp.determinant(J) < FLATTEST:
        n = wp.normalize(nodes.x[i] - nodes.x[j])
        both = nodes.ball[i] * wp.length(wp.transpose(J_i) * n) + nodes.ball[j] * wp.length(wp.transpose(J) * n)
        if alike:
            both = wp.min(both, NEARER * unit * at_first)
        return n, wp.length(nodes.x[i] - nodes.x[j]) - both
    J_inverse = wp.inverse(J)
    place = pulled_back(nodes.x[i], X[j], nodes.x[j], J_inverse, unit)
    # Nearer to where node i was than to node j: that is its own neighbourhood, pressed together.
    if alike and wp.length_sq(place - X[i]) < wp.length_sq(place - X[j]):
        return wp.vec3(), FAR
    d, slope = guided(guides[b], place)
    slope = wp.transpose(J_inverse) * slope
    steep = wp.length(slope)
    if steep < LEVEL:
        return wp.vec3(), FAR
    n = slope / steep
    return n, unit * d / steep - nodes.ball[i] * wp.length(wp.transpose(J_i) * n)


@wp.kernel
def find_contacts(
    first: int,
    nodes: ContactNodes,
    contacts: NodeContacts,
    guides: wp.array(dtype=DistanceGrid),
    X: wp.array(dtype=wp.vec3),
    support: wp.array(dtype=float),
    past: wp.array(dtype=wp.mat33),
    gradient: wp.array(dtype=wp.mat33),
    clock: wp.array(dtype=float),
    drift: int,
    v: wp.array(dtype=wp.vec3),
    nearest: float,
):
    """Which body each node touches, or comes nearer to than `nearest` spacings, and the patch of it that it touches
    (physics 15.4, 15.5)."""
    i = first + wp.tid()
    contacts.target[i] = -1
    if nodes.count[i] == 0:
        return
    # the nearest candidates of other bodies and of the own, in their own spacings, that are within touching distance
    j = int(-1)
    own = int(-1)
    least = float(FAR)
    least_own = float(FAR)
    entry = i * nodes.capacity
    end = entry + nodes.count[i]
    while entry < end:
        k = nodes.index[entry]
        unit = nodes.unit[nodes.body[k]]
        alike = nodes.body[k] == nodes.body[i]
        away = wp.length_sq(nodes.x[k] - nodes.x[i]) / (unit * unit)
        finer = nodes.unit[nodes.body[i]] < COARSER * unit
        nearer = finer and nodes.body[k] != nodes.tied[i] and away < wp.where(alike, least_own, least)
        if nearer and pair_weight(i, k, nodes.unit, nodes.body, nodes.ball, nodes.x) > 0.0:
            if alike:
                own = k
                least_own = away
            else:
                j = k
                least = away
        entry += 1
    n, room = surface_met(i, j, nodes, guides, X, support, past, gradient)
    n_own, room_own = surface_met(i, own, nodes, guides, X, support, past, gradient)
    if room_own < room:
        j = own
        n = n_own
        room = room_own
    if room > nodes.unit[nodes.body[i]]:
        return
    b = nodes.body[j]
    total = float(0.0)
    lever = wp.vec3()
    outer = wp.mat33()
    velocity = wp.vec3()
    X_patch = wp.vec3()
    J_patch = wp.mat33()
    faces = nodes.melted[b] == 0 and b != nodes.body[i]
    entry = i * nodes.capacity
    end = entry + nodes.count[i]
    while entry < end:
        k = nodes.index[entry]
        if nodes.body[k] == b:
            w = pair_weight(i, k, nodes.unit, nodes.body, nodes.ball, nodes.x)
            if faces:
                X_patch += w * X[k]
                J_patch += w * deformed(past[k], gradient[k])
            r = nodes.x[k] - nodes.x[i]
            total += w
            lever += w * r
            outer += w * wp.outer(r, r)
            velocity += w * v[k]
        entry += 1
    lever = lever / total
    if faces:
        J_i = wp.identity(n=3, dtype=float)
        if nodes.melted[nodes.body[i]] == 0:
            J_i = deformed(past[i], gradient[i])
        unit = nodes.unit[b]
        n, room = face_met(i, n, room, nodes, guides[b], unit, X_patch / total, J_patch / total, -lever, J_i)
    velocity = nodes.unit[nodes.body[i]] * v[i] - nodes.unit[b] * velocity / total
    if room + clock[drift] * wp.dot(n, velocity) >= nearest * nodes.unit[nodes.body[i]]:
        return
    outer = outer / total - wp.outer(lever, lever)
    contacts.target[i] = b
    contacts.normal[i] = n
    contacts.gap[i] = room
    contacts.per_weight[i] = 1.0 / total
    contacts.centre[i] = nodes.x[i] + lever
    contacts.per_inertia[i] = inverse_inertia(outer, nodes.unit[b])


@wp.func
def against_patch(
    i: int,
    nodes: ContactNodes,
    contacts: NodeContacts,
    v: wp.array(dtype=wp.vec3),
):
    """Velocity of node i against the patch that it touches [m/s] (physics 15.5)."""
    b = contacts.target[i]
    centre = contacts.centre[i]
    velocity = wp.vec3()
    spin = wp.vec3()
    entry = i * nodes.capacity
    end = entry + nodes.count[i]
    while entry < end:
        k = nodes.index[entry]
        if nodes.body[k] == b:
            part = pair_weight(i, k, nodes.unit, nodes.body, nodes.ball, nodes.x) * v[k]
            velocity += part
            spin += wp.cross(nodes.x[k] - centre, part)
        entry += 1
    velocity += wp.cross(contacts.per_inertia[i] * spin, nodes.x[i] - centre)
    return nodes.unit[nodes.body[i]] * v[i] - nodes.unit[b] * contacts.per_weight[i] * velocity
