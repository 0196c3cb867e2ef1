# mypy: disable-error-code="valid-type,no-untyped-def"
"""Where the particles of a surface get within a step, and how much further a force takes them.

Lengths are in body units, masses in kg and time in s, so a force of F [N] counts as F/unit [kg unit/s²]; stiffness
[N/m] and compliance [m/N] are the same in any unit of length.
"""

from __future__ import annotations

import warp as wp

from phyxel import device as dev

wp.set_module_options(dev.KERNEL_OPTIONS)

LEAST_AHEAD = 1.0e-9
"""Share of H below which βB is lost in it: β may as well be 0."""


@wp.struct
class Arrival:
    """Where particles get without the force P of links and a filling; P held over the step leads to x + A P and v + B P
    (physics 13.3).

    P is that of where the surface will be, at y = x' + βv' (β adds damping), so that y = (x + βv) + H P(y), H = A + βB.
    β has the sign of B, which is negative where a particle rings more than half a time within the step. A held particle
    has A = B = H = 0 and is at x whatever pulls. Each array has shape (n,)."""

    x: wp.array(dtype=wp.vec3d)
    """displacement from X at the end of the step without P [units]"""
    v: wp.array(dtype=wp.vec3d)
    """velocity at the end of the step without P [units/s]"""
    A: wp.array(dtype=wp.float64)
    """[m/N]"""
    B: wp.array(dtype=wp.float64)
    """[m/(s N)]"""
    H: wp.array(dtype=wp.float64)
    """A + βB [m/N]"""
    wall: wp.array(dtype=wp.vec3d)
    """direction out of the collider that a particle lies on at the start of the step, 0 if it does on none; no array if
    there are no colliders"""
    spot: wp.array(dtype=wp.vec3d)
    """where it would be seen if it stayed on its spot there, X included [units]"""
    grip: wp.array(dtype=wp.float64)
    """Coulomb's coefficient there"""


@wp.func
def look_ahead(A: wp.float64, B: wp.float64, H: wp.float64) -> wp.float64:
    """β = (H − A)/B [s]: how far beyond the end of the step links look."""
    if wp.float64(LEAST_AHEAD) * H < H - A:
        return (H - A) / B
    return wp.float64(0.0)


@wp.func
def ahead(arrival: Arrival, i: int) -> wp.vec3d:
    """x + βv: where links and a filling see the particle without P."""
    return arrival.x[i] + look_ahead(arrival.A[i], arrival.B[i], arrival.H[i]) * arrival.v[i]


@wp.func
def halfway(arrival: Arrival, i: int) -> wp.vec3d:
    """The arm of a force that is even over the step (physics 13.5): x − (A/B) v, in the middle of free flight. With x'
    and v' as above, Σ m x' × v' − Σ m x × v = Σ mB (x − (A/B) v) × P."""
    if arrival.B[i] > wp.float64(0.0):
        return arrival.x[i] - (arrival.A[i] / arrival.B[i]) * arrival.v[i]
    return ahead(arrival, i)


@wp.func
def depth(arrival: Arrival, i: int, y: wp.vec3d) -> wp.float64:
    """How deep y is in the collider that a particle lies on."""
    return wp.dot(arrival.wall[i], arrival.spot[i] - y)


@wp.func
def kept_out(arrival: Arrival, i: int, y: wp.vec3d, held: wp.float64) -> wp.vec3d:
    """y, not in the collider that a particle lies on, and nearer to its spot there by as much as friction holds
    (physics 13.3)."""
    deep = depth(arrival, i, y)
    if deep <= wp.float64(0.0):
        return y
    on = y + deep * arrival.wall[i]
    slid = on - arrival.spot[i]
    far = wp.length(slid)
    if far <= held:
        return arrival.spot[i]
    return on - (held / far) * slid


def no_arrival(n: int, device: wp.Device) -> Arrival:
    """Room for that of n particles."""
    arrival = Arrival()
    arrival.x = wp.zeros(n, dtype=wp.vec3d, device=device)
    arrival.v = wp.zeros(n, dtype=wp.vec3d, device=device)
    arrival.A = wp.zeros(n, dtype=wp.float64, device=device)
    arrival.B = wp.zeros(n, dtype=wp.float64, device=device)
    arrival.H = wp.zeros(n, dtype=wp.float64, device=device)
    set_walls(arrival, 0, device)
    return arrival


def set_walls(arrival: Arrival, n: int, device: wp.Device) -> None:
    """Room for what n particles lie on."""
    arrival.wall, arrival.spot = (wp.zeros(n, dtype=wp.vec3d, device=device) for _ in range(2))
    arrival.grip = wp.zeros(n, dtype=wp.float64, device=device)


def arrived_at_once(u: wp.array, v: wp.array, like: Arrival) -> Arrival:
    """An arrival at where the particles are."""
    arrival = Arrival()
    arrival.x, arrival.v = u, v
    arrival.A, arrival.B, arrival.H = like.A, like.B, like.H
    return arrival
