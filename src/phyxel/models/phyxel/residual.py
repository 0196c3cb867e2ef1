# mypy: disable-error-code="valid-type,no-untyped-def"
"""What a stage of an implicit step is solved for: the momentum that is missing, and what its end is the minimum of
(physics 5.4)."""

from __future__ import annotations

import warp as wp

from phyxel import device as dev
from phyxel.device import entries
from phyxel.models.phyxel.conjugate import across, filtered
from phyxel.models.phyxel.leapfrog import push_on
from phyxel.models.reductions import CHUNK

wp.set_module_options(dev.KERNEL_OPTIONS)


@wp.kernel
def look_ahead(
    first: int, body: entries, damping: entries, dt: entries, base: entries, v: entries, ahead: entries, y: entries
):  # fmt: skip
    """ū + h v' and the same plus βv', for the damped force there (physics 5.4, 5.7)."""
    i = first + wp.tid()
    h = dt[body[i]]
    if h > type(h)(0.0):
        ahead[i] = base[i] + h * v[i]
        y[i] = ahead[i] + damping[i] * v[i]


@wp.kernel
def find_residual(
    first: int, body: entries, mass: entries, drag: entries, acceleration: entries, extra: entries, hold: entries,
    dt: entries, v_old: entries, v: entries, force: entries, contact: entries, normal: entries, wall: entries,
    pull: entries, rest: entries, rub: entries, way: entries, load: entries, r: entries,
):  # fmt: skip
    """The momentum that is missing where it is free to act (`r`), and the force that would bring it (`rest`)
    (physics 5.4)."""
    i = first + wp.tid()
    b = body[i]
    h = dt[b]
    if h == type(h)(0.0):
        r[i] = h * r[i]
        return
    pushed = force[i] + mass[i] * push_on(i, b, acceleration, extra) - drag[i] * mass[i] * v[i]
    missing = mass[i] * (v_old[i] - v[i]) + h * pushed
    rest[i] = missing / h
    rubbed = rub[i] * across(v[i] - wall[i] + pull[i], way[i]) + load[i]
    r[i] = filtered(missing - rubbed, hold[i], contact[i], normal[i])


@wp.kernel
def correct(first: int, length: entries, v: entries, delta: entries):
    """v' += length·δ."""
    i = first + wp.tid()
    v[i] = v[i] + length[0] * delta[i]


@wp.kernel
def sum_merit(
    first: int, n: int, body: entries, mass: entries, drag: entries, acceleration: entries, extra: entries, dt: entries,
    v_old: entries, v: entries, normal: entries, wall: entries, pull: entries, rub: entries, way: entries,
    load: entries, energy: entries, worth: entries, partial: entries,
):  # fmt: skip
    """Partial sums of U(ū + h v') + ½m|v' − v̂ − h a|² + ½(αh m |v'|² + rub |e|²) + load·e, e = (v' − wall + pull)_t and
    across the way it slides (physics 15.3): a stage without inner damping is its minimum (physics 5.4). Less ½m|h a|²,
    beside which all else would be rounding in a long step."""
    c = first + wp.tid()
    total = wp.float64(0.0)
    i = c * CHUNK
    end = wp.min(n, i + CHUNK)
    while i < end:
        gained = v[i] - v_old[i]
        h = dt[body[i]]
        pushed = h * push_on(i, body[i], acceleration, extra)
        sliding = v[i] - wall[i] + pull[i]
        along = sliding - wp.dot(sliding, normal[i]) * normal[i]
        m = mass[i]
        work = m * wp.dot(gained, gained - pushed - pushed) + drag[i] * h * m * wp.length_sq(v[i])
        work += rub[i] * wp.length_sq(across(along, way[i])) + type(m)(2.0) * wp.dot(load[i], along)
        total += worth[body[i]] * (wp.float64(energy[i]) + wp.float64(0.5) * wp.float64(work))
        i += 1
    partial[c] = total
