"""Files for others: what is written comes back through `px.load` as it was."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import ConvexHull, cKDTree

import phyxel as px
from phyxel.movers.phyxel_bodies import phyxels_of
from tests.surface.test_isosurface import is_closed

SOFT = px.Material(young=1e5, poisson=0.3, damping=2e-3)
SIDES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
"""of a cube whose corners are counted in x, y, z order; counter-clockwise from outside"""


def write_cube(path: Path, welded: bool = True) -> Path:
    """A unit cube with a texture on every side: 8 vertices (or 24), 12 triangles, 24 texture coordinates."""
    corners = list(product((0.0, 1.0), repeat=3))
    vertices = corners if welded else [corners[k] for side in SIDES for k in side]
    lines = ["v {} {} {}".format(*x) for x in vertices]
    for number in range(6):
        lines += [f"vt {(number + s) / 6:.6f} {t}" for s, t in ((0, 0), (1, 0), (1, 1), (0, 1))]
    for number, side in enumerate(SIDES):
        v = [k + 1 for k in side] if welded else [4 * number + k + 1 for k in range(4)]
        t = [4 * number + k + 1 for k in range(4)]
        for a, b, c in ((0, 1, 2), (0, 2, 3)):
            lines.append(f"f {v[a]}/{t[a]} {v[b]}/{t[b]} {v[c]}/{t[c]}")
    path.write_text("\n".join(lines) + "\n")
    return path


def bent(cloud: px.PointCloud, **options) -> px.Body:
    """A body of this cloud that sags from its left end."""
    body = px.Body(cloud, nodes=64, material=SOFT, **options)
    world = px.World()
    world.add(body)
    body.fix(lambda X: X[:, 0] < X[:, 0].min() + 0.05)
    world.advance(0.15)
    return body


@pytest.fixture(scope="module")
def bear() -> px.Body:
    return bent(px.load("bear", points=700), size=1.0)


@pytest.fixture(scope="module")
def cube(tmp_path_factory) -> px.Body:
    return bent(px.load(write_cube(tmp_path_factory.mktemp("cube") / "cube.obj")))


def test_points_come_back_as_they_were(bear, tmp_path):
    px.export.ply(bear, tmp_path / "bear.ply")
    back = px.load(tmp_path / "bear.ply")
    assert len(back) == 700
    assert np.array_equal(back.positions.astype(np.float32), np.asarray(bear.surface.positions, np.float32))
    assert np.abs(back.normals - bear.surface.normals).max() < 1e-5
    assert np.abs(np.linalg.norm(back.normals, axis=1) - 1).max() < 1e-5
    assert np.abs(back.colors - bear.surface.colors).max() <= 0.5001 / 255
    assert np.ptp(back.colors, axis=0).max() > 0.1, "the bear has colours"
    assert np.abs(back.positions - bear.cloud.positions).max() > 0.05, "it has moved"


def test_the_file_is_binary_ply_with_the_usual_names(bear, tmp_path):
    px.export.ply(bear, tmp_path / "bear.ply")
    header = (tmp_path / "bear.ply").read_bytes().split(b"end_header\n")[0].decode().splitlines()
    assert header[:2] == ["ply", "format binary_little_endian 1.0"]
    names = [line.split()[-1] for line in header if line.startswith("property")]
    assert names == ["x", "y", "z", "nx", "ny", "nz", "red", "green", "blue"]


def test_a_frame_holds_all_bodies(tmp_path):
    world = px.World()
    world.add(px.Body(px.load("sphere", points=300), nodes=60, material=SOFT, at=(-2, 0, 0)))
    world.add(px.Body(px.load("box", points=400), nodes=64, material=SOFT, at=(2, 0, 0)))
    for frame in world.play(seconds=0.04, fps=50):
        px.export.ply(frame, tmp_path / "new" / "folder" / f"{frame.index:04d}.ply")
    written = sorted((tmp_path / "new" / "folder").iterdir())
    assert [path.name for path in written] == ["0000.ply", "0001.ply", "0002.ply"]
    first, *_, last = (px.load(path) for path in written)
    assert len(first) == len(last) == 700
    assert (first.positions[:300, 0] < 0).all() and (first.positions[300:, 0] > 0).all()
    assert np.abs(last.positions - first.positions - [0, -0.5 * 9.81 * 0.04**2, 0]).max() < 1e-5


def test_normals_turn_with_the_body(tmp_path):
    body = px.Body(
        px.load("box", points=400), nodes=64, rotate=(0, 0, 30), spin=(0, 0, 1), material=SOFT.but(young=1e7)
    )
    world = px.World(gravity=(0, 0, 0))
    world.add(body)
    world.advance(0.5)
    px.export.ply(body, tmp_path / "box.ply")
    angle = np.deg2rad(30) + 0.5
    turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
    expected = px.load("box", points=400).normals @ turn.T
    assert np.abs(px.load(tmp_path / "box.ply").normals - expected).max() < 0.02


def test_a_ball_that_falls_keeps_its_outward_normals(tmp_path):
    body = px.Body(px.load("sphere", points=400), nodes=60, material=SOFT)
    world = px.World()
    world.add(body)
    world.advance(0.2)
    px.export.ply(body, tmp_path / "ball.ply")
    back = px.load(tmp_path / "ball.ply")
    outward = back.positions - back.positions.mean(axis=0)
    outward /= np.linalg.norm(outward, axis=1, keepdims=True)
    assert (outward * back.normals).sum(axis=1).min() > 0.99


@pytest.mark.parametrize("suffix", ["obj", "ply"])
def test_a_mesh_comes_back_bent_but_whole(cube, suffix, tmp_path):
    path = tmp_path / f"cube.{suffix}"
    px.export.mesh(cube, path)
    back = px.load(path)
    assert len(back) == 8 and back.faces.shape == (12, 3)
    assert np.array_equal(back.faces, cube.cloud.faces)
    assert np.abs(back.positions - cube.surface.positions).max() < 1e-6
    assert np.abs(back.positions - cube.cloud.positions).max() > 0.02
    assert np.abs(np.linalg.norm(back.normals, axis=1) - 1).max() < 1e-4
    assert np.abs(back.normals - cube.surface.normals).max() < 1e-3


def test_an_obj_keeps_its_texture(cube, tmp_path):
    px.export.mesh(cube, tmp_path / "cube.obj")
    back = px.load(tmp_path / "cube.obj")
    assert back.uv.shape == (24, 2)
    assert np.abs(back.uv[back.uv_faces] - cube.cloud.uv[cube.cloud.uv_faces]).max() < 1e-6
    assert np.ptp(back.uv[:, 0]) == pytest.approx(1)


def test_a_mesh_is_a_body_again(cube, tmp_path):
    px.export.mesh(cube, tmp_path / "cube.obj")
    again = px.Body(px.load(tmp_path / "cube.obj"), nodes=64, material=SOFT)
    assert again.solid.volume == pytest.approx(1, rel=0.1)


def test_a_mesh_of_separate_triangles_is_as_good(tmp_path):
    """Duplicated points: STL and many OBJ files repeat a vertex for every side."""
    cloud = px.load(write_cube(tmp_path / "apart.obj", welded=False))
    body = bent(cloud)
    assert body.volumes.sum() == pytest.approx(1, rel=0.01)
    px.export.mesh(body, tmp_path / "bent.obj")
    back = px.load(tmp_path / "bent.obj")
    assert len(back) == 24
    for corner in np.unique(cloud.positions, axis=0):
        twins = (cloud.positions == corner).all(axis=1)
        assert twins.sum() == 3
        assert np.ptp(back.positions[twins], axis=0).max() < 1e-5, "no seam opens"


def test_an_added_point_is_no_vertex_and_a_changed_surface_no_harm(tmp_path):
    """More points than the mesh has vertices are for the picture; the mesh is made of those it came with."""
    body = bent(px.load(write_cube(tmp_path / "cube.obj"), points=500))
    px.export.mesh(body, tmp_path / "bent.obj")
    back = px.load(tmp_path / "bent.obj")
    carried = body.surface.carried
    assert len(back) == 8 and len(carried) == 500
    assert np.abs(back.positions - (carried.origin + carried.position.numpy()[:8])).max() < 1e-6


def test_a_mesh_of_which_few_points_were_taken_goes_out_whole(tmp_path):
    ball = px.load("sphere", points=600)
    hull = ConvexHull(ball.positions).simplices
    corners = ball.positions[hull]
    inward = (np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]) * corners[:, 0]).sum(axis=1) < 0
    hull[inward] = hull[inward, ::-1]
    lines = ["v {:.7f} {:.7f} {:.7f}".format(*x) for x in ball.positions]
    lines += ["f {} {} {}".format(*face) for face in hull + 1]
    (tmp_path / "ball.obj").write_text("\n".join(lines) + "\n")
    body = bent(px.load(tmp_path / "ball.obj", points=200))
    px.export.mesh(body, tmp_path / "bent.obj")
    back = px.load(tmp_path / "bent.obj")
    assert len(back) == 600 and np.array_equal(back.faces, hull)
    moved = body.displacement_at(ball.positions)
    assert np.abs(back.positions - ball.positions - moved).max() < 1e-5


def closed_volume(path) -> float:
    """Volume of a mesh file in which every edge has two faces, which pass it in opposite directions."""
    back = px.load(path)
    assert is_closed(np.asarray(back.faces))
    a, b, c = (back.positions[back.faces[:, k]] for k in range(3))
    outward = np.cross(b - a, c - a)
    along = (outward * back.normals[back.faces[:, 0]]).sum(axis=1)
    assert (along > 0).mean() > 0.95, "normals are those of the faces"
    return float((a * outward).sum() / 6)


def test_points_get_a_closed_mesh_that_follows(bear, tmp_path):
    px.export.mesh(bear, tmp_path / "bear.ply")
    back = px.load(tmp_path / "bear.ply")
    assert closed_volume(tmp_path / "bear.ply") > 0
    near, index = cKDTree(bear.surface.positions).query(back.positions)
    assert near.max() < 2 * bear.unit
    assert np.abs(back.colors - bear.surface.colors[index]).mean() < 0.1
    assert np.ptp(back.colors, axis=0).max() > 0.5
    assert np.abs(back.positions.min(axis=0) - bear.surface.positions.min(axis=0)).max() < 0.3 * bear.unit
    before = px.load(tmp_path / "bear.ply").faces
    px.export.mesh(bear, tmp_path / "again.ply")
    assert np.array_equal(px.load(tmp_path / "again.ply").faces, before)


def test_the_mesh_of_points_has_the_volume_of_the_body(tmp_path):
    """A ball of radius r in cells h loses 0.4 (h/r)² of its volume, 1 % here; stretching keeps that."""
    body = px.Body(px.load("sphere", points=2000), nodes=100, material=SOFT)
    world = px.World(gravity=(0, 0, 0))
    world.add(body)
    stretch = np.diag([1.4, 1.0, 0.8])
    X = (body.birth - body.centre) / body.unit
    phyxels_of(world).model.u.assign((X @ (stretch - np.eye(3))).astype(np.float32))
    phyxels_of(world).model.shape_changed()
    px.export.mesh(body, tmp_path / "ball.ply")
    assert closed_volume(tmp_path / "ball.ply") == pytest.approx(np.linalg.det(stretch) * body.volumes.sum(), rel=0.015)
    back = px.load(tmp_path / "ball.ply")
    across = (back.positions - body.centre) @ np.linalg.inv(stretch @ stretch)
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    assert (back.normals * across).sum(axis=1).min() > 0.999, "normals of an ellipsoid"


def test_the_mesh_of_points_stands_on_the_ground(tmp_path):
    body = px.Body(px.load("sphere", points=800), nodes=100, material=SOFT, at=(0, 0.5, 0))
    world = px.World()
    world.add(body)
    world.add(px.Ground())
    world.advance(0.3)
    px.export.mesh(body, tmp_path / "ball.obj")
    assert px.load(tmp_path / "ball.obj").positions[:, 1].min() > -1e-6
    assert body.positions[:, 1].min() < body.unit, "it has come down"


def test_a_melt_has_a_closed_mesh_of_its_own(tmp_path):
    """Blobs over the nodes swell by some percent; colours are those of the surfels."""
    cloud = px.load("sphere", points=600)
    body = px.Body(cloud.with_colors(np.tile([0.9, 0.2, 0.1], (600, 1))), nodes=200, material=SOFT)
    world = px.World(gravity=(0, 0, 0))
    world.add(body)
    body.melt(viscosity=10)
    world.advance(0.02)
    px.export.mesh(body, tmp_path / "melt.ply")
    assert closed_volume(tmp_path / "melt.ply") == pytest.approx(body.volumes.sum(), rel=0.2)
    assert np.abs(px.load(tmp_path / "melt.ply").colors - [0.9, 0.2, 0.1]).max() < 0.01


def test_other_kinds_of_mesh_file_are_refused(cube, tmp_path):
    with pytest.raises(px.PhyxelError, match=r"\.obj"):
        px.export.mesh(cube, tmp_path / "cube.fbx")
    assert list(tmp_path.iterdir()) == []


def test_a_body_without_a_world_has_no_surface_to_write(tmp_path):
    body = px.Body(px.load("box", points=300), nodes=64)
    with pytest.raises(px.PhyxelError, match="world"):
        px.export.ply(body, tmp_path / "box.ply")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("write", [px.export.ply, px.export.mesh])
def test_what_cannot_be_written_says_so(write, cube, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(px.PhyxelError, match="cannot be written"):
        write(cube, tmp_path / "file" / "out.ply")
    (tmp_path / "folder.ply").mkdir()
    with pytest.raises(px.PhyxelError, match="cannot be written"):
        write(cube, tmp_path / "folder.ply")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.ply"]
    assert (tmp_path / "file").read_text() == "mine"


def test_a_failed_write_leaves_the_old_file(bear, tmp_path, monkeypatch):
    path = tmp_path / "bear.ply"
    px.export.ply(bear, path)
    before = path.read_bytes()

    def full(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(px.PhyxelError, match="space"):
        px.export.ply(bear, path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["bear.ply"]
