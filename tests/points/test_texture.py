"""Pictures and colours of files are seen at their points, also at those that were added on faces."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import phyxel as px
from phyxel.points.load import load
from phyxel.points.texture import colors_at
from tests.solid.meshes import square

CELLS = 4


def ramp(path: Path) -> None:
    """A picture whose red grows to the right and whose green grows upward, in steps of a 256th."""
    up, right = np.meshgrid(np.arange(255, -1, -1), np.arange(256), indexing="ij")
    Image.fromarray(np.stack([right, up, 0 * up], axis=2).astype(np.uint8)).save(path, quality=95, subsampling=0)


def textured_square(folder: Path, material: str, library: str = "paint.mtl") -> Path:
    """A sheet from −½ to ½ in x and z, whose texture coordinates are x + ½ and z + ½."""
    vertices, faces = square(1.0, cells=CELLS)
    lines = [f"mtllib {library}", "usemtl paint"]
    lines += [f"v {x} {y} {z}" for x, y, z in vertices]
    lines += [f"vt {x + 0.5} {z + 0.5}" for x, _, z in vertices]
    lines += [f"f {a}/{a} {b}/{b} {c}/{c}" for a, b, c in faces + 1]
    (folder / "paint.mtl").write_text(f"newmtl paint\nKd 0.5 0.5 0.5\n{material}\n")
    path = folder / "sheet.obj"
    path.write_text("\n".join(lines))
    return path


def expected(x: np.ndarray) -> np.ndarray:
    """What the ramp shows at a place of the square; its outer half pixel is a blend with the other side."""
    return np.stack([x[:, 0] + 0.5, x[:, 2] + 0.5, 0 * x[:, 0]], axis=1)


@pytest.mark.parametrize("suffix", ["png", "jpg"])
@pytest.mark.parametrize("points", [None, 3000])
def test_a_picture_is_seen_at_vertices_and_between_them(tmp_path, suffix, points):
    """Within a pixel and a half of 256, and what JPEG does to a ramp."""
    ramp(tmp_path / f"my ramp.{suffix}")
    cloud = load(textured_square(tmp_path, f"map_Kd -s 1 1 1 my ramp.{suffix}"), points=points)
    within = np.abs(cloud.positions[:, [0, 2]]).max(axis=1) < 0.495
    assert within.sum() > (5 if points is None else 2500)
    assert np.abs(cloud.colors - expected(cloud.positions))[within].max() < (0.008 if suffix == "png" else 0.03)
    assert cloud.reading.missing == ()


def test_detail_between_vertices_is_not_smeared(tmp_path):
    """Stripes narrower than the faces: added points are black or white, though all vertices are white."""
    stripes = np.where(np.arange(256)[None, :] % 64 < 32, 255, 0) * np.ones((8, 1))
    Image.fromarray(np.repeat(stripes[:, :, None], 3, axis=2).astype(np.uint8)).save(tmp_path / "stripes.png")
    cloud = load(textured_square(tmp_path, "map_Kd stripes.png"), points=4000)
    added = cloud.colors[(CELLS + 1) ** 2 :, 0]
    assert 0.4 < (added > 0.9).mean() < 0.6
    assert ((added > 0.1) & (added < 0.9)).mean() < 0.1


def test_a_missing_picture_is_told_and_its_colour_taken(tmp_path):
    cloud = load(textured_square(tmp_path, "Kd 0.2 0.4 0.6\nmap_Kd nowhere.png"))
    (sentence,) = cloud.reading.missing
    assert "nowhere.png" in sentence
    np.testing.assert_allclose(cloud.colors, np.tile([0.2, 0.4, 0.6], (len(cloud), 1)), atol=1 / 255)


def test_a_broken_picture_or_a_missing_library_is_no_crash(tmp_path):
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    cloud = load(textured_square(tmp_path, "map_Kd broken.png"))
    assert "broken.png" in cloud.reading.missing[0] and cloud.colors is None
    cloud = load(textured_square(tmp_path, "", library="other.mtl"))
    assert "other.mtl" in cloud.reading.missing[0] and cloud.colors is None


def test_one_grey_for_all_is_no_colour(tmp_path):
    assert load(textured_square(tmp_path, "Kd 0.8 0.8 0.8")).colors is None


def test_colours_of_several_materials_meet_in_a_line(tmp_path):
    vertices, faces = square(1.0, cells=CELLS)
    left = vertices[faces].mean(axis=1)[:, 0] < 0
    lines = ["mtllib two.mtl", *(f"v {x} {y} {z}" for x, y, z in vertices)]
    for name, which in (("red", left), ("blue one", ~left)):
        lines += [f"usemtl {name}", *(f"f {a} {b} {c}" for a, b, c in faces[which] + 1)]
    (tmp_path / "two.mtl").write_text("newmtl red\nKd 1 0 0\nnewmtl blue one\nKd 0 0 1\n")
    (tmp_path / "two.obj").write_text("\n".join(lines))
    cloud = load(tmp_path / "two.obj", points=2000)
    added, x = cloud.colors[len(vertices) :], cloud.positions[len(vertices) :, 0]
    np.testing.assert_array_equal(added[x < 0], np.tile([1, 0, 0], ((x < 0).sum(), 1)))
    np.testing.assert_array_equal(added[x > 0], np.tile([0, 0, 1], ((x > 0).sum(), 1)))


@pytest.mark.parametrize("there", [True, False])
def test_a_ply_file_names_its_picture(tmp_path, there):
    if there:
        ramp(tmp_path / "ramp.png")
    vertices, faces = square(1.0, cells=CELLS)
    head = ["ply", "format ascii 1.0", "comment TextureFile ramp.png", f"element vertex {len(vertices)}"]
    head += [f"property float {axis}" for axis in "xyz"] + ["property float s", "property float t"]
    head += [f"element face {len(faces)}", "property list uchar int vertex_indices", "end_header"]
    rows = [f"{x} {y} {z} {x + 0.5} {z + 0.5}" for x, y, z in vertices]
    (tmp_path / "sheet.ply").write_text("\n".join([*head, *rows, *(f"3 {a} {b} {c}" for a, b, c in faces), ""]))
    cloud = load(tmp_path / "sheet.ply", points=1000)
    if not there:
        assert "ramp.png" in cloud.reading.missing[0] and cloud.colors is None
        return
    within = np.abs(cloud.positions[:, [0, 2]]).max(axis=1) < 0.495
    assert np.abs(cloud.colors - expected(cloud.positions))[within].max() < 0.008


def test_pictures_repeat_and_count_from_below():
    picture = np.zeros((2, 4, 3), np.uint8)
    picture[0, 1], picture[1, 3] = (255, 0, 0), (0, 255, 0)
    uv = np.array([[0.375, 0.75], [0.875, 0.25], [2.375, -3.25], [-0.125, 5.25], [0.25, 0.75]])
    np.testing.assert_allclose(
        colors_at(picture, uv), [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 1, 0], [0.5, 0, 0]], atol=1e-12
    )


def test_what_comes_without_colours_has_those_of_its_look():
    """Each look its own, and none of them is grey."""
    shown = {}
    for look in ("gummy", "wax", "clay", "stone", "matte"):
        plain = px.PointCloud(load("box", points=400).positions)
        assert plain.colors is None
        body = px.Body(plain, nodes=30, look=look)
        world = px.World()
        world.add(body)
        colors = body.surface.colors
        assert np.ptp(colors, axis=0).max() == 0
        shown[look] = tuple(colors[0])
    assert len(set(shown.values())) == 5
    assert shown["gummy"][0] > 2 * shown["gummy"][1]
