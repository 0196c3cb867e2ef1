"""Models that move one body by a field of shape functions: Galerkin, modal, rigid (physics 10 to 12).

Lengths are in units of the body's mean node spacing, positions are counted from the middle of its reference shape,
axes are the world's. Fields are given by coefficients u_I of the shape functions: u(X) = Σ_I φ_I(X) u_I. Stress is in
Pa and time in s, so a density counts as ρ unit²: M ü = −K u with K = ∫ Bᵀ C B in these lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel.contact.touch import Feel
from phyxel.material import Mixture
from phyxel.mls.shape_values import ShapeValues
from phyxel.state import State

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Hold:
    """Held points of a body."""

    points: Floats
    """X, shape (k, 3)"""
    still: bool
    """whether they stay where they are: a support, not a hand"""
    turns: bool = False
    """whether the body's rotation at its one point is held, too"""
    fills: bool = False
    """whether the points are nodes, and faces between them are held with them, in the mean"""


@dataclass(frozen=True)
class Goal:
    """Where a hold is to be at the end of a step."""

    displacements: Floats
    """of each of its points, shape (k, 3)"""
    rotation: Floats
    """how far it has turned since it was taken, 3 × 3"""


class FieldModel(Protocol):
    """Moves one body."""

    @property
    def space(self) -> Any:
        """A `Space`, or what a crumb has of one."""

    @property
    def u(self) -> Floats:
        """Coefficients of the displacement, shape (n, 3)."""

    @property
    def v(self) -> Floats:
        """Coefficients of the velocity [1/s], shape (n, 3)."""

    def set_material(self, mixture: Mixture, rotation: Floats) -> None:
        """What each node is made of, with the material's axes turned by `rotation`; motion goes on from where it is."""

    def set_holds(self, holds: Sequence[Hold]) -> None:
        """Points are held so from now on; nothing jumps."""

    def step(self, dt: float, push: Floats, goals: Sequence[Goal], feel: Feel | None) -> None:
        """Go on by dt [s] under accelerations `push` (n, 3) [1/s²], with every hold at its goal at the end, and out of
        colliders, which it feels."""

    def stop(self) -> None:
        """Be at rest in the present shape, out of touch with everything."""

    def settle(self, push: Floats, goals: Sequence[Goal], feel: Feel | None, tolerance: float) -> None:
        """Go to static equilibrium, to `tolerance`; the body is then at rest."""

    def shown(self) -> tuple[wp.array, Floats]:
        """Coefficients of the displacement about an even one, on the device in single precision, (n,) of vec3; and that
        even one, shape (3,)."""

    def displacement(self, at: ShapeValues) -> Floats:
        """u at points, shape (m, 3)."""

    def gradient(self, at: ShapeValues) -> Floats:
        """∇u at points, (∇u)_ab = ∂u_a/∂X_b, shape (m, 3, 3)."""

    def stress(self, at: ShapeValues, material: Mixture, which: NDArray[np.integer]) -> Floats:
        """Cauchy stress [Pa] at points whose laws are `which` of the mixture's, shape (m, 3, 3)."""

    def energies(self) -> tuple[float, float]:
        """Elastic and kinetic energy [J]."""

    def momenta(self) -> tuple[Floats, Floats]:
        """∫ρ v [kg m/s] and ∫ρ (X + u) × v [kg m²/s] about where the body counts from, shape (3,) each."""

    def middle(self) -> Floats:
        """The middle of mass, shape (3,)."""

    def plastic(self, at: ShapeValues) -> Floats:
        """Permanent strain at points, shape (m, 3, 3)."""

    def volume(self) -> float:
        """∫ |J| [m³]."""

    def state(self) -> State:
        """All that a checkpoint must keep."""

    def restore(self, state: State) -> None:
        """Take over what `state` gave."""


class FieldValues:
    """What most models give alike at points, whose φ and ∇φ are `at` them."""

    def shown(self: FieldModel) -> tuple[wp.array, Floats]:
        """Coefficients about their mean, on the device in single precision, and that mean."""
        u = self.u
        mean = u.mean(axis=0)
        return wp.array((u - mean).astype(np.float32), dtype=wp.vec3, device=self.space.device), mean

    def displacement(self: FieldModel, at: ShapeValues) -> Floats:
        """u at points, shape (m, 3)."""
        return np.asarray(at.values @ self.u)

    def gradient(self: FieldModel, at: ShapeValues) -> Floats:
        """∇u at points, (∇u)_ab = ∂u_a/∂X_b, shape (m, 3, 3)."""
        u = self.u
        return np.stack([part @ u for part in at.gradients], axis=2)

    def plastic(self, at: ShapeValues) -> Floats:
        """None: shape (m, 3, 3)."""
        return np.zeros((len(at.condition), 3, 3))

    def lead(self: Tangible, before: Floats, dt: float) -> Floats:
        """See `Tangible.lead`: it goes straight on."""
        return self.drift(before, dt)


@runtime_checkable
class BrittleModel(FieldModel, Protocol):
    """A model of a body in which cracks run."""

    def look_by(self, cracks: Callable[..., NDArray[np.bool_]]) -> None:
        """Let `cracks` say from now on which places at birth see each other past them: the same as was known so far."""

    def crack(self, boxes: Sequence[tuple[Floats, Floats]] | None) -> bool:
        """Cracks have come to lie in some boxes, or anywhere: part what they part; whether that was anything."""

    def point_stress(self) -> tuple[Floats, Floats]:
        """Cauchy stress [Pa] and deformation gradient at the quadrature points, shape (m, 3, 3) each."""

    def part(self, space: Any, nodes: NDArray[np.int64], outermost: NDArray[np.int64], faces: Floats) -> FieldModel:
        """The model of a piece with these nodes (k,), its own space, outermost nodes and new faces (f, 3)."""

    def momenta(self, nodes: NDArray[np.int64] | None = None) -> tuple[Floats, Floats]:
        """Those of `FieldModel`, or of some nodes."""


class Tangible(FieldModel, Protocol):
    """A model whose body others can touch: coefficients of positions are those of u on top of its space's nodes."""

    with_others: bool | None
    """whether it meets colliders together with other bodies, not within its own step; None: while others are near"""

    @property
    def margin(self) -> float:
        """How far its surface may lie outside the box around its coefficients."""

    def unload(self, dt: float) -> None:
        """A step of dt [s] was taken: leave aside what others did to the body before, if that was foreseen in it."""

    def drift(self, before: Floats, dt: float) -> Floats:
        """Velocity (n, 3) with which the coefficients get from u = `before` to the end of the last step, of dt [s], if
        no impulses act; those that they make add to it."""

    def lead(self, before: Floats, dt: float) -> Floats:
        """The same, but (n, 3) by which they truly get there: what turns goes along a bow, not straight on."""

    def response(self, rows: csr_array, dt: float) -> Floats:
        """A root L of what unit impulses within the last step, of dt [s], at points with φ in `rows` (k, n) do to the
        velocities of these points, L Lᵀ; shape (3k, r), with r ways to answer."""

    def push(self, rows: csr_array, places: Floats, impulses: Floats, before: Floats, dt: float) -> None:
        """Let impulses (k, 3) at such points, which were at `places` (k, 3) when it began, act within that step, which
        began at u = `before`. Momentum and angular momentum change by theirs, unless something else holds the body."""

    def work(self, before: Floats) -> float:
        """What the pushes of the last step have done since u was `before` (n, 3) [J]."""

    def calm(self, energy: float) -> float:
        """Take some energy of vibration away, as far as there is any; how much that was [J]. Momenta stay."""

    def ease(self) -> None:
        """Take half of what the last impulses have moved back, and leave velocities such that momenta stay."""


class TurnsAsOne(Tangible, Protocol):
    """One that moves and turns as a whole."""

    def root(self, dt: float) -> Floats:
        """What `response` makes of a root: how r ways to answer move the first of its coefficients, and turn it
        [1/s], shape (6, r)."""

    def kick(self, push: Floats, turn: Floats, spin: Floats, before: Floats, dt: float) -> None:
        """Let impulses act as `push` does, that sum up to this (3,), and about the first of its coefficients to `turn`
        (3,) from where they are, to `spin` (3,) from where they were when the step began."""
