"""What a particle surface is made of: skin, cloth, paper, tin, by the numbers of their data sheets, in SI units."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass

from phyxel.errors import MaterialError
from phyxel.material.material import Material

SOLIDS_ONLY = {
    "yield_strain": "it dents by plasticity and elastic_limit",
    "yield_stress": "it dents by plasticity and elastic_limit",
    "creep": "it dents by plasticity and elastic_limit",
    "max_strain": "it dents by plasticity and elastic_limit",
    "viscosity": "it cannot melt",
    "strength": "it cannot crack",
    "strength_scatter": "it cannot crack",
    "stiffness": "give young along the warp, weft across and shear",
}
"""Numbers of solids that mean nothing in a surface, and what to do instead."""
WOVEN = {
    "weft": "Young's modulus across the warp must be above 0 Pa; leave it out for one that is the same both ways",
    "shear": "the shear modulus must be 0 Pa or more (loose cloth: 1e5)",
    "bending": "the bending stiffness must be 0 N m or more (cotton: 8e-6)",
}
"""What follows from `young`, `poisson` and `thickness` unless it is given."""


@dataclass(frozen=True)
class Membrane(Material):
    """A thin surface for `model = "particles"`. Immutable: `membrane.but(young=2e6)` makes another.

    Each of its points is a particle: m q̈ + c q̇ + K (q − q₀) = F + P, with m = density · thickness · area,
    c = drag · m, K = foundation · area, and P by links as stiff as `young` and `thickness` say. Of the numbers of a
    solid it has `young`, `poisson`, `density`, `damping` (of its links) and `drag`.
    """

    thickness: float = 1.0e-3
    """[m], above 0"""
    foundation: float = 0.0
    """Winkler's modulus [N/m³], 0 or more: what pulls each point back to its rest place, per area and distance. It
    rings there with ω = √(K/m − (c/2m)²). 0: it goes where it is pushed"""
    plasticity: float = 0.0
    """share, 0..1, of how far a point went from its rest place beyond the `elastic_limit` that stays when it is let go;
    of what has a foundation"""
    elastic_limit: float = 0.0
    """distance from the rest place [m] up to which a point comes back wholly, 0 or more"""
    weft: float | None = None
    """Young's modulus [Pa] across the warp of a weave, which has `young`; None: the same"""
    shear: float | None = None
    """shear modulus [Pa] of a weave; None: that of an isotropic sheet, young/2(1 + poisson)"""
    bending: float | None = None
    """bending stiffness per width [N m]; None: that of a plate, young · thickness³/12(1 − poisson²)"""

    def __post_init__(self) -> None:
        for name, instead in SOLIDS_ONLY.items():
            if (value := getattr(self, name)) != getattr(Material, name):
                raise MaterialError(f"material.{name} = {value}: a particle surface has none; {instead}")
        super().__post_init__()
        own = ("thickness", "foundation", "plasticity", "elastic_limit")
        for name in (*own, *(name for name in WOVEN if getattr(self, name) is not None)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
                raise MaterialError(f"material.{name} = {value!r}: give a finite number")
        self._require(self.thickness > 0, "thickness", "the thickness must be above 0 m (cotton: 3.5e-4)")
        self._require(self.foundation >= 0, "foundation", "the foundation must be 0 N/m³ or more (skin on fat: 5e5)")
        self._require(0 <= self.plasticity <= 1, "plasticity", "plasticity must lie between 0 and 1")
        self._require(self.elastic_limit >= 0, "elastic_limit", "the elastic limit must be 0 m or more")
        for name, rule in WOVEN.items():
            value = getattr(self, name)
            self._require(value is None or value > 0 or (value == 0 and name != "weft"), name, rule)

    # Data sheets: middle values. Woven ones as a Kawabata test of a plain weave gives them, air between threads counted
    # in; bending is much less than that of a plate, as threads slide.

    @staticmethod
    def skin() -> Membrane:
        """Human skin, 2 mm, on the fat of a forearm or forehead."""
        return Membrane(
            young=5.0e5, poisson=0.48, density=1100.0, damping=2e-3, drag=200.0, thickness=2.0e-3, foundation=5.0e5
        )

    @staticmethod
    def latex() -> Membrane:
        """The rubber of a balloon, 0.3 mm."""
        return Membrane(young=1.2e6, poisson=0.49, density=940.0, damping=5e-4, drag=0.2, thickness=3.0e-4)

    @staticmethod
    def cotton() -> Membrane:
        """Plain weave cotton, 150 g/m²."""
        return Membrane(
            young=2.0e7, weft=1.2e7, shear=1.5e5, bending=8.0e-6,
            poisson=0.2, density=430.0, damping=2e-3, drag=0.5, thickness=3.5e-4,
        )  # fmt: skip

    @staticmethod
    def silk() -> Membrane:
        """Habotai silk, 65 g/m²."""
        return Membrane(
            young=4.0e7, weft=2.5e7, shear=1.2e5, bending=2.0e-6,
            poisson=0.2, density=540.0, damping=1e-3, drag=1.0, thickness=1.2e-4,
        )  # fmt: skip

    @staticmethod
    def felt() -> Membrane:
        """Pressed wool felt, 3 mm, 750 g/m²."""
        return Membrane(young=2.0e6, poisson=0.2, density=250.0, damping=5e-3, drag=0.3, thickness=3.0e-3)

    @staticmethod
    def tin() -> Membrane:
        """A shell of sheet tin, 0.5 mm, that gives 2 mm and then keeps its dents."""
        return Membrane(
            young=5.0e10, poisson=0.36, density=7300.0, drag=60.0, thickness=5.0e-4,
            foundation=2.0e6, plasticity=0.8, elastic_limit=2.0e-3,
        )  # fmt: skip

    @staticmethod
    def paper() -> Membrane:
        """Office paper, 80 g/m²."""
        return Membrane(
            young=5.0e9, weft=2.5e9, shear=1.4e9, bending=4.0e-4,
            poisson=0.3, density=800.0, damping=1e-4, drag=1.0, thickness=1.0e-4,
        )  # fmt: skip

    @staticmethod
    def preset(name: str) -> Membrane:
        """A preset by its name: `Membrane.preset("cotton")`."""
        if name not in MEMBRANES:
            raise MaterialError(f'membrane preset "{name}": not known; there are {", ".join(MEMBRANES)}')
        return getattr(Membrane, name)()


MEMBRANES = ("skin", "latex", "cotton", "silk", "felt", "tin", "paper")
