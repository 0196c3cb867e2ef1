"""The built-in surfaces: whole, even, the right way round, and what their names promise."""

from functools import cache

import numpy as np
import pytest

from phyxel.errors import SceneError, SolidError
from phyxel.points.cloud import Floats, PointCloud
from phyxel.points.load import load
from phyxel.points.shapes import SHAPES
from phyxel.points.sheets import BONE_RADIUS, SURFACES, furrowed
from phyxel.scene import Scene
from phyxel.solid.solid import Solid

COUNT = 5000

every_surface = pytest.mark.parametrize("name", list(SURFACES))


@cache
def made(name: str, points: int = COUNT) -> PointCloud:
    return load(name, points=points)


def edges_of(cloud: PointCloud) -> tuple[np.ndarray, np.ndarray]:
    """Edges (E, 2), and how many faces have each; no face passes one the same way as another does."""
    directed = cloud.faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    assert len(np.unique(directed, axis=0)) == len(directed)
    return np.unique(np.sort(directed, axis=1), axis=0, return_counts=True)


def area_vectors(cloud: PointCloud) -> Floats:
    a, b, c = np.swapaxes(cloud.positions[cloud.faces], 0, 1)
    return 0.5 * np.cross(b - a, c - a)


@every_surface
@pytest.mark.parametrize("points", [4, 12, 100, 1234, COUNT])
def test_a_surface_is_one_whole_mesh_of_about_so_many_vertices(name, points):
    """Each vertex in a face, no edge in more than two, all faces alike round; by Euler a disc (1) or a sphere (2)."""
    cloud = made(name, points)
    assert abs(len(cloud) - points) <= max(8, 0.05 * points)
    assert cloud.name == name and cloud.shape is None
    edges, shares = edges_of(cloud)
    assert shares.max() == 2
    assert len(np.unique(cloud.faces)) == len(cloud)
    assert len(cloud) - len(edges) + len(cloud.faces) == (2 if name == "balloon" else 1)
    assert (shares == 1).any() == (name != "balloon")
    assert (np.linalg.norm(area_vectors(cloud), axis=1) > 0).all()
    if cloud.quads is not None:
        assert len(cloud.faces) == 2 * len(cloud.quads)


@every_surface
def test_a_surface_is_even_and_has_all_that_is_seen(name):
    """Few edges are far from the mean; normals look where the faces do."""
    cloud = made(name)
    ends = cloud.positions[edges_of(cloud)[0]]
    lengths = np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1)
    least, most = np.quantile(lengths / lengths.mean(), [0.005, 0.995])
    assert least > 0.6 and most < 1.8
    assert cloud.colors.shape == cloud.normals.shape == (len(cloud), 3)
    assert cloud.colors.min() >= 0 and cloud.colors.max() <= 1 and cloud.colors.std(axis=0).max() > 0.03
    assert np.linalg.norm(cloud.normals, axis=1) == pytest.approx(1, abs=1e-6)
    corner_normals = cloud.normals[cloud.faces].sum(axis=1)
    assert (np.einsum("ij,ij->i", corner_normals, area_vectors(cloud)) > 0).mean() > 0.995
    np.testing.assert_array_equal(cloud.mesh.faces, cloud.faces)
    assert cloud.faces.dtype == np.int32 and (cloud.quads is None or cloud.quads.dtype == np.int32)


def test_the_cloth_is_a_square_metre_with_warp_along_x():
    """Quads alike, counter-clockwise from above, whose first side is a piece of warp; stripes run both ways."""
    cloud = made("cloth")
    x = cloud.positions[cloud.quads]
    step = 1 / (len(cloud) ** 0.5 - 1)
    assert x[:, 1] - x[:, 0] == pytest.approx(np.tile([step, 0, 0], (len(x), 1)), abs=1e-12)
    assert x[:, 3] - x[:, 0] == pytest.approx(np.tile([0, 0, -step], (len(x), 1)), abs=1e-12)
    assert area_vectors(cloud).sum(axis=0) == pytest.approx([0, 1, 0], abs=1e-12)
    assert (cloud.lower, cloud.upper) == (pytest.approx([-0.5, 0, -0.5]), pytest.approx([0.5, 0, 0.5]))
    side = round(len(cloud) ** 0.5)
    colors = cloud.colors.reshape(side, side, 3)
    assert colors.mean(axis=1).std(axis=0).max() > 0.1 and colors.mean(axis=0).std(axis=0).max() > 0.1


def test_the_balloon_is_an_even_ball_and_holds_a_jack():
    """Edges are within 10 % of the mean e. A flat face with three corners on the sphere lies (e²/3 - ρ²)/2r below it at
    ρ from its middle, e²/8r on the mean: a share of 3/8 e²/r² of the volume is missing. The jack's balls end 4 cm from
    the sphere; the large faces of 100 vertices come 2 cm nearer."""
    cloud = made("balloon")
    assert np.linalg.norm(cloud.positions, axis=1) == pytest.approx(0.5, abs=1e-12)
    ends = cloud.positions[edges_of(cloud)[0]]
    lengths = np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1)
    assert lengths.min() / lengths.mean() > 0.9 and lengths.max() / lengths.mean() < 1.1
    corners = cloud.positions[cloud.faces]
    volume = np.linalg.det(corners).sum() / 6
    sphere = 4 / 3 * np.pi * 0.5**3
    assert 1 - volume / sphere == pytest.approx(0.375 * (lengths.mean() / 0.5) ** 2, rel=0.02)
    for points in (100, COUNT):
        coarse = made("balloon", points)
        middles = coarse.positions[coarse.faces].mean(axis=1)
        assert SHAPES["jack"].distance(np.concatenate([coarse.positions, middles])).min() > 0.01
    assert Solid(cloud).volume == pytest.approx(volume, rel=2e-3)


def test_the_forehead_lies_over_its_bone_with_wrinkles():
    """Nowhere inside the ball, 0.5 to 6 mm off it. Furrows go across: along a line down its middle the depth has four
    peaks of 1 mm or more, along the third furrow it stays; the frown lines are crossed between the brows."""
    cloud = made("forehead", 20_000)
    off = np.linalg.norm(cloud.positions, axis=1) - BONE_RADIUS
    assert off.min() > 5e-4 and 0.004 < off.max() < 0.006
    assert (cloud.normals[:, 2] > 0).mean() > 0.95
    height = np.linspace(0.0, 0.065, 600)
    depth = furrowed(0 * height + 0.01, height)
    peaks = (depth[1:-1] > depth[:-2]) & (depth[1:-1] > depth[2:]) & (depth[1:-1] > 1e-3)
    assert peaks.sum() == 4
    aside = np.linspace(-0.02, 0.02, 400)
    frown = furrowed(aside, 0 * aside - 0.014)
    assert ((frown[1:-1] > frown[:-2]) & (frown[1:-1] > frown[2:]) & (frown[1:-1] > 1e-3)).sum() == 2


def test_the_scallop_is_ribbed_and_open_below():
    """On a circle about the hinge the height goes up and down 21 times; the rim is on or near the ground."""
    cloud = made("scallop", 20_000)
    x, y, z = cloud.positions.T
    assert y.min() == pytest.approx(0, abs=1e-6) and 0.12 < y.max() < 0.15
    assert np.ptp(x) == pytest.approx(0.5, rel=2e-3)
    ring = np.abs(np.hypot(x, z) - 0.45) < 0.004
    angle = np.arctan2(x, z)[ring]
    order = np.argsort(angle)
    wave = y[ring][order] - np.polyval(np.polyfit(angle, y[ring], 6), angle[order])
    strength = np.abs(np.fft.rfft(np.interp(np.linspace(-0.7, 0.7, 512), angle[order], wave) * np.hanning(512)))
    # 21 ribs in 104 degrees are 16 to 17 in the 80 that are looked at.
    assert 2 + np.argmax(strength[2:]) == pytest.approx(21 * 1.4 / np.radians(104), abs=1.5)
    rim = np.unique(edges_of(cloud)[0][edges_of(cloud)[1] == 1])
    assert y[rim].max() < 0.02
    assert (cloud.normals[:, 1] > 0).mean() > 0.99


@every_surface
def test_scenes_know_surfaces_by_name_too(name, tmp_path):
    path = tmp_path / "scene.toml"
    path.write_text(f'[[body]]\nshape = "{name}"\npoints = 60\n')
    cloud = Scene.read(path).content.body[0].cloud(tmp_path)
    np.testing.assert_array_equal(cloud.positions, made(name, 60).positions)
    path.write_text(f'[[body]]\nshape = "{name[:-1]}"\n')
    with pytest.raises(SceneError, match=f'did you mean "{name}"'):
        Scene.read(path).content.body[0].cloud(tmp_path)


@pytest.mark.parametrize("name", ["cloth", "scallop"])
def test_what_encloses_nothing_is_no_solid_but_may_be_a_particle_surface(name):
    with pytest.raises(SolidError, match=f'{name}: .* model = "particles" needs no inside'):
        Solid(made(name))
