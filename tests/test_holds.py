"""Holds on picked surfels, and drags along paths."""

import hashlib
from functools import cache

import numpy as np
import pytest

import phyxel as px

SOFT = px.Material(young=1e5, poisson=0.3, density=1000.0, damping=2e-3)
NOWHERE = (0.0, 0.0, 0.0)
SPACING = 0.125
"""of the 64 nodes in the box of 0.5 m [m]"""
INTEGRATORS = ["leapfrog", "implicit"]


@cache
def solid() -> px.Solid:
    return px.Solid(px.load("box", points=2000))


@pytest.fixture(autouse=True)
def measured_once(monkeypatch):
    """The volume of a solid takes longer than what is done here with the body."""
    monkeypatch.setattr(
        "phyxel.body.Solid", lambda cloud, **options: solid() if cloud.name == "box" else px.Solid(cloud, **options)
    )


def box(**options) -> px.Body:
    return px.Body(solid().skin, **({"nodes": 64, "material": SOFT, "name": "tom"} | options))


def world_of(*things, gravity=NOWHERE) -> px.World:
    world = px.World(gravity=gravity)
    for thing in things:
        world.add(thing)
    return world


def bits(world: px.World) -> list[str]:
    fields = [world.field(body, name) for body in world.bodies for name in ("u", "v")]
    return [hashlib.sha256(field.tobytes()).hexdigest()[:16] for field in fields]


def everywhere(positions):
    return np.ones(len(positions), bool)


# Where


def test_a_ball_holds_what_is_in_it():
    body = box()
    ball = px.Ball((-0.25, -0.25, -0.25), 1.8 * SPACING)
    inside = np.linalg.norm(body.reference + 0.25, axis=1) <= 1.8 * SPACING
    assert 0 < inside.sum() < 64
    assert np.array_equal(body.fix(ball).nodes, np.flatnonzero(inside))


@pytest.mark.parametrize(
    "centre, radius", [((0, 0), 1.0), ((0, np.nan, 0), 1.0), ((0, 0, 0), 0.0), ((0, 0, 0), np.nan)]
)
def test_a_ball_that_is_none_is_refused(centre, radius):
    with pytest.raises(px.PhyxelError, match="ball"):
        px.Ball(centre, radius)


@pytest.mark.parametrize("surfel", [0, 77, -1, np.int64(5)])
def test_a_picked_surfel_has_the_nodes_around_it(surfel):
    body = box(at=(3, 0, 0), rotate=(0, 30, 0))
    world_of(body)
    away = np.linalg.norm(body.reference - body.surface.positions[surfel], axis=1)
    nodes = body.pick(surfel)
    assert away.argmin() in nodes
    assert set(nodes) == set(np.flatnonzero(away <= 1.5 * SPACING))


def test_a_pick_has_the_radius_asked_for_and_one_node_at_least():
    body = box()
    assert len(body.pick(3, radius=10.0)) == 64
    assert len(body.pick(3, radius=1e-9)) == 1


def test_a_place_picks_the_surfel_nearest_to_it():
    body = box()
    nodes = body.pick((0.3, 0.3, 0.3))
    assert np.abs(body.reference[nodes] - 0.25).max() < 2 * SPACING
    assert np.abs(body.reference[nodes] - 0.25).min() == pytest.approx(SPACING / 2)


def test_a_pick_does_not_reach_across_a_gap():
    """The bear's feet (z > 0.105 m, y < 0.08 m) have 5 cm of air between them: who takes one leaves the other."""
    bear = px.Body(px.load("bear", points=3000), nodes=800)
    x, y, z = bear.cloud.positions.T
    feet = (bear.reference[:, 2] > 0.105) & (bear.reference[:, 1] < 0.08)
    foreign = []
    for surfel in np.flatnonzero((z > 0.115) & (y < 0.06) & (np.abs(x) < 0.05))[:10]:
        near = np.linalg.norm(bear.reference - bear.cloud.positions[surfel], axis=1) < 0.09
        other = feet & (np.sign(bear.reference[:, 0]) != np.sign(x[surfel]))
        foreign.append((near & other).sum())
        assert not other[bear.pick(int(surfel), radius=0.09)].any()
    assert sum(foreign) > 0


@pytest.mark.parametrize(
    "at, radius, word", [(2000, None, "2000"), (-2001, None, "2001"), ((0, 1), None, "pick"), (0, 0.0, "radius")]
)
def test_absurd_picks_are_refused(at, radius, word):
    with pytest.raises(px.PhyxelError, match=word) as caught:
        box().pick(at, radius)
    assert "tom" in str(caught.value)


def test_a_dragged_surfel_goes_where_it_is_dragged():
    """Nodes to rounding; the surfel is carried by more nodes than are held, within a quarter of the way."""
    body = box()
    world = world_of(body)
    surfel = int(body.surface.positions[:, 1].argmax())
    before = body.surface.positions[surfel]
    handle = body.drag(body.pick(surfel), [(0.2, (0, 0.05, 0))])
    world.advance(0.4)
    moved = (body.positions - body.reference)[handle.nodes]
    assert np.abs(moved - [0, 0.05, 0]).max() < 1e-6
    assert np.abs(body.surface.positions[surfel] - before - [0, 0.05, 0]).max() < 0.25 * 0.05


# Along a path


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_drag_is_on_its_path_at_each_time(integrator):
    """Straight from here and now to the first keyframe, between them, and at rest at the last."""
    body = box(integrator=integrator)
    world = world_of(body)
    world.advance(0.1)
    path = [(0.2, (0.1, 0, 0)), (0.3, (0.1, 0, 0)), (0.5, (0, 0.1, -0.1))]
    handle = body.drag(lambda X: X[:, 0] < -0.1, path)
    places = np.array([NOWHERE, *(place for _, place in path), path[-1][1]])
    for _ in range(10):
        world.advance(0.05)
        expected = [np.interp(world.time, (0.1, 0.2, 0.3, 0.5, 9.0), along) for along in places.T]
        assert np.abs((body.positions - body.reference)[handle.nodes] - expected).max() < 2e-6


def test_a_path_may_begin_where_it_is():
    body = box()
    world = world_of(body)
    handle = body.drag([0], [(0.0, NOWHERE), (0.1, NOWHERE), (0.2, (0, 0, 0.1))])
    world.advance(0.1)
    assert np.abs(body.positions - body.reference).max() == 0
    world.advance(0.05)
    assert (body.positions - body.reference)[handle.nodes][0, 2] == pytest.approx(0.05, abs=1e-6)


@pytest.mark.parametrize(
    "path",
    [
        [(0.0, (0.1, 0, 0))],
        [(-1.0, (0.1, 0, 0))],
        [(0.2, (0.1, 0, 0)), (0.1, (0, 0, 0))],
        [(0.2, (0.1, 0))],
        [(np.nan, (0.1, 0, 0))],
        [(0.1, (0, 0, 0), 3)],
    ],
)
def test_absurd_paths_are_refused(path):
    body = box()
    with pytest.raises(px.PhyxelError, match="drag"):
        body.drag([0], path)
    assert body.handles == []


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_what_is_let_go_keeps_the_velocity_it_was_moved_with(integrator):
    """Moved as a whole at 0.5 m/s and let go on the way: nothing is left that could change its velocity."""
    body = box(integrator=integrator)
    world = world_of(body)
    handle = body.drag(everywhere, [(1.0, (0.5, 0, 0))])
    world.advance(0.2)
    assert np.abs(body.velocities - [0.5, 0, 0]).max() < 1e-5
    body.release(handle)
    assert np.abs(body.velocities - [0.5, 0, 0]).max() < 1e-5
    world.advance(0.1)
    assert np.abs(body.velocities - [0.5, 0, 0]).max() < 1e-4
    assert np.abs(body.positions - body.reference - [0.15, 0, 0]).max() < 1e-4


def test_a_run_resumed_within_a_drag_has_the_same_bits(tmp_path):
    """Also one that an event began: it began at the event's time, not at that of the restored world."""

    def dragging() -> px.World:
        body = box()
        world = world_of(body)
        world.at(0.101, lambda w: body.drag([0, 1], (0.02, 0, 0)))
        world.at(0.102, lambda w: body.drag([5], [(0.2, (0, 0.02, 0))]))
        return world

    straight, resumed = dragging(), dragging()
    straight.advance(0.11)
    straight.save(tmp_path / "state.npz")
    resumed.restore(tmp_path / "state.npz")
    for world in (straight, resumed):
        for _ in range(3):
            world.advance(0.05)
    assert bits(resumed) == bits(straight)


# Scene files

BOX = 'gravity = [0, 0, 0]\n[[body]]\nname = "tom"\nshape = "box"\nnodes = 64\npoints = 2000\n'


@pytest.mark.parametrize("where", ["surfel = 12", "near = [0.3, 0.3, 0.3]", "near = [0.3, 0.3, 0.3]\nradius = 0.1"])
def test_a_scene_holds_around_a_surfel(where):
    hold = f"[[body.hold]]\n{where}\npath = [{{ at = 0.1, to = [0, 0.01, 0] }}, {{ at = 0.2, to = [0, 0, 0.01] }}]\n"
    world = px.Scene.parse(BOX + hold).world()
    (body,) = world.bodies
    (handle,) = body.handles
    picked = body.pick(12) if "surfel" in where else body.pick((0.3, 0.3, 0.3), 0.1 if "radius" in where else None)
    assert np.array_equal(handle.nodes, picked)
    world.advance(0.15)
    assert np.abs((body.positions - body.reference)[handle.nodes] - [0, 0.005, 0.005]).max() < 1e-6


def test_an_event_takes_hold_of_a_surfel():
    event = "[[event]]\nat = 0.1\nhold = { surfel = 3, radius = 0.2, to = [0, 0.01, 0], over = 0.1 }\n"
    world = px.Scene.parse(BOX + event).world()
    (body,) = world.bodies
    world.advance(0.15)
    assert np.abs((body.positions - body.reference)[body.pick(3, 0.2)] - [0, 0.005, 0]).max() < 1e-6


@pytest.mark.parametrize(
    "hold, words",
    [
        ("surfel = 3, near = [0, 0, 0]", ["event[0].hold", "not two"]),
        ("surfel = 3, lower = [0, 0, 0]", ["event[0].hold", "not two"]),
        ("radius = 0.1", ["event[0].hold", "radius"]),
        ("surfel = 3, radius = 0", ["event[0].hold.radius", "0"]),
        ("surfel = 2000", ["event[0]", "2000", "1999"]),
        ("path = [{ at = 2, to = [0, 0, 1] }], over = 1", ["event[0].hold", "not both"]),
        ("path = [{ at = 0.5, to = [0, 0, 1] }]", ["event[0]", "0.5", "1 s"]),
        ("path = [{ at = 2, too = [0, 0, 1] }]", ["event[0].hold.path[0].too", '"to"']),
    ],
)
def test_wrong_holds_of_a_scene_are_named(hold, words):
    with pytest.raises(px.PhyxelError) as caught:
        px.Scene.parse(BOX + f"[[event]]\nat = 1\nhold = {{ {hold} }}\n").world()
    assert all(word in str(caught.value) for word in ["scene.toml", *words]), caught.value
