"""Points of a Galerkin body that are held (G04 eq. 26, physics 10.5), as conditions on its coefficients.

With G = φ at the points, G u = d fixes part of the unknowns exactly: with G = U S Vᵀ that is Vᵀu, and a search for a
minimum keeps to displacements orthogonal to V (Baraff and Witkin's filter). Where more points are held than there are
independent functions at them, they are so in the sense of least squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, diags_array, vstack

from phyxel.mls.corrected_gradients import VANISHED
from phyxel.models.galerkin.rigid_motion import rigid_fields
from phyxel.models.galerkin.space import Space
from phyxel.models.protocol import Floats, Goal, Hold

DEPENDENT = VANISHED
"""Singular values of held points below this, over the largest, are no conditions of their own."""


@dataclass(frozen=True, eq=False)
class Held:
    """Conditions on the coefficients, as an orthonormal basis of the fields they fix."""

    holds: tuple[Hold, ...]
    basis: Floats
    """V, shape (n, r)"""
    pull: Floats
    """S⁻¹ Uᵀ: what Vᵀu has to be is `pull` @ goals, shape (r, rows)"""
    rows: csr_array
    """G, shape (rows, n)"""

    @staticmethod
    def of(space: Space, holds: Sequence[Hold]) -> Held:
        parts: list[csr_array] = []
        for hold in holds:
            # A node that other nodes lead has no motion of its own to hold: it would only pull at them.
            at, own = space.at(hold.points), diags_array((~space.led(hold.points)).astype(float))
            parts += [own @ part for part in (at.values, *(at.gradients if hold.turns else ()))]
        if not parts:
            return Held((), np.zeros((len(space), 0)), np.zeros((0, 0)), csr_array((0, len(space))))
        rows = csr_array(vstack(parts))
        U, S, Vt = np.linalg.svd(rows.toarray(), full_matrices=False)
        kept = DEPENDENT * S[0] < S
        return Held(tuple(holds), Vt[kept].T.copy(), U[:, kept].T / S[kept, None], rows)

    def aims(self, goals: Sequence[Goal]) -> Floats:
        """What Vᵀu has to be, shape (r, 3)."""
        parts: list[Floats] = []
        for hold, goal in zip(self.holds, goals, strict=True):
            parts.append(np.asarray(goal.displacements, np.float64).reshape(-1, 3))
            if hold.turns:
                # ∂u/∂X_k = (R − I) e_k: no strain there, either
                parts.append((np.asarray(goal.rotation) - np.eye(3)).T)
        return self.pull @ np.concatenate(parts) if parts else np.zeros((0, 3))

    def fixes(self, nodes: Floats) -> bool:
        """Whether a body with these nodes (n, 3) cannot move as a whole."""
        seen = np.stack([(self.basis.T @ field).reshape(-1) for field in rigid_fields(nodes)], axis=1)
        return len(seen) > 0 and bool(np.linalg.svd(seen, compute_uv=False)[-1] > 1e-3) and seen.shape[0] >= 6
