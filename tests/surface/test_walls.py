"""What surfels of a melt take from the walls they touch."""

import numpy as np
import pytest
import warp as wp

import phyxel as px
from phyxel import device as dev
from phyxel.contact.table import ColliderTable
from phyxel.surface.walls import Walls, closest_wall

CPU = dev.pick("cpu")


def test_of_two_walls_the_deeper_counts():
    ball = px.load("sphere", points=1500)
    molds = [px.Mold(ball, at=(0.43, 0, 0)), px.Mold(ball, at=(-0.45, 0, 0))]
    points = np.array([[0.0, 0, 0], [0.2, 0, 0], [-0.22, 0, 0], [0.01, 0.0, 0.1]])
    found = []
    for some in (molds, molds[::-1]):
        table = ColliderTable([0.3], wp.float32, CPU)
        table.write(some, np.zeros((1, 3)), (0.0, 0.0), 0.0)
        found.append(closest_wall(Walls(table.table, CPU), points / 0.3))
    one, other = found
    for here, there in zip(one, other, strict=True):
        assert np.array_equal(here, there)
    middles = np.array([[0.43, 0, 0], [-0.45, 0, 0]])
    depth = 0.25 - np.linalg.norm(points[:, None] - middles, axis=2).min(axis=1)
    assert one[2] * 0.3 == pytest.approx(depth, abs=0.5 / 96), "to a cell of their grids"
