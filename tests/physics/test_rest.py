"""What rests on the ground stays at rest."""

import numpy as np
import pytest

import phyxel as px
from phyxel.movers.phyxel_bodies import phyxels_of


def resting(shape: str, integrator: str, young: float, damping: float) -> tuple[px.World, px.Body]:
    """A body that has come to rest on the ground."""
    material = px.Material(young=young, poisson=0.4, density=1000.0, damping=damping)
    turned = (0, 0, 0) if shape == "box" else (-90, 0, 0)
    body = px.Body(px.load(shape, points=500), material=material, nodes=200, integrator=integrator, rotate=turned)
    world = px.World(device="cpu")
    world.add(body)
    world.add(px.Ground())
    world.advance(1.0)
    px.settle(world, 1e-5)
    return world, body


@pytest.mark.parametrize(
    ("shape", "integrator", "young", "damping"),
    [
        ("box", "leapfrog", 1e6, 0.0),
        ("bear", "leapfrog", 1e5, 1e-3),
        pytest.param("bear", "implicit", 1e7, 1e-3, marks=pytest.mark.slow),
    ],
)
def test_at_rest_it_stays(shape, integrator, young, damping):
    """10 s move no node by 1e-4 of the size, and no vibration comes up: not even where nothing damps it. A contact that
    followed the deformation of its phyxel at once fed 0.4 J into the box within 6 s."""
    world, body = resting(shape, integrator, young, damping)
    start = body.positions
    before = body.diagnostics()
    world.advance(10.0)
    after = body.diagnostics()
    assert np.abs(body.positions - start).max() < 1e-4 * np.ptp(body.birth, axis=0).max()
    total = [now["kinetic"] + now["elastic"] + now["potential"] for now in (before, after)]
    assert after["kinetic"] < 1e-5
    assert total[1] == pytest.approx(total[0], rel=1e-4)


def slender(young: float) -> tuple[px.World, px.Body]:
    """A bar of 1 × 0.05 × 0.05 m, held at one end."""
    cloud = px.load("bar", points=2000)
    thin = px.PointCloud(np.asarray(cloud.positions) * [1, 0.2, 0.2], name="slender")
    bar = px.Body(thin, nodes=300, material=px.Material(young=young, poisson=0.3, density=1200.0))
    bar.fix(lambda X: X[:, 0] < X[:, 0].min() + 0.5 * bar.unit)
    world = px.World(device="cpu")
    world.add(bar)
    return world, bar


def work_over_energy(bar: px.Body) -> float:
    """What gravity has done over twice the elastic energy: 1 at rest, as long as forces are linear (Clapeyron)."""
    fallen = -bar.masses @ (bar.positions - bar.reference)[:, 1]
    return float(9.81 * fallen / (2 * bar.diagnostics()["elastic"]))


def tip(bar: px.Body) -> float:
    return float((bar.positions - bar.reference)[np.argmax(bar.reference[:, 0]), 1])


@pytest.mark.filterwarnings("ignore::phyxel.errors.PhyxelWarning")
def test_a_slender_stiff_bar_goes_all_the_way():
    """E = 3e9 Pa. Its slowest motion takes a thousand times as long as its quickest, and once hid under that: it was
    taken to be at rest after a hundredth of its way. Single precision leaves 1e-4 of a sag of three thousandths of the
    length: so from above, and from below, where twice its weight had brought it."""
    world, bar = slender(3e9)
    px.settle(world)
    from_above = tip(bar)
    assert work_over_energy(bar) == pytest.approx(1, abs=1e-3)
    world.gravity = (0, -2 * 9.81, 0)
    px.settle(world)
    assert tip(bar) == pytest.approx(2 * from_above, rel=2e-3)
    world.gravity = (0, -9.81, 0)
    px.settle(world)
    assert tip(bar) == pytest.approx(from_above, rel=1e-4)
    assert np.abs(bar.velocities).max() == 0


def test_settling_ends_where_motion_ends():
    """A soft bar that swings out its damping comes to rest where `settle` takes it at once, to 0.1 % of its sag."""
    ends = []
    for settled in (True, False):
        material = px.Material(young=1e6, poisson=0.3, density=1000.0, damping=0.02, drag=2.0)
        bar = px.Body(px.load("bar", points=600), nodes=100, material=material, integrator="leapfrog")
        bar.fix(lambda X: X[:, 0] < 0.1)
        world = px.World(device="cpu")
        world.add(bar)
        px.settle(world) if settled else world.advance(8.0)
        ends.append(bar.positions - bar.reference)
    assert np.abs(ends[0] - ends[1]).max() < 1e-3 * np.abs(ends[1]).max()


def test_what_lies_rubs_no_more_than_it_is_pressed():
    """Friction at rest is within Coulomb's cone at every phyxel that touches the ground, to 5 % of it, and all others
    are in balance."""
    world, body = resting("bear", "leapfrog", 1e5, 1e-3)
    model = phyxels_of(world).model
    force, mass = model.now.force.numpy().astype(float), model.matter.mass.numpy()[:, None]
    left = force + mass * [0, -9.81 / body.unit, 0]
    touching = np.abs(left).max(axis=1) > 1e-2 * np.abs(left).max()
    pressed, along = -left[:, 1], np.hypot(left[:, 0], left[:, 2])
    assert 3 <= touching.sum() < 0.2 * len(left)
    assert (along[touching] <= 1.05 * px.Ground().friction * pressed[touching]).all()


def test_settle_says_that_it_did_not():
    """A body that slides down a slope for ever has no rest."""
    body = px.Body(px.load("box", points=300), nodes=60, at=(0, 0.5, 0))
    world = px.World(gravity=(5, -9.81, 0), device="cpu")
    world.add(body)
    world.add(px.Ground(friction=0.1))
    with pytest.raises(px.PhyxelError, match=r"settle: no rest after .* steps; the last one still moved nodes by"):
        world.settle(most_steps=30)
