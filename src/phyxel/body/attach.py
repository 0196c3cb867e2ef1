"""Two bodies tied to each other: glued, sewn on, hung on each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from phyxel.body.holds import PICKED, surfel_at
from phyxel.errors import PhyxelError, brief, knows_its_arguments
from phyxel.region import Ball, Spot, Where
from phyxel.units import quantity

if TYPE_CHECKING:
    from phyxel.body.body import Body

Floats = NDArray[np.float64]


@knows_its_arguments
class Attach:
    """Ties two bodies of a world, `one` and the `other`, to each other where they touch, as they lie when it is added
    (physics 15.15); `name` is what messages call it.

    `where` says which places of the first one: a box, a ball, a spot or a function of its reference positions [m]; all
    that lie within half a node spacing of the other, if left out. `strength` [Pa] is what it bears, the pull over the
    area that is tied, as data sheets of glues have it; where more pulls it tears, place by place. Without, it never
    does. Surfaces are sewn on by their particles, each of which stands for its share of the area.

    >>> below, above = (px.Body(px.load("box", points=4000), model="rigid", size=1, at=(0, y, 0)) for y in (0, 1))
    >>> world = px.World()
    >>> for thing in (below, above):
    ...     world.add(thing)
    >>> glue = px.Attach(above, below, strength="20 kPa")
    >>> world.add(glue)
    >>> print(f"{glue.area:.2f} m²")
    1.00 m²
    """

    def __init__(
        self,
        one: Body,
        other: Body,
        where: Where | None = None,
        strength: float | str | None = None,
        name: str | None = None,
    ) -> None:
        for body in (one, other):
            if not hasattr(body, "kind"):
                raise PhyxelError(f"attach: {brief(body)}: give two bodies, made by px.Body(cloud)")
        self.one, self.other, self.where, self.name = one, other, where, name
        self.label = name or f"attach {one.name} to {other.name}"
        self.strength = None if strength is None else quantity(f"{self.label}: strength", strength, "Pa")
        if one is other:
            raise PhyxelError(f"{self.label}: a body hangs together by itself; give two bodies")
        if self.strength is not None and not 0 < self.strength < np.inf:
            raise PhyxelError(f"{self.label}: strength = {strength}: give a number above 0 [Pa], or none")
        if where is not None and not callable(where) and not isinstance(where, Spot):
            raise PhyxelError(f"{self.label}: where = {brief(where)}: give a box, a ball, a spot or a function")
        self.areas: Floats = np.zeros(0)
        """what each of its ties stands for [m²], shape (k,)"""
        self.normals: Floats = np.zeros((0, 3))
        """out of the finer body, in its reference shape; of a surface, out of the solid it is sewn to; shape (k, 3)"""
        self.holds: NDArray[np.bool_] = np.zeros(0, bool)
        """which of them still hold, shape (k,)"""
        self.pulls: Floats = np.zeros((0, 3))
        """what each of them bore in the last step, on the first body [N], shape (k, 3)"""
        self.torn: float | None = None
        """when the last of them tore [s]"""

    @property
    def area(self) -> float:
        """That is still tied [m²]."""
        return float(self.areas[self.holds].sum())

    @property
    def force(self) -> Floats:
        """That it bore in the last step, on the first body [N], shape (3,)."""
        return np.asarray(self.pulls[self.holds].sum(axis=0))

    def chosen(self, places: Floats) -> NDArray[np.bool_]:
        """Which reference positions (n, 3) [m] of the first body it is to tie."""
        where = self.where
        if where is None:
            return np.ones(len(places), bool)
        if isinstance(where, Spot):
            radius = PICKED * self.one.born.unit if where.radius is None else where.radius
            where = Ball(surfel_at(self.one, where.at), radius)
        assert callable(where)
        found = np.asarray(where(places))
        if found.shape != (len(places),):
            raise PhyxelError(f"{self.label}: the function returned shape {found.shape} for {len(places)} places")
        return found.astype(bool)
