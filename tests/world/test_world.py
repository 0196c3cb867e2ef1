"""Bodies in a world, as a script outside the package meets them."""

import numpy as np
import pytest

import phyxel as px
from tests.world.boxes import DAMPED, MASS, SOFT, G, box, box_cloud
from tests.worlds import bits, left_end, weightless, world_of


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
    before, where = bits(world), first.positions
    late = box(at=(3, 0, 0), velocity=(1, 0, 0))
    world.add(late)
    assert bits(world)[:2] == before
    assert np.array_equal(first.positions, where)
    world.advance(0.1)
    assert late.positions[:, 0].mean() - late.reference[:, 0].mean() == pytest.approx(0.1, rel=1e-4)
    assert np.array_equal(first.positions[held.nodes], where[held.nodes])


def test_a_force_in_newtons_changes_momentum_by_force_times_time():
    body = box(material=DAMPED)
    world = weightless(body)
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
    world = weightless(body)
    world.advance(0.01)
    body.material = SOFT.but(density=2000.0)
    assert body.diagnostics()["mass"] == pytest.approx(2 * MASS, rel=0.01)
    body.force = (2 * MASS, 0, 0)
    world.advance(0.1)
    assert body.diagnostics()["momentum"][0] == pytest.approx(2 * MASS * 1.1, rel=1e-4)


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
