"""What nature says of Galerkin bodies. The bar is 1 × 0.25 × 0.25 m."""

import numpy as np
import pytest

from phyxel.errors import PhyxelError
from phyxel.material import Material, Mixture
from phyxel.models.galerkin.space import Space
from phyxel.models.law import LawRow
from phyxel.models.protocol import Goal
from tests.models.field_models import SOFT, at_rest, end_of_bar, even, ground, model_of, space_of
from tests.physics.test_bar import GRAVITY, LENGTH, RUBBERY, SIDE, timoshenko_tip


def faces(space: Space, side: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gauss points on the faces of a cube, their areas and normals."""
    places, shares = np.polynomial.legendre.leggauss(3)
    cells = 12
    along = ((np.arange(cells)[:, None] + 0.5 + 0.5 * places).reshape(-1) / cells - 0.5) * side
    share = np.tile(shares * side / (2 * cells), cells)
    flat = np.stack(np.meshgrid([0.0], along, along, indexing="ij"), axis=-1).reshape(-1, 3)
    points, normals = [], []
    for axis in range(3):
        for way in (-0.5, 0.5):
            face = np.roll(flat, axis, axis=1)
            face[:, axis] = way * side
            points.append(face)
            normals.append(np.broadcast_to(2 * way * np.eye(3)[axis], face.shape))
    middle = -space.layout.placing.middle / space.layout.placing.length
    areas = np.tile(np.outer(share, share).reshape(-1), 6)
    return middle + np.concatenate(points), areas, np.concatenate(normals)


def rigid(points: np.ndarray) -> np.ndarray:
    """The six rigid motions at points, shape (3m, 6)."""
    moved = [np.broadcast_to(axis, points.shape) for axis in np.eye(3)] + [np.cross(axis, points) for axis in np.eye(3)]
    return np.stack([field.reshape(-1) for field in moved], axis=1)


def errors(basis: str, count: int) -> tuple[float, float, float]:
    """Spacing, and the errors of a cube that nothing holds, under the forces of u = A sin(k·X)."""
    lame, shear = RUBBERY.lame
    space, _, unit = space_of("box", count, basis)
    side, A = 0.5 / unit, np.array([0.3, -0.5, 0.8])
    k = np.array([1.0, 0.7, -0.5]) * np.pi / side
    strain = 0.5 * (np.outer(A, k) + np.outer(k, A))
    stress = lame * (A @ k) * np.eye(3) + 2 * shear * strain
    skin, areas, normals = faces(space, side)
    phase = space.points @ k + 0.4
    inside = np.sin(phase)[:, None] * (stress @ k)
    pulled = np.cos(skin @ k + 0.4)[:, None] * (normals @ stress) * areas[:, None]
    load = space.values.T @ (space.weights[:, None] * inside) + space.at(skin).values.T @ pulled
    K = space.stiffness([LawRow.of(RUBBERY, np.eye(3))], np.zeros(len(space.points), int)).toarray()
    Q = np.linalg.qr(rigid(space.nodes))[0]
    given = load.reshape(-1) - Q @ (Q.T @ load.reshape(-1))
    u = np.linalg.solve(K + K.diagonal().mean() * Q @ Q.T, given).reshape(-1, 3)
    missed = space.values @ u - np.sin(phase)[:, None] * A
    root = np.repeat(np.sqrt(space.weights), 3)
    fit = np.linalg.lstsq(rigid(space.points) * root[:, None], missed.reshape(-1) * root, rcond=None)[0]
    missed -= (rigid(space.points) @ fit).reshape(-1, 3)
    owner = np.repeat(np.arange(len(space.points)), np.diff(space.values.indptr))
    terms = np.einsum("pa,pk->pak", u[space.values.indices], space.functions.dphi).reshape(-1, 9)
    gradient = np.stack([np.bincount(owner, term) for term in terms.T], axis=1).reshape(-1, 3, 3)
    wrong = 0.5 * (gradient + np.swapaxes(gradient, 1, 2)) - np.cos(phase)[:, None, None] * strain
    energy = 2 * shear * (wrong**2).sum(axis=(1, 2)) + lame * np.trace(wrong, axis1=1, axis2=2) ** 2
    volume = space.weights.sum()
    L2 = np.sqrt(space.weights @ (missed**2).sum(axis=1) / volume)
    return unit, float(L2), float(side * np.sqrt(space.weights @ energy / volume))


@pytest.mark.parametrize(
    ("basis", "counts", "orders"),
    [("linear", (125, 216, 343), (2, 1)), pytest.param("quadratic", (64, 125, 216), (3, 2), marks=pytest.mark.slow)],
)
def test_manufactured_solution(basis, counts, orders):
    """u = A sin(k·X) of a free cube under the body force −∇·σ and the tractions σn that make it: the error falls at
    least as h^(p+1), and its energy norm as h^p, p being the order of the basis. On meshes this coarse the quadrature's
    own error falls with it, and faster; 10 % less is allowed for."""
    logs = np.log([errors(basis, count) for count in counts])
    rates = [np.polyfit(logs[:, 0], logs[:, column], 1)[0] for column in (1, 2)]
    print(f"{basis}: errors {np.exp(logs[:, 1:]).tolist()}, rates {rates[0]:.2f} (L2), {rates[1]:.2f} (energy)")
    assert rates[0] > 0.9 * orders[0]
    assert rates[1] > 0.9 * orders[1]


def test_static_tip():
    """Timoshenko, to 4 %: as the phyxel bar, at 251 nodes already. Points of the root's face are held."""
    model = model_of("bar", 251, RUBBERY)
    hold, goal = at_rest(end_of_bar(model, -1))
    model.set_holds([hold])
    model.settle(even(model, 0, -GRAVITY, 0), [goal], None, 1e-7)
    face = end_of_bar(model, 1)
    tip = model.displacement(model.space.at(face))[:, 1].mean() * model.unit
    print(f"tip {tip:.5f} m, beam theory {timoshenko_tip(LENGTH):.5f} m")
    assert tip == pytest.approx(timoshenko_tip(LENGTH), rel=0.04)
    # the stress of bending at the middle of the span: σ = M z/I on the upper side
    at = model.space.at(np.array([[0.0, 0.4 * SIDE / model.unit, 0.0]]))
    moment = RUBBERY.density * GRAVITY * SIDE**2 * (LENGTH / 2) ** 2 / 2
    sigma = model.stress(at, Mixture.even(RUBBERY, 1), np.zeros(1, int))[0, 0, 0]
    assert sigma == pytest.approx(moment * 0.4 * SIDE / (SIDE**4 / 12), rel=0.05)


def test_free_spin():
    """A body that nothing holds keeps momentum and angular momentum to rounding, 1e-9, at steps of 1/60 s and stiff
    material. Its energy stays within 1 %: Euler's steps make a turning body smaller than it is, by (ωΔt)²/2 of what
    it would be stretched, and the same spin of a smaller body is faster."""
    spin, drift = np.array([2.0, 5.0, -3.0]), np.array([1.0, 0.5, 0.0])
    space, _, unit = space_of("bar", 251)
    v = np.cross(spin, space.nodes) + drift / unit
    model = model_of("bar", 251, SOFT.but(young=1e7), v)
    first = model.momenta()
    energies = [sum(model.energies())]
    for _ in range(30):
        model.step(1 / 60, even(model, 0, 0, 0), [], None)
        energies.append(sum(model.energies()))
    for before, after in zip(first, model.momenta(), strict=True):
        assert np.abs(after - before).max() < 1e-9 * np.abs(before).max()
    print(f"energy {energies[0]:.4f} → {energies[-1]:.4f} J")
    assert np.abs(np.array(energies) / energies[0] - 1).max() < 0.01


def test_free_fall_with_drag():
    """v = (g/α)(1 − e^−αt) downwards, all nodes alike to rounding. The first step, Euler's, is off by (αΔt)²/2 of g/α,
    the others by (αΔt)³/12 each: 0.1 %."""
    model = model_of("bar", 251, SOFT.but(drag=3.0))
    for _ in range(20):
        model.step(0.01, even(model, 0, -9.81, 0), [], None)
    v = model.v * model.unit
    np.testing.assert_allclose(v, np.tile(v.mean(axis=0), (len(v), 1)), atol=1e-8)
    np.testing.assert_allclose(v.mean(axis=0), [0, -9.81 / 3 * (1 - np.exp(-0.6)), 0], atol=1e-3 * 1.48)


def test_dropped_bar_comes_to_rest():
    """It bounces by its own elasticity, then lies still, neither sunk nor trembling, and carries its weight."""
    model = model_of("bar", 120, SOFT.but(damping=2e-3))
    height = -0.5 * SIDE / model.unit - 0.3
    feel, push = ground(height), even(model, 0, -9.81, 0)
    for _ in range(60):
        model.step(0.01, push, [], feel)
    gap = feel(model.space.nodes + model.displacement(model.space.at_nodes)).gap  # those inside are farther off
    weight = SOFT.density * 9.81 * LENGTH * SIDE**2
    assert -1e-3 < gap.min() < 0
    assert np.abs(model.v).max() * model.unit < 1e-4
    assert model.state()["pressure"].sum() * model.unit**2 == pytest.approx(weight, rel=1e-3)


def test_bounce():
    """A stiff body with restitution e leaves at e times the speed it came with; 5 %, as it swings a little."""
    model = model_of("bar", 251, SOFT.but(young=1e9))
    feel = ground(-0.5 * SIDE / model.unit - 0.1, friction=0.0, restitution=0.6)
    model.v = even(model, 0, -2.0, 0)
    for _ in range(20):
        model.step(5e-3, even(model, 0, 0, 0), [], feel)
    left = model.momenta()[0][1] / (SOFT.density * LENGTH * SIDE**2)
    print(f"came at 2 m/s, left at {left:.3f} m/s")
    assert left == pytest.approx(1.2, rel=0.05)


@pytest.mark.parametrize("friction", [0.2, 0.5])
def test_slope(friction: float):
    """On a slope of 20°, tan 20° = 0.364: slides with g(sin − μ cos) where μ is less, else stays for good.

    Steps begin as the bar settles on its springs: 1 %. What sticks swings about where it does, as its damping lets it;
    after 0.9 s it moves no faster than 1e-5 m/s.
    """
    model = model_of("bar", 120, SOFT.but(damping=2e-3))
    feel = ground(-0.5 * SIDE / model.unit, friction)
    slope, dt, steps = np.radians(20), 0.01, 25 if friction < np.tan(np.radians(20)) else 90
    for _ in range(steps):
        model.step(dt, even(model, 9.81 * np.sin(slope), -9.81 * np.cos(slope), 0), [], feel)
    speed = model.v[:, 0].mean() * model.unit
    if friction < np.tan(slope):
        assert speed == pytest.approx(9.81 * (np.sin(slope) - friction * np.cos(slope)) * dt * steps, rel=0.01)
    else:
        assert abs(speed) < 1e-5


def test_plastic_bar_keeps_a_set():
    """Pulled slowly to a strain e and let go it keeps the Green strain e − √(3/2) y/(1 + ν) along it (physics §6),
    where its ends do not hinder it: 3 %."""
    clay = Material(young=1e6, poisson=0.3, density=1000, damping=5e-3, yield_strain=0.01)
    model = model_of("bar", 251, clay)
    root, tip = end_of_bar(model, -1), end_of_bar(model, 1)
    holds = [at_rest(root), at_rest(tip)]
    model.set_holds([hold for hold, _ in holds])
    stretch, still = 0.1, even(model, 0, 0, 0)
    for part in np.linspace(0, stretch, 5)[1:]:
        far = np.tile([part * LENGTH / model.unit, 0, 0], (len(tip), 1))
        goals = [holds[0][1], Goal(far, np.eye(3))]
        model.settle(still, goals, None, 1e-6)
    at = model.space.at(np.zeros((1, 3)))
    J = 1 + model.gradient(at)[0, 0, 0]
    pulled = 0.5 * (J * J - 1)
    model.set_holds([holds[0][0]])
    model.settle(still, [holds[0][1]], None, 1e-6)
    J = 1 + model.gradient(at)[0, 0, 0]
    kept = 0.5 * (J * J - 1)
    expected = pulled - np.sqrt(1.5) * 0.01 / 1.3
    print(f"strain {pulled:.4f}, kept {kept:.4f}, expected {expected:.4f}")
    assert kept == pytest.approx(expected, rel=0.03)


def test_settling_without_support_is_refused():
    model = model_of("bar", 251)
    with pytest.raises(PhyxelError, match="nothing holds"):
        model.settle(even(model, 0, -9.81, 0), [], None, 1e-6)


def test_settling_on_the_ground():
    """A body that only stands is found at rest: its pressure is its weight."""
    model = model_of("bar", 120)
    height = -0.5 * SIDE / model.unit - 0.2
    model.settle(even(model, 0, -9.81, 0), [], ground(height), 1e-6)
    weight = SOFT.density * 9.81 * LENGTH * SIDE**2
    assert model.state()["pressure"].sum() * model.unit**2 == pytest.approx(weight, rel=1e-3)
    assert model.energies()[1] == 0
