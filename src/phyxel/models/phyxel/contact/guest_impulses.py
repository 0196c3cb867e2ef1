# mypy: disable-error-code="valid-type,no-untyped-def"
"""What contacts of phyxel bodies with guests do in a substep of leap-frog (physics 15.10).

Everything is in double but the phyxels themselves. `guests` are the arrays of `contact.guests.GuestArrays`.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from phyxel import device as dev
from phyxel.device import entries, float64s
from phyxel.mls.moments import in_double
from phyxel.models.coulomb import SINGULAR, add_row, settle
from phyxel.models.phyxel.contact.impulses import PUSHED_OUT, TOUCHING
from phyxel.models.phyxel.leapfrog import DRIFT, KICK

wp.set_module_options(dev.KERNEL_OPTIONS)

STICKS = wp.constant(wp.float64(1 - 1e-6))
"""Share of what friction can hold below which it holds."""
STILL = wp.constant(wp.float64(1e-4))
"""Change of impulses, as a share of the largest, at which sweeps end: what is left the next substep finds."""
NEVER = wp.constant(wp.float64(1e30))
"""Speed that nothing reaches [m/s]."""


@wp.func
def like(x: wp.vec3d, other: Any):
    """x in the precision of another vector."""
    return type(other)(other.dtype(x[0]), other.dtype(x[1]), other.dtype(x[2]))


@wp.func
def along(entries: float64s, c: int):
    """Three numbers of contact c."""
    return wp.vec3d(entries[3 * c], entries[3 * c + 1], entries[3 * c + 2])


@wp.func_native("""
    const double* entries = matrix.data + (size_t)row * size;
    double sums[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    int j = 0;
    for (; j + 8 <= size; j += 8)
        for (int lane = 0; lane < 8; ++lane) sums[lane] += entries[j + lane] * x.data[j + lane];
    for (; j < size; ++j) sums[0] += entries[j] * x.data[j];
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
""")
def row_times(matrix: float64s, row: int, size: int, x: float64s) -> wp.float64:
    """A row of a matrix of `size` columns, times x; in eight sums, which the compiler makes vectors of."""


@wp.func
def times(matrix: float64s, c: int, count: int, x: float64s):
    """The three rows of contact c of a matrix between `count` of them, times x."""
    size = 3 * count
    return wp.vec3d(
        row_times(matrix, 3 * c, size, x),
        row_times(matrix, 3 * c + 1, size, x),
        row_times(matrix, 3 * c + 2, size, x),
    )


@wp.func
def keep(entries: float64s, c: int, x: wp.vec3d):
    """Three numbers of contact c from now on."""
    entries[3 * c] = x[0]
    entries[3 * c + 1] = x[1]
    entries[3 * c + 2] = x[2]


@wp.func
def velocity_at(c: int, guests: Any, v: entries):
    """Of a phyxel body's place against the guest's, along the axes [m/s]."""
    seen = wp.vec3d()
    entry = c * guests.size[1]
    end = entry + guests.size[1]
    while entry < end:
        seen += guests.weight[entry] * in_double(v[guests.node[entry]])
        entry += 1
    return guests.axes[c] * seen - guests.velocity[c]


@wp.kernel
def look_at_guests(first: int, guests: Any, clock: entries, v: entries):
    """What velocities are left to be changed (physics 15.10). A contact that is apart may close its gap; one that comes
    to press faster than rest would make it bounces. After a kick without a way only what touches counts. Ties hold."""
    c = first + wp.tid()
    if c >= guests.size[0]:
        return
    guests.velocity[c] = guests.velocity[c] + wp.float64(clock[KICK]) * guests.relief[c]
    r = velocity_at(c, guests, v)
    gap = guests.offset[c][0]
    drift = wp.float64(clock[DRIFT])
    bias = wp.float64(0.0)
    tied = wp.isinf(guests.friction[c])
    if tied:
        bias = wp.float64(0.0)
    elif drift > wp.float64(0.0):
        bias = wp.max(gap, wp.float64(0.0)) / drift
    elif gap > wp.float64(TOUCHING) * guests.length[c]:
        bias = NEVER
    guests.bounce[c] = wp.float64(0.0)
    if not tied and guests.pressing[c] == 0 and -r[0] > wp.max(bias, guests.resting[0]):
        guests.bounce[c] = guests.restitution[c]
    guests.came[c] = r
    guests.bias[c] = bias
    keep(guests.left, c, (r + wp.vec3d(bias, wp.float64(0.0), wp.float64(0.0))) / guests.scale[c])


@wp.func
def bounce_back(guests: Any):
    """Add e p_n to impulses p that have ended the approach of contacts that bounce (Poisson). Of several at once that
    might make energy of nothing; then it is as much as leaves what there was:

        p·u − ½ p·W p + λ x·u + ½ λ² x·W x ≤ 0,   x = e p_n,   u = r + W p"""
    count = guests.size[0]
    won = wp.float64(0.0)
    along_x = wp.float64(0.0)
    across_x = wp.float64(0.0)
    for c in range(count):
        p = along(guests.total, c) / guests.scale[c]
        u = guests.scale[c] * along(guests.left, c) - wp.vec3d(guests.bias[c], wp.float64(0.0), wp.float64(0.0))
        won += wp.float64(0.5) * wp.dot(p, u + guests.came[c])
        along_x += guests.bounce[c] * p[0] * u[0]
        if guests.bounce[c] * p[0] > wp.float64(0.0):
            for d in range(count):
                both = guests.bounce[c] * guests.total[3 * c] * guests.bounce[d] * guests.total[3 * d]
                across_x += both * guests.system[(3 * c) * (3 * count) + 3 * d]
    if across_x > wp.float64(0.0):
        root = wp.sqrt(along_x * along_x - wp.float64(2.0) * across_x * wp.min(won, wp.float64(0.0)))
        share = wp.min((root - along_x) / across_x, wp.float64(1.0))
        for c in range(count):
            more = share * guests.bounce[c] * guests.total[3 * c]
            if more > wp.float64(0.0):
                guests.total[3 * c] = guests.total[3 * c] + more
                add_row(guests.system, 3 * c, 3 * count, more, guests.left)


@wp.kernel
def push_guests(first: int, guests: Any):
    """Impulses of all contacts, from those of the substep before, by one thread (physics 15.9, 15.10)."""
    count = guests.size[0]
    for row in range(3 * count):
        if guests.total[row] != wp.float64(0.0):
            add_row(guests.system, row, 3 * count, guests.total[row], guests.left)
    settle(count, wp.float64(SINGULAR), STILL, guests.system, guests.left, guests.friction, guests.total)
    bounce_back(guests)


@wp.kernel
def book_impulses(first: int, guests: Any, clock: entries):
    """Book the impulses of a substep. Shifts take back a share of a depth, and of a slip where friction holds
    (physics 15.10)."""
    c = first + wp.tid()
    if c >= guests.size[0]:
        return
    p = along(guests.total, c) / guests.scale[c]
    guests.push[c] = wp.transpose(guests.axes[c]) * p
    guests.booked[c] = guests.booked[c] + p
    none = wp.float64(0.0)
    shift = wp.vec3d()
    if clock[DRIFT] > clock.dtype(0.0):
        guests.pressing[c] = wp.where(p[0] > none, 1, 0)
        offset = guests.offset[c]
        rub = wp.sqrt(p[1] * p[1] + p[2] * p[2])
        back = offset
        if not wp.isinf(guests.friction[c]):
            if p[0] == none or rub > STICKS * guests.friction[c] * p[0]:
                offset = wp.vec3d(offset[0], none, none)
            back = wp.vec3d(wp.min(offset[0], none), offset[1], offset[2])
        guests.offset[c] = offset
        shift = -wp.float64(PUSHED_OUT) * wp.cw_mul(guests.stiff[c], back)
    keep(guests.shift, c, guests.scale[c] * shift)
    guests.shifted[c] = guests.shifted[c] + shift


@wp.kernel
def move_guests(first: int, guests: Any, clock: entries):
    """How places of guests go on after the impulses, and how contacts stand after the substep (physics 15.10)."""
    c = first + wp.tid()
    count = guests.size[0]
    if c >= count:
        return
    scale = guests.scale[c]
    guests.velocity[c] = guests.velocity[c] - scale * times(guests.response, c, count, guests.total)
    r = scale * along(guests.left, c) - wp.vec3d(guests.bias[c], wp.float64(0.0), wp.float64(0.0))
    out = wp.transpose(guests.axes[c])
    v = out * (r + guests.velocity[c])
    shift = out * along(guests.shift, c) / scale
    guests.moment[c] = guests.moment[c] + wp.cross(guests.way[c], guests.push[c]) + wp.cross(shift, v)
    drift = wp.float64(clock[DRIFT])
    if drift > wp.float64(0.0):
        moved = scale * times(guests.system, c, count, guests.shift)
        yielded = scale * times(guests.response, c, count, guests.shift)
        guests.offset[c] = guests.offset[c] + drift * r + moved
        guests.way[c] = guests.way[c] + drift * v + out * (moved - yielded)


@wp.kernel
def take_from_guests(
    first: int, guests: Any, mass: entries, damping: entries, clock: entries, u: entries, v: entries, y: entries
):
    """What the contacts of a node with guests do to it: the substep is taken with the velocity that impulses leave,
    shifts move only (physics 15.10)."""
    t = first + wp.tid()
    if t >= guests.size[2]:
        return
    i = guests.taking[t]
    change = wp.vec3d()
    moved = wp.vec3d()
    entry = guests.start[t]
    while entry < guests.start[t + 1]:
        c = guests.contact[entry]
        change += guests.part[entry] * guests.push[c]
        moved += guests.part[entry] * (wp.transpose(guests.axes[c]) * along(guests.shift, c)) / guests.scale[c]
        entry += 1
    per_momentum = wp.float64(1.0) / (guests.unit[t] * guests.unit[t] * wp.float64(mass[i]))
    change = per_momentum * change
    moved = per_momentum * moved
    v[i] = v[i] + like(change, v[i])
    u[i] = u[i] + like(wp.float64(clock[DRIFT]) * change + moved, u[i])
    y[i] = u[i] + damping[i] * v[i]
