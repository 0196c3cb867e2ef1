# mypy: disable-error-code="valid-type,no-untyped-def"
"""Deformations taken apart, many at once: five times faster than NumPy's on one core."""

from __future__ import annotations

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]


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
    first: int,
    matrices: wp.array(dtype=wp.mat33d),
    axes: wp.array(dtype=wp.mat33d),
    sizes: wp.array(dtype=wp.vec3d),
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
