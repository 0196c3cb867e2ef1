"""Eigenmodes of a body (G05; physics 11.1), the lowest solutions of K x = ω² M x, and what pulls at points make of it.

Everything here is in the body's own scales: stiffness in units of its first material's, density in units of its first.
So a body that only becomes stiffer keeps its modes; its frequencies go with √(modulus / density).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.sparse import csc_array, csr_array, eye_array, kron
from scipy.sparse.linalg import LinearOperator, eigsh, splu

from phyxel import cache
from phyxel.material import Mixture
from phyxel.mls.shape_values import ShapeValues
from phyxel.models.galerkin.held import Held
from phyxel.models.galerkin.space import Space
from phyxel.models.law import LawRow
from phyxel.models.protocol import Hold
from phyxel.rotation import cross_matrix

Floats = NDArray[np.float64]
Progress = Callable[[str, float], None]

VERSION = 6
"""Of modes on disk: to be raised when modes come out differently."""
MOST_MODES = 256
DENSE = 6000
"""Unknowns up to which a dense factor is sooner made than a sparse one: every node meets a hundred others."""
SHIFT = 1e-6
"""What of M is added to K, as a share of tr K / tr M: a free body's K has no inverse."""
UNFELT = 1e-9
"""Share of a force, or of a point's shape functions, that is no more than rounding left by a clamp."""
DEPENDENT = 1e-6
"""A shape of which others make up all but this share adds nothing."""


@dataclass(frozen=True)
class ModalMatrices:
    """M and K of a body, in its own scales, and the scales."""

    mass: csr_array
    """shape (n, n)"""
    stiffness: csr_array
    """shape (3n, 3n)"""
    density: float
    """[kg/m³]"""
    modulus: float
    """[Pa]"""
    drag: float
    """Rayleigh's α [1/s]"""
    damping: float
    """Rayleigh's β [s]; both are the body's means, by mass"""
    content: tuple[Any, ...]
    """what M and K were made of, to be hashed"""
    rows: list[LawRow]
    """the laws, in units of the first"""
    kinds: NDArray[np.integer]
    """law of each node, shape (n,)"""

    @staticmethod
    def of(space: Space, mixture: Mixture, rotation: Floats) -> ModalMatrices:
        """A body made of a mixture whose axes are turned by `rotation`."""
        rows = [LawRow.of(material, rotation) for material in mixture.materials]
        modulus = float(rows[0].stiffness[0, 0] + rows[0].k_v)
        density = mixture.materials[0].density
        # Rounded: the last digits must not tell a body from the same one that is stiffer.
        scaled = [
            replace(row, stiffness=np.round(row.stiffness / modulus, 12), k_v=round(row.k_v / modulus, 12))
            for row in rows
        ]
        densities = np.round(np.array([material.density for material in mixture.materials]) / density, 12)
        which = mixture.which[space.owner]
        laws = np.array([np.append(row.stiffness.ravel(), row.k_v) for row in scaled])
        mass, stiffness = space.once(
            cache.digest([laws, densities, which]),
            lambda: (space.mass(densities[which]), csr_array(space.stiffness(scaled, which))),
        )
        share = mass.sum(axis=1) / mass.sum()
        drag, damping = (float(mixture.number(name) @ share) for name in ("drag", "damping"))
        points = space.weights, space.values.indices, space.values.data, space.functions.dphi
        content = space.nodes, *points, laws, densities, which
        return ModalMatrices(mass, stiffness, density, modulus, drag, damping, content, scaled, mixture.which)

    def clamped(self, space: Space, faces: NDArray[np.integer]) -> ModalMatrices:
        """Of the same body, nodes of which are held as faces (physics 10.3)."""
        joined = space.joined(faces, self.rows, self.kinds)
        if joined is space:
            return self
        return replace(self, stiffness=csr_array(joined.stiffness(self.rows, self.kinds[space.owner])))

    def __len__(self) -> int:
        return int(self.mass.shape[0])

    def weighed(self, shapes: Floats) -> Floats:
        """M times fields (n, 3, m)."""
        return (self.mass @ shapes.reshape(len(self), 3 * shapes.shape[2])).reshape(shapes.shape)

    def strained(self, shapes: Floats) -> Floats:
        """K times fields (n, 3, m)."""
        return (self.stiffness @ shapes.reshape(3 * len(self), shapes.shape[2])).reshape(shapes.shape)

    def products(self, one: Floats, other: Floats) -> Floats:
        """∫ρ u·v of the fields in the first three rows of shapes (n, r, m) and (n, r, k), shape (m, k)."""
        return np.tensordot(one[:, :3], self.weighed(np.ascontiguousarray(other[:, :3])), ([0, 1], [0, 1]))


class Clamp:
    """Points of a body that cannot move, Σ φ_I(X_c) u_I = 0, and faces between them (physics 10.5)."""

    def __init__(self, space: Space, holds: Sequence[Hold]) -> None:
        self.points: Floats = np.concatenate([hold.points for hold in holds])
        """shape (c, 3)"""
        self.content = [part for hold in holds for part in (hold.points, hold.fills)]
        """what it depends on besides the space, to be hashed"""
        held = Held.of(space, [replace(hold, turns=False) for hold in holds])
        self.faces = held.faces
        """nodes of held faces, ascending"""
        self.nodes: NDArray[np.int64] = np.unique(held.rows.indices)
        """those that matter, shape (b,)"""
        rank = held.basis.shape[1]
        across = np.linalg.svd(held.basis[self.nodes].T)[2]
        self.held: Floats = across[:rank].T @ across[:rank]
        """the part of their coefficients that moves the points, a projection, b × b"""
        self._free = across[rank:].T

    def null_space(self, nodes: int) -> csr_array:
        """All that the coefficients of n nodes can still do, shape (n, m), orthonormal columns."""
        others = np.setdiff1d(np.arange(nodes), self.nodes)
        free = np.zeros((nodes, len(others) + self._free.shape[1]))
        free[others, np.arange(len(others))] = 1.0
        free[self.nodes, len(others) :] = self._free
        return csr_array(free)

    def without(self, u: Floats) -> Floats:
        """Coefficients (n, ...) without what would move the points."""
        left = u.copy()
        left[self.nodes] -= np.tensordot(self.held, u[self.nodes], 1)
        return left


def pins(points: Floats) -> bool:
    """Whether a body with these points (k, 3) fixed can neither move nor turn: they are not in one line."""
    if len(points) < 3:
        return False
    sizes = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    return bool(sizes[1] > 1e-6 * max(sizes[0], 1e-30))


class Compliance:
    """(K + shift M)⁻¹ where a body is free to move: its factor is kept."""

    def __init__(self, matter: ModalMatrices, clamp: Clamp | None) -> None:
        n = len(matter)
        free = eye_array(n, format="csr") if clamp is None else clamp.null_space(n)
        self._free = csr_array(kron(free, eye_array(3)))
        self.stiffness = csr_array(self._free.T @ matter.stiffness @ self._free)
        self.mass = csr_array(self._free.T @ kron(matter.mass, eye_array(3)) @ self._free)
        self.shift = SHIFT * self.stiffness.trace() / max(self.mass.trace(), np.finfo(float).tiny)
        shifted = csc_array(self.stiffness + self.shift * self.mass)
        if shifted.shape[0] <= DENSE:
            factor = cho_factor(shifted.toarray(), lower=True, overwrite_a=True, check_finite=False)
            self._inverse = lambda b: cho_solve(factor, b, check_finite=False)
        else:
            self._inverse = splu(shifted, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}).solve

    def response(self, forces: Floats) -> Floats:
        """What forces (n, 3, m) on the coefficients do, shape (n, 3, m): nothing, where the clamp takes all of them."""
        flat = forces.reshape(-1, forces.shape[2])
        acting = self._free.T @ flat
        felt = np.linalg.norm(acting, axis=0) > UNFELT * np.linalg.norm(flat, axis=0)
        result = np.zeros_like(flat)
        if felt.any():
            result[:, felt] = self._free @ self._inverse(acting[:, felt])
        return result.reshape(forces.shape)

    def lowest(self, count: int, progress: Progress | None) -> Floats:
        """The lowest eigenvectors, by Lanczos' method on the inverse, shape (n, 3, count)."""
        size = self.stiffness.shape[0]
        if 4 * count >= size:
            vectors = eigh(self.stiffness.toarray(), self.mass.toarray(), subset_by_index=[0, count - 1])[1]
        else:
            applied = self._inverse if progress is None else _counted(self._inverse, 3 * count, progress)
            vectors = eigsh(
                self.stiffness,
                count,
                self.mass,
                sigma=-self.shift,
                OPinv=LinearOperator((size, size), applied, dtype=np.float64),
                v0=np.cos(np.arange(size, dtype=np.float64)),
                tol=1e-10,
            )[1]
        return (self._free @ vectors).reshape(-1, 3, count)


def _counted(inverse: Callable[[Floats], Floats], expected: int, progress: Progress) -> Callable[[Floats], Floats]:
    done = 0

    def counted(b: Floats) -> Floats:
        nonlocal done
        done += 1
        progress("modes", min(1.0, done / expected))
        return inverse(b)

    return counted


@dataclass(frozen=True)
class Modes:
    """Shapes that are orthonormal in M and diagonal in K."""

    shapes: Floats
    """Ψ, shape (n, 3, l), or [Ψ; W] with the rotations that go with it, shape (n, 6, l)"""
    values: Floats
    """ω² in the body's own scales, ascending, shape (l,)"""


def eigenmodes(
    matter: ModalMatrices,
    clamp: Clamp | None,
    count: int,
    compliance: Callable[[], Compliance],
    progress: Progress | None = None,
) -> Modes:
    """The lowest `count` modes of a body that is clamped, or the lowest elastic ones of a free one; fewer if it has
    fewer. Remembered on disk."""
    rigid = 0 if clamp is not None else 6
    freedom = 3 * len(matter)
    if clamp is not None:
        freedom -= 3 * round(np.trace(clamp.held))
    count = max(0, min(count, MOST_MODES, freedom - rigid))
    if count == 0:
        return Modes(np.zeros((len(matter), 3, 0)), np.zeros(0))  # all of it is held

    def compute() -> dict[str, Floats]:
        found = compliance().lowest(count + rigid, progress)[:, :, rigid:]
        modes = diagonal(matter, orthonormal(matter, found, [] if clamp is not None else [rigid_shapes(matter)]))
        return {"shapes": modes.shapes, "values": modes.values}

    base = [] if clamp is None else clamp.content
    known = cache.remembered("modes", [VERSION, count, *base, *matter.content], compute)
    return Modes(known["shapes"], known["values"])


def rigid_shapes(matter: ModalMatrices) -> Floats:
    """The six rigid motions of a body, M-orthonormal, shape (n, 3, 6)."""
    X = matter.content[0]
    shapes = np.zeros((len(matter), 3, 6))
    for axis, unit in enumerate(np.eye(3)):
        shapes[:, axis, axis] = 1.0
        shapes[:, :, 3 + axis] = np.cross(unit, X)
    return orthonormal(matter, shapes, [])


def orthonormal(matter: ModalMatrices, wanted: Floats, apart_from: Sequence[Floats]) -> Floats:
    """M-orthonormal shapes that span those `wanted` (n, r, m) together with others, (n, r, k), that are orthonormal;
    those that others make up are dropped. Rows after the third come along."""
    size = np.sqrt(np.einsum("iak,iak->k", wanted[:, :3], matter.weighed(np.ascontiguousarray(wanted[:, :3]))))
    new = wanted[:, :, size > 0] / size[size > 0]
    for _ in range(2):  # twice: the first time leaves what rounding left
        for others in apart_from:
            new = new - others[:, : new.shape[1]] @ matter.products(others, new)
    gram = matter.products(new, new)
    values, turn = eigh(0.5 * (gram + gram.T))
    some = values > DEPENDENT**2
    return new @ (turn[:, some] / np.sqrt(values[some]))


def diagonal(matter: ModalMatrices, shapes: Floats) -> Modes:
    """The modes of a body that can only move by orthonormal shapes (n, r, m)."""
    n, _, m = shapes.shape
    if m == 0:
        return Modes(shapes, np.zeros(0))
    fields = np.ascontiguousarray(shapes[:, :3])
    small = np.tensordot(fields, matter.strained(fields), ([0, 1], [0, 1]))
    values, turn = eigh(0.5 * (small + small.T))
    turned = shapes @ turn
    flat = turned[:, :3].reshape(3 * n, m)
    size = np.abs(flat)
    first = np.argmax(size > 0.999 * size.max(axis=0), axis=0)  # the first of the largest: its sign is to be positive
    return Modes(turned * np.sign(flat[first, np.arange(m)]), values)


def curls(at: ShapeValues, shapes: Floats) -> Floats:
    """½∇×u (G05 eq. 6) of fields (n, 3, l) at points, shape (m, 3, l)."""
    n, _, l = shapes.shape
    m = len(at.condition)
    dx, dy, dz = ((gradient @ shapes.reshape(n, 3 * l)).reshape(m, 3, l) for gradient in at.gradients)
    return 0.5 * np.stack([dy[:, 2] - dz[:, 1], dz[:, 0] - dx[:, 2], dx[:, 1] - dy[:, 0]], axis=1)


def turning(space: Space, shapes: Floats) -> Floats:
    """[Ψ; W] of shapes Ψ (n, 3, l) that turn the body as they bend it: W = ½∇×Ψ, shape (n, 6, l)."""
    return np.concatenate([shapes, curls(space.at_nodes, shapes)], axis=1)


def straight(shapes: Floats) -> Floats:
    """[Ψ; 0] of shapes that turn nothing, shape (n, 6, l)."""
    return np.concatenate([shapes, np.zeros_like(shapes)], axis=1)


class ModalShapes:
    """Those of a body that some holds clamp, if they keep it from turning, or that is free; found when asked for."""

    def __init__(
        self, space: Space, matter: ModalMatrices, holds: Sequence[Hold], count: int, progress: Progress | None
    ) -> None:
        """With `count` modes; `progress` hears how far these are found."""
        held = bool(holds) and pins(np.concatenate([hold.points for hold in holds]))
        self.base: list[Hold] = list(holds) if held else []
        """holds that clamp it"""
        self.clamp = Clamp(space, holds) if held else None
        self._matter = matter if self.clamp is None else matter.clamped(space, self.clamp.faces)
        self._space, self._count, self._progress = space, count, progress
        self._responses: dict[bytes, Floats] = {}

    @cached_property
    def _compliance(self) -> Compliance:
        return Compliance(self._matter, self.clamp)

    @cached_property
    def modes(self) -> Modes:
        """The body's own modes."""
        return eigenmodes(self._matter, self.clamp, self._count, lambda: self._compliance, self._progress)

    def joined(self, pulls: Sequence[tuple[Floats, bool]], present: Floats) -> Modes:
        """Modes of a body that can move by its own modes, by what pulls at points (k, 3) make of it, and by shapes
        `present` (n, 6, 2) that it has now and goes to: so nothing jumps.

        A pull at a few points bends the body by its modes; the rest of its shape is local, and turns nothing. If it
        did, the sharp peak under a single point would roll up.
        """
        matter = self._matter
        shapes = [turning(self._space, self.modes.shapes)]
        rigid = [straight(rigid_shapes(matter))] if self.clamp is None else []
        for points, turns in pulls:
            shapes.append(straight(orthonormal(matter, self._response(points, turns), [*rigid, *shapes])))
        shapes.append(orthonormal(matter, present, shapes))
        return diagonal(matter, np.concatenate(shapes, axis=2))

    def _response(self, points: Floats, turns: bool) -> Floats:
        """The static shapes that unit forces at points (k, 3) make, and unit torques at the first if that is to turn,
        shape (n, 3, m)."""
        at = self._space.at(points)
        forces = np.einsum("ci,ab->iacb", at.values.toarray(), np.eye(3)).reshape(len(self._space), 3, -1)
        if turns:
            gradients = np.stack([part[[0]].toarray()[0] for part in at.gradients], axis=1)
            forces = np.concatenate([forces, 0.5 * cross_matrix(gradients)], axis=2)
        if self.clamp is None:  # a free body's frame takes the rest, next to which its bending would be lost
            rigid = rigid_shapes(self._matter)
            amounts = np.tensordot(rigid, forces, ([0, 1], [0, 1]))
            forces = forces - self._matter.weighed(rigid) @ amounts
        key = forces.tobytes()
        if key not in self._responses:
            self._responses[key] = self._compliance.response(forces)
        return self._responses[key]
