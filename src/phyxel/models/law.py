"""What phyxels are made of: a table with one row for each law, and for each phyxel the number of its row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.material.material import Material, rotated_elasticity
from phyxel.models.elasticity import split_law

Floats = NDArray[np.float64]

MANDEL = np.sqrt([1.0, 1.0, 1.0, 2.0, 2.0, 2.0])
"""Turns a 6 × 6 elasticity into one whose eigenvalues are the tensor's."""
VOIGT = ((0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1))
ENGINEERING = np.array([1.0, 1.0, 1.0, 2.0, 2.0, 2.0])
"""The order of a 6 × 6 elasticity, and how often it counts each component."""
COUNTED = 1 / ENGINEERING[:, None]
LARGEST = 1e6
"""What single precision takes for an infinite yield or creep."""


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
    def at_rest(self) -> Floats:
        """C of small strains [Pa], 6 × 6."""
        C = self.stiffness.copy()
        C[:3, :3] += self.k_v
        return C

    @property
    def flows(self) -> bool:
        return self.yield_strain < LARGEST

    def stress(self, J: Floats, stored: Floats, swell: Floats) -> tuple[Floats, Floats]:
        """Cauchy stress [Pa] in two parts: J C'e Jᵀ/|J|, shape (m, 3, 3), and that of the volume, k_v s(s|J| − 1) I,
        shape (m,)."""
        turned, ratio = np.swapaxes(J, 1, 2), np.linalg.det(J)
        inner = hooke_stress(self.stiffness, 0.5 * (turned @ J - np.eye(3)) - stored)
        return J @ inner @ turned / ratio[:, None, None], self.k_v * swell * (swell * ratio - 1)

    def stored(self, J: Floats, stress: Floats, pressure: Floats) -> tuple[Floats, Floats]:
        """Stored strain and volume ratio that make the two parts of a stress at J."""
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
