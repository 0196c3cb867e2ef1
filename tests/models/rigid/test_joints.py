"""What holds leave free."""

import numpy as np
import pytest

from phyxel.models.protocol import Hold
from phyxel.models.rigid.joints import Joint
from phyxel.rotation import euler

LINE = np.array([[0.0, 0, 0], [0, 0, 1], [0, 0, 3]])


@pytest.mark.parametrize(
    ("points", "turns", "free"),
    [
        (LINE[:1], False, 3),
        (LINE[:1], True, 0),
        (LINE[:2], False, 1),
        (LINE, False, 1),
        (np.concatenate([LINE, [[1.0, 0, 0]]]), False, 0),
        (LINE[[0, 0]], False, 3),
    ],
)
def test_points_leave_so_many_axes(points, turns, free) -> None:
    """One place three, a line one, a plane none; and none where a turn is asked for."""
    joint = Joint.of([Hold(points, True, turns)], 2.0)
    assert joint is not None and joint.axes.shape == (3, free)
    assert Joint.of([], 2.0) is None


@pytest.mark.parametrize("count", [1, 3, 4])
def test_held_points_are_led_where_they_go(count: int) -> None:
    """Places Rq X + t: with three axes left nothing turns, with one that axis, with none all of it."""
    points = np.concatenate([LINE, [[1.0, 0, 0]]])[:count]
    joint, turned = Joint.of([Hold(points, True)], 2.0), euler((40, -30, 70))
    assert joint is not None
    led = joint.led(np.eye(3), points @ turned.T + np.array([1.0, 2, 3]), None)
    if count == 1:
        assert np.array_equal(led, np.eye(3))
    else:
        away = points - points.mean(axis=0)
        np.testing.assert_allclose(away @ led.T, away @ turned.T, atol=1e-14)
    if count == 4:
        np.testing.assert_allclose(led, turned, atol=1e-14)
