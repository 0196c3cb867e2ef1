"""Meshes for others: what came in goes out, vertices and faces; points get one, which opens along cracks."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial import ConvexHull, cKDTree

import phyxel as px
from phyxel.cracks.crack import Crack, Cracks
from phyxel.cracks.grid import LevelGrid
from phyxel.export.meshes import mesh_of, surface_field
from phyxel.export.splats import WITHIN
from phyxel.movers.phyxel_bodies import phyxels_of
from phyxel.surface.isosurface import isosurface
from tests.export.bodies import COLUMNS, ROWS, SOFT, bent, write_cube
from tests.surface.test_isosurface import is_closed

SHIFT = np.array([0.1, 0.02, 0.03])


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


def test_an_obj_has_colours_unless_it_has_a_texture(bear, cube, tmp_path):
    px.export.mesh(bear, tmp_path / "bear.obj")
    px.export.mesh(bear, tmp_path / "bear.ply")
    px.export.mesh(cube, tmp_path / "cube.obj")
    obj, ply = (px.load(tmp_path / f"bear.{suffix}") for suffix in ("obj", "ply"))
    assert np.abs(obj.colors - ply.colors).max() <= 0.5001 / 255
    assert np.ptp(obj.colors, axis=0).max() > 0.5
    assert px.load(tmp_path / "cube.obj").colors is None


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
    body = bent(px.load(tmp_path / "ball.obj", points=200), place="file")
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
    body = px.Body(px.load("sphere", points=800), nodes=100, material=SOFT, at=(0, 0.5, 0), place="center")
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


@pytest.mark.parametrize(
    ("shape", "size", "collider", "depth"),
    [
        ("bear", 0.5, px.Ground(), lambda x: -x[:, 1]),
        ("sphere", 3.0, px.Ground(height=-1.2), lambda x: -1.2 - x[:, 1]),
        (
            "box",
            0.4,
            px.Sphere(radius=0.5, at=(0.1, -0.5, 0)),
            lambda x: 0.5 - np.linalg.norm(x - [0.1, -0.5, 0], axis=1),
        ),
    ],
    ids=["ground", "lower ground", "ball"],
)
def test_the_mesh_of_a_melt_lies_on_what_it_lies_on(shape, size, collider, depth, tmp_path):
    """Its field alone would take it into the collider. What is cut off is little."""
    cloud = px.load(shape, points=1500)
    body = px.Body(cloud, nodes=150, size=size, material=px.Material.gelatin())
    lowest = body.placed_cloud()
    body = px.Body(cloud, nodes=150, size=size, material=px.Material.gelatin(), at=(0, depth(lowest).max() + 0.01, 0))
    world = px.World(device="cpu")
    world.add(body)
    world.add(collider)
    body.melt(viscosity=20.0)
    world.advance(0.3 * np.sqrt(size / 0.5))
    px.export.mesh(body, tmp_path / "melt.ply")
    volume, back = closed_volume(tmp_path / "melt.ply"), px.load(tmp_path / "melt.ply")
    assert depth(back.positions).max() < 1e-6 * size
    field, cell = surface_field(body)
    around = np.concatenate([body.surface.positions, body.positions])
    x, faces = isosurface(field, around.min(axis=0) - 4 * cell, around.max(axis=0) + 4 * cell, cell, near=around)
    assert depth(x).max() > 2e-3 * size
    a, b, c = (x[faces[:, k]] for k in range(3))
    assert volume == pytest.approx((a * np.cross(b, c)).sum() / 6, rel=0.015)


def test_other_kinds_of_mesh_file_are_refused(cube, tmp_path):
    with pytest.raises(px.PhyxelError, match=r"\.obj"):
        px.export.mesh(cube, tmp_path / "cube.fbx")
    assert list(tmp_path.iterdir()) == []


# Particle surfaces


def indices(path: Path) -> list[list[tuple[str, str]]]:
    """Vertex and texture coordinate of each corner of each face of an OBJ file."""
    rows = [line.split()[1:] for line in path.read_text().splitlines() if line.startswith("f ")]
    return [[tuple(corner.split("/")[:2]) for corner in row] for row in rows]


def test_an_obj_of_quads_comes_out_as_it_went_in(mat, tmp_path):
    path, body = mat
    px.export.mesh(body, tmp_path / "out.obj")
    came, went = indices(path), indices(tmp_path / "out.obj")
    turned = [[row[k:] + row[:k] for k in range(4)] + [row[k::-1] + row[:k:-1] for k in range(4)] for row in came]
    assert len(went) == len(came) == (ROWS - 1) * (COLUMNS - 1)
    assert all(row in ways for row, ways in zip(went, turned, strict=True))  # a face may begin anywhere
    back = px.load(tmp_path / "out.obj")
    assert np.abs(back.positions - body.positions).max() < 1e-6
    assert np.abs(back.uv - px.load(path).uv).max() < 1e-6
    assert np.abs(body.positions - body.birth).max() > 0.01


def test_a_ply_has_the_quads_and_colours(mat, tmp_path):
    _, body = mat
    px.export.mesh(body, tmp_path / "out.ply")
    back = px.load(tmp_path / "out.ply")
    assert np.array_equal(back.quads, body.cloud.quads)
    assert np.abs(back.positions - body.positions).max() < 1e-6
    assert np.einsum("ni,ni->n", back.normals, body.surface.carried.normals).min() > 0.99


def test_a_closed_surface_keeps_its_triangles_and_volume():
    """A balloon at rest: 4/3 π R³ but for the chords of 362 vertices, 2 %; its mesh has one side."""
    body = px.Body(px.load("balloon", points=362), model="particles", links="none", at=(3, 2, 1), place="file")
    world = px.World(gravity=(0, 0, 0))
    world.add(body)
    mesh = mesh_of(body)
    assert np.array_equal(mesh.faces, body.cloud.faces) and not mesh.is_sheet
    corners = mesh.vertices[mesh.faces]
    assert np.linalg.det(corners - [3, 2, 1]).sum() / 6 == pytest.approx(4 / 3 * np.pi * 0.5**3, rel=0.02)


def test_a_run_refuses_meshes_of_points_before_it_writes(tmp_path):
    cloud = px.load("cloth", points=100)
    np.savetxt(tmp_path / "dust.xyz", cloud.positions)
    (tmp_path / "scene.toml").write_text(
        'seconds = 0.1\nfps = 20\n[[body]]\nname = "dust"\nfile = "dust.xyz"\nmodel = "particles"\nlinks = "none"\n'
        'material = { preset = "silk" }\n[output]\nmesh = "obj"\nvideo = false\n'
    )
    from phyxel.run import Run

    with pytest.raises(px.PhyxelError, match="no faces"):
        Run(px.Scene.read(tmp_path / "scene.toml"), tmp_path / "out").play(False, lambda row: None)
    assert not (tmp_path / "out").exists()


def test_points_without_faces_are_written_as_points_and_splats_but_as_no_mesh(tmp_path):
    cloud = px.load("cloth", points=400)
    alone = px.PointCloud(cloud.positions, cloud.normals, cloud.colors, name="dust")
    body = px.Body(alone, model="particles", links="none", spin=(0, 2, 0))
    world = px.World()
    world.add(body)
    world.advance(0.05)
    px.export.ply(body, tmp_path / "points.ply")
    assert np.abs(px.load(tmp_path / "points.ply").positions - body.positions).max() < 1e-6
    px.export.splats(body, tmp_path / "splats.ply")
    px.export.vtk(body, tmp_path / "points.vtp")
    splats = px.load(tmp_path / "splats.ply").splats
    half_axes = np.stack([body.surface.axis_a.numpy(), body.surface.axis_b.numpy()], axis=2)
    largest = np.linalg.svd(half_axes, compute_uv=False)[:, 0]
    assert np.abs(splats.scales.max(axis=1) / largest - WITHIN).max() < 1e-4
    with pytest.raises(px.PhyxelError, match="dust: its points have no faces"):
        px.export.mesh(body, tmp_path / "mesh.obj")
    assert not (tmp_path / "mesh.obj").exists()


def volume(mesh):
    """∫ x·n/3 over the faces."""
    corners = mesh.vertices[mesh.faces]
    return np.einsum("fa,fa->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6


def longest_edge(mesh):
    corners = mesh.vertices[mesh.faces]
    return np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max()


@pytest.mark.parametrize("comes_as", ["points", "mesh"])
def test_a_mesh_opens_along_a_crack(comes_as, tmp_path):
    if comes_as == "mesh":
        px.export.mesh(bar(points=400), tmp_path / "bar.obj")
        body = bar(px.load(tmp_path / "bar.obj"))
    else:
        body = bar()
    whole = mesh_of(body)
    X = (body.birth - body.born.centre) / body.born.unit
    cracks = Cracks(LevelGrid.around(X.min(axis=0) - 1, X.max(axis=0) + 1))
    cracks.add(Crack.plane(cracks.grid, (0.1, 0, 0), (1, 0.3, 0)))
    body.fracture = SimpleNamespace(cracks=cracks)
    closed = mesh_of(body)
    assert len(closed.faces) > len(whole.faces)
    model = phyxels_of(body.world).model
    model.ensure_forces()
    model.u.assign(np.where(cracks[0].values(X)[0][:, None] > 0, SHIFT / body.born.unit, 0).astype(np.float32))
    model.now.gradient.zero_()
    opened = mesh_of(body)
    # Faces close both halves but for what the grid of the crack misses at the rim: a cell of a third of a spacing has
    # chords of its own. What is cut open and left open would be off by (V/2)/3 and more.
    assert volume(closed) == pytest.approx(volume(whole), rel=2e-3)
    assert volume(opened) == pytest.approx(volume(whole), rel=2e-3)
    assert longest_edge(opened) == pytest.approx(longest_edge(closed), rel=1e-4)
    moved = opened.vertices - closed.vertices
    np.testing.assert_allclose(np.minimum(np.abs(moved).max(axis=1), np.abs(moved - SHIFT).max(axis=1)), 0, atol=1e-6)


def bar(cloud=None, points=3000):
    body = px.Body(px.load("bar", points=points) if cloud is None else cloud, nodes=150)
    px.World(gravity=(0, 0, 0), device="cpu").add(body)
    return body
