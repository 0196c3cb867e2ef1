# mypy: disable-error-code="valid-type,no-untyped-def,no-redef"
"""Element-free Galerkin shape functions φ_I(x) and their gradients, at any point of a solid (G04 §3.1, physics 2.4).

    A(x) = Σ_I w_I p_I p_Iᵀ,   A a = p,   φ_I = w_I p_Iᵀ a

with a linear basis p = (1, x, y, z) or a quadratic one, about the point itself: the origin and the unit of length of
the basis are frozen while differentiating, so that at the point p = (1, 0, …), ∂p/∂x_k = e_k for the linear terms and
zero for those of second order, and p_I does not change. Then

    φ_I,k = w_I,k p_Iᵀ a + w_I p_Iᵀ b_k,   A b_k = e_k − A,k a,   A,k a = Σ_I w_I,k p_I (p_Iᵀ a)

Where nodes do not span a quadratic basis, as in a plate with nodes on its two faces alone, terms of second order can be
tied: with τ > 0, A has τ Σ_I w_I more at squares of its diagonal and half of it at products, as of least squares that
ask for small second derivatives, however the axes lie (after Joldes and others 2015). Linear fields stay exact, as in a
linear basis; quadratic ones are as far as nodes tell them.

Each node covers a cube of half side d_I about it, with a weight that falls to zero at the cube's faces. Every sum is in
double; positions are taken about the middle of the nodes and lengths, in the basis, in units of the mean cover at the
point: neither a scale nor a place costs digits, and cond(A) says how well the nodes around a point determine a field.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import warp as wp
from numpy.typing import ArrayLike, NDArray

from phyxel import device as dev
from phyxel.device import float64s, int32s, vec3ds
from phyxel.errors import SolidError, did_you_mean
from phyxel.mls.moment_matrix import LINEAR, inverse_of, largest_eigenvalue, tie_of, tied, without_second_order
from phyxel.mls.shape_values import ShapeValues, owners_of, starts_of
from phyxel.mls.visibility import Sees, seen_pairs

# Loops stay loops: code for 10 × 10 matrices, written out term by term, is long and slow to compile.
wp.set_module_options({**dev.KERNEL_OPTIONS, "max_unroll": 1})

Basis = Literal["linear", "quadratic"]

vec10d = wp.types.vector(10, wp.float64)
mat10d = wp.types.matrix((10, 10), wp.float64)
TERMS = {"linear": (wp.vec4d, wp.mat44d), "quadratic": (vec10d, mat10d)}
"""The types of p and A for each basis."""


# ---- Which nodes cover a point ----


@wp.func
def _covers(I: int, x: wp.vec3d, X: vec3ds, cover: float64s):
    return wp.max(wp.abs(X[I] - x)) < cover[I]


@wp.kernel
def count_covers(first: int, cubes: wp.uint64, x: vec3ds, X: vec3ds, cover: float64s, count: int32s):
    """How many nodes cover each point: |x − X_I|∞ < d_I (physics 2.5)."""
    i = first + wp.tid()
    at = wp.vec3(x[i])
    found = int(0)
    query = wp.bvh_query_aabb(cubes, at, at)
    I = int(0)
    while wp.bvh_query_next(query, I):
        if _covers(I, x[i], X, cover):
            found += 1
    count[i] = found


@wp.func
def sort_entries(index: int32s, first: int, end: int):
    """Shell's sort of index[first : end]: a few hundred entries at most, and no room for more."""
    gap = int(121)
    while gap > 0:
        for entry in range(first + gap, end):
            moved = index[entry]
            place = int(entry)
            while place >= first + gap and index[place - gap] > moved:
                index[place] = index[place - gap]
                place -= gap
            index[place] = moved
        gap = gap // 3


@wp.kernel
def list_covers(first: int, cubes: wp.uint64, x: vec3ds, X: vec3ds, cover: float64s, start: int32s, index: int32s):
    """Those nodes, in ascending order: the same sums whatever tree found them."""
    i = first + wp.tid()
    at = wp.vec3(x[i])
    end = start[i]
    query = wp.bvh_query_aabb(cubes, at, at)
    I = int(0)
    while wp.bvh_query_next(query, I):
        if _covers(I, x[i], X, cover):
            index[end] = I
            end += 1
    sort_entries(index, start[i], end)


# ---- Weights and basis ----


@wp.func
def bump(s: wp.float64):
    """c(s) and c′(s): 1 − 2s² for |s| < ½, 2(1 − |s|)² up to 1, then 0 (G04 eq. 13, physics 2.5)."""
    size = wp.abs(s)
    if size < wp.float64(0.5):
        return wp.float64(1.0) - wp.float64(2.0) * s * s, wp.float64(-4.0) * s
    rest = wp.max(wp.float64(1.0) - size, wp.float64(0.0))
    return wp.float64(2.0) * rest * rest, wp.float64(-4.0) * rest * wp.sign(s)


@wp.func
def cover_weight(arm: wp.vec3d, cover: wp.float64):
    """w_I = c(s_x) c(s_y) c(s_z) and ∇w_I at the point x, with s = (x − X_I)/d_I and `arm` = X_I − x (G04 eq. 12)."""
    s = -arm / cover
    cx, slope_x = bump(s[0])
    cy, slope_y = bump(s[1])
    cz, slope_z = bump(s[2])
    return cx * cy * cz, wp.vec3d(slope_x * cy * cz, cx * slope_y * cz, cx * cy * slope_z) / cover


@wp.func
def basis(q: wp.vec3d, kind: wp.vec4d):
    """p(q) with as many terms as `kind` has: 1, x, y, z"""
    return wp.vec4d(wp.float64(1.0), q[0], q[1], q[2])


@wp.func
def basis(q: wp.vec3d, kind: vec10d):  # noqa: F811
    """and x², y², z², yz, zx, xy."""
    p = vec10d()
    p[0] = wp.float64(1.0)
    for k in range(3):
        p[1 + k] = q[k]
        p[4 + k] = q[k] * q[k]
        p[7 + k] = q[(k + 1) % 3] * q[(k + 2) % 3]
    return p


# ---- The moment matrix ----


@wp.kernel
def invert_moments(
    first: int,
    x: vec3ds,
    X: vec3ds,
    cover: float64s,
    start: int32s,
    index: int32s,
    tie: wp.float64,
    unit: float64s,
    inverse: wp.array(dtype=Any),
    condition: float64s,
):
    """The mean cover d̄ at each point, A⁻¹ with A = Σ w_I p_I p_Iᵀ and p_I = p((X_I − x)/d̄), and cond(A) (G04 eq. 4,
    physics 2.4); if terms of second order are tied, that of the others.

    Where the nodes do not determine the basis, A⁻¹ is zero and cond(A) infinite.
    """
    i = first + wp.tid()
    condition[i] = wp.float64(wp.inf)
    inverse[i] = type(inverse[i])()
    if start[i] == start[i + 1]:
        return
    d = wp.float64(0.0)
    for entry in range(start[i], start[i + 1]):
        d += cover[index[entry]]
    d /= wp.float64(start[i + 1] - start[i])
    unit[i] = d
    A = type(inverse[i])()
    kind = A[0]
    for entry in range(start[i], start[i + 1]):
        arm = X[index[entry]] - x[i]
        w, _slope = cover_weight(arm, cover[index[entry]])
        p = basis(arm / d, kind)
        A += wp.outer(w * p, p)
    total = A[0, 0]
    A /= total  # weights at the rim of a cover are tiny, and their eighth powers nothing
    told = A
    if tie > wp.float64(0.0):
        told = without_second_order(A)
        for k in range(LINEAR, len(kind)):
            A[k, k] += tie_of(k, tie / (d * d * d * d))  # τ counts lengths in own units: d̄ jumps at rims of covers
    told_inverse = inverse_of(told)
    if told_inverse[0, 0] > wp.float64(0.0):
        condition[i] = largest_eigenvalue(told) * largest_eigenvalue(told_inverse)
        inverse[i] = wp.where(tie > wp.float64(0.0), inverse_of(A), told_inverse) / total


# ---- The shape functions ----


@wp.kernel
def fill_shape_functions(
    first: int,
    x: vec3ds,
    X: vec3ds,
    cover: float64s,
    start: int32s,
    index: int32s,
    tie: wp.float64,
    unit: float64s,
    inverse: wp.array(dtype=Any),
    per_length: wp.float64,
    phi: float64s,
    dphi: vec3ds,
):
    """φ_I = w_I p_Iᵀ a and φ_I,k = w_I,k p_Iᵀ a + w_I p_Iᵀ b_k of every pair (G04 eq. 6 and 9, physics 2.4),
    the gradients times `per_length`."""
    i = first + wp.tid()
    d = unit[i]
    a = inverse[i][0]
    held = tied(a, tie / (d * d * d * d))
    # A,k a, axis by axis
    fall_x = type(a)()
    fall_y = type(a)()
    fall_z = type(a)()
    for entry in range(start[i], start[i + 1]):
        arm = X[index[entry]] - x[i]
        w, slope = cover_weight(arm, cover[index[entry]])
        p = basis(arm / d, a)
        pa = wp.dot(p, a)
        phi[entry] = w * pa
        dphi[entry] = slope * pa
        fall_x += slope[0] * (pa * p + held)
        fall_y += slope[1] * (pa * p + held)
        fall_z += slope[2] * (pa * p + held)
    # In units of d̄, ∂p/∂x_k = e_k / d̄.
    bx = inverse[i][1] / d - inverse[i] * fall_x
    by = inverse[i][2] / d - inverse[i] * fall_y
    bz = inverse[i][3] / d - inverse[i] * fall_z
    for entry in range(start[i], start[i + 1]):
        arm = X[index[entry]] - x[i]
        w, _slope = cover_weight(arm, cover[index[entry]])
        p = basis(arm / d, a)
        change = wp.vec3d(wp.dot(p, bx), wp.dot(p, by), wp.dot(p, bz))
        dphi[entry] = (dphi[entry] + w * change) * per_length


# Both bases at once: a module compiled for one only would be compiled again for the other.
KERNELS = {
    basis: [
        wp.overload(kernel, {"inverse": wp.array(dtype=matrix)}) for kernel in (invert_moments, fill_shape_functions)
    ]
    for basis, (_, matrix) in TERMS.items()
}


@dataclass(frozen=True)
class _Covered:
    """Points on the device, in own units, and the nodes that each depends on: `index[start[i] : start[i + 1]]`."""

    x: wp.array
    start: wp.array
    index: wp.array


class ShapeFunctions:
    """Shape functions of nodes (n, 3) [m] whose cubes of cover have half sides `covers` (n,) [m].

    Terms of second order are tied by `tie`, τ, with lengths about in covers. A point outside every cover has no nodes.
    It does not depend on nodes that are not seen, as `sees` says, from the nearest node that sees it.
    """

    def __init__(
        self,
        nodes: ArrayLike,
        covers: ArrayLike,
        basis: Basis = "linear",
        sees: Sees | None = None,
        device: str | wp.Device | None = None,
        tie: float = 0.0,
    ) -> None:
        if basis not in TERMS:
            raise SolidError(f'basis "{basis}"{did_you_mean(basis, TERMS)}')
        self.nodes, self.covers = _checked(nodes, covers)
        self.basis: Basis = basis
        self._sees, self.tie = sees, tie
        self._device = dev.pick(device)
        self._origin = (self.nodes.min(axis=0) + self.nodes.max(axis=0)) / 2
        self._unit = 2.0 ** np.round(np.log2(self.covers.mean()))  # dividing by a power of two loses nothing
        X, cover = self._own_units(self.nodes), self.covers / self._unit
        self._X = wp.array(X, dtype=wp.vec3d, device=self._device)
        self._cover = wp.array(cover, dtype=wp.float64, device=self._device)

    @cached_property
    def _cubes(self) -> wp.Bvh:
        return _cubes_around(self._own_units(self.nodes), self.covers / self._unit, self._device)

    def _own_units(self, positions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Positions about the middle of the nodes, in units of about the mean cover."""
        return (positions - self._origin) / self._unit

    def with_covers(self, covers: NDArray[np.float64]) -> ShapeFunctions:
        """The same nodes with other covers (n,) [m]."""
        return ShapeFunctions(self.nodes, covers, self.basis, self._sees, self._device, self.tie)

    def with_tie(self, tie: float) -> ShapeFunctions:
        """The same nodes and covers with terms of second order tied by τ."""
        return ShapeFunctions(self.nodes, self.covers, self.basis, self._sees, self._device, tie)

    def at(self, points: ArrayLike) -> ShapeValues:
        """φ and ∇φ at points (m, 3) [m]."""
        return self._on(self._covered(positions_of(points, "points")))

    def on(self, points: ArrayLike, owner: NDArray[np.integer], index: NDArray[np.integer]) -> ShapeValues:
        """The same with nodes that are given: pairs of a point and a node, (pairs,) each, both ascending."""
        where = self._own_units(positions_of(points, "points"))
        lists = starts_of(np.bincount(owner, minlength=len(where))), np.asarray(index, np.int32)
        on_device = [wp.array(part, dtype=wp.int32, device=self._device) for part in lists]
        return self._on(_Covered(wp.array(where, dtype=wp.vec3d, device=self._device), *on_device))

    def _on(self, covered: _Covered) -> ShapeValues:
        unit, inverse, condition = self._moments(covered)
        pairs = len(covered.index)
        phi = wp.empty(pairs, dtype=wp.float64, device=self._device)
        dphi = wp.empty(pairs, dtype=wp.vec3d, device=self._device)
        per_length = wp.float64(1 / self._unit)
        self._launch(KERNELS[self.basis][1], covered, [unit, inverse, per_length, phi, dphi])
        return ShapeValues(covered.start, covered.index, phi, dphi, condition.numpy(), len(self.nodes))

    def condition(self, points: ArrayLike) -> NDArray[np.float64]:
        """cond(A) at points (m, 3) [m], as in `ShapeValues`, shape (m,)."""
        return self._moments(self._covered(positions_of(points, "points")))[2].numpy()

    def pairs(self, points: ArrayLike) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Each point and node that feel each other, as two arrays of indices (pairs,)."""
        covered = self._covered(positions_of(points, "points"))
        return owners_of(covered.start.numpy()), covered.index.numpy()

    def _launch(self, kernel: wp.Kernel, covered: _Covered, others: list[Any]) -> None:
        pairs = [covered.x, self._X, self._cover, covered.start, covered.index, wp.float64(self.tie)]
        dev.launch(kernel, len(covered.x), [*pairs, *others], self._device)

    def _moments(self, covered: _Covered) -> tuple[wp.array, wp.array, wp.array]:
        """d̄ in own units, A⁻¹ and cond(A), each (m,)."""
        m = len(covered.x)
        unit = wp.ones(m, dtype=wp.float64, device=self._device)
        inverse = wp.empty(m, dtype=TERMS[self.basis][1], device=self._device)
        condition = wp.empty(m, dtype=wp.float64, device=self._device)
        self._launch(KERNELS[self.basis][0], covered, [unit, inverse, condition])
        return unit, inverse, condition

    def _covered(self, points: NDArray[np.float64]) -> _Covered:
        """The nodes that cover each point and are seen from it."""
        m, device = len(points), self._device
        x = wp.array(self._own_units(points), dtype=wp.vec3d, device=device)
        search = [self._cubes.id, x, self._X, self._cover]
        count = wp.empty(m, dtype=wp.int32, device=device)
        dev.launch(count_covers, m, [*search, count], device)
        start = starts_of(count.numpy())
        starts = wp.array(start, dtype=wp.int32, device=device)
        index = wp.empty(int(start[-1]), dtype=wp.int32, device=device)
        dev.launch(list_covers, m, [*search, starts, index], device)
        if self._sees is None:
            return _Covered(x, starts, index)
        owner, listed = owners_of(start), index.numpy()
        seen = seen_pairs(points, self.nodes, owner, listed, self._sees)
        lists = starts_of(np.bincount(owner[seen], minlength=m)), listed[seen]
        return _Covered(x, *(wp.array(part, dtype=wp.int32, device=device) for part in lists))


def positions_of(array: ArrayLike, name: str) -> NDArray[np.float64]:
    positions = np.array(array, np.float64, order="C")
    if positions.ndim != 2 or positions.shape[1] != 3:
        raise SolidError(f"{name} have shape {positions.shape}; give (count, 3)")
    return positions


def _checked(nodes: ArrayLike, covers: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    X, cover = positions_of(nodes, "nodes"), np.array(covers, np.float64)
    if len(X) == 0 or cover.shape != (len(X),):
        raise SolidError(f"{len(X)} nodes with covers of shape {cover.shape}; give at least one, each with its cover")
    if not np.isfinite(X).all():
        raise SolidError(f"{int((~np.isfinite(X)).any(axis=1).sum())} of {len(X)} nodes have no finite position")
    if not (np.isfinite(cover) & (cover > 0)).all():
        raise SolidError(f"covers between {cover.min():g} and {cover.max():g}; each must be a length above 0")
    return X, cover


def _cubes_around(X: NDArray[np.float64], cover: NDArray[np.float64], device: wp.Device) -> wp.Bvh:
    """The covers as a tree of boxes: one search for covers of all sizes. Single precision, larger by its rounding."""
    rounding = 4 * np.finfo(np.float32).eps * (np.abs(X).max() + cover.max())
    half = (cover + rounding)[:, None]
    lower, upper = (X - half).astype(np.float32), (X + half).astype(np.float32)
    return wp.Bvh(wp.array(lower, dtype=wp.vec3, device=device), wp.array(upper, dtype=wp.vec3, device=device))
