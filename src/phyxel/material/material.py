"""What a body is made of: the numbers of a data sheet, in SI units."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from phyxel.errors import MaterialError, did_you_mean, knows_its_arguments
from phyxel.material.number import Number, units_of
from phyxel.material.presets import PRESETS, call_of
from phyxel.units import amount_text, quantity

Matrix = NDArray[np.float64]


def _written(value: float, unit: str) -> str:
    return amount_text(value, unit) if unit == "Pa" else f"{value:g} {unit}".strip()


def _preset(name: str) -> staticmethod[[], Material]:
    def made() -> Material:
        return Material.preset(name)

    return call_of(made, f"Material.{name}", PRESETS[name])


@knows_its_arguments
@dataclass(frozen=True)
class Material:
    """An elastic or plastic material. Immutable: `material.but(young=2e6)` makes another.

    Numbers are in SI units, or texts with a unit of their own: `Material(young="2 GPa", density="1.2 g/cm³")`.

    >>> steel = px.Material(young="210 GPa", poisson=0.3, density="7.85 g/cm³")
    >>> steel.but(yield_stress="250 MPa").yield_stress
    250000000.0
    """

    young: Number[float] = Number(1.0e6, "Pa")
    """Young's modulus [Pa], above 0"""
    poisson: Number[float] = Number(0.4, "")
    """Poisson's ratio, above -1 and below 0.5"""
    density: Number[float] = Number(1000.0, "kg/m³")
    """[kg/m³], above 0"""
    damping: Number[float] = Number(0.0, "s")
    """Rayleigh's β [s]: inner friction, a force −βK v. Leaves rigid motion alone."""
    drag: Number[float] = Number(0.0, "1/s")
    """Rayleigh's α [1/s]: resistance of the surroundings, a force −αM v. Slows falling, too."""
    yield_strain: Number[float | None] = Number(None, "")
    """|deviator of the elastic strain| (Frobenius) beyond which it flows; None: it never does"""
    yield_stress: Number[float | None] = Number(None, "Pa")
    """[Pa], the same as a tensile test gives it; in place of yield_strain"""
    creep: Number[float] = Number(math.inf, "1/s")
    """[1/s]: how fast strain beyond the yield becomes permanent; inf: at once"""
    max_strain: Number[float] = Number(0.5, "")
    """largest permanent strain (Frobenius), above 0 and below 0.6"""
    viscosity: Number[float | None] = Number(None, "Pa s")
    """[Pa s] of a melt: it has no shape of its own, and its stress fades at the rate μ/viscosity; None: a solid"""
    strength: Number[float | None] = Number(None, "Pa")
    """[Pa]: the largest principal (tensile) stress it bears before it cracks; None or inf: it never does"""
    strength_scatter: Number[float] = Number(0.0, "")
    """standard deviation of the strength from place to place, over the strength; 0: the same everywhere"""
    stiffness: tuple[tuple[float, ...], ...] | None = field(default=None, repr=False)
    """anisotropic C [Pa], 6 × 6, order xx, yy, zz, yz, xz, xy with engineering shear; replaces young and poisson"""

    def __post_init__(self) -> None:
        if self.stiffness is not None:
            object.__setattr__(self, "stiffness", tuple(tuple(float(c) for c in row) for row in self.stiffness))
        self._require_finite("young", "poisson", "density", "damping", "drag", "strength_scatter")
        self._require(self.young > 0, "young", "Young's modulus must be above 0 Pa (rubber: 1e6, steel: 2e11)")
        self._require(
            -1 < self.poisson < 0.5,
            "poisson",
            "Poisson's ratio must lie between -1 and 0.5, both excluded (incompressible rubber: 0.49)",
        )
        self._require(self.density > 0, "density", "density must be above 0 kg/m³ (water: 1000)")
        self._require(self.damping >= 0, "damping", "damping must be 0 s or more")
        self._require(self.drag >= 0, "drag", "drag must be 0 1/s or more")
        self._check_flow()
        self._check_strength()
        if self.stiffness is not None:
            self._check_stiffness()

    def _check_flow(self) -> None:
        if self.yield_strain is not None and self.yield_stress is not None:
            raise MaterialError("material: give yield_strain or yield_stress, not both")
        for name in ("yield_strain", "yield_stress", "creep", "max_strain", "viscosity"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, numbers.Real) or isinstance(value, bool) or value != value):
                raise MaterialError(f"material.{name} = {value!r}: give a number")
        strain, stress, viscosity = self.yield_strain, self.yield_stress, self.viscosity
        self._require(strain is None or strain > 0, "yield_strain", "the yield strain must be above 0 (clay: 0.01)")
        self._require(stress is None or stress > 0, "yield_stress", "the yield stress must be above 0 Pa (lead: 1.2e7)")
        self._require(self.creep >= 0, "creep", "creep must be 0 1/s or more")
        self._require(
            viscosity is None or 0 < viscosity < math.inf,
            "viscosity",
            "the viscosity of a melt must be above 0 Pa s (honey: 10, bitumen: 1e4)",
        )
        self._require(
            0 < self.max_strain < 0.6, "max_strain", "the largest permanent strain must lie between 0 and 0.6"
        )

    def _check_strength(self) -> None:
        strength = self.strength
        if strength is not None and (isinstance(strength, bool) or not isinstance(strength, numbers.Real)):
            raise MaterialError(f"material.strength = {strength!r}: give a number of Pa")
        self._require(
            strength is None or strength > 0,
            "strength",
            "the tensile strength must be above 0 Pa (concrete: 3e6); leave it out for what never cracks",
        )
        self._require(
            0 <= self.strength_scatter <= 1,
            "strength_scatter",
            "the scatter of the strength must lie between 0 and 1 (glass: 0.2)",
        )

    @property
    def flow_strain(self) -> float:
        """|deviator of the elastic strain| at yield (physics 6.2): given, or √(2/3) σ_y/(2μ); inf for an elastic
        material, 0 for a melt."""
        if self.viscosity is not None:
            return 0.0
        if self.yield_stress is not None:
            return math.sqrt(2 / 3) * self.yield_stress / (2 * self.lame[1])
        return math.inf if self.yield_strain is None else self.yield_strain

    @property
    def relaxation(self) -> float:
        """Rate at which strain beyond the yield becomes permanent [1/s] (physics 7.2): creep, or that of Maxwell's
        fluid, μ/η."""
        return self.creep if self.viscosity is None else self.lame[1] / self.viscosity

    def _require_finite(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
                raise MaterialError(f"material.{name} = {value!r}: give a finite number")

    def _require(self, fine: bool, name: str, rule: str) -> None:
        if not fine:
            raise MaterialError(f"material.{name} = {getattr(self, name):g}: {rule}")

    def _check_stiffness(self) -> None:
        try:
            matrix = np.array(self.stiffness, np.float64)
        except ValueError:
            matrix = np.empty(0)
        if matrix.shape != (6, 6) or not np.isfinite(matrix).all():
            raise MaterialError("material.stiffness: give 6 rows of 6 finite numbers [Pa]")
        if not np.allclose(matrix, matrix.T, rtol=1e-6) or np.linalg.eigvalsh(matrix).min() <= 0:
            raise MaterialError("material.stiffness: C must be symmetric and positive definite, or energy is not kept")

    def __str__(self) -> str:
        """In a few words: stiffness and density, and what other numbers it has that most have not."""
        usual = {"young", "poisson", "density"}
        unsaid = set() if self.stiffness is None else {"young", "poisson"}
        words = [
            f"{name} {_written(getattr(self, name), unit)}"
            for name, unit in units_of(type(self)).items()
            if name not in unsaid and (name in usual or getattr(self, name) != getattr(type(self), name))
        ]
        return ", ".join(["anisotropic", *words] if unsaid else words)

    def but(self, **changes: Any) -> Self:
        """The same material with some numbers changed."""
        known = self.__dataclass_fields__
        if unknown := set(changes) - set(known):
            raise MaterialError(f"material.{min(unknown)}: not known{did_you_mean(min(unknown), known)}")
        if self.stiffness is not None and {"young", "poisson"} & set(changes) and "stiffness" not in changes:
            raise MaterialError("material: an anisotropic material has no single young or poisson; give stiffness")
        return replace(self, **changes)

    @property
    def elasticity(self) -> Matrix:
        """C [Pa], 6 × 6, σ = C ε in the order xx, yy, zz, yz, xz, xy with engineering shear (physics 3.1)."""
        if self.stiffness is not None:
            return np.array(self.stiffness)
        lame, shear = self.lame
        matrix = np.diag([2 * shear] * 3 + [shear] * 3)
        matrix[:3, :3] += lame
        return matrix

    @property
    def lame(self) -> tuple[float, float]:
        """λ and μ [Pa] of the isotropic law (physics 3.1)."""
        return (
            self.young * self.poisson / ((1 + self.poisson) * (1 - 2 * self.poisson)),
            self.young / (2 * (1 + self.poisson)),
        )

    @property
    def bulk(self) -> float:
        """Bulk modulus K = λ + ⅔μ [Pa] of the isotropic law."""
        lame, shear = self.lame
        return lame + 2 / 3 * shear

    @staticmethod
    def orthotropic(
        young: tuple[float, float, float],
        poisson: tuple[float, float, float],
        shear: tuple[float, float, float],
        **others: float,
    ) -> Material:
        """A material with three axes: E along x, y, z; ν_yz, ν_xz, ν_xy; G_yz, G_xz, G_xy."""
        along = [float(quantity("material.young", one, "Pa")) for one in young]
        against = [float(quantity("material.shear", one, "Pa")) for one in shear]
        if min(*along, *against) <= 0:
            raise MaterialError("material: orthotropic moduli must be above 0 Pa")
        compliance = np.diag([*(1 / e for e in along), *(1 / g for g in against)])
        for (row, column), ratio in zip(((1, 2), (0, 2), (0, 1)), poisson, strict=True):
            compliance[row, column] = compliance[column, row] = -ratio / along[row]
        matrix = np.linalg.inv(compliance)
        matrix = 0.5 * (matrix + matrix.T)
        return Material(young=float(np.prod(along) ** (1 / 3)), stiffness=tuple(map(tuple, matrix)), **others)

    # Data sheets (`presets`).
    rubber = _preset("rubber")
    silicone = _preset("silicone")
    gelatin = _preset("gelatin")
    foam = _preset("foam")
    clay = _preset("clay")
    wax = _preset("wax")
    cork = _preset("cork")
    wood = _preset("wood")
    ice = _preset("ice")
    concrete = _preset("concrete")
    glass = _preset("glass")
    stone = _preset("stone")
    ceramic = _preset("ceramic")
    aluminium = _preset("aluminium")
    steel = _preset("steel")

    @staticmethod
    def preset(name: str) -> Material:
        """A preset by its name: `Material.preset("rubber")`."""
        if name not in PRESETS:
            raise MaterialError(f'material preset "{name}": not known{did_you_mean(str(name), PRESETS)}')
        numbers = PRESETS[name].numbers
        make = Material.orthotropic if isinstance(numbers["young"], tuple) else Material
        return make(**numbers)


@dataclass(frozen=True)
class Mixture:
    """What each node of a body is made of."""

    materials: tuple[Material, ...]
    which: NDArray[np.int64]
    """index into `materials`, shape (n,)"""

    @staticmethod
    def even(material: Material, nodes: int) -> Mixture:
        """The same everywhere."""
        return Mixture((material,), np.zeros(nodes, np.int64))

    @staticmethod
    def of(materials: Sequence[Material]) -> Mixture:
        """A material for each node."""
        distinct = list(dict.fromkeys(materials))
        rank = {material: k for k, material in enumerate(distinct)}
        return Mixture(tuple(distinct), np.array([rank[material] for material in materials]))

    def number(self, name: str) -> NDArray[np.float64]:
        """One number of the material at each node, shape (n,); NaN where there is none."""
        values = [getattr(material, name) for material in self.materials]
        return np.array([math.nan if value is None else value for value in values], np.float64)[self.which]

    def signature(self) -> bytes:
        """All of it, to be hashed."""
        named = repr([(material, material.stiffness) for material in self.materials])
        return named.encode() + np.ascontiguousarray(self.which, np.int64).tobytes()

    def part(self, nodes: NDArray[np.integer]) -> Mixture:
        """That of some nodes, (k,)."""
        return Mixture(self.materials, self.which[nodes])

    def where(self, chosen: NDArray[np.bool_], other: Mixture) -> Mixture:
        """Another mixture, with what `other` has at the chosen nodes, (n,)."""
        if chosen.all():
            return other
        both = zip(self.which.tolist(), other.which.tolist(), chosen.tolist(), strict=True)
        return Mixture.of([other.materials[k] if take else self.materials[j] for j, k, take in both])

    def changed(self, where: NDArray[np.bool_], change: Callable[[Material], Material]) -> Mixture:
        """Another mixture, with the material changed at the nodes `where` says, (n,)."""
        changed = {k: change(self.materials[k]) for k in np.unique(self.which[where]).tolist()}
        pairs = zip(self.which.tolist(), where.tolist(), strict=True)
        return Mixture.of([changed[k] if chosen else self.materials[k] for k, chosen in pairs])


def rotated_elasticity(elasticity: Matrix, rotation: Matrix) -> Matrix:
    """C of a material turned by `rotation` (3 × 3), in the fixed axes: C' = T C Tᵀ with Bond's matrix T."""
    pairs = ((0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1))
    bond = np.empty((6, 6))
    for row, (a, b) in enumerate(pairs):
        for column, (c, d) in enumerate(pairs):
            bond[row, column] = rotation[a, c] * rotation[b, d]
            if c != d:
                bond[row, column] += rotation[a, d] * rotation[b, c]
    return bond @ elasticity @ bond.T
