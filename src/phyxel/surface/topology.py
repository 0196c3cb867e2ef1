# mypy: disable-error-code="valid-type,no-untyped-def"
"""Where a body splits or merges: phyxels that come to lie at its boundary, or no longer do (M04 §5.2.2, physics 8.4).

    P_i = 1 − det C_i / (tr C_i / 3)³,   C_i covariance of the phyxels that i feels     (M04 eq. 29)

is 0 in the middle of a body, 0.34 at a face, 1 in a sheet.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.mls.neighbours import Neighbourhood

wp.set_module_options(dev.KERNEL_OPTIONS)


@wp.kernel
def find_outside(
    first: int,
    start: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    stride: int,
    index: wp.array(dtype=wp.int32),
    X: wp.array(dtype=Any),
    party: wp.array(dtype=wp.int32),
    outside: wp.array(dtype=float),
):
    """P_i (M04 eq. 29, physics 8.4) among the phyxels of one party; 1 for a phyxel that feels fewer than three
    others."""
    i = first + wp.tid()
    here = X[i]
    n = float(1.0)
    total = wp.vec3()
    squares = wp.mat33()
    entry = start[i]
    end = entry + count[i] * stride
    while entry < end:
        j = index[entry]
        if party[j] == party[i]:
            way = X[j] - here
            arm = wp.vec3(float(way[0]), float(way[1]), float(way[2]))
            total += arm
            squares += wp.outer(arm, arm)
            n += 1.0
        entry += stride
    C = squares / n - wp.outer(total, total) / (n * n)
    mean = wp.trace(C) / 3.0
    outside[i] = 1.0
    if n > 3.5:
        outside[i] = wp.clamp(1.0 - wp.determinant(C) / (mean * mean * mean), 0.0, 1.0)


def outside_probability(
    X: wp.array, near: Neighbourhood, party: NDArray[np.integer] | None = None
) -> NDArray[np.float32]:
    """P of phyxels at X among their neighbours, (n,); with a `party` of each (n,), as if every party were alone."""
    n, device = len(X), X.device
    parties = wp.array(np.zeros(n, np.int32) if party is None else party.astype(np.int32), device=device)
    outside = wp.empty(n, dtype=float, device=device)
    lists = [near.start, near.count, near.stride, near.index]
    dev.launch(find_outside, n, [*lists, X, parties, outside], device)
    return outside.numpy()
