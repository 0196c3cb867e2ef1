"""What phyxels are made of: a table with one row for each law, and for each phyxel the number of its row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.material import Material, rotated_elasticity
from phyxel.models.elasticity import split_law

Floats = NDArray[np.float64]

MANDEL = np.sqrt([1.0, 1.0, 1.0, 2.0, 2.0, 2.0])
"""Turns a 6 × 6 elasticity into one whose eigenvalues are the tensor's."""
VOIGT = ((0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1))
ENGINEERING = np.array([1.0, 1.0, 1.0, 2.0, 2.0, 2.0])
"""The order of a 6 × 6 elasticity, and how often it counts each component."""
LARGEST = 1e6
"""What single precision takes for an infinite yield or creep."""


@dataclass(frozen=True)
class Row:
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
    def of(material: Material, rotation: Floats) -> Row:
        """The law of a material whose axes are turned by `rotation`."""
        # Split before turning: the parts of a turned law would be others at large strain.
        reduced, k_v, k_b = split_law(material.elasticity)
        C = reduced if material.stiffness is None else rotated_elasticity(reduced, rotation)
        fluid = material.viscosity is not None
        return Row(
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
    def flows(self) -> bool:
        return self.yield_strain < LARGEST

    def strain_and_swell(self, stress: Floats) -> tuple[Floats, Floats]:
        """Elastic strains (m, 3, 3) and volume ratios (m,) of an undeformed reference shape that make Cauchy stresses
        (m, 3, 3) [Pa]: C'e + k_v s(s − 1) I, the mean by the volume as far as the law has one."""
        mean = np.trace(stress, axis1=1, axis2=2) / 3
        shear = float(self.stiffness[:3, :3].mean())
        share = self.k_v / (self.k_v + shear)
        swell = 0.5 + np.sqrt(np.maximum(0.25 + share * mean / max(self.k_v, 1e-30), 0.01)) if share > 0 else 1 + 0 * mean
        rest = stress - (share * mean)[:, None, None] * np.eye(3)
        columns = np.stack([rest[:, a, b] for a, b in VOIGT], axis=1)
        strain = np.linalg.solve(self.stiffness, columns.T).T / ENGINEERING
        result = np.empty_like(stress)
        for column, (a, b) in zip(strain.T, VOIGT, strict=True):
            result[:, a, b] = result[:, b, a] = column
        return result, swell


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

    def write(self, rows: list[Row], of: NDArray[np.integer]) -> None:
        """Fill the table; as many rows as it has."""
        self.of.assign(of.astype(np.int32))
        self.stiffness.assign(np.array([row.stiffness for row in rows]))
        for name in NUMBERS:
            getattr(self, name).assign(np.array([getattr(row, name) for row in rows]))


NUMBERS = ("k_v", "k_b", "shear_norm", "yield_strain", "creep", "max_strain", "fluid", "bulk")
