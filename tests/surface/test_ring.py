"""What is seen of a sheet of particles goes with it, exactly for any affine motion."""

import numpy as np
import pytest

from phyxel import device as dev
from phyxel.surface.discs import DiscShape, Rest
from phyxel.surface.ring import Ring
from phyxel.surface.woven import Woven
from tests.surface.motions import motion
from tests.surface.test_woven import ROUNDING, read

CPU = dev.pick("cpu")
AFFINE = np.array([[0.2, -1.3, 0.4], [0.9, 0.3, 0.2], [0.1, 0.3, 1.2]])
"""Turned by about a right angle, stretched and sheared."""


def grid(count: int, height) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An uneven grid of count² particles at y = height(x, z), their normals and quads."""
    rng = np.random.default_rng(3)
    x, z = np.meshgrid(np.arange(count), np.arange(count), indexing="ij")
    plane = np.stack([x, z], axis=2).reshape(-1, 2) + 0.15 * rng.normal(size=(count**2, 2))
    y, step = height(*plane.T), 1e-5
    slope = [(height(*(plane + step * e).T) - height(*(plane - step * e).T)) / (2 * step) for e in np.eye(2)]
    normals = np.stack([-slope[0], np.ones(len(y)), -slope[1]], axis=1)
    corner = np.arange(count**2).reshape(count, count)
    quads = np.stack([corner[:-1, :-1], corner[:-1, 1:], corner[1:, 1:], corner[1:, :-1]], axis=2).reshape(-1, 4)
    positions = np.stack([plane[:, 0], y, plane[:, 1]], axis=1)
    return positions, normals / np.linalg.norm(normals, axis=1, keepdims=True), quads


def flat(x, z):
    return np.zeros(x.shape)


def wavy(x, z):
    return 0.5 * np.sin(0.6 * x) * np.cos(0.4 * z)


@pytest.mark.parametrize("height", [flat, wavy])
@pytest.mark.parametrize("faces", ["quads", "triangles", "none"])
def test_discs_go_exactly_with_any_affine_motion(height, faces):
    """x = A X: half axes go with A and normals with A⁻ᵀ, to rounding, also at rims and of a curved sheet."""
    X, normals, quads = grid(9, height)
    given = {"quads": quads, "triangles": np.concatenate([quads[:, :3], quads[:, [0, 2, 3]]]), "none": None}[faces]
    ring = Ring.around(X, normals, given, CPU)
    shape = DiscShape.at_birth(Rest(X, ring.normals, np.ones(X.shape), 1.0))
    woven = Woven(shape, X, ring.values, CPU)
    u = X @ (AFFINE - np.eye(3)).T
    woven.follow(motion(u, 1.0, CPU))
    x, a, b, n = read(woven)
    turned = ring.normals @ np.linalg.inv(AFFINE)
    assert np.abs(x - X @ AFFINE.T).max() < ROUNDING
    assert max(np.abs(a - shape.axis_a @ AFFINE.T).max(), np.abs(b - shape.axis_b @ AFFINE.T).max()) < 4 * ROUNDING
    assert np.abs(n - turned / np.linalg.norm(turned, axis=1, keepdims=True)).max() < 4 * ROUNDING


def test_the_gradient_of_a_rigid_turn_is_the_turn():
    """u = (R − 1) X: ∇u = R − 1, across the sheet too, whose normal stays a normal."""
    X, normals, quads = grid(9, wavy)
    turn = np.linalg.svd(AFFINE)[0]
    turn *= np.sign(np.linalg.det(turn))
    gradient = Ring.around(X, normals, quads, CPU).gradient(X @ (turn - np.eye(3)).T)
    assert np.abs(gradient - (turn - np.eye(3))).max() < 1e-12


def test_discs_keep_the_normals_of_a_smooth_sheet():
    """On a fine even grid the plane of a ring is the tangent plane: to second order in the spacing inside, to first
    order (half the angle from ring to ring) at the rim."""
    errors = []
    for fine in (1, 2):
        count = 12 * fine + 1
        x, z = (axis.reshape(-1) / fine for axis in np.meshgrid(np.arange(count), np.arange(count), indexing="ij"))
        slope = np.stack([0.3 * np.cos(0.6 * x) * np.cos(0.4 * z), -0.2 * np.sin(0.6 * x) * np.sin(0.4 * z)], axis=1)
        normals = np.stack([-slope[:, 0], np.ones(len(x)), -slope[:, 1]], axis=1)
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        quads = grid(count, flat)[2]
        ring = Ring.around(np.stack([x, wavy(x, z), z], axis=1), normals, quads, CPU)
        off = np.arccos(np.minimum(np.einsum("ni,ni->n", ring.normals, normals), 1)).reshape(count, count)
        errors.append((off[1:-1, 1:-1].max(), off.max()))
    (inside, rim), (fine_inside, fine_rim) = errors
    assert inside < 0.05 and fine_inside < inside / 3
    assert rim < 0.15 and fine_rim < rim / 1.7


def test_particles_without_a_ring_of_their_own_look_at_the_nearest():
    """One that no face has, one whose faces are a line, and one that lies on another."""
    X, normals, quads = grid(5, flat)
    X = np.concatenate([X, [[1.5, 0.0, 1.6], X[7]]])
    normals = np.concatenate([normals, [[0.0, 1.0, 0.0]] * 2])
    line = np.array([[25, 25, 25, 3]])
    ring = Ring.around(X, normals, np.concatenate([quads, line]), CPU)
    gradient = ring.gradient(X @ (AFFINE - np.eye(3)).T)
    along = np.array([[1.0, 0, 0], [0, 0, 1]])
    assert np.abs((gradient - (AFFINE - np.eye(3))) @ along.T).max() < 1e-10


@pytest.mark.parametrize("faces", ["quads", "triangles"])
def test_discs_cover_the_sheet_and_hardly_stick_out_of_it(faces):
    """Every place of an even square of 9 × 9 is in some disc, with a tenth to spare; none is more than half a spacing
    beyond the rim, and three quarters at corners, where round ones would be by more than a whole one."""
    x, z = (axis.reshape(-1).astype(float) for axis in np.meshgrid(np.arange(9), np.arange(9), indexing="ij"))
    X, quads = np.stack([x, 0 * x, z], axis=1), grid(9, flat)[2]
    given = quads if faces == "quads" else np.concatenate([quads[:, :3], quads[:, [0, 2, 3]]])
    ring = Ring.around(X, np.tile([0.0, 1.0, 0.0], (81, 1)), given, CPU)
    shape = DiscShape.at_birth(Rest(X, ring.normals, np.ones(X.shape), 1.0, ring.radii, ring.axes))
    assert np.abs(np.cross(*ring.axes) @ [0, 1, 0] / np.linalg.norm(np.cross(*ring.axes), axis=1) - 1).max() < 1e-12
    places = np.random.default_rng(2).uniform(0, 8, size=(4000, 2))
    axes = np.linalg.inv(np.stack([shape.axis_a[:, [0, 2]], shape.axis_b[:, [0, 2]]], axis=2))
    within = np.einsum("nij,pnj->pni", axes, places[:, None] - X[None][..., [0, 2]])
    assert np.linalg.norm(within, axis=2).min(axis=1).max() < 0.9
    reach = np.hypot(shape.axis_a, shape.axis_b)
    out = np.maximum(X + reach - 8, -X + reach)[:, [0, 2]].max(axis=1)
    corner = (x % 8 == 0) & (z % 8 == 0)
    assert out[~corner].max() < 0.5 and out.max() < 0.75


def test_what_is_closed_has_no_rim():
    tetrahedron = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], float)
    faces = np.array([[0, 1, 2], [0, 3, 1], [0, 2, 3], [1, 3, 2]])
    ring = Ring.around(tetrahedron, tetrahedron / np.sqrt(3), faces, CPU)
    assert not ring.is_open
    assert Ring.around(tetrahedron, tetrahedron / np.sqrt(3), faces[:3], CPU).is_open
    assert np.abs(ring.normals - tetrahedron / np.sqrt(3)).max() < 1e-12
