# mypy: disable-error-code="valid-type,no-untyped-def"
"""What preconditions the system of a step (physics 10.6): the system at rest, inverted once, turned with each node.

    H ≈ R (A + K₀ + c V Vᵀ) Rᵀ + Gᵀ D G

A is the inertia, K₀ the stiffness at rest, R the rotation of each node; the stiff springs c V Vᵀ stand for held points
(V: orthonormal, shape (n, r)) and Gᵀ D G for contacts, which come and go: Woodbury's formula adds them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.sparse import bsr_array, csc_array, csr_array, kron
from scipy.sparse.linalg import SuperLU, splu

from phyxel import device as dev
from phyxel.device import Launch, Program, Shared, mat33ds, vec3ds
from phyxel.models.galerkin.assembly import Inertia, PointMaterials, blocks, stiffness_from
from phyxel.models.galerkin.inverse import Inverse, turn_back
from phyxel.models.galerkin.space import Space
from phyxel.state import State, prefixed

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]

MOST_INVERTED = 7500
"""Unknowns up to which the inverse is kept as a matrix (225 MB, found in 10 s); beyond, blocks of single nodes have to
do."""
OFTEN = 1.3
"""Factor by which the step may change before the system at rest is inverted anew."""
SAME = 1 + 1e-9
"""The same where it does not only lead to a solution, but is one: how a body answers others."""
TURNED = 0.2
"""Change of a rotation (Frobenius) from which on it counts."""
FRESH = 4
"""Iterations of conjugate gradients that a step takes with a system at rest that has all cracks."""
SETUP, MANY = 4.0, 80.0
"""What it takes to invert that system anew, in such iterations: so many, and the square of nodes over MANY."""
NOTHING = 1e-10
"""Spacings by which held points may be moved by any field at all."""


@wp.kernel
def solve_blocks(first: int, inverse: mat33ds, turn: mat33ds, turned: vec3ds, found: vec3ds):
    """The same with the inverse of each node's block, R H⁻¹ of what was turned back."""
    I = first + wp.tid()
    found[I] = turn[I] * (inverse[I] * turned[I])


@dataclass(frozen=True)
class Contacts:
    """c points that touch something, and how the system at rest answers to forces there."""

    keys: list[bytes]
    """what they are, in terms of nodes"""
    there: Floats
    """G P, shape (3c, 3n)"""
    back: Floats
    """P Gᵀ, shape (3n, 3c)"""
    compliance: Floats
    """G P Gᵀ, shape (3c, 3c)"""


class RestSystem:
    """An approximate inverse of H."""

    def __init__(self, inertia: csr_array, stiffness: bsr_array, held: Floats, device: wp.Device) -> None:
        self.springs = held
        """V when it was inverted"""
        self._take_hold(held)
        count = inertia.shape[0]
        self._weight: Floats = np.asarray(inertia.sum(axis=0), np.float64).reshape(-1, 1)
        """what resists the motion of all together, shape (n, 1)"""
        self._turn = Shared(count, wp.mat33d, device)
        self._residual, self._found = Shared(count, wp.vec3d, device), Shared(count, wp.vec3d, device)
        self._lifts: Floats | None = None
        self._forget_contacts()
        turned = wp.zeros(count, dtype=wp.vec3d, device=device)
        self._whole = 3 * count <= MOST_INVERTED
        if self._whole:
            self._inverse = Inverse(inertia, stiffness, held, device)
            launches = self._inverse.product(self._turn.array, self._residual.array, turned, self._found.array)
        else:
            self._matrices = inertia, stiffness
            blocks = _diagonal_blocks(stiffness) + inertia.diagonal()[:, None, None] * np.eye(3)
            inverse = wp.array(np.linalg.inv(blocks), dtype=wp.mat33d, device=device)
            back = Launch(turn_back, count, [self._turn.array, self._residual.array, turned])
            launches = [back, Launch(solve_blocks, count, [inverse, self._turn.array, turned, self._found.array])]
        self._solve = Program(launches, device)
        self.turn(np.broadcast_to(np.eye(3), (count, 3, 3)))

    def hold(self, held: Floats) -> None:
        """Something else is held, V (n, r), but not much else: the inverse stays."""
        self._take_hold(held)
        self._lifts = None
        self._forget_contacts()

    def _take_hold(self, held: Floats) -> None:
        self._held = held
        """V"""
        self._holding = np.flatnonzero(held.any(axis=1))
        """nodes that it is at: few of all"""
        self._held_there = held[self._holding]

    def turn(self, rotations: Floats) -> None:
        """R of each node, shape (n, 3, 3)."""
        self._turn.host[:] = rotations
        self._turn.push()
        self._forget_contacts()

    def _forget_contacts(self) -> None:
        self._answers: dict[bytes, Floats] = {}
        """of points that were touched since, shape (3, 3n) each"""
        self._contacts: Contacts | None = None
        self._grip: Floats | None = None
        """(D⁻¹ + G P Gᵀ)⁻¹, shape (3c, 3c)"""

    def let_go(self) -> None:
        """Nothing is touched."""
        self._grip = None

    @property
    def foresees(self) -> bool:
        """Whether `compliance_at` can be asked for."""
        return self._whole

    def compliance_at(self, rows: csr_array) -> Floats:
        """C = G P Gᵀ, P without contacts, of points with φ in `rows` (c, n), shape (3c, 3c)."""
        return self._touched(rows).compliance

    def grip(self, rows: csr_array, bend: Floats) -> None:
        """Contacts at c points with φ in `rows` (c, n): D is `bend` (c, 3, 3) there."""
        self._grip = None
        if len(bend) == 0 or not self._whole:
            return
        C = self._touched(rows).compliance
        D = block_diag(*bend)
        # P − P Gᵀ (D⁻¹ + C)⁻¹ G P, where D may have no inverse
        grip = np.linalg.solve(np.eye(len(C)) + D @ C, D)
        self._grip = 0.5 * (grip + grip.T)

    def _touched(self, rows: csr_array) -> Contacts:
        keys = [rows.indices[low:high].tobytes() + rows.data[low:high].tobytes() for low, high in _spans(rows)]
        if self._contacts is None or self._contacts.keys != keys:
            for row, key in enumerate(keys):
                if key not in self._answers:
                    self._answers[key] = self._answer(rows[[row]])
            there = np.concatenate([self._answers[key] for key in keys])
            spread = there.reshape(len(there), -1, 3).transpose(1, 0, 2)
            moved = (rows @ spread.reshape(len(spread), -1)).reshape(len(keys), len(there), 3)
            compliance = moved.transpose(0, 2, 1).reshape(len(there), -1)
            self._contacts = Contacts(keys, there, np.ascontiguousarray(there.T), compliance)
        return self._contacts

    def _answer(self, row: csr_array) -> Floats:
        """How unit forces at a point with φ in `row` (1, n) move all nodes, shape (3, 3n). One point at a time: what
        others are touched must not change its bits."""
        spread = self.free(np.einsum("n,ab->nab", row.toarray()[0], np.eye(3)))
        nodes, turn = np.flatnonzero(spread.any(axis=(1, 2))), self._turn.host
        back = (np.swapaxes(turn[nodes], 1, 2) @ spread[nodes]).reshape(-1, 3)
        there = self._inverse.times(_entries(nodes), back).reshape(-1, 3, 3)
        return np.ascontiguousarray(self.free(turn @ there).reshape(-1, 3).T)

    def apply(self, residual: Floats) -> Floats:
        """H⁻¹ residual, about, shape (n, 3). What nothing holds is moved as a whole apart: a fall must not shake it."""
        even = np.zeros(3)
        if self._grip is None and self._held.shape[1] == 0:
            even = residual.sum(axis=0) / self._weight.sum()
        self._residual.host[:] = residual - self._weight * even
        self._residual.push()
        self._solve.run()
        found = self._found.pull() + even
        if self._grip is not None and self._contacts is not None:
            # Not by BLAS: its threads would wait for each other, and take longer than the work.
            pressed = np.einsum("ci,i->c", self._contacts.there, residual.reshape(-1))
            borne = np.einsum("cd,d->c", self._grip, pressed)
            found -= np.einsum("ic,c->i", self._contacts.back, borne).reshape(-1, 3)
        return found

    def compliance(self, rows: csr_array) -> Floats:
        """G H⁻¹ Gᵀ, about, for points with φ in `rows` (c, n): how far unit forces there move them, shape (3c, 3c)."""
        nodes, turn = np.unique(rows.indices), self._turn.host
        phi = rows[:, nodes].toarray()
        seen = np.einsum("cj,jab->cajb", phi, turn[nodes]).reshape(3 * len(phi), -1)
        entries = _entries(nodes)
        if not self._whole:
            spread = np.zeros((3 * rows.shape[1], len(seen)))
            spread[entries] = seen.T
            return np.asarray(spread.T @ self._factor.solve(spread))
        result = seen @ self._inverse.between(entries) @ seen.T
        if self._grip is not None and self._contacts is not None:
            gripped = np.einsum("cj,jag->cag", phi, self._contacts.back.reshape(-1, 3, len(self._grip))[nodes])
            gripped = gripped.reshape(3 * len(phi), -1)
            result -= gripped @ self._grip @ gripped.T
        return np.asarray(result)

    def respond(self, forces: Floats) -> Floats:
        """H⁻¹ forces, as `compliance` has it, shape (n, 3)."""
        if self._whole:
            found = self.apply(forces)
        else:
            turn = self._turn.host
            back = np.einsum("nba,nb->na", turn, forces).reshape(-1)
            found = np.einsum("nab,nb->na", turn, self._factor.solve(back).reshape(-1, 3))
        return self.free(found)

    @cached_property
    def _factor(self) -> SuperLU:
        """Of the system at rest, where it is too large to be inverted."""
        inertia, stiffness = self._matrices
        return splu(csc_array(stiffness + kron(inertia, np.eye(3))))

    def lift(self, amounts: Floats) -> Floats:
        """The field with Vᵀ u = amounts (r, 3) that costs least at rest, shape (n, 3)."""
        if np.abs(amounts).max(initial=0) < NOTHING:
            return self._held @ amounts
        if self._lifts is None:
            self._lifts = self._lift()
        found = (self._lifts @ amounts.reshape(-1)).reshape(-1, 3)
        return found + self._held @ (amounts - self._held.T @ found)

    def _lift(self) -> Floats:
        """H₀⁻¹ V (Vᵀ H₀⁻¹ V)⁻¹, shape (3n, 3r)."""
        spread: Floats = np.kron(self._held, np.eye(3)).astype(np.float64, copy=False)
        if not self._whole:
            return spread
        entries = _entries(self._holding)
        response = self._inverse.times(entries, spread[entries])
        return np.asarray(np.linalg.solve(spread.T @ response, response.T).T, np.float64)

    def free(self, fields: Floats) -> Floats:
        """What of fields (n, ...) nothing holds, u − V Vᵀ u."""
        flat = fields.reshape(len(fields), -1).copy()
        flat[self._holding] -= self._held_there @ (self._held_there.T @ flat[self._holding])
        return flat.reshape(fields.shape)


class Preconditioner:
    """The system at rest, inverted for steps of about one length; and anew for another length, material or hold, or
    once cuts have cost more iterations than that takes."""

    def __init__(self, space: Space) -> None:
        self.dt = math.nan
        """length of the steps [s]"""
        self.system: RestSystem | None = None
        self._space = space
        """that of K₀"""
        self._stiffness: bsr_array | None = None
        """K₀ there, for laws that are scaled as `_scales` (k,) says"""
        self._scales = np.zeros(0)
        self._owed = 0
        """iterations that steps have taken for cracks that are not in the system at rest"""
        self.turns: Floats = np.tile(np.eye(3), (len(space), 1, 1))
        """R of the nodes, shape (n, 3, 3)"""

    def forget(self) -> None:
        """Laws or holds are others from now on."""
        self.system = self._stiffness = None

    def forget_before(self, space: Space) -> None:
        """Do not go on with a system of a space that has been cut since."""
        if self._space.functions is not space.functions:
            self.system = None

    def hold(self, held: Floats) -> None:
        """Something else is held, V (n, r), but not much else."""
        if self.system is not None:
            self.system.hold(held)

    def count(self, space: Space, iterations: int) -> None:
        """A step has taken so many iterations."""
        if self._space.functions is not space.functions:
            self._owed += max(iterations - FRESH, 0)

    def tuned_to(
        self,
        dt: float,
        space: Space,
        materials: PointMaterials,
        inertia: Inertia,
        held: Floats,
        turns: Floats,
        within: float = OFTEN,
    ) -> RestSystem:
        """The system for steps of dt, up to a factor, with rotations (n, 3, 3) of the nodes."""
        if not (dt == self.dt or 1 / within < dt / self.dt < within):
            self.dt, self.system = dt, None
        system = self.system
        if system is None or self._owed > SETUP + (len(space) / MANY) ** 2:
            system = self._invert(space, materials, inertia, held)
        if np.square(turns - self.turns).sum(axis=(1, 2)).max() > TURNED**2:
            self.turns = turns
            system.turn(turns)
        return system

    def _invert(self, space: Space, materials: PointMaterials, inertia: Inertia, held: Floats) -> RestSystem:
        """The system of a space as it is now, with springs for held points, V (n, r)."""
        lag = 1 + materials.damping / self.dt
        scales = lag / lag[0]
        if self._stiffness is None or not np.array_equal(scales, self._scales):
            self._stiffness = space.stiffness(materials.scaled(scales), materials.which)
        elif self._space.functions is not space.functions:
            between = self._space.functions, space.functions
            rows = materials.scaled(scales)
            self._stiffness = stiffness_from(*between, self._stiffness, rows, materials.which)
        self._scales, self._space, self._mass, self._owed = scales, space, inertia.mass, 0
        self.system = RestSystem(inertia.over(self.dt), lag[0] * self._stiffness, held, space.device)
        self.system.turn(self.turns)
        return self.system

    def state(self, space: Space, mass: csr_array, held: Floats) -> State:
        """How it was tuned: that decides the last bits of a step. `space`, `mass` and `held` are those of now."""
        if self.system is not None:
            space, mass, held = self._space, self._mass, self.system.springs
        kept = {
            "turns": self.turns.copy(), "tuned": np.array(self.dt), "owed": np.array(self._owed),
            "tuned_mass": mass.data, "tuned_held": held,
        }  # fmt: skip
        if self.system is not None and self._stiffness is not None:
            kept["stiffness"] = self._stiffness.data
        return kept | prefixed("tuned.", space.state())

    def restore(self, state: State, space: Space, materials: PointMaterials, inertia: Inertia) -> None:
        """Take over what `state` gave, with the space and inertia that it was tuned in."""
        self.turns, self.dt = state["turns"].copy(), float(state["tuned"])
        self.system = None
        if "stiffness" in state:
            lag = 1 + materials.damping / self.dt
            self._scales, self._space = lag / lag[0], space
            self._stiffness = blocks(space.functions.lists, state["stiffness"])
            self._invert(space, materials, inertia, state["tuned_held"])
        self._owed = int(state["owed"])


def _entries(nodes: NDArray[np.integer]) -> NDArray[np.integer]:
    """Numbers of the unknowns that belong to nodes (k,), shape (3k,)."""
    return np.asarray((3 * nodes[:, None] + np.arange(3)).reshape(-1))


def _spans(rows: csr_array) -> list[tuple[int, int]]:
    """Where the entries of each row begin and end."""
    return list(pairwise(rows.indptr.tolist()))


def _diagonal_blocks(matrix: bsr_array) -> Floats:
    rows = np.repeat(np.arange(len(matrix.indptr) - 1), np.diff(matrix.indptr))
    return matrix.data[rows == matrix.indices]
