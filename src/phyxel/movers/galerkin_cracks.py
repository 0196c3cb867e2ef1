"""What lets cracks run in a Galerkin body (physics 12.3, 12.8): after each step its stress is looked at, they grow, and
its space is cut."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.body.fragments import held_places, shear_speeds
from phyxel.cracks.fracture import Samples
from phyxel.cracks.front import Front
from phyxel.material import Mixture
from phyxel.models.galerkin.point_functions import Extent
from phyxel.models.protocol import BrittleModel

if TYPE_CHECKING:
    from phyxel.body import Body

Floats = NDArray[np.float64]

BESIDE = 0.7
"""How far from where fronts were and are new parts of a crack can lie, in spacings."""


class GalerkinCracks:
    """Cracks of one body, as far as it has any."""

    def __init__(self, body: Body, model: BrittleModel) -> None:
        self._body, self.model = body, model
        self._known = 0
        """revision of the cracks that the space goes by"""
        self._of: Mixture | None = None
        """the mixture for which strengths and speeds of the points are known"""
        self._beside_fronts = False
        """whether the space was cut beside fronts only since all of it was looked at"""
        self.longest = math.inf
        """of a step [s]: fronts go a part of a spacing in it"""
        model.look_by(self._sees)
        body.space = model.space
        self.follow()

    def _sees(
        self, one: NDArray[np.floating], other: NDArray[np.floating], within: Extent | None = None
    ) -> NDArray[np.bool_]:
        fracture = self._body.fracture
        return np.ones(len(one), bool) if fracture is None else fracture.cracks.sees(one, other, within)

    def advance(self, dt: float) -> None:
        """A step of dt [s] is done: let cracks start and run."""
        fracture = self._body.fracture
        if fracture is None:
            return
        samples = self._samples()
        before = [crack.front for crack in fracture.cracks]
        if samples.load.max() > fracture.least and fracture.grow(samples, dt):
            self.follow(before)
            self._beside_fronts = True
            self.longest = fracture.longest_step(samples)
            return
        self.longest = math.inf
        if self._beside_fronts:
            # Level sets shift a little behind a front that turns: what that parts is found once it has come to rest.
            self._beside_fronts = False
            self._cut(None)

    def follow(self, before: Sequence[Front] | None = None) -> None:
        """Cut the space where cracks have come to lie; if fronts are given, only beside those that are others now."""
        fracture = self._body.fracture
        if fracture is None or fracture.cracks.revision == self._known:
            return
        self._known = fracture.cracks.revision
        boxes = None
        if before is not None:
            fronts = zip_longest((crack.front for crack in fracture.cracks), before)
            boxes = [_around(now, then) for now, then in fronts if now is not then]
        self._cut(boxes)

    def _cut(self, boxes: list[Extent] | None) -> None:
        with dev.one_blas_thread():
            changed = self.model.crack(boxes)
        if changed:
            self._body.space = self.model.space

    def _samples(self) -> Samples:
        """What pulls at the quadrature points."""
        body, space = self._body, self.model.space
        if self._of is not body.mixture:
            self._of = body.mixture
            self._strength = body.strength[space.owner]
            self._speed = shear_speeds(body)[space.owner]
        stress, J = self.model.point_stress()
        return Samples(space.points, stress, J, self._strength, self._speed, held_places(body))

    def state(self) -> dict[str, NDArray[Any]]:
        """What a checkpoint keeps of it."""
        return {"known": np.array([self._known, self._beside_fronts]), "longest": np.array(self.longest)}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave; model and cracks are as they were then already."""
        known, beside_fronts = state["known"].tolist()
        self._known, self._beside_fronts, self.longest = int(known), bool(beside_fronts), float(state["longest"])
        self._body.space = self.model.space
        if not self._body.reshaped:
            self._body.appearance.outdate()


def _around(now: Front, then: Front | None) -> Extent:
    """The box of what a crack has got."""
    points = now.points if then is None else np.concatenate([now.points, then.points])
    return points.min(axis=0) - BESIDE, points.max(axis=0) + BESIDE
