"""What a body is made of now, and what it becomes: another material, a melt, a solid again."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from phyxel.material.material import Material, Mixture
from phyxel.material.ramp import Ramp
from phyxel.material.variation import Recipe

MELTING_TIME = 0.05
"""Viscosity of a melt over the pressure of its own height [s], unless it is given."""
MELTED_STIFFNESS = 30.0
"""Largest Young's modulus of a melt over the pressure of its own height: stiffer melts only take smaller steps."""


@dataclass(frozen=True, eq=False)
class Substance:
    """The materials of a body's nodes. It is replaced, not edited."""

    recipe: Recipe
    material: Material
    """the basic one"""
    mixture: Mixture
    """what each node is made of"""
    solid: Mixture
    """what each node was when it was last solid"""
    ramp: Ramp | None = None
    """the change that is going on"""

    @staticmethod
    def at_birth(recipe: Recipe) -> Substance:
        """What a recipe gives of its own basic material."""
        mixture = recipe.mixed(recipe.base)
        return Substance(recipe, recipe.base, mixture, mixture)

    def part(self, nodes: NDArray[np.integer]) -> Substance:
        """That of some nodes, (k,) ascending."""
        mixture, solid = self.mixture.part(nodes), self.solid.part(nodes)
        return replace(self, recipe=self.recipe.part(nodes), mixture=mixture, solid=solid)

    @property
    def is_molten(self) -> NDArray[np.bool_]:
        """Of each node, shape (n,)."""
        return ~np.isnan(self.mixture.number("viscosity"))

    def made_of(self, material: Material, keep_melt: bool = False) -> Substance:
        """With another basic material, and if asked for, molten nodes as they are; these will solidify as the new
        one."""
        mixture, solid = self.recipe.mixed(material), self.solid
        if keep_melt and material.viscosity is None:
            solid = solid.where(self.is_molten, mixture)
            mixture = self.mixture.where(~self.is_molten, mixture)
        return replace(self, material=material, solid=solid)._mixed(mixture)

    def melted(self, chosen: NDArray[np.bool_], viscosity: float | None, height: float) -> Substance:
        """With chosen nodes (n,) of a body of a height [m] molten."""
        return self._mixed(self.mixture.changed(chosen, lambda solid: melt_of(solid, viscosity, height)))

    def solidified(self, molten: NDArray[np.bool_], material: Material | None) -> Substance:
        """With molten nodes (n,) solid: as they were, or of another material."""
        solid = self.solid.changed(molten, lambda was: material or was.but(viscosity=None))
        new = self._mixed(self.mixture.where(molten, solid))
        if self.material.viscosity is None or new.is_molten.any():
            return new
        return replace(new, material=material or self.material.but(viscosity=None))

    def _mixed(self, mixture: Mixture) -> Substance:
        solid = self.solid.where(np.isnan(mixture.number("viscosity")), mixture)
        return replace(self, mixture=mixture, solid=solid)

    def at(self, time: float) -> Substance | None:
        """What the change that is going on has made of it at a time [s], if that is another."""
        if self.ramp is None or (material := self.ramp.at(time)) == self.material:
            return None
        return self.made_of(material, keep_melt=True)


def melt_of(solid: Material, viscosity: float | None, height: float) -> Material:
    """What a material of a body of a height [m] melts to (physics 7.2); with a viscosity [Pa s], or one with which it
    takes some seconds to spread."""
    if solid.viscosity is not None:
        return solid if viscosity is None else solid.but(viscosity=viscosity)
    weight = solid.density * 9.81 * height
    return solid.but(
        viscosity=MELTING_TIME * weight if viscosity is None else viscosity,
        young=min(solid.young, MELTED_STIFFNESS * weight),
        poisson=min(solid.poisson, 0.45),
        damping=0.0,  # β would be a viscosity βμ beside the one that is asked for
        stiffness=None,
        yield_strain=None,
        yield_stress=None,
    )
