"""Neighbour lists against the plain double loop, moment matrices against NumPy, and the degenerate ones flagged."""

import numpy as np
import pytest
import warp as wp

from phyxel import device as dev
from phyxel.mls.carry import CARRIERS, Carriers
from phyxel.mls.moments import THINNEST, choose_supports, prepare_neighbourhood
from phyxel.mls.neighbours import Neighbourhood, PairList, curve_order, find_pairs, mean_spacing

CPU = dev.pick("cpu")


@pytest.fixture
def cloud():
    rng = np.random.default_rng(0)
    return rng.uniform(-4, 4, (400, 3)), rng.uniform(1.0, 3.0, 400)


def lists_of(pairs: PairList) -> list[set[int]]:
    return [set(pairs.index[s : s + c].tolist()) for s, c in zip(pairs.start, pairs.count, strict=True)]


def test_pairs_are_the_symmetric_union(cloud):
    X, h = cloud
    distance = np.linalg.norm(X[:, None] - X, axis=2)
    near = (distance < np.maximum(h[:, None], h)) & ~np.eye(len(X), dtype=bool)
    assert lists_of(find_pairs(X, h, CPU)) == [set(np.flatnonzero(row).tolist()) for row in near]


def test_weights_know_both_directions(cloud):
    X, h = cloud
    positions = wp.array(X.astype(np.float32), dtype=wp.vec3, device=CPU)
    pairs = find_pairs(X, h, CPU)
    near, moments = prepare_neighbourhood(positions, h, pairs, CPU)
    i = np.repeat(np.arange(len(X)), pairs.count)
    x = positions.numpy().astype(np.float64)
    square = ((x[pairs.index] - x[i]) ** 2).sum(axis=1)
    forth = np.maximum(1 - square / h[i] ** 2, 0) ** 3
    back = np.maximum(1 - square / h[pairs.index] ** 2, 0) ** 3
    assert np.allclose(near.weight.numpy(), forth, atol=1e-7)
    assert np.allclose(near.weight_back.numpy(), back, atol=1e-7)
    arm = x[pairs.index] - x[i]
    A = np.zeros((len(X), 3, 3))
    np.add.at(A, i, near.weight.numpy()[:, None, None] * arm[:, :, None] * arm[:, None, :])
    good = ~moments.degenerate
    assert np.allclose(np.einsum("nab,nbc->nac", moments.inverse.numpy()[good], A[good]), np.eye(3), atol=1e-3)
    eigenvalues = np.linalg.eigvalsh(A[good])
    assert np.allclose(moments.ratio.numpy()[good], eigenvalues[:, 0] / eigenvalues[:, 2], atol=1e-9)


def test_sheets_lines_and_lone_points_are_degenerate():
    """No gradient across them can be known: flagged, and their inverse is zero."""
    line = np.stack([np.arange(30.0), np.zeros(30), np.zeros(30)], axis=1)
    grid = np.stack([*np.meshgrid(np.arange(8.0), np.arange(8.0)), np.zeros((8, 8))], axis=-1).reshape(-1, 3)
    for nodes in (line, grid):
        X = wp.array(nodes.astype(np.float32), dtype=wp.vec3, device=CPU)
        support, pairs = choose_supports(nodes, 2.0, CPU)
        _, moments = prepare_neighbourhood(X, support, pairs, CPU)
        assert moments.degenerate.all()
        assert not moments.inverse.numpy().any()


def test_a_thin_neighbourhood_is_widened():
    """A single layer with few nodes above it: the support grows until the gradient across is known."""
    sheet = np.stack([*np.meshgrid(np.arange(12.0), np.arange(12.0)), np.zeros((12, 12))], axis=-1).reshape(-1, 3)
    nodes = np.concatenate([sheet, sheet[::3] * [1, 1, 0] + [0, 0, 3.0]])
    support, pairs = choose_supports(nodes, 1.3, CPU)
    _, moments = prepare_neighbourhood(
        wp.array(nodes.astype(np.float32), dtype=wp.vec3, device=CPU), support, pairs, CPU
    )
    assert (support > 1.3 * mean_spacing(nodes) * 1.1).any()
    assert moments.ratio.numpy().min() >= THINNEST


def test_both_layouts_hold_the_same_lists(cloud):
    """CSR for the CPU; k-major for CUDA, checked here by laying it out on the CPU."""
    X, h = cloud
    pairs = find_pairs(X, h, CPU)

    class Pretended:
        is_cuda = True

    original = wp.array
    try:
        wp.array = lambda data, dtype, device: original(data, dtype=dtype, device="cpu")
        zeros, wp.zeros = wp.zeros, lambda n, dtype, device: original(np.zeros(n), dtype=dtype, device="cpu")
        columns = Neighbourhood.laid_out(pairs, wp.float32, Pretended())
    finally:
        wp.array, wp.zeros = original, zeros
    rows = Neighbourhood.laid_out(pairs, wp.float32, CPU)
    for near in (rows, columns):
        start, count, index = near.start.numpy(), near.count.numpy(), near.index.numpy()
        found = [set(index[s + np.arange(c) * near.stride].tolist()) for s, c in zip(start, count, strict=True)]
        assert found == lists_of(pairs)
    assert (rows.stride, columns.stride) == (1, len(X))


def test_curve_order_keeps_neighbours_near():
    X = np.stack(np.meshgrid(*[np.arange(16.0)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    shuffled = X[np.random.default_rng(1).permutation(len(X))]
    ordered = shuffled[curve_order(shuffled)]
    assert len(np.unique(ordered, axis=0)) == len(X)
    assert np.linalg.norm(np.diff(ordered, axis=0), axis=1).mean() < 2.0


def test_carried_points_follow_an_affine_motion_exactly():
    """u = G X + t is reproduced at any point, whatever the weights."""
    rng = np.random.default_rng(2)
    nodes, points = rng.uniform(-3, 3, (200, 3)), rng.uniform(-4, 4, (500, 3))
    G, t = 0.3 * rng.normal(size=(3, 3)), rng.normal(size=3)
    carriers = Carriers.found(points, nodes)
    moved = carriers.carry(points, nodes, nodes @ G.T + t, np.broadcast_to(G, (200, 3, 3)))
    assert carriers.nodes.shape == (500, CARRIERS)
    assert np.abs(moved - (points @ G.T + t)).max() < 1e-6


def test_the_carried_field_is_continuous():
    """Along a line through the cloud, displacement changes by no more than the step times its slope: no jumps."""
    rng = np.random.default_rng(3)
    nodes = rng.uniform(-3, 3, (400, 3))
    u = np.stack([np.sin(nodes[:, 1]), np.cos(nodes[:, 0]), nodes[:, 2] ** 2 / 4], axis=1)
    gradient = np.zeros((400, 3, 3))
    gradient[:, 0, 1], gradient[:, 1, 0], gradient[:, 2, 2] = np.cos(nodes[:, 1]), -np.sin(nodes[:, 0]), nodes[:, 2] / 2
    line = np.linspace([-2, -2, -2], [2, 2, 2], 20_001)
    field = Carriers.found(line, nodes).carry(line, nodes, u, gradient)
    steps = np.linalg.norm(np.diff(field, axis=0), axis=1) / np.linalg.norm(line[1] - line[0])
    assert steps.max() < 5.0
