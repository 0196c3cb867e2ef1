# mypy: disable-error-code="valid-type,no-untyped-def"
"""What pushes a phyxel from outside."""

from __future__ import annotations

from typing import Any

import warp as wp

from phyxel import device as dev

wp.set_module_options(dev.KERNEL_OPTIONS)


@wp.func
def push_on(i: int, b: int, acceleration: wp.array(dtype=Any), extra: wp.array(dtype=Any)):
    """Acceleration of phyxel i of body b: what pushes the whole body, and what fields add; `extra` is empty if there
    are none."""
    if extra.shape[0] > 0:
        return acceleration[b] + extra[i]
    return acceleration[b]
