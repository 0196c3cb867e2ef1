"""What a particle surface is made of: skin, cloth, paper, tin, by the numbers of their data sheets, in SI units."""

from __future__ import annotations

from dataclasses import dataclass

from phyxel.errors import MaterialError, did_you_mean, knows_its_arguments
from phyxel.material.material import Material
from phyxel.material.number import Number
from phyxel.material.presets import MEMBRANES, call_of

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


def _preset(name: str) -> staticmethod[[], Membrane]:
    def made() -> Membrane:
        return Membrane.preset(name)

    return call_of(made, f"Membrane.{name}", MEMBRANES[name])


@knows_its_arguments
@dataclass(frozen=True)
class Membrane(Material):
    """A thin surface for `model = "particles"`. Immutable: `membrane.but(young=2e6)` makes another.

    Each of its points is a particle: m q̈ + c q̇ + K (q − q₀) = F + P, with m = density · thickness · area,
    c = drag · m, K = foundation · area, and P by links as stiff as `young` and `thickness` say. Of the numbers of a
    solid it has `young`, `poisson`, `density`, `damping` (of its links) and `drag`.

    >>> cotton = px.Membrane.cotton().but(thickness="0.5 mm")
    >>> cloth = px.Body(px.load("cloth", points=100), model="particles", material=cotton)
    >>> print(f"{cloth.masses.sum() / (cotton.density * cotton.thickness):.2f} m²")
    1.00 m²
    """

    thickness: Number[float] = Number(1.0e-3, "m")
    """[m], above 0"""
    foundation: Number[float] = Number(0.0, "N/m³")
    """Winkler's modulus [N/m³], 0 or more: what pulls each point back to its rest place, per area and distance. It
    rings there with ω = √(K/m − (c/2m)²). 0: it goes where it is pushed"""
    plasticity: Number[float] = Number(0.0, "")
    """share, 0..1, of how far a point went from its rest place beyond the `elastic_limit` that stays when it is let go;
    only with a foundation"""
    elastic_limit: Number[float] = Number(0.0, "m")
    """distance from the rest place [m] up to which a point comes back wholly, 0 or more"""
    weft: Number[float | None] = Number(None, "Pa")
    """Young's modulus [Pa] across the warp of a weave, which has `young`; None: the same"""
    shear: Number[float | None] = Number(None, "Pa")
    """shear modulus [Pa] of a weave; None: that of an isotropic sheet, young/2(1 + poisson)"""
    bending: Number[float | None] = Number(None, "N m")
    """bending stiffness per width [N m]; None: that of a plate, young · thickness³/12(1 − poisson²)"""

    def __post_init__(self) -> None:
        for name, instead in SOLIDS_ONLY.items():
            if (value := getattr(self, name)) != getattr(Material, name):
                raise MaterialError(f"material.{name} = {value}: a particle surface has none; {instead}")
        super().__post_init__()
        own = ("thickness", "foundation", "plasticity", "elastic_limit")
        self._require_finite(*own, *(name for name in WOVEN if getattr(self, name) is not None))
        self._require(self.thickness > 0, "thickness", "the thickness must be above 0 m (cotton: 3.5e-4)")
        self._require(self.foundation >= 0, "foundation", "the foundation must be 0 N/m³ or more (skin on fat: 5e5)")
        self._require(0 <= self.plasticity <= 1, "plasticity", "plasticity must lie between 0 and 1")
        self._require(self.elastic_limit >= 0, "elastic_limit", "the elastic limit must be 0 m or more")
        for name, rule in WOVEN.items():
            value = getattr(self, name)
            self._require(value is None or value > 0 or (value == 0 and name != "weft"), name, rule)

    # Data sheets (`presets`).
    skin = _preset("skin")
    latex = _preset("latex")
    cotton = _preset("cotton")
    silk = _preset("silk")
    felt = _preset("felt")
    tin = _preset("tin")
    paper = _preset("paper")

    @staticmethod
    def preset(name: str) -> Membrane:
        """A preset by its name: `Membrane.preset("cotton")`."""
        if name not in MEMBRANES:
            raise MaterialError(f'membrane preset "{name}": not known{did_you_mean(str(name), MEMBRANES)}')
        return Membrane(**MEMBRANES[name].numbers)
