"""Surfaces that meet solids, each other and themselves (physics 15.16): nothing passes, momentum is kept, energy is
not made."""

import numpy as np
import pytest

import phyxel as px
from phyxel.body import Body
from tests.meeting.crossing import crossings
from tests.worlds import energy, weightless

THICK = 5e-4
COTTON = px.Membrane.cotton().but(thickness=THICK, drag=0.0)
SIDE = 0.1


def cloth(points: int, **options: object) -> Body:
    return px.Body(px.load("cloth", points=points), model="particles", material=COTTON, size=0.5, **options)


def momentum(body: Body) -> np.ndarray:
    model = body.world.mover_of(body).model_of(body) if body.model != "phyxel" else None
    return (body.masses[:, None] * body.velocities).sum(axis=0) if model is None else model.momenta()[0]


@pytest.mark.parametrize(
    ("model", "options", "rounding"),
    [
        ("rigid", {}, 1e-12),
        ("modal", {"nodes": 60}, 1e-12),
        ("galerkin", {"nodes": 60}, 1e-12),
        ("phyxel", {"nodes": 60, "integrator": "leapfrog"}, 1e-6),
        ("phyxel", {"nodes": 60, "integrator": "implicit"}, 1e-6),
    ],
)
def test_a_cloth_thrown_at_a_ball(model: str, options: dict, rounding: float) -> None:
    """At 2 m/s, without gravity: ΣP stays what it was, to the rounding of what moves the ball; energy is lost only;
    no particle gets into the ball by more than half the thickness below where it should stay."""
    sheet = cloth(100, at=(0.02, 0.203, 0.01), velocity=(0, -2, 0))
    ball = px.Body(px.load("sphere"), model=model, size=0.2, at=(0, 0, 0), **options)
    world = weightless(sheet, ball)
    before, least = momentum(sheet) + momentum(ball), energy(world)
    middle = ball.positions.mean(axis=0)
    for _ in range(12):
        world.advance(1 / 240)
        now = energy(world)
        assert now <= least * (1 + 1e-4)
        least = min(now, least)
        away = np.linalg.norm(sheet.positions - middle - (ball.positions.mean(axis=0) - middle), axis=1)
        assert away.min() >= 0.1 - 0.5 * THICK
    np.testing.assert_allclose(momentum(sheet) + momentum(ball), before, atol=rounding * np.abs(before).max())
    assert momentum(ball)[1] < 0.02 * before[1]  # it was met


def test_a_cloth_folded_on_itself_does_not_cross() -> None:
    """One half is thrown over the other at 2 m/s: no edge goes through a triangle, by looking at all pairs."""
    sheet = cloth(144, meets_itself=True)
    world = weightless(sheet)
    x = sheet.positions[:, 0]
    sheet.fix(np.flatnonzero(x < -0.2))
    hand = sheet.drag(np.flatnonzero(x > 0.2), [(0.1, (-0.1, 0.25, 0)), (0.2, (-0.4, 0.02, 0))])
    assert hand is not None
    for _ in range(15):
        world.advance(1 / 60)
        assert crossings(sheet.positions, sheet.sheet.faces) == 0


def test_two_cloths_keep_their_momentum() -> None:
    """One falls on the other at 2 m/s: ΣP is kept to rounding and nothing crosses."""
    low, high = cloth(64, at=(0, 0, 0)), cloth(81, at=(0.05, 0.01, 0.03), velocity=(0, -2, 0), name="high")
    world = weightless(low, high)
    before, least = momentum(low) + momentum(high), energy(world)
    for _ in range(10):
        world.advance(1 / 240)
        x = np.concatenate([low.positions, high.positions])
        faces = np.concatenate([low.sheet.faces, high.sheet.faces + len(low.positions)])
        assert crossings(x, faces) == 0
        now = energy(world)
        assert now <= least * (1 + 1e-4)
        least = min(now, least)
    np.testing.assert_allclose(momentum(low) + momentum(high), before, atol=1e-12 * np.abs(before).max())
    assert momentum(low)[1] < 0


def corners(box: Body, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Of a rigid box made smaller by a share, and its triangles."""
    rest, now = (x - x.mean(axis=0) for x in (box.birth, box.positions))
    left, _, right = np.linalg.svd(now.T @ rest)
    turn = left @ np.diag([1, 1, np.linalg.det(left @ right)]) @ right
    at = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)]) * 0.5 * SIDE * share
    sides = [[0, 1, 3, 2], [4, 5, 7, 6], [0, 1, 5, 4], [2, 3, 7, 6], [0, 2, 6, 4], [1, 3, 7, 5]]
    faces = [[a, *pair] for a, b, c, d in sides for pair in ((b, c), (c, d))]
    return box.positions.mean(axis=0) + at @ turn.T, np.array(faces)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_no_box_gets_through_a_cloth_at_20_m_per_s(seed: int) -> None:
    """A box is thrown at a cloth of 0.5 mm that is held at two sides: what is 20 % smaller than it crosses no triangle
    in any frame, corners being felt to a quarter of a spacing (5 mm of 10 cm at each side); and energy is only lost."""
    random = np.random.default_rng(seed)
    sheet = cloth(100)
    world = weightless(sheet)
    sheet.fix(np.flatnonzero(np.abs(sheet.positions[:, 0]) > 0.249))
    way = random.normal(size=3)
    way[1] = np.copysign(max(abs(way[1]), 0.7 * np.linalg.norm(way)), way[1])
    way /= np.linalg.norm(way)
    start = sheet.positions.mean(axis=0) - 0.13 * way - (0, 0.5 * SIDE, 0)
    box = px.Body(px.load("box"), model="rigid", size=SIDE, at=tuple(start), velocity=tuple(20 * way))
    world.add(box)
    most = energy(world)
    for _ in range(7):
        world.advance(1 / 240)
        x, faces = corners(box, 0.8)
        both = np.concatenate([sheet.positions, x])
        assert crossings(both, np.concatenate([sheet.sheet.faces, faces + len(sheet.positions)])) == 0
        now = energy(world)
        assert now <= most * (1 + 1e-4)
        most = now
    assert box.velocities.mean(axis=0) @ way < 15


@pytest.mark.slow
@pytest.mark.parametrize(("points", "turn"), [(64, 20), (100, 0)])
def test_a_trampoline_bears_a_box(points: int, turn: float) -> None:
    """A rigid box lies on a cloth that is held at its rim: it comes to rest, and what the cloth gives it in a tenth of
    a second is m g t within 1 %, as its velocity changes by no more than that share of g t. It falls at half a metre a
    second, and swings; its drag of 8/s leaves e^(−8) of that after 2 s. At rest it does not tremble, turned or with its
    edges along the threads: 1 mm/s, a tenth of that share."""
    sheet, world = cloth(points), px.World()
    world.add(sheet)
    rim = np.abs(sheet.positions[:, [0, 2]]).max(axis=1) > 0.249
    sheet.fix(np.flatnonzero(rim))
    rubber, place = px.Material.rubber().but(drag=8.0), (0.01, THICK, 0.013)
    box = px.Body(px.load("box"), model="rigid", size=SIDE, at=place, rotate=(0, turn, 0), material=rubber)
    world.add(box)
    world.advance(2.0)
    before = box.positions.mean(axis=0)[1], box.velocities.mean(axis=0)[1]
    world.advance(0.1)
    assert abs(box.velocities.mean(axis=0)[1] - before[1]) < 0.01 * 9.81 * 0.1
    assert abs(box.positions.mean(axis=0)[1] - before[0]) < 1e-3
    assert np.abs(box.velocities).max() < 1e-3
    assert box.positions[:, 1].min() > sheet.positions[:, 1].min() - 0.5 * box.unit
