"""The page on a phone: fingers as Chromium emulates them, and a screen on which everything finds its place."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from tests.view.page.stand_in import RADIUS, ball
from tests.view.page.test_controls import Served

PHONE = {"width": 390, "height": 844}
FINGER = 40
"""[px] of the smallest thing that a finger hits well"""
SPHERE = RADIUS * (ball(100) + np.array([0, 1, 0]))
Place = tuple[float, float]


class Phone(Served):
    """A page on a phone, with fingers on it."""

    def __init__(self, browser: Any) -> None:
        self.context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True, device_scale_factor=1)
        super().__init__(self.context)
        self._fingers = self.context.new_cdp_session(self.page)

    def new_page(self, browser: Any, window: Any) -> Any:
        return browser.new_page()

    def touch(self, kind: str, *places: Place) -> None:
        """Fingers come ("touchStart"), go elsewhere ("touchMove") or leave ("touchEnd")."""
        points = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(places)]
        self._fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def drag(self, *ways: tuple[Place, Place], steps: int = 8) -> None:
        """Fingers that go straight ways together, come one after the other and leave at once."""
        for number in range(len(ways)):
            self.touch("touchStart", *(start for start, _ in ways[: number + 1]))
        for k in range(1, steps + 1):
            self.touch("touchMove", *(tuple(np.array(a) + k / steps * np.subtract(b, a)) for a, b in ways))
            self.page.wait_for_timeout(15)
        self.touch("touchEnd")
        self.page.wait_for_timeout(50)

    def camera(self) -> dict[str, Any]:
        found: dict[str, Any] = self.value(
            "(({turn, lift, distance, target}) => ({turn, lift, distance, target}))(phyxel.camera)"
        )
        return found


@pytest.fixture(scope="module")
def phone(browser: Any) -> Iterator[Phone]:
    phone = Phone(browser)
    yield phone
    phone.context.close()
    phone.server.stop()
    assert not phone.faults


def test_one_finger_takes_what_it_touches(phone: Phone) -> None:
    phone.show.asked.clear()
    x, y = phone.on_screen([0, RADIUS, RADIUS])
    before = phone.camera()
    phone.drag(((x, y), (x + 50, y - 40)))
    grab, pull = phone.asked("grab"), phone.asked("pull")
    phone.asked("let_go")
    way = np.array([0, RADIUS, RADIUS]) - grab.ray
    assert np.dot(way, grab.way) / np.linalg.norm(way) / np.linalg.norm(grab.way) == pytest.approx(1, abs=1e-4)
    assert pull.way != grab.way and phone.camera() == before


def test_one_finger_beside_the_body_looks_around(phone: Phone) -> None:
    phone.show.asked.clear()
    before = phone.camera()
    phone.drag(((200, 120), (260, 120)))
    assert phone.camera()["turn"] == pytest.approx(before["turn"] - 60 * math.pi / 600, abs=1e-6)
    assert phone.camera()["distance"] == before["distance"] and not phone.show.asked


@pytest.mark.parametrize("factor", [0.6, 1.8])
def test_two_fingers_zoom(phone: Phone, factor: float) -> None:
    """By as much as their distance grows, toward their middle, wherever that is; the body is not taken. A browser tells
    of one finger after the other, and may leave out steps between: the middle wanders by some pixels meanwhile."""
    phone.show.asked.clear()
    before = phone.camera()
    middle, half = np.array(phone.on_screen([0, RADIUS, 0])), np.array([50, 20])
    phone.drag(*((tuple(middle + side * half), tuple(middle + side * factor * half)) for side in (-1, 1)))
    assert phone.camera()["distance"] == pytest.approx(before["distance"] / factor, rel=0.03)
    assert phone.camera()["turn"] == pytest.approx(before["turn"], abs=0.02)
    assert phone.on_screen([0, RADIUS, 0]) == pytest.approx(middle, abs=15)
    assert not [one for one in phone.show.asked if one.do == "pull"]


def test_two_fingers_orbit_and_three_pan(phone: Phone) -> None:
    """Fingers that go the same way keep their distance: nothing is zoomed."""
    starts = [(150.0, 600.0), (230.0, 600.0), (190.0, 520.0)]
    for count in (2, 3):
        before = phone.camera()
        phone.drag(*(((x, y), (x - 60, y + 30)) for x, y in starts[:count]))
        after = phone.camera()
        assert after["distance"] == pytest.approx(before["distance"], rel=0.03)
        turned = after["turn"] - before["turn"]
        gone = np.linalg.norm(np.subtract(after["target"], before["target"]))
        if count == 2:
            assert turned == pytest.approx(60 * math.pi / 600, abs=0.01)
            assert after["lift"] - before["lift"] == pytest.approx(30 * math.pi / 600, abs=0.01)
        else:
            tall = 2 * after["distance"] * math.tan(math.radians(16))
            assert turned == pytest.approx(0, abs=1e-6)
            assert gone == pytest.approx(math.hypot(60, 30) / phone.value("phyxel.stage.height") * tall, rel=0.05)


@pytest.mark.parametrize("panels", [False, True])
def test_everything_has_its_place_on_a_phone(phone: Phone, panels: bool) -> None:
    """Nothing overflows, bars do not overlap, the body is clear of them, buttons are large enough for a finger."""
    page = phone.page
    if page.is_visible("#panels") != panels:
        page.click("#panels_toggle")
        page.wait_for_timeout(300)
    phone.show.hub.tell(phone.show.scene | {"title": "A gummy bear with quite a long name"})
    page.press("#picture", "f")
    phone.until("!phyxel.camera.flight")
    assert phone.value("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]") == [390, 844]
    bars = {name: page.locator(f"#{name}").bounding_box() for name in ("toolbar", "corner", "timeline", "status")}
    for one, other in combinations(bars, 2):
        assert not overlap(bars[one], bars[other]), f"{one} and {other}"
    for name, box in bars.items():
        assert box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"], name
    places = [phone.on_screen(place.tolist()) for place in SPHERE]
    for x, y in places:
        assert page.evaluate("([x, y]) => document.elementFromPoint(x, y)?.id", [x, y]) == "picture"
    small = page.evaluate(
        """(least) => [...document.querySelectorAll("button")].filter((element) => element.checkVisibility())
          .map((element) => [element.id || element.textContent, element.getBoundingClientRect()])
          .filter(([, {width, height}]) => Math.min(width, height) < least).map(([name]) => name)""",
        FINGER,
    )
    assert small == []


def overlap(one: dict[str, float], other: dict[str, float]) -> bool:
    return all(
        one[at] < other[at] + other[size] and other[at] < one[at] + one[size]
        for at, size in (("x", "width"), ("y", "height"))
    )
