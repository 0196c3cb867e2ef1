"""A factor of links and of what touches (physics 15.16)."""

import numpy as np
import pytest
from scipy.sparse import bsr_array, csr_array

from phyxel.models.particles.touched import TouchedFactor
from phyxel.models.particles.touches import Touches

SIDE = 6
FIRM = 1e4


def lattice() -> tuple[np.ndarray, csr_array, np.ndarray]:
    """Places of a lattice, who is joined in it, and blocks of springs in all directions and of inertia 1."""
    i, j = (part.ravel() for part in np.meshgrid(range(SIDE), range(SIDE), indexing="ij"))
    x = np.stack([i, j, 0 * i], axis=1).astype(float)
    joined = csr_array((np.abs(x[:, None] - x).sum(axis=2) <= 1).astype(float))
    joined.sort_indices()
    row = np.repeat(np.arange(len(x)), np.diff(joined.indptr))
    many = np.diff(joined.indptr)[row] - 1
    size = np.where(row == joined.indices, 1.0 + many, -1.0)
    return x, joined, size[:, None, None] * np.eye(3)


def touching(who: list[list[int]], count: int) -> Touches:
    """Each a particle against the middle of the three others."""
    weights = np.array([1, -1 / 3, -1 / 3, -1 / 3])
    index, data = [], []
    for one in who:
        order = np.argsort(one)
        index += [one[k] for k in order]
        data += [weights[k] * np.eye(3) for k in order]
    k = len(who)
    J = bsr_array((np.array(data), np.array(index), 4 * np.arange(k + 1)), shape=(3 * k, 3 * count))
    zeros = np.zeros((k, 3))
    return Touches(
        J, np.zeros((3 * k, 0)), np.tile(np.eye(3), (k, 1, 1)), zeros, zeros[:, 0], zeros[:, 0], np.zeros(k, bool)
    )


@pytest.mark.parametrize("knows", [False, True])
def test_it_is_positive_whoever_touches(knows: bool) -> None:
    """Touches between particles that are linked in part: rᵀ A⁻¹ r > 0 of any force; and where it knows all of them it
    is the factor of all that there is, to rounding."""
    x, joined, blocks = lattice()
    who = [[0, 1, 6, 14], [21, 22, 33, 35], [7, 13, 28, 2], [30, 24, 25, 5]]
    touches, bend = touching(who, len(x)), np.tile(FIRM * np.eye(3), (len(who), 1, 1))
    factor = TouchedFactor(x, joined)
    if knows:
        factor = factor.joining(touches, x)
    assert factor.factor(blocks, touches, bend) == knows
    links = bsr_array((blocks, joined.indices, joined.indptr)).toarray()
    J = touches.J.toarray()
    every = links + FIRM * J.T @ J
    for r in np.random.default_rng(0).normal(size=(20, *x.shape)):
        led = factor.solve(r)
        assert (led * r).sum() > 0
        if knows:
            np.testing.assert_allclose(every @ led.ravel(), r.ravel(), atol=1e-9)
