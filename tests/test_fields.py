"""Force fields: closed forms of what pushes a body unevenly, and that they come, go and are saved."""

import itertools
from functools import cache

import numpy as np
import pytest

import phyxel as px
from phyxel.errors import CheckpointError
from phyxel.movers.phyxel_bodies import phyxels_of
from tests.physics.matter import displace
from tests.worlds import bits, left_end, middle, weightless, world_of

SOFT = px.Material(young=1e5, poisson=0.3, density=1000.0)
NOWHERE = (0.0, 0.0, 0.0)
G = (0.0, -9.81, 0.0)
INTEGRATORS = ["leapfrog", "implicit"]
POINTS = 20_000
SIDE = 0.5
"""of the box [m]"""


@cache
def solid(shape: str) -> px.Solid:
    return px.Solid(px.load(shape, points=POINTS))


def body_of(shape: str = "box", **options) -> px.Body:
    return px.Body(solid(shape).skin, **({"nodes": 64, "material": SOFT, "place": "center"} | options))


def drift(body: px.Body):
    return np.average(body.velocities, axis=0, weights=body.masses)


# A function of place, velocity and time


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("held", [True, False])
def test_a_field_that_is_gravity_moves_as_gravity_does(integrator, held):
    """The same numbers reach the same sums: positions agree to single precision. Stiff and slow, so that the size of a
    step is kept: fields have it looked at more often."""
    ends = []
    for field in (False, True):
        body = body_of(integrator=integrator, material=SOFT.but(young=1e6), spin=(0, 0.2, 0.1))
        world = world_of(body, gravity=NOWHERE if field else G)
        if field:
            world.add(px.Field(lambda x, v, t: np.broadcast_to(G, x.shape)))
        if held:
            body.fix(left_end)
        world.advance(0.2)
        ends.append(body.positions)
    assert np.abs(ends[0] - ends[1]).max() < 1e-6 * SIDE


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_field_of_time_gives_the_momentum_of_its_integral(integrator):
    """a = a₀ sin ωt gives v = a₀ (1 − cos ωt)/ω; sums over steps of Δt that begin with a sample are off by
    ½Δt [a] + Δt²/12 [a'] at most, that is a₀Δt/2 + ωa₀Δt²/6."""
    body = body_of(integrator=integrator)
    world = weightless(body, px.Field(lambda x, v, t: (3 * np.sin(8 * t), 0, 0)))
    for _ in range(6):
        world.advance(0.05)
        assert drift(body)[0] == pytest.approx(
            3 * (1 - np.cos(8 * world.time)) / 8, abs=3 * 0.01 / 2 + 8 * 3 * 0.01**2 / 6
        )


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_resistance_by_velocity_slows_exponentially(integrator):
    """a = −k v: v = v₀ e^(−kt); explicit steps of Δt lose k²Δt t/2 of it, 2 % for k = 2, t = 1."""
    body = body_of(integrator=integrator, velocity=(1, 0, 0))
    world = weightless(body, px.Field(lambda x, v, t: -2 * v))
    world.advance(1.0)
    assert drift(body)[0] == pytest.approx(np.exp(-2), rel=0.025)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_an_uneven_field_turns_a_free_body(integrator):
    """a = α × (x − x_c) gives the angular momentum dL/dt = I α, and no momentum."""
    body = body_of(integrator=integrator, material=SOFT.but(young=1e6))
    arm = body.reference - body.centre
    inertia = body.masses @ (arm[:, 0] ** 2 + arm[:, 2] ** 2)
    world = weightless(body, px.Field(lambda x, v, t: np.cross((0, 3.0, 0), x - x.mean(axis=0))))
    world.advance(0.1)
    sums = body.diagnostics()
    assert sums["angular_momentum"][1] == pytest.approx(inertia * 3 * 0.1, rel=0.01)
    assert np.abs(sums["momentum"]).max() < 1e-4 * sums["mass"]
    assert np.abs(sums["angular_momentum"][[0, 2]]).max() < 1e-3 * sums["angular_momentum"][1]


@pytest.mark.parametrize("returned", [np.zeros((2, 3)), np.full(3, np.nan)], ids=["shape", "not a number"])
def test_a_function_that_returns_nonsense_is_named(returned):
    world = weightless(body_of(), px.Field(lambda x, v, t: returned, name="odd"))
    with pytest.raises(px.PhyxelError, match='field "odd"'):
        world.advance(0.01)


# Attraction


def test_attraction_pulls_with_the_square_of_the_distance():
    """Far outside a small body is a point mass: dp/dt = m s R²/d², uneven over the body by (size/d)², 1e-3 here."""
    body = body_of(at=(10, 0, 0))
    world = weightless(body, px.Attraction((0, 0, 0), strength=50.0, radius=2.0))
    world.advance(0.01)
    sums = body.diagnostics()
    assert np.allclose(sums["momentum"] / 0.01 / sums["mass"], [-50 * 4 / 100, 0, 0], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_inside_the_ball_a_body_swings_about_the_centre(integrator):
    """a = −(s/R) d is linear: the middle of mass is at x₀ cos ωt, ω² = s/R. A step of the first order, of Δt ≤ 0.01 s,
    is off by ωΔt/2 in phase at once, and by (ωΔt)²/24 in frequency."""
    body = body_of(at=(0.5, 1, 0), integrator=integrator)
    world = weightless(body, px.Attraction((0, 1, 0), strength=40.0, radius=1.0))
    omega, turn = np.sqrt(40.0), 0.01 * np.sqrt(40.0)
    for _ in range(12):
        world.advance(0.1)
        expected = [0.5 * np.cos(omega * world.time), 1, 0]
        off = turn / 2 + omega * world.time * turn**2 / 24
        assert np.abs(middle(body) - expected).max() < 0.5 * off


def test_a_circle_stays_a_circle():
    """v² = s R²/r: after a whole round the body is as far from the centre as before, within 1 %."""
    speed, r = np.sqrt(10.0 / 2), 2.0
    body = body_of(at=(r, 0, 0), velocity=(0, 0, speed), size=0.1)
    world = weightless(body, px.Attraction((0, 0, 0), strength=10.0))
    for _ in range(4):
        world.advance(0.25 * 2 * np.pi * r / speed)
        assert np.linalg.norm(middle(body)) == pytest.approx(r, rel=0.01)
    assert np.abs(middle(body) - [r, 0, 0]).max() < 0.03 * r


def test_a_radial_field_follows_its_power_about_a_point_or_an_axis():
    """a = −s (r/R)ᵖ outside R and −s r/R inside, towards the centre or straight to the axis."""
    x = np.array([[3.0, 1, 0], [0.2, 1, 0.1], [-4, 1, 2], [1, 5, -2]])
    for axis, arm in ((None, x - [0, 1, 0]), ((0, 0, 2), (x - [0, 1, 0]) * [1, 1, 0])):
        r = np.linalg.norm(arm, axis=1, keepdims=True)
        for power in (-2.0, -1.0, 0.0, 1.5):
            field = px.Attraction((0, 1, 0), strength=-3.0, radius=0.5, power=power, axis=axis)
            expected = 3.0 * np.where(r > 0.5, (r / 0.5) ** power, r / 0.5) * arm / r
            assert np.allclose(field.acceleration(None, x, x, 0.0), expected, rtol=1e-12)


# Pushes, and fields that act for a time

MODELS = [{"integrator": "leapfrog"}, {"integrator": "implicit"}, {"model": "galerkin"}, {"model": "modal"}]
RIGHT = px.Box((0.0, -1.0, -1.0), (1.0, 1.0, 1.0))


@pytest.mark.parametrize("options", MODELS, ids=lambda one: next(iter(one.values())))
def test_a_push_gives_its_force_times_the_time_it_acts(options):
    """p = F (t − start) until its end, whatever the steps: to the rounding of single precision, 1e-6."""
    body, force = body_of(**options), np.array([3.0, -1, 2])
    world = weightless(body, px.Push(force, RIGHT, during=(0.0137, 0.0531)))
    for time in (0.01, 0.03, 0.1):
        world.advance(time - world.time)
        expected = force * np.clip(time - 0.0137, 0, 0.0531 - 0.0137)
        assert np.abs(body.diagnostics()["momentum"] - expected).max() < 1e-6 * 0.1


def test_a_clock_that_is_off_by_rounding_neither_misses_a_switch_nor_steps_to_it():
    wind = px.Wind((1, 0, 0), during=(0.3, np.inf))
    for now in (0.3, 0.1 + 0.2, np.nextafter(0.3, 0)):
        assert wind.is_on(now) and not wind.switches(now, 0.4) and not wind.switches(0.2, now)
    assert not wind.is_on(0.3 - 1e-9) and wind.switches(0.3 - 1e-9, 9.0) == [0.3]


def test_a_push_is_shared_out_by_mass_over_the_place_it_is_for():
    """Every node of the place has the same acceleration, and Σ m a = F, also where density and weights vary."""
    colors = np.zeros((POINTS, 3))
    colors[:, 0] = solid("box").skin.positions[:, 0] > 0
    body = px.Body(solid("box").skin.with_colors(colors), nodes=64, vary={"density": px.Channel("y", 500, 2000)})
    right = np.flatnonzero(RIGHT(body.birth))
    corner = np.array(body.birth[right[0]])
    world = weightless(body)
    places = {
        "box": (RIGHT, right),
        "ball": (px.Ball(corner, 0.01), right[:1]),
        "spot": (px.Spot(corner, 0.2), body.pick(corner, 0.2)),
        "function": (lambda x: x[:, 0] > 0, right),
        "indices": (right, right),
        "all": (None, np.arange(len(body.birth))),
    }
    for where, nodes in places.values():
        push = px.Push((1, 2, 3), where)
        world.add(push)
        a = push.acceleration(body, body.positions, body.velocities, 0.0)
        assert np.allclose(body.masses @ a, [1, 2, 3], rtol=1e-12)
        assert np.array_equal(np.flatnonzero(a[:, 0]), np.sort(nodes)) and np.ptp(a[nodes], axis=0).max() < 1e-12
    for weights, level in ((px.Channel("red", 0, 1), None), (lambda x: x[:, 1] + 1, body.birth[:, 1] + 1)):
        push = px.Push((1, 2, 3), weights)
        world.add(push)
        a = push.acceleration(body, body.positions, body.velocities, 0.0)
        assert np.allclose(body.masses @ a, [1, 2, 3], rtol=1e-12)
        level = weights.over(body) if level is None else level
        assert np.allclose(a[:, 0] / a[:, 0].max(), level / level.max(), atol=1e-12)
        assert np.ptp(level) > 0.3


def test_what_falls_apart_shares_a_push_and_keeps_its_place():
    """Nodes are pushed as before the body broke, so the pieces have F t together, and one without a place has none."""
    body = body_of()
    numbers = np.flatnonzero(body.birth[:, 0] > 0.1)
    world = weightless(body, px.Push((4, 0, 0), numbers), px.Push((0, 0, 2)))
    body.cut((0.0, 0.0, 0.0), (1, 0, 0))
    world.advance(0.05)
    assert len(world.bodies) == 2
    momenta = [one.diagnostics()["momentum"] for one in world.bodies]
    before = np.sum(momenta, axis=0)
    world.advance(0.05)
    gained = np.array([one.diagnostics()["momentum"] for one in world.bodies]) - momenta
    assert np.allclose(before, [0.2, 0, 0.1], atol=1e-5)
    assert np.allclose(gained.sum(axis=0), [0.2, 0, 0.1], atol=1e-5)
    idle = int(np.argmin([one.birth[:, 0].max() for one in world.bodies]))
    assert np.abs(gained[idle, 0]) < 0.01 < gained[idle, 2]
    for where, shares in ((px.Box((-1, 0, -1), (1, 1, 1)), 2), (RIGHT, 1)):
        late = px.Push((0, 5, 0), where, bodies=[body.name])
        world.add(late)
        forces = [one.masses @ late.acceleration(one, one.positions, one.velocities, 0.0) for one in world.bodies]
        assert np.allclose(np.sum(forces, axis=0), [0, 5, 0]) and np.count_nonzero(np.array(forces)[:, 1]) == shares


# Wind


def push_of_wind(body: px.Body, wind: px.Wind) -> np.ndarray:
    """Force on a body at rest [N], from the momentum of the first millisecond."""
    world = weightless(body, wind)
    world.advance(1e-3)
    return body.diagnostics()["momentum"] / 1e-3


def test_wind_on_a_plate_across_it():
    """F = ½ρ c A w²; areas of the skin are known within a few per cent."""
    force = push_of_wind(body_of(), px.Wind((0, 0, -8), density=1.3, drag=1.1))
    assert force[2] == pytest.approx(-0.5 * 1.3 * 1.1 * SIDE**2 * 64, rel=0.03)
    assert np.abs(force[:2]).max() < 0.01 * abs(force[2])


def test_wind_on_an_edge():
    """Two faces at 45°: w_n = w/√2 on each, so F = ½ρ c A w²/√2 in all."""
    force = push_of_wind(body_of(rotate=(0, 45, 0)), px.Wind((0, 0, -8)))
    assert force[2] == pytest.approx(-0.5 * 1.2 * SIDE**2 * 64 / np.sqrt(2), rel=0.03)
    assert np.abs(force[:2]).max() < 0.02 * abs(force[2])


def test_wind_on_a_sphere():
    """½ρ c w² ∫cos³θ dA over the windward half is that of a plate of half its section, πR²/2."""
    force = push_of_wind(body_of("sphere", nodes=400), px.Wind((8, 0, 0)))
    assert force[0] == pytest.approx(0.5 * 1.2 * 64 * np.pi * 0.25**2 / 2, rel=0.03)


def test_no_wind_is_felt_by_what_moves_with_it():
    body = body_of(velocity=(3, 0, 0))
    world = weightless(body, px.Wind((3, 0, 0)))
    world.advance(0.2)
    assert np.abs(body.velocities - [3, 0, 0]).max() < 1e-5


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_air_brings_a_fall_to_its_terminal_velocity(integrator):
    """v = v_t tanh(g t/v_t), v_t² = 2 m g/(ρ c A): half the error of the area, and 1 % for steps of 0.01 s."""
    body = body_of(material=px.Material.foam(), integrator=integrator)
    world = world_of(body, px.Wind((0, 0, 0), density=12.0))
    terminal = np.sqrt(2 * 40 * SIDE * 9.81 / 12.0)
    for _ in range(4):
        world.advance(0.3)
        expected = terminal * np.tanh(9.81 * world.time / terminal)
        assert drift(body)[1] == pytest.approx(-expected, rel=0.025)
    assert world.time > terminal / 9.81


def test_the_skin_turns_and_grows_with_the_body():
    """Nanson: a turned body has its skin turned; one stretched to twice in x has twice the area across y and z."""
    skin = body_of().skin
    count = skin.node.max() + 1
    turn = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    assert np.allclose(skin.moved(np.broadcast_to(turn, (count, 3, 3))), skin.area @ turn.T)
    stretched = skin.moved(np.broadcast_to(np.diag([2.0, 1, 1]), (count, 3, 3)))
    assert np.allclose(stretched, skin.area * [1, 2, 2])


# Coming and going


def test_a_field_acts_on_the_bodies_it_names():
    bodies = [body_of(name=name, at=(k, 0, 0)) for k, name in enumerate(("tom", "ann", "bob"))]
    world = weightless(*bodies, px.Field(lambda x, v, t: (1, 0, 0), bodies=["tom", bodies[2]]))
    world.advance(0.1)
    assert [round(float(drift(body)[0]), 6) for body in bodies] == [0.1, 0.0, 0.1]


def test_a_removed_field_acts_no_more_and_costs_nothing():
    body = body_of()
    world = weightless(body)
    world.advance(0.01)
    assert len(phyxels_of(world).model.outside.extra) == 0
    field = px.Field(lambda x, v, t: (1, 0, 0))
    world.add(field)
    world.advance(0.1)
    assert len(phyxels_of(world).model.outside.extra) == len(body.reference)
    world.remove(field)
    world.advance(0.1)
    assert len(phyxels_of(world).model.outside.extra) == 0
    assert drift(body)[0] == pytest.approx(0.1, rel=1e-5)
    with pytest.raises(px.PhyxelError, match="not in this world"):
        world.remove(field)


def test_a_collider_can_be_removed_too():
    body, ground = body_of(at=(0, 0.25, 0)), px.Ground()
    world = world_of(body, ground)
    world.advance(0.2)
    before = middle(body)[1]
    world.remove(ground)
    world.advance(0.4)
    assert middle(body)[1] - before == pytest.approx(-0.5 * 9.81 * 0.16, rel=0.1)


def test_work_by_a_field_is_no_blow_up():
    body = body_of(material=SOFT.but(damping=1e-3))
    world = weightless(body, px.Attraction((30, 0, 0), strength=100.0, radius=30.0))
    for _ in range(10):
        world.advance(0.1)
    assert world.steps > 300
    assert body.diagnostics()["kinetic"] > 1e4


def test_settling_in_a_field_is_settling_in_gravity():
    sags = []
    for things, gravity in (((), G), ((px.Field(lambda x, v, t: G),), NOWHERE)):
        body = body_of()
        world = world_of(body, *things, gravity=gravity)
        body.fix(left_end)
        px.settle(world)
        sags.append(body.positions - body.reference)
    assert np.abs(sags[0] - sags[1]).max() < 1e-3 * np.abs(sags[0]).max()


@pytest.mark.parametrize(
    "make, word",
    [
        (lambda: px.Wind((1, 2)), "velocity"),
        (lambda: px.Wind((1, 0, 0), density=-1), "density"),
        (lambda: px.Wind((1, 0, 0), drag=np.nan), "drag"),
        (lambda: px.Attraction((0, np.inf, 0), 1.0), "centre"),
        (lambda: px.Attraction((0, 0, 0), np.nan), "strength"),
        (lambda: px.Attraction((0, 0, 0), 1.0, radius=0), "radius"),
        (lambda: px.Attraction((0, 0, 0), 1.0, power=np.inf), "power"),
        (lambda: px.Attraction((0, 0, 0), 1.0, axis=(0, 0, 0)), "axis"),
        (lambda: px.Wind((1, 0, 0), bodies="tom"), "list"),
        (lambda: px.Field(lambda x, v, t: x, during=(2.0, 1.0)), "during"),
        (lambda: px.Wind((1, 0, 0), during=3.0), "during"),
        (lambda: px.Push((1, np.nan, 0)), "force"),
        (lambda: weightless(body_of(), px.Push((1, 0, 0), px.Ball((9, 9, 9), 1.0))), "no node"),
        (lambda: weightless(body_of(), px.Push((1, 0, 0), lambda x: -x[:, 0])), "weight"),
        (lambda: weightless(body_of(), px.Push((1, 0, 0), px.Channel("x", 0, 0))), "0 everywhere"),
        (lambda: px.Filling(0.0), "bulk"),
        (lambda: px.Filling(1e4, -1.0), "amount"),
        (lambda: weightless(body_of(), px.Filling(1e4)), 'model = "particles"'),
        (lambda: px.Wrap("jack", 10.0), "collider"),
        (lambda: px.Wrap(px.Ground(), -1.0), "pressure"),
        (lambda: weightless(body_of(name="tom"), px.Wind((1, 0, 0), bodies=["tmo"])), '"tom"'),
    ],
)
def test_absurd_fields_are_refused(make, word):
    with pytest.raises(px.PhyxelError, match=word):
        make()


# Gravity while it runs


def test_gravity_can_change_at_any_time():
    body = body_of()
    world = world_of(body)
    world.at(0.1, lambda w: setattr(w, "gravity", NOWHERE))
    world.advance(0.3)
    assert drift(body)[1] == pytest.approx(-0.981, rel=1e-5)
    world.gravity = (2, 0, 0)
    for _ in range(10):
        world.advance(0.1)
    assert drift(body)[0] == pytest.approx(2, rel=1e-5)
    with pytest.raises(px.PhyxelError, match="gravity"):
        world.gravity = (1, 2)


# Checkpoints


def windy(options: dict) -> px.World:
    """A held body in the wind, pulled, until an event stills the wind, turns gravity and takes the ground away."""
    body, wind, ground = body_of(**options), px.Wind((5, 0, 2), density=50.0), px.Ground(-0.26)
    tug = px.Push((0, 0, 40), RIGHT, during=(0.043, 0.157))
    world = world_of(body, wind, px.Attraction((1, 0, 0), 5.0), tug, ground)
    body.fix(left_end)

    def calm(_world):
        world.remove(wind)
        world.remove(ground)
        world.gravity = (0, 0, 3)

    world.at(0.12, calm)
    return world


@pytest.mark.parametrize("options, when", [*itertools.product(MODELS[:2], (0.043, 0.15)), (MODELS[2], 0.15)])
def test_a_resumed_world_in_the_wind_goes_on_with_the_same_bits(options, when, tmp_path):
    straight = windy(options)
    straight.advance(when)
    straight.save(tmp_path / "state.npz")
    resumed = windy(options)
    resumed.restore(tmp_path / "state.npz")
    for world in (straight, resumed):
        for _ in range(3):
            world.advance(0.04)
    assert bits(resumed) == bits(straight)


def test_a_checkpoint_with_other_fields_is_refused(tmp_path):
    world = weightless(body_of(), px.Wind((1, 0, 0)))
    world.save(tmp_path / "state.npz")
    with pytest.raises(CheckpointError, match="fields"):
        weightless(body_of()).restore(tmp_path / "state.npz")


# Scene files

BOX = f"""
[[body]]
name = "tom"
shape = "box"
nodes = 64
points = {POINTS}
material = {{ young = 1.0e5, density = 1000.0 }}
"""
WIND = '[[field]]\nkind = "wind"\nname = "gale"\nvelocity = [20, 0, 0]\ndensity = 100.0\n'
PUSH = '[[field]]\nkind = "push"\nforce = [6, 0, 0]\nchannel = "red"\n'
JACK = '[[collider]]\nkind = "sphere"\nname = "jack"\nradius = 0.1\n'


def test_fields_of_a_scene_act_until_an_event_removes_them():
    pull = '[[field]]\nkind = "attraction"\ncentre = [0, 9, 0]\nstrength = 2.0\nradius = 20.0\nbodies = ["tom"]\n'
    event = '[[event]]\nat = 0.1\nremove = "gale"\n'
    world = px.Scene.parse(
        "gravity = [0, 0, 0]\n" + BOX + BOX.replace("tom", "ann") + "at = [0, 0, 5]\n" + WIND + pull + event
    ).world()
    tom, ann = world.bodies
    world.advance(0.1)
    blown = drift(ann)[0]
    assert blown == pytest.approx(0.5 * 100 * 400 * SIDE**2 / 125 * 0.1, rel=0.1)
    assert drift(tom)[1] == pytest.approx(2.0 * 9 / 20 * 0.1, rel=0.05)
    world.advance(0.1)
    assert drift(ann)[0] == pytest.approx(blown, rel=1e-4)
    assert abs(drift(ann)[1]) < 0.01


def test_pushes_of_a_scene_have_a_place_or_a_colour_and_a_time():
    part = "[[body.paint]]\nlower = [0, -9, -9]\ncolor = [1, 0, 0]\n"
    plain = '[[field]]\nkind = "push"\nforce = [0, 0, 5]\nnear = [0, 0, 0.25]\nduring = [0.0, 0.02]\n'
    world = px.Scene.parse("gravity = [0, 0, 0]\n" + BOX + part + PUSH + plain).world()
    world.advance(0.1)
    assert np.allclose(world.bodies[0].diagnostics()["momentum"], [0.6, 0, 0.1], atol=1e-6)


@pytest.mark.parametrize(
    "text, words",
    [
        ("[[field]]\nvelocity = [1, 0, 0]\n", ["field[0].kind", "missing"]),
        ('[[field]]\nkind = "wnd"\n', ["field[0].kind", "wnd", '"wind"']),
        ('[[field]]\nkind = "wind"\nvelocty = [1, 0, 0]\n', ["field[0].velocty", '"velocity"']),
        ('[[field]]\nkind = "wind"\nvelocity = [1, 0, 0]\nbodies = ["tmo"]\n', ["field[0]", "tmo", '"tom"']),
        ('[[field]]\nkind = "attraction"\nstrength = 1.0\n', ["field[0].centre", "missing"]),
        (PUSH + "lower = [0, 0, 0]\n", ["field[0]", "not both"]),
        (PUSH + "during = [2, 1]\n", ["field[0]", "during", "begins"]),
        (PUSH.replace('"red"', '"rde"'), ["field[0].channel", "rde"]),
        ('[[field]]\nkind = "filling"\nbulk = 1e4\n', ["field[0]", "tom", 'model = "particles"']),
        ('[[field]]\nkind = "wrap"\npressure = 1\ncollider = "jakc"\n' + JACK, ["field[0]", "jakc", '"jack"']),
        (WIND + WIND, ["two fields"]),
        (WIND + '[[event]]\nat = 1\nremove = "gael"\n', ["event[0].remove", "gael", '"gale"']),
        (WIND + '[[event]]\nat = 1\nremove = "gale"\n' * 2, ["event[1]", "gone"]),
    ],
)
def test_wrong_fields_of_a_scene_are_named(text, words):
    with pytest.raises(px.PhyxelError) as caught:
        px.Scene.parse(BOX + text).world()
    assert all(word in str(caught.value) for word in ["scene.toml", *words]), caught.value


def test_wind_and_pick_know_a_body_that_was_reshaped():
    """Absorbing a deformation changes neither the skin that the wind meets nor where a surfel is."""
    bar = px.Body(px.load("bar", points=3000), material=px.Material(young=1e5), nodes=100, rotate=(0, 0, 0))
    world = px.World(gravity=(0, 0, 0), device="cpu")
    world.add(bar)
    angle = np.radians(90.0)
    turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
    displace(phyxels_of(world).model, (bar.birth - bar.centre) @ (turn.T - np.eye(3)) / bar.unit)
    world.revision += 1
    wind = px.Wind((10, 0, 0))

    def push() -> np.ndarray:
        return bar.masses @ wind.acceleration(bar, bar.positions, bar.velocities, 0.0)

    force, nodes = push(), bar.pick(100)
    phyxels_of(world).melting.absorb_alone(bar)
    assert push() == pytest.approx(force, rel=1e-3, abs=1e-3 * np.linalg.norm(force))
    assert np.array_equal(bar.pick(100), nodes)
    near = np.linalg.norm(bar.positions[nodes] - bar.surface.positions[100], axis=1)
    assert near.max() < 2 * bar.unit
