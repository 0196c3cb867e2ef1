"""In a real browser: what takes long is said and can be ended, what was done can be undone, files can be dropped."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phyxel import progress
from phyxel.view.live_world import LiveWorld
from tests.view.page.test_viewer import BEAR, PATIENCE, Viewer, on_screen, page_until, press
from tests.view.waiting import wait_for

OFTEN = 0.02
"""Wall time between two breaths of work [s]."""
LATE = 0.3
"""Wall time after which nobody should have to wonder [s], on a machine that has nothing else to do."""
TIP = "document.querySelector('#undo').dataset.tip"


def late() -> float:
    """The same, where others use the cores, too [s]: software draws the pictures on them, besides."""
    return LATE * max(os.getloadavg()[0] / len(os.sched_getaffinity(0)), 1.0)


@pytest.fixture(scope="module")
def viewer(browser: Any) -> Iterator[Viewer]:
    viewer = Viewer(browser, BEAR)
    yield viewer
    viewer.stop()
    assert viewer.faults == []


@pytest.fixture(scope="module")
def page(viewer: Viewer) -> Iterator[Any]:
    page = viewer.page()
    page_until(page, "phyxel.frame.about.time > 0.1")
    yield page
    page.close()


def seconds_until(page: Any, holds: str, given: Any = None) -> float:
    """How long it takes until something is so in a page [s]."""
    began = time.monotonic()
    page_until(page, holds, given)
    return time.monotonic() - began


def work(seconds: float) -> Callable[..., None]:
    """Something that takes so long."""

    def do(*_: Any) -> None:
        steps = round(seconds / OFTEN)
        for step in range(steps):
            progress.tell("kneading", step, steps)
            time.sleep(OFTEN)

    return do


def test_what_takes_five_seconds_is_said_at_once_and_can_be_ended(viewer, page, monkeypatch):
    heat = LiveWorld._heat

    def long_heat(self: LiveWorld, *given: Any, **what: Any) -> None:
        heat(self, *given, **what)
        work(5.0)()

    monkeypatch.setattr(LiveWorld, "_heat", long_heat)
    before, tip = viewer.live.world, page.evaluate(TIP)
    page.evaluate("document.getElementById('melt').click()")
    said = "document.querySelector('#overlay.busy:not([hidden]) p')?.textContent"
    assert seconds_until(page, f"{said} === 'melting bear ...'") < late()
    wait_for(lambda: viewer.bear.has_melted, PATIENCE)
    page_until(page, "document.querySelector('#busy_step').textContent === 'kneading'")
    page_until(page, "document.querySelector('#busy_bar').value > 0.05")
    # The page goes on answering: the camera turns, and it is drawn.
    eye = page.evaluate("phyxel.camera.eye")
    page.evaluate("phyxel.camera.orbit(40, 0)")
    assert page.evaluate("phyxel.camera.eye") != eye
    page.evaluate("document.getElementById('cancel').click()")
    page_until(page, "document.querySelector('#overlay').hidden")
    wait_for(lambda: viewer.live.world is not before, PATIENCE)
    assert not viewer.bear.has_melted, "it is as before"
    now = viewer.live.world.time
    wait_for(lambda: viewer.live.world.time > now, PATIENCE, "and goes on")
    page_until(page, f"{TIP} === given", tip)


def test_the_end_of_a_long_deed_comes_soon(viewer, page, monkeypatch):
    """From the button to the world's going on, without the building of the world that a deed in it has left half way:
    a scene that is built leaves the present world alone."""
    before = viewer.live.world
    monkeypatch.setattr("phyxel.view.play.kernels.ready", work(5.0))
    press(page, "#reset")
    page_until(page, "document.querySelector('#cancel')")
    began = time.monotonic()
    page.evaluate("document.getElementById('cancel').click()")
    page_until(page, "document.querySelector('#overlay').hidden")
    assert time.monotonic() - began < late()
    time_then = viewer.live.world.time
    wait_for(lambda: viewer.live.world.time > time_then, PATIENCE)
    assert viewer.live.world is before


def test_undo_takes_back_what_its_tip_says(viewer, page):
    tip = page.evaluate(TIP)
    press(page, "#melt")
    page_until(page, f"{TIP} === 'Undo melting bear'")
    wait_for(lambda: viewer.bear.has_melted, PATIENCE)
    page.fill("#density_value", "500")
    page.press("#density_value", "Enter")
    page_until(page, f"{TIP} === 'Undo changing the material of bear'")
    press(page, "#undo")
    page_until(page, f"{TIP} === 'Undo melting bear'")
    assert viewer.bear.has_melted and viewer.bear.material.density != 500
    page.keyboard.press("Control+z")
    page_until(page, f"{TIP} === given", tip)
    assert not viewer.bear.has_melted


def test_a_scan_is_set_down_and_taken_away_again(viewer, page, tmp_path):
    scan = tmp_path / "my scan.ply"
    size = 0.5 * float(np.ptp(viewer.bear.surface.positions, axis=0).max())
    scan.write_bytes(cube(size))
    page.set_input_files("#file", str(scan))
    page_until(page, "phyxel.scene.bodies.length === 2 && phyxel.frame.parts.some(({name}) => name === 'my scan')")
    guest = viewer.live.world.bodies[1]
    assert guest.name == "my scan"
    assert np.ptp(guest.surface.positions, axis=0) == pytest.approx(size, rel=0.2)
    page.wait_for_timeout(300)
    x, y = on_screen(page, guest.positions.mean(axis=0))
    assert 0 < x < 800 and 0 < y < 500, "and seen"
    press(page, "#undo")
    page_until(page, "phyxel.scene.bodies.length === 1")


def test_a_scene_takes_the_place_of_the_world_and_what_cannot_be_read_is_said(viewer, page, tmp_path):
    scene, nonsense = tmp_path / "ball.toml", tmp_path / "nonsense.ply"
    scene.write_text('[[body]]\nshape = "sphere"\nnodes = 60\npoints = 500\n[[collider]]\nkind = "ground"\n')
    nonsense.write_text("ply\nformat")
    dropped(page, nonsense)
    page_until(page, "[...document.querySelectorAll('.toast.error')].some(e => e.textContent.includes('nonsense.ply'))")
    dropped(page, scene)
    page_until(page, "phyxel.scene.name === 'ball'")
    assert viewer.bear.name == "sphere"
    press(page, "#undo")
    page_until(page, "phyxel.scene.name === 'bear'")


def dropped(page: Any, file: Path) -> None:
    """Drop a file onto the page, as a hand does from its desktop."""
    page.evaluate(
        """([name, text]) => {
            const data = new DataTransfer();
            data.items.add(new File([text], name));
            dispatchEvent(new DragEvent("drop", {dataTransfer: data, cancelable: true}));
        }""",
        [file.name, file.read_text()],
    )


def cube(size: float) -> bytes:
    """A closed mesh, as a PLY file."""
    corners = [(x, y, z) for x in (0, size) for y in (0, size) for z in (0, size)]
    faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    head = "ply\nformat ascii 1.0\nelement vertex 8\nproperty float x\nproperty float y\nproperty float z\n"
    lines = [" ".join(map(str, corner)) for corner in corners] + [f"4 {' '.join(map(str, face))}" for face in faces]
    return (f"{head}element face 6\nproperty list uchar int vertex_indices\nend_header\n" + "\n".join(lines)).encode()
