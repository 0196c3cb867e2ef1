"""What nature says of the elastic force: exact for affine fields, blind to rigid motion, the gradient of an energy."""

import numpy as np
import pytest
import warp as wp

from phyxel.material import Material
from tests.physics.matter import (
    UNIT,
    block,
    damping_at,
    displace,
    energy_at,
    forces_at,
    model_of,
    rotation,
    shaken_block,
    tangent_along,
)

SOFT = Material(young=1.0e5, poisson=0.3, density=1000.0)
GRAINED = Material.orthotropic(
    young=(3.0e5, 1.0e5, 6.0e4), poisson=(0.2, 0.25, 0.15), shear=(4e4, 5e4, 6e4), density=800.0
)
SINGLE = float(np.finfo(np.float32).eps)


@pytest.fixture(scope="module", params=[SOFT, GRAINED], ids=["isotropic", "grained"])
def cloud(request):
    """A random cloud in double."""
    return shaken_block(), model_of(shaken_block(), request.param)


def test_gradient_of_an_affine_field_is_exact(cloud):
    """∇u|_i = G for u = G X + t, at every phyxel of a random cloud, to rounding."""
    X, model = cloud
    G = np.random.default_rng(2).normal(size=(3, 3))
    forces_at(model, X @ G.T + [1.0, -2.0, 3.0])
    error = np.abs(model.now.gradient.numpy() - G).max()
    print(f"largest error of an affine gradient: {error:.1e}")
    assert error < 1e-12


def test_gradient_of_an_affine_field_is_exact_in_single():
    """The same in the precision of a step: a sum of about 40 terms, so some tens of roundings of the largest value."""
    X = shaken_block()
    model = model_of(X, SOFT, wp.float32)
    G = 0.1 * np.random.default_rng(2).normal(size=(3, 3))
    forces_at(model, X @ G.T)
    assert np.abs(model.now.gradient.numpy() - G).max() < 50 * SINGLE * np.abs(G).max()


@pytest.mark.parametrize("degrees", [0.0, 1.0, 90.0, 180.0])
def test_rigid_motion_makes_no_force(cloud, degrees):
    """f(Rx + t) = 0. Scale: the force of a 1 % stretch."""
    X, model = cloud
    stretch = np.abs(forces_at(model, 0.01 * X)).max()
    u = X @ rotation(degrees).T - X + [5.0, 0.1, -7.0]
    assert np.abs(forces_at(model, u)).max() < 1e-11 * stretch


@pytest.mark.parametrize(("real", "rounding"), [(wp.float32, SINGLE), (wp.float64, 2.3e-16)])
def test_forces_conserve_momentum(real, rounding):
    """Σf = 0 and Σx×f = 0 for any displacement. Each of n forces is a sum of about 40 pairs, each rounded: the sum
    over the body is a random walk of n·40 roundings of the mean force."""
    X = shaken_block(6)
    model = model_of(X, SOFT, real)
    u = 0.2 * np.random.default_rng(3).normal(size=X.shape)
    f = forces_at(model, u).astype(np.float64)
    x = X + u.astype(np.float32 if real is wp.float32 else np.float64)
    allowed = 3 * rounding * np.sqrt(40 * len(X)) * np.abs(f).mean()
    linear, angular = np.abs(f.sum(axis=0)).max(), np.abs(np.cross(x, f).sum(axis=0)).max()
    print(f"sum of forces {linear:.1e}, of torques {angular:.1e}, of {np.abs(f).mean():.1e} (allowed {allowed:.1e})")
    assert linear < allowed
    assert angular < allowed * np.abs(X).max()


@pytest.mark.parametrize("amplitude", [0.01, 0.3], ids=["small", "crushed"])
def test_force_is_minus_the_gradient_of_the_energy(cloud, amplitude):
    """f·p = −dU/dp, central differences in double: error h²·U''' plus rounding/h, at h = 1e-5 about 1e-9 of f."""
    X, model = cloud
    rng = np.random.default_rng(4)
    u, h = amplitude * rng.normal(size=X.shape), 1e-5
    for _ in range(5):
        p = rng.normal(size=X.shape)
        slope = (energy_at(model, u + h * p) - energy_at(model, u - h * p)) / (2 * h)
        f = forces_at(model, u)
        assert slope == pytest.approx(-float((f * p).sum()), abs=1e-7 * np.abs(f).max() * len(X))


@pytest.mark.parametrize("amplitude", [0.0, 0.01, 0.3], ids=["rest", "small", "crushed"])
def test_tangent_is_the_change_of_the_force(cloud, amplitude):
    """−K p = df/dp by central differences in double, and K is symmetric."""
    X, model = cloud
    rng = np.random.default_rng(5)
    u, p, q, h = amplitude * rng.normal(size=X.shape), rng.normal(size=X.shape), rng.normal(size=X.shape), 1e-5
    change = (forces_at(model, u + h * p) - forces_at(model, u - h * p)) / (2 * h)
    forces_at(model, u)
    Kp = tangent_along(model, p)
    assert np.abs(Kp - change).max() < 1e-7 * np.abs(change).max()
    Kq = tangent_along(model, q)
    assert float((Kp * q).sum()) == pytest.approx(float((Kq * p).sum()), abs=1e-10 * np.abs(Kp).max() * X.size)


@pytest.mark.parametrize("squeeze", [0.7, 1.0, 1.3])
def test_damping_leaves_what_turns_alone(cloud, squeeze):
    """−βK'v = 0 for v = ω × x of a body that is evenly squeezed, stretched, sheared: −βKv would turn its stress, and
    with it drive or brake the body. Scale: the damping of a stretching as fast."""
    X, model = cloud
    J = squeeze * rotation(40.0) @ (np.eye(3) + 0.1 * np.random.default_rng(6).normal(size=(3, 3)))
    u, spin = X @ J.T - X, np.cross([0.03, 0.1, -0.05], X @ J.T)
    stretching = np.abs(damping_at(model, u, 0.1 * X @ J.T)).max()
    assert np.abs(damping_at(model, u, spin)).max() < 1e-11 * stretching


def test_damping_never_drives(cloud):
    """v·(−βK'v) ≤ 0 for any motion of any shape. With all of K it is not: a body that is pressed together and spins is
    driven, as the second line says."""
    X, model = cloud
    random = np.random.default_rng(7)
    u = -0.4 * X + 0.02 * random.normal(size=X.shape)
    for _ in range(10):
        v = np.cross(random.normal(size=3), X + u) + 0.02 * random.normal(size=X.shape)
        assert (v * damping_at(model, u, 0.1 * v)).sum() < 0
        assert (v * tangent_along(model, v)).sum() > 0


def test_small_strain_obeys_hooke():
    """Uniform small strain: every phyxel carries σ = C ε, whatever the split into shear and volume terms.
    Tolerance: the strain itself, 1e-6, is the relative size of the next term."""
    X = shaken_block()
    for material in (SOFT, GRAINED):
        model = model_of(X, material)
        e = 1e-6 * np.array([[3.0, 1.0, -2.0], [1.0, -1.0, 0.5], [-2.0, 0.5, 2.0]])
        forces_at(model, X @ e.T)
        six = np.array([e[0, 0], e[1, 1], e[2, 2], 2 * e[1, 2], 2 * e[0, 2], 2 * e[0, 1]])
        s = material.elasticity @ six
        expected = np.array([[s[0], s[5], s[4]], [s[5], s[1], s[3]], [s[4], s[3], s[2]]])
        assert np.abs(model.stress() - expected).max() < 2e-5 * np.abs(expected).max()


@pytest.mark.parametrize("flip", [np.diag([-1.0, 1.0, 1.0]), -np.eye(3)], ids=["mirrored", "point-reflected"])
def test_an_inverted_cube_recovers(flip):
    """A cube turned inside out comes back: |J| > 0 everywhere, and it ends undeformed up to a rigid motion."""
    X = block(4, 4, 4)
    model = model_of(X, SOFT.but(damping=2e-3), wp.float32)
    displace(model, X @ flip.T - X + 0.02 * np.random.default_rng(6).normal(size=X.shape))
    for _ in range(400):
        model.step(model.stable_step(), 10)
    volumes = model.measure()[1]
    energy = float(model.measure()[0].sum())
    print(f"volume ratios {volumes.min():.3f} to {volumes.max():.3f}, energy left {energy:.2e} Pa·spacing³")
    assert volumes.min() > 0.95
    assert energy < 1e-4 * SOFT.young * len(X)


def test_units_leave_the_physics_alone():
    """The frequency of a body is √(E/ρ)/length: in the body's units the mass carries ρ·unit²."""
    X = block(4, 4, 4)
    base = model_of(X, SOFT).vibration.at_rest()
    stiff = model_of(X, SOFT.but(young=4.0e5)).vibration.at_rest()
    heavy = model_of(X, SOFT.but(density=4000.0)).vibration.at_rest()
    assert stiff == pytest.approx(2 * base, rel=1e-6)
    assert heavy == pytest.approx(base / 2, rel=1e-6)
    c = np.sqrt(SOFT.elasticity[0, 0] / SOFT.density) / UNIT
    assert 1.0 < base / c < 4.0  # a lattice of spacing 1 carries waves up to about ω = 2c
