"""Rotations and frames against SciPy and what defines them."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from phyxel import rotation

RNG = np.random.default_rng(7)
DIRECTIONS = RNG.normal(size=(50, 3))
DIRECTIONS /= np.linalg.norm(DIRECTIONS, axis=1)[:, None]


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-3, 0.04999, 0.05001, 1.0, 3.1])
def test_vectors_and_matrices(angle):
    w = angle * DIRECTIONS
    wanted = Rotation.from_rotvec(w).as_matrix()
    assert np.allclose(rotation.rotations_by(w), wanted, rtol=0, atol=1e-14)
    for one, matrix in zip(w, wanted, strict=True):
        assert np.allclose(rotation.rotation_by(one), matrix, rtol=0, atol=1e-14)
        assert np.allclose(rotation.rotation_vector(matrix), one, rtol=0, atol=1e-12)


def test_half_a_turn_has_a_vector():
    for axis in DIRECTIONS:
        w = rotation.rotation_vector(Rotation.from_rotvec(np.pi * axis).as_matrix())
        assert np.linalg.norm(w) == pytest.approx(np.pi)
        assert abs(w @ axis) == pytest.approx(np.pi)


def test_the_nearest_rotation_never_reflects():
    for F in RNG.normal(size=(50, 3, 3)):
        R = rotation.nearest_rotation(F)
        S = R.T @ F
        assert np.linalg.det(R) == pytest.approx(1)
        assert np.allclose(S, S.T, atol=1e-12)


def test_about_an_axis_and_by_angles():
    assert np.allclose(rotation.about_axis((0, 0, 2), 90), [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-15)
    assert np.allclose(rotation.euler((0, 90, 0)), rotation.about_axis((0, 1, 0), 90), atol=1e-15)


def test_frames_are_right_handed():
    normals = np.concatenate([DIRECTIONS, np.eye(3), -np.eye(3)])
    for axes in (np.stack([normals, *rotation.tangents(normals)], axis=1), rotation.axes_about(normals)):
        assert np.allclose(axes @ np.swapaxes(axes, 1, 2), np.eye(3), atol=1e-14)
        assert np.allclose(np.linalg.det(axes), 1)
