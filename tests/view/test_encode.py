"""Surfels as 16 bytes each: what they stand for is what went in, to the precision that the format has."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from phyxel import device as dev
from phyxel.surface.discs import Discs
from phyxel.view.encode import Encoder
from tests.view.records import RECORD, decoded

DEVICE = dev.pick()


def discs(x: np.ndarray, a: np.ndarray, b: np.ndarray, n: np.ndarray, origin: np.ndarray) -> Discs:
    arrays = (wp.array(np.asarray(field, np.float32), dtype=wp.vec3, device=DEVICE) for field in (x, a, b, n, n))
    return Discs(*arrays, origin)


def skewed(count: int, size: float, origin: np.ndarray, seed: int = 0) -> Discs:
    """Ellipses all over a sphere, half axes of which are neither orthogonal nor of one length; with the normals at
    which codes or frames begin."""
    rng = np.random.default_rng(seed)
    n = rng.normal(size=(count, 3))
    n[:6] = np.concatenate([np.eye(3), -np.eye(3)])
    n[6:400, 1] = np.linspace(0.8999, 0.9001, 394)
    n[6:400, ::2] *= np.sqrt(1 - n[6:400, 1:2] ** 2) / np.linalg.norm(n[6:400, ::2], axis=1, keepdims=True)
    n = (n / np.linalg.norm(n, axis=1, keepdims=True)).astype(np.float32).astype(float)
    a, b = (np.cross(n, rng.normal(size=(count, 3))) * rng.uniform(0.05, 1, (count, 1)) for _ in range(2))
    return discs(size * n, 0.01 * size * a, 0.01 * size * b, n, origin)


@pytest.mark.parametrize(
    ("size", "origin"), [(0.3, (0, 0.5, 0)), (2e-7, (0, 0, 0)), (6e6, (1, 2, 3)), (0.2, (4e8, -3e8, 1e8))]
)
def test_what_comes_out_is_what_went_in(size, origin):
    given = skewed(5000, size, np.array(origin, float))
    encoded = Encoder(DEVICE).encode(given)
    found = decoded(encoded.records, encoded.about())
    assert encoded.about()["count"] == 5000

    # Half a quantum, and what single precision and doubles far away leave: 2^-24 · 65535 of a quantum, and an ulp.
    quantum = (encoded.upper - encoded.lower) / 65535
    assert np.all(np.abs(found.positions - given.positions) <= 0.51 * quantum + 2 * np.spacing(np.abs(given.positions)))

    n = given.normals.astype(float)
    sine = np.linalg.norm(np.cross(found.normals, n), axis=1)
    assert np.degrees(np.arcsin(sine)).max() < 0.01 and np.all(np.sum(found.normals * n, axis=1) > 0)

    # The ellipse a cos t + b sin t has the singular values of (a b) as half axes.
    sides = np.stack([given.axis_a.numpy(), given.axis_b.numpy()], axis=2).astype(float)
    left, axes, _ = np.linalg.svd(sides, full_matrices=False)
    told = axes > 2e-4 * encoded.finest  # beyond 16 octaves below the finest nothing is thinner
    ratio = found.axes / np.maximum(axes, 1e-300)
    assert np.all(ratio > 1 - 1e-5) and np.all(ratio[told] < 1.05)
    slim = axes[:, 0] > 1.1 * axes[:, 1]
    along = np.abs(np.sum(found.first * left[:, :, 0], axis=1))[slim]
    # Half a code is 0.35 degrees.
    assert np.degrees(np.arccos(np.minimum(along, 1))).max() < 0.5
    assert not np.frombuffer(encoded.records, RECORD)["flags"].any()


def test_values_lie_on_the_legend_and_beyond_its_ends():
    given = skewed(600, 1.0, np.zeros(3))
    values = wp.array(np.linspace(-30, 50, 600).astype(np.float32), dtype=float, device=DEVICE)
    encoded = Encoder(DEVICE).encode(given, values, (-10.0, 30.0))
    found = decoded(encoded.records, encoded.about()).values
    assert np.abs(found - np.clip((values.numpy() + 10) / 40, 0, 1)).max() < 1e-5


def test_none_one_and_what_has_no_extent():
    encoder = Encoder(DEVICE)
    none = encoder.encode(discs(*np.zeros((4, 0, 3)), np.ones(3)))
    assert none.records == b"" and none.about()["count"] == 0 and np.isfinite(none.lower).all()
    flat = discs([[0, 0, 1], [2, 0, 1]], [[0, 0, 0], [1, 0, 0]], [[0, 0, 0], [1, 0, 0]], [[0, 1, 0]] * 2, np.ones(3))
    encoded = encoder.encode(flat)
    found = decoded(encoded.records, encoded.about())
    assert np.allclose(found.positions, [[1, 1, 2], [3, 1, 2]], atol=1e-12)
    # A needle and a point are as thin as can be told.
    assert (
        np.allclose(found.axes[1, 0], np.sqrt(2), rtol=0.05) and found.axes[1, 1] < 1e-4 and found.axes[0].max() < 1e-4
    )


def test_more_and_fewer_than_before():
    encoder = Encoder(DEVICE)
    for count in (1000, 5000, 700):
        given = skewed(count, 1.0, np.zeros(3), seed=count)
        encoded = encoder.encode(given)
        assert encoded.records == Encoder(DEVICE).encode(given).records and len(encoded.records) == 16 * count
