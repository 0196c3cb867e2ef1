"""The brush in a real browser before a scripted world: what its strokes ask for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.view.page.stand_in import RADIUS
from tests.view.page.test_controls import Served


@pytest.fixture(scope="module")
def live(browser: Any) -> Iterator[Served]:
    served = Served(browser, {"width": 860, "height": 520})
    yield served
    served.page.close()
    served.server.stop()
    assert not served.faults


def test_a_stroke_asks_touch_by_touch(live: Served) -> None:
    """Touches follow the pointer and lie less than a radius apart: there is no gap."""
    page, show = live.page, live.show
    assert page.is_hidden("#brush")
    page.press("#picture", "5")
    page.wait_for_selector("#brush")
    live.type("brush_radius", "15 mm")
    page.select_option("#brush_what", "clay")
    ends = [np.array([side * 0.6 * RADIUS, RADIUS, 0.8 * RADIUS]) for side in (-1, 1)]
    (x, y), (u, v) = (live.on_screen(end.tolist()) for end in ends)
    page.mouse.move(x, y)
    page.mouse.down()
    for k in range(1, 21):
        page.mouse.move(x + k / 20 * (u - x), y + k / 20 * (v - y))
        page.wait_for_timeout(40)
    page.mouse.up()
    page.wait_for_timeout(200)
    touches = [one for one in show.asked if one.do == "brush"]
    assert 3 <= len(touches) <= 15
    assert {(one.what, one.radius) for one in touches} == {("clay", 0.015)}
    middle = np.array([0, RADIUS, 0])
    at = [np.array(one.ray) + np.array(one.way) * (np.linalg.norm(middle - one.ray) - RADIUS) for one in touches]
    assert max(np.linalg.norm(np.diff(at, axis=0), axis=1)) < 0.015
    assert not [one for one in show.asked if one.do in ("grab", "pin", "push", "cut")]
    page.press("#picture", "1")
    assert page.is_hidden("#brush")
