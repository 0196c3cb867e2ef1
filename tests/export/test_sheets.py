"""Particle surfaces for others: the mesh that came in goes out, vertex by vertex and face by face."""

from pathlib import Path

import numpy as np
import pytest

import phyxel as px
from phyxel.export.meshes import mesh_of
from phyxel.export.splats import WITHIN

ROWS, COLUMNS = 5, 7


def write_mat(path: Path) -> Path:
    """A wavy mat of quads with a texture seam: more texture coordinates than vertices."""
    lines = []
    for i in range(ROWS):
        lines += [f"v {0.1 * j:.6f} {0.02 * np.sin(i + 2.0 * j):.6f} {0.1 * i:.6f}" for j in range(COLUMNS)]
    quads = [(i * COLUMNS + j, COLUMNS, 1) for i in range(ROWS - 1) for j in range(COLUMNS - 1)]
    for number in range(len(quads)):
        lines += [f"vt {(number + s) / len(quads):.6f} {t}.5" for s, t in ((0, 0), (0, 1), (1, 1), (1, 0))]
    for number, (first, down, right) in enumerate(quads):
        corners = (first, first + down, first + down + right, first + right)
        lines.append("f " + " ".join(f"{v + 1}/{4 * number + k + 1}" for k, v in enumerate(corners)))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def mat(tmp_path_factory) -> tuple[Path, px.Body]:
    """What came in, and a body of it that fell, turned and is bent."""
    path = write_mat(tmp_path_factory.mktemp("mat") / "mat.obj")
    body = px.Body(px.load(path), model="particles", links="none", rotate=(30, 40, 0), spin=(1, 2, 3), name="mat")
    world = px.World()
    world.add(body)
    body.fix([0, COLUMNS - 1])
    world.advance(0.1)
    return path, body


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


def test_usd_has_quads_seen_from_both_sides(mat, tmp_path):
    pytest.importorskip("pxr", reason="needs usd-core")
    from pxr import Usd, UsdGeom

    from tests.export.usd_rules import faults_of

    _, body = mat
    px.export.usd(body, tmp_path / "mat.usdc", mesh=True)
    assert faults_of(tmp_path / "mat.usdc") == []
    stage = Usd.Stage.Open(str(tmp_path / "mat.usdc"))
    prim = UsdGeom.Mesh(stage.GetPrimAtPath("/World/mat/mat_mesh"))
    assert np.array_equal(prim.GetFaceVertexCountsAttr().Get(0), np.full(len(body.cloud.quads), 4))
    assert np.array_equal(np.array(prim.GetFaceVertexIndicesAttr().Get(0)).reshape(-1, 4), body.cloud.quads)
    assert prim.GetDoubleSidedAttr().Get()
    st = UsdGeom.PrimvarsAPI(prim).GetPrimvar("st")
    known = np.array(st.Get(0))[np.array(st.GetIndices(0))].reshape(-1, 4, 2)
    columns = np.rint(known.mean(axis=1)[:, 0] * len(known) - 0.5)
    assert np.array_equal(columns, np.arange(len(known)))  # each quad has its own patch of the texture
    speeds = np.array(stage.GetPrimAtPath("/World/mat/mat_points").GetAttribute("velocities").Get(0))
    assert np.abs(speeds - body.velocities).max() < 1e-4 * np.abs(body.velocities).max()


def test_a_closed_surface_keeps_its_triangles_and_volume():
    """A balloon at rest: 4/3 π R³ but for the chords of 362 vertices, 2 %; its mesh has one side."""
    body = px.Body(px.load("balloon", points=362), model="particles", links="none", at=(3, 2, 1))
    world = px.World(gravity=(0, 0, 0))
    world.add(body)
    mesh = mesh_of(body)
    assert np.array_equal(mesh.faces, body.cloud.faces) and not mesh.is_sheet
    corners = mesh.vertices[mesh.faces]
    assert np.linalg.det(corners - [3, 2, 1]).sum() / 6 == pytest.approx(4 / 3 * np.pi * 0.5**3, rel=0.02)


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
