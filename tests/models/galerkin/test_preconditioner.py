"""The system of a step at rest, inverted (physics 10.6)."""

import numpy as np
import pytest
from scipy.sparse import csr_array, kron

from phyxel.models.galerkin import inverse, preconditioner
from phyxel.models.law import LawRow
from tests.models.field_models import SOFT, space_of
from tests.physics.test_bar import RUBBERY


@pytest.fixture(scope="module")
def bar():
    """A space, and A and K₀ of steps of 1/200 s."""
    space, _, unit = space_of("bar", 120)
    inertia = csr_array(space.mass(np.full(len(space.points), RUBBERY.density * unit**2)) * 200**2)
    return space, inertia, space.stiffness([LawRow.of(SOFT, np.eye(3))], np.zeros(len(space.points), int))


@pytest.fixture(params=["double", "single"])
def system(bar, request, monkeypatch):
    if request.param == "single":
        monkeypatch.setattr(inverse, "MOST_IN_DOUBLE", 0)
    space, inertia, stiffness = bar
    return preconditioner.RestSystem(inertia, stiffness, np.zeros((len(space), 0)), space.device)


def whole(inertia, stiffness):
    return (stiffness + kron(inertia, np.eye(3))).toarray()


def test_is_the_inverse(bar, system):
    """H⁻¹ H u = u, and G H⁻¹ Gᵀ is what unit forces at points do. Single precision leaves 6e-8 of the largest entries:
    those of fields that hardly any point feels, a thousand times what points do."""
    space, inertia, stiffness = bar
    H = whole(inertia, stiffness)
    u = np.random.default_rng(0).normal(size=(len(space), 3))
    np.testing.assert_allclose(system.apply((H @ u.reshape(-1)).reshape(-1, 3)), u, atol=1e-4)
    rows = csr_array(space.at_nodes.values[[3, 40, 80]])
    G = kron(rows, np.eye(3)).toarray()
    exact = G @ np.linalg.solve(H, G.T)
    np.testing.assert_allclose(system.compliance(rows), exact, rtol=0, atol=6e-5 * exact.max())


def test_contacts(bar, system):
    """Springs at points are part of it: with them, too, H⁻¹ H u = u."""
    space, inertia, stiffness = bar
    rows, spring = csr_array(space.at_nodes.values[[5, 60]]), 30 * stiffness.diagonal().max()
    system.grip(rows, np.tile(spring * np.eye(3), (2, 1, 1)))
    G = kron(rows, np.eye(3)).toarray()
    H = whole(inertia, stiffness) + spring * G.T @ G
    u = np.random.default_rng(1).normal(size=(len(space), 3))
    np.testing.assert_allclose(system.apply((H @ u.reshape(-1)).reshape(-1, 3)), u, atol=1e-3)


def test_a_fall_shakes_nothing(bar, system):
    """Forces that move a free body as a whole move all of it alike, to rounding of doubles."""
    space, inertia, _ = bar
    fall = np.array([0.1, -2.0, 0.3])
    moved = system.apply(inertia @ np.tile(fall, (len(space), 1)))
    np.testing.assert_allclose(moved, np.tile(fall, (len(space), 1)), atol=1e-12)
