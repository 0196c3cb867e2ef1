"""Cameras: framing and refusal of impossible views."""

from __future__ import annotations

import numpy as np
import pytest

from phyxel.errors import PhyxelError
from phyxel.render.camera import Camera


@pytest.mark.parametrize("direction", [(0.6, 0.35, 1.0), (0, 1, 0), (-1, 0.2, 0)])
@pytest.mark.parametrize("size", [(1280, 720), (300, 900)])
def test_framing_sees_the_whole_box_and_little_more(direction, size):
    lower, upper = np.array([-1.0, 0.0, 2.0]), np.array([3.0, 1.0, 5.0])
    camera = Camera.framing(lower, upper, direction, *size)
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)]) * (upper - lower) + lower
    right, up, forward = camera.axes @ (corners - np.asarray(camera.eye)).T
    assert (forward > 0).all()
    reach = max(
        np.max(np.abs(right / forward)) * camera.focal / (size[0] / 2),
        np.max(np.abs(up / forward)) * camera.focal / (size[1] / 2),
    )
    assert 0.8 < reach < 0.9


def test_axes_are_a_right_handed_frame_with_the_eye_looking_forward():
    camera = Camera(eye=(1, 2, 3), target=(0, 0.5, -1))
    right, up, forward = camera.axes
    assert np.allclose(camera.axes @ camera.axes.T, np.eye(3), atol=1e-12)
    assert np.allclose(np.cross(right, up), -forward)
    assert up[1] > 0


@pytest.mark.parametrize(
    "wrong", [{"fov": 0.0}, {"fov": 180.0}, {"width": 0}, {"target": (0, 0, 1)}, {"eye": (0, float("nan"), 1)}]
)
def test_impossible_cameras_are_refused(wrong):
    with pytest.raises(PhyxelError, match="camera"):
        Camera(**{"eye": (0, 0, 1), "target": (0, 0, 0), **wrong})
