"""Places in a body that are asked again and again: what carries them is found once, in the reference shape."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from phyxel.mls.carry import Carriers
from phyxel.mls.neighbours import nearest
from phyxel.models.protocol import FieldModel

if TYPE_CHECKING:
    from phyxel.body.body import Body

Floats = NDArray[np.float64]


class Probe(Protocol):
    """What a body has at some places (m, 3) of its reference shape, now."""

    body: Body
    X: Floats
    """[m], shape (m, 3)"""

    def displacement(self) -> Floats:
        """u [m], shape (m, 3)."""

    def velocity(self) -> Floats:
        """[m/s], shape (m, 3)."""

    def gradient(self) -> Floats:
        """∇u, (∇u)_ab = ∂u_a/∂X_b, shape (m, 3, 3)."""

    def stress(self) -> Floats:
        """Cauchy's [Pa], shape (m, 3, 3)."""

    def plastic(self) -> Floats:
        """Permanent strain, shape (m, 3, 3)."""

    @property
    def distance(self) -> Floats:
        """To the surface of the first reference shape [m], negative inside, shape (m,)."""


class _Places:
    """Places of a body's reference shape."""

    def __init__(self, body: Body, X: Floats) -> None:
        self.body, self.X = body, X

    @cached_property
    def distance(self) -> Floats:
        born = self.body.born
        return born.unit * self.body.solid_distance((self.X - born.centre) / born.unit)


class FieldProbe(_Places):
    """Places in a Galerkin or modal body: shape functions carry them."""

    def __init__(self, body: Body, model: FieldModel, X: Floats) -> None:
        super().__init__(body, X)
        self._model = model
        self._at = model.space.at((X - body.centre) / body.unit)
        self._owner = nearest(X, body.birth, 1)[1][:, 0]

    def displacement(self) -> Floats:
        body = self.body
        return body.origin - body.centre + body.unit * self._model.displacement(self._at)

    def velocity(self) -> Floats:
        return self.body.unit * np.asarray(self._at.values @ self._model.v)

    def gradient(self) -> Floats:
        return self._model.gradient(self._at)

    def stress(self) -> Floats:
        mixture = self.body.mixture
        return self._model.stress(self._at, mixture, mixture.which[self._owner])

    def plastic(self) -> Floats:
        return self._model.plastic(self._at)


class SheetProbe(_Places):
    """Places on a particle surface: the nearest particle carries them, turned and stretched as its surroundings are."""

    def __init__(self, body: Body, X: Floats) -> None:
        super().__init__(body, X)
        self._owner = nearest(X, body.birth, 1)[1][:, 0]
        self._beside = X - body.birth[self._owner]

    def displacement(self) -> Floats:
        body, near = self.body, self._owner
        beside = np.einsum("mab,mb->ma", self.gradient(), self._beside)
        return body.origin - body.centre + body.unit * body.nodal.u[near] + beside

    def velocity(self) -> Floats:
        v, slopes = self.body.velocities, self.body.ring.values.gradients
        along = np.stack([(slope @ v)[self._owner] for slope in slopes], axis=2) / self.body.unit
        return v[self._owner] + np.einsum("mab,mb->ma", along, self._beside)

    def gradient(self) -> Floats:
        """∇u along the sheet; across it such that its normal stays one."""
        return self.body.nodal.gradient[self._owner]

    def stress(self) -> Floats:
        raise self.body.no_solid("stress")

    def plastic(self) -> Floats:
        raise self.body.no_solid("permanent strain")


class CarriedProbe(_Places):
    """Places in a phyxel body: the phyxels around carry them, and they have the mean of what these have. `carriers` are
    those, if they are known."""

    def __init__(self, body: Body, X: Floats, carriers: Carriers | None = None) -> None:
        super().__init__(body, X)
        self._points, self._nodes = ((places - body.centre) / body.unit for places in (X, body.reference))
        if carriers is not None:
            self._carriers = carriers
        elif body.fracture is not None and body.has_cracked and not body.reshaped:
            past_cracks = body.fracture.cracks.sees
            self._carriers = Carriers.beside_cracks(self._points, self._nodes, body.sees, past_cracks)
        else:
            self._carriers = Carriers.found(self._points, self._nodes, None if body.reshaped else body.sees)
        self._shares = self._carriers.matrix(len(self._nodes))

    def displacement(self) -> Floats:
        body = self.body
        u, gradient = body.nodal.u, body.nodal.gradient
        # Σ ω_i (u_i + ∇u_i (X − X_i)) = Σ ω_i (u_i − ∇u_i X_i) + ∇u X
        fixed = self._mean(u - (gradient @ self._nodes[:, :, None])[:, :, 0])
        carried = fixed + (self._mean(gradient) @ self._points[:, :, None])[:, :, 0]
        return body.origin - body.centre + body.unit * carried

    def velocity(self) -> Floats:
        return self._mean(self.body.velocities)

    def gradient(self) -> Floats:
        return self._mean(self.body.nodal.gradient)

    def stress(self) -> Floats:
        return self._mean(self.body.stress)

    def plastic(self) -> Floats:
        return self._mean(self.body.plastic_strain)

    def _mean(self, values: NDArray[Any]) -> Floats:
        mean = self._shares @ values.reshape(len(values), -1)
        return np.asarray(mean).reshape(-1, *values.shape[1:])
