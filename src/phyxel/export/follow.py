# mypy: disable-error-code="valid-type,no-untyped-def"
"""Things of a body's first shape that go where the body goes: splats off its surface, vertices of a mesh.

Their deformations are taken apart by kernels, many at once: five times faster than NumPy's on one core.
"""

from __future__ import annotations

import numpy as np
import warp as wp
from scipy.sparse import csr_matrix

from phyxel import device as dev
from phyxel.body import Body
from phyxel.mls.carry import Carriers
from phyxel.mls.neighbours import nearest
from phyxel.rotation import Floats
from phyxel.surface.walls import keep_out

wp.set_module_options(dev.KERNEL_OPTIONS)

REACH = 2.0
"""How far from the nearest node a deformation is believed [spacings]; points farther off are held stiffly."""

FLATTEST = 1e-6
"""Added to the moments of nodes, over their trace, so that they have an inverse."""


@wp.func
def without_reflection(turn: wp.mat33d):
    """An orthogonal matrix, its last column turned round if it reflects."""
    sign = wp.sign(wp.determinant(turn))
    return turn * wp.diag(wp.vec3d(wp.float64(1.0), wp.float64(1.0), sign))


@wp.kernel
def find_rotations(first: int, matrices: wp.array(dtype=wp.mat33d), rotations: wp.array(dtype=wp.mat33d)):
    """R of J = R S: U Vᵀ of J = U Σ Vᵀ, with the smallest direction turned round where J reflects."""
    i = first + wp.tid()
    left, _sizes, right = wp.svd3(matrices[i])
    rotations[i] = without_reflection(left) * wp.transpose(without_reflection(right))


@wp.kernel
def find_axes(
    first: int, matrices: wp.array(dtype=wp.mat33d), axes: wp.array(dtype=wp.mat33d), sizes: wp.array(dtype=wp.vec3d)
):
    """U and Σ of A = U Σ Vᵀ: A Aᵀ = U Σ² Uᵀ."""
    i = first + wp.tid()
    left, size, _right = wp.svd3(matrices[i])
    axes[i] = without_reflection(left)
    sizes[i] = wp.vec3d(wp.abs(size[0]), wp.abs(size[1]), wp.abs(size[2]))


def rotations_of(deformation: Floats) -> Floats:
    """R of the polar decomposition J = R S of deformations (m, 3, 3), never a reflection, shape (m, 3, 3)."""
    device = dev.pick("cpu")
    matrices = wp.array(np.ascontiguousarray(deformation), dtype=wp.mat33d, device=device)
    rotations = wp.zeros_like(matrices)
    dev.launch(find_rotations, len(matrices), [matrices, rotations], device)
    return rotations.numpy()


def principal_axes(matrices: Floats) -> tuple[Floats, Floats]:
    """Right-handed axes, the columns of (m, 3, 3), and standard deviations along them, (m, 3), of the Gaussians with
    covariance A Aᵀ, A (m, 3, 3)."""
    device = dev.pick("cpu")
    given = wp.array(np.ascontiguousarray(matrices), dtype=wp.mat33d, device=device)
    axes, sizes = wp.zeros_like(given), wp.zeros(len(given), dtype=wp.vec3d, device=device)
    dev.launch(find_axes, len(given), [given, axes, sizes], device)
    return axes.numpy(), sizes.numpy()


def keeps_its_shape(body: Body) -> bool:
    """Whether the splats that came in can still be recognised: not those of a body that has melted or cracked."""
    return not (body.has_melted or body.has_cracked)


def parting_of(body: Body) -> tuple[int, int]:
    """A key that changes when a body gets other cracks or fewer nodes: then other nodes carry its mesh."""
    return 0 if body.fracture is None else body.fracture.cracks.revision, len(body.birth)


class Follower:
    """Places (m, 3) in a body's shape at birth [m] that go where the body goes, while it keeps its shape."""

    def __init__(self, body: Body, places: Floats) -> None:
        points, nodes = self._in_units(body, places), self._in_units(body, body.birth)
        distance, index = nearest(points, nodes, 1)
        home = nodes[index[:, 0]]
        self.points = home + (points - home) * np.minimum(1, REACH / np.maximum(distance, REACH))
        self.beyond = points - self.points
        cracks = None if body.fracture is None else body.fracture.cracks
        carriers = (
            Carriers.beside_cracks(self.points, nodes, body.sees, cracks.sees)
            if cracks
            else Carriers.found(self.points, nodes, body.sees)
        )
        self.shares = carriers.matrix(len(nodes))

    @staticmethod
    def _in_units(body: Body, places: Floats) -> Floats:
        return (places - body.born.centre) / body.born.unit

    def deformation(self, body: Body) -> Floats:
        """J at the places, shape (m, 3, 3): how the body is turned and stretched there against its shape at birth."""
        return (self.shares @ body.skin_deformation.reshape(-1, 9)).reshape(-1, 3, 3)

    def positions(self, body: Body, deformation: Floats) -> Floats:
        """Where the places are now [m], shape (m, 3), with the deformation there (physics 8.1):
        Σ ω_i (x_i + J_i (X − X_i)) = Σ ω_i (x_i − J_i X_i) + J X."""
        nodes = (body.positions - body.origin) / body.unit
        fixed = nodes - _times(body.skin_deformation, self._in_units(body, body.birth))
        x = self.shares @ fixed + _times(deformation, self.points)
        far = np.flatnonzero(self.beyond.any(axis=1))
        x[far] += _times(rotations_of(deformation[far]), self.beyond[far])
        return body.origin + body.unit * x


def _times(matrices: Floats, vectors: Floats) -> Floats:
    return (matrices @ vectors[:, :, None])[:, :, 0]


def at_surfels(body: Body, values: Floats) -> Floats:
    """Values of the nodes (n, k) at the surfels that are tracked, as they are now, shape (m, k): a weighted fit of a
    linear field to the nodes around each; of a particle surface, parts of which may lie on each other, that of the
    particle itself."""
    places = body.surface.tracked.positions
    if not body.kind.has_inside:
        return values[nearest(places, body.positions, 1)[1][:, 0]]
    points, nodes = ((x - body.origin) / body.unit for x in (places, body.positions))
    shares = Carriers.found(points, nodes).matrix(len(nodes))
    middle, mean = shares @ nodes, shares @ values
    moment = _covariance(shares, nodes, nodes)
    # Nodes in one plane say nothing about changes across it.
    moment += FLATTEST * np.trace(moment, axis1=1, axis2=2)[:, None, None] * np.eye(3)
    slope = np.linalg.solve(moment, _covariance(shares, nodes, values))
    return mean + np.einsum("mav,ma->mv", slope, points - middle)


def _covariance(shares: csr_matrix, one: Floats, other: Floats) -> Floats:
    """Σ ω_i (a_i − ā)(b_i − b̄)ᵀ of what the nodes have, (n, k) and (n, l), at the points, shape (m, k, l)."""
    product = (one[:, :, None] * other[:, None, :]).reshape(len(one), -1)
    means = (shares @ one)[:, :, None] * (shares @ other)[:, None, :]
    return (shares @ product).reshape(means.shape) - means


def kept_out(body: Body, positions: Floats) -> Floats:
    """Positions (m, 3) [m] of a body's skin, those that have got into a collider put onto its surface."""
    motion = body.motion
    walls, device = motion.walls, motion.walls.device
    local = dev.as_vectors(positions - motion.origin, device)
    touches = wp.zeros(len(positions), dtype=wp.int32, device=device)
    dev.launch(keep_out, len(positions), [walls.table, walls.body, motion.unit, local, touches, 1], device)
    return motion.origin + local.numpy()
