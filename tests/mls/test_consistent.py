"""Gradients that a quadrature integrates as it should."""

import numpy as np
import pytest

import phyxel as px
from phyxel import device as dev
from phyxel.models.galerkin.fabric import Fabric
from phyxel.models.galerkin.layout import Layout, Placing
from phyxel.models.galerkin.space import Space
from phyxel.models.law import LawRow
from phyxel.solid.solid import Solid

CPU = dev.pick("cpu")


def space_of(name: str, nodes: int, basis: str = "linear", turn: np.ndarray | None = None) -> Space:
    solid = Solid(px.load(name, points=4000))
    sampled = solid.sample(nodes, on_surface=True, basis=basis)
    fabric = Fabric.woven(solid, sampled, basis, CPU)
    middle = np.average(sampled.positions, axis=0, weights=sampled.volumes)
    placing = Placing(middle, sampled.spacing, np.eye(3) if turn is None else turn)
    return Space.whole(Layout(fabric, placing, placing.body(solid.skin.positions), solid.sees, CPU))


@pytest.fixture(scope="module")
def box() -> Space:
    return space_of("box", 729)


def owners(space: Space) -> np.ndarray:
    return np.repeat(np.arange(len(space.points)), np.diff(space.values.indptr))


def sums(space: Space, gradients: np.ndarray) -> np.ndarray:
    """Σ_q w_q ∇φ_I, shape (n, 3)."""
    weight = space.weights[owners(space)]
    return np.stack([np.bincount(space.values.indices, weight * g, len(space)) for g in gradients.T], axis=1)


def untouched(space: Space) -> np.ndarray:
    within = np.ones(len(space), bool)
    within[space.at_skin.index.numpy()] = False
    return within


def test_what_vanishes_on_the_surface_has_no_mean_gradient(box):
    """∫∇φ_I = ∮φ_I n = 0, to rounding; the plain gradients miss it by a thousandth of a spacing squared and more."""
    within = untouched(box)
    plain = box.at(box.points).dphi.numpy()
    assert within.sum() > 60
    assert np.abs(sums(box, plain)[within]).max() > 1e-4
    assert np.abs(sums(box, box.gradients)[within]).max() < 1e-12
    assert np.abs(box.gradients - plain).max() < 0.01


def test_linear_fields_keep_their_gradients(box):
    """Σ_I ∇φ_I = 0 and Σ_I X_I ∇φ_I = 1 at every point: what moves is the share of each node, not their sum."""
    owner, node = owners(box), box.values.indices
    total, first = np.zeros((len(box.points), 3)), np.zeros((len(box.points), 3, 3))
    np.add.at(total, owner, box.gradients)
    np.add.at(first, owner, box.nodes[node][:, :, None] * box.gradients[:, None, :])
    assert np.abs(total).max() < 1e-12
    assert np.abs(first - np.eye(3)).max() < 1e-11


def test_rigid_motions_cost_nothing_and_masses_add_up(box):
    """K u = 0 for u = a + b × X, and Σ M = ρV; K is symmetric with no negative eigenvalue."""
    stiff = box.stiffness(
        [LawRow.of(px.Material(young=1.0, poisson=0.3, density=1.0), np.eye(3))], np.zeros(len(box.points))
    )
    scale = abs(stiff).max()
    for axis in np.eye(3):
        for motion in (np.tile(axis, (len(box), 1)), np.cross(axis, box.nodes)):
            assert np.abs(stiff @ motion.reshape(-1)).max() < 1e-12 * scale * np.abs(box.nodes).max()
    assert abs(stiff - stiff.T).max() < 1e-14 * scale
    assert box.mass(np.full(len(box.points), 2.0)).sum() == pytest.approx(2 * box.weights.sum(), rel=1e-12)


def test_a_turned_cloud_has_turned_gradients():
    """∇φ follows the body's axes: the stiffness of a turned isotropic body is that of the body, turned."""
    turn = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    plain, turned = space_of("box", 100), space_of("box", 100, turn=turn)
    law = [LawRow.of(px.Material(young=1.0, poisson=0.3, density=1.0), np.eye(3))]
    one, other = (s.stiffness(law, np.zeros(len(s.points))).toarray() for s in (plain, turned))
    rotation = np.kron(np.eye(len(plain)), turn)
    assert np.abs(rotation @ one @ rotation.T - other).max() < 1e-12 * np.abs(one).max()
    assert np.allclose(turned.nodes, plain.nodes @ turn.T)
