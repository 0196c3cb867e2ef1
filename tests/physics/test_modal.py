"""Modal bodies and nature: momentum, free fall, large bending, rest, friction."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ellipe, ellipeinc, ellipk, ellipkinc

from phyxel.material import Material, Mixture
from phyxel.models.galerkin.space import Space
from tests.models.modal.blocks import base, block, gravity, ground, modal, unmoved

STEP = 0.01


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PHYXEL_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def cube() -> tuple[Space, float]:
    return block((4, 4, 4), (1.0, 1.0, 1.0))


def test_a_spinning_body_keeps_momentum_and_energy() -> None:
    space, unit = block((6, 3, 2), (1.0, 0.375, 0.25))
    X = space.nodes
    v = np.cross([0.3, 2.0, 3.0], X) + 0.3 * np.sin(X[:, [1, 2, 0]]) * [5, 2, 1] + [1.0, 2.0, 3.0]
    model = modal(space, unit, velocities=v)
    np.testing.assert_allclose(
        model.momenta()[0], 1000 * unit**4 * space.mass(np.ones(len(space.points))).sum(axis=0) @ v
    )
    first, energy = model.momenta(), None
    for k in range(1000):
        model.step(STEP, np.zeros_like(X), [], None)
        if k % 100 == 0:
            for now, before in zip(model.momenta(), first, strict=True):
                np.testing.assert_allclose(now, before, atol=1e-9 * np.abs(before).max())
            energy = sum(model.energies()) if energy is None else energy
            # The mass matrix of the warped modes is taken for 1, which it is to first order in the amplitude.
            assert sum(model.energies()) == pytest.approx(energy, rel=0.01)
    mass = space.mass(np.ones(len(space.points)))
    middle = (mass @ model.u).sum(axis=0) / mass.sum()
    np.testing.assert_allclose(middle, 10.0 * (mass @ v).sum(axis=0) / mass.sum(), rtol=1e-9)


def test_a_body_falls_freely() -> None:
    space, unit = block((4, 2, 2), (1.0, 0.375, 0.25))
    model = modal(space, unit)
    for _ in range(100):
        model.step(STEP, gravity(space, unit, 0, -1, 0), [], None)
    # Modes are stored with 24 bits: so much of their motion the fall can wake.
    np.testing.assert_allclose(model.u * unit, np.tile([0, -9.81 / 2, 0], (len(space), 1)), atol=1e-7)


def test_a_vibration_swings_at_its_frequency() -> None:
    space, unit = block((8, 2, 2), (1.0, 0.25, 0.25))
    slow = modal(space, unit, [base(space)])
    shape, frequency = slow.mode_shape(0), slow.frequencies[0]
    model = modal(space, unit, [base(space)], velocities=1e-3 * shape)
    period, energy = 1 / frequency, None
    for k in range(1, 401):
        model.step(period / 40, np.zeros_like(shape), [unmoved(base(space))], None)
        energy = sum(model.energies()) if energy is None else energy
        if k % 40 == 0:  # exact, for an oscillator: neither late nor weaker after ten swings
            assert np.abs(model.u).max() < 1e-4 * np.abs(model.v).max() / frequency
            assert sum(model.energies()) == pytest.approx(energy, rel=1e-4)


def elastica(load: float) -> tuple[float, float]:
    """Deflection and height of the tip of a cantilever of length 1 under a dead load at it, `load` = F L²/(E I):
    √load = K(k) − F(φ, k), k² = (1 + sin θ)/2, sin φ = 1/(k√2), θ the slope of the tip (Bisshopp and Drucker 1945)."""

    def moduli(slope: float) -> tuple[float, float]:
        k2 = (1 + np.sin(slope)) / 2
        return k2, np.arcsin(1 / np.sqrt(2 * k2))

    def error(slope: float) -> float:
        k2, phi = moduli(slope)
        return float(ellipk(k2) - ellipkinc(phi, k2) - np.sqrt(load))

    slope = brentq(error, 1e-9, np.pi / 2 - 1e-9)
    k2, phi = moduli(slope)
    return 1 - 2 / np.sqrt(load) * (ellipe(k2) - ellipeinc(phi, k2)), np.sqrt(2 * np.sin(slope) / load)


def test_a_cantilever_bends_like_the_elastica() -> None:
    width, young = 0.1, 1e6
    space, unit = block((20, 3, 3), (1.0, width, width))
    X, hold = space.nodes, base(space)
    model = modal(space, unit, [hold], young=young)
    push = np.zeros_like(X)
    push[X[:, 0] > X[:, 0].max() - 1e-6, 1] = -1.0
    force = space.mass(np.full(len(space.points), 1000.0)) @ push * unit**4  # [N]
    arm = float(force[:, 1] @ X[:, 0] / force[:, 1].sum() - X[:, 0].min()) * unit
    for load in (0.1, 1.0, 2.0):
        wanted = load * young * width**4 / 12 / arm**2
        model.settle(push * wanted / abs(force[:, 1].sum()), [unmoved(hold)], None, 1e-6)
        tip = model.displacement(space.at(np.array([[X[:, 0].max(), 0.0, 0.0]])))[0] * unit
        down, along = elastica(load)
        where = model.displacement(space.at(np.array([[X[:, 0].min() + arm / unit, 0.0, 0.0]])))[0] * unit
        assert -where[1] == pytest.approx(down * arm, rel=0.1)
        assert arm + where[0] == pytest.approx(along * arm, rel=0.1)
        assert tip[1] < where[1] < 0
    # Warped, it keeps its volume; the same amplitudes along straight lines would add more than a fifth.
    volume = width**2
    assert model.volume() == pytest.approx(volume, rel=0.05)
    straight = linear_volume(space, sum_of_modes(model)) * unit**3
    assert straight > 1.2 * volume


def sum_of_modes(model) -> np.ndarray:
    """The unwarped field."""
    return model.linear


def linear_volume(space: Space, p: np.ndarray) -> float:
    values = space.values
    J = np.eye(3) + np.add.reduceat(p[values.indices, :, None] * space.functions.dphi[:, None, :], values.indptr[:-1])
    return float(space.weights @ np.linalg.det(J))


def test_a_hanging_bar_carries_its_weight() -> None:
    # σ_xx = ρ g (L − x) at a distance x from where it hangs, along the bar, beyond the clamped end's own field.
    space, unit = block((12, 3, 3), (1.0, 0.25, 0.25))
    model = modal(space, unit, [base(space)], young=1e6, poisson=0.0, modes=64)
    model.settle(gravity(space, unit, 1, 0, 0), [unmoved(base(space))], None, 1e-9)
    X = np.array([[x, 0.0, 0.0] for x in np.linspace(-0.3, 0.3, 7)]) / unit
    stress = model.stress(space.at(X), Mixture.even(Material(young=1e6, poisson=0.0), len(space)), np.zeros(7, int))
    expected = 1000 * 9.81 * (0.5 - X[:, 0] * unit)
    # 64 modes of 600 carry a stress that is not smooth at the free end to some per cent.
    np.testing.assert_allclose(stress[:, 0, 0], expected, atol=0.05 * 9810)
    np.testing.assert_allclose(stress[:, 1, 1], 0, atol=0.05 * 9810)


@pytest.mark.parametrize(("young", "restitution"), [(1e5, 0.0), (1e6, 0.5)])
def test_a_dropped_body_comes_to_rest(cube: tuple[Space, float], young: float, restitution: float) -> None:
    space, unit = cube
    model = modal(space, unit, young=young, damping=5e-3)
    floor = ground(-2.8, 0.5, restitution)
    mass = space.mass(np.full(len(space.points), 1000.0)) * unit**3
    last = np.inf
    for k in range(250):
        model.step(STEP, gravity(space, unit, 0, -1, 0), [], floor)
        places = space.nodes + space.at_nodes.values @ model.u
        assert floor(places).gap.min() > -1e-2
        if k % 10 == 9:
            energy = sum(model.energies()) + 9.81 * unit * float((mass @ model.u)[:, 1].sum())
            assert energy < last + 1e-3 * 1000 * 9.81  # 1 mm of its height
            last = energy
    assert np.abs(model.v).max() * unit < 5e-3
    pressed = floor(places).gap.min()
    assert abs(pressed) < 1e-3


@pytest.mark.parametrize("friction", [0.0, 0.2, 0.5])
def test_a_body_on_a_slope_slides_or_stays(cube: tuple[Space, float], friction: float) -> None:
    space, unit = cube
    model = modal(space, unit, young=1e6, damping=2e-3)
    slope = np.radians(20)
    push = gravity(space, unit, np.sin(slope), -np.cos(slope), 0)
    for _ in range(100):  # its own swing has died down then
        model.step(STEP, push, [], ground(-2.0, friction))
    before = model.v.mean(axis=0)[0]
    for _ in range(50):
        model.step(STEP, push, [], ground(-2.0, friction))
    gained = (model.v.mean(axis=0)[0] - before) * unit
    expected = 9.81 * max(0.0, np.sin(slope) - friction * np.cos(slope)) * 0.5
    assert gained == pytest.approx(expected, abs=0.01)
    if friction > np.tan(slope):
        assert np.abs(model.v).max() * unit < 5e-3
