"""What must be seen in the gallery's scenes in which bodies of all kinds meet, at reduced size."""

import numpy as np
import pytest

import phyxel as px
from tests.worlds import energy


def scene_world(name: str, points: int, nodes: int) -> px.World:
    return px.gallery(name).changed(points=points, nodes=nodes).world("cpu")


def named(world: px.World, name: str) -> px.Body:
    return next(body for body in world.bodies if body.name == name)


def along_edges(sheet: px.Body) -> np.ndarray:
    """Places of the triangles' edges of a particle surface, their ends among them, shape (k, 3)."""
    assert sheet.sheet is not None and sheet.sheet.faces is not None
    x, faces = sheet.positions, sheet.sheet.faces
    share = np.linspace(0, 1, 9)[:, None, None]
    ends = [(x[faces[:, k]], x[faces[:, (k + 1) % 3]]) for k in range(3)]
    return np.concatenate([((1 - share) * a + share * b).reshape(-1, 3) for a, b in ends])


@pytest.mark.slow
def test_the_blanket_lies_over_the_bear_and_its_ball():
    """No edge of it gets into the ball by more than a quarter of the ball's spacing, as finely as it is met, in any
    frame; it comes to lie, on top of the bear, which it does not press into the ground."""
    world = scene_world("blanket", 81, 60)
    bear, ball, blanket = (named(world, name) for name in ("bear", "ball", "blanket"))
    for _ in range(36):
        world.advance(1 / 60)
        away = np.linalg.norm(along_edges(blanket) - ball.positions.mean(axis=0), axis=1)
        assert away.min() > 0.09 - 0.25 * ball.unit
    assert np.abs(blanket.velocities).mean() < 0.1
    over = np.linalg.norm(blanket.positions[:, [0, 2]] - bear.positions.mean(axis=0)[[0, 2]], axis=1) < 0.1
    assert blanket.positions[over, 1].min() > bear.positions[:, 1].max() - 0.1
    assert bear.positions[:, 1].min() > -0.5 * bear.unit


@pytest.mark.slow
def test_the_bear_jumps_on_the_trampoline():
    """It is thrown back up with more than a third of the speed it came with, is never below the sheet by more than half
    a spacing, and all energy together only gets less (1e-3 of it: a modal body's step is exact for its modes alone)."""
    world = scene_world("trampoline", 81, 60)
    bear, sheet = named(world, "bear"), named(world, "sheet")

    most, speeds = energy(world), []
    for _ in range(36):
        world.advance(1 / 60)
        assert bear.positions[:, 1].min() > sheet.positions[:, 1].min() - 0.5 * bear.unit
        now = energy(world)
        assert now < most * (1 + 1e-3)
        most = min(most, now)
        speeds.append(bear.velocities.mean(axis=0)[1])
    assert max(speeds) > -min(speeds) / 3


@pytest.mark.slow
def test_honey_runs_over_the_cloth_into_the_cup():
    """All of it: after 1.2 s every phyxel is within the rim of the cup, none is in its wall by more than half of that,
    and the cloth, which bore it, is empty and at rest again."""
    world = scene_world("pour", 100, 80)
    honey, cloth, cup = (named(world, name) for name in ("honey", "cloth", "cup"))
    lowest = 0.0
    for _ in range(72):
        world.advance(1 / 60)
        lowest = min(lowest, cloth.velocities[:, 1].min())
    away = honey.positions - cup.positions.mean(axis=0)
    assert lowest < -0.1, "the cloth was pressed down"
    assert np.linalg.norm(away[:, [0, 2]], axis=1).max() < 0.28
    assert honey.positions[:, 1].min() > 0.034 * 0.5, "the cup's wall is 34 mm thick"
    assert np.linalg.norm(cloth.velocities, axis=1).max() < 0.1


def first_bodies(name: str, count: int) -> px.World:
    """A scene of the gallery with so many of its bodies, in front of its only collider."""
    first, *bodies = px.gallery(name).source.split("[[body]]")
    last, collider = bodies[-1].split("[[collider]]")
    text = "[[body]]".join([first, *[*bodies[:-1], last][:count]]) + "\n[[collider]]" + collider
    return px.Scene.parse(text, name=name).changed(points=300, nodes=40).world("cpu")


@pytest.mark.slow
def test_dominoes_of_all_kinds_fall_in_order():
    """The first five, of four kinds: each is past 20° from upright after the one before it."""
    world = first_bodies("dominoes", 5)
    assert {body.model for body in world.bodies} == {"rigid", "modal", "galerkin", "phyxel"}
    fell = [np.inf] * len(world.bodies)
    while world.time < 1.0 and not np.isfinite(fell).all():
        world.advance(1 / 60)
        for k, body in enumerate(world.bodies):
            along = np.linalg.svd(body.positions - body.positions.mean(axis=0), full_matrices=False)[2][0]
            if abs(along[1]) < np.cos(np.radians(20)):
                fell[k] = min(fell[k], world.time)
    assert np.isfinite(fell).all() and fell == sorted(fell) and len(set(fell)) > 3


def test_what_falls_into_the_bowl_stays_in_it():
    """Seven things, of four kinds, that meet at its bottom: no node is outside the bowl, and they are slower than they
    fell."""
    world = first_bodies("bowl", 7)
    assert len({body.model for body in world.bodies}) > 2
    radius = 0.65
    world.advance(0.4)
    for body in world.bodies:
        away = np.linalg.norm(body.positions - (0, radius, 0), axis=1)
        assert away.max() < radius + 0.01 * body.unit, body.name
    assert np.mean([np.linalg.norm(body.velocities.mean(axis=0)) for body in world.bodies]) < 1.0
