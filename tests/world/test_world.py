"""The world, its bodies and its clock, as a script outside the package meets them."""

import hashlib
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

import phyxel as px
from phyxel.body.protocols import Change
from phyxel.errors import BlowUpError, CheckpointError
from phyxel.movers.phyxel_bodies import phyxels_of
from tests.movers.drift import drift_known

SOFT = px.Material(young=1e5, poisson=0.3, density=1000.0)
DAMPED = SOFT.but(damping=2e-3)
G = 9.81
MASS = 125.0
"""of the box: 0.5 m sides, water's density [kg]"""
NOWHERE = (0.0, 0.0, 0.0)


@cache
def box_cloud() -> px.PointCloud:
    return px.load("box", points=300)


@pytest.fixture(autouse=True)
def measured_once(monkeypatch):
    """Half the time of making a small body goes into the volume of its solid, the same box for nearly every test."""

    def solid(cloud, **options):
        return box_solid() if cloud is box_cloud() else px.Solid(cloud, **options)

    monkeypatch.setattr("phyxel.body.body.Solid", solid)


@cache
def box_solid() -> px.Solid:
    return px.Solid(box_cloud())


def box(**options) -> px.Body:
    return px.Body(box_cloud(), **({"nodes": 64, "material": SOFT} | options))


def world_of(*things, gravity=(0.0, -G, 0.0)) -> px.World:
    world = px.World(gravity=gravity)
    for thing in things:
        world.add(thing)
    return world


def state(world: px.World) -> list[str]:
    """The bits of all displacements and velocities, as hashes."""
    fields = [world.field(body, name) for body in world.bodies for name in ("u", "v")]
    return [hashlib.sha256(field.tobytes()).hexdigest()[:16] for field in fields]


def left_end(positions):
    return positions[:, 0] < positions[:, 0].min() + 0.05


# Movers


@pytest.fixture
def drift():
    """One more model, with a mover of its own."""
    with drift_known() as kind:
        yield kind


def test_each_body_is_moved_by_its_own_mover(drift, tmp_path):
    """Phyxel bodies do as they would without others beside them, wherever those stand in the list."""

    def mixed_world():
        drifting = [box(name=name, at=(x, 0, 0), model="drift") for name, x in (("one", 5), ("two", 7))]
        return world_of(drifting[0], box(name="tom"), drifting[1], box(name="tim", at=(2, 0, 0)), px.Ground(-0.5))

    alone = world_of(box(name="tom"), box(name="tim", at=(2, 0, 0)), px.Ground(-0.5))
    mixed, again = mixed_world(), mixed_world()
    for world in (alone, mixed, again):
        world.at(0.05, lambda w: w.bodies[-1].drag([3], (0.01, 0, 0)))
    for world in (alone, mixed):
        world.advance(0.1)
    assert [state(mixed)[k] for k in (2, 3, 6, 7)] == state(alone)
    one, tom, two, tim = mixed.bodies
    mover = mixed.mover_of(one)
    assert mover is mixed.mover_of(two) and mixed.mover_of(tom) is phyxels_of(mixed) is not mover
    assert mover.spans == [(0.0, 0.05), (0.05, pytest.approx(0.05))]
    assert one.positions[0, 1] - one.birth[0, 1] == pytest.approx(-0.5 * G * 0.1**2)
    assert one.velocities[0, 1] == pytest.approx(-G * 0.1)
    assert [set(piece) for piece in mixed.pieces()] == [{tom}, {tim}, {one}, {two}]

    mixed.save(tmp_path / "state.npz")
    again.restore(tmp_path / "state.npz")
    for world in (mixed, again):
        world.advance(0.1)
    assert state(again) == state(mixed)


def test_a_mover_hears_what_its_body_does(drift):
    body = box(name="one", model="drift")
    world = world_of(body)
    mover = world.mover_of(body)
    for act, word in (
        (lambda: body.change(young=2e5), Change.MATERIAL),
        (lambda: body.fix([0]), Change.HOLDS),
        (lambda: setattr(body, "force", (1, 0, 0)), Change.FORCE),
        (lambda: setattr(world, "gravity", NOWHERE), "surroundings"),
        (lambda: world.add(px.Ground(-5)), "surroundings"),
        (lambda: world.settle(1e-3), ("settle", 1e-3)),
    ):
        mover.told.clear()
        act()
        assert mover.told == [word]


def test_a_world_without_phyxel_bodies_makes_no_phyxel_model(drift, monkeypatch, tmp_path):
    monkeypatch.setattr("phyxel.movers.phyxel_bodies.PhyxelModel", None)
    world = world_of(box(name="one", model="drift"), px.Ground(-5))
    world.advance(0.1)
    world.settle()
    world.save(tmp_path / "state.npz")
    world.restore(tmp_path / "state.npz")
    assert len(world.pieces()) == 1 and world.steps == 1


# The clock


def test_no_time_changes_nothing():
    body = box(velocity=(1, 0, 0))
    world = world_of(body)
    before = state(world)
    world.advance(0)
    assert world.time == 0
    assert state(world) == before


@pytest.mark.parametrize("dt", [-1e-9, np.nan, np.inf])
def test_time_does_not_run_backward(dt):
    world = world_of(box())
    with pytest.raises(px.PhyxelError, match="advance"):
        world.advance(dt)
    assert world.time == 0


@pytest.mark.parametrize("steps", [[1e-7] * 20, [0.5], [0.1, 1e-6, 0.3]])
def test_free_fall_is_exact_for_any_dt(steps):
    body = box(at=(0, 7, 0), velocity=(2, 1, 0))
    world = world_of(body)
    for dt in steps:
        world.advance(dt)
    t = sum(steps)
    expected = body.reference + np.array([2 * t, t - 0.5 * G * t * t, 0])
    assert world.time == pytest.approx(t, rel=1e-12)
    assert np.abs(body.positions - expected).max() < 1e-5 * max(t, 1e-6)
    assert np.abs(body.velocities - [2, 1 - G * t, 0]).max() < 1e-5


def test_one_great_advance_is_many_small_ones():
    ends = []
    for steps in (1, 25):
        body = box(material=DAMPED)
        world = world_of(body)
        body.fix(left_end)
        for _ in range(steps):
            world.advance(0.25 / steps)
        ends.append(body.positions - body.reference)
    assert np.abs(ends[0] - ends[1]).max() < 0.02 * np.abs(ends[0]).max()


def test_an_empty_world_has_a_clock_too():
    world = px.World()
    world.advance(0.5)
    assert world.time == 0.5


def test_play_gives_both_ends():
    world = world_of(box())
    frames = list(world.play(seconds=0.1, fps=50))
    assert [frame.index for frame in frames] == [0, 1, 2, 3, 4, 5]
    assert np.allclose([frame.time for frame in frames], np.arange(6) / 50, rtol=0, atol=1e-12)
    assert all(list(frame.bodies) == world.bodies for frame in frames)
    again = list(world.play(seconds=0.04, fps=50))
    assert np.allclose([frame.time for frame in again], [0.1, 0.12, 0.14], rtol=0, atol=1e-12)


@pytest.mark.parametrize("seconds, fps", [(0, 60), (-1, 60), (1, 0), (np.nan, 60), (1, np.inf)])
def test_play_needs_numbers_above_zero(seconds, fps):
    with pytest.raises(px.PhyxelError, match="play"):
        next(world_of(box()).play(seconds, fps))


# Events


def test_events_happen_at_their_time_and_in_order():
    body = box()
    world = world_of(body)
    seen = []

    def look(name):
        return lambda w: seen.append((name, w.time, float(body.positions[:, 1].mean() - body.reference[:, 1].mean())))

    for time, name in ((0.07, "c"), (0.0, "a"), (0.031, "b"), (0.07, "d")):
        world.at(time, look(name))
    world.advance(0.0)
    assert [name for name, *_ in seen] == ["a"]
    world.advance(1.0)
    assert [name for name, *_ in seen] == ["a", "b", "c", "d"]
    for (_, time, fallen), asked in zip(seen, (0.0, 0.031, 0.07, 0.07), strict=True):
        assert time == pytest.approx(asked, abs=1e-12)
        assert fallen == pytest.approx(-0.5 * G * asked**2, abs=1e-6)
    assert world.time == 1.0


def test_an_event_can_ask_for_another_within_the_same_advance():
    world = world_of(box())
    times = []
    world.at(0.01, lambda w: w.at(0.02, lambda again: times.append(again.time)))
    world.advance(0.05)
    assert times == [pytest.approx(0.02, abs=1e-12)]


@pytest.mark.parametrize("time", [0.05, np.nan, np.inf])
def test_events_lie_ahead(time):
    world = world_of(box())
    world.advance(0.1)
    with pytest.raises(px.PhyxelError, match="at"):
        world.at(time, lambda w: None)


# Bodies in a world


def test_diagnostics_have_all_the_sums():
    body = box(at=(0, 2, 0), velocity=(3, 0, 0), spin=(0, 0, 2))
    world_of(body)
    sums = body.diagnostics()
    assert set(sums) >= {"mass", "momentum", "angular_momentum", "kinetic", "elastic", "potential", "volume"}
    assert sums["mass"] == pytest.approx(MASS, rel=0.01)
    assert sums["volume"] == pytest.approx(0.125, rel=0.01)
    assert sums["momentum"] == pytest.approx([3 * MASS, 0, 0], abs=1e-3)
    inertia = float(body.masses @ ((body.reference - [0, 2, 0])[:, :2] ** 2).sum(axis=1))
    assert sums["angular_momentum"] == pytest.approx([0, 0, 2 * inertia - 2 * 3 * MASS], rel=1e-5, abs=1e-3)
    assert sums["kinetic"] == pytest.approx(0.5 * MASS * 9 + 0.5 * inertia * 4, rel=1e-5)
    assert sums["elastic"] == pytest.approx(0, abs=1e-6)
    assert sums["potential"] == pytest.approx(MASS * G * 2, rel=1e-5)


def test_what_is_read_is_numpy_of_the_right_shape():
    body = box()
    world = world_of(body)
    world.advance(0.01)
    n, m = len(body.reference), len(box_cloud())
    for name in ("reference", "positions", "velocities"):
        assert getattr(body, name).shape == (n, 3), name
    assert body.masses.shape == body.volumes.shape == (n,)
    assert body.stress.shape == (n, 3, 3)
    assert body.surface.positions.shape == body.surface.normals.shape == body.surface.colors.shape == (m, 3)
    assert body.displacement_at(np.zeros((5, 3))).shape == (5, 3)
    assert body.masses.sum() == pytest.approx(1000 * body.volumes.sum())


def test_names_are_made_unique():
    world = world_of(box(), box(), box(name="tom"), box(name="tom"))
    names = [body.name for body in world.bodies]
    assert len(set(names)) == 4
    assert names[0] == "box" and names[2] == "tom" and names[1].startswith("box") and names[3].startswith("tom")


def test_a_body_joins_one_world_once():
    body = box()
    world = world_of(body)
    for other in (world, px.World()):
        with pytest.raises(px.PhyxelError, match="box"):
            other.add(body)
    assert world.bodies == [body]


def test_only_bodies_and_colliders_join():
    with pytest.raises(px.PhyxelError, match="Body"):
        px.World().add("bear")


def test_a_body_added_later_leaves_the_others_as_they_are():
    first = box(material=DAMPED)
    world = world_of(first)
    held = first.fix(left_end)
    world.advance(0.1)
    before, where = state(world), first.positions
    late = box(at=(3, 0, 0), velocity=(1, 0, 0))
    world.add(late)
    assert state(world)[:2] == before
    assert np.array_equal(first.positions, where)
    world.advance(0.1)
    assert late.positions[:, 0].mean() - late.reference[:, 0].mean() == pytest.approx(0.1, rel=1e-4)
    assert np.array_equal(first.positions[held.nodes], where[held.nodes])


def test_a_force_in_newtons_changes_momentum_by_force_times_time():
    body = box(material=DAMPED)
    world = world_of(body, gravity=NOWHERE)
    body.force = (30.0, -20.0, 10.0)
    world.advance(0.2)
    body.force = (0.0, 0.0, -50.0)
    world.advance(0.1)
    assert body.diagnostics()["momentum"] == pytest.approx([6, -4, 2 - 5], rel=1e-5)


def test_a_force_is_three_finite_numbers():
    with pytest.raises(px.PhyxelError, match="force"):
        box().force = (np.nan, 0, 0)


def test_a_material_can_change_while_it_runs():
    soft, hardened = (box(material=DAMPED) for _ in range(2))
    sags = []
    for body, other in ((soft, None), (hardened, DAMPED.but(young=1e7))):
        world = world_of(body)
        body.fix(left_end)
        world.advance(0.2)
        if other is not None:
            body.material = other
        world.advance(0.4)
        sags.append(-float((body.positions - body.reference)[:, 1].min()))
    assert sags[1] < 0.2 * sags[0]


def test_another_density_changes_the_mass():
    body = box(velocity=(1, 0, 0))
    world = world_of(body, gravity=NOWHERE)
    world.advance(0.01)
    body.material = SOFT.but(density=2000.0)
    assert body.diagnostics()["mass"] == pytest.approx(2 * MASS, rel=0.01)
    body.force = (2 * MASS, 0, 0)
    world.advance(0.1)
    assert body.diagnostics()["momentum"][0] == pytest.approx(2 * MASS * 1.1, rel=1e-4)


# Holds


@pytest.mark.parametrize(
    "where",
    [
        left_end,
        px.Box((-1, -1, -1), (-0.15, 1, 1)),
        lambda X: np.asarray(X[:, 0] < -0.15),
        "indices",
        "list",
        "mask",
    ],
    ids=["function", "box", "lambda", "indices", "list", "mask"],
)
def test_every_way_to_name_nodes(where):
    body = box()
    mask = body.reference[:, 0] < -0.15
    given = {"indices": np.flatnonzero(mask), "list": np.flatnonzero(mask).tolist(), "mask": mask}
    body.fix(given[where] if isinstance(where, str) else where)
    world = world_of(body)
    world.advance(0.1)
    moved = np.abs(body.positions - body.reference).max(axis=1)
    assert mask.sum() == 16
    assert (moved[mask] == 0).all()
    assert (moved[~mask] > 1e-4).all()


def test_a_negative_index_counts_from_the_end_of_its_own_body():
    first, second = box(), box(at=(2, 0, 0))
    world = world_of(first, second)
    second.fix([-1])
    world.advance(0.05)
    assert np.abs((second.positions - second.reference)[-1]).max() == 0
    assert np.abs((first.positions - first.reference)[-1]).max() > 1e-3


@pytest.mark.parametrize(
    "where, word",
    [
        (px.Box((5, 5, 5), (6, 6, 6)), "no node"),
        (lambda X: X[:, 0] > 99, "no node"),
        ([], "no node"),
        (np.zeros(64, bool), "no node"),
        ([64], "64"),
        ([-65], "65"),
        (np.ones(7, bool), "7"),
        ([0.5, 1.7], "0.5"),
        (lambda X: np.ones(5, bool), "64"),
    ],
    ids=["box", "function", "none", "mask", "beyond", "before", "short mask", "fractions", "short function"],
)
def test_a_region_that_holds_no_node_is_refused(where, word):
    body = box(name="tom")
    with pytest.raises(px.PhyxelError, match=word) as caught:
        body.fix(where)
    assert "tom" in str(caught.value)
    assert body.handles == []


@pytest.mark.parametrize("lower, upper", [((0, 0), (1, 1, 1)), ((0, np.nan, 0), (1, 1, 1)), ((2, 0, 0), (1, 1, 1))])
def test_a_box_that_is_none_is_refused(lower, upper):
    with pytest.raises(px.PhyxelError, match="box"):
        px.Box(lower, upper)


def test_fixed_nodes_stay_and_released_ones_fall():
    body = box(material=DAMPED)
    world = world_of(body)
    handle = body.fix(px.Box((-1, -1, -1), (1, 1, 1)))
    world.advance(0.1)
    assert np.array_equal(body.positions, body.reference)
    body.release(handle)
    world.advance(0.1)
    assert body.positions[:, 1].mean() - body.reference[:, 1].mean() == pytest.approx(-0.5 * G * 0.01, rel=1e-4)


def test_a_handle_is_released_once_and_by_its_own_body():
    body, other = box(), box()
    handle = body.fix([0, 1])
    with pytest.raises(px.PhyxelError):
        other.release(handle)
    body.release(handle)
    with pytest.raises(px.PhyxelError):
        body.release(handle)


def test_of_two_holds_on_a_node_one_remains():
    body = box()
    world = world_of(body)
    body.fix([0, 1])
    second = body.fix([1, 2])
    world.advance(0.02)
    body.release(second)
    world.advance(0.05)
    moved = np.abs(body.positions - body.reference).max(axis=1)
    assert (moved[[0, 1]] == 0).all() and moved[2] > 0


def test_nodes_are_fixed_where_they_are_not_where_they_were():
    body = box(velocity=(1, 0, 0))
    world = world_of(body, gravity=NOWHERE)
    world.advance(0.2)
    where = body.positions
    handle = body.fix(left_end)
    world.advance(0.1)
    assert np.abs(body.positions - where)[handle.nodes].max() < 1e-6


def test_a_drag_ends_where_it_should_and_takes_the_body_along():
    body = box(material=DAMPED)
    world = world_of(body, gravity=NOWHERE)
    handle = body.drag(left_end, lambda t: (0.2 * min(t / 0.4, 1), 0, 0))
    for _ in range(20):
        world.advance(0.02)
    assert np.abs((body.positions - body.reference)[handle.nodes] - [0.2, 0, 0]).max() < 1e-6
    for _ in range(20):
        world.advance(0.02)
    assert np.abs((body.positions - body.reference)[handle.nodes] - [0.2, 0, 0]).max() < 1e-6
    assert body.positions[:, 0].mean() - body.reference[:, 0].mean() == pytest.approx(0.2, abs=0.02)


def test_a_drag_by_a_displacement_is_there_after_the_next_frame():
    body = box(material=DAMPED)
    world = world_of(body, gravity=NOWHERE)
    handle = body.drag(left_end, (0.0, 0.03, 0.0))
    world.advance(1 / 60)
    assert np.abs((body.positions - body.reference)[handle.nodes] - [0, 0.03, 0]).max() < 1e-6


def test_a_drag_follows_its_function_of_time_within_one_advance():
    """There and back in one `advance` shakes the body just as in many: the caller's dt is no sampling rate."""
    energies = []
    for steps in (1, 40):
        body = box()
        world = world_of(body, gravity=NOWHERE)
        body.drag(left_end, lambda t: (0.03 * np.sin(2 * np.pi * t / 0.2), 0, 0))
        for _ in range(steps):
            world.advance(0.2 / steps)
        sums = body.diagnostics()
        energies.append(sums["kinetic"] + sums["elastic"])
    assert energies[0] == pytest.approx(energies[1], rel=0.2)


@pytest.mark.parametrize("to", [(np.nan, 0, 0), (1, 2), lambda t: (1, 2), lambda t: (np.inf, 0, 0)])
def test_a_drag_goes_to_three_finite_numbers(to):
    with pytest.raises(px.PhyxelError, match="drag"):
        box().drag([0], to)


# The ground


def test_the_ground_stops_a_fall_and_carries_the_weight():
    body = box(at=(0, 0.35, 0), material=SOFT.but(damping=1e-2))
    world = world_of(body, px.Ground())
    world.advance(1.5)
    where = body.positions
    world.advance(0.5)
    assert np.abs(body.positions - where).max() < 1e-4, "it rests"
    assert body.surface.positions[:, 1].min() == pytest.approx(0, abs=0.005)
    assert 0.23 < body.positions[:, 1].mean() < 0.25


def test_what_rests_on_the_ground_has_no_velocity():
    body = box(at=(0, 0.25, 0), material=SOFT.but(damping=1e-2))
    world = world_of(body, px.Ground())
    world.advance(1.5)
    sums = body.diagnostics()
    assert np.abs(body.velocities).max() < 0.01
    assert abs(sums["momentum"][1]) < 1e-3 * MASS
    assert sums["kinetic"] < 1e-3


def test_the_ground_can_lie_elsewhere():
    tops = []
    for height in (0.0, -1234.5):
        body = box(at=(0, height + 0.3, 0), material=DAMPED)
        world = world_of(body, px.Ground(height=height))
        world.advance(0.4)
        tops.append(body.positions[:, 1].mean() - height)
    assert tops[0] == pytest.approx(tops[1], abs=1e-4)


@pytest.mark.parametrize("friction", [0.0, 0.2, 0.5])
def test_a_sliding_body_decelerates_by_friction_times_gravity(friction):
    body = box(at=(0, 0.25, 0), velocity=(2, 0, 0), material=px.Material(young=1e6, poisson=0.3, damping=1e-3))
    world = world_of(body, px.Ground(friction=friction))
    world.advance(0.3)
    speed = body.diagnostics()["momentum"][0] / body.diagnostics()["mass"]
    assert speed == pytest.approx(2 - friction * G * 0.3, abs=0.02)


def test_friction_stops_a_body_and_does_not_turn_it_back():
    """v²/(2μg), to 5 % for a block so stiff that it hardly sways: with E = 1e6 it springs back a third of the way."""
    body = box(at=(0, 0.25, 0), velocity=(0.5, 0, 0), material=px.Material(young=1e7, poisson=0.3, damping=5e-4))
    world = world_of(body, px.Ground(friction=0.8))
    world.advance(0.5)
    way = body.positions[:, 0].mean() - body.reference[:, 0].mean()
    assert abs(body.diagnostics()["momentum"][0]) < 0.02 * MASS
    assert way == pytest.approx(0.5**2 / (2 * 0.8 * G), rel=0.05)


def test_restitution_one_keeps_energy_and_zero_takes_some():
    left = {}
    for restitution in (0.0, 1.0):
        body = box(at=(0, 0.75, 0), material=px.Material(young=1e6, poisson=0.3))
        world = world_of(body, px.Ground(restitution=restitution, friction=0))
        world.advance(0.6)
        sums = body.diagnostics()
        left[restitution] = (sums["kinetic"] + sums["elastic"] + sums["potential"]) / (MASS * G * 0.75)
        assert sums["momentum"][1] > -0.5 * MASS * np.sqrt(2 * G * 0.5), "it has bounced"
    assert 0.85 < left[1.0] < 1.05
    assert left[0.0] < 0.8


@pytest.mark.parametrize("numbers", [{"friction": -0.1}, {"restitution": 1.1}, {"restitution": -1}, {"height": np.nan}])
def test_absurd_ground_is_refused(numbers):
    with pytest.raises(px.PhyxelError, match=next(iter(numbers))):
        px.Ground(**numbers)


# Far, small, large


@pytest.mark.parametrize("at", [(1e6, 0, 0), (0, -1e6, 0)])
def test_a_place_far_away_costs_no_digits(at):
    fields = []
    for place in (NOWHERE, at):
        body = box(at=place, material=DAMPED)
        world = world_of(body)
        body.fix(left_end)
        world.advance(0.2)
        fields.append((body.displacement_at(body.reference), body.velocities, body.surface.positions - np.array(place)))
    for near, far in zip(fields[0][:2], fields[1][:2], strict=True):
        assert np.abs(near).max() > 0.05
        assert np.abs(near - far).max() < 1e-4 * np.abs(near).max()


def test_the_surface_far_away_keeps_its_digits_too():
    body = box(at=(1e6, 0, 0))
    world = world_of(body)
    world.advance(0.01)
    expected = box_cloud().positions + np.array([1e6, -0.5 * G * 1e-4, 0])
    assert np.abs(np.asarray(body.surface.positions, np.float64) - expected).max() < 1e-4


def test_a_long_fall_costs_no_digits():
    body = box(spin=(0, 0, 1), material=DAMPED)
    world = world_of(body)
    world.advance(5.0)
    assert body.positions[:, 1].mean() == pytest.approx(-0.5 * G * 25, rel=1e-6)
    span = np.ptp(np.linalg.norm(body.positions - body.positions.mean(axis=0), axis=1))
    at_rest = np.ptp(np.linalg.norm(body.reference - body.reference.mean(axis=0), axis=1))
    assert span == pytest.approx(at_rest, rel=1e-3)
    assert body.diagnostics()["volume"] == pytest.approx(0.125, rel=1e-3)


def test_a_grain_and_a_moon_move_alike():
    """With E ~ L and time ~ √L the same dimensionless numbers, so the same motion."""
    shapes = []
    for size in (1.0, 1e-6, 1e6):
        material = px.Material(young=1e5 * size, poisson=0.3, damping=5e-3 * np.sqrt(size))
        body = box(size=size, at=(0, 0.7 * size, 0), material=material, integrator="leapfrog")
        world = world_of(body, px.Ground())
        world.advance(0.6 * np.sqrt(size))
        assert body.diagnostics()["volume"] / size**3 == pytest.approx(1, rel=0.05)
        assert np.isfinite(body.surface.positions).all()
        shapes.append(body.positions / size)
    assert np.abs(shapes[1] - shapes[0]).max() < 1e-3
    assert np.abs(shapes[2] - shapes[0]).max() < 1e-3


@pytest.mark.parametrize("size", [1e-6, 1e-3, 1e6])
@pytest.mark.parametrize("preset", ["rubber", "foam", "steel"])
def test_ordinary_matter_of_any_size_simply_works(preset, size):
    """Some fifty steps of a body that flies and spins: it goes where it should and keeps its shape."""
    material = px.Material.preset(preset).but(damping=0.0)
    time = size * np.sqrt(material.density / material.young)
    body = box(size=size, material=material, velocity=(0.1 * size / time, 0, 0), spin=(0, 0, 1e-3 / time))
    world = world_of(body, gravity=NOWHERE)
    world.advance(time)
    assert body.positions[:, 0].mean() / size == pytest.approx(0.1, rel=1e-3)
    assert body.diagnostics()["volume"] / size**3 == pytest.approx(1, rel=1e-3)


def test_a_fast_flight_in_one_advance_keeps_the_shape():
    body = box(velocity=(100, 0, 0), spin=(0, 0, 1))
    world = world_of(body, gravity=NOWHERE)
    world.advance(10)
    assert body.positions[:, 0].mean() == pytest.approx(1000, rel=1e-5)
    radii = [np.linalg.norm(x - x.mean(axis=0), axis=1) for x in (body.positions, body.reference)]
    assert np.abs(radii[0] / radii[1] - 1).max() < 2e-3


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_a_mesh_of_any_scale_simply_works(scale, tmp_path):
    corners = [(x, y, z) for x in (0, scale) for y in (0, scale) for z in (0, scale)]
    quads = [(1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5), (2, 6, 8, 4)]
    lines = ["v {:.9g} {:.9g} {:.9g}".format(*x) for x in corners] + ["f {} {} {} {}".format(*q) for q in quads]
    (tmp_path / "cube.obj").write_text("\n".join(lines) + "\n")
    body = px.Body(px.load(tmp_path / "cube.obj"), nodes=64, material=DAMPED.but(young=1e5 * scale))
    world = world_of(body)
    body.fix(px.Box((-np.inf,) * 3, (0.2 * scale, np.inf, np.inf)))
    world.advance(0.1 * np.sqrt(scale))
    assert body.volumes.sum() / scale**3 == pytest.approx(1, rel=0.01)
    sag = (body.positions - body.reference)[:, 1].min() / scale
    assert -0.5 < sag < -1e-3
    assert np.isfinite(body.surface.positions).all() and np.isfinite(body.surface.normals).all()


# Bad input


@pytest.mark.parametrize(
    "options, word",
    [
        ({"nodes": 3}, "nodes"),
        ({"nodes": 0}, "nodes"),
        ({"size": 0}, "size"),
        ({"size": -1}, "size"),
        ({"size": np.nan}, "size"),
        ({"at": (np.nan, 0, 0)}, "at"),
        ({"at": (0, 0)}, "at"),
        ({"velocity": (np.inf, 0, 0)}, "velocity"),
        ({"spin": (0, np.nan, 0)}, "spin"),
        ({"rotate": (0, 0)}, "rotate"),
        ({"model": "galerkni"}, "model"),
        ({"surface": "nope"}, "surface"),
        ({"integrator": "euler"}, "integrator"),
        ({"support": 0.5}, "support"),
        ({"material": "rubber"}, "material"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_absurd_bodies_are_refused(options, word):
    with pytest.raises(px.PhyxelError, match=word):
        world_of(box(**options)).advance(0.001)


def test_a_body_is_made_of_a_cloud_not_of_a_name():
    with pytest.raises(px.PhyxelError, match="load"):
        px.Body("bear")


def test_points_that_enclose_nothing_are_refused():
    for positions in (np.full((200, 3), np.nan), np.zeros((200, 3)), np.random.default_rng(0).random((3, 3))):
        with pytest.raises(px.PhyxelError):
            px.Body(px.PointCloud(positions), nodes=64)


@pytest.mark.parametrize("gravity", [(0, np.nan, 0), (0, -9.81), (0, -np.inf, 0)])
def test_absurd_gravity_is_refused(gravity):
    with pytest.raises(px.PhyxelError, match="gravity"):
        px.World(gravity=gravity)


def test_reading_a_surface_needs_a_world():
    with pytest.raises(px.PhyxelError, match="world"):
        _ = box().surface


# Blow-ups


def unstable(world: px.World, factor: float = 50.0) -> None:
    """From now on the world steps far beyond what is stable."""
    stable = phyxels_of(world).model.stable_step
    phyxels_of(world).model.stable_step = lambda: factor * stable()


def test_a_blow_up_names_the_body_and_the_time():
    calm, wild = box(name="calm"), box(name="wild", at=(2, 0, 0))
    world = world_of(calm, wild)
    handle = wild.drag(left_end, (0.05, 0, 0))
    world.advance(0.02)
    wild.release(handle)
    unstable(world)
    with pytest.raises(BlowUpError, match=r"wild.*t = 0\.\d") as caught:
        for _ in range(100):
            world.advance(0.05)
    assert "calm" not in str(caught.value)


@pytest.mark.parametrize("dt", [1e-4, 0.5], ids=["short", "long"])
def test_one_velocity_that_is_no_number_is_a_blow_up(dt):
    first, second = box(), box(name="sick", at=(2, 0, 0))
    world = world_of(first, second)
    world.advance(0.01)
    low, _ = phyxels_of(world).model.ranges[1]
    v = phyxels_of(world).model.v.numpy()
    v[low + 5] = np.nan
    phyxels_of(world).model.v.assign(v)
    with pytest.raises(BlowUpError, match="sick"):
        world.advance(dt)


def test_the_fastest_node_is_no_number_if_any_is_none():
    world = world_of(box())
    v = phyxels_of(world).model.v.numpy()
    v[5] = np.nan
    phyxels_of(world).model.v.assign(v)
    assert np.isnan(phyxels_of(world).model.fastest())


def test_energy_from_nowhere_is_a_blow_up():
    body = box(name="eve", velocity=(1, 0, 0))
    world = world_of(body, gravity=NOWHERE)
    world.advance(2.0)
    phyxels_of(world).model.v.assign(10 * phyxels_of(world).model.v.numpy())
    with pytest.raises(BlowUpError, match="eve"):
        for _ in range(50):
            world.advance(0.05)


@pytest.mark.parametrize("integrator", ["leapfrog", "implicit"])
def test_what_is_flung_beside_a_collider_ends_the_run(integrator):
    """At 1e7 m/s steps of half a spacing would be 6 ns: a run that goes on never ends."""
    body = box(name="wild", velocity=(1e7, 0, 0), integrator=integrator)
    world = world_of(body, px.Sphere(0.2, at=(0, 5, 0)))
    with pytest.raises(BlowUpError, match="wild"):
        world.advance(0.01)


def test_work_from_outside_is_no_blow_up():
    """Drags, forces, harder materials and rest in empty space add or keep energy rightly."""
    body = box(material=DAMPED)
    world = world_of(body, gravity=NOWHERE)
    handle = body.drag(left_end, lambda t: (t, 0, 0))
    for _ in range(20):
        world.advance(0.02)
    body.material = DAMPED.but(young=1e6)
    world.advance(0.2)
    body.release(handle)
    body.force = (500, 0, 0)
    world.advance(0.5)
    body.force = NOWHERE
    world.advance(0.5)
    assert body.diagnostics()["momentum"][0] > 0


# Settling


def test_settle_finds_the_rest_that_time_finds():
    ends = []
    for waits in (False, True):
        body = box(material=SOFT.but(damping=2e-2))
        world = world_of(body)
        body.fix(left_end)
        if waits:
            world.advance(2.5)
        else:
            px.settle(world)
            assert np.abs(body.velocities).max() < 1e-6
            assert world.time == 0
        ends.append(body.positions - body.reference)
    assert np.abs(ends[0] - ends[1]).max() < 0.01 * np.abs(ends[0]).max()


# Checkpoints


def eventful() -> px.World:
    """Two bodies, a drag, and an event that changes a material and lets go."""
    held, free = box(material=DAMPED), box(name="free", at=(2, 0.3, 0), velocity=(0, 0, 1), spin=(1, 2, 3))
    world = world_of(held, free, px.Ground())
    handle = held.drag(left_end, lambda t: (0.3 * t, 0, 0))

    def happen(_world):
        held.release(handle)
        held.material = DAMPED.but(young=5e4)
        free.force = (10, 0, 0)

    world.at(0.15, happen)
    return world


@pytest.mark.parametrize("when", [0.0, 0.1, 0.15, 0.2])
def test_a_restored_world_goes_on_with_the_same_bits(when, tmp_path):
    path = tmp_path / "state.npz"
    straight = eventful()
    straight.advance(when)
    straight.save(path)
    restored = eventful()
    restored.restore(path)
    assert restored.time == straight.time
    assert state(restored) == state(straight)
    for world in (straight, restored):
        for _ in range(4):
            world.advance(1 / 30)
    assert state(restored) == state(straight)
    assert np.array_equal(restored.bodies[0].positions, straight.bodies[0].positions)
    assert [path.name for path in tmp_path.iterdir()] == ["state.npz"]


def test_going_back_to_before_an_event_undoes_it_or_is_refused(tmp_path):
    path = tmp_path / "state.npz"
    body = box()
    world = world_of(body)
    body.fix(left_end)
    world.at(0.15, lambda w: setattr(body, "material", DAMPED.but(young=1e6)))
    world.advance(0.1)
    world.save(path)
    world.advance(0.1)
    after = state(world)
    try:
        world.restore(path)
    except CheckpointError:
        return
    world.advance(0.1)
    assert state(world) == after


def test_saving_changes_nothing(tmp_path):
    saved, plain = eventful(), eventful()
    for _ in range(4):
        saved.save(tmp_path / "state.npz")
        for world in (saved, plain):
            world.advance(0.03)
    assert state(saved) == state(plain)


OTHERS = {
    "gravity": lambda: world_of(box(), gravity=(0, -1, 0)),
    "nodes": lambda: world_of(box(nodes=125)),
    "place": lambda: world_of(box(at=(0, 1, 0))),
    "bodies": lambda: world_of(box(), box()),
    "name": lambda: world_of(box(name="other")),
    "ground": lambda: world_of(box(), px.Ground()),
    "material": lambda: world_of(box(material=px.Material.steel())),
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_checkpoint_of_another_world_is_refused(other, tmp_path):
    world = world_of(box())
    world.advance(0.01)
    world.save(tmp_path / "state.npz")
    stranger = OTHERS[other]()
    before = state(stranger)
    with pytest.raises(CheckpointError, match="another"):
        stranger.restore(tmp_path / "state.npz")
    assert stranger.time == 0 and state(stranger) == before


@pytest.mark.parametrize("content", ["missing", "empty", "text", "cut", "array", "archive"])
def test_what_is_no_checkpoint_is_refused(content, tmp_path):
    world = world_of(box())
    path = tmp_path / "state.npz"
    world.save(path)
    whole = path.read_bytes()
    if content == "array":
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
    elif content == "archive":
        np.savez(path, a=np.zeros(3))
    elif content == "missing":
        path.unlink()
    else:
        path.write_bytes({"empty": b"", "text": b"not a checkpoint", "cut": whole[: len(whole) // 2]}[content])
    with pytest.raises(CheckpointError, match=r"state\.npz"):
        world.restore(path)
    assert world.time == 0


def test_a_checkpoint_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(px.PhyxelError, match="cannot be written"):
        world_of(box()).save(tmp_path / "file" / "state.npz")


# The same bits every time


def test_two_runs_have_the_same_bits():
    ends = []
    for _ in range(2):
        world = eventful()
        for _ in world.play(seconds=0.2, fps=60):
            pass
        ends.append(state(world))
    assert ends[0] == ends[1]


def test_energy_only_falls_under_damping():
    body = box(material=DAMPED)
    world = world_of(body)
    body.fix(left_end)
    energies = []
    for _ in world.play(seconds=0.5, fps=40):
        sums = body.diagnostics()
        energies.append(sums["kinetic"] + sums["elastic"] + sums["potential"])
    assert all(after <= before + 1e-3 * abs(before) + 0.01 for before, after in pairwise(energies))
    assert energies[-1] < energies[0] - 1
