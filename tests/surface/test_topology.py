"""Which phyxels lie at the boundary (M04 eq. 29)."""

import numpy as np
import pytest

import phyxel as px
from phyxel.movers.phyxel_bodies import phyxels_of
from phyxel.surface.topology import outside_probability


@pytest.fixture(scope="module")
def box():
    world = px.World(gravity=(0, 0, 0), device="cpu")
    body = px.Body(px.load("box", points=500), nodes=1000, scheme="m04")
    world.add(body)
    model = phyxels_of(world).model
    return model, body, outside_probability(model.matter.X, model.matter.near)


def test_outside_is_what_the_equation_says(box):
    model, _, P = box
    X, pairs = model.matter.X.numpy().astype(float), model.matter.near.pairs()
    for i in range(0, len(X), 37):
        C = np.cov(X[[i, *pairs.index[pairs.start[i] : pairs.start[i] + pairs.count[i]]]].T, bias=True)
        assert P[i] == pytest.approx(1 - np.linalg.det(C) / (np.trace(C) / 3) ** 3, abs=1e-5)


def test_outside_is_told_from_inside(box):
    """Of a half ball of radius h, C has the eigenvalues h²/5 twice and (1/5 − 9/64) h²: P = 0.34. On a face of a
    lattice the phyxels' own plane counts in full, so it is less; in the middle it is 0, and at edges more."""
    _, body, P = box
    x = 2 * (body.reference - body.reference.mean(axis=0)) / np.ptp(body.reference, axis=0)
    edge = np.sort(np.abs(x), axis=1)
    face = (edge[:, 2] > 0.95) & (edge[:, 1] < 0.6)
    assert P[edge[:, 2] < 0.6].max() < 0.01
    assert 0.2 < P[face].min() <= P[face].max() < 0.34
    assert P[(edge[:, 1] > 0.95) & (edge[:, 0] < 0.6)].min() > P[face].max()
