# mypy: disable-error-code="valid-type,no-untyped-def"
"""Elastic energy of a Galerkin body, its force and its tangent, by sums over the quadrature points (physics 3, 10.3):

    U(u) = Σ_q w_q W(J_q),   J_q = I + Σ_I u_I ⊗ ∇φ_I(q),   F_I = −Σ_q w_q P(J_q) ∇φ_I(q)

What of the volume term ½k_v(|J| − 1)² is stiffer than shear (`LawRow.locking`) has for |J| its mean over a cell, the
points around a node: such a condition at each of many points would lock fields that are nearly incompressible.

Over a step from J⁰, Rayleigh's −βK v is written as the stress β C (ε − ε⁰)/Δt: the same to first order, it has an
energy, leaves rigid motion alone and only ever takes energy away. With b = β/Δt the law and its damping are one law,
(1 + b) times as stiff, about the stored strain (εᵖ + b ε⁰)/(1 + b) and the volume (1 + b|J⁰|)/(1 + b).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.device import Launch, Program, Shared, float64s, int32s, mat33ds, vec3ds
from phyxel.mls.shape_values import ShapeValues
from phyxel.models.galerkin.bunches import Bunches
from phyxel.models.galerkin.space import Space
from phyxel.models.galerkin.step_law import (
    LEAST_VOLUME,
    Cells,
    StepLaw,
    find_bends,
    find_cell_stress_changes,
    find_means,
    find_step_law,
    find_stress_changes,
    find_stresses,
    find_volume_changes,
    find_volumes,
)
from phyxel.models.law import (
    LawRow,
    Laws,
    cofactor,
    energy_density,
    first_stress,
    flowed,
    green_strain,
)
from phyxel.structs import as_struct

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]


@wp.kernel
def flow(first: int, laws: Any, dt: float64s, J: mat33ds, plastic: mat33ds):
    """Plastic flow of each point over a step of dt [s] (M04 §4.1, physics 6.1)."""
    q = first + wp.tid()
    row = laws.of[q]
    share = wp.float64(1.0) - wp.exp(-laws.creep[row] * dt[0])
    plastic[q] = flowed(green_strain(J[q]), plastic[q], laws.yield_strain[row], share, laws.max_strain[row])


@wp.kernel
def find_cauchy(
    first: int,
    laws: Any,
    locking: float64s,
    cell: int32s,
    volumes: float64s,
    J: mat33ds,
    plastic: mat33ds,
    cauchy: mat33ds,
):
    """P(J) Jᵀ/|J| of each point, without damping (physics 12.2)."""
    q = first + wp.tid()
    row = laws.of[q]
    one, k = wp.float64(1.0), locking[row]
    P = first_stress(J[q], plastic[q], one, laws.stiffness[row], laws.k_v[row] - k, laws.k_b[row])
    P += cofactor(J[q]) * (k * (volumes[cell[q]] - one))
    cauchy[q] = P * wp.transpose(J[q]) / wp.max(wp.determinant(J[q]), wp.float64(LEAST_VOLUME))


@wp.kernel
def find_energies(
    first: int,
    laws: Any,
    locking: float64s,
    weight: float64s,
    cell: int32s,
    volumes: float64s,
    J: mat33ds,
    plastic: mat33ds,
    energy: float64s,
):
    """w W(J) of each point, without damping (physics 3.2, 10.3)."""
    q = first + wp.tid()
    row = laws.of[q]
    one, k = wp.float64(1.0), locking[row]
    excess = volumes[cell[q]] - one
    density = energy_density(J[q], plastic[q], one, laws.stiffness[row], laws.k_v[row] - k, laws.k_b[row])
    energy[q] = weight[q] * (density + wp.float64(0.5) * k * excess * excess)


@wp.kernel
def find_turns(first: int, start: int32s, node: int32s, dphi: vec3ds, u: vec3ds, turn: mat33ds):
    """R of the polar decomposition of J at each node."""
    I = first + wp.tid()
    J = wp.identity(n=3, dtype=wp.float64)
    for entry in range(start[I], start[I + 1]):
        J += wp.outer(u[node[entry]], dphi[entry])
    U, _stretch, V = wp.svd3(J)
    turn[I] = U * wp.transpose(V)


class PointForces:
    """Energy, force and tangent of one body, for fields given on the host."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._bunches = Bunches(space.functions)
        self._at_nodes = [wp.clone(array) for array in _lists(space.at_nodes)]
        points, nodes, device = len(space.points), len(space), space.device
        self._u = Shared(nodes, wp.vec3d, device)
        self._total = Shared(nodes, wp.vec3d, device)
        self._turn = Shared(nodes, wp.mat33d, device)
        self._energy = Shared(points, wp.float64, device)
        self._dt = Shared(1, wp.float64, device)
        self._J, self._change, self._stress, self._plastic = (
            wp.zeros(points, dtype=wp.mat33d, device=device) for _ in range(4)
        )
        self._weight = wp.array(space.weights, dtype=wp.float64, device=device)
        self._cells = _cells(space)
        self._volumes, self._swellings = (wp.zeros(points + nodes, dtype=wp.float64, device=device) for _ in range(2))
        self._swollen = wp.zeros(points, dtype=wp.float64, device=device)
        self._bends = self._bunches.room_for_bends()
        self._programs: dict[str, Program] = {}
        self.flows = False

    def set_laws(self, rows: Sequence[LawRow], which: NDArray[np.integer]) -> None:
        """`which` of the laws is that of each point, (q,)."""
        self._laws = Laws.blank(len(which), len(rows), wp.float64, self._space.device)
        self._laws.write(list(rows), which)
        self._lag = Shared(len(rows), wp.float64, self._space.device)
        self._locking = wp.array([row.locking for row in rows], dtype=wp.float64, device=self._space.device)
        stiffness = np.array([row.stiffness for row in rows], np.float32).reshape(-1)
        self._stiffness = wp.array(stiffness, dtype=wp.float32, device=self._space.device)
        self.flows = any(row.flows for row in rows)
        self._record()

    def _record(self) -> None:
        launches = self._launches()
        dev.prepare([item for items in launches.values() for item in items], self._space.device)
        self._programs = {name: Program(items, self._space.device) for name, items in launches.items()}

    def follow(self, space: Space) -> None:
        """Go on with other functions at the same points and nodes."""
        lists = _lists(space.at_nodes)
        same = space.functions.lists is self._space.functions.lists and len(lists[1]) <= len(self._at_nodes[1])
        self._space = space
        cells = _cells(space)
        for name in ("of", "share", "start", "point"):
            wp.copy(getattr(self._cells, name), getattr(cells, name))
        if same:  # recorded launches stay as they are
            self._bunches.follow(space.functions)
            for mine, its in zip(self._at_nodes, lists, strict=True):
                wp.copy(mine, its, count=len(its))
        else:
            self._bunches = Bunches(space.functions)
            self._at_nodes = [wp.clone(array) for array in lists]
            self._record()

    def _launches(self) -> dict[str, list[Launch]]:
        space, laws, bunches = self._space, as_struct(self._laws), self._bunches
        points, nodes, u, total = len(space.points), len(space), self._u.array, self._total.array
        step = StepLaw()
        step.C, step.law = laws.stiffness, laws.of
        step.scale, step.k_v, step.k_b, step.swell, step.k_cell, step.swell_cell = (
            wp.zeros(points, dtype=wp.float64, device=space.device) for _ in range(6)
        )
        step.plastic = wp.zeros(points, dtype=wp.mat33d, device=space.device)
        step.cell = cell = self._cells.of

        def means(kernel: wp.Kernel, *fields: wp.array) -> list[Launch]:
            locks = self._locking.numpy().any()
            return [Launch(kernel, points + nodes, [self._cells, *fields])] if locks else []

        now = [self._J, self._plastic]
        find_J = [bunches.gradients(1.0, u, self._J), *means(find_volumes, self._J, self._volumes)]
        swelling = means(find_volume_changes, self._J, self._change, self._swellings)
        with_damping = [laws, self._lag.array, self._weight, self._J, self._volumes, self._locking, self._plastic, step]
        stresses = [step, self._J, self._volumes, self._stress, self._energy.array]
        changes = [step, self._J, self._volumes, self._swellings, self._change]
        exact = Launch(find_stress_changes, points, changes)

        def bends(positive: bool) -> Launch:
            return Launch(find_bends, points, [positive, step, self._J, self._volumes, self._bends])

        of_cells = means(find_means, self._swollen, self._swellings)
        if of_cells:
            of_cells.append(Launch(find_cell_stress_changes, points, [step, self._J, self._swellings, self._change]))
        law = laws.of, self._stiffness, self._bends
        bent = bunches.bent(*law, u, self._swollen, of_cells, self._change, total)
        energies = [laws, self._locking, self._weight, cell, self._volumes, *now, self._energy.array]
        return {
            "begin": [*find_J, Launch(find_step_law, points, with_damping)],
            "force": [*find_J, Launch(find_stresses, points, stresses), *bunches.gathered(self._stress, total)],
            "tangent": [
                bunches.gradients(0.0, u, self._change),
                *swelling,
                exact,
                *bunches.gathered(self._change, total),
            ],
            "bends": [bends(False)],
            "positive bends": [bends(True)],
            "rough tangent": bent,
            "cauchy": [Launch(find_cauchy, points, [laws, self._locking, cell, self._volumes, *now, self._stress])],
            "energy": [*find_J, Launch(find_energies, points, energies)],
            "spread": bunches.gathered(self._stress, total),
            "flow": [Launch(flow, points, [laws, self._dt.array, *now])],
            "turns": [Launch(find_turns, nodes, [*self._at_nodes, self._u.array, self._turn.array])],
        }

    def _run(self, name: str, u: Floats) -> Floats:
        self._u.host[:] = u
        self._u.push()
        self._programs[name].run()
        return self._total.pull()

    def begin(self, u: Floats, lag: Floats | float) -> None:
        """A step starts at u (n, 3), with b = β/Δt of each law, or of all."""
        self._lag.host[:] = lag
        self._lag.push()
        self._run("begin", u)

    def at(self, u: Floats) -> tuple[float, Floats]:
        """Energy [Pa] and force (n, 3) [Pa] at u (n, 3), damping included, in the body's lengths."""
        force = -self._run("force", u)
        return float(self._energy.pull().sum()), force

    def energy(self, u: Floats) -> float:
        """Elastic energy [Pa] at u (n, 3), in the body's lengths."""
        self._run("energy", u)
        return float(self._energy.pull().sum())

    def tangent(self, p: Floats) -> Floats:
        """K p at the last u that was asked for, (n, 3)."""
        return self._run("tangent", p).copy()

    def take_tangent(self, positive: bool = False) -> None:
        """`rough_tangent` is about K at the last u that was asked for from now on, or a positive part of it."""
        self._programs["positive bends" if positive else "bends"].run()

    def rough_tangent(self, p: Floats) -> Floats:
        """About K p, (n, 3), in single precision, with the K that was taken."""
        return self._run("rough tangent", p).copy()

    def cauchy(self) -> Floats:
        """Cauchy stress [Pa] at the points, for the last u that was asked for, shape (q, 3, 3)."""
        self._programs["cauchy"].run()
        return self._stress.numpy().copy()

    def spread(self, stress: Floats) -> Floats:
        """Σ_q P_q ∇φ_I of numbers P (q, 3, 3) at the points, shape (n, 3)."""
        self._stress.assign(stress)
        self._programs["spread"].run()
        return self._total.pull().copy()

    def flow(self, dt: float) -> None:
        """Plastic flow over dt [s], at the last u that was asked for."""
        self._dt.host[:] = dt
        self._dt.push()
        self._programs["flow"].run()

    def turns(self, u: Floats) -> Floats:
        """Rotation at each node, shape (n, 3, 3)."""
        self._run("turns", u)
        return self._turn.pull().copy()

    @property
    def J(self) -> Floats:
        """At the points, for the last u that was asked for, shape (q, 3, 3)."""
        return self._J.numpy()

    @property
    def plastic(self) -> Floats:
        """Stored strain of each point, shape (q, 3, 3)."""
        return self._plastic.numpy().copy()

    @plastic.setter
    def plastic(self, strain: Floats) -> None:
        self._plastic.assign(strain)


def _lists(values: ShapeValues) -> tuple[wp.array, wp.array, wp.array]:
    return values.start, values.index, values.dphi


def _cells(space: Space) -> Cells:
    """Those of a space, on its device."""
    functions, cells = space.functions, Cells()
    of = functions.cell
    point = np.argsort(of, kind="stable")
    start = np.searchsorted(of[point], np.arange(sum(functions.lists.shape) + 1))
    share = space.weights / functions.cell_volumes[of]
    cells.share = wp.array(share, dtype=wp.float64, device=space.device)
    cells.of, cells.start, cells.point = (
        wp.array(part, dtype=wp.int32, device=space.device) for part in (of, start, point)
    )
    return cells
