"""What must be seen in the scenes of the gallery, at reduced size."""

import numpy as np
import pytest

import phyxel as px


def played(name: str, seconds: float, nodes: int = 200) -> tuple[px.Body, np.ndarray]:
    """The body of a gallery scene and the positions of its surface in every frame."""
    scene = px.gallery(name).changed(nodes=nodes, points=800)
    world = scene.world("cpu")
    frames = [world.bodies[0].surface.positions.copy() for _ in world.play(seconds, scene.fps)]
    return world.bodies[0], np.array(frames)


def test_the_bear_drops_is_squashed_and_bounces():
    body, frames = played("demo", 0.6)
    low, high = frames[:, :, 1].min(axis=1), frames[:, :, 1].max(axis=1)
    landing = int(np.argmax(low < 0.005))
    tall = high - low
    assert 5 < landing < 20, "it falls freely for about √(2·0.14/9.81) = 0.17 s"
    assert tall[landing : landing + 15].min() < 0.93 * tall[0], "squashed by the landing"
    assert low[landing + 5 :].max() > 0.01, "and off the ground again"
    assert low.min() > -0.25 * body.unit, "not under the ground, as finely as nodes tell: a quarter of their spacing"
    assert body.diagnostics()["volume"] == pytest.approx(body.volumes.sum(), rel=0.05)


def test_the_bar_sags_and_drops_when_let_go():
    body, frames = played("cantilever", 2.8)
    reference = body.cloud.positions + np.array([-0.5, 0.7, 0.0])
    tip, root = reference[:, 0] > 0.45, reference[:, 0] < -0.49
    sag = (frames[:120] - reference)[:, tip, 1].mean(axis=1)
    assert sag.min() < -0.3, "soft: it hangs far down"
    drift = (frames[:120] - reference)[:, root].mean(axis=1)
    assert np.abs(drift).max() < 0.02, "the root is held until 2 s"
    assert frames[-1, root, 1].mean() < frames[119, root, 1].mean() - 0.2, "then it comes down"


def test_the_doughnut_is_pulled_long_and_springs_back():
    body, frames = played("stretch", 2.0)
    length = np.ptp(frames[:, :, 0], axis=1)
    assert length[60] == pytest.approx(length[0] + 0.3, abs=0.02)
    assert length[75:].min() < length[0] + 0.05
    assert abs(body.diagnostics()["volume"] / body.volumes.sum() - 1) < 0.05
