"""Which nodes of a body lie around a point of its surface, to be taken hold of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from phyxel.errors import PhyxelError
from phyxel.mls.neighbours import nearest
from phyxel.mls.visibility import seen_pairs
from phyxel.region import Vector, as_vector

if TYPE_CHECKING:
    from phyxel.body.body import Body

PICKED = 1.5
"""How far around a picked surfel nodes are taken hold of, in spacings."""


def picked(body: Body, at: int | Vector, radius: float | None) -> NDArray[np.int64]:
    """See `Body.pick`."""
    if radius is not None and not radius > 0:
        raise PhyxelError(f"{body.name}: pick: radius = {radius}: give a length above 0 m")
    place = surfel_at(body, at)
    away = np.linalg.norm((body.positions if body.has_melted else body.birth) - place, axis=1)
    close = np.flatnonzero(away <= (PICKED * body.born.unit if radius is None else radius))
    if not body.has_melted:
        one = np.zeros(len(close), np.int64)
        close = close[seen_pairs(body.in_units(place[None]), body.birth_places, one, close, body.sees)]
    return close if len(close) else np.array([away.argmin()])


def surfel_at(body: Body, at: int | Vector) -> NDArray[np.float64]:
    """Where a surfel that `Body.pick` can be asked for lies [m], shape (3,)."""
    skin = body.surface.carried.positions if body.has_melted else body.placed_cloud()
    if not isinstance(at, int | np.integer):
        at = int(nearest(as_vector(f"{body.name}: pick", at)[None], skin, 1)[1][0, 0])
    if not -len(skin) <= at < len(skin):
        raise PhyxelError(f"{body.name}: surfel {at} of {len(skin)}; they are numbered from 0 to {len(skin) - 1}")
    return skin[at]
