"""Twenty files as they come from scanners, modellers and the net, dropped with nothing said but their names.

Each becomes a solid of the right volume within 2 %, or it is told which part is doubtful; stands upright on the ground
below it, is in every picture, and lands.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from phyxel.cli.drop import bare
from phyxel.errors import told_to
from phyxel.render.stage import far_from
from phyxel.run.stage import world_camera
from tests.points.test_gltf import FLOAT, UINT, Writer, one_mesh
from tests.solid.meshes import MeshArrays, ball_mesh, box_mesh, opened, pricked, together, turned

Z_UP = np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]])
"""takes what stands along y to what stands along z"""


def egg(tall: float = 0.5, rings: int = 24) -> MeshArrays:
    """Half as wide as tall, and a little flat."""
    x, faces = ball_mesh(1.0, rings=rings)
    return tall * x * (0.25, 0.5, 0.2), faces


def volume_of(mesh: MeshArrays) -> float:
    a, b, c = (mesh[0][mesh[1][:, k]] for k in range(3))
    return abs(float((a * np.cross(b, c)).sum() / 6))


def obj(path: Path, mesh: MeshArrays, comment: str = "") -> None:
    lines = [comment] if comment else []
    lines += [f"v {x:.9g} {y:.9g} {z:.9g}" for x, y, z in mesh[0]]
    path.write_text("\n".join(lines + ["f {} {} {}".format(*(face + 1)) for face in mesh[1]]) + "\n")


def ply(path: Path, mesh: MeshArrays, comment: str, colored: bool = False) -> None:
    color = "property uchar red\nproperty uchar green\nproperty uchar blue\n" if colored else ""
    head = f"ply\nformat ascii 1.0\ncomment {comment}\nelement vertex {len(mesh[0])}\nproperty float x\n"
    head += f"property float y\nproperty float z\n{color}element face {len(mesh[1])}\n"
    rows = [f"{x:.9g} {y:.9g} {z:.9g}" + (" 200 80 40" if colored else "") for x, y, z in mesh[0]]
    rows += ["3 {} {} {}".format(*face) for face in mesh[1]]
    path.write_text(head + "property list uchar int vertex_indices\nend_header\n" + "\n".join(rows) + "\n")


def stl(path: Path, mesh: MeshArrays) -> None:
    facets = [" ".join("vertex {:.9g} {:.9g} {:.9g}".format(*x) for x in mesh[0][face]) for face in mesh[1]]
    body = "".join(f"facet normal 0 0 0\nouter loop\n{one}\nendloop\nendfacet\n" for one in facets)
    path.write_text(f"solid egg\n{body}endsolid egg\n")


def textured(path: Path, mesh: MeshArrays) -> None:
    from PIL import Image

    Image.fromarray(np.random.default_rng(0).integers(0, 255, (16, 16, 3), np.uint8)).save(path.with_suffix(".png"))
    path.with_suffix(".mtl").write_text(f"newmtl skin\nmap_Kd {path.stem}.png\n")
    uv = mesh[0][:, :2] - mesh[0][:, :2].min(axis=0)
    lines = [f"mtllib {path.stem}.mtl", "usemtl skin"]
    lines += [f"v {x:.9g} {y:.9g} {z:.9g}" for x, y, z in mesh[0]] + [f"vt {u:.6g} {v:.6g}" for u, v in uv]
    path.write_text("\n".join(lines + ["f {0}/{0} {1}/{1} {2}/{2}".format(*(face + 1)) for face in mesh[1]]) + "\n")


def glb(path: Path, mesh: MeshArrays) -> None:
    writer = Writer()
    attributes = {
        "POSITION": writer.array(mesh[0], FLOAT),
        "COLOR_0": writer.array(np.tile([0.2, 0.5, 0.9], (len(mesh[0]), 1)), FLOAT),
    }
    writer.document |= one_mesh({"attributes": attributes, "indices": writer.array(mesh[1].ravel(), UINT)})
    writer.glb(path)


def points(path: Path, count: int, noise: float = 0.0, hole: float = 2.0) -> None:
    """Of an egg, without normals; above `hole` (over half its height) there are none."""
    rng = np.random.default_rng(3)
    n = rng.normal(size=(count, 3))
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    x = 0.5 * n * (0.25, 0.5, 0.2)
    x += noise * 0.5 * rng.normal(size=x.shape)
    np.savetxt(path, x[n[:, 1] < hole])


BOXES = together(box_mesh((0, 0.2, 0), (0.1, 0.2, 0.1)), box_mesh((0.05, 0.5, 0.02), (0.1, 0.2, 0.1)))
OVERLAP = 0.15 * 0.1 * 0.18
BALLS = together(*(ball_mesh(0.1, (0, y, 0)) for y in (0.1, 0.35, 0.6)))
EGG, SMOOTH = volume_of(egg()), 4 / 3 * np.pi * 0.5**3 * 0.25 * 0.5 * 0.2


@dataclass(frozen=True)
class Difficult:
    """A file, what it is in truth, and words that are told of it."""

    write: Callable[[Path], None]
    suffix: str
    volume: float
    """[m³]"""
    told: str = ""
    lies: bool = False
    """whether it is longer than high, as it is taken"""


def moved(mesh: MeshArrays, scale: float = 1.0, by: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> MeshArrays:
    return mesh[0] * scale + np.array(by), mesh[1]


def z_up(mesh: MeshArrays) -> MeshArrays:
    return mesh[0] @ Z_UP.T, mesh[1]


MODELS = {
    "plain": Difficult(lambda p: obj(p, egg()), ".obj", EGG),
    "z-up-said": Difficult(lambda p: ply(p, z_up(egg()), "up axis: z"), ".ply", EGG),
    "z-up-unsaid": Difficult(lambda p: stl(p, z_up(egg())), ".stl", EGG, told='up="z"', lies=True),
    "cm-said": Difficult(lambda p: ply(p, moved(egg(), 100), "units cm"), ".ply", EGG),
    "mm-said": Difficult(lambda p: obj(p, moved(egg(), 1000), "# units: mm"), ".obj", EGG),
    "mm-unsaid": Difficult(lambda p: obj(p, moved(egg(), 1000)), ".obj", 1e9 * EGG, told='units="mm"'),
    "gltf-coloured": Difficult(lambda p: glb(p, egg()), ".glb", EGG),
    "open": Difficult(lambda p: obj(p, opened(egg(), lambda x: x[:, 1] < -0.245)), ".obj", EGG),
    "pricked": Difficult(lambda p: obj(p, pricked(egg(), 30)), ".obj", EGG),
    "parts-apart": Difficult(lambda p: obj(p, BALLS), ".obj", volume_of(BALLS)),
    "parts-overlap": Difficult(lambda p: obj(p, BOXES), ".obj", volume_of(BOXES) - OVERLAP),
    "inside-out": Difficult(lambda p: obj(p, turned(egg())), ".obj", EGG),
    "soup": Difficult(lambda p: stl(p, egg()), ".stl", EGG),
    "tiny": Difficult(lambda p: obj(p, egg(0.004)), ".obj", EGG * 0.008**3, told="units="),
    "huge": Difficult(lambda p: obj(p, egg(60.0)), ".obj", EGG * 120**3, told="units="),
    "far": Difficult(lambda p: obj(p, moved(egg(), 1, (3e3, -40, 1e4))), ".obj", EGG),
    "thin": Difficult(lambda p: obj(p, box_mesh((0, 0.3, 0), (0.2, 0.3, 0.02), 6)), ".obj", 0.4 * 0.6 * 0.04),
    "coloured": Difficult(lambda p: ply(p, egg(), "made by hand", colored=True), ".ply", EGG),
    "textured": Difficult(lambda p: textured(p, egg()), ".obj", EGG),
    "bare-points": Difficult(lambda p: points(p, 3000), ".xyz", SMOOTH),
    "noisy-with-a-hole": Difficult(lambda p: points(p, 6000, 0.003, 0.9), ".xyz", SMOOTH),
    "cavity": Difficult(
        lambda p: obj(p, together(egg(), turned(egg(0.2)))), ".obj", EGG - volume_of(egg(0.2)), told="cavit"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_difficult_model_drops(name, tmp_path):
    model, told = MODELS[name], []
    path = tmp_path / f"{name}{model.suffix}"
    model.write(path)
    with told_to(told.append):
        scene = bare(str(path), None, None).dropped(nodes=120)
        world = scene.world("cpu")
        body = world.bodies[0]
        camera = world_camera(world, scene.content.camera, scene.content.output)
    said = "\n".join(told)
    assert model.told in said
    assert body.volumes.sum() == pytest.approx(model.volume, rel=0.02) or "doubt" in said
    size = np.ptp(body.surface.positions, axis=0)
    assert (size.argmax() == 1) != model.lies
    start = body.surface.positions
    assert start[:, 1].min() > 0 and np.abs(np.median(start[:, [0, 2]], axis=0)).max() < 0.2 * size.max()
    lowest = []
    for _ in range(10):  # half of the way: it has landed, and begun to topple if it does
        world.advance(scene.seconds / 20)
        assert not far_from(camera, world)
        assert camera_sees(camera, body.surface.positions) > 0.3, "a plate may fall towards the camera"
        lowest.append(body.surface.positions[:, 1].min() / size.max())
    assert -0.03 < min(lowest) < 0.03, "it lands"


def camera_sees(camera, positions: np.ndarray) -> float:
    """Share of places that are in the picture."""
    right, up, forward = camera.axes @ (positions - np.asarray(camera.eye)).T
    across, along = (0.5 * side * forward / camera.focal for side in (camera.width, camera.height))
    return float(((forward > 0) & (np.abs(right) < across) & (np.abs(up) < along)).mean())
