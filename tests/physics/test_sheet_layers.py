"""Surfaces in layers and folds (physics 15.16): nothing crosses, as an independent library sees it, and layers rub as
Coulomb says."""

from pathlib import Path

import ipctk
import numpy as np
import pytest

import phyxel as px
from phyxel.body import Body
from tests.meeting.crossing import crossings_between

THICK, FRICTION, GRAVITY = 5e-4, 0.3, 9.81
SLOW = pytest.mark.slow


def middle(body: Body) -> tuple[np.ndarray, np.ndarray]:
    """Centre of mass [m] and its velocity [m/s]."""
    return tuple(body.masses @ values / body.masses.sum() for values in (body.positions, body.velocities))


def crosses(x: np.ndarray, faces: np.ndarray) -> bool:
    """Whether a surface crosses itself (IPC Toolkit)."""
    mesh = ipctk.CollisionMesh(np.asfortranarray(x), ipctk.edges(faces), faces)
    return bool(ipctk.has_intersections(mesh, np.asfortranarray(x)))


@pytest.mark.parametrize(
    ("points", "turn"),
    [((144, 49, 25), 0), pytest.param((196, 36, 16), 66, marks=SLOW), pytest.param((144, 64, 25), 28, marks=SLOW)],
)  # fmt: skip
def test_the_middle_one_of_three_layers_is_pulled(points: tuple[int, int, int], turn: float) -> None:
    """Three cloths of 0.4, 0.2 and 0.13 m lie on each other, the upper three times as heavy: each is where the
    thicknesses h below it say, within 20 % of the pile. The middle one is pulled a tenth of a metre, three spacings,
    across the lower one, which sticks to the ground. What holds it back is μ (2 m_upper + m) g of both that it slides
    on, and the upper one gains μ g, within 5 % each in the mean over that way: rows of particles that pass each other
    ride up and fall, and in between it is more or less. Nothing crosses."""
    cotton = px.Membrane.cotton().but(thickness=THICK, drag=0.0)
    layers = [
        px.Body(
            px.load("cloth", points=count), model="particles", size=size, friction=FRICTION, place="center",
            material=cotton.but(density=weight * cotton.density), name=f"layer {k}",
            rotate=(0, turn if k == 1 else 0, 0), at=(x, (k + 0.55) * THICK + 1e-5, z),
        )
        for k, (count, size, weight, x, z) in enumerate(
            zip(points, (0.4, 0.2, 0.13), (1, 1, 3), (0.0, -0.098, -0.101), (0.0, 0.023, 0.021), strict=True)
        )
    ]  # fmt: skip
    world = px.World(gravity=(0, -GRAVITY, 0))
    for thing in (px.Ground(friction=2.0), *layers):
        world.add(thing)
    starts = np.cumsum([0, *points])
    faces = np.concatenate([one.sheet.faces + start for one, start in zip(layers, starts, strict=False)])

    def look() -> None:
        assert not crosses(np.concatenate([one.positions for one in layers]), faces)

    for _ in range(6):
        world.advance(1 / 40)
        look()
    for k, one in enumerate(layers):
        assert abs(one.positions[:, 1].mean() - (k + 0.5) * THICK) < 0.2 * 3 * THICK
    _, m, upper = (one.masses.sum() for one in layers)
    rubs = FRICTION * GRAVITY * (2 * upper + m)
    layers[1].force = (rubs + 3 * FRICTION * GRAVITY * m, 0, 0)
    before = [middle(one)[1] for one in layers]
    start, begun = middle(layers[1])[0], world.time
    while middle(layers[1])[0][0] < start[0] + 0.1:
        world.advance(1 / 120)
        look()
    gained = [(middle(one)[1] - v)[0] / (world.time - begun) for one, v in zip(layers, before, strict=True)]
    assert layers[1].force[0] - m * gained[1] == pytest.approx(rubs, rel=0.05)
    assert gained[2] == pytest.approx(FRICTION * GRAVITY, rel=0.05)
    assert abs(gained[0]) < 1e-2 * gained[2]


def inside(body: Body, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The mesh of a body drawn in by a quarter of a node spacing, which it is felt within."""
    px.export.mesh(body, path)
    rows = [line.split() for line in path.read_text().splitlines()]
    x = np.array([row[1:4] for row in rows if row[:1] == ["v"]], float)
    faces = np.array([[int(corner.split("/")[0]) - 1 for corner in row[1:4]] for row in rows if row[:1] == ["f"]])
    normals, across = np.zeros_like(x), np.cross(x[faces[:, 1]] - x[faces[:, 0]], x[faces[:, 2]] - x[faces[:, 0]])
    for corner in faces.T:
        np.add.at(normals, corner, across)
    return x - 0.25 * body.unit * normals / np.linalg.norm(normals, axis=1)[:, None], faces


@SLOW
@pytest.mark.parametrize("model", ["rigid", "modal", "phyxel"])
def test_a_cloth_that_falls_over_a_bear_crosses_neither_it_nor_itself(model: str, tmp_path: Path) -> None:
    """In no frame, while it drapes and folds; and it is caught: it stays on the head, however soft that is."""
    soft = {} if model == "rigid" else {"material": px.Material.gelatin()}
    bear = px.Body(px.load("bear", points=3000), model=model, nodes=200, at=(0, 0, 0), **soft)
    sheet = px.load("cloth", points=196)
    cloth = px.Body(sheet, model="particles", at=(0.02, 1.02, 0.03), place="center", meets_itself=True, name="cloth")
    world = px.World()
    for thing in (px.Ground(), bear, cloth):
        world.add(thing)
    X, faces = inside(bear, tmp_path / "bear.obj")
    for _ in range(16):
        world.advance(1 / 30)
        assert not crosses(cloth.positions, cloth.sheet.faces)
        assert crossings_between(cloth.positions, cloth.sheet.faces, X + bear.displacement_at(X), faces) == 0
    assert cloth.positions[:, 1].max() > 0.95 * bear.surface.positions[:, 1].max()


@SLOW
@pytest.mark.parametrize(("model", "preset"), [("rigid", "cotton"), ("modal", "latex"), ("phyxel", "latex")])
def test_a_cloth_over_a_bear_comes_to_rest(model: str, preset: str) -> None:
    """It has fallen and folded after a second, and nothing moves by more than 1 mm/s after four. Its hem swings freely,
    which a drag of 8/s takes down by e^(−4 t), to 6e-6 of 2 m/s in three seconds, 0.01 mm/s: the rest would be what
    touches do. So would be how far it creeps, in half a second more. (A flap that all but balances goes on for longer:
    drag holds it back. Such a one hangs from latex on the rigid bear.)"""
    soft = {} if model == "rigid" else {"material": px.Material.rubber().but(drag=8.0)}
    bear = px.Body(px.load("bear", points=3000), model=model, nodes=200, at=(0, 0, 0), **soft)
    membrane = px.Membrane.preset(preset).but(drag=8.0)
    sheet, place = px.load("cloth", points=324), {"at": (0, 0.8, 0), "place": "center"}
    cloth = px.Body(sheet, model="particles", material=membrane, meets_itself=True, name="cloth", **place)
    world = px.World()
    for thing in (px.Ground(), bear, cloth):
        world.add(thing)
    world.advance(4.0)
    assert np.linalg.norm(cloth.velocities, axis=1).max() < 1e-3
    before = cloth.positions
    world.advance(0.5)
    assert np.linalg.norm(cloth.positions - before, axis=1).max() < 0.5e-3
