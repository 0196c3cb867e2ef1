"""Colliders as bodies meet them, in both integrators."""

import itertools
from functools import cache

import numpy as np
import pytest

import phyxel as px
from phyxel.errors import CheckpointError
from tests.worlds import weightless, world_of

G = 9.81
BOTH = pytest.mark.parametrize("integrator", ["leapfrog", "implicit"])
RUBBER = px.Material(young=1e6, poisson=0.3, density=1000.0, damping=1e-3)
STIFF = RUBBER.but(young=1e7)
NOWHERE = (0.0, 0.0, 0.0)


@cache
def cloud(shape: str) -> px.PointCloud:
    return px.load(shape, points=300)


@cache
def solid(shape: str) -> px.Solid:
    return px.Solid(cloud(shape))


def body(integrator: str, shape: str = "box", **options) -> px.Body:
    known = {"nodes": 64, "material": RUBBER, "place": "center"}
    return px.Body(cloud(shape), integrator=integrator, **(known | options))


def mean_velocity(one: px.Body) -> np.ndarray:
    return one.masses @ one.velocities / one.masses.sum()


# Resting


@BOTH
def test_a_box_is_as_good_as_the_ground(integrator):
    """The top of a wide box is a plane: the same motion, but for rounding that a bounce makes larger."""
    ends = []
    for collider in (px.Ground(), px.Box((-2, -1, -2), (2, 0, 2))):
        block = body(integrator, at=(0.1, 0.5, 0), rotate=(10, 20, 30))
        world_of(block, collider).advance(0.4)
        ends.append(block.positions)
    assert ends[0] == pytest.approx(ends[1], abs=1e-3 * block.unit)


@BOTH
def test_far_from_the_origin_it_is_the_same(integrator):
    """The transform is made in double: at 100 km the same motion to a thousandth of a spacing, until a node that sticks
    in one slides in the other: then ways part."""
    ends = []
    for far in (0.0, 1e5):
        block = body(integrator, at=(far, 0.3, -far), rotate=(10, 20, 30))
        world_of(block, px.Sphere(0.5, at=(far, -0.5, -far))).advance(0.12)
        ends.append(block.positions - (far, 0, -far))
    assert ends[0] == pytest.approx(ends[1], abs=1e-3 * block.unit)


@BOTH
def test_a_ball_comes_to_rest_in_a_bowl(integrator):
    """Its lowest point touches the lowest point of the bowl: the middle is as high as the difference of the radii,
    less what the ball is pressed flat: Hertz's (9 F²/16 E*² R*)^(1/3) for E* = E/(1 − ν²), 1/R* = 1/r − 1/R, and
    its own weight's as much again at most. It starts above: what starts beside it rolls to and fro for long."""
    bowl = px.Mold(solid("sphere"), inside_out=True, size=1.5, open_above=0.0, friction=0.2)
    ball = body(integrator, "sphere", at=(0, -0.45, 0), nodes=200, material=RUBBER.but(damping=1e-2))
    world_of(ball, bowl).advance(2.0)
    middle = ball.masses @ ball.positions / ball.masses.sum()
    weight, bent = ball.masses.sum() * G, 1 / (1 / 0.25 - 1 / 0.75)
    pressed = (9 * weight**2 / (16 * (1e6 / 0.91) ** 2 * bent)) ** (1 / 3)
    assert -0.5 - 2.5 * pressed < middle[1] < -0.5 + 0.02 * ball.unit
    assert abs(middle[0]) < 0.02
    assert np.abs(ball.velocities).max() < 0.02


@BOTH
def test_what_is_in_a_mold_stays_in_it(integrator):
    """Each node has a ball around it that stays free of the wall, one on the surface none; so it is never beyond it."""
    cavity = px.Mold(solid("sphere"), inside_out=True, size=1.2)
    block = body(integrator, at=(0, 0, 0), velocity=(6, 3, -2), spin=(4, 0, 9))
    world = world_of(block, cavity)
    for _ in range(20):
        world.advance(0.02)
        assert np.linalg.norm(block.positions, axis=1).max() < 0.6 + 1e-6
    assert np.abs(block.velocities).max() > 0.3, "it still moves about"


# Fast


@BOTH
@pytest.mark.parametrize("shape", ["box", "sphere"])
def test_nothing_tunnels_through_a_thin_slab(integrator, shape):
    """A slab half a spacing thick, at 20 m/s: no node gets below its upper face."""
    bullet = body(integrator, shape, at=(0, 0.4, 0), velocity=(0, -20, 0))
    slab = px.Box((-2, -0.5 * bullet.unit, -2), (2, 0, 2))
    world = world_of(bullet, slab)
    for _ in range(20):
        world.advance(0.002)
        assert bullet.positions[:, 1].min() > -1e-3 * bullet.unit
    assert mean_velocity(bullet)[1] > 0, "it was thrown back"


@BOTH
def test_a_fast_slab_does_not_pass_through_a_resting_body(integrator):
    target = body(integrator, at=(0, 0.4, 0))
    slab = px.Box((-2, -0.5 * target.unit, -2), (2, 0, 2), path=[(0, NOWHERE), (0.04, (0, 0.8, 0))])
    world = weightless(target, slab)
    for _ in range(20):
        world.advance(0.002)
        assert target.positions[:, 1].min() > slab.pose(world.time)[0][1] + (0.25 - 0.01) * target.unit
    assert mean_velocity(target)[1] > 20, "it was hit, and springs off"


@BOTH
def test_a_moving_collider_hits_as_hard_as_a_moving_body(integrator):
    """Galilei: a body thrown at a wall, and a wall driven at a body, part with the same relative velocity. To 2 %:
    rounding and other steps."""
    parted = []
    for thrown in (True, False):
        speed = 4.0
        block = body(integrator, at=(0, 0.3, 0), velocity=(1, -speed, 0) if thrown else (1, 0, 0))
        path = None if thrown else [(0, NOWHERE), (1, (0, speed, 0))]
        wall = px.Box((-2, -1, -2), (2, 0, 2), restitution=0.5, friction=0.2, path=path)
        weightless(block, wall).advance(0.1)
        parted.append(mean_velocity(block) - (0 if thrown else (0, speed, 0)))
    assert parted[0][1] > 0.25
    assert parted[0] == pytest.approx(parted[1], abs=0.02 * speed)


def test_restitution_one_keeps_energy_and_zero_takes_some():
    """Blocks that fall flat, from several heights: with e = 0 the layer that touches stops dead, which costs its share
    of the energy. With e = 1 a phyxel turns round at the end of the step in which it arrives, a little late, which adds
    or takes up to 6 % of the whole by how steps fall; in the mean there is nothing but the ringing that is lost."""
    left: dict[float, list[float]] = {0.0: [], 1.0: []}
    for height, restitution in itertools.product((0.3, 0.301, 0.302, 0.304, 0.31, 0.32, 0.33), left):
        block = body("leapfrog", at=(0, height, 0), velocity=(0, -2, 0), material=px.Material(young=1e6, poisson=0.3))
        world = weightless(block, px.Box((-1, -1, -1), (1, 0, 1), friction=0, restitution=restitution))
        world.advance(0.12 + (height - 0.3) / 2)
        sums = block.diagnostics()
        left[restitution].append((sums["kinetic"] + sums["elastic"]) / (0.5 * sums["mass"] * 2**2))
        assert sums["momentum"][1] > 0.4 * 2 * sums["mass"], "it has bounced"
    assert 0.95 < np.mean(left[1.0]) < 1.01
    assert max(left[1.0]) < 1.06
    assert max(left[0.0]) < 0.8


# Rubbing


def down_a_slope(degrees: float, integrator: str) -> tuple[float, float]:
    """How far a block on a turned box has gone down in a quarter of a second [m], and how much faster it got [m/s²]."""
    angle = np.radians(degrees)
    across, down = np.array([np.sin(angle), np.cos(angle), 0]), np.array([np.cos(angle), -np.sin(angle), 0])
    block = body(integrator, at=0.25 * across, rotate=(0, 0, -degrees), nodes=125, material=STIFF)
    slope = px.Box((-3, -0.2, -1), (3, 0, 1), at=-0.1 * across - (0, -0.1, 0), rotate=(0, 0, -degrees))
    world = world_of(block, slope)
    world.advance(0.25)
    place, speed = (block.positions @ down).mean(), (block.velocities @ down).mean()
    world.advance(0.25)
    return (block.positions @ down).mean() - place, ((block.velocities @ down).mean() - speed) / 0.25


@BOTH
def test_friction_holds_on_a_turned_box(integrator):
    """tan 20° = 0.36 is below μ = 0.5."""
    assert abs(down_a_slope(20.0, integrator)[0]) < 5e-4


@BOTH
def test_it_slides_down_a_steep_one(integrator):
    """g (sin 40° − μ cos 40°), to 5 %: it starts with a jolt, and rocks."""
    angle = np.radians(40.0)
    assert down_a_slope(40.0, integrator)[1] == pytest.approx(G * (np.sin(angle) - 0.5 * np.cos(angle)), rel=0.05)


@BOTH
def test_a_moving_box_carries_what_lies_on_it(integrator):
    """Friction brings it up to speed with μg, over v²/(2μg) less way than the box has gone."""
    block = body(integrator, at=(0, 0.25, 0), material=STIFF)
    world = world_of(block, px.Box((-2, -1, -2), (2, 0, 2), path=[(0, NOWHERE), (1, (1, 0, 0))]))
    world.advance(0.5)
    assert mean_velocity(block) == pytest.approx([1, 0, 0], abs=0.02)
    way = block.positions[:, 0].mean() - block.reference[:, 0].mean()
    assert way == pytest.approx(0.5 - 1 / (2 * 0.5 * G), abs=0.01)


@BOTH
def test_a_turntable_takes_what_stands_on_it_round(integrator):
    """Where friction holds it (ω² r = 0.8 m/s² below μg = 4.9) a block goes round with the table: v = ω × r."""
    turns = [(0.5 * k, NOWHERE, (0, np.degrees(1.0 * k), 0)) for k in range(4)]
    block = body(integrator, at=(0.2, 0.1, 0), size=0.2, material=STIFF)
    world = world_of(block, px.Box((-1, -0.2, -1), (1, 0, 1), path=turns))
    world.advance(1.0)
    middle = block.positions.mean(axis=0)
    assert mean_velocity(block) == pytest.approx(np.cross([0, 2, 0], middle), abs=0.02)
    # 2 rad less what it slips while it is brought up to speed: v²/(2μg) = 16 mm of 0.2 m
    assert np.arctan2(-middle[2], middle[0]) == pytest.approx(2.0 - 0.082, abs=0.03)


# Coming and going


@BOTH
def test_what_is_taken_away_holds_nothing(integrator):
    """A block on a table falls freely from the moment the table is removed."""
    block = body(integrator, at=(0, 0.25, 0), material=RUBBER.but(damping=1e-2))
    table = px.Box((-1, -1, -1), (1, 0, 1))
    world = world_of(block, px.Ground(height=-9), table)
    world.advance(0.5)
    height = block.positions[:, 1].mean()
    world.remove(table)
    world.advance(0.2)
    assert height - block.positions[:, 1].mean() == pytest.approx(0.5 * G * 0.2**2, rel=0.06)
    assert mean_velocity(block)[1] == pytest.approx(-G * 0.2, rel=0.01)
    with pytest.raises(px.PhyxelError, match="not in this world"):
        world.remove(table)


def test_a_checkpoint_knows_its_colliders(tmp_path):
    def made(shape: str, **options) -> px.World:
        mold = px.Mold(px.load(shape, points=300), at=(0, -1, 0), **options)
        world = world_of(body("leapfrog", at=(0, 0.3, 0)), mold, px.Sphere(0.2, path=lambda t: (5 + t, 0, 0)))
        world.at(0.02, lambda now: now.remove(mold))
        return world

    world = made("box")
    world.advance(0.01)
    world.save(tmp_path / "before.npz")
    made("box").restore(tmp_path / "before.npz")
    for other in (made("sphere"), made("box", friction=0.1)):
        with pytest.raises(CheckpointError, match="other colliders"):
            other.restore(tmp_path / "before.npz")
    world.advance(0.04)
    world.save(tmp_path / "after.npz")
    world.advance(0.02)
    again = made("box")
    again.restore(tmp_path / "after.npz")
    assert len(again.colliders) == 1, "the mold is gone there too"
    again.advance(0.02)
    assert np.array_equal(world.bodies[0].positions, again.bodies[0].positions)


def test_what_starts_in_a_collider_is_refused():
    world = world_of(body("leapfrog"), px.Sphere(0.3, at=(0.1, 0, 0)))
    with pytest.raises(px.PhyxelError, match=r"box: starts 0\.\d+ m inside the sphere"):
        world.advance(0.01)


# Paths and errors


def test_keyframes_are_gone_through_evenly():
    ball = px.Sphere(0.1, path=[(1, (0, 0, 0)), (2, (2, 0, 0), (0, 0, 90)), (4, (2, 4, 0))])
    places = [ball.pose(time)[0].tolist() for time in (0, 1, 1.25, 2, 3, 9)]
    assert places == [[0, 0, 0], [0, 0, 0], [0.5, 0, 0], [2, 0, 0], [2, 2, 0], [2, 4, 0]]
    third = ball.pose(1 + 1 / 3)[1] @ [1, 0, 0]
    assert third == pytest.approx([np.cos(np.pi / 6), np.sin(np.pi / 6), 0]), "a third of a quarter turn"
    assert ball.pose(5)[1] @ [1, 0, 0] == pytest.approx([0, 1, 0]), "and stays turned"
    assert px.Sphere(0.1, path=lambda t: (t, t * t, 0)).pose(3)[0].tolist() == [3, 9, 0]


def test_a_box_is_a_region_and_a_collider():
    region = px.Box((-1, -1, -1), (0, np.inf, 1))
    assert region(np.array([[-0.5, 99, 0], [0.5, 0, 0]])).tolist() == [True, False]
    with pytest.raises(px.PhyxelError, match="end on every side"):
        world_of(region)
    with pytest.raises(px.PhyxelError, match="cannot be moved or turned"):
        px.Box((0, 0, 0), (1, 1, 1), rotate=(0, 45, 0))(np.zeros((1, 3)))


WRONG = [
    (lambda: px.Sphere(-1), "sphere.radius = -1"),
    (lambda: px.Sphere(1, at=(0, 0)), "sphere.at"),
    (lambda: px.Sphere(1, friction=-1), "sphere.friction = -1: give 0 or more"),
    (lambda: px.Sphere(1, restitution=2), "sphere.restitution = 2"),
    (lambda: px.Box((0, 0, 0), (-1, 1, 1)), "lies above upper"),
    (lambda: px.Capsule((0, 0, 0), (0, 1), 0.1), "capsule.end"),
    (lambda: px.Spike(1, 0), "spike.radius = 0"),
    (lambda: px.Funnel(1, 0.1, 1, np.nan), "funnel.thickness"),
    (lambda: px.Mold("bear"), "px.load"),
    (lambda: px.Mold(cloud("box"), open_above=7.0), "open_above = 7.0"),
    (lambda: px.Sphere(1, path=[]), "path: empty"),
    (lambda: px.Sphere(1, path=[(0, NOWHERE), (0, NOWHERE)]), "rising times"),
    (lambda: px.Sphere(1, path=[(0, NOWHERE, NOWHERE, 1)]), "path[0]"),
    (lambda: px.Sphere(1, path=lambda t: t), "path(0)"),
]


@pytest.mark.parametrize(("make", "said"), WRONG, ids=[said for _, said in WRONG])
def test_absurd_colliders_are_refused(make, said):
    with pytest.raises(px.PhyxelError) as caught:
        make()
    assert said in str(caught.value)


def test_a_ground_that_comes_later_sets_bodies_down():
    """A ball of 0.2 m that a new ground cuts through stands on it and is not shot out: what its weight does to it are
    hundredths of a joule; shot out it had 250 J."""
    ball = px.Body(px.load("sphere", points=500), nodes=100, size=0.2, material=px.Material(young=1e6))
    world = px.World(device="cpu")
    world.add(ball)
    world.advance(0.001)
    world.add(px.Ground(height=-0.05))
    world.advance(0.2)
    now = ball.diagnostics()
    assert now["kinetic"] + now["elastic"] < 0.5
    assert ball.positions[:, 1].min() > -0.05 - 1e-6 * 0.2  # nodes lie on it, to single precision
