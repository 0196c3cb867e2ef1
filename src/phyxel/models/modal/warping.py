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
from phyxel.device import Launch, Program, Shared, float32s, float64s, int32s, mat33ds, vec3ds, vec3s
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
SMALL = wp.constant(wp.float64(1e-3))
"""Rotation [rad] below which the series is as good as the formula."""


@wp.func_native("""
    const float* row = rows.data + (size_t)i * 6 * l;
    wp::vec_t<6, double> total;
    for (int r = 0; r < 6; ++r, row += l) {
        double part[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        for (int k = 0; k < l; k += 8)
            for (int j = 0; j < 8; ++j) part[j] += (double)row[k + j] * z.data[k + j];
        total[r] = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
    }
    return total;
""")
def _linear_field(rows: float32s, z: float64s, i: int, l: int) -> vec6d:
    """p and w of a node: 6 × l rows times z. Eight sums side by side, which the compiler will not make of one."""


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
def rotation(w: wp.vec3d):
    """R(w) = exp [w]× (physics 11.3)"""
    angle = wp.length(w)
    if angle < wp.float64(1e-12):
        return wp.identity(n=3, dtype=wp.float64)
    return wp.quat_to_matrix(wp.quat_from_axis_angle(w / angle, angle))


@wp.func
def warped(w: wp.vec3d, p: wp.vec3d):
    """R̃(w) p (physics 11.3)"""
    square = wp.dot(w, w)
    angle = wp.sqrt(square)
    a = wp.float64(0.5) - square / wp.float64(24.0)
    b = wp.float64(1.0) / wp.float64(6.0) - square / wp.float64(120.0)
    if angle > SMALL:
        half = wp.sin(wp.float64(0.5) * angle)
        a = wp.float64(2.0) * half * half / square
        b = (angle - wp.sin(angle)) / (square * angle)
    c = wp.cross(w, p)
    return p + a * c + b * wp.cross(w, c)


@wp.kernel
def warp_nodes(first: int, l: int, rows: float32s, z: float64s, linear: wp.array(dtype=vec6d), u: vec3ds):
    """p, w (G05 eq. 7) and u = R̃(w) p of each node (physics 11.3)."""
    i = first + wp.tid()
    field = _linear_field(rows, z, i, l)
    linear[i] = field
    u[i] = warped(wp.vec3d(field[3], field[4], field[5]), wp.vec3d(field[0], field[1], field[2]))


@wp.kernel
def clamp_nodes(first: int, nodes: int32s, held: float64s, u: vec3ds, excess: vec3ds):
    """What of the warped coefficients would move clamped points, which the modes themselves do not (physics 11.1)."""
    b = first + wp.tid()
    count = nodes.shape[0]
    total = wp.vec3d()
    for c in range(count):
        total += held[b * count + c] * u[nodes[c]]
    excess[b] = total


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
    R = rotation(wp.vec3d(linear[i][3], linear[i][4], linear[i][5]))
    turned[i] = wp.transpose(R) * (wp.transpose(Q) * force[i])


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
        self._linear = Shared(n, vec6d, device)
        self._u = Shared(n, wp.vec3d, device)
        self._frame = Shared(1, wp.mat33d, device)
        self._force = Shared(n, wp.vec3d, device)
        chunks = -(-n // CHUNK)
        self._sums = Shared(chunks * padded, wp.float64, device)
        self._padded = padded
        rows = wp.array(stored.reshape(-1), dtype=wp.float32, device=device)
        # One thread is soonest done: waking another takes as long as all of it.
        lay = [Launch(warp_nodes, n, [padded, rows, self._z.array, self._linear.array, self._u.array], 0.1)]
        if clamp is not None:
            nodes = wp.array(clamp.nodes.astype(np.int32), dtype=wp.int32, device=device)
            held = wp.array(clamp.held.reshape(-1), dtype=wp.float64, device=device)
            excess = wp.zeros(len(nodes), dtype=wp.vec3d, device=device)
            lay.append(Launch(clamp_nodes, len(nodes), [nodes, held, self._u.array, excess], 0.1))
            lay.append(Launch(take_off, len(nodes), [nodes, excess, self._u.array], 0.1))
        X = wp.array(space.nodes, dtype=wp.vec3d, device=device)
        turned = wp.zeros(n, dtype=wp.vec3d, device=device)
        place = [X, self._linear.array, self._u.array, self._frame.array, self._force.array, coefficients, turned]
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
        return self._linear.pull()

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
        return self._sums.pull().reshape(-1, self._padded).sum(axis=0)[: len(self)]


# ---- The same on the host, for a few nodes, and its derivative ----


def warp(linear: Floats) -> Floats:
    """u = R̃(w) p of p and w (m, 6), shape (m, 3)."""
    p, w = linear[:, :3], linear[:, 3:]
    a, b, _, _ = factors(w)
    c = cross(w, p)
    return p + a * c + b * cross(w, c)


def warp_rate(linear: Floats, rate: Floats) -> Floats:
    """u̇ of p and w (m, 6) that change at a rate (m, 6), shape (m, 3): `warp_derivative` times that."""
    p, w, dp, dw = linear[:, :3], linear[:, 3:], rate[:, :3], rate[:, 3:]
    a, b, slope_a, slope_b = factors(w)
    along = np.einsum("ma,ma->m", w, dw)[:, None]
    c = cross(w, p)
    dc = cross(dw, p) + cross(w, dp)
    inner = slope_a * along * c + a * dc + b * cross(dw, c)
    return dp + inner + cross(w, slope_b * along * c + b * dc)


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
