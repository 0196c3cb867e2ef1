# mypy: disable-error-code="valid-type,no-untyped-def"
"""Where a body splits or merges: phyxels that come to lie at its boundary, or no longer do (M04 §5.2.2, physics 8.4).

    P_i = 1 − det C_i / (tr C_i / 3)³,   C_i covariance of the phyxels that i feels     (M04 eq. 29)

is 0 in the middle of a body, 0.34 at a face, 1 in a sheet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev

if TYPE_CHECKING:
    from phyxel.models.phyxel.model import PhyxelModel

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


def outside_probability(model: PhyxelModel, apart: bool = False) -> NDArray[np.float32]:
    """P of all phyxels in their reference shape, (n,); `apart`: as if every body were alone."""
    body = np.repeat(np.arange(len(model.ranges)), [high - low for low, high in model.ranges])
    party = wp.array(body.astype(np.int32) if apart else np.zeros(len(model), np.int32), device=model.device)
    outside = wp.empty(len(model), dtype=float, device=model.device)
    dev.launch(find_outside, len(model), [*model.matter.lists, model.matter.X, party, outside], model.device)
    return outside.numpy()
