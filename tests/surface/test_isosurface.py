"""Meshes of fields: closed whatever the field, and right to second order where it is smooth."""

import numpy as np
import pytest

import phyxel as px
from phyxel.surface.isosurface import field_normals, isosurface

BOX = (np.full(3, -1.4), np.full(3, 1.4))


def sphere(x):
    return np.linalg.norm(x, axis=1) - 1


def torus(x):
    """Radii 1 and 0.35, about z."""
    return np.hypot(np.hypot(x[:, 0], x[:, 1]) - 1, x[:, 2]) - 0.35


def noise(seed):
    """Signs and sizes without rhyme or reason from one lattice point to the next, the same when asked again."""
    direction = np.random.default_rng(seed).normal(size=3)
    return lambda x: np.modf(1e4 * np.sin(1e3 * x @ direction))[0]


def is_closed(faces: np.ndarray) -> bool:
    """Every edge has two triangles, which pass along it in opposite directions."""
    start, end = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]).astype(np.int64).T
    there, back = (np.sort(one * (faces.max() + 1) + other) for one, other in ((start, end), (end, start)))
    return bool((np.diff(there) > 0).all() and np.array_equal(there, back))


def around_each_vertex_once(faces: np.ndarray) -> bool:
    """The triangles at a vertex form one ring: no two sheets touch in a point."""
    following = {(a, b): c for face in faces.tolist() for a, b, c in (face, face[1:] + face[:1], face[2:] + face[:2])}
    valence = np.bincount(faces.ravel())
    for a, b in dict(following.keys()).items():
        c, steps = following[a, b], 1
        while c != b:
            c, steps = following[a, c], steps + 1
        if steps != valence[a]:
            return False
    return True


def euler_number(vertices, faces) -> int:
    return len(vertices) - 3 * len(faces) // 2 + len(faces)


def volume_and_area(vertices, faces) -> tuple[float, float]:
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    doubled = np.cross(b - a, c - a)
    return float((a * doubled).sum() / 6), float(np.linalg.norm(doubled, axis=1).sum() / 2)


@pytest.mark.parametrize(
    ("field", "euler", "volume", "area"),
    [
        (sphere, 2, 4 / 3 * np.pi, 4 * np.pi),
        (torus, 0, 2 * np.pi**2 * 0.35**2, 4 * np.pi**2 * 0.35),
    ],
    ids=["sphere", "torus"],
)
def test_volume_and_area_converge_with_the_square_of_the_cell(field, euler, volume, area):
    """Vertices lie on the surface to O(h²), triangles are flat: halving h takes both errors to a quarter."""
    errors = []
    for cell in (0.12, 0.06, 0.03):
        vertices, faces = isosurface(field, *BOX, cell)
        assert is_closed(faces) and euler_number(vertices, faces) == euler
        assert np.abs(field(vertices)).max() < 0.5 * cell**2 / 0.35, "chord of the strongest curvature"
        found = volume_and_area(vertices, faces)
        errors.append([1 - found[0] / volume, 1 - found[1] / area])
    rates = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert np.abs(rates - 2).max() < 0.2
    assert max(errors[-1]) < 4e-3 and min(errors[-1]) > 0, "what is convex is cut by flat triangles"


@pytest.mark.parametrize("seed", range(3))
def test_any_field_gives_a_closed_mesh(seed):
    vertices, faces = isosurface(noise(seed), *BOX, 0.25)
    assert len(faces) > 5000
    assert is_closed(faces) and around_each_vertex_once(faces)
    assert volume_and_area(vertices, faces)[0] > 0
    assert np.array_equal(np.unique(faces), np.arange(len(vertices)))


def test_a_field_that_is_zero_on_lattice_points_gives_a_closed_mesh():
    vertices, faces = isosurface(lambda x: np.round(5 * sphere(x)), *BOX, 0.1)
    assert is_closed(faces) and euler_number(vertices, faces) == 2
    corners = vertices[faces]
    doubled = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    assert doubled.min() > 0, "no triangle vanishes"


def test_it_is_closed_by_the_box():
    """A ball that is cut by the box on one side, and a field that is inside everywhere."""
    upper = np.array([0.5, 1.4, 1.4])
    vertices, faces = isosurface(sphere, BOX[0], upper, 0.05)
    assert is_closed(faces) and euler_number(vertices, faces) == 2
    assert vertices[:, 0].max() == 0.5
    cap = np.pi * 0.5**2 * (3 - 0.5) / 3
    assert volume_and_area(vertices, faces)[0] == pytest.approx(4 / 3 * np.pi - cap, rel=5e-3)
    vertices, faces = isosurface(lambda x: -np.ones(len(x)), *BOX, 0.2)
    assert is_closed(faces)
    assert volume_and_area(vertices, faces)[0] == pytest.approx(2.8**3, rel=0.02)


def test_normals_point_outward():
    vertices, faces = isosurface(torus, *BOX, 0.05)
    normals = field_normals(torus, vertices, 1e-5)
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    flat = np.cross(b - a, c - a)
    flat /= np.linalg.norm(flat, axis=1, keepdims=True)
    assert ((flat * normals[faces[:, 0]]).sum(axis=1) > 0.5).mean() > 0.999
    ring = vertices * [1, 1, 0]
    ring /= np.linalg.norm(ring, axis=1, keepdims=True)
    outward = (vertices - ring) / 0.35
    assert (normals * outward).sum(axis=1).min() > 0.99


def test_only_what_is_near_the_surface_is_asked_and_nothing_twice():
    asked = []

    def counting(x):
        asked.append(x)
        return sphere(x)

    isosurface(counting, *BOX, 0.02)
    points = np.concatenate(asked)
    assert len(points) < 0.25 * (2.8 / 0.02) ** 3
    fine = asked[1:]
    assert len(np.unique(np.concatenate(fine), axis=0)) == len(np.concatenate(fine))


def test_small_parts_are_found_where_a_place_is_near():
    centres = np.array([[-0.85, 0.31, 0.62], [0.45, 0.5, 0.16], [0.1, -0.9, 0.3]])

    def drops(x):
        return np.linalg.norm(x[:, None] - centres, axis=2).min(axis=1) - 0.025

    assert euler_number(*isosurface(drops, *BOX, 0.02)) < 6
    vertices, faces = isosurface(drops, *BOX, 0.02, near=centres)
    assert is_closed(faces) and euler_number(vertices, faces) == 6


def test_a_part_is_followed_from_one_place():
    """A long thin rod of which one end is known."""

    def rod(x):
        along = np.clip(x[:, 0], -1.2, 1.2)
        return np.linalg.norm(x - along[:, None] * [1.0, 0, 0] - [0, 0.01, 0.02], axis=1) - 0.03

    vertices, faces = isosurface(rod, *BOX, 0.02, near=np.array([[1.2, 0, 0]]))
    assert is_closed(faces) and euler_number(vertices, faces) == 2
    assert vertices[:, 0].min() == pytest.approx(-1.23, abs=0.002)


def test_the_same_field_gives_the_same_mesh():
    one, other = (isosurface(torus, *BOX, 0.07) for _ in range(2))
    assert np.array_equal(one[0], other[0]) and np.array_equal(one[1], other[1])


def test_nothing_gives_nothing():
    vertices, faces = isosurface(lambda x: np.ones(len(x)), *BOX, 0.2)
    assert vertices.shape == (0, 3) and faces.shape == (0, 3)


@pytest.mark.parametrize(
    ("field", "upper", "cell", "word"),
    [
        (sphere, np.full(3, -2.0), 0.1, "box"),
        (sphere, BOX[1], 0.0, "cell"),
        (sphere, BOX[1], 1e-5, "larger"),
        (lambda x: np.full(len(x), np.nan), BOX[1], 0.1, "finite"),
    ],
)
def test_what_makes_no_sense_is_refused(field, upper, cell, word):
    with pytest.raises(px.PhyxelError, match=word):
        isosurface(field, BOX[0], upper, cell)
