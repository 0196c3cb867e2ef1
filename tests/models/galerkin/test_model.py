"""The machinery of Galerkin motion: derivatives, constraints, consistency, state."""

from dataclasses import replace

import numpy as np
import pytest

from phyxel.material import Material
from phyxel.models.galerkin.forces import PointForces
from phyxel.models.galerkin.space import Space
from phyxel.models.law import LawRow
from phyxel.models.protocol import Goal, Hold
from tests.models.field_models import (
    SOFT,
    at_rest,
    end_of_bar,
    even,
    ground,
    model_of,
    skin_of,
    space_of,
)
from tests.physics.matter import rotation


def clamped_bar(nodes: int, material: Material) -> Space:
    """A bar whose lowest end is held as a face."""
    space, _, _ = space_of("bar", nodes)
    end = np.flatnonzero(space.nodes[:, 0] < space.nodes[:, 0].min() + 0.1)
    return space.joined(end, [LawRow.of(material, np.eye(3))], np.zeros(len(space), int))


def forces_of(name: str, nodes: int, material=SOFT, lag: float = 0.0, held: bool = False) -> PointForces:
    space = clamped_bar(nodes, material) if held else space_of(name, nodes)[0]
    forces = PointForces(space)
    forces.set_laws([LawRow.of(material, np.eye(3))], np.zeros(len(space.points), int))
    start = 0.02 * np.random.default_rng(7).normal(size=(len(space), 3))
    forces.begin(start, np.array([lag]))
    return forces


NEARLY_INCOMPRESSIBLE = SOFT.but(poisson=0.45)


@pytest.mark.parametrize("material", [SOFT, NEARLY_INCOMPRESSIBLE], ids=["soft", "nearly incompressible"])
@pytest.mark.parametrize(("lag", "held"), [(0.0, False), (0.5, False), (0.5, True)])
def test_force_and_tangent_are_derivatives(lag: float, held: bool, material: Material):
    """F = −∂U/∂u and K = −∂F/∂u by central differences, whose own error is h² = 1e-10 and rounding/h = 1e-11, damped
    and not, with a volume term at each point and in the mean of cells, also where one end is held: to 1e-7."""
    forces = forces_of("bar", 251, material, lag, held)
    random = np.random.default_rng(0)
    u, p = (random.normal(size=(len(space_of("bar", 251)[0]), 3)) for _ in range(2))
    u, h = 0.05 * u, 1e-5
    (up, up_force), (down, down_force) = forces.at(u + h * p), forces.at(u - h * p)
    _, force = forces.at(u)
    assert -np.vdot(force, p) == pytest.approx((up - down) / (2 * h), rel=1e-7)
    found = forces.tangent(p)
    np.testing.assert_allclose(found, (down_force - up_force) / (2 * h), atol=1e-7 * np.abs(found).max())
    forces.take_tangent()
    np.testing.assert_allclose(forces.rough_tangent(p), found, atol=1e-5 * np.abs(found).max())
    forces.take_tangent(positive=True)
    assert np.vdot(p, forces.rough_tangent(p)) > 0


def test_cells_of_a_held_face_are_parts_of_those_beside_it():
    """They have no nodes of their own that move; where nothing would lock, ν = 0.3, cells stay. A uniform strain costs
    the same in both, to rounding, and any other less where cells are larger."""
    space, held = space_of("bar", 120)[0], clamped_bar(120, NEARLY_INCOMPRESSIBLE)
    end = np.flatnonzero(space.nodes[:, 0] < space.nodes[:, 0].min() + 0.1)
    assert clamped_bar(120, SOFT.but(poisson=0.3)) is space
    assert np.isin(end, space.functions.lists.owner).all()
    assert not np.isin(end, held.functions.lists.owner).any()
    assert held.joined(end[:0], [LawRow.of(NEARLY_INCOMPRESSIBLE, np.eye(3))], np.zeros(len(space), int)) is not held
    strained = space.nodes @ (0.02 * np.random.default_rng(2).normal(size=(3, 3)))
    fields = strained, 0.02 * np.random.default_rng(3).normal(size=strained.shape)
    energies = [
        [forces_of("bar", 120, NEARLY_INCOMPRESSIBLE, held=part).energy(field) for field in fields]
        for part in (False, True)
    ]
    assert energies[1][0] == pytest.approx(energies[0][0], rel=1e-10)
    assert energies[1][1] < energies[0][1]


@pytest.mark.parametrize("held", [False, True])
def test_nothing_but_rigid_motion_is_free_where_volume_is_kept_in_the_mean(held):
    """Six zero modes at ν = 0.45, in the matrix at rest, and it is the tangent of U there, to rounding; also with the
    cells that it has when one end is held."""
    space = clamped_bar(120, NEARLY_INCOMPRESSIBLE) if held else space_of("bar", 120)[0]
    forces = forces_of("bar", 120, NEARLY_INCOMPRESSIBLE, held=held)
    K = space.stiffness([LawRow.of(NEARLY_INCOMPRESSIBLE, np.eye(3))], np.zeros(len(space.points), int))
    still = np.zeros((len(space), 3))
    forces.begin(still, 0.0)
    forces.at(still)
    p = np.random.default_rng(1).normal(size=still.shape)
    found = forces.tangent(p).reshape(-1)
    assert K @ p.reshape(-1) == pytest.approx(found, abs=1e-12 * np.abs(found).max())
    values = np.linalg.eigvalsh(K.toarray())
    assert (values < 1e-9 * values[-1]).sum() == 6
    assert values[6] > 1e-6 * values[-1]


def test_rigid_motion_costs_nothing():
    """Rigid fields are in the space: no force to rounding, nor by damping from one rotation to another."""
    space, _, _ = space_of("bar", 251)
    forces = PointForces(space)
    forces.set_laws([LawRow.of(SOFT, np.eye(3))], np.zeros(len(space.points), int))
    X = space.nodes
    forces.begin(X @ rotation(30).T - X, np.array([1.0]))
    energy, force = forces.at(X @ rotation(50).T - X + [3, -2, 5])
    assert np.abs(force).max() < 1e-11 * SOFT.young
    assert abs(energy) < 1e-20 * SOFT.young


def patch_error(name: str, nodes: int) -> float:
    """How far a body, whose surfels all are where a uniform deformation takes them, is inside from where that would
    take it, in spacings. There have to be functions, or combinations of some, that vanish at all surfels."""
    model = model_of(name, nodes)
    skin = skin_of(name, nodes)
    model.set_holds([Hold(skin, True)])
    assert model.held.basis.shape[1] < len(model.space)
    H = 0.1 * np.random.default_rng(0).normal(size=(3, 3))
    model.settle(even(model, 0, 0, 0), [Goal(skin @ H.T, np.eye(3))], None, 1e-9)
    return float(np.abs(model.space.values @ model.u - model.space.points @ H.T).max())


@pytest.mark.parametrize(("name", "nodes"), [("box", 343), pytest.param("bear", 600, marks=pytest.mark.slow)])
def test_patch(name: str, nodes: int):
    """A uniform large deformation of the surface goes on inside, to 1e-8 of a spacing: the uniform stress it makes
    pushes nothing. The solve is to 1e-10."""
    error = patch_error(name, nodes)
    print(f"{name}: error {error:.1e} spacings")
    assert error < 1e-8


def test_patch_needs_consistent_gradients():
    """The same with plain gradients is off by about 1e-3."""
    space, _, _ = space_of("box", 343)
    kept = space.functions.pairs.dphi.numpy().copy()
    space.functions.pairs.dphi.assign(space.at(space.points).dphi.numpy())
    error = patch_error("box", 343)
    space.functions.pairs.dphi.assign(kept)
    print(f"plain: error {error:.1e} spacings")
    assert error > 1e-4


def test_holds_are_exact_and_let_go_without_a_jump():
    """Points that are held, still or carried and turned about, are where they are asked to be after every step, to
    1e-9 of a spacing; letting go changes neither u nor v."""
    model = model_of("bar", 251)
    root, tip = end_of_bar(model, -1), end_of_bar(model, 1)
    model.set_holds([Hold(root, True), Hold(tip, False)])
    at_root, at_tip = model.space.at(root), model.space.at(tip)
    middle = tip.mean(axis=0)
    for step in range(1, 9):
        turn = rotation(10.0 * step, (1, 0, 0))
        moved = (tip - middle) @ turn.T + middle + [0.1 * step, 0.2 * step, 0] - tip
        goals = [Goal(np.zeros_like(root), np.eye(3)), Goal(moved, turn)]
        model.step(0.01, even(model, 0, -9.81, 0), goals, None)
        assert np.abs(model.displacement(at_root)).max() < 1e-9
        assert np.abs(model.displacement(at_tip) - moved).max() < 1e-9
    u, v = model.u.copy(), model.v.copy()
    model.set_holds([Hold(root, True)])
    assert (model.u == u).all()
    assert (model.v == v).all()
    model.step(1e-4, even(model, 0, 0, 0), [Goal(np.zeros_like(root), np.eye(3))], None)
    assert np.abs(model.u - u).max() < 2e-4 * np.abs(v).max() + 1e-3


def test_held_surface_satisfies_least_squares():
    """More points than functions: all surfels of one end. Their affine motion is in the space, and met to 1e-6."""
    model = model_of("bar", 251)
    skin = skin_of("bar", 251)
    held = skin[skin[:, 0] < skin[:, 0].min() + 2]
    assert len(held) > 5 * 32
    model.set_holds([Hold(held, False)])
    goal = held @ (rotation(20).T - np.eye(3)) + [0.3, 0, 0]
    model.step(0.01, even(model, 0, 0, 0), [Goal(goal, rotation(20))], None)
    assert np.abs(model.displacement(model.space.at(held)) - goal).max() < 1e-6


def test_held_rotation():
    """One point held with its rotation: J there is that rotation."""
    model = model_of("bar", 251)
    point = np.zeros((1, 3))
    model.set_holds([Hold(point, False, turns=True)])
    for step in range(1, 4):
        goal = Goal(np.array([[0.0, 0.1 * step, 0.0]]), rotation(4.0 * step))
        model.step(0.01, even(model, 0, 0, 0), [goal], None)
    at = model.space.at(point)
    np.testing.assert_allclose(model.displacement(at)[0], [0, 0.3, 0], atol=1e-9)
    np.testing.assert_allclose(np.eye(3) + model.gradient(at)[0], rotation(12), atol=1e-9)


@pytest.mark.parametrize("fills", [False, True], ids=["nodes", "face"])
def test_state_goes_on_with_the_same_bits(fills):
    """What `state` keeps, given to another model with the same holds, goes on bit by bit: turned, standing, flowing,
    nearly incompressible with a face held."""
    clay = SOFT.but(yield_strain=0.01, damping=1e-3, poisson=0.45 if fills else SOFT.poisson)
    floor = ground(-2.1)
    push = None
    models = []
    for _ in range(2):
        model = model_of("bar", 251, clay)
        root = end_of_bar(model, -1)
        model.set_holds([replace(at_rest(root)[0], fills=fills)])
        assert (model.space.functions.lists.owner is not model.space.owner) == fills
        models.append(model)
    first, second = models
    push, goals = even(first, 2, -9.81, 0), [at_rest(root)[1]]
    for _ in range(8):
        first.step(0.01, push, goals, floor)
    assert np.abs(first.state()["plastic"]).max() > 0
    assert first.state()["pressure"].any()
    second.restore(first.state())
    for _ in range(3):
        for model in models:
            model.step(0.01, push, goals, floor)
    for name, value in first.state().items():
        np.testing.assert_array_equal(value, second.state()[name], err_msg=name)
