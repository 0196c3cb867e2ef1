"""What happens to a scene that is being played."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from phyxel.errors import PhyxelError
from phyxel.scene import Scene
from phyxel.scene.event_tables import EventPart
from phyxel.scene.performance import Performance
from phyxel.world import World

BAR = """
title = "a bar that is held"
rate = 120

[[body]]
name = "bar"
shape = "bar"
model = "{model}"
nodes = {nodes}
points = 2000
size = 0.4
at = [0.5, 0.5, 0]
place = "center"
material = {{ young = 2e5, damping = 1e-3 }}

[[body.hold]]
name = "wall"
upper = [0.36, 9, 9]
"""
GROUND = '[[collider]]\nkind = "ground"\n'
CLOTH = """
rate = 120
[[body]]
name = "bar"
shape = "cloth"
model = "particles"
points = 200
size = 0.4
at = [0, 0.5, 0]
material = { drag = 0.0 }
[[body.hold]]
name = "wall"
upper = [-0.1, 9, 9]
"""


def performed(model: str, more: str = "", nodes: int = 60) -> Performance:
    text = CLOTH if model == "particles" else BAR.format(model=model, nodes=nodes)
    return Scene.parse(text + more).performance()


def everything(world: World) -> list[np.ndarray]:
    return [part for body in world.bodies for part in (body.positions, body.velocities)]


def same(one: World, other: World) -> bool:
    pairs = zip(everything(one), everything(other), strict=True)
    return one.time == other.time and all(np.array_equal(mine, yours) for mine, yours in pairs)


@pytest.mark.parametrize("model", ["phyxel", "modal"])
def test_however_time_is_cut_up_at_ticks_a_world_goes_the_same_way(model: str, tmp_path: Path) -> None:
    """Times of ticks are the doubles nearest to n/rate, so that those of frames coincide with them to the bit."""
    change = "[[event]]\nat = 0.05\nrate = 360\n[[event]]\nat = 0.1\nmaterial = { young = 1e5 }\nover = 0.03\n"
    ticked, framed, at_once, resumed = (performed(model, change).world for _ in range(4))
    times = []
    while ticked.time < 0.15:
        ticked.tick()
        times.append(ticked.time)
        _ = ticked.bodies[0].surface, ticked.bodies[0].diagnostics()
    assert times == [*(n / 120 for n in range(1, 7)), *(n / 360 for n in range(19, 55))]
    for index in range(10):
        framed.advance(index / 60 - framed.time)
        if index == 7:
            framed.save(tmp_path / "state.npz")
    at_once.advance(0.15)
    resumed.restore(tmp_path / "state.npz")
    resumed.advance(0.15 - resumed.time)
    assert all(same(ticked, other) for other in (framed, at_once, resumed))


@pytest.mark.parametrize("model", ["phyxel", "galerkin", "modal", "particles"])
def test_what_is_lifted_is_elsewhere_as_it_is_and_falls_from_rest(model: str) -> None:
    """Its middle falls by ½gt², of phyxels to the single precision that they have. In the ground it is put on it."""
    performance = performed(model, GROUND)
    world, body = performance.world, performance.world.bodies[0]
    for _ in range(12):
        world.tick()
    before = body.positions
    assert np.abs(body.velocities).max() > 0.05 and performance.handles
    performance.happen(EventPart(at=0, body="bar", lift=(0.1, 0.3, -0.2)))
    np.testing.assert_allclose(body.positions, before + np.array((0.1, 0.3, -0.2)), rtol=0, atol=1e-7 * body.unit)
    assert not body.velocities.any() and not body.handles and not performance.handles
    lifted = body.diagnostics()
    time = 12 / 120
    while world.time < 2 * time:
        world.tick()
    fallen = (lifted["potential"] - body.diagnostics()["potential"]) / (9.81 * lifted["mass"])
    assert fallen == pytest.approx(0.5 * 9.81 * time**2, rel=1e-6)
    performance.happen(EventPart(at=0, body="bar", lift=(0, -5, 0)))
    world.tick()
    assert body.positions[:, 1].min() > -1e-3 * body.unit


CUT = """
[[event]]
at = 0.05
cut = { at = [0.5, 0.5, 0], normal = [1, 0, 0] }
[[event]]
at = 0.1
body = "bar-2"
force = [0, 3, 0]
gravity = [0, 0, 0]
[[event]]
at = 0.15
body = "bar-2"
lift = [0, 0, 1]
hold = { name = "hand", to = [0, 0.1, 0], over = 0.1 }
[[event]]
at = 0.2
body = "bar-2"
release = "hand"
"""
"""A bar that is cut in two, and of which a piece is pushed and put elsewhere."""


@pytest.mark.parametrize("model", ["phyxel", "galerkin"])
def test_things_happen_to_pieces(model: str, tmp_path: Path) -> None:
    """The piece goes where it is told to, after a checkpoint, too."""
    world = performed(model, CUT, nodes=30).world
    for checkpoint, time in {"before": 0.125, "after": 0.175, "end": 0.225}.items():
        world.advance(time - world.time)
        world.save(tmp_path / checkpoint)
    assert [body.name for body in world.bodies] == ["bar", "bar-2"]
    _, piece = world.bodies
    assert piece.positions[:, 2].mean() == pytest.approx(1.0, abs=0.05) and not piece.handles
    for checkpoint in ("before", "after"):
        resumed = performed(model, CUT, nodes=30).world
        resumed.restore(tmp_path / checkpoint)
        resumed.advance(world.time - resumed.time)
        assert same(world, resumed)


@pytest.mark.parametrize("model", ["phyxel", "galerkin"])
def test_what_loses_its_strength_while_it_hangs_cracks(model: str) -> None:
    """Bending by its weight pulls at its upper side with about 3 ρ g l²/h = 4 kPa beside the wall."""
    performance = performed(model)
    world, body = performance.world, performance.world.bodies[0]
    world.advance(0.1)
    assert not body.has_cracked
    performance.happen(EventPart(at=0, material={"strength": 1e3}))
    while not body.has_cracked and world.time < 0.2:
        world.tick()
    assert body.has_cracked


WRONG = {
    'body = "bar-2"\nforce = [1, 0, 0]': "never falls apart",
    'body = "bear-2"\nforce = [1, 0, 0]': "no such body",
    'body = "bar-02"\nforce = [1, 0, 0]': "no such body",
    "cut = { at = [0.5, 0.5, 0], normal = [0, 0, 0] }": "give a direction",
    "melt = {}\ncut = { at = [0.5, 0.5, 0], normal = [1, 0, 0] }": "has melted",
    "gravity = [0, nan, 0]": "gravity",
    "lift = [0, inf, 0]": "lift",
    "rate = 0": "rate",
    'field = { kind = "push", name = "hand", force = [1, 0, 0], bodies = ["bat"] }': "bat",
    'remove = "hand"': "hand",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_cannot_happen_is_refused_and_changes_nothing(wrong: str) -> None:
    """Before a run begins; and while it runs, with all else that the event would do."""
    with pytest.raises(PhyxelError, match=WRONG[wrong]):
        performed("phyxel", f"[[event]]\nat = 0.5\n{wrong}\n")
    if "rate" in wrong:
        return
    performance = performed("phyxel")
    told = EventPart(at=0, **(tomllib.loads(wrong) | {"material": {"young": 1e6}, "rate": 60}))
    with pytest.raises(PhyxelError):
        performance.happen(told)
    body, world = performance.world.bodies[0], performance.world
    assert (body.material.young, body.has_melted, body.fracture, world.rate) == (2e5, False, None, 120)
    assert world.gravity.tolist() == [0, -9.81, 0] and not world.fields
