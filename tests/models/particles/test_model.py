"""Particles of a surface without links against closed forms: motion, dents, holds, filling, contact, and that nothing
blows up."""

import itertools

import numpy as np
import pytest
import warp as wp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

import phyxel as px
from phyxel import device as dev
from phyxel.contact.colliders import Ground, Sphere
from phyxel.contact.table import ColliderTable
from phyxel.errors import PhyxelError
from phyxel.material import Membrane, Mixture
from phyxel.models.particles.elements import WARP, WEFT, Elements
from phyxel.models.particles.model import ParticleModel
from phyxel.models.particles.sheet import Sheet
from phyxel.points.sheets import balloon

EPS = np.finfo(np.float64).eps
UNIT = 0.02
FILM = Membrane(density=1000.0, thickness=1e-3, foundation=2000.0, drag=3.0)
"""m/A = 1 kg/m², K/m = 2000 1/s²"""


def surface(X, materials, velocities=None, faces=None, areas=None):
    """Particles at X (n, 3) [units], each of its own material or all of one."""
    X = np.asarray(X, np.float64)
    n = len(X)
    areas = np.linspace(0.5, 1.5, n) if areas is None else areas
    sheet = Sheet(X, np.tile([0.0, 1.0, 0.0], (n, 1)), areas, faces, Elements.none())
    start = np.zeros((n, 3)) if velocities is None else np.asarray(velocities, np.float64)
    model = ParticleModel(sheet, UNIT, start, dev.pick("cpu"))
    model.set_material(Mixture.even(materials, n) if isinstance(materials, Membrane) else Mixture.of(materials))
    return model


def row(count):
    return np.stack([np.arange(count), np.zeros(count), np.zeros(count)], axis=1)


def masses(model):
    """[kg], shape (n,)"""
    return model.mixture.number("density") * model.mixture.number("thickness") * model.sheet.areas * UNIT**2


def test_any_step_leads_where_the_closed_form_does():
    """Over 10 s, in one step and in 10,000: over-, under- and critically damped, nearly so, without damping, without a
    foundation, without both; under a force."""
    critical = 2 * np.sqrt(2000.0)
    drags = [0.0, 3.0, critical, critical * (1 + 1e-9), critical * (1 - 1e-9), 500.0, 0.0, 2.0, 1e-7]
    foundations = [2000.0] * 6 + [0.0, 0.0, 1e-7]
    films = [FILM.but(drag=d, foundation=k) for d, k in zip(drags, foundations, strict=True)]
    random = np.random.default_rng(1)
    v0, force = random.normal(size=(9, 3)), random.normal(size=(9, 3)) * 1e-4
    found = {}
    for steps in (1, 10_000):
        model = surface(row(9), films, v0)
        model.set_force(force)
        for _ in range(steps):
            model.step(10.0 / steps)
        found[steps] = model
    areas = np.linspace(0.5, 1.5, 9) * UNIT**2
    for i, (d, k) in enumerate(zip(drags, foundations, strict=True)):
        f = force[i] / (areas[i] * UNIT)  # per mass, in units
        matrix = expm(np.array([[0, 1, 0], [-k, -d, 1], [0, 0, 0]]) * 10.0)
        u, v = (matrix[a, 1] * v0[i] + matrix[a, 2] * f for a in (0, 1))
        for model in found.values():
            # 10,000 steps of some rounding errors of the largest values there were; expm itself is good to 1e-10
            size = max(np.abs(u).max(), np.abs(v0).max() * min(10.0, 1 / np.sqrt(max(k, 1e-12))))
            np.testing.assert_allclose(model.u[i], u, atol=1e-9 * size, err_msg=str(i))
            np.testing.assert_allclose(
                model.v[i], v, atol=1e-9 * max(np.abs(v0).max(), np.abs(v).max()), err_msg=str(i)
            )


def total_energy(model, force):
    """Kinetic and elastic energy less the work of an even force [J], each particle's its own, and their size."""
    u, v, (rest, steeper) = model.u, model.v, model.rests()
    stiffness = model.mixture.number("foundation") * model.sheet.areas * UNIT**2 * steeper
    parts = [
        0.5 * masses(model) * (v**2).sum(axis=1),
        0.5 * stiffness * ((u - rest) ** 2).sum(axis=1),
        -(force * u).sum(axis=1) / UNIT,
    ]
    return sum(parts) * UNIT**2, sum(np.abs(part) for part in parts) * UNIT**2


@settings(max_examples=25, deadline=None)
@given(st.floats(-6, 3), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.3, 1.0]))
def test_nothing_blows_up(exponent, seed, plasticity):
    """Steps of 1 µs to 1000 s; stiffness, damping, mass, force and velocity over many decades, some of them 0, with
    plasticity or without: the energy, less the work of the force, never grows beyond rounding errors."""
    random = np.random.default_rng(seed)
    n = 60

    def decades(low, high):
        return np.where(random.random(n) < 0.15, 0.0, 10.0 ** random.uniform(low, high, n))

    films = [
        Membrane(density=r, thickness=h, foundation=k, drag=d, plasticity=plasticity, elastic_limit=e)
        for r, h, k, d, e in zip(
            10.0 ** random.uniform(-2, 5, n), 10.0 ** random.uniform(-6, 0, n),
            decades(-6, 14), decades(-6, 9), decades(-6, 0), strict=True,
        )
    ]  # fmt: skip
    force = random.normal(size=(n, 3)) * decades(-8, 8)[:, None]
    model = surface(row(n), films, random.normal(size=(n, 3)) * decades(-4, 4)[:, None])
    model.set_force(force)
    before, size = total_energy(model, force)
    for _ in range(12):
        model.step(10.0**exponent)
        after, now = total_energy(model, force)
        assert np.isfinite(after).all()
        size = np.maximum(size, now)
        assert (after <= before + 1e-9 * size).all()
        before = after


def test_energy_is_kept_without_damping_and_momentum_in_flight():
    """20,000 steps keep ½mv² + ½Ku² of each particle to as many rounding errors; what flies freely keeps momentum and
    angular momentum."""
    random = np.random.default_rng(2)
    model = surface(random.normal(size=(5, 3)), FILM.but(drag=0.0), random.normal(size=(5, 3)))
    start = total_energy(model, np.zeros(3))[0]
    for _ in range(20_000):
        model.step(0.0137)
    np.testing.assert_allclose(total_energy(model, np.zeros(3))[0], start, rtol=20_000 * EPS * 10)

    model = surface(random.normal(size=(5, 3)), FILM.but(drag=0.0, foundation=0.0), random.normal(size=(5, 3)))
    start = np.concatenate(model.momenta())
    for dt in (1e-3, 7.0, 100.0):
        model.step(dt)
    np.testing.assert_allclose(np.concatenate(model.momenta()), start, atol=1e-12 * np.abs(start).max())


@pytest.mark.parametrize("dt", [1e-3, 1 / 60, 0.25, 10.0])
def test_a_dent_is_the_share_of_the_peak_that_plasticity_says(dt):
    """A force F that comes at once makes a ringing particle overshoot to F/K (1 + e^(−πs/ω)); while it rings on nothing
    creeps, and when it is let go plasticity · (peak − limit) is left, at any step, and still after a smaller load."""
    shares = [0.0, 0.25, 0.5, 1.0]
    limit, force = 0.1 * UNIT, 1.5e-2
    model = surface(row(4), [FILM.but(plasticity=p, elastic_limit=limit) for p in shares], areas=np.ones(4))
    pushed = np.tile([0.0, -force, 0.0], (4, 1))
    s, K = 1.5, 2000.0 * UNIT**2
    peak = force / K * (1 + np.exp(-np.pi * s / np.sqrt(2000.0 - s**2))) / UNIT
    for pushing in (pushed, 0.6 * pushed):
        model.set_force(pushing)
        for _ in range(round(10 / dt)):
            model.step(dt)
        model.set_force(None)
        for _ in range(round(20 / dt)):
            model.step(dt)
        wanted = np.array(shares) * (peak - limit / UNIT)
        np.testing.assert_allclose(-model.u[:, 1], wanted, rtol=2e-6, atol=1e-9)
        np.testing.assert_allclose(model.rest, model.u, atol=1e-9)
    model.set_force(pushed * 1e-3)
    model.settle()
    np.testing.assert_allclose(model.v, 0.0)


def test_what_is_held_is_where_it_should_be():
    model = surface(row(4), FILM)
    model.set_holds(np.array([2, 0]))
    model.set_force(np.full((4, 3), 1e-4))
    there = np.array([[0.3, 0.2, 0.1], [0.0, -1.0, 0.0]])
    for share in (0.25, 0.75, 1.0):
        before = model.u
        model.step(0.01, share * there)
        np.testing.assert_array_equal(model.u[[2, 0]], share * there)
        np.testing.assert_allclose(model.v[[2, 0]], (model.u - before)[[2, 0]] / 0.01, rtol=1e-14)
    model.set_holds(np.array([], np.int64))
    model.settle()
    wanted = 1e-4 / (2000.0 * np.linspace(0.5, 1.5, 4)[:, None] * UNIT**2) / UNIT
    np.testing.assert_allclose(model.u, np.tile(wanted, 3), rtol=1e-4)


def area_vectors(x, faces):
    """∂V/∂x, shape (n, 3)."""
    corners = x[faces]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]) / 6
    total = np.zeros_like(x)
    for corner in range(3):
        np.add.at(total, faces[:, corner], normal)
    return total


def ball(material, links="none", velocities=None):
    cloud = balloon(600)
    sheet = Sheet.made(cloud.positions / UNIT, cloud.normals, cloud.faces, links=links)
    model = ParticleModel(sheet, UNIT, np.zeros_like(sheet.X) if velocities is None else velocities, dev.pick("cpu"))
    model.set_material(Mixture.even(material, len(sheet.X)))
    return model


@pytest.mark.parametrize("dt", [1 / 240, 0.5])
def test_a_filling_presses_as_its_volume_says_however_stiff(dt):
    """At rest the foundation holds what p = bulk (amount − V/V₀) presses along the normals n of particles without
    links, K u = p (n·∂V/∂x) n; with a bulk of 1e9 Pa the volume is what was filled in."""
    model = ball(FILM.but(drag=90.0))
    start, n = model.volume(), model.sheet.normals
    for bulk in (300.0, 1e9):
        model.set_filling(bulk, 1.3)
        for _ in range(480):
            model.step(dt)
        areas = area_vectors(model.sheet.X + model.u, model.sheet.faces)
        p = bulk * (1.3 - model.volume() / start)
        pull = 2000.0 * model.sheet.areas[:, None] * UNIT**2 * model.u * UNIT
        pressed = p * (areas * n).sum(axis=1)[:, None] * n * UNIT**2
        np.testing.assert_allclose(pressed, pull, atol=1e-6 * np.abs(pull).max())
    assert model.volume() == pytest.approx(1.3 * start, rel=1e-5)


@pytest.mark.parametrize("bulk", [2e3, 1e8])
def test_a_filled_balloon_pushes_nothing_about(bulk):
    """A free one, squeezed unevenly at the start: what the filling and the links do adds up to nothing and hardly turns
    it. A filling that is far stiffer than the step resolves stops it at once, and nothing is faster than it was."""
    random = np.random.default_rng(3)
    X = balloon(600).positions / UNIT
    squeeze = -3.0 * X * (1 + 0.1 * random.normal(size=(len(X), 1)))
    rubber = Membrane(young=2e6, density=1000.0, thickness=1e-3)
    model = ball(rubber, "edges", squeeze)
    model.set_filling(bulk, 1.0)
    start, energy = np.concatenate(model.momenta()), sum(model.energies())
    size = masses(model) @ np.linalg.norm(squeeze, axis=1) * UNIT
    for _ in range(100):
        model.step(1 / 240)
        assert model.energies()[1] <= energy
    assert sum(model.energies()) < 0.1 * energy
    np.testing.assert_allclose(np.concatenate(model.momenta())[:3], start[:3], atol=1e-7 * size)
    np.testing.assert_allclose(np.concatenate(model.momenta())[3:], start[3:], atol=2e-3 * size)
    assert model.volume() == pytest.approx(4 / 3 * np.pi * 0.5**3, rel=0.02)


def test_an_open_surface_cannot_be_filled():
    cloud = balloon(600)
    model = surface(cloud.positions, FILM, faces=cloud.faces[1:])
    with pytest.raises(PhyxelError, match="closed surface"):
        model.set_filling(1e3)


def walls(*colliders):
    table = ColliderTable([UNIT], wp.float64, dev.pick("cpu"))
    return lambda start, end: (table.write(colliders, np.zeros((1, 3)), (start, end), end), table)[1]


@pytest.mark.slow
def test_what_lies_on_a_slope_sticks_below_the_angle_of_friction_and_slides_beyond():
    """On ground of friction 0.5, with gravity aslant: within the cone nothing moves, beyond it slides with
    g (sin − μ cos), exactly as forces are even."""
    free = FILM.but(foundation=0.0, drag=0.0)
    angles = np.radians([20.0, 26.0, 27.0, 40.0])  # arctan 0.5 = 26.57°
    model = surface(row(4) + np.array([0, 0.5 * 1e-3 / UNIT, 0]), free)
    gravity = 9.81 * np.stack([np.sin(angles), -np.cos(angles), np.zeros(4)], axis=1)
    model.set_force(masses(model)[:, None] * gravity)
    ground = walls(Ground(friction=0.5))
    dt, steps = 1 / 240, 120
    for k in range(steps):
        model.step(dt, None, ground(k * dt, (k + 1) * dt))
    slid = 0.5 * 9.81 * np.maximum(np.sin(angles) - 0.5 * np.cos(angles), 0.0) * (steps * dt) ** 2 / UNIT
    np.testing.assert_allclose(model.u[:, 0], slid, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.u[:, 1:], 0.0, atol=1e-13)


def test_what_sticks_on_a_ball_does_not_creep():
    """Where a ball's slope is within the cone of friction, tan 25° < 0.5, ten seconds of weight move nothing; where it
    is beyond, tan 28° > 0.5, it slides."""
    angles = np.radians([0.0, 12.0, 25.0, 28.0])
    X = (0.1 + 0.5e-3) / UNIT * np.stack([np.sin(angles), np.cos(angles), np.zeros(4)], axis=1)
    model = surface(X, FILM.but(foundation=0.0, drag=0.0))
    model.set_force(masses(model)[:, None] * [[0.0, -9.81, 0.0]])
    ball_collider = walls(Sphere(radius=0.1, friction=0.5))(0.0, 0.0)
    for _ in range(600):
        model.step(1 / 60, None, ball_collider)
    np.testing.assert_allclose(model.u[:3], 0.0, atol=600 * 100 * EPS)
    assert np.linalg.norm(model.u[3]) > 1


def test_a_drop_bounces_by_its_restitution_and_comes_to_rest():
    """From a height h it comes back to e² h, less at most what it fell faster in the step of the impact: g dt of its
    speed. Without restitution it stays."""
    heights, dt = [], 1 / 960
    for restitution in (0.8, 0.0):
        model = surface([[0.0, 0.5 / UNIT + 0.025, 0.0]], FILM.but(foundation=0.0, drag=0.0))
        model.set_force(masses(model)[:, None] * [[0.0, -9.81, 0.0]])
        ground = walls(Ground(restitution=restitution))
        track = []
        for k in range(960):
            model.step(dt, None, ground(k * dt, (k + 1) * dt))
            track.append(model.u[0, 1] * UNIT + 0.5)
        assert min(track) > -1e-12
        heights.append(max(track[400:]))
    fall = np.sqrt(2 * 9.81 * 0.5)
    assert 0.64 * 0.5 * (1 - 9.81 * dt / fall) ** 2 - 1e-3 <= heights[0] <= 0.64 * 0.5
    assert heights[1] == pytest.approx(0.0, abs=1e-12)


def test_a_ball_that_goes_through_a_sheet_takes_it_along():
    """A sphere that rises through a loose sheet: no particle is ever in it, and what sticks on top rises with it."""
    grid = np.array(list(itertools.product(np.linspace(-6, 6, 25), [0.1], np.linspace(-6, 6, 25))))
    model = surface(grid, FILM.but(foundation=0.0, drag=0.2))
    model.set_force(masses(model)[:, None] * [[0.0, -9.81, 0.0]])
    path = ((0.0, (0.0, -0.08, 0.0)), (0.5, (0.0, 0.12, 0.0)))
    sphere = walls(Sphere(radius=0.06, path=path, friction=0.9), Ground(height=-0.3))
    steps = 60
    for k in range(steps):
        start, end = 0.5 * k / steps, 0.5 * (k + 1) / steps
        model.step(end - start, None, sphere(start, end))
        x = (grid + model.u) * UNIT
        centre = np.array([0.0, -0.08 + 0.4 * end, 0.0])
        assert np.linalg.norm(x - centre, axis=1).min() >= 0.06 + 0.5e-3 - 1e-9
        assert x[:, 1].min() >= -0.3 + 0.5e-3 - 1e-9
    top = np.argmin(np.abs(grid[:, [0, 2]]).sum(axis=1))
    assert x[top, 1] == pytest.approx(0.12 + 0.0605, abs=1e-6)
    np.testing.assert_allclose(model.v[top] * UNIT, [0.0, 0.4, 0.0], atol=1e-6)


def test_a_checkpoint_goes_on_with_the_same_bits():
    def made():
        model = ball(FILM.but(plasticity=0.5))
        model.set_filling(500.0, 1.2)
        model.set_force(np.tile([0.0, -1e-3, 0.0], (len(model.sheet.X), 1)))
        return model

    one = made()
    for _ in range(20):
        one.step(1 / 60)
    other = made()
    other.restore(one.state())
    for model in (one, other):
        for _ in range(5):
            model.step(1 / 60)
    for name, values in one.state().items():
        np.testing.assert_array_equal(other.state()[name], values, err_msg=name)


def test_what_is_shown_keeps_its_digits_far_away():
    """A surface that has gone a million units is shown about where it is, to single precision of its own size."""
    model = surface(row(6), FILM.but(foundation=0.0), np.tile([1e5, 0.0, 0.0], (6, 1)) + 1e-3 * row(6))
    model.step(10.0)
    shown, even = model.shown()
    np.testing.assert_allclose(shown.numpy() + (even - model.u[0]), model.u - model.u[0], atol=1e-7)


@pytest.mark.parametrize("friction", [0.0, 0.5])
def test_cloth_over_a_ball_is_borne_without_being_stretched(friction):
    """Cotton of 7000 N/m that falls over a ball: its weight strains threads by less than 1e-3. While it lands
    and swings that is some hundredths at most, no particle is in the ball, and none is faster than it fell."""
    body = px.Body(px.load("cloth", points=400), model="particles", material=px.Membrane.cotton(), at=(0.0, 0.52, 0.0))
    world = px.World()
    world.add(body)
    world.add(px.Sphere(radius=0.25, at=(0.0, 0.26, 0.0), friction=friction))
    elements = body.sheet.elements
    threads = np.isin(elements.kind, (WARP, WEFT))
    a, b = elements.index[threads, 0], elements.index[threads, 1]
    for _ in range(6):
        world.advance(0.1)
        lengths = np.linalg.norm(body.positions[a] - body.positions[b], axis=1) / body.unit
        np.testing.assert_allclose(lengths, elements.rest[threads], rtol=0.05)
        assert np.linalg.norm(body.positions - (0.0, 0.26, 0.0), axis=1).min() >= 0.25 + 1.75e-4 - 1e-9
        assert np.linalg.norm(body.velocities, axis=1).max() < 9.81 * 0.6
