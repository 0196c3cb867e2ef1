"""What wind and the like can press on, as it was when it was last found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from phyxel.surface.skin import PressedSkin

if TYPE_CHECKING:
    from phyxel.body import Body


class Hull:
    """The skin of a body: that of birth, or of what has melted, one of some moments ago."""

    def __init__(self, skin: PressedSkin | None = None, found_at: int = -1) -> None:
        self._skin, self._found_at = skin, found_at

    def skin(self, body: Body, moment: int) -> PressedSkin:
        """The skin of a body as it was found at a moment, counted from 0 on, or -1 for that at birth."""
        if self._skin is None or self._found_at != moment:
            self._skin, self._found_at = _found(body), moment
        return self._skin

    def state(self) -> dict[str, NDArray[Any]]:
        """What a checkpoint keeps of it."""
        if self._skin is None:
            return {}
        return {"node": self._skin.node, "area": self._skin.area, "at": np.array(self._found_at)}

    @staticmethod
    def restored(state: dict[str, NDArray[Any]]) -> Hull:
        """From what `state` gave."""
        return Hull(PressedSkin(state["node"], state["area"]), int(state["at"])) if state else Hull()


def _found(body: Body) -> PressedSkin:
    if body.sheet is not None:
        area, itself = body.unit**2 * body.sheet.areas[:, None] * body.ring.normals, np.arange(len(body.birth))
        if not body.ring.is_open:
            return PressedSkin(itself, area)
        return PressedSkin(np.tile(itself, 2), np.concatenate([area, -area]))
    if body.has_melted:
        carried = body.surface.carried
        return PressedSkin.found(carried.positions, carried.normals.astype(np.float64), body.positions)
    assert body.cloud.normals is not None
    return PressedSkin.found(body.placed_cloud(), body.cloud.normals.astype(np.float64) @ body.rotation.T, body.birth)
