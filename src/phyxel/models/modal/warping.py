# mypy: disable-error-code="valid-type,no-untyped-def"
"""Modal warping (G05; physics 11.3; Choi and Ko 2005): modes bend along arcs instead of growing along straight lines.

The linear field of the amplitudes z gives each node p = Ψ z and w = ½∇×(Ψ z) = W z. Its warped coefficient is what p
becomes when it grows from zero while its frame turns to w at an even pace,

    u = R̃(w) p,   R̃(w) = ∫₀¹ R(s w) ds = I + (1 − cos|w|)/|w|² [w]× + (|w| − sin|w|)/|w|³ [w]×²

with R(w) = exp [w]×. Where all of w comes from a rotation, p = w × X, this is R(w) X − X: exactly that rotation.
Rows of Ψ and W are stored in single precision (so much less to read) and summed in double. The `Basis` of a body makes
the field of its amplitudes on the device.
"""

from __future__ import annotations

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel import rotation
from phyxel.device import Launch, Program, Shared, float32s, float64s, int32s, mat33ds, vec2ds, vec3ds, vec3s
from phyxel.models.galerkin.space import Space
from phyxel.models.modal.modes import Clamp, Modes
from phyxel.rotation import cross, cross_matrix, factors

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]
vec6d = wp.types.vector(6, wp.float64)

LANES = 16
"""Modes that are summed side by side; rows are padded with zeros to a multiple of it."""
CHUNK = 32
"""Nodes whose forces are summed by one thread."""
ONE, NEARBY = (wp.constant(wp.float64(number)) for number in (1.0, rotation.NEARBY))
"""1, and |w|² [rad²] below which three terms of a series have all digits."""


@wp.func_native("""
    const float* row = rows.data + (size_t)i * 6 * l;
    double part[6][8] = {};
    for (int k = 0; k < l; k += 8)
        for (int r = 0; r < 6; ++r)
            for (int j = 0; j < 8; ++j) part[r][j] += (double)row[r * l + k + j] * z.data[k + j];
    wp::vec_t<6, double> total;
    for (int r = 0; r < 6; ++r) {
        const double* p = part[r];
        total[r] = ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]));
    }
    return total;
""")
def linear_field(rows: float32s, z: float64s, i: int, l: int) -> vec6d:
    """p and w of a node: 6 × l rows times z. Eight sums of each row side by side, which the compiler will not make of
    one, and all rows at once, so that no sum waits for its last term."""


@wp.func_native("""
    double sum[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    for (int i = begin; i < end; ++i) {
        const float* row = rows.data + (size_t)i * 6 * l + k;
        const auto f = force.data[i];
        for (int j = 0; j < 16; ++j)
            sum[j] += (double)row[j] * f[0] + (double)row[l + j] * f[1] + (double)row[2 * l + j] * f[2];
    }
    for (int j = 0; j < 16; ++j) result.data[at + j] = sum[j];
""")
def _project_some(rows: float32s, force: vec3ds, begin: int, end: int, l: int, k: int, at: int, result: float64s):
    """Σ Ψᵀ f over some nodes, for LANES modes from k on."""


@wp.func
def turns(w: wp.vec3d):
    """(1 − cos|w|)/|w|² and (|w| − sin|w|)/|w|³, of which R and R̃ of w are made (physics 11.3)"""
    square = wp.dot(w, w)
    if square < NEARBY:
        return wp.vec2d(
            ONE / wp.float64(2.0) - square / wp.float64(24.0) + square * square / wp.float64(720.0),
            ONE / wp.float64(6.0) - square / wp.float64(120.0) + square * square / wp.float64(5040.0),
        )
    angle = wp.sqrt(square)
    half = wp.sin(wp.float64(0.5) * angle)
    return wp.vec2d(wp.float64(2.0) * half * half / square, (angle - wp.sin(angle)) / (square * angle))


@wp.func
def warped(w: wp.vec3d, p: wp.vec3d, turn: wp.vec2d):
    """R̃(w) p (physics 11.3)"""
    c = wp.cross(w, p)
    return p + turn[0] * c + turn[1] * wp.cross(w, c)


@wp.func
def turned_back(w: wp.vec3d, f: wp.vec3d, turn: wp.vec2d):
    """R(w)ᵀ f, R(w) = exp [w]× (physics 11.3)"""
    c = wp.cross(w, f)
    return f - (ONE - turn[1] * wp.dot(w, w)) * c + turn[0] * wp.cross(w, c)


@wp.kernel
def warp_nodes(first: int, l: int, rows: float32s, z: float64s, linear: wp.array(dtype=vec6d), turn: vec2ds, u: vec3ds):
    """p, w (G05 eq. 7) and u = R̃(w) p of each node (physics 11.3)."""
    i = first + wp.tid()
    field = linear_field(rows, z, i, l)
    linear[i] = field
    w = wp.vec3d(field[3], field[4], field[5])
    turn[i] = turns(w)
    u[i] = warped(w, wp.vec3d(field[0], field[1], field[2]), turn[i])


@wp.func_native("""
    double sum[4][3] = {};
    int k = begin;
    for (; k + 4 <= end; k += 4)
        for (int j = 0; j < 4; ++j)
            for (int a = 0; a < 3; ++a) sum[j][a] += weights.data[at + k + j] * field.data[nodes.data[k + j]][a];
    for (; k < end; ++k)
        for (int a = 0; a < 3; ++a) sum[0][a] += weights.data[at + k] * field.data[nodes.data[k]][a];
    wp::vec_t<3, double> total;
    for (int a = 0; a < 3; ++a) total[a] = (sum[0][a] + sum[1][a]) + (sum[2][a] + sum[3][a]);
    return total;
""")
def weighted_sum(weights: float64s, at: int, nodes: int32s, begin: int, end: int, field: vec3ds) -> wp.vec3d:
    """Σ weights[at + k] field[nodes[k]] over k from `begin` to `end`. Four sums side by side: none waits for its last
    term."""


@wp.kernel
def clamp_nodes(first: int, nodes: int32s, held: float64s, u: vec3ds, excess: vec3ds):
    """What of the warped coefficients would move clamped points, which the modes themselves do not (physics 11.1)."""
    b = first + wp.tid()
    count = nodes.shape[0]
    excess[b] = weighted_sum(held, b * count, nodes, 0, count, u)


@wp.kernel
def take_off(first: int, nodes: int32s, excess: vec3ds, u: vec3ds):
    """u without what `clamp_nodes` found."""
    b = first + wp.tid()
    u[nodes[b]] -= excess[b]


@wp.kernel
def place_nodes(
    first: int,
    X: vec3ds,
    linear: wp.array(dtype=vec6d),
    turn: vec2ds,
    u: vec3ds,
    frame: mat33ds,
    force: vec3ds,
    coefficients: vec3s,
    turned: vec3ds,
):
    """Coefficients Q (X + u) − X of a body in its frame Q, and forces turned back, Rᵀ Qᵀ f (G05 eq. 10)."""
    i = first + wp.tid()
    Q = frame[0]
    coefficients[i] = wp.vec3(Q * (X[i] + u[i]) - X[i])
    w = wp.vec3d(linear[i][3], linear[i][4], linear[i][5])
    turned[i] = turned_back(w, wp.transpose(Q) * force[i], turn[i])


@wp.kernel
def project_forces(first: int, count: int, l: int, rows: float32s, force: vec3ds, result: float64s):
    """Ψᵀ f (G05 eq. 10), summed over CHUNK nodes at a time, shape (chunks, l)."""
    t = first + wp.tid()
    groups = l // LANES
    chunk = t // groups
    k = LANES * (t - chunk * groups)
    _project_some(rows, force, chunk * CHUNK, wp.min((chunk + 1) * CHUNK, count), l, k, chunk * l + k, result)


class Basis:
    """Modes, and the shapes that handles brought, with the field u of their amplitudes z."""

    def __init__(self, space: Space, modes: Modes, clamp: Clamp | None, coefficients: wp.array) -> None:
        device, n, l = coefficients.device, len(space), len(modes.values)
        self.shapes: Floats = modes.shapes
        """[Ψ; W], shape (n, 6, l)"""
        self.values, self.clamp = modes.values, clamp
        padded = -(-max(l, 1) // LANES) * LANES
        stored = np.zeros((n, 6, padded), np.float32)
        stored[:, :, :l] = modes.shapes
        self.rows: Floats = stored[:, :, :l].astype(np.float64)
        """the same as the device has them"""
        self._z = Shared(padded, wp.float64, device)
        self.shared_linear = Shared(n, vec6d, device)
        self.turn = wp.zeros(n, dtype=wp.vec2d, device=device)
        """`turns` of each node's w, as the field was laid"""
        self._u = Shared(n, wp.vec3d, device)
        self._frame = Shared(1, wp.mat33d, device)
        self._force = Shared(n, wp.vec3d, device)
        chunks = -(-n // CHUNK)
        self._sums = Shared(chunks * padded, wp.float64, device)
        self.device, self.padded = device, padded
        rows = self.stored = wp.array(stored.reshape(-1), dtype=wp.float32, device=device)
        # One thread is soonest done: waking another takes as long as all of it.
        field = [self.shared_linear.array, self.turn, self._u.array]
        lay = [Launch(warp_nodes, n, [padded, rows, self._z.array, *field], 0.1)]
        if clamp is not None:
            nodes = wp.array(clamp.nodes.astype(np.int32), dtype=wp.int32, device=device)
            held = wp.array(clamp.held.reshape(-1), dtype=wp.float64, device=device)
            excess = wp.zeros(len(nodes), dtype=wp.vec3d, device=device)
            lay.append(Launch(clamp_nodes, len(nodes), [nodes, held, self._u.array, excess], 0.1))
            lay.append(Launch(take_off, len(nodes), [nodes, excess, self._u.array], 0.1))
        X = wp.array(space.nodes, dtype=wp.vec3d, device=device)
        turned = wp.zeros(n, dtype=wp.vec3d, device=device)
        place = [X, *field, self._frame.array, self._force.array, coefficients, turned]
        project = [n, padded, rows, turned, self._sums.array]
        self._lay = Program(lay, device)
        self._show = Program(
            [
                Launch(place_nodes, n, place, 0.1),
                Launch(project_forces, chunks * (padded // LANES), project, 0.5),
            ],
            device,
        )

    def __len__(self) -> int:
        return len(self.values)

    def lay(self, z: Floats) -> None:
        """Make the field of amplitudes z (l,)."""
        self._z.host[: len(z)] = z
        self._z.push()
        self._lay.run()

    @property
    def u(self) -> Floats:
        """Warped coefficients, clamped where the body is, shape (n, 3)."""
        return self._u.pull()

    @property
    def linear(self) -> Floats:
        """p = Ψ z and w = W z, shape (n, 6)."""
        return self.shared_linear.pull()

    def load(self, force: Floats) -> None:
        """Forces (n, 3) on the coefficients from now on."""
        self._force.host[:] = force if self.clamp is None else self.clamp.without(force)
        self._force.push()

    def show(self, Q: Floats) -> Floats:
        """Leave the field's coefficients, turned by Q, on the device, and give the forces on the modes, shape (l,)."""
        if not np.array_equal(self._frame.host[0], Q):
            self._frame.host[0] = Q
            self._frame.push()
        self._show.run()
        return self._sums.pull().reshape(-1, self.padded).sum(axis=0)[: len(self)]


# ---- The same on the host, for a few nodes, and its derivative ----


def warp(linear: Floats) -> Floats:
    """u = R̃(w) p of p and w (m, 6), shape (m, 3)."""
    p, w = linear[:, :3], linear[:, 3:]
    a, b, _, _ = factors(w)
    c = cross(w, p)
    return p + a * c + b * cross(w, c)


def unwarp(u: Floats, w: Floats) -> Floats:
    """p = R̃(w)⁻¹ u, shape (m, 3)."""
    a, b, _, _ = factors(w)
    W = cross_matrix(w)
    matrices = np.eye(3) + a[:, :, None] * W + b[:, :, None] * (W @ W)
    return np.asarray(np.linalg.solve(matrices, u[:, :, None])[:, :, 0], np.float64)


def warp_derivative(linear: Floats) -> Floats:
    """∂u/∂(p, w), shape (m, 3, 6)."""
    p, w = linear[:, :3], linear[:, 3:]
    a, b, slope_a, slope_b = factors(w)
    c = cross(w, p)
    cc = cross(w, c)
    result = np.empty((len(p), 3, 6))
    square = np.einsum("ma,ma->m", w, w)[:, None]
    # w × (w × p) = w (w·p) − p w·w
    result[:, :, :3] = a[:, :, None] * cross_matrix(w) + (b * w)[:, :, None] * w[:, None, :]
    result[:, range(3), range(3)] += 1 - b * square
    along = np.einsum("ma,ma->m", w, p)[:, None, None] * np.eye(3)
    outer = w[:, :, None] * p[:, None, :] - 2 * p[:, :, None] * w[:, None, :] + along
    change = slope_a * c + slope_b * cc
    result[:, :, 3:] = b[:, :, None] * outer - a[:, :, None] * cross_matrix(p) + change[:, :, None] * w[:, None, :]
    return result
