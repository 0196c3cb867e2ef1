"""How fields of a body go over to another space on the same points, as a crack cuts it (physics 12.8).

Velocities become the nearest field of the new space in the sense of ∫ρ|v' − v|²: that keeps their momentum, as even
fields are in both spaces, and is a projection, so that kinetic energy does not grow. Displacements become the one with
the nearest strain, ∫|∇u' − ∇u|², which is a projection too, in about the norm of elastic energy; how parts lie that
nothing joins any more, and what no gradient tells, ∫ρ|u' − u|² does.

Held points stay where they are, and so does the middle of mass; a body that nothing holds keeps its momenta: the rigid
motion that is missing is added. Elastic and kinetic energy together do not grow. Should the elastic energy grow, the
strain about the nearest rigid motion is scaled down till it does not, or a held body goes along its elastic forces;
energy above the old sum is then taken from vibration, and from the spin if that is not enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csc_array, csr_array
from scipy.sparse.linalg import splu

from phyxel.models.galerkin.assembly import Inertia, PointMaterials
from phyxel.models.galerkin.forces import PointForces
from phyxel.models.galerkin.held import Held
from phyxel.models.galerkin.rigid_motion import PartedMotion, rigid_part
from phyxel.models.galerkin.space import Space
from phyxel.models.protocol import Goal

Floats = NDArray[np.float64]

DENSE = 600
"""Nodes up to which a matrix is factored as a whole."""
UNSEEN = 1e-10
"""Weight with which coefficients stay as they are, over the mean of the diagonal: those of nodes that no point sees any
more would be anything."""
FAINT = 1e-3
"""Weight of the displacement itself beside its gradient, per square of a spacing."""
DEPENDENT = 1e-9
"""Share of the largest below which a condition is no other than those before."""
TRIES = 6
"""Times that strain is taken away, at most."""
TINY = 1e-9
"""Share of the strain that is taken away beyond what must be."""
SPARE = 0.2
"""Share by which more energy is aimed to be taken away than must be."""


@dataclass(frozen=True)
class KeptSums:
    """Sums Aᵀu of its coefficients that a field has to keep, with columns A (n, r)."""

    basis: Floats
    """orthonormal columns that span those of A, shape (n, k)"""
    columns: Floats

    @staticmethod
    def of(columns: Floats) -> KeptSums:
        basis, size, _ = np.linalg.svd(columns, full_matrices=False)
        return KeptSums(basis[:, size > DEPENDENT * size.max(initial=0)], columns)

    def free(self, field: Floats) -> Floats:
        """What of a field (n, 3) changes none of the sums."""
        return field - self.basis @ (self.basis.T @ field)

    def imposed(self, matrix: csr_array, load: Floats, before: Floats, sums: Floats) -> Floats:
        """Coefficients (n, 3) with matrix @ them = load as far as they can with Aᵀu = sums (r, 3), near those from
        `before` where the matrix says nothing."""
        kept = UNSEEN * matrix.diagonal().mean()
        found = _solved(matrix, kept, np.hstack([load + kept * before, self.columns]))
        u, response = found[:, :3], found[:, 3:]
        give = self.columns.T @ response
        size = 1 / np.sqrt(give.diagonal())[:, None]  # what no point sees gives way without end, the rest hardly
        amounts = np.linalg.lstsq(size * give * size.T, size * (sums - self.columns.T @ u), rcond=DEPENDENT)[0]
        return np.asarray(u + response @ (size * amounts), np.float64)


def _solved(matrix: csr_array, raised: float, loads: Floats) -> Floats:
    """(matrix + raised I)⁻¹ loads."""
    if matrix.shape[0] <= DENSE:
        whole = matrix.toarray()
        whole.flat[:: len(whole) + 1] += raised
        return np.asarray(cho_solve(cho_factor(whole, overwrite_a=True, check_finite=False), loads), np.float64)
    whole = csc_array(matrix)
    whole.setdiag(whole.diagonal() + raised)
    return np.asarray(splu(whole).solve(loads), np.float64)


@dataclass(frozen=True)
class Departure:
    """Motion of a body in the space that it leaves."""

    u: Floats
    v: Floats
    elastic: float
    """energy [Pa], in the body's lengths"""
    kinetic: float
    gradient: Floats
    """∇u at the points, shape (q, 3, 3)"""
    weighed: Sequence[Floats]
    """∫ ρ φ_I of u and of v, with φ of the new space, shape (n, 3) each"""
    momenta: tuple[Floats, Floats]
    middle: Floats
    """of mass, shape (3,)"""
    held: Sequence[Floats]
    """u and v of held points"""


def crossed(
    left: Departure,
    space: Space,
    forces: PointForces,
    materials: PointMaterials,
    inertia: Inertia,
    held: Held,
    goals: Sequence[Goal] | None,
    respond: Callable[[Floats, Floats], Floats] | None,
) -> tuple[Floats, Floats]:
    """u and v (n, 3) in another space, whose `forces` and `inertia` these are; held points are at `goals`, or stay.
    `respond` tells about how far a body at u gives way to a force, if that is known."""
    mass, weight, nodes = inertia.mass, inertia.weight, space.nodes
    share = FAINT / materials.density.mean()
    strained = forces.spread(space.weights[:, None, None] * left.gradient)
    kept = KeptSums.of(np.hstack([held.basis, weight[:, None] / weight.sum()]))
    there = held.pull @ left.held[0] if goals is None else held.aims(goals)
    aims = np.vstack([there, left.middle - weight @ nodes / weight.sum()])
    stretching = csr_array(inertia.slopes + share * mass)
    u = kept.imposed(stretching, strained + share * left.weighed[0], left.u, aims)
    if held.holds:
        u, elastic = _eased(u, left.elastic, kept, forces, respond)
    else:
        u, elastic = _calmed(u, left.elastic, nodes, weight, forces)
    v = KeptSums.of(held.basis).imposed(mass, left.weighed[1], left.v, held.pull @ left.held[1])
    moved = PartedMotion(mass, nodes + u, v)
    if not held.holds:
        moved.with_momenta(*left.momenta)
    moved.with_at_most(left.kinetic + left.elastic - elastic, bool(held.holds))
    return u, moved.v


def _calmed(u: Floats, most: float, nodes: Floats, weight: Floats, forces: PointForces) -> tuple[Floats, float]:
    """Take strain away, about the nearest rigid motion, till elastic energy is not above `most`: u and that energy."""
    energy = forces.energy(u)
    for _ in range(TRIES):
        if energy <= most:
            break
        x = nodes + u
        rigid = rigid_part(x, nodes, weight)
        less = rigid + (1 - TINY) * math.sqrt(most / energy) * (x - rigid) - nodes
        left = forces.energy(less)
        if left > energy:
            break
        u, energy = less, left
    return u, energy


def _eased(
    u: Floats, most: float, kept: KeptSums, forces: PointForces, respond: Callable[[Floats, Floats], Floats] | None
) -> tuple[Floats, float]:
    """Go along elastic forces, with all kept sums, till elastic energy is not above `most`: u and that energy."""
    energy = forces.energy(u)
    for _ in range(TRIES):
        if energy <= most or respond is None:
            break
        forces.begin(u, 0.0)
        force = kept.free(forces.at(u)[1])
        way = kept.free(respond(u, force))
        gain = max(float(np.vdot(force, way)), 1e-300)
        length = min(1.0, (1 + SPARE) * (energy - most) / gain)
        for _ in range(TRIES):
            left = forces.energy(u + length * way)
            if left < energy:
                u, energy = u + length * way, left
                break
            length /= 4
    return u, energy
