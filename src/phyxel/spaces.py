"""The fields that a body can have, made when they are first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.models.rigid import RigidSpace
from phyxel.models.space import Placing, Space

if TYPE_CHECKING:
    from phyxel.body import Body


def space_of(body: Body, device: wp.Device) -> Space | RigidSpace:
    """That of a body on a device; a crumb has a rigid one."""
    skin = body.in_units(body.placed_cloud())
    if body.model == "rigid":
        return RigidSpace((body.birth - body.centre) / body.unit, body.volumes / body.unit**3, skin, device)
    middle = body.placement.unplaced(body.born.centre[None])[0]
    placing = Placing(middle, body.born.unit / body.placement.scale, body.rotation)

    def sees(one: NDArray[np.floating], other: NDArray[np.floating]) -> NDArray[np.bool_]:
        return body.solid.sees(one, other)  # the solid is made only if somebody looks

    assert body.fabric is not None
    return Space(body.fabric(device), placing, skin, sees, device)
