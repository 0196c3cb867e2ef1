# mypy: disable-error-code="valid-type,no-untyped-def"
"""How a particle that went too far from its place keeps a dent.

While its displacement u grows beyond its peak e it is pulled back by w u (per mass), as one that never yielded. Below
the peak it goes along the straight line from there to the dent u₀ that is left when it is let go,

    u₀ = kept e/|e|,   kept = plasticity max(|e| − limit, 0),   w' = w |e| / (|e| − kept),

so the pull has no jump at the peak, and a dent is the same however long a load is held and however it rings. (W96 lets
the rest place follow by a share of the excess in every step: under a held load it creeps all the way, whatever the
share.) Energy is only lost: what the line holds at the peak is less than what went in.
"""

from __future__ import annotations

import warp as wp

from phyxel import device as dev

wp.set_module_options(dev.KERNEL_OPTIONS)

STIFFEST = wp.constant(wp.float64(1.0e3))
"""Most that the line is steeper than w."""


@wp.func
def dent_of(e: wp.vec3d, plasticity: wp.float64, limit: wp.float64):
    """u₀ and w'/w of a particle whose peak is e."""
    far = wp.length(e)
    most = (wp.float64(1.0) - wp.float64(1.0) / STIFFEST) * far
    kept = wp.min(plasticity * wp.max(far - limit, wp.float64(0.0)), most)
    steeper = wp.float64(1.0)
    rest = wp.vec3d()
    if kept > wp.float64(0.0):
        steeper = far / (far - kept)
        rest = e * (kept / far)
    return rest, steeper
