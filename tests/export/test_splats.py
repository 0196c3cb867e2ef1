"""Bodies as Gaussian splats: what moves, turns and stretches, and what stays."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import phyxel as px
from phyxel.export.follow import REACH, Follower, principal_axes, rotations_of
from phyxel.export.splats import basis, turned
from phyxel.points.ply import read_ply
from phyxel.points.splats import Splats, rotation_matrices
from tests.export.bodies import PLACED, SHIFT, STRETCH, deform
from tests.points.test_splats import COUNT, OPAQUE, ply, splat_columns

ELASTIC = px.Material(young=1e5, poisson=0.3)


def covariances(splats: Splats) -> np.ndarray:
    axes = splats.rotations * splats.scales[:, None, :]
    return axes @ axes.transpose(0, 2, 1)


def seen(columns: dict[str, np.ndarray], directions: np.ndarray) -> np.ndarray:
    """What varies of the colour in unit directions (m, q, 3), shape (m, 3, q): as viewers evaluate it."""
    count = sum(name.startswith("f_rest") for name in columns)
    rest = np.stack([columns[f"f_rest_{k}"] for k in range(count)], axis=1).astype(float)
    return np.einsum("mqk,mck->mcq", reference_basis(directions)[..., : count // 3], rest.reshape(-1, 3, count // 3))


def reference_basis(d: np.ndarray) -> np.ndarray:
    """The constants and signs that splat viewers have, as numbers."""
    x, y, z = d[..., 0], d[..., 1], d[..., 2]
    values = [
        -0.4886025119029199 * y,
        0.4886025119029199 * z,
        -0.4886025119029199 * x,
        1.0925484305920792 * x * y,
        -1.0925484305920792 * y * z,
        0.31539156525252005 * (2 * z * z - x * x - y * y),
        -1.0925484305920792 * x * z,
        0.5462742152960396 * (x * x - y * y),
        -0.5900435899266435 * y * (3 * x * x - y * y),
        2.890611442640554 * x * y * z,
        -0.4570457994644658 * y * (4 * z * z - x * x - y * y),
        0.3731763325901154 * z * (2 * z * z - 3 * x * x - 3 * y * y),
        -0.4570457994644658 * x * (4 * z * z - x * x - y * y),
        1.445305721320277 * z * (x * x - y * y),
        -0.5900435899266435 * x * (x * x - 3 * y * y),
    ]
    return np.stack(values, axis=-1)


def unit_vectors(rng: np.random.Generator, *shape: int) -> np.ndarray:
    vectors = rng.normal(size=(*shape, 3))
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


@pytest.fixture(scope="module")
def columns() -> dict[str, np.ndarray]:
    """A sphere of splats with everything: harmonics of degree 3, and a property nobody knows."""
    return splat_columns(degree=3) | {"mood": np.arange(COUNT, dtype=np.uint8), "weight": np.linspace(0, 1, COUNT)}


@pytest.fixture(scope="module")
def file(columns, tmp_path_factory):
    path = tmp_path_factory.mktemp("splats") / "ball.ply"
    path.write_bytes(ply(columns))
    return path


@pytest.fixture(scope="module")
def stretched(file) -> px.Body:
    body = px.Body(px.load(file, up="z"), nodes=200, material=ELASTIC, **PLACED)
    deform(body, STRETCH, SHIFT)
    return body


# --- spherical harmonics


def test_the_basis_is_that_of_the_viewers():
    directions = unit_vectors(np.random.default_rng(1), 50)
    assert np.abs(basis(directions) - reference_basis(directions)).max() < 1e-14


@pytest.mark.parametrize("count", [3, 8, 15])
def test_turned_harmonics_look_the_same_from_turned_directions(count):
    """c'(R d) = c(d), for every direction."""
    rng = np.random.default_rng(2)
    coefficients = rng.normal(size=(40, 3, count))
    R = Rotation.random(40, random_state=3).as_matrix()
    directions = unit_vectors(rng, 40, 30)
    before = np.einsum("mqk,mck->mcq", reference_basis(directions)[..., :count], coefficients)
    there = np.einsum("mab,mqb->mqa", R, directions)
    after = np.einsum("mqk,mck->mcq", reference_basis(there)[..., :count], turned(coefficients, R))
    assert np.abs(after - before).max() < 1e-12
    assert np.abs(turned(coefficients, R) - coefficients).max() > 0.1


# --- deformations taken apart


def test_rotations_and_axes_of_any_deformation():
    """Random ones, flat ones, one that reflects, and one that does nothing."""
    A = np.random.default_rng(7).normal(size=(200, 3, 3))
    A[100:150, :, 2] *= 1e-4
    A[0] = np.diag([1.0, 0.5, -0.1])
    A[1] = np.eye(3)
    R = rotations_of(A)
    assert np.abs(R @ R.transpose(0, 2, 1) - np.eye(3)).max() < 1e-12
    assert np.abs(np.linalg.det(R) - 1).max() < 1e-12
    stretch = R.transpose(0, 2, 1) @ A
    assert np.abs(stretch - stretch.transpose(0, 2, 1)).max() < 1e-12, "A = R S with a symmetric S"
    upright = np.linalg.det(A) > 0
    assert np.linalg.eigvalsh(stretch[upright]).min() > 0
    assert np.abs(R[0] - np.eye(3)).max() < 1e-12, "the smallest direction is the one that is turned round"
    axes, sizes = principal_axes(A)
    assert np.abs(np.linalg.det(axes) - 1).max() < 1e-12
    assert np.abs(axes * sizes[:, None] ** 2 @ axes.transpose(0, 2, 1) - A @ A.transpose(0, 2, 1)).max() < 1e-11


# --- what moves


@pytest.fixture(scope="module")
def back(stretched, tmp_path_factory) -> px.PointCloud:
    path = tmp_path_factory.mktemp("back") / "stretched.ply"
    px.export.splats(stretched, path)
    return px.load(path, opacity=0)


def test_every_splat_goes_where_the_body_goes(stretched, back):
    """Those too that are not opaque enough to be points of the surface. float32 of numbers up to 4."""
    X = stretched.shape.placement.placed(stretched.cloud.splats.positions)
    expected = stretched.centre + (X - stretched.centre) @ STRETCH.T + SHIFT
    assert len(back.splats) == COUNT and len(stretched.cloud) == OPAQUE
    assert np.abs(back.splats.positions - expected).max() < 2e-6


def test_covariances_are_stretched(stretched, back):
    """Σ' = J Σ Jᵀ, compared with its own size: float32 in, and a gradient of float32."""
    before = covariances(stretched.appearance.placed_splats())
    expected = STRETCH @ before @ STRETCH.T
    size = np.linalg.norm(expected, axis=(1, 2))
    wrong = np.linalg.norm(covariances(back.splats) - expected, axis=(1, 2))
    assert (wrong / size).max() < 1e-5
    assert (np.linalg.norm(before - expected, axis=(1, 2)) / size).min() > 0.1


def test_what_varies_with_the_view_turns_with_the_rotation_of_the_deformation(columns, stretched, back):
    R = rotations_of(STRETCH[None])[0]
    assert np.abs(R @ R.T - np.eye(3)).max() < 1e-12
    assert np.linalg.eigvalsh(R.T @ STRETCH).min() > 0 and np.abs((R.T @ STRETCH).T - R.T @ STRETCH).max() < 1e-12
    from_file = R @ Rotation.from_euler("xyz", PLACED["rotate"], degrees=True).as_matrix()
    from_file = from_file @ np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]])  # z up -> y up
    directions = unit_vectors(np.random.default_rng(5), 1, 20).repeat(COUNT, axis=0)
    before, after = seen(columns, directions), seen(back.splats.attributes, directions @ from_file.T)
    assert np.abs(after - before).max() < 1e-5
    assert np.abs(before).max() > 0.1


def test_everything_else_stays(columns, stretched, back):
    assert list(back.splats.attributes) == list(columns)
    for name in ("f_dc_0", "f_dc_1", "f_dc_2", "opacity", "mood", "weight", "nx"):
        assert back.splats.attributes[name].dtype == columns[name].dtype
        np.testing.assert_array_equal(back.splats.attributes[name], columns[name])


def test_at_rest_nothing_changes(file, columns, tmp_path):
    body = px.Body(px.load(file), place="file", nodes=100, material=ELASTIC)
    px.World().add(body)
    px.export.splats(body, tmp_path / "rest.ply")
    rest, given = px.load(tmp_path / "rest.ply").splats, px.load(file).splats
    assert np.abs(rest.positions - given.positions).max() < 1e-6
    assert np.abs(covariances(rest) - covariances(given)).max() < 1e-5 * 0.05**2
    assert np.abs(rest.attributes["f_rest_44"] - columns["f_rest_44"]).max() < 1e-6


def test_what_is_far_off_is_held_stiffly(file):
    """x = J X₀ + R (X − X₀) with X₀ near the body: off from R X by |(J − R) X₀| at most. J X would be 50 m off."""
    body = px.Body(px.load(file), place="file", nodes=100, material=ELASTIC)
    deform(body, STRETCH, SHIFT)
    far = np.array([[100.0, 0, 0], [100.0, 1, 0], [0, -100.0, 0]])
    follower = Follower(body, body.centre + far)
    x = follower.positions(body, follower.deformation(body))
    R = rotations_of(STRETCH[None])[0]
    reach = np.linalg.norm(body.birth - body.centre, axis=1).max() + REACH * body.unit
    off = np.linalg.norm(x - (body.centre + SHIFT + far @ R.T), axis=1)
    assert (off <= np.linalg.norm(STRETCH - R, 2) * reach).all()
    assert np.linalg.norm(STRETCH - R, 2) * reach < 2 < 50 < np.linalg.norm(far[0] @ (STRETCH - R).T)


def test_after_becoming_stiffer_splats_still_know_their_first_shape(file, tmp_path):
    """The reference shape has changed then; a deformation is counted from birth all the same."""
    body = px.Body(px.load(file), nodes=100, material=ELASTIC)
    deform(body, np.diag([1.3, 0.9, 0.9]), np.zeros(3))
    body.material = ELASTIC.but(young=1e6)
    assert body.reshaped and not body.has_melted
    px.export.splats(body, tmp_path / "stiff.ply")
    expected = np.diag([1.3, 0.9, 0.9])
    Sigma = expected @ covariances(body.appearance.placed_splats()) @ expected
    wrong = np.abs(covariances(px.load(tmp_path / "stiff.ply").splats) - Sigma)
    assert wrong.max() < 1e-4 * np.abs(Sigma).max()


# --- splats made of surfels


def test_surfels_become_flat_opaque_splats(tmp_path):
    body = px.Body(px.load("bear", points=600), nodes=80, material=ELASTIC)
    px.World().add(body)
    px.export.splats(body, tmp_path / "bear.ply")
    cloud = px.load(tmp_path / "bear.ply")
    assert len(cloud) == len(cloud.splats) == 600
    assert np.abs(cloud.positions - body.surface.positions).max() < 1e-6
    assert np.abs(cloud.colors - body.surface.colors).max() < 1e-6
    assert (np.abs((cloud.splats.normals * body.surface.normals).sum(axis=1)) > 1 - 1e-6).all()
    assert cloud.splats.opacities.min() > 0.98
    a, b = body.surface.axis_a.numpy(), body.surface.axis_b.numpy()
    in_plane = covariances(cloud.splats)
    for axis in (a, b):
        unit = axis / np.linalg.norm(axis, axis=1, keepdims=True)
        sigma = np.sqrt(np.einsum("ma,mab,mb->m", unit, in_plane, unit))
        assert np.allclose(sigma, 0.5 * np.linalg.norm(axis, axis=1), rtol=1e-4)
    assert (cloud.splats.scales.min(axis=1) < 0.06 * cloud.splats.scales.max(axis=1)).all()


def test_what_has_melted_is_written_as_surfels(file, tmp_path):
    body = px.Body(px.load(file), nodes=80, material=ELASTIC)
    px.World().add(body)
    body.melt()
    px.export.splats(body, tmp_path / "melt.ply")
    assert len(px.load(tmp_path / "melt.ply").splats) == len(body.surface)


def test_bodies_with_and_without_harmonics_share_a_file(file, columns, tmp_path):
    world = px.World()
    world.add(px.Body(px.load("box", points=300), nodes=64, material=ELASTIC, at=(5, 0, 0), place="center"))
    world.add(px.Body(px.load(file), nodes=80, material=ELASTIC))
    px.export.splats(next(iter(world.play(seconds=0.01, fps=100))), tmp_path / "both.ply")
    both = read_ply(tmp_path / "both.ply")["vertex"]
    assert set(both) == set(columns)
    assert list(both)[6:9] == ["f_dc_0", "f_dc_1", "f_dc_2"] and list(both)[9] == "f_rest_0"
    assert len(both["x"]) == 300 + COUNT
    for k in range(45):
        assert not both[f"f_rest_{k}"][:300].any()
        assert np.abs(both[f"f_rest_{k}"][300:] - columns[f"f_rest_{k}"]).max() < 1e-6
    np.testing.assert_array_equal(both["mood"][300:], columns["mood"])
    assert rotation_matrices(np.stack([both[f"rot_{k}"] for k in range(4)], axis=1)).shape == (300 + COUNT, 3, 3)
