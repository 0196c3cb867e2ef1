# mypy: disable-error-code="valid-type,no-untyped-def"
"""The law: energy, stress and its change as functions of J = I + ∇u and what the reference shape has stored, the strain
εᵖ and the volume ratio s; how these two flow (device functions); and the table of all laws (physics 3, 6, 7.2).

    W(J) = ½ e:C':e + ½ k_v (s|J| − 1)² + ½ k_b min(s|J| − 0.3, 0)²,   e = ½(JᵀJ − I) − εᵖ,   C' = C − k_v 1⊗1

M04 adds a volume term on top of Hooke's law, which changes Poisson's ratio. Here the volume term takes λ's part instead
(k_v = λ): the small-strain law is C exactly, and large stretch keeps its volume, which Green's strain alone does not.
The k_b term is a wall against inversion. Generic in precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.material.material import Material, rotated_elasticity

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]

MOST_STRAIN = wp.constant(0.2)
"""Largest elastic strain of a melt."""
WALL = wp.constant(0.3)
"""|J| below which the wall against inversion acts."""
MANDEL = np.sqrt([1.0, 1.0, 1.0, 2.0, 2.0, 2.0])
"""Turns a 6 × 6 elasticity into one whose eigenvalues are the tensor's."""
VOIGT = ((0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1))
ENGINEERING = np.array([1.0, 1.0, 1.0, 2.0, 2.0, 2.0])
"""The order of a 6 × 6 elasticity, and how often it counts each component."""
COUNTED = 1 / ENGINEERING[:, None]
UNLOCKED = 0.75
"""k_v over the modulus 2μ of shear up to which a volume term locks nothing that shear would not: that of ν = 0.3."""
LARGEST = 1e6
"""Yield strain, or creep [1/s], that stands for an infinite one: single precision has room above it."""


@wp.func
def green_strain(J: Any):
    """ε = ½(JᵀJ − I) (STAR eq. 1, physics 1.1; M04 drops the ½)."""
    return (wp.transpose(J) * J - wp.identity(n=3, dtype=J.dtype)) * J.dtype(0.5)


@wp.func
def hooke(C: Any, e: Any):
    """σ = C ε as symmetric 3 × 3 matrices (M04 §2, physics 3.1)."""
    two = e.dtype(2.0)
    s = C * wp.vector(e[0, 0], e[1, 1], e[2, 2], two * e[1, 2], two * e[0, 2], two * e[0, 1])
    return wp.matrix_from_rows(
        wp.vector(s[0], s[5], s[4]),
        wp.vector(s[5], s[1], s[3]),
        wp.vector(s[4], s[3], s[2]),
    )


@wp.func
def cofactor(J: Any):
    """∂|J|/∂J: the cross products of J's rows."""
    return wp.matrix_from_rows(wp.cross(J[1], J[2]), wp.cross(J[2], J[0]), wp.cross(J[0], J[1]))


@wp.func
def cofactor_change(J: Any, dJ: Any):
    """Change of the cofactor along dJ."""
    return wp.matrix_from_rows(
        wp.cross(dJ[1], J[2]) + wp.cross(J[1], dJ[2]),
        wp.cross(dJ[2], J[0]) + wp.cross(J[2], dJ[0]),
        wp.cross(dJ[0], J[1]) + wp.cross(J[0], dJ[1]),
    )


@wp.func
def energy_density(J: Any, plastic: Any, swell: Any, C: Any, k_v: Any, k_b: Any):
    """W(J) [Pa] (physics 3.2)."""
    e = green_strain(J) - plastic
    volume = swell * wp.determinant(J)
    stretch = volume - J.dtype(1.0)
    wall = wp.min(volume - J.dtype(WALL), J.dtype(0.0))
    return J.dtype(0.5) * (wp.ddot(e, hooke(C, e)) + k_v * stretch * stretch + k_b * wall * wall)


@wp.func
def first_stress(J: Any, plastic: Any, swell: Any, C: Any, k_v: Any, k_b: Any):
    """∂W/∂J = Jσ + s p cof J [Pa] (M04 eq. 13, 15 with our corrections, physics 3.3)."""
    volume = swell * wp.determinant(J)
    p = k_v * (volume - J.dtype(1.0)) + k_b * wp.min(volume - J.dtype(WALL), J.dtype(0.0))
    return J * hooke(C, green_strain(J) - plastic) + cofactor(J) * (swell * p)


@wp.func
def straining_stress(J: Any, swell: Any, dJ: Any, C: Any, k_v: Any, k_b: Any):
    """What of the change of ∂W/∂J along dJ comes of the strain that dJ makes, not of stress that turns with it: none if
    dJ is a rotation's, and its work on dJ is never negative (physics 3.4)."""
    slope = k_v + wp.where(swell * wp.determinant(J) < J.dtype(WALL), k_b, J.dtype(0.0))
    cof = cofactor(J) * swell
    half = wp.transpose(J) * dJ
    return J * hooke(C, (half + wp.transpose(half)) * J.dtype(0.5)) + cof * (slope * wp.ddot(cof, dJ))


@wp.func
def first_stress_change(J: Any, plastic: Any, swell: Any, dJ: Any, C: Any, k_v: Any, k_b: Any):
    """Change of ∂W/∂J along dJ: the exact tangent (physics 3.4)."""
    volume = swell * wp.determinant(J)
    p = k_v * (volume - J.dtype(1.0)) + k_b * wp.min(volume - J.dtype(WALL), J.dtype(0.0))
    turning = dJ * hooke(C, green_strain(J) - plastic) + cofactor_change(J, dJ) * (swell * p)
    return straining_stress(J, swell, dJ, C, k_v, k_b) + turning


@wp.func
def positive_part(A: Any):
    """A symmetric matrix without its negative eigenvalues."""
    Q, values = wp.eig3(A)
    none = A.dtype(0.0)
    kept = wp.vector(wp.max(values[0], none), wp.max(values[1], none), wp.max(values[2], none))
    return Q * wp.diag(kept) * wp.transpose(Q)


@wp.func
def positive_stress_change(J: Any, plastic: Any, swell: Any, dJ: Any, C: Any, k_v: Any, k_b: Any):
    """The tangent without what can make it indefinite: compressive stress, and the pressure's turning cofactor
    (physics 3.4)."""
    turning = dJ * positive_part(hooke(C, green_strain(J) - plastic))
    return straining_stress(J, swell, dJ, C, k_v, k_b) + turning


@wp.func
def flowed(strain: Any, plastic: Any, yield_strain: Any, flow: Any, max_strain: Any):
    """εᵖ after a step (M04 §4.1, physics 6.1): the part of the elastic strain's deviator above the yield
    goes over, at most the share `flow` = 1 − exp(−creep Δt) of it, and |εᵖ| stays below `max_strain`."""
    elastic = strain - plastic
    one = elastic.dtype(1.0)
    deviator = elastic - wp.trace(elastic) / elastic.dtype(3.0) * wp.identity(n=3, dtype=elastic.dtype)
    size = wp.sqrt(wp.ddot(deviator, deviator))
    if size <= yield_strain:
        return plastic
    grown = plastic + deviator * wp.min(flow, one - yield_strain / size)
    return grown * wp.min(one, max_strain / wp.sqrt(wp.ddot(grown, grown)))


@wp.func
def molten(J: Any, plastic: Any, share: Any):
    """εᵖ of a melt after a step: the elastic strain fades by `share` = 1 − exp(−Δt μ/η), and what is torn off does not
    keep more than MOST_STRAIN of it (physics 7.2)."""
    strain = green_strain(J)
    left = (strain - plastic) * (J.dtype(1.0) - share)
    size = wp.sqrt(wp.ddot(left, left))
    if size > J.dtype(MOST_STRAIN):
        left *= J.dtype(MOST_STRAIN) / size
    return strain - left


@wp.func
def molten_swell(J: Any, swell: Any, share: Any):
    """s of a melt after a step: s|J| goes to 1 by `share`. The pressure between neighbours takes over from it
    (physics 7.2)."""
    one = J.dtype(1.0)
    ratio = wp.max(wp.determinant(J), J.dtype(0.1))
    left = wp.clamp((one - share) * (swell * ratio - one), -J.dtype(MOST_STRAIN), J.dtype(MOST_STRAIN))
    return (one + left) / ratio


@wp.func
def largest_eigenvalue_bound(A: Any):
    """mean + 2√(dev:dev/6) of a symmetric matrix: its largest eigenvalue if the other two are equal, else more."""
    mean = wp.trace(A) / A.dtype(3.0)
    deviator = A - mean * wp.identity(n=3, dtype=A.dtype)
    return mean + A.dtype(2.0) * wp.sqrt(wp.ddot(deviator, deviator) / A.dtype(6.0))


@wp.func
def stiffening(J: Any, plastic: Any, swell: Any, C: Any, C_norm: Any, k_v: Any, k_b: Any):
    """How much stiffer than at rest: an upper bound of |∂²W/∂J²| over its value 2μ + 3λ at J = I (physics 3.5).

    Term by term: J C' J, the stress itself, the volume term along cof J, and its pressure.
    """
    large = largest_eigenvalue_bound(wp.transpose(J) * J)
    tension = largest_eigenvalue_bound(hooke(C, green_strain(J) - plastic))
    volume = swell * wp.determinant(J)
    below = wp.min(volume - J.dtype(WALL), J.dtype(0.0))
    p = swell * (k_v * (volume - J.dtype(1.0)) + k_b * below)
    slope = k_v + wp.where(below < J.dtype(0.0), k_b, J.dtype(0.0))
    cof = cofactor(J) * swell
    bound = C_norm * large + wp.max(tension, J.dtype(0.0)) + slope * wp.ddot(cof, cof) + wp.abs(p) * wp.sqrt(large)
    return bound / (C_norm + J.dtype(3.0) * k_v)


def split_law(elasticity: NDArray[np.float64]) -> tuple[NDArray[np.float64], float, float]:
    """C' (6 × 6), k_v and k_b [Pa] of an elasticity C. Isotropic: C' is pure shear, k_v = λ, k_b = ½(λ + 2μ)
    (physics 3.2)."""
    k_v = max(0.0, float(min(elasticity[0, 1], elasticity[0, 2], elasticity[1, 2])))
    reduced = elasticity.copy()
    reduced[:3, :3] -= k_v
    return reduced, k_v, 0.5 * float(elasticity.diagonal()[:3].max())


@dataclass(frozen=True)
class LawRow:
    """One law, as kernels need it."""

    stiffness: Floats
    """C' [Pa], 6 × 6, in the world's axes"""
    k_v: float
    k_b: float
    shear_norm: float
    """largest eigenvalue of C' [Pa]"""
    yield_strain: float
    creep: float
    max_strain: float
    fluid: float
    """1 for a melt, 0 for a solid"""
    bulk: float
    """stiffness of a melt's pressure [Pa]; 0 for a solid"""

    @staticmethod
    def of(material: Material, rotation: Floats) -> LawRow:
        """The law of a material whose axes are turned by `rotation`."""
        # Split before turning: the parts of a turned law would be others at large strain.
        reduced, k_v, k_b = split_law(material.elasticity)
        C = reduced if material.stiffness is None else rotated_elasticity(reduced, rotation)
        fluid = material.viscosity is not None
        return LawRow(
            stiffness=C,
            k_v=k_v,
            k_b=k_b,
            # Engineering shear counts the three shear terms double.
            shear_norm=float(np.linalg.eigvalsh(C * np.outer(MANDEL, MANDEL)).max()),
            yield_strain=min(material.flow_strain, LARGEST),
            creep=min(material.relaxation, LARGEST),
            max_strain=LARGEST if fluid else material.max_strain,
            fluid=float(fluid),
            bulk=material.bulk if fluid else 0.0,
        )

    @property
    def locking(self) -> float:
        """So much of k_v [Pa] would lock fields that cannot keep their volume everywhere: what is above UNLOCKED times
        the least modulus of C'."""
        least = float(np.linalg.eigvalsh(self.stiffness * np.outer(MANDEL, MANDEL)).min())
        return max(0.0, self.k_v - UNLOCKED * least)

    @property
    def parts_at_rest(self) -> tuple[Floats, Floats]:
        """C of small strains [Pa], 6 × 6, in two parts: without what locks, and that."""
        parts = self.stiffness.copy(), np.zeros((6, 6))
        for C, k in zip(parts, (self.k_v - self.locking, self.locking), strict=True):
            C[:3, :3] += k
        return parts

    @property
    def flows(self) -> bool:
        return self.yield_strain < LARGEST

    def stress(self, J: Floats, stored: Floats, swell: Floats) -> tuple[Floats, Floats]:
        """Cauchy stress [Pa] in two parts: J C'e Jᵀ/|J|, shape (m, 3, 3), and that of the volume, k_v s(s|J| − 1) I,
        shape (m,) (physics 3.3)."""
        turned, ratio = np.swapaxes(J, 1, 2), np.linalg.det(J)
        inner = hooke_stress(self.stiffness, 0.5 * (turned @ J - np.eye(3)) - stored)
        return J @ inner @ turned / ratio[:, None, None], self.k_v * swell * (swell * ratio - 1)

    def stored(self, J: Floats, stress: Floats, pressure: Floats) -> tuple[Floats, Floats]:
        """Stored strain and volume ratio that make the two parts of a stress at J (physics 6.3)."""
        back, ratio = np.linalg.inv(J), np.linalg.det(J)
        inner = ratio[:, None, None] * (back @ stress @ np.swapaxes(back, 1, 2))
        root = np.maximum(1 + 4 * ratio * pressure / max(self.k_v, 1e-30), 0.01)
        elastic = hooke_stress(COUNTED * np.linalg.inv(self.stiffness) * COUNTED.T, inner)
        return 0.5 * (np.swapaxes(J, 1, 2) @ J - np.eye(3)) - elastic, (1 + np.sqrt(root)) / (2 * ratio)


def hooke_stress(C: Floats, e: Floats) -> Floats:
    """C e as symmetric matrices (m, 3, 3), C in the order VOIGT with engineering shear."""
    columns = np.stack([e[:, a, b] for a, b in VOIGT], axis=1) * ENGINEERING
    result = np.empty_like(e)
    for column, (a, b) in zip((columns @ C.T).T, VOIGT, strict=True):
        result[:, a, b] = result[:, b, a] = column
    return result


@dataclass(frozen=True)
class Laws:
    """The table on the device."""

    of: wp.array
    """row of each phyxel, shape (n,), int32"""
    stiffness: wp.array
    """C' [Pa], shape (rows,) of 6 × 6"""
    k_v: wp.array
    """[Pa], shape (rows,)"""
    k_b: wp.array
    """[Pa], shape (rows,)"""
    shear_norm: wp.array
    """largest eigenvalue of C' [Pa], shape (rows,)"""
    yield_strain: wp.array
    creep: wp.array
    """[1/s]"""
    max_strain: wp.array
    fluid: wp.array
    bulk: wp.array
    """[Pa]"""

    @staticmethod
    def blank(phyxels: int, rows: int, real: Any, device: wp.Device) -> Laws:
        """A table to be written."""
        numbers = {name: wp.zeros(rows, dtype=real, device=device) for name in NUMBERS}
        return Laws(
            of=wp.zeros(phyxels, dtype=wp.int32, device=device),
            stiffness=wp.zeros(rows, dtype=wp.types.matrix((6, 6), real), device=device),
            **numbers,
        )

    def __len__(self) -> int:
        return len(self.k_v)

    def write(self, rows: list[LawRow], of: NDArray[np.integer]) -> None:
        """Fill the table; as many rows as it has."""
        self.of.assign(of.astype(np.int32))
        self.stiffness.assign(np.array([row.stiffness for row in rows]))
        for name in NUMBERS:
            getattr(self, name).assign(np.array([getattr(row, name) for row in rows]))


NUMBERS = ("k_v", "k_b", "shear_norm", "yield_strain", "creep", "max_strain", "fluid", "bulk")
