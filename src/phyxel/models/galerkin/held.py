"""Points of a Galerkin body that are held (G04 eq. 26, physics 10.5), as conditions on its coefficients.

With G = φ at the points, G u = d fixes part of the unknowns exactly: with G = U S Vᵀ that is Vᵀu, and a search for a
minimum keeps to displacements orthogonal to V (Baraff and Witkin's filter). Where more points are held than there are
independent functions at them, they are so in the sense of least squares. A face between held nodes is held against
their own functions, Nᵀ(G u − d) = 0: one condition for each node, and none for what only lives beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.sparse import csr_array, diags_array, vstack

from phyxel.mls.corrected_gradients import VANISHED
from phyxel.models.galerkin.held_region import HeldRegion
from phyxel.models.galerkin.rigid_motion import rigid_fields
from phyxel.models.galerkin.space import Space
from phyxel.models.protocol import Floats, Goal, Hold

DEPENDENT = VANISHED
"""Singular values below this, over the largest, are no conditions of their own."""


@dataclass(frozen=True, eq=False)
class HeldRows:
    """What one hold asks of the coefficients: Nᵀ G u = Nᵀ `spread` times where its points go."""

    rows: csr_array
    """G, shape (m, n)"""
    spread: Floats
    """shape (m, k), or (m, k + 3) of a hold that turns"""
    tests: Floats
    """N, what u is held against, shape (m, k'): G itself, or on faces φ of their nodes alone"""
    face: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """those nodes"""

    @staticmethod
    def of(space: Space, hold: Hold) -> HeldRows:
        at = space.at(hold.points)
        # A node that other nodes lead has no motion of its own to hold: it would only pull at them.
        own = diags_array((~space.led(hold.points)).astype(float))
        parts = [csr_array(own @ part) for part in (at.values, *(at.gradients if hold.turns else ()))]
        spread = np.eye(sum(part.shape[0] for part in parts))
        region = HeldRegion.around(space, hold.points) if hold.fills else None
        if region is None or not len(region.spread):
            rows = csr_array(vstack(parts))
            return HeldRows(rows, spread, rows[:, np.unique(rows.indices)].toarray())
        rows = csr_array(vstack([*parts, region.rows]))
        tests = rows[:, region.tests].toarray()
        return HeldRows(rows, np.concatenate([spread, region.spread]), tests, region.tests)

    def independent(self) -> tuple[Floats, Floats]:
        """UᵀG, shape (r, n), and Uᵀ, shape (r, m), of what counts in N = U S Vᵀ."""
        U, S, _ = np.linalg.svd(self.tests, full_matrices=False)
        chosen = U[:, DEPENDENT * S[0] < S].T
        return np.asarray((self.rows.T @ chosen.T).T), chosen


@dataclass(frozen=True, eq=False)
class Held:
    """Conditions on the coefficients, as an orthonormal basis of the fields they fix."""

    holds: tuple[Hold, ...]
    basis: Floats
    """V, shape (n, r)"""
    pull: Floats
    """what Vᵀu has to be is `pull` @ what u is to be in the rows, shape (r, m)"""
    rows: csr_array
    """G, shape (m, n)"""
    spread: Floats
    """takes goals of points, and of turns, to the rows, shape (m, k)"""
    faces: NDArray[np.int64]
    """nodes of faces that are held: they have no motion of their own, ascending"""

    @staticmethod
    def of(space: Space, holds: Sequence[Hold]) -> Held:
        if not holds:
            nothing, none = np.zeros((0, 0)), np.zeros(0, np.int64)
            return Held((), np.zeros((len(space), 0)), nothing, csr_array((0, len(space))), nothing, none)
        each = [HeldRows.of(space, hold) for hold in holds]
        conditions, turns = zip(*(one.independent() for one in each), strict=True)
        U, S, Vt = np.linalg.svd(np.concatenate(conditions), full_matrices=False)
        kept = DEPENDENT * S[0] < S
        pull = (U[:, kept].T / S[kept, None]) @ block_diag(*turns)
        rows = csr_array(vstack([one.rows for one in each]))
        spread, faces = block_diag(*(one.spread for one in each)), np.concatenate([one.face for one in each])
        return Held(tuple(holds), Vt[kept].T.copy(), pull, rows, spread, np.unique(faces))

    def aims(self, goals: Sequence[Goal]) -> Floats:
        """What Vᵀu has to be, shape (r, 3)."""
        parts: list[Floats] = []
        for hold, goal in zip(self.holds, goals, strict=True):
            parts.append(np.asarray(goal.displacements, np.float64).reshape(-1, 3))
            if hold.turns:
                # ∂u/∂X_k = (R − I) e_k: no strain there, either
                parts.append((np.asarray(goal.rotation) - np.eye(3)).T)
        return self.pull @ (self.spread @ np.concatenate(parts)) if parts else np.zeros((0, 3))

    def fixes(self, nodes: Floats) -> bool:
        """Whether a body with these nodes (n, 3) cannot move as a whole."""
        seen = np.stack([(self.basis.T @ field).reshape(-1) for field in rigid_fields(nodes)], axis=1)
        return len(seen) > 0 and bool(np.linalg.svd(seen, compute_uv=False)[-1] > 1e-3) and seen.shape[0] >= 6
