"""The viewer as its users have it: a real world behind a real page, moved by a real pointer.

What must hold is measured in the world, not in the page, wherever the world can tell.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phyxel as px
from phyxel.view.hub import Hub
from phyxel.view.live import Live
from phyxel.view.server import Server
from tests.view.page.shots import shot
from tests.view.waiting import wait_for

BEAR = """
title = "A bear to play with"

[[body]]
name = "bear"
shape = "bear"
points = 3000
nodes = 150
color = [0.8, 0.15, 0.1]
material = { preset = "gelatin", young = 2.0e5, damping = 5.0e-3 }

[[collider]]
kind = "ground"
friction = 0.8
"""
PATIENCE = 40.0
"""Seconds until what must happen has happened: software draws for a browser on the cores that move the world."""


class Viewer:
    """A world with its server, and pages that look at it."""

    def __init__(self, browser: Any, source: str) -> None:
        self._browser = browser
        self.faults: list[str] = []
        """exceptions of the pages"""
        hub = Hub()
        self.live = Live(px.Scene.parse(source, "bear"), hub, "cpu")
        self.server = Server(self.live, hub, port=0)
        self.server.start()

    @property
    def bear(self) -> px.Body:
        return self.live.world.bodies[0]

    @property
    def height(self) -> float:
        """Of the bear now [m]."""
        return float(np.ptp(self.bear.positions[:, 1]))

    def page(self) -> Any:
        """A new page that shows the world."""
        page = self._browser.new_page(viewport={"width": 800, "height": 500})
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.goto(self.server.address)
        page_until(page, "window.phyxel?.frame && window.phyxel.camera")
        return page

    def stop(self) -> None:
        self.server.stop()


def page_until(page: Any, holds: str, given: Any = None) -> None:
    """Wait for something to be so in a page, which allows no script but its own to wait there."""
    wait_for(lambda: bool(page.evaluate(f"given => {holds}", given)), PATIENCE, holds)


REACHED = """(button => {
    if (!button || button.disabled) return false;
    button.scrollIntoView({block: "nearest"});
    const {left, top, width, height} = button.getBoundingClientRect();
    return button.contains(document.elementFromPoint(left + width / 2, top + height / 2));
})(document.querySelector(given))"""
"""Whether a click on a button would be heard: it is enabled, and nothing lies over it."""


def press(page: Any, button: str) -> None:
    """Click a button as soon as a hand could, without waiting for it to stand still, which takes many pictures."""
    page_until(page, REACHED, button)
    page.click(button, force=True)


@pytest.fixture(scope="module")
def viewer(browser: Any) -> Iterator[Viewer]:
    viewer = Viewer(browser, BEAR)
    yield viewer
    viewer.stop()
    assert viewer.faults == []


@pytest.fixture(scope="module")
def open_page(viewer: Viewer) -> Iterator[Any]:
    """One for all tests: to begin takes a page seconds where software compiles its shaders."""
    page = viewer.page()
    yield page
    page.close()


@pytest.fixture
def page(viewer: Viewer, open_page: Any) -> Any:
    """The page, on a world that has just begun."""
    began(viewer, open_page)
    return open_page


def began(viewer: Viewer, page: Any) -> None:
    """Reset the world and let it run."""
    before = viewer.live.world
    press(page, "#reset")
    wait_for(lambda: viewer.live.world is not before, PATIENCE, "the world is built anew")
    if page.evaluate("phyxel.scene.paused"):
        press(page, "#pause")
    page_until(page, "!phyxel.scene.paused && phyxel.frame.about.time < 5")


def stand_still(viewer: Viewer, page: Any) -> None:
    """Let time stand still, and wait until the page shows that moment."""
    press(page, "#pause")
    page_until(page, "phyxel.scene.paused")
    page_until(page, "phyxel.frame.about.time == given", viewer.live.world.time)


def on_screen(page: Any, place: np.ndarray) -> tuple[float, float]:
    """Where a place of the world is in the window [px]."""
    x, y = page.evaluate(
        """place => {
            const box = document.getElementById("picture").getBoundingClientRect();
            const [x, y] = phyxel.camera.project(place, box.width, box.height);
            return [box.left + x, box.top + y];
        }""",
        [float(number) for number in place],
    )
    return x, y


def picture(page: Any) -> np.ndarray:
    """What the window shows, (height, width, 3) in 0..1."""
    return shot(page) / 255


def is_red(pixels: np.ndarray) -> np.ndarray:
    """Whether pixels have the colour of the bear, whatever the light: ground, background and panels are grey, buttons
    orange."""
    red, green, blue = np.moveaxis(pixels, -1, 0)
    return (red > 0.15 + 1.5 * np.maximum(green, blue)) & (np.abs(green - blue) < 0.12)


def test_the_page_shows_the_bear(viewer, page):
    """Where its surfels are, pixels are red, highlights included, and red pixels are nowhere but in their bounding box.
    Surfels that lie under buttons do not count, nor those that lie on the ground: as it topples, some face it."""
    stand_still(viewer, page)
    surfels = viewer.bear.surface.positions[::30]
    places = [on_screen(page, place) for place in surfels[surfels[:, 1] > 0.01]]
    page.mouse.move(5, 5)
    page.wait_for_timeout(300)
    pixels = picture(page)
    free = [page.evaluate("([x, y]) => document.elementFromPoint(x, y)?.id == 'picture'", one) for one in places]
    seen = [pixels[round(y), round(x)] for (x, y), is_free in zip(places, free, strict=True) if is_free]
    assert len(seen) > 25
    assert np.mean([red > 0.05 + max(green, blue) for red, green, blue in seen]) > 0.95
    (left, top), (right, bottom) = np.min(places, axis=0), np.max(places, axis=0)
    red = is_red(pixels)
    rows, columns = np.nonzero(red)
    margin = 0.1 * (bottom - top)
    inside = (rows > top - margin) & (rows < bottom + margin) & (columns > left - margin) & (columns < right + margin)
    assert inside.mean() > 0.97
    assert red.sum() > 0.3 * (right - left) * (bottom - top), "and it fills its outline"


def test_softer_sags_more(viewer, page):
    """By its own weight a column shortens by about ρgh/2E of its height: not seen at 200 kPa, a good part at 3 kPa."""
    page_until(page, "phyxel.frame.about.time > 0.5")
    stiff = viewer.height
    page.fill("#young_value", "3 kPa")
    page.press("#young_value", "Enter")
    wait_for(lambda: viewer.bear.material.young == pytest.approx(3e3), PATIENCE, "the slider reaches the material")
    wait_for(lambda: viewer.height < 0.9 * stiff, PATIENCE, "it sags")
    softness = float(page.input_value("#young"))
    page.focus("#young")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    assert float(page.input_value("#young")) > softness
    wait_for(lambda: viewer.bear.material.young > 3.1e3, PATIENCE, "the slider goes there by keys, too")


def test_a_drag_takes_the_surfel_to_the_pointer(viewer, page):
    """Within 5 % of the size of the bear, across the line of sight. It is taken while time stands still, so that the
    world can be asked which surfel that was."""
    page_until(page, "phyxel.frame.about.time > 0.3")
    stand_still(viewer, page)
    surface = viewer.bear.surface.carried.positions
    size = np.ptp(viewer.bear.birth, axis=0).max()
    x, y = on_screen(page, surface[surface[:, 1].argmax()] - [0, 0.1 * size, 0])
    page.mouse.move(x, y)
    page.mouse.down()
    page_until(page, "phyxel.frame.about.grabs.length == 1")
    taken = np.array(page.evaluate("phyxel.frame.about.grabs[0].at"), float)
    number = int(np.argmin(np.linalg.norm(surface - taken, axis=1)))
    assert np.linalg.norm(surface[number] - taken) < 1e-9
    goal = x + 60, y - 60

    def off() -> float:
        """Distance of the surfel from the ray through the pointer [m]."""
        ray, way = page.evaluate(
            """([x, y]) => {
                const box = document.getElementById("picture").getBoundingClientRect();
                const {ray, way} = phyxel.camera.ray(x - box.left, y - box.top, box.width, box.height);
                return [ray, way];
            }""",
            list(goal),
        )
        away = viewer.bear.surface.carried.positions[number] - np.array(ray, float)
        return float(np.linalg.norm(np.cross(away, way)) / np.linalg.norm(way))

    assert off() > 0.15 * size
    page.keyboard.press("Space")
    page.mouse.move(*goal, steps=8)
    wait_for(lambda: off() < 0.05 * size, PATIENCE, "it gets to the pointer")
    page.mouse.up()
    page_until(page, "phyxel.frame.about.grabs.length == 0")
    wait_for(lambda: viewer.bear.handles == [], PATIENCE, "and is let go")


def test_melt_melts_and_reset_restores(viewer, page):
    born, height = viewer.bear.birth.copy(), viewer.height
    press(page, "#melt")
    wait_for(lambda: viewer.bear.has_melted and viewer.height < 0.6 * height, PATIENCE, "it flows")
    press(page, "#solidify")
    wait_for(lambda: not viewer.bear.substance.is_molten.any(), PATIENCE, "and sets")
    stand_still(viewer, page)
    melted = viewer.live.world
    press(page, "#reset")
    wait_for(lambda: viewer.live.world is not melted, PATIENCE, "it begins anew")
    assert viewer.live.world.time == 0
    assert np.array_equal(viewer.bear.birth, born)
    assert np.allclose(viewer.bear.positions, born, rtol=0, atol=1e-12 * height)


def test_two_pages_see_the_same_world_and_one_may_go(viewer, page):
    other = viewer.page()
    press(other, "#pause")
    for one in (page, other):
        page_until(one, "phyxel.scene.paused")
    now = viewer.live.world.time
    shown = """() => {
        const {about, parts} = phyxel.frame;
        const bear = parts.find(part => part.name == "bear");
        return [about.time, bear.about.lower, Array.from(bear.blobs.records)];
    }"""
    for one in (page, other):
        page_until(one, "phyxel.frame.about.time == given", now)
    assert page.evaluate(shown) == other.evaluate(shown)
    press(page, "#pause")
    other.close()
    wait_for(lambda: viewer.live.world.time > now + 0.2, PATIENCE, "the world goes on without the page that went")
    page_until(page, "phyxel.frame.about.time > given + 0.2", now)


def test_the_saved_scene_runs_to_the_same_state(viewer, page, tmp_path):
    """To the bit: hands and sliders speak in events of the scene, which happen between the same steps."""
    page_until(page, "phyxel.frame.about.time > 0.2")
    x, y = on_screen(page, viewer.bear.positions.mean(axis=0))
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 50, y - 60, steps=6)
    page_until(page, "phyxel.frame.about.grabs.length == 1")
    page.wait_for_timeout(300)
    page.mouse.up()
    page.fill("#young_value", "40 kPa")
    page.press("#young_value", "Enter")
    wait_for(lambda: viewer.bear.material.young == pytest.approx(4e4), PATIENCE, "the material has changed")
    page.wait_for_timeout(300)
    stand_still(viewer, page)
    with page.expect_download() as download:
        press(page, "#save")
    file = tmp_path / "saved.toml"
    download.value.save_as(file)
    again = px.Scene.read(file)
    world = again.world("cpu")
    for k in range(1, 10**4):
        if k / again.fps > viewer.live.world.time:
            break
        world.advance(k / again.fps - world.time)
    world.advance(viewer.live.world.time - world.time)
    assert again.seconds >= viewer.live.world.time
    assert np.array_equal(world.bodies[0].positions, viewer.bear.positions)
    assert not np.allclose(viewer.bear.positions, viewer.bear.birth, atol=0.01 * viewer.height), "and it has moved"


def test_the_saved_page_plays_from_a_file(viewer, page, browser, tmp_path):
    page_until(page, "phyxel.frame.about.time > 0.3")
    press(page, "#drop")
    page.wait_for_timeout(1000)
    page.evaluate("phyxel.camera.orbit(90, 40)")
    seen = "[...phyxel.camera.eye, ...phyxel.camera.target, phyxel.camera.fov]"
    camera = page.evaluate(seen)
    with page.expect_download(timeout=1e3 * PATIENCE) as download:
        press(page, "#html")
    file = tmp_path / "bear.html"
    download.value.save_as(file)
    context = browser.new_context(viewport=page.viewport_size, offline=True)
    alone, faults, asked = context.new_page(), [], []
    alone.on("pageerror", lambda error: faults.append(str(error)))
    alone.on("request", lambda request: asked.append(request.url))
    alone.goto(Path(file).as_uri())
    page_until(alone, "window.phyxel?.frame")
    assert alone.evaluate(seen) == pytest.approx(camera, rel=0.02, abs=0.02 * viewer.height), "it looks the same way"
    first = alone.evaluate("phyxel.frame.about.at")
    page_until(alone, "Math.abs(phyxel.frame.about.at - given) > 0.3", first)
    assert is_red(picture(alone)).mean() > 0.01, "the bear is there"
    assert faults == []
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked), "nothing is fetched"
    context.close()
