"""What the page says about the state of things, and that it says it out of the way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.view.page.stand_in import RADIUS, ball
from tests.view.page.test_controls import Served


@pytest.fixture(scope="module")
def live(browser: Any) -> Iterator[Served]:
    served = Served(browser, {"width": 780, "height": 520})
    yield served
    served.page.close()
    served.server.stop()
    assert not served.faults


def test_notices_leave_the_body_free(live: Served) -> None:
    """What is said twice stands there once, below the body; a pointer goes through all but its button."""
    text = "bear: 154 nodes are fewer than 5 across most of it, and it bends too easily then; give more of them"
    for _ in range(3):
        live.show.hub.tell({"kind": "notice", "level": "warning", "text": text})
    live.until("document.querySelectorAll('.toast').length > 0")
    live.page.wait_for_timeout(300)
    assert live.value("document.querySelectorAll('.toast').length") == 1
    notice = live.page.locator(".toast").bounding_box()
    places = RADIUS * (ball(100) + np.array([0, 1, 0]))
    lowest = max(live.on_screen(place.tolist())[1] for place in places)
    assert notice["y"] > lowest
    middle = f"{notice['x'] + notice['width'] / 2}, {notice['y'] + notice['height'] / 2}"
    assert live.value(f"document.elementFromPoint({middle}).id") == "picture"
    live.page.click(".toast button")
    live.until("!document.querySelector('.toast')")
