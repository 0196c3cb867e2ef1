"""Signed distances of colliders, against closed forms and dense sampling, in double."""

import numpy as np
import pytest
import warp as wp

import phyxel as px
from phyxel import device as dev
from phyxel.contact import table

SPIKE = px.Spike(0.6, 0.25)
FUNNEL = px.Funnel(0.5, 0.1, 0.4, 0.05)
SHAPES = [px.Sphere(0.4), px.Box((-0.3, -0.2, -0.1), (0.3, 0.2, 0.1)), px.Capsule((0, -0.3, 0), (0, 0.3, 0), 0.2)]


def measured(collider, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return table.measured(collider, points, dev.pick("cpu"), wp.float64)


def somewhere(count: int = 4000, reach: float = 0.9) -> np.ndarray:
    return np.random.default_rng(3).uniform(-reach, reach, (count, 3))


def sphere_form(p):
    return np.linalg.norm(p, axis=1) - 0.4


def box_form(p):
    q = np.abs(p) - [0.3, 0.2, 0.1]
    return np.linalg.norm(np.maximum(q, 0), axis=1) + np.minimum(q.max(axis=1), 0)


def capsule_form(p):
    nearest = np.stack([0 * p[:, 1], np.clip(p[:, 1], -0.3, 0.3), 0 * p[:, 1]], axis=1)
    return np.linalg.norm(p - nearest, axis=1) - 0.2


@pytest.mark.parametrize(
    ("collider", "form"),
    list(zip(SHAPES, (sphere_form, box_form, capsule_form), strict=True)),
    ids=("sphere", "box", "capsule"),
)
def test_closed_forms(collider, form):
    p = somewhere()
    assert measured(collider, p)[0] == pytest.approx(form(p), abs=1e-12)


def corners(collider) -> np.ndarray:
    """The profile (radius, height) of a solid of revolution, once around."""
    if isinstance(collider, px.Spike):
        return np.array([[0, 0], [collider.radius, 0], [0, collider.height]])
    lower, upper, height = collider.lower_radius, collider.upper_radius, collider.height
    # A wall of thickness t that leans by the angle a is t / cos a wide along its level rims.
    rim = collider.thickness / np.cos(np.arctan2(upper - lower, height))
    return np.array([[lower, 0], [lower + rim, 0], [upper + rim, height], [upper, height]])


def inside(profile: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Which of (n, 2) places lie left of all edges of a convex profile."""
    edges = np.roll(profile, -1, axis=0) - profile
    ways = q[:, None] - profile
    return np.all(edges[:, 0] * ways[..., 1] - edges[:, 1] * ways[..., 0] >= 0, axis=1)


@pytest.mark.parametrize("collider", [SPIKE, FUNNEL], ids=["spike", "funnel"])
def test_solids_of_revolution_against_dense_samples(collider):
    """The nearest of 4000 points on each edge of the profile is at most half a step (0.1 mm) too far along it, which is
    that squared over twice the distance: 1e-6 m at 5 mm, which nearer places are let off."""
    profile = corners(collider)
    p = somewhere(800)
    q = np.stack([np.hypot(p[:, 0], p[:, 2]), p[:, 1]], axis=1)
    share = np.linspace(0, 1, 4000)[:, None]
    edges = [a + share * (b - a) for a, b in zip(profile, np.roll(profile, -1, axis=0), strict=True)]
    if isinstance(collider, px.Spike):
        edges.pop()  # the axis is no surface
    far = np.array([min(np.sqrt(((edge - one) ** 2).sum(axis=1).min()) for edge in edges) for one in q])
    expected = np.where(inside(profile, q), -far, far)
    d, _ = measured(collider, p)
    clear = far > 5e-3
    assert clear.sum() > 700
    assert d[clear] == pytest.approx(expected[clear], abs=2e-6)


@pytest.mark.parametrize("collider", [*SHAPES, SPIKE, FUNNEL], ids=lambda one: one.label)
def test_the_normal_leads_to_the_surface(collider):
    """d(x − d n) = 0 from everywhere, and n is where d grows (a distance has slope 1 along it)."""
    p = somewhere()
    d, n = measured(collider, p)
    assert np.linalg.norm(n, axis=1) == pytest.approx(1, abs=1e-12)
    assert measured(collider, p - d[:, None] * n)[0] == pytest.approx(0, abs=1e-12)
    assert measured(collider, p + 1e-6 * n)[0] == pytest.approx(d + 1e-6, abs=1e-12)


def test_a_mold_is_as_far_as_its_solid():
    """On a grid of 96 cells cubic interpolation of a smooth distance is right to 1e-3 cells. Beyond the grid it is the
    distance to a point of the surface, though not always the nearest: never too short, for a ball at most 7 % too
    long."""
    ball = px.Mold(px.load("sphere", points=300))
    p = somewhere(reach=0.6)
    r = np.linalg.norm(p, axis=1)
    d, n = measured(ball, p)
    cell = 0.5 / 96
    near = np.abs(r - 0.25) < 0.02
    assert near.sum() > 50
    assert d[near] == pytest.approx(r[near] - 0.25, abs=1e-3 * cell)
    assert np.einsum("ij,ij->i", n, p / r[:, None])[near].min() > 0.9999
    beyond = r > 0.35
    ratio = d[beyond] / (r[beyond] - 0.25)
    assert ratio.min() > 1 - 1e-4 and ratio.max() < 1.07


def test_a_mold_inside_out_is_solid_around_its_cavity():
    bowl = px.Mold(px.load("sphere", points=300), inside_out=True, open_above=0.1)
    y = np.array([[0, 0, 0], [0.2, 0, 0], [0, -0.27, 0], [0, 0.15, 0], [0.28, 0.15, 0], [0.27, 0.05, 0], [0.4, 0, 0]])
    d, n = measured(bowl, y)
    assert d[:2] == pytest.approx([0.25, 0.05], abs=1e-3), "free in the cavity"
    assert d[2] == pytest.approx(-0.02, abs=1e-3) and n[2] == pytest.approx([0, 1, 0], abs=1e-3), "out is up there"
    assert d[3] > 0 and d[4] == pytest.approx(0.05, abs=1e-3), "cut away above, level"
    assert d[5] < 0 and d[6] == pytest.approx(0.1, abs=1e-3), "a block with an outside, a tenth thick"
