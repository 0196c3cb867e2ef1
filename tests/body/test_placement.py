"""Where a body is when it is put somewhere: by its foot, its middle or its file's origin, turned and scaled."""

import numpy as np
import pytest

import phyxel as px
from phyxel.body.placement import Pose
from phyxel.rotation import euler

ROUNDING = 1e-12


def lump(seed: int, count: int = 400) -> px.PointCloud:
    """Points of a lopsided thing, far from its origin, between one and ten metres large."""
    luck = np.random.default_rng(seed)
    return px.PointCloud(luck.uniform(-30, 30, 3) + luck.uniform(0.5, 5, 3) * luck.normal(size=(count, 3)) ** 3)


def put(cloud: px.PointCloud, at=None, place=None, rotate=None, size=None) -> np.ndarray:
    placement = Pose("lump", at, place, rotate, size).of(cloud, cloud.lower, cloud.upper)
    placed = placement.placed(cloud.positions)
    assert np.abs(placement.unplaced(placed) - cloud.positions).max() < 1e3 * ROUNDING
    return placed


POSES = [
    {},
    {"size": 0.02},
    {"rotate": (90.0, 0.0, 0.0)},
    {"rotate": (20.0, -130.0, 55.0), "size": 7.0},
]


@pytest.mark.parametrize("pose", POSES, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_a_body_is_where_its_spot_is_put(pose, seed):
    cloud, at = lump(seed), np.array([3.0, -1.5, 0.25])
    scale = pose.get("size", cloud.size) / cloud.size
    R = euler(pose.get("rotate", (0, 0, 0)))
    # Foot: the middle of what is seen from above, at its lowest point; said or not.
    for given in ({"place": "ground"}, {}):
        x = put(cloud, at, **given, **pose)
        foot = [0.5 * (x[:, 0].min() + x[:, 0].max()), x[:, 1].min(), 0.5 * (x[:, 2].min() + x[:, 2].max())]
        assert foot == pytest.approx(at, abs=1e3 * ROUNDING)
    # Centre: the middle of its own box.
    x = put(cloud, at, "center", **pose)
    assert np.abs(x - (at + scale * (cloud.positions - 0.5 * (cloud.lower + cloud.upper)) @ R.T)).max() < 1e3 * ROUNDING
    # File: x -> at + scale R x.
    x = put(cloud, at, "file", **pose)
    assert np.abs(x - (at + scale * cloud.positions @ R.T)).max() < 1e3 * ROUNDING


@pytest.mark.parametrize("pose", POSES, ids=str)
def test_arrays_and_shapes_stay_where_their_points_are(pose):
    """They turn and grow about the middle of their box."""
    cloud = lump(5)
    middle = 0.5 * (cloud.lower + cloud.upper)
    scale = pose.get("size", cloud.size) / cloud.size
    turned = (cloud.positions - middle) @ euler(pose.get("rotate", (0, 0, 0))).T
    assert np.array_equal(put(cloud, **pose), middle + scale * turned)
    if not pose:
        assert np.abs(put(cloud) - cloud.positions).max() < 1e3 * ROUNDING


def written(path, shift):
    """A block of 1 × 2 × 1.5 m, from a file."""
    corners = np.array([(x, y, z) for x in (0, 1) for y in (0, 2) for z in (0, 1.5)]) + shift
    quads = [(1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5), (2, 6, 8, 4)]
    lines = ["v {} {} {}".format(*x) for x in corners] + ["f {} {} {} {}".format(*quad) for quad in quads]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("points", [None, 500])
@pytest.mark.parametrize("model", ["phyxel", "galerkin", "particles"])
def test_a_file_stands_on_the_origin_and_parts_of_one_stay_together(model, points, tmp_path):
    clouds = [px.load(written(tmp_path / f"{x}.obj", (x, 7, -3)), points) for x in (40, 41)]
    options = {"model": model, "nodes": 30} | ({"links": "none"} if model == "particles" else {})
    alone = px.Body(clouds[0], **options).placed_cloud()
    assert 0.5 * (alone.min(axis=0) + alone.max(axis=0))[[0, 2]] == pytest.approx([0, 0], abs=1e-9)
    assert alone[:, 1].min() == pytest.approx(0, abs=1e-9)
    parts = [px.Body(cloud, place="file", size=0.1, **options).placed_cloud() for cloud in clouds]
    assert np.mean(parts[1] - parts[0], axis=0) == pytest.approx([0.05, 0, 0], abs=1e-6 if points is None else 1e-3)


def test_an_unknown_place_is_refused_with_the_near_miss():
    with pytest.raises(px.PhyxelError, match=r'box: place = "grund": not known; did you mean "ground"'):
        px.Body(px.load("box", points=300), nodes=27, place="grund")
    with pytest.raises(px.PhyxelError, match=r'body\[0\]\.place = "centre".*did you mean "center"'):
        px.Scene.parse('[[body]]\nshape = "box"\nplace = "centre"\n')


def test_scenes_put_bodies_where_python_does():
    text = '[[body]]\nshape = "bear"\npoints = 2000\nnodes = 40\nat = [1, 2, 3]\nrotate = [0, 0, 30]\nsize = 0.3\n'
    for place in ("ground", "center", "file"):
        made = px.Scene.parse(text + f'place = "{place}"\n').world("cpu").bodies[0]
        body = px.Body(px.load("bear", points=2000), nodes=40, at=(1, 2, 3), place=place, rotate=(0, 0, 30), size=0.3)
        assert np.array_equal(made.birth, body.birth)
