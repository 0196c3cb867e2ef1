"""Meshes as they come, open, overlapping, in many parts: the solid is what they wind round."""

import numpy as np
import pytest

import phyxel as px
from phyxel.points.cloud import PointCloud
from tests.solid.meshes import ball_mesh, box_mesh, opened, pricked, square, together, turned, winding_numbers


def solid_of(mesh, **options) -> px.Solid:
    return px.Solid(PointCloud(mesh[0], faces=mesh[1], name="made"), **options)


TORSO = (1.0, (0.0, 0.0, 0.0))
HEAD = (0.6, (0.0, 1.3, 0.0))
EYES = [(0.12, (side * 0.25, 1.45, 0.5)) for side in (-1, 1)]
HEART = (0.3, (0.1, 0.2, 0.1))
ARMS = [(0.35, (side * 1.1, 0.1, 0.0)) for side in (-1, 1)]
BALLS = [TORSO, HEAD, *EYES, HEART, *ARMS]


def figure(wrong_way: tuple[int, ...] = ()):
    """A torso with small holes, a head and arms that are open where they are stuck in, eyes, and a heart inside: parts
    that share no vertex. Some of them may be wound the other way."""
    parts = [
        pricked(ball_mesh(*TORSO, rings=32), 25),
        opened(ball_mesh(*HEAD), lambda x: x[:, 1] < 0.85),
        *(ball_mesh(*eye, rings=10) for eye in EYES),
        ball_mesh(*HEART, rings=12),
        *(opened(ball_mesh(*arm, rings=16), lambda x: np.abs(x[:, 0]) < 0.85) for arm in ARMS),
    ]
    return together(*(turned(part) if k in wrong_way else part for k, part in enumerate(parts)))


def balls_distance(x):
    return np.min([np.linalg.norm(x - np.array(c), axis=1) - r for r, c in BALLS], axis=0)


@pytest.mark.parametrize(
    ("wrong_way", "scale", "shift"),
    [
        ((1, 3, 5), 1e-3, 5.0),
        pytest.param((), 1.0, 0.0, marks=pytest.mark.slow),
        pytest.param(range(7), 300.0, -1e4, marks=pytest.mark.slow),
    ],
    ids=["head-eye-and-arm-turned", "right", "all-turned"],
)
def test_an_open_figure_of_many_parts_is_whole(wrong_way, scale, shift):
    """Wherever the mesh winds round a place clearly once or more, or not at all, the solid agrees. Its volume is that
    of the balls within 2 %: facets of a ball of 16 rings or more lie 1 % inside it."""
    whole, given = figure(), figure(wrong_way)
    solid = solid_of((scale * given[0] + shift, given[1]))
    x = np.random.default_rng(1).uniform(whole[0].min(axis=0), whole[0].max(axis=0), (1000, 3))
    wound = winding_numbers(whole, x)
    clear = np.abs(wound - 0.5) > 0.25
    held = solid.inside(scale * x + shift)
    assert clear.mean() > 0.99
    assert (held == (wound > 0.5))[clear].all()
    many = np.random.default_rng(2).uniform(whole[0].min(axis=0), whole[0].max(axis=0), (40_000, 3))
    assert solid.inside(scale * many + shift).sum() == pytest.approx((balls_distance(many) < 0).sum(), rel=0.02)
    assert solid.made_from == "mesh"
    assert solid.findings.open_edges > 100
    assert solid.findings.doubts == ()


@pytest.mark.slow
def test_distance_beside_what_overlaps_and_is_open():
    """Outside the union of balls the distance to it is exact: within the facets' 1 % of the radius, and half of what
    points lie apart, 1 % of the size, over a hole. No wall is left inside the torso: there it is 0.7 from its skin."""
    solid = solid_of(figure())
    x = np.random.default_rng(3).uniform(-2, 2, (4000, 3))
    exact = balls_distance(x)
    outside = exact > 0
    assert np.abs(solid.distance(x) - exact)[outside].max() < 0.03
    assert solid.distance(np.array([[0.0, -0.3, 0.0]]))[0] == pytest.approx(-0.7, abs=0.03)


@pytest.mark.parametrize("gap", [pytest.param(0.002, marks=pytest.mark.slow), 0.02])
def test_a_skin_in_patches_with_gaps_between(gap):
    """Six squares that nearly meet enclose a box, though none of them encloses anything."""
    panels = []
    for axis in range(3):
        for side in (-1, 1):
            vertices, faces = square(2 * (1 - gap), (0, 1, 0))
            turn = np.roll(np.eye(3), axis, axis=0)
            panels.append((side * vertices @ turn, faces if side > 0 else faces[:, ::-1]))
    mesh = together(*panels)
    assert winding_numbers(mesh, np.zeros((1, 3)))[0] == pytest.approx(1, abs=0.05)
    solid = solid_of(mesh)
    assert solid.made_from == "mesh"
    assert solid.volume == pytest.approx(8, rel=0.02)


@pytest.mark.parametrize(
    ("wound", "height"),
    [(turned, 3.0), pytest.param(lambda mesh: mesh, 1.0, marks=pytest.mark.slow)],
    ids=["well-inward", "cube"],
)
def test_a_box_without_its_lid_is_closed_flat(wound, height):
    """On the plane of a flat opening its solid angle is half the sphere: there the film lies."""
    box = box_mesh(half=(1.0, height, 1.0), cells=4)
    solid = solid_of(wound(opened(box, lambda x: x[:, 1] > 0.999 * height)))
    assert solid.volume == pytest.approx(8 * height, rel=0.01)
    assert solid.findings.holes == 1
    lid = 4 / (8 + 16 * height)
    assert solid.findings.closed_share == pytest.approx(lid, rel=0.3)
    over = np.array([[0.0, height + 0.3, 0.0], [0.0, height - 0.3, 0.0]])
    np.testing.assert_allclose(solid.distance(over), [0.3, -0.3], atol=0.03)


def test_sheets_beside_and_within_a_ball_count_for_nothing():
    mesh = together(
        ball_mesh(), square(1.5, (0, 1.4, 0)), square(0.8, (0.1, 0.05, 0)), turned(square(0.5, (0, -0.5, 0)))
    )
    solid = solid_of(mesh)
    assert solid.volume == pytest.approx(4 / 3 * np.pi, rel=0.02)
    assert solid.upper[1] == pytest.approx(1, abs=0.01)
    assert (solid.distance(np.random.default_rng(0).uniform(-0.5, 0.5, (500, 3))) < 0).all()


def test_faces_that_contradict_each_other_are_taken_by_points():
    """Each face a little smaller, so that none shares a vertex, and wound at random: only its points tell."""
    vertices, faces = box_mesh(cells=8)
    flip = np.random.default_rng(1).random(len(faces)) < 0.5
    corners = vertices[np.where(flip[:, None], faces[:, ::-1], faces)]
    middle = corners.mean(axis=1, keepdims=True)
    apart = (middle + 0.98 * (corners - middle)).reshape(-1, 3)
    solid = solid_of((apart, np.arange(len(apart), dtype=np.int32).reshape(-1, 3)))
    assert solid.made_from == "points"
    assert "points on them were taken" in solid.findings.doubts[0]
    assert solid.volume == pytest.approx(8, rel=0.03)


def test_a_double_sided_sheet_is_no_solid():
    sheet = square(1.0)
    with pytest.raises(px.PhyxelError, match="made"):
        solid_of(together(sheet, turned((sheet[0] + [0, 1e-12, 0], sheet[1]))))
