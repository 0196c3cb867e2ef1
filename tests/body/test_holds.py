"""Holds: nodes that are fixed, dragged along paths and turned, and let go."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import phyxel as px
from tests.body.tom import NOWHERE, SOFT, SPACING, everywhere, tom
from tests.world import boxes
from tests.worlds import bits, left_end, weightless, world_of

INTEGRATORS = ["leapfrog", "implicit"]


def test_fixed_nodes_stay_and_released_ones_fall():
    body = boxes.box(material=boxes.DAMPED)
    world = world_of(body)
    handle = body.fix(px.Box((-1, -1, -1), (1, 1, 1)))
    world.advance(0.1)
    assert not world.field(body, "u").any()
    body.release(handle)
    world.advance(0.1)
    assert body.positions[:, 1].mean() - body.reference[:, 1].mean() == pytest.approx(-0.5 * boxes.G * 0.01, rel=1e-4)


def test_a_handle_is_released_once_and_by_its_own_body():
    body, other = boxes.box(), boxes.box()
    handle = body.fix([0, 1])
    with pytest.raises(px.PhyxelError):
        other.release(handle)
    body.release(handle)
    with pytest.raises(px.PhyxelError):
        body.release(handle)


def test_of_two_holds_on_a_node_one_remains():
    body = boxes.box()
    world = world_of(body)
    body.fix([0, 1])
    second = body.fix([1, 2])
    world.advance(0.02)
    body.release(second)
    world.advance(0.05)
    moved = np.abs(world.field(body, "u")).max(axis=1)
    assert (moved[[0, 1]] == 0).all() and moved[2] > 0


def test_nodes_are_fixed_where_they_are_not_where_they_were():
    body = boxes.box(velocity=(1, 0, 0))
    world = weightless(body)
    world.advance(0.2)
    where = body.positions
    handle = body.fix(left_end)
    world.advance(0.1)
    assert np.abs(body.positions - where)[handle.nodes].max() < 1e-6


def test_a_drag_ends_where_it_should_and_takes_the_body_along():
    body = boxes.box(material=boxes.DAMPED)
    world = weightless(body)
    handle = body.drag(left_end, lambda t: (0.2 * min(t / 0.4, 1), 0, 0))
    for _ in range(20):
        world.advance(0.02)
    assert np.abs((body.positions - body.reference)[handle.nodes] - [0.2, 0, 0]).max() < 1e-6
    for _ in range(20):
        world.advance(0.02)
    assert np.abs((body.positions - body.reference)[handle.nodes] - [0.2, 0, 0]).max() < 1e-6
    assert body.positions[:, 0].mean() - body.reference[:, 0].mean() == pytest.approx(0.2, abs=0.02)


def test_a_drag_by_a_displacement_is_there_after_the_next_frame():
    body = boxes.box(material=boxes.DAMPED)
    world = weightless(body)
    handle = body.drag(left_end, (0.0, 0.03, 0.0))
    world.advance(1 / 60)
    assert np.abs((body.positions - body.reference)[handle.nodes] - [0, 0.03, 0]).max() < 1e-6


def test_a_drag_follows_its_function_of_time_within_one_advance():
    """There and back in one `advance` shakes the body just as in many: the caller's dt is no sampling rate."""
    energies = []
    for steps in (1, 40):
        body = boxes.box()
        world = weightless(body)
        body.drag(left_end, lambda t: (0.03 * np.sin(2 * np.pi * t / 0.2), 0, 0))
        for _ in range(steps):
            world.advance(0.2 / steps)
        sums = body.diagnostics()
        energies.append(sums["kinetic"] + sums["elastic"])
    assert energies[0] == pytest.approx(energies[1], rel=0.2)


@pytest.mark.parametrize("to", [(np.nan, 0, 0), (1, 2), lambda t: (1, 2), lambda t: (np.inf, 0, 0)])
def test_a_drag_goes_to_three_finite_numbers(to):
    with pytest.raises(px.PhyxelError, match="drag"):
        boxes.box().drag([0], to)


# Along a path


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_drag_is_on_its_path_at_each_time(integrator):
    """Straight from here and now to the first keyframe, between them, and at rest at the last."""
    body = tom(integrator=integrator)
    world = weightless(body)
    world.advance(0.1)
    path = [(0.2, (0.1, 0, 0)), (0.3, (0.1, 0, 0)), (0.5, (0, 0.1, -0.1))]
    handle = body.drag(lambda X: X[:, 0] < -0.1, path)
    places = np.array([NOWHERE, *(place for _, place in path), path[-1][1]])
    for _ in range(10):
        world.advance(0.05)
        expected = [np.interp(world.time, (0.1, 0.2, 0.3, 0.5, 9.0), along) for along in places.T]
        assert np.abs((body.positions - body.reference)[handle.nodes] - expected).max() < 2e-6


def test_a_path_may_begin_where_it_is():
    body = tom()
    world = weightless(body)
    handle = body.drag([0], [(0.0, NOWHERE), (0.1, NOWHERE), (0.2, (0, 0, 0.1))])
    world.advance(0.1)
    assert not world.field(body, "u").any()
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
    body = tom()
    with pytest.raises(px.PhyxelError, match="drag"):
        body.drag([0], path)
    assert body.handles == []


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_what_is_let_go_keeps_the_velocity_it_was_moved_with(integrator):
    """Moved as a whole at 0.5 m/s and let go on the way: nothing is left that could change its velocity."""
    body = tom(integrator=integrator)
    world = weightless(body)
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
        body = tom()
        world = weightless(body)
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


# Turning


def left(positions):
    return positions[:, 0] < -0.1


def right(positions):
    return positions[:, 0] > 0.1


def about(degrees, axis) -> np.ndarray:
    """Rotation by degrees about an axis, 3 × 3."""
    return Rotation.from_rotvec(np.radians(degrees) * np.asarray(axis, float)).as_matrix()


def off_circle(handle: px.Handle, start: np.ndarray, shift, rotation) -> float:
    """How far the nodes of a handle are from where its motion from `start` should have brought them [m]."""
    held = start[handle.nodes]
    middle = held.mean(axis=0)
    expected = middle + np.asarray(shift) + (held - middle) @ rotation.T
    return float(np.abs(handle.body.positions[handle.nodes] - expected).max())


SINGLE = 2 * 2.0**-22 * SPACING
"""two units in the last place of displacements of 4 spacings, in single precision [m]"""


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_turned_end_is_on_its_circle_at_each_time(integrator):
    """About the middle of where the nodes are when they are taken, which is not where they were at birth."""
    body = tom(integrator=integrator, velocity=(0.5, 0, 0))
    world = weightless(body)
    world.advance(0.1)
    start = body.positions
    handle = body.drag(left, to=[(0.3, (0, 0.1, 0))], turn=[(0.2, (0, 90, 0)), (0.3, (0, 90, 0)), (0.4, (0, 0, 0))])
    assert np.array_equal(handle.points, body.reference[handle.nodes])
    assert np.array_equal(handle.taken, start[handle.nodes])
    for _ in range(8):
        world.advance(0.05)
        angle = np.interp(world.time, (0.1, 0.2, 0.3, 0.4), (0, 90, 90, 0))
        shift, rotation = (0, np.interp(world.time, (0.1, 0.3), (0, 0.1)), 0), about(angle, (0, 1, 0))
        assert off_circle(handle, start, shift, rotation) < SINGLE
        assert np.abs(handle.pose(world.time)[0] - shift).max() < 1e-12
        assert np.abs(handle.pose(world.time)[1] - rotation).max() < 1e-12


def test_a_turn_is_three_angles_or_a_function_too():
    body = tom()
    world = weightless(body)
    start = body.positions
    quick = body.drag(left, turn=(30, 0, 0))
    even = body.drag(right, turn=lambda t: (0, 0, 100 * t))
    world.advance(1 / 60)
    assert off_circle(quick, start, NOWHERE, about(30, (1, 0, 0))) < SINGLE
    world.advance(0.1)
    assert off_circle(quick, start, NOWHERE, about(30, (1, 0, 0))) < SINGLE
    assert off_circle(even, start, NOWHERE, about(100 * world.time, (0, 0, 1))) < SINGLE
    assert not body.velocities[quick.nodes].any(), "there and at rest, to the bit"


def test_about_one_axis_a_handle_turns_as_often_as_asked():
    handle = tom().drag([0, 1], turn=[(1.0, (0, 720, 0)), (2.0, (0, 540, 0))])
    for time, degrees in ((0.25, 180), (0.3, 216), (0.5, 360), (0.9, 648), (1.0, 720), (1.5, 630), (3.0, 540)):
        assert np.abs(handle.pose(time)[1] - about(degrees, (0, 1, 0))).max() < 1e-9


def test_between_any_two_turns_a_handle_goes_evenly_the_short_way():
    """Its angular velocity is the same all the way, and the whole is what `rotate` means: about x, then y, then z."""
    handle = tom().drag([0, 1], turn=[(1.0, (100, -40, 80))])
    turns = [Rotation.from_matrix(handle.pose(t)[1]) for t in np.linspace(0, 1, 11)]
    steps = np.array([(b * a.inv()).as_rotvec() for a, b in pairwise(turns)])
    assert np.abs(steps - steps[0]).max() < 1e-12
    assert np.linalg.norm(steps.sum(axis=0)) < np.pi
    whole = about(80, (0, 0, 1)) @ about(-40, (0, 1, 0)) @ about(100, (1, 0, 0))
    assert np.abs(turns[-1].as_matrix() - whole).max() < 1e-12


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_what_is_let_go_goes_on_turning(integrator):
    """Turned as a whole at ω = 2 rad/s and let go: v = ω × r but for half a step, ωΔt/2 = 1 % with steps of 10 ms. As
    nothing acts on it from outside, its angular momentum stays; implicit Euler takes (ωΔt)² of it in each of ten steps.
    """
    body = tom(integrator=integrator, material=SOFT.but(damping=0.0))
    world = weightless(body)
    handle = body.drag(everywhere, turn=lambda t: (0, 0, np.degrees(2 * t)))
    world.advance(0.2)
    expected = np.cross([0, 0, 2], body.positions)
    assert np.abs(body.velocities - expected).max() < 0.011 * np.abs(expected).max()
    body.release(handle)
    before = body.diagnostics()["angular_momentum"]
    assert before[2] == pytest.approx(2 * (body.masses * (body.reference[:, :2] ** 2).sum(axis=1)).sum(), rel=1e-3)
    world.advance(0.1)
    after = body.diagnostics()["angular_momentum"]
    assert np.abs(after - before).max() < (1e-6 if integrator == "leapfrog" else 5e-3) * before[2]


def test_a_bar_turned_at_one_end_is_twisted_half_as_much_in_the_middle():
    """At rest, by symmetry; and by three quarters of a turn the long way, as the end went, not by one the other way."""
    bar = px.Body(px.load("bar", points=1000), nodes=200, material=SOFT)
    world = weightless(bar)
    along = (bar.reference[:, 0] - bar.reference[:, 0].min()) / np.ptp(bar.reference[:, 0])
    start = bar.positions
    fixed, turned = bar.fix(along < 0.1), bar.drag(along > 0.9, turn=(270, 0, 0))
    world.settle(1e-4)
    # Straight to a stage in fifty steps, each of which may round.
    assert off_circle(turned, start, NOWHERE, about(270, (1, 0, 0))) < 25 * SINGLE
    assert not world.field(bar, "u")[fixed.nodes].any()
    middle = np.abs(along - 0.5) < 0.15
    (_, y, z), (_, v, w) = ((x[middle] - start.mean(axis=0)).T for x in (start, bar.positions))
    assert np.degrees(np.arctan2((y * w - z * v).sum(), (y * v + z * w).sum())) == pytest.approx(135, abs=0.5)


def test_a_body_dragged_while_it_settles_comes_to_rest():
    body = tom()
    world = weightless(body)
    body.fix(left)
    handle = body.drag(right, (0, 0.05, 0))
    world.settle(1e-5)
    assert np.abs((body.positions - body.reference)[handle.nodes] - [0, 0.05, 0]).max() < 25 * SINGLE
    between = (body.positions - body.reference)[~left(body.reference) & ~right(body.reference), 1]
    assert between.mean() == pytest.approx(0.025, abs=1e-6)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_run_resumed_within_a_turn_has_the_same_bits(integrator, tmp_path):
    """An event began it where the body was then: a restored world must not begin it where the body was at first."""

    def turning() -> px.World:
        body = tom(integrator=integrator, velocity=(0, 1, 0), spin=(1, 0, 0))
        world = weightless(body, tom(name="tim", at=(2, 0, 0)))
        world.at(0.1, lambda w: body.drag(left, to=(0.02, 0, 0), turn=[(0.2, (10, 50, 20)), (0.3, (0, 0, 90))]))
        world.at(0.15, lambda w: w.bodies[1].fix([3]))
        return world

    straight, resumed = turning(), turning()
    straight.advance(0.17)
    straight.save(tmp_path / "state.npz")
    resumed.restore(tmp_path / "state.npz")
    for world in (straight, resumed):
        for _ in range(3):
            world.advance(0.05)
    assert bits(resumed) == bits(straight)
    assert np.array_equal(resumed.bodies[0].handles[0].taken, straight.bodies[0].handles[0].taken)


@pytest.mark.parametrize(
    "turn", [(0, 90), (0, np.nan, 0), 90, [(0.0, (0, 90, 0))], [(0.1, (0, 90))], [(0.1, (0, 90, 0), 3)], lambda t: 90]
)
def test_absurd_turns_are_refused(turn):
    body = tom()
    with pytest.raises(px.PhyxelError, match="tom: turn"):
        body.drag([0, 1], turn=turn)
    assert body.handles == []


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


@pytest.mark.parametrize(
    "motion, shift, degrees",
    [
        ("turn = [0, 90, 0]\nover = 0.2", 0, 67.5),
        ("turn = [0, 90, 0]", 0, 90),
        ("turn = [0, 90, 0]\nto = [0, 0.02, 0]\nover = 0.2", 0.015, 67.5),
        ("path = [{ at = 0.1, turn = [0, 40, 0] }, { at = 0.2, to = [0, 0.02, 0], turn = [0, 60, 0] }]", 0.015, 50),
    ],
)
def test_a_scene_turns_what_it_holds(motion, shift, degrees):
    hold = f"[[body.hold]]\nupper = [-0.1, inf, inf]\n{motion}\n"
    world = px.Scene.parse(BOX + hold).world()
    (body,) = world.bodies
    start = body.positions
    world.advance(0.15)
    assert off_circle(body.handles[0], start, (0, shift, 0), about(degrees, (0, 1, 0))) < SINGLE


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
        ("path = [{ at = 2, turn = [0, 0, 90] }], turn = [0, 90, 0]", ["event[0].hold", "not both"]),
        ("path = [{ at = 2 }]", ["event[0].hold.path[0]", "turn"]),
        ("path = [{ at = 0.5, turn = [0, 0, 90] }]", ["event[0]", "turn", "0.5", "1 s"]),
        ("turn = [0, 90]", ["event[0].hold.turn"]),
        ("turn = [0, inf, 0]", ["event[0]", "turn", "finite"]),
        ("path = [{ at = 2, too = [0, 0, 1] }]", ["event[0].hold.path[0].too", '"to"']),
    ],
)
def test_wrong_holds_of_a_scene_are_named(hold, words):
    with pytest.raises(px.PhyxelError) as caught:
        px.Scene.parse(BOX + f"[[event]]\nat = 1\nhold = {{ {hold} }}\n").world()
    assert all(word in str(caught.value) for word in ["scene.toml", *words]), caught.value
