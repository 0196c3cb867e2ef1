"""The page in a real browser, before a scripted world: what controls and hands ask for, and what they show."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phyxel.view.commands import Command
from phyxel.view.hub import Hub
from phyxel.view.page_files import page_files, saved_html
from phyxel.view.patches import PRECISION, TILTED
from phyxel.view.server import Server
from tests.view.page.stand_in import RADIUS, SURFELS, StandIn, snapshot
from tests.view.records import decoded
from tests.view.waiting import wait_for

WINDOW = {"width": 780, "height": 360}
COARSE = 0.5
"""device pixels for each pixel of the page: fewer are drawn sooner"""


class Opened:
    """A page at work before a stand-in."""

    def __init__(self, browser: Any, show: StandIn, address: str, window: dict[str, int] | None = None) -> None:
        self.show = show
        self.faults: list[str] = []
        self.page = self.new_page(browser, window or WINDOW)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", self._listen)
        self.page.goto(address)
        self.until("phyxel.frame && phyxel.stage && phyxel.camera")

    def new_page(self, browser: Any, window: dict[str, int]) -> Any:
        return browser.new_page(viewport=window, device_scale_factor=COARSE)

    def _listen(self, message: Any) -> None:
        if message.type in ("error", "warning") and "GPU stall" not in message.text:
            self.faults.append(message.text)

    def value(self, script: str) -> Any:
        return self.page.evaluate(script)

    def until(self, script: str, seconds: float = 15.0) -> Any:
        """Wait until a script gives something; playwright's own waiting is not allowed by the page's policy."""

        def found() -> Any:
            self.page.wait_for_timeout(20)
            return self.value(script)

        return wait_for(found, seconds)

    def asked(self, what: str) -> Command:
        """The last command of a kind, waited for; then it is forgotten."""

        def found() -> Command | None:
            self.page.wait_for_timeout(10)
            return next((one for one in reversed(self.show.asked) if one.do == what), None)

        command: Command = wait_for(found)
        self.show.asked[:] = [one for one in self.show.asked if one.do != what]
        return command

    def type(self, name: str, text: str) -> None:
        self.page.fill(f"#{name}_value", text)
        self.page.press(f"#{name}_value", "Enter")

    def on_screen(self, place: list[float]) -> tuple[float, float]:
        """Where the page shows a place of the world."""
        script = "place => {const {width, height} = phyxel.stage; return phyxel.camera.project(place, width, height)}"
        x, y, _ = self.page.evaluate(script, place)
        return x, y


class Served(Opened):
    """A page and the server it comes from, which can go and come back."""

    def __init__(self, browser: Any, window: dict[str, int] | None = None) -> None:
        self.serve()
        super().__init__(browser, self.show, self.server.address, window)

    def serve(self, port: int = 0) -> None:
        self.show = StandIn(hub := Hub())
        self.server = Server(self.show, hub, port=port)
        self.server.start()


@pytest.fixture(scope="module")
def live(browser: Any) -> Iterator[Served]:
    served = Served(browser)
    yield served
    served.page.close()
    served.server.stop()
    assert not served.faults


def test_controls_ask_for_what_they_show(live: Served) -> None:
    page = live.page
    # The slider of Young's modulus has a log scale: 1.5 MPa in 1 kPa .. 1 GPa.
    part = int(page.input_value("#young")) / int(page.get_attribute("#young", "max"))
    assert part == pytest.approx(math.log(1.5e6 / 1e3) / math.log(1e9 / 1e3), abs=2e-3)
    assert page.input_value("#young_value") == "1.5 MPa"
    live.type("young", "200 kPa")
    assert live.asked("material").numbers == {"young": 2e5}
    live.type("young", "3")  # a number alone is in the unit that was shown
    assert live.asked("material").numbers == {"young": 3e3}
    live.type("young", "stiff")
    page.press("#young", "End")
    assert live.asked("material").numbers == {"young": 1e9}
    live.until("document.querySelector('#young_value').value === '1 GPa'")

    # Poisson's ratio is on a plain scale; what may be off has a box.
    assert int(page.input_value("#poisson")) == pytest.approx(0.45 / 0.49 * 400, abs=1)
    assert page.input_value("#yield_strain_value") == "never" and page.is_disabled("#yield_strain")
    assert page.is_disabled("#creep_on")  # nothing yields that could creep
    page.check("#yield_strain_on")
    assert live.asked("material").numbers == {"yield_strain": pytest.approx(math.sqrt(1e-3 * 1.0), rel=5e-3)}
    live.until("!document.querySelector('#creep_on').disabled")
    page.check("#strength_on")  # a tenth of the stiffness, so that it can be seen to break
    assert live.asked("material").numbers == {"strength": 1e8}
    page.uncheck("#yield_strain_on")
    assert live.asked("material").numbers == {"yield_strain": None}
    page.uncheck("#damping_on")
    assert live.asked("material").numbers == {"damping": 0}

    page.select_option("#preset", "clay")
    assert live.asked("preset").name == "clay"
    page.click("#melt")
    assert live.asked("melt").body == "bear"
    live.until("document.querySelector('#melt').disabled && !document.querySelector('#solidify').disabled")
    page.click("#solidify")
    live.asked("solidify")
    page.click("#direction_left")
    assert live.asked("gravity").value == pytest.approx((-9.81, 0, 0))
    page.keyboard.press("Space")  # stops time, and does not press once more what was clicked last
    assert live.asked("pause").on is True
    live.until("document.querySelector('#pause').ariaPressed === 'true'")
    page.press("#picture", "Space")
    assert live.asked("pause").on is False
    page.press("#picture", "Shift+R")
    live.asked("reset")
    live.type("speed", "0.25")
    assert live.asked("speed").factor == 0.25
    live.until("document.querySelector('#speed_value').value === '1/4'")


def test_a_slider_is_not_moved_under_the_hand(live: Served) -> None:
    page = live.page
    page.locator("#density").scroll_into_view_if_needed()
    box = page.locator("#density").bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + box["height"] / 2)
    page.mouse.down()
    held = live.asked("material").numbers["density"]
    live.show.scene["bodies"][0]["material"]["density"] = 55.0
    live.show.hub.tell(live.show.scene)
    live.until("phyxel.scene.bodies[0].material.density === 55")
    assert page.evaluate("Number.parseFloat(document.querySelector('#density_value').value)") == held
    page.mouse.up()
    live.until("document.querySelector('#density_value').value === '55 kg/m³'")


def test_hands_take_what_is_under_the_pointer(live: Served) -> None:
    page, show = live.page, live.show
    show.asked.clear()
    x, y = live.on_screen([0, RADIUS, RADIUS])
    page.mouse.move(x, y)
    live.until("document.querySelector('#picture').dataset.aim === 'grab'")
    page.mouse.down()
    ray = live.asked("grab")
    # The ray passes through the place that was aimed at.
    way = [place - eye for place, eye in zip([0, RADIUS, RADIUS], ray.ray, strict=True)]
    cosine = sum(a * b for a, b in zip(way, ray.way, strict=True)) / math.hypot(*way) / math.hypot(*ray.way)
    assert cosine == pytest.approx(1, abs=1e-5)
    page.mouse.move(x + 40, y - 30)
    assert live.asked("pull").way != ray.way
    assert live.until("phyxel.latency") > 0
    page.keyboard.press("p")
    assert live.asked("let_go").pin is True
    page.mouse.up()

    # Beside the body a drag turns the camera, and nothing is asked of the world.
    show.asked.clear()
    eye = live.value("phyxel.camera.eye")
    page.mouse.move(380, 120)
    page.mouse.down()
    page.mouse.move(320, 120)
    page.mouse.up()
    turned = live.value("phyxel.camera.eye")
    assert math.dist(eye, turned) > 0.1 * math.dist(eye, [0, 0, 0]) and not show.asked
    distance = live.value("phyxel.camera.distance")
    page.mouse.wheel(0, -300)
    live.until(f"phyxel.camera.distance < 0.9 * {distance}")
    page.keyboard.press("f")
    live.until("!phyxel.camera.flight")

    page.keyboard.press("2")
    x, y = live.on_screen([0, RADIUS, 0])
    page.mouse.click(x, y)
    live.asked("pin")
    page.keyboard.press("4")
    page.mouse.move(x - 60, y)
    page.mouse.down()
    page.mouse.move(x + 60, y)
    page.mouse.up()
    cut = live.asked("cut")
    assert cut.way != cut.to_way
    page.keyboard.press("1")
    assert not [one for one in show.asked if one.do == "grab"]


def test_a_field_has_its_colours_told_and_a_plane_its_handle(live: Served) -> None:
    page = live.page
    assert page.is_hidden("#legend")
    page.select_option("#field", "stress")
    assert live.asked("show").field == "stress"
    page.wait_for_selector("#legend")
    assert "von Mises stress [kPa]" in page.text_content("#legend")
    assert page.locator("#legend .ticks span").all_text_contents() == ["0", "3", "6", "9", "12"]
    page.click("#mode_slice")
    assert live.asked("show").mode == "slice"
    page.click("#axis_y")
    before = live.asked("slice")
    assert before.normal == (0, 1, 0)
    live.until("!document.querySelector('#slice_handle').hidden && phyxel.scene.shown.plane?.normal[1] === 1")
    page.wait_for_timeout(200)
    handle = page.locator("#slice_handle").bounding_box()
    x, y = handle["x"] + handle["width"] / 2, handle["y"] + handle["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y - 30)
    after = live.asked("slice")
    page.mouse.up()
    assert after.place[1] > before.place[1] and after.place[::2] == before.place[::2]
    page.select_option("#field", "none")
    page.wait_for_selector("#legend", state="hidden")


def test_a_run_can_be_moved_through(live: Served) -> None:
    page = live.page
    live.show.play_back(4.0)
    page.wait_for_selector("#seek")
    assert page.is_hidden("#panel_material") and page.is_hidden("#toolbar") and page.is_visible("#energy")
    page.fill("#seek", "750")
    assert live.asked("seek").time == pytest.approx(3.0)
    live.until("document.querySelector('#energy_kinetic').textContent !== '–'")
    live.show.go_live()
    page.wait_for_selector("#toolbar")


def test_a_page_finds_its_server_again(live: Served) -> None:
    page = live.page
    live.server.stop()
    live.until("document.documentElement.dataset.connection === 'lost'")
    assert page.is_visible("#connection")
    live.serve(live.server.port)
    live.until("document.documentElement.dataset.connection === 'open' && phyxel.frame.about.time < 3")
    live.faults.clear()  # the browser notes that it could not connect
    live.show.hub.tell({"kind": "blown", "text": "it flew apart"})
    page.click("#blown_reset")
    live.asked("reset")
    wait_for(lambda: page.is_hidden("#overlay"))


def test_a_browser_that_cannot_draw_is_told_what_to_do(browser: Any) -> None:
    show = StandIn(hub := Hub())
    page = browser.new_page(viewport=WINDOW)
    page.add_init_script("HTMLCanvasElement.prototype.getContext = () => null")
    with Server(show, hub, port=0) as server:
        page.goto(server.address)
        page.wait_for_selector("#overlay.blown")
        assert "WebGL2" in page.text_content("#overlay")
    page.close()


def test_a_saved_recording_plays_from_its_file(browser: Any, tmp_path: Path) -> None:
    scene = StandIn(Hub()).scene
    shown = [(k / 10, snapshot(k, 5 * k / 10, scene["shown"])) for k in range(31)]
    _, html, _ = saved_html(scene, shown, page_files())
    (tmp_path / "bear.html").write_bytes(html)
    window = {"width": 390, "height": 600}  # of a phone
    opened = Opened(browser, StandIn(Hub()), (tmp_path / "bear.html").as_uri(), window)
    page = opened.page
    opened.until("phyxel.frame.about.at > 0.3")
    assert page.is_hidden("#panels") and page.is_hidden("#toolbar") and page.is_visible("#seek")
    page.press("#picture", "Space")
    opened.until("phyxel.scene.paused")
    page.fill("#seek", "500")
    opened.until("phyxel.frame.about.at === 1.5")
    # Frames that are sought have what was only told in the first: their colours.
    assert opened.value("phyxel.frame.parts[0].blobs.colors.length") == 4 * SURFELS
    # What the page unpacks is what was seen.
    part = shown[15][1].parts[0]
    records = bytes(opened.value("[...phyxel.frame.parts[0].blobs.records]"))
    it, true = decoded(records, part.about), decoded(part.blobs["records"].data, part.about)
    assert np.linalg.norm(it.positions - true.positions, axis=1).max() < PRECISION * 2 * RADIUS * np.sqrt(3.44)
    assert np.linalg.norm(it.normals - true.normals, axis=1).max() < TILTED
    assert np.abs(np.log2(it.axes / true.axes)).max() < 0.2
    page.press("#picture", ".")
    opened.until("phyxel.frame.about.at === 1.6")
    assert not opened.faults
    page.close()
