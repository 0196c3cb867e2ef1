# mypy: disable-error-code="valid-type,no-untyped-def"
"""Sums and maxima over all phyxels, in chunks that the host adds up: the same bits on any number of threads."""

from __future__ import annotations

from typing import Any

import warp as wp

from phyxel import device as dev

wp.set_module_options(dev.KERNEL_OPTIONS)

CHUNK = 256
"""Phyxels per partial result."""


@wp.kernel
def sum_products(
    first: int,
    n: int,
    mass: wp.array(dtype=Any),
    a: wp.array(dtype=Any),
    b: wp.array(dtype=Any),
    partial: wp.array(dtype=wp.float64),
):
    """Partial sums of m a·b in double, CHUNK phyxels each: the same bits on any number of threads."""
    c = first + wp.tid()
    total = wp.float64(0.0)
    i = c * CHUNK
    end = wp.min(n, i + CHUNK)
    while i < end:
        total += wp.float64(mass[i]) * wp.float64(wp.dot(a[i], b[i]))
        i += 1
    partial[c] = total


@wp.kernel
def find_fastest(first: int, n: int, v: wp.array(dtype=Any), partial: wp.array(dtype=wp.float64)):
    """Largest speed in each chunk; not a number if any speed is none."""
    c = first + wp.tid()
    fastest = wp.float64(0.0)
    i = c * CHUNK
    end = wp.min(n, i + CHUNK)
    while i < end:
        speed = wp.float64(wp.length(v[i]))
        if wp.isnan(speed):
            fastest = speed
            break
        fastest = wp.max(fastest, speed)
        i += 1
    partial[c] = fastest
