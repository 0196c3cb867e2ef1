"""What nature says of bodies that have a model each and meet. Boxes have sides of 0.2 m."""

import numpy as np
import pytest

import phyxel as px
from tests.worlds import energy, middle, sums, weightless, world_of

SIDE = 0.2
SOFT = px.Material(young=1e6, poisson=0.3, density=1000.0)


def box(at, nodes=60, rigid=False, material=SOFT, **more):
    """A Galerkin box, or a crumb of this shape."""
    cloud = px.load("box", points=1500)
    body = px.Body(cloud, material=material, nodes=nodes, model="galerkin", size=SIDE, at=at, place="center", **more)
    if rigid:
        body.model = "rigid"
    return body


@pytest.mark.parametrize("rigid", [(False, False), (False, True), (True, True)])
@pytest.mark.parametrize("aside", [0.0, 0.13])
def test_what_collides_keeps_both_momenta_and_gains_no_energy(aside, rigid):
    """Impulses are equal, opposite, and at the same place: P and L are kept to rounding. Those of a step are the
    minimum of an energy over what is allowed, so this does not grow. Head on, no more than a bounce is left of the
    speed along x; and nothing has gone through."""
    one = box((-0.15, 0, 0), rigid=rigid[0], velocity=(1, 0, 0), name="one")
    other = box((0.12, aside, 0.03), rigid=rigid[1], velocity=(-1, 0, 0), name="other")
    world = weightless(one, other)
    momentum, spin = sums(world, "momentum", "angular_momentum")
    least = energy(world)
    for _ in range(12):
        world.advance(0.01)
        p, L = sums(world, "momentum", "angular_momentum")
        now = energy(world)
        assert np.abs(p - momentum).max() < 1e-9 * 8 and np.abs(L - spin).max() < 1e-9 * 8 * SIDE
        assert now < least * (1 + 1e-5)  # a spinning body alone is that exact
        least = now
    # Boxes that do not overlap, however they are turned, have balls of half a side in them that do not either.
    apart = middle(other) - middle(one)
    assert np.linalg.norm(apart) > 0.95 * SIDE and apart[0] > 0
    before, after = 2 * 8.0, other.diagnostics()["momentum"][0] - one.diagnostics()["momentum"][0]
    assert after > -0.3 * before
    if aside == 0:
        assert -0.02 * before < after < 0.9 * before


@pytest.mark.slow
def test_a_stack_rests():
    """Box on box on the ground, put down with no gap: the upper one sinks by no more than its own weight presses the
    two, ρ g (½ + 3/2) side²/E = 0.0008 m at most, and comes to rest."""
    lower, upper = box((0, 0.1, 0), name="lower"), box((0.01, 0.3, 0.02), name="upper")
    world = world_of(lower, upper, px.Ground())
    start = middle(upper)
    for _ in range(60):
        world.advance(1 / 60)
    way = middle(upper) - start
    assert -0.0012 < way[1] < 0 and -way[1] < 0.05 * upper.unit
    assert np.abs(way[[0, 2]]).max() < 0.05 * upper.unit
    assert np.abs(upper.velocities).max() < 2e-3 and np.abs(lower.velocities).max() < 2e-3


@pytest.mark.parametrize("model", ["modal", "galerkin"])
@pytest.mark.parametrize("young", [1e6, 1e8])
def test_a_box_at_rest_stays_there_however_time_is_cut(model, young):
    """On a held rigid table it is as deep as its weight presses it, about ρ g h²/2E, in steps of any length: in frames
    of changing lengths no place of it goes up or down by more than two hundredths of that. (Bent as in a step of
    another length, and taken back half the way to where it would fall for the energy of being lifted, it sank by
    centimetres.)"""
    table = px.Body(px.load("box", points=1000), model="rigid", size=3 * SIDE, at=(0, 0, 0), name="table")
    one = px.Body(
        px.load("box", points=1000), material=SOFT.but(young=young, damping=1e-3), model=model, nodes=64, size=SIDE,
        at=(-0.1, 3 * SIDE, 0), name="one",
    )  # fmt: skip
    world = world_of(table, one)
    table.fix(px.Box((-1, -1, -1), (1, 0.02, 1)))
    depth, lowest = 1000 * 9.81 * SIDE**2 / 2 / young, []
    for frame in (1 / 60, 0.013, 0.02, 1 / 240, 0.01, 1 / 70) * 5:
        world.advance(frame)
        lowest.append(one.positions[:, 1].min() - 3 * SIDE)
    assert -1.5 * depth < min(lowest[12:]) and np.ptp(lowest[12:]) < 0.02 * depth


@pytest.mark.parametrize("model", ["modal", pytest.param("galerkin", marks=pytest.mark.slow)])
def test_soft_boxes_off_each_other_do_not_creep(model):
    """Three boxes, each a tenth of its side off the one below: the weight above leans on them, they tilt by some tenths
    of a millimetre and rest. Friction holds by far, so that nothing slides: within half a second none goes farther than
    5 µm. (By where impulses were thought to lead, not by where
    places had gone, anchors let the lowest one creep by 11 µm, the highest by 28 µm.)"""
    material = SOFT.but(young=1e7, damping=0.05)
    cloud = px.load("box", points=1000)
    boxes = [
        px.Body(cloud, material=material, nodes=27, model=model, size=SIDE, at=(0.02 * k, SIDE * k, 0), name=f"box {k}")
        for k in range(3)
    ]
    world = world_of(*boxes, px.Ground(friction=0.5))
    world.advance(0.75)
    start = [middle(body) for body in boxes]
    world.advance(0.5)
    assert max(np.abs(middle(body) - at).max() for body, at in zip(boxes, start, strict=True)) < 5e-6


@pytest.mark.parametrize("rigid", [False, True])
def test_friction_holds_up_to_its_angle(rigid):
    """On a slope tan α a box stays below μ = √(0.4²), and above slides with g (sin α − μ cos α)."""
    for slope in (0.3, 0.6):
        angle = np.arctan(slope)
        gravity = 9.81 * np.array([np.sin(angle), -np.cos(angle), 0.0])
        table = box((0, -0.1, 0), name="table", friction=0.4)
        upper = box((-0.06, 0.1, 0), name="upper", rigid=rigid, friction=0.4)
        world = world_of(table, upper, gravity=gravity)
        table.fix(lambda X: X[:, 1] < -0.1)
        world.advance(0.05)
        start, speed = middle(upper)[0], upper.velocities[:, 0].mean()
        world.advance(0.15)
        if slope < 0.4:
            assert abs(middle(upper)[0] - start) < 0.02 * upper.unit
        else:
            expected = 9.81 * (np.sin(angle) - 0.4 * np.cos(angle)) * 0.15
            assert upper.velocities[:, 0].mean() - speed == pytest.approx(expected, rel=0.1)


def test_crumbs_fall_along_a_parabola_and_spin_on():
    """c = c₀ + v t + g t²/2 to rounding in any number of steps; L and spin energy are kept."""
    crumb = box((0, 1, 0), rigid=True, velocity=(1, 2, 0.5), spin=(3, 5, 7))
    world = world_of(crumb)
    start, first = middle(crumb), crumb.diagnostics()
    v = first["momentum"] / first["mass"]
    for _ in range(7):
        world.advance(0.1)
    last, t = crumb.diagnostics(), 0.7
    fall = v * t + 0.5 * np.array([0, -9.81, 0]) * t**2
    assert np.abs(middle(crumb) - start - fall).max() < 1e-12
    own = [one["angular_momentum"] - np.cross(x, one["momentum"]) for one, x in ((first, start), (last, middle(crumb)))]
    assert np.abs(own[1] - own[0]).max() < 1e-12
    assert last["kinetic"] + last["potential"] == pytest.approx(first["kinetic"] + first["potential"], rel=1e-3)
    ends = [crumb.surface.positions[[0, -1]], crumb.placed_cloud()[[0, -1]]]
    assert np.ptp(np.linalg.norm([x[1] - x[0] for x in ends], axis=1)) < 1e-6 * SIDE
    assert np.ptp([np.linalg.norm(ends[0][0] - middle(crumb)), np.linalg.norm(ends[1][0] - start)]) < 1e-6 * SIDE


@pytest.mark.parametrize("density", [1e-6, 1e3, 1e12])
def test_a_crumb_of_any_mass_comes_to_rest(density):
    """It tumbles onto the ground, loses all energy there, and lies on a face: nothing depends on its mass. While it
    rocks on an edge, steps that lead on with the velocity at their end swing about its energy, by 1e-5 of it."""
    crumb = box((0, 0.3, 0), rigid=True, material=SOFT.but(density=density), velocity=(1, 0, 0), spin=(0, 0, 3))
    world = world_of(crumb, px.Ground(friction=0.5))
    least = energy(world)
    for _ in range(20):
        world.advance(0.1)
        now = energy(world)
        assert now < least * (1 + 1e-4)
        least = now
    height = crumb.surface.positions[:, 1]
    assert abs(height.min()) < 1e-3 * SIDE and height.max() == pytest.approx(SIDE, rel=0.01)
    assert crumb.diagnostics()["kinetic"] < 1e-6 * 8 * density / 1000


def test_a_run_goes_on_from_a_checkpoint_with_the_same_bits(tmp_path):
    """In the middle of a collision, a crumb among them."""

    def made():
        one, other = box((-0.1, 0, 0), velocity=(1, 0, 0), name="one"), box((0.11, 0.1, 0), name="other")
        return weightless(one, other, box((0.1, 0.4, 0), rigid=True, velocity=(0, -3, 0), name="crumb"))

    world, again = made(), made()
    world.advance(0.03)
    world.save(tmp_path / "now.npz")
    again.restore(tmp_path / "now.npz")
    for some in (world, again):
        some.advance(0.02)
    for one, other in zip(world.bodies, again.bodies, strict=True):
        assert np.array_equal(one.positions, other.positions) and np.array_equal(one.velocities, other.velocities)


def test_far_apart_each_moves_as_if_alone():
    """To the bit."""
    alone = world_of(box((0, 0.5, 0), name="one"), px.Ground())
    both = world_of(box((0, 0.5, 0), name="one"), box((3, 0.4, 0), name="other"), px.Ground())
    for world in (alone, both):
        world.advance(0.05)
    assert np.array_equal(alone.bodies[0].positions, both.bodies[0].positions)
