"""What a page shows before there is a world: the studio, and what is being done. Never a black picture."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from phyxel.view.hub import Hub
from phyxel.view.server import Server
from tests.view.page.shots import shot
from tests.view.page.stand_in import StandIn
from tests.view.waiting import wait_for


class Late(StandIn):
    """A world that is not there yet."""

    def joined(self, page: int) -> None:
        self.page = page

    def start(self) -> None: ...

    def stop(self) -> None: ...


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_start_is_not_black_and_says_what_is_done(browser: Any, scheme: str) -> None:
    show = Late(hub := Hub())
    context = browser.new_context(viewport={"width": 700, "height": 420}, color_scheme=scheme)
    page = context.new_page()
    with Server(show, hub, port=0) as server:
        page.goto(server.address, wait_until="commit")
        darkest = []
        for _ in range(12):
            darkest.append(shot(page)[:, :350].max(axis=2).min())
            page.wait_for_timeout(50)
        assert min(darkest[1:]) > 8, darkest
        page.wait_for_selector("#overlay.busy")
        assert "world" in page.text_content("#overlay")
        hub.tell({"kind": "busy", "text": "building bear ...", "ends": False})
        hub.tell({"kind": "progress", "text": "compiling kernels", "done": 3, "most": 12})
        wait_for(lambda: "compiling kernels" in (page.text_content("#overlay") or ""), 10)
        assert page.evaluate("document.querySelector('#overlay progress').value") == 0.25
        studio = shot(page)[150:400:10, 20]
        assert np.ptp(studio.sum(axis=1)) > 6, "walls and ground of the studio are not alike"
        super(Late, show).joined(show.page)
        StandIn.start(show)
        wait_for(lambda: page.is_hidden("#overlay"), 20)
        StandIn.stop(show)
    context.close()
