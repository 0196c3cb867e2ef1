"""Cameras by name, pictures and videos of what is seen, in a real browser before a scripted world."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.view.page.stand_in import RADIUS, ball
from tests.view.page.test_controls import COARSE, Served

SPHERE = RADIUS * (ball(200) + np.array([0, 1, 0]))
"""[m] where the ball of the stand-in is, more or less: it wobbles"""

PLAYED = """async (text) => {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const video = Object.assign(document.createElement("video"), { muted: true });
  const canvas = document.createElement("canvas"), draw = canvas.getContext("2d"), reddest = [];
  video.src = URL.createObjectURL(new Blob([bytes], { type: "video/webm" }));
  const look = () => {
    Object.assign(canvas, { width: video.videoWidth, height: video.videoHeight });
    draw.drawImage(video, 0, 0);
    const { data } = draw.getImageData(0, 0, canvas.width, canvas.height);
    reddest.push(data.reduce((most, _, k) => (k % 4 ? most : Math.max(most, data[k] - data[k + 2])), 0));
    video.requestVideoFrameCallback(look);
  };
  video.requestVideoFrameCallback(look);
  const over = new Promise((resolve, reject) => Object.assign(video, { onended: resolve, onerror: reject }));
  await video.play();
  await over;
  return [video.currentTime, video.videoWidth, video.videoHeight, reddest];
}"""
"""How long a video plays [s], its width and height, and by how much red leads blue in each of its pictures."""


@pytest.fixture(scope="module")
def live(browser: Any) -> Iterator[Served]:
    served = Served(browser, {"width": 900, "height": 520})
    yield served
    served.page.close()
    served.server.stop()
    assert not served.faults


WATCH = """() => {
    window.watched = [];
    const look = () => { watched.push([...phyxel.camera.ahead]); requestAnimationFrame(look); };
    look();
}"""
"""Keeps where the camera looks, picture by picture, however slow the machine is that asks."""


def is_free(live: Served, place: tuple[float, float]) -> bool:
    return bool(live.page.evaluate("([x, y]) => document.elementFromPoint(x, y)?.id === 'picture'", list(place)))


@pytest.mark.parametrize(
    ("name", "key", "ahead"), [("front", "z", [0, 0, -1]), ("side", "x", [-1, 0, 0]), ("top", "y", [0, -1, 0])]
)
@pytest.mark.parametrize("by", ["button", "key"])
def test_views_look_along_their_axes_and_frame_the_body(live: Served, name: str, key: str, ahead: Any, by: str) -> None:
    """The world runs all the while: the camera ends where it was sent, the ball in its middle and clear of all bars. It
    flies: on its way it is neither here nor there."""
    page = live.page
    live.page.evaluate("phyxel.camera.orbit(190, -40)")
    begun = np.array(live.value("phyxel.camera.ahead"))
    before = live.value("phyxel.frame.about.frame")
    page.evaluate(WATCH)
    if by == "button":
        page.click(f"#view_{name}", force=True)
    else:
        page.press("#picture", key)
    live.until(f"!phyxel.camera.flight && {ahead}.every((a, k) => Math.abs(a - phyxel.camera.ahead[k]) < 0.01)")
    ways = np.array(live.value("watched"))
    assert (np.maximum(ways @ begun, ways @ ahead) < 0.999).any()
    still = live.value("[...phyxel.camera.eye, ...phyxel.camera.target]")
    live.until(f"phyxel.frame.about.frame > {before} + 10")
    assert live.value("[...phyxel.camera.eye, ...phyxel.camera.target]") == still, "the world does not move it"
    places = [live.on_screen(place.tolist()) for place in SPHERE]
    assert all(is_free(live, place) for place in places)
    wide, high = np.ptp(places, axis=0)
    assert high > 0.4 * 520 or wide > 0.4 * live.value("phyxel.stage.width"), "it fills a good part of the picture"


def test_a_hand_takes_the_camera_out_of_its_flight(live: Served) -> None:
    page = live.page
    page.press("#picture", "z")
    page.mouse.move(100, 100)
    page.mouse.down()
    page.mouse.move(130, 100)
    page.mouse.up()
    turned = live.value("phyxel.camera.turn")
    page.wait_for_timeout(300)
    assert live.value("phyxel.camera.flight") is None and live.value("phyxel.camera.turn") == turned


def test_a_picture_has_all_pixels_and_no_panels(live: Served) -> None:
    """Also where pictures that move are drawn coarsely. It shows the ball where the camera says, as the page does."""
    page = live.page
    page.press("#picture", "f")
    live.until("!phyxel.camera.flight")
    page.evaluate("phyxel.stage.fineness = 0.4")
    with page.expect_download() as download:
        page.click("#photo", force=True)
    assert download.value.suggested_filename == "bear.png"
    picture = np.asarray(Image.open(download.value.path()).convert("RGB"), float)
    box = live.value("[phyxel.stage.width, phyxel.stage.height]")
    assert picture.shape[:2] == tuple(round(side * COARSE) for side in reversed(box))
    orange = picture[..., 0] > 1.4 * picture[..., 2]
    rows, columns = np.nonzero(orange)
    x, y = live.on_screen([0, RADIUS, 0])
    assert columns.mean() == pytest.approx(COARSE * x, abs=0.03 * picture.shape[1])
    assert rows.mean() == pytest.approx(COARSE * y, abs=0.05 * picture.shape[0])
    for bar in ("#toolbar", "#corner", "#timeline"):  # buttons that lie there would be as light as paper
        area = page.locator(bar).bounding_box()
        u, v = (int(COARSE * (area[side] + 3)) for side in ("x", "y"))
        assert np.abs(picture[v, u] - picture[v, u + int(COARSE * area["width"]) - 3]).max() < 25


def test_a_video_is_recorded_while_it_plays(live: Served) -> None:
    page = live.page
    assert page.is_hidden("#filming")
    page.click("#film", force=True)
    live.until("document.querySelector('#filming').textContent >= '● 0:02'")
    assert page.get_attribute("#film", "aria-pressed") == "true" and page.is_visible("#filming")
    with page.expect_download() as download:
        page.press("#picture", "v")
    assert download.value.suggested_filename == "bear.webm"
    content = download.value.path().read_bytes()
    assert content[:4] == b"\x1a\x45\xdf\xa3", "it is Matroska"
    assert page.is_hidden("#filming") and page.get_attribute("#film", "aria-pressed") == "false"
    other = page.context.browser.new_page()
    seconds, width, height, reddest = other.evaluate(PLAYED, base64.b64encode(content).decode())
    other.close()
    sides = live.value("[phyxel.stage.width, phyxel.stage.height]")
    assert [width, height] == [pytest.approx(COARSE * side, abs=2) for side in sides]
    assert 0.5 < seconds < 8, "encoders may take a second to begin"
    assert len(reddest) > 3 and min(reddest) > 60, "the ball is orange in all pictures"


def test_without_a_recorder_it_says_so(live: Served) -> None:
    page = live.page
    page.evaluate("window.MediaRecorder = undefined")
    page.click("#film", force=True)
    page.wait_for_selector(".toast.error")
    assert "records no videos" in page.text_content(".toast.error")
    assert page.get_attribute("#film", "aria-pressed") != "true"
