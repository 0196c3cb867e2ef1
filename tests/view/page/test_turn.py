"""Turning what is held, by mouse and by fingers, in a real browser before a scripted world."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.view.page.stand_in import RADIUS
from tests.view.page.test_controls import COARSE, Served
from tests.view.page.test_touch import Phone


@pytest.fixture(scope="module")
def live(browser: Any) -> Iterator[Served]:
    served = Served(browser)
    yield served
    served.page.close()
    served.server.stop()
    assert not served.faults


def turned(show: Any) -> np.ndarray:
    """The sum of all turns that were asked for [rad]; they are about one axis."""
    return np.sum([one.spin for one in show.asked if one.do == "turn"] or np.zeros((1, 3)), axis=0)


def axes(live: Served) -> list[np.ndarray]:
    """Where the camera has up, right and ahead."""
    return [np.array(live.value(f"phyxel.camera.{name}")) for name in ("up", "right", "ahead")]


def test_wheel_and_alt_turn_what_is_held(live: Served) -> None:
    page, show = live.page, live.show
    up, right, ahead = axes(live)
    distance = live.value("phyxel.camera.distance")
    x, y = live.on_screen([0, RADIUS, RADIUS])
    page.mouse.move(x, y)
    page.mouse.down()
    live.asked("grab")
    page.mouse.wheel(0, 200)
    live.asked("turn")
    show.asked.clear()
    page.mouse.wheel(0, 200)
    page.wait_for_timeout(300)
    assert turned(show) == pytest.approx(0.0025 * 200 / COARSE * ahead, abs=1e-6)
    assert live.value("phyxel.camera.distance") == distance, "nothing is zoomed"

    page.mouse.move(x + 20, y)
    before = live.asked("pull")
    show.asked.clear()
    page.keyboard.down("Alt")
    page.mouse.move(x + 50, y + 12, steps=6)
    page.wait_for_timeout(300)
    assert turned(show) == pytest.approx((30 * up + 12 * right) * math.pi / 300, abs=1e-3)
    assert not [one for one in show.asked if one.do == "pull"]
    page.keyboard.up("Alt")
    page.mouse.move(x + 51, y + 12)
    after = live.asked("pull")
    assert np.allclose(after.way, before.way, atol=0.01), "it goes on where it was"
    page.mouse.up()
    live.asked("let_go")


@pytest.mark.parametrize("degrees", [80.0, -50.0])
def test_a_second_finger_turns_what_the_first_holds(browser: Any, degrees: float) -> None:
    phone = Phone(browser)
    *_, ahead = axes(phone)
    x, y = phone.on_screen([0, RADIUS, RADIUS])
    phone.touch("touchStart", (x, y))
    phone.asked("grab")
    phone.page.wait_for_timeout(400)
    around = [(x + 70 * math.cos(a), y + 70 * math.sin(a)) for a in np.radians(np.linspace(0, degrees, 12))]
    phone.touch("touchStart", (x, y), around[0])
    for place in around:
        phone.touch("touchMove", (x, y), place)
        phone.page.wait_for_timeout(20)
    phone.page.wait_for_timeout(200)
    assert turned(phone.show) == pytest.approx(math.radians(degrees) * ahead, abs=0.02)
    assert not [one for one in phone.show.asked if one.do == "let_go"], "it is held still"
    phone.touch("touchEnd")
    phone.asked("let_go")
    assert not phone.faults
    phone.context.close()
    phone.server.stop()
