"""The world that is put around something bare."""

import numpy as np
import pytest

from phyxel.scene.around import FALL, Bare

G = 9.81


def ball(path, radius, middle=(0.0, 0.0, 0.0), stretch=1.0, seed=0):
    """Points and normals on a ball, or on an egg upright along y."""
    n = np.random.default_rng(seed).normal(size=(1500, 3))
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    outward = n / (1, stretch, 1)
    outward /= np.linalg.norm(outward, axis=1, keepdims=True)
    np.savetxt(path, np.hstack([middle + radius * n * (1, stretch, 1), outward]))
    return path


@pytest.mark.parametrize(
    ("radius", "middle", "stretch"),
    [(0.3, (50, 7, -3), 1.0), (90.0, (0, 0, 0), 1.0), (0.002, (0, -4, 0), 2.0), (1.0, (0, 0, 1e4), 0.2)],
)
def test_a_scan_is_dropped_as_large_as_it_is_and_comes_to_lie(radius, middle, stretch, tmp_path):
    """E = 60 ρ g h, and it falls by a part of its height h: it is there before √(2h/g), and is watched for a while."""
    file = ball(tmp_path / "ball.xyz", radius, middle, stretch)
    scene = Bare("ball.xyz", file).dropped(nodes=60)
    part, height = scene.content.body[0], 2 * radius * stretch
    assert part.size is None and part.material.young == pytest.approx(60 * 1000 * G * height, rel=0.02)
    world = scene.world("cpu")
    x = world.bodies[0].surface.positions
    assert x[:, 1].min() == pytest.approx(FALL * height, rel=0.01)
    assert np.abs(0.5 * (x.min(axis=0) + x.max(axis=0)))[[0, 2]].max() < 0.01 * radius
    assert scene.seconds > np.sqrt(2 * FALL * height / G) + 1
    assert scene.toml() == scene.source  # with its comments, and found from anywhere


@pytest.mark.parametrize("shape", ["bear", "torus"])
def test_it_lands_and_comes_to_rest(shape):
    scene = Bare(shape).dropped(nodes=120)
    world = scene.world("cpu")
    body = world.bodies[0]
    size, lowest = np.ptp(body.surface.positions, axis=0).max(), []
    for frame in world.play(scene.seconds, fps=30):
        lowest.append(frame.bodies[0].surface.positions[:, 1].min())
    assert lowest[0] > 0.05 * size and abs(lowest[-1]) < 0.02 * size
    assert np.abs(body.velocities).max() < 0.1 * np.sqrt(G * size)


def test_units_and_up_are_in_the_scene(tmp_path):
    file = ball(tmp_path / "egg.xyz", 100.0, stretch=2.0)
    plain = Bare("egg.xyz", file)
    assert plain.is_odd_in_size and plain.height == pytest.approx(400, rel=0.01)
    told = Bare("egg.xyz", file, units="mm", up="z")
    assert not told.is_odd_in_size and told.height == pytest.approx(0.2, rel=0.01)
    part = told.dropped().content.body[0]
    assert (part.units, part.up) == ("mm", "z")


def test_what_encloses_nothing_falls_as_a_skin():
    scene = Bare("cloth").dropped()
    assert scene.content.body[0].model == "particles"
    assert scene.content.body[0].at == pytest.approx((0, 0.3, 0))
