"""Surfaces that are sewn to phyxel bodies, as guests of these (physics 15.15).

They take their step under what stitches are foreseen to pull them with. While phyxels take theirs, they answer by the
step's own system of links and inertia A,

    W = S A⁻¹ Sᵀ/σt²

S being the stitched particles; and what was booked less what was foreseen is given to them by it then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel.body import Body

Floats = NDArray[np.float64]

Answer = Callable[[Floats], Floats]


class SheetGuest:
    """One surface, in an interval."""

    def __init__(self, body: Body) -> None:
        self.body, self.unit = body, body.unit
        self._before = body.positions
        self.impulses = np.zeros_like(self._before)
        """that its particles are still to be given [N s], shape (n, 3)"""
        self.spin = np.zeros(3)
        """angular momentum about the world's origin that is to come to what these have at its particles [N m s]"""

    def push(self, rows: csr_array, places: Floats, impulses: Floats, dt: float) -> None:
        """Be given impulses (k, 3) [N s] at places with φ in `rows` (k, n), which were at `places` (k, 3) when the
        interval began."""
        given = rows.T @ impulses
        self.impulses += given
        self.spin += np.cross(places, impulses).sum(axis=0) - np.cross(self._before, given).sum(axis=0)

    def taken(self) -> Floats:
        """The impulses (n, 3) that its step takes in."""
        impulses, self.impulses = self.impulses, np.zeros_like(self.impulses)
        return impulses

    def step_done(self, x: Floats, answer: Answer) -> None:
        """A step has led to x (n, 3) [m]; impulses (n, 3) [N s] in it change velocities as `answer` tells [m/s]."""
        self._way, self._answer = x - self._before, answer

    def travelled(self, rows: csr_array) -> Floats:
        """How far such places have gone since the interval began [m], shape (k, 3)."""
        return np.asarray(rows @ self._way)

    def response(self, rows: csr_array, axes: Floats) -> Floats:
        """W of such places along their axes (k, 3, 3) [1/kg], shape (3k, 3k)."""
        k = rows.shape[0]
        columns = []
        for one, along in enumerate(axes):
            start = rows[[one]].T.toarray()
            columns += [(axes @ (rows @ self._answer(start * way))[:, :, None]).reshape(-1) for way in along]
        W = np.stack(columns, axis=1).reshape(3 * k, 3 * k)
        return np.asarray(0.5 * (W + W.T))

    def gains(self, mass: Floats) -> Floats:
        """The velocities (n, 3) [m/s] that what it was given since gives its particles of so much `mass` (n,) [kg],
        infinite where it is held."""
        gained = self._answer(self.taken())
        if np.isfinite(mass).all():
            arm = self._before - mass @ self._before / mass.sum()
            inertia = np.eye(3) * (mass @ np.square(arm).sum(axis=1)) - (arm * mass[:, None]).T @ arm
            gained += np.cross(np.linalg.pinv(inertia, rcond=1e-9, hermitian=True) @ self.spin, arm)
        return gained


def guests_of(pairs: Sequence[tuple[Body, Body]]) -> list[SheetGuest]:
    """Of surfaces that are sewn to phyxel bodies."""
    return [SheetGuest(body) for body in dict.fromkeys(sheet for sheet, _ in pairs)]
