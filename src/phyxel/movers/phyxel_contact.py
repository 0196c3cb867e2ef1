"""Contact of phyxel bodies: what it has to know of each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.body import Body
from phyxel.mls.visibility import Sees
from phyxel.models.phyxel.contact.candidates import ContactPart
from phyxel.models.phyxel.contact.impulses import BodyContact
from phyxel.models.phyxel.model import PhyxelModel
from phyxel.solid.distance_grid import DistanceGrid, laid_guide

SKIN = {"inside": 1.2, "to the surface": 0.75}
"""Depth in spacings from which on nodes do not touch, by how the outermost ones lie: beside a crack, between nodes."""
FINEST, CELL = 1 / 48, 0.3
"""Cells of a body's distances: this share of its size, or of its node spacing if that is larger."""


def contact_of(model: PhyxelModel, bodies: Sequence[Body], melted: Sequence[Body], flows: bool) -> BodyContact:
    """Contact of all bodies of a model; `melted` are those that have ever melted, `flows` whether they are molten."""
    wholes = {name: number for number, name in enumerate(dict.fromkeys(body.whole for body in bodies))}

    def part(body: Body) -> ContactPart:
        return ContactPart(
            unit=body.unit,
            sees=None if body in melted else _sees(body),
            skin=SKIN[body.kind.scheme(body.scheme).nodes],
            flows=flows and body in melted,
            family=wholes[body.whole] if body.has_cracked else -1,
            guide=lambda: _guide(body, model),
        )

    return BodyContact(model, [part(body) for body in bodies])


def place_contact(contact: BodyContact, bodies: Sequence[Body]) -> None:
    """Tell a contact where bodies are and how they rub."""
    contact.place(np.array([body.origin for body in bodies]), [body.friction for body in bodies])


def _sees(body: Body) -> Sees:
    """What tells which parts of a body can come to touch. A body that cracks is asked anew after each cut, and only for
    what its cracks hide, which is soon told: legs that it has besides are near each other by their nodes."""
    return body.sees if body.fracture is None or not body.has_cracked else body.fracture.cracks.sees


def _guide(body: Body, model: PhyxelModel) -> DistanceGrid:
    """Distances of a body's solid in its first shape, in its units about its middle then."""
    if body.guide is None:
        points, device = (body.placed_cloud() - body.born.centre) / body.born.unit, model.device
        body.guide = body.once(("guide", str(device)), lambda: guide_around(points, body.solid_distance, device))
    return body.guide


def guide_around(
    points: NDArray[np.floating], distance: Callable[[NDArray[np.floating]], NDArray[np.floating]], device: wp.Device
) -> DistanceGrid:
    """Distances of a solid around its surface points (n, 3), in spacings."""
    lower, upper = points.min(axis=0) - 1, points.max(axis=0) + 1
    cell = max(CELL, FINEST * float((upper - lower).max()))
    return laid_guide(lambda x: (x, x, distance(x)), lower, upper, cell, device)
