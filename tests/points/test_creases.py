"""Normals beside sharp edges are those of the faces, and of what is round or noisy those of before."""

import numpy as np
import pytest

from phyxel.points.cloud import Floats
from phyxel.points.creases import beside_creases
from phyxel.points.normals import estimate_normals, neighbourhoods


def before_and_after(points: Floats, right: Floats) -> tuple[Floats, Floats]:
    """How far normals are off those that are right (n, 3), without and with a look at creases [degrees]."""
    near = neighbourhoods(points)
    smooth = estimate_normals(points, near)[near.original].astype(np.float64)
    turns = [(n * right[near.original]).sum(axis=1) for n in (smooth, beside_creases(smooth, near))]
    one, other = (np.degrees(np.arccos(np.clip(turn, -1, 1))) for turn in turns)
    return one, other


def box(count: int, sides: tuple[float, float, float], seed: int) -> tuple[Floats, Floats]:
    """Points at random on the faces of a box, and their normals."""
    random, size = np.random.default_rng(seed), np.array(sides)
    areas = np.prod(size) / size
    axis, every = random.choice(3, count, p=areas / areas.sum()), np.arange(count)
    x, normals = random.random((count, 3)), np.zeros((count, 3))
    x[every, axis] = random.integers(2, size=count)
    normals[every, axis] = 2 * x[every, axis] - 1
    return (x * size) @ TURN, normals @ TURN


TURN = np.linalg.qr(np.random.default_rng(7).standard_normal((3, 3)))[0]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("count", "sides"), [(6000, (1.0, 0.05, 0.05)), (1000, (2.0, 0.5, 0.4))])
def test_points_beside_an_edge_look_where_their_face_does(count, sides, seed):
    """A third of the points have an edge among their neighbours, and most of these were off by more than 10°. Less than
    a third of those are now (0.16 to 0.25 in twelve boxes), many so near to an edge that two faces are as near."""
    before, after = before_and_after(*box(count, sides, seed))
    print((before > 10).mean(), (after > 10).mean())
    assert (before > 10).mean() > 0.25
    assert (after > 10).mean() < (before > 10).mean() / 3


@pytest.mark.parametrize("count", [300, 1000])
def test_a_ball_has_no_creases(count):
    """Where points lie at all heights over a plane there is no face: hardly any normal turns."""
    x = np.random.default_rng(1).normal(size=(count, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    before, after = before_and_after(x, x)
    assert (before != after).mean() < 0.01
    assert after.max() < before.max() + 1


def test_noise_is_no_crease():
    """A face whose points scatter by a tenth of their spacing has the normals of before, but for a few."""
    random = np.random.default_rng(2)
    x = np.concatenate([60 * random.random((3600, 2)), 0.1 * random.standard_normal((3600, 1))], axis=1)
    near = neighbourhoods(x)
    smooth = estimate_normals(x, near)[near.original].astype(np.float64)
    assert (beside_creases(smooth, near) != smooth).any(axis=1).mean() < 0.01
