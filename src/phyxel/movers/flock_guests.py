"""Implicit phyxel bodies as guests of a leap-frog flock (physics 15.14).

They take their step under what they are foreseen to bear. In the substeps of the others they then answer impulses p by

    W = J M⁻¹ Jᵀ + Φ B⁻¹ Φᵀ

rigid motions of the body, as far as holds and colliders leave them, and phyxels around the place by their own blocks B
of the system that the step has solved. What was booked less what was foreseen is given to them by one more solve of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel.body import Body
from phyxel.movers.phyxel_bodies import PhyxelBodies
from phyxel.movers.phyxel_pushes import Load
from phyxel.rotation import cross_matrix

Floats = NDArray[np.float64]

LOOSE = 1e-6
"""Share of the largest below which what supports take of a rigid motion is rounding."""


class FlockGuest:
    """One implicit body, in an interval."""

    def __init__(self, flock: PhyxelBodies, body: Body) -> None:
        self._flock, self.body, self.unit = flock, body, body.unit
        self._before = body.positions
        self.impulses = np.zeros((len(self._before), 3))
        """that its nodes are still to be given [N s], shape (n, 3)"""
        self.momentum, self.spin = np.zeros(3), np.zeros(3)
        """that it is still to be given, about the world's origin, shape (3,) each"""

    def travelled(self, rows: csr_array) -> Floats:
        """How far places with φ in `rows` (k, n) have gone since the interval began [m], shape (k, 3)."""
        return np.asarray(rows @ (self.body.positions - self._before))

    def push(self, rows: csr_array, places: Floats, impulses: Floats, dt: float) -> None:
        """Be given impulses (k, 3) [N s] at such places, which were at `places` (k, 3) when the interval began."""
        self.impulses += rows.T @ impulses
        self.momentum += impulses.sum(axis=0)
        self.spin += np.cross(places, impulses).sum(axis=0)

    def response(self, rows: csr_array, axes: Floats) -> Floats:
        """W of places with φ in `rows` (k, n) along their axes (k, 3, 3) [1/kg], shape (3k, 3k)."""
        k = rows.shape[0]
        middle, ways = self._rigid_ways
        arms = rows @ (self.body.positions - middle)
        moves = np.concatenate([np.broadcast_to(np.eye(3), (k, 3, 3)), -cross_matrix(arms)], axis=2) @ ways
        root = (axes @ moves).reshape(3 * k, -1)
        nodes = np.unique(rows.indices)
        phi = rows[:, nodes].toarray()
        blocks = self._flock.model.implicit.answers()[self._flock.nodes_of(self.body)][nodes]
        patches = np.moveaxis((phi[:, None, None] * blocks.transpose(1, 2, 0)) @ phi.T, 2, 3)
        patches = axes[:, None] @ np.moveaxis(patches, 2, 1) @ np.swapaxes(axes, 1, 2)
        return np.asarray(root @ root.T + np.swapaxes(patches, 1, 2).reshape(3 * k, 3 * k))

    @cached_property
    def _rigid_ways(self) -> tuple[Floats, Floats]:
        """The middle of mass (3,), and rigid motions about it that holds and colliders leave: velocity and spin in
        columns, which answer unit impulses along them, shape (6, r)."""
        body, x, m = self.body, self.body.positions, self.body.masses
        middle = m @ x / m.sum()
        arms = x - middle
        moves = np.concatenate([np.broadcast_to(np.eye(3), (len(x), 3, 3)), -cross_matrix(arms)], axis=2)
        inertia = np.einsum("n,nai,naj->ij", m, moves, moves)
        ways = np.linalg.inv(np.linalg.cholesky(inertia)).T
        taken = np.eye(3) - self._flock.model.implicit.freedoms()[self._flock.nodes_of(body)]
        held = (taken @ moves @ ways).reshape(-1, 6)
        amount, turned = np.linalg.eigh(held.T @ held)
        return middle, ways @ turned[:, amount <= LOOSE * max(float(amount[-1]), 1e-300)]


class FlockGuests:
    """The implicit bodies that a leap-frog flock may meet in an interval."""

    def __init__(self, flock: PhyxelBodies, bodies: Sequence[Body]) -> None:
        self.flock = flock
        self.each = [FlockGuest(flock, body) for body in bodies]

    def advance(self, dt: float) -> None:
        """Let the flock go on by dt [s] under what its bodies were given."""
        forces, moments = np.zeros((len(self.flock.model), 3)), np.zeros((len(self.flock.bodies), 3))
        for one in self.each:
            forces[self.flock.nodes_of(one.body)] = one.impulses / dt
            one.impulses[:], one.momentum[:] = 0.0, 0.0
        self.flock.pushes.load = load = Load(forces, moments)
        self.flock.advance(dt)
        self.flock.pushes.load = None
        for one in self.each:
            one.spin -= load.moments[self.flock.bodies.index(one.body)]

    def settle(self, dt: float) -> None:
        """Give the bodies what they have been given since."""
        flock, bodies = self.flock, self.flock.bodies
        impulses = np.zeros((len(flock.model), 3))
        momentum, spin = np.zeros((len(bodies), 3)), np.zeros((len(bodies), 3))
        for one in self.each:
            impulses[flock.nodes_of(one.body)] = one.impulses
            momentum[bodies.index(one.body)], spin[bodies.index(one.body)] = one.momentum, one.spin
            flock.energies.forget(one.body)
        origins = np.array([body.origin for body in bodies])
        flock.contact.moved(flock.model.about_to_move().push(dt, impulses, momentum, spin, origins))
