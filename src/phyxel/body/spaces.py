"""The fields that a body can have, made when they are first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.models.galerkin.layout import Layout, Placing
from phyxel.models.galerkin.space import Space
from phyxel.models.rigid.model import RigidSpace

if TYPE_CHECKING:
    from phyxel.body.body import Body


def space_of(body: Body, device: wp.Device) -> Space | RigidSpace:
    """That of a body on a device; a crumb has a rigid one."""
    skin = body.in_units(body.placed_cloud())
    if body.model == "rigid":
        return RigidSpace((body.birth - body.centre) / body.unit, body.volumes / body.unit**3, skin, device)
    return body.once(("space", str(device)), lambda: _whole_space(body, skin, device))


def _whole_space(body: Body, skin: NDArray[np.float64], device: wp.Device) -> Space:
    middle = body.placement.unplaced(body.born.centre[None])[0]
    placing = Placing(middle, body.born.unit / body.placement.scale, body.rotation)

    fabric, solid = body.made.fabric, body.made.solid
    assert fabric is not None and solid is not None

    def sees(one: NDArray[np.floating], other: NDArray[np.floating]) -> NDArray[np.bool_]:
        return solid().sees(one, other)  # the solid is made only if somebody looks

    return Space.whole(Layout(fabric(device), placing, skin, sees, device)).prepare()
