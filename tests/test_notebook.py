"""What a notebook shows of things, and how far long work is, with an IPython that only writes down what it is told."""

import base64
import io
import itertools
import re
import sys
from types import ModuleType, SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

import phyxel as px
from phyxel import notebook, progress

MOST_BYTES = 60_000
"""of the picture of a card"""

CELLS = itertools.count(1)
"""numbers of cells, each run once"""


class Handle:
    """A place in a cell, and all that it has shown."""

    def __init__(self, told: dict[str, str]) -> None:
        self.shown = [told]

    def update(self, told: dict[str, str], raw: bool) -> None:
        assert raw
        self.shown.append(told)


class FakeIPython(ModuleType):
    """What of IPython is used; with a kernel it is a notebook's, without one a terminal's."""

    def __init__(self, has_kernel: bool = True) -> None:
        super().__init__("IPython")
        self.handles: list[Handle] = []
        self.shell = SimpleNamespace(execution_count=next(CELLS), **({"kernel": object()} if has_kernel else {}))
        self.display = SimpleNamespace(display=self._display)

    def get_ipython(self) -> object:
        return self.shell

    def _display(self, told: dict[str, str], raw: bool, display_id: bool) -> Handle:
        assert raw and display_id
        self.handles.append(Handle(told))
        return self.handles[-1]


@pytest.fixture
def ipython(monkeypatch: pytest.MonkeyPatch) -> FakeIPython:
    fake = FakeIPython()
    monkeypatch.setitem(sys.modules, "IPython", fake)
    return fake


def clock(monkeypatch: pytest.MonkeyPatch, step: float) -> None:
    """So many seconds go by between two looks at it."""
    ticks = itertools.count()
    monkeypatch.setattr(notebook.time, "monotonic", lambda: step * next(ticks))


# ---- Cards ----


def read(html: str) -> tuple[dict[str, str], bytes | None]:
    """The table of a card and its picture."""
    root = ElementTree.fromstring(html)
    rows = {row[0].text or "": row[1].text or "" for row in root.iter("tr")}
    images = [image.get("src", "") for image in root.iter("img")]
    return rows, base64.b64decode(images[0].removeprefix("data:image/png;base64,")) if images else None


def is_drawn(picture: bytes | None) -> bool:
    """Whether there is something in the middle of a picture that its corners have not."""
    assert picture is not None
    assert len(picture) < MOST_BYTES
    pixels = np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"), float)
    height, width = pixels.shape[:2]
    middle = pixels[height // 3 : 2 * height // 3, width // 3 : 2 * width // 3]
    return bool(np.ptp(middle, axis=(0, 1)).max() > 60)


def box(size: float = 0.5, at: tuple[float, float, float] = (0.0, 0.0, 0.0), **options) -> px.Body:
    cloud = px.load("box", points=2000)
    return px.Body(cloud, nodes=216, size=size, at=at, **options)


@pytest.mark.parametrize(("size", "at"), [(0.5, (0, 0, 0)), (1e-4, (3, 1, 0)), (4e3, (0, 0, 1e6))])
def test_a_body_is_a_picture_and_a_table_before_and_in_a_world(size, at):
    body = box(size, at, material=px.Material(young=2e6, density=900))
    world = px.World()
    rows, picture = read(body._repr_html_())
    assert is_drawn(picture)
    world.add(body)
    again, later = read(body._repr_html_())
    assert is_drawn(later)
    assert rows == again
    assert rows["nodes"] == "216"
    assert rows["points"] == "2,000"
    assert rows["material"] == "young 2.00 MPa, poisson 0.4, density 900 kg/m³"
    unit = {0.5: "50.0 × 50.0 × 50.0 cm", 1e-4: "100 × 100 × 100 µm", 4e3: "4.00 × 4.00 × 4.00 km"}[size]
    assert rows["size"] == unit
    volume, mass = {0.5: ("125 l", "112 kg"), 1e-4: ("0.00100 mm³", "0.900 µg"), 4e3: ("64.0 km³", "57,600,000,000 t")}[
        size
    ]
    assert rows["volume"] == volume
    assert rows["mass"].split()[1] == mass.split()[1]


def test_clouds_solids_and_worlds_are_shown():
    cloud = px.load("sphere", points=3000)
    rows, picture = read(cloud._repr_html_())
    assert is_drawn(picture)
    assert rows["points"] == "3,000"
    rows, picture = read(px.Solid(cloud)._repr_html_())
    assert is_drawn(picture)
    assert rows["made from"] == "shape"
    volume, unit = rows["volume"].split()
    assert unit == "l"
    assert float(volume) == pytest.approx(4 / 3 * np.pi * 2.5**3, rel=2e-3)
    world = px.World()
    world.add(box())
    world.add(px.Ground())
    world.advance(0.05)
    rows, picture = read(world._repr_html_())
    assert is_drawn(picture)
    assert rows["time"] == "0.050 s"
    assert rows["bodies"] == "box (phyxel, 216 nodes)"
    assert rows["colliders"] == "ground"


def test_points_without_normals_and_meshes_of_few_corners_are_drawn():
    cloud = px.load("sphere", points=3000)
    assert is_drawn(read(px.PointCloud(cloud.positions)._repr_html_())[1])
    corners, faces = (
        np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]]),
        [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]],
    )
    assert is_drawn(read(px.load((corners, faces))._repr_html_())[1])


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", 'a "quoted" & <b>bold</b> name', "c'est ça; 冰"])
def test_words_of_files_are_text(name):
    cloud = px.PointCloud(px.load("sphere", points=500).positions, name=name)
    html = cloud._repr_html_()
    root = ElementTree.fromstring(html)
    assert [element.text for element in root.iter("strong")] == [f"PointCloud {name}"]
    assert not any(root.iter("script")) and not any(root.iter("b"))


@pytest.mark.parametrize("positions", [np.zeros((0, 3)), [[0, 0, 0]], np.full((50, 3), np.nan)])
def test_what_cannot_be_drawn_has_a_table(positions):
    rows, picture = read(px.PointCloud(positions)._repr_html_())
    assert picture is None
    assert rows["points"] == f"{len(positions)}"
    assert "points" in rows["no picture"] or "surface" in rows["no picture"]


def test_facts_that_fail_end_the_table_and_do_not_leak():
    class Odd(notebook.Showable):
        def facts(self):
            yield "first", "known"
            raise ZeroDivisionError("no second")

    rows, picture = read(Odd()._repr_html_())
    assert rows["first"] == "known"
    assert rows["not known"] == "no second"
    assert picture is None


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: px.load("box", points=300), "<PointCloud box: points 300, size 50.0 × 50.0 × 50.0 cm"),
        (lambda: px.Solid(px.load("box", points=300)), "<Solid box: made from shape, size 50.0 ×"),
        (lambda: box(), "<Body box: model phyxel, nodes 216, size 50.0 ×"),
        (lambda: px.World(), "<World: time 0.000 s, bodies none, colliders none>"),
    ],
)
def test_a_terminal_has_one_short_line(make, words):
    line = repr(make())
    assert line.startswith(words)
    assert "\n" not in line
    assert len(line) < 150


# ---- The bar ----


def test_a_cell_has_one_bar_that_moves_and_goes(ipython, monkeypatch, capsys):
    clock(monkeypatch, 1.0)
    for done in range(4):
        progress.tell("kneading <dough>", done, 3)
    progress.tell("baking", 0, 2)
    (handle,) = ipython.handles
    html = [told["text/html"] for told in handle.shown]
    bars = [ElementTree.fromstring(f"<p>{one}</p>") for one in html]
    assert [bar.find("progress").get("value") for bar in bars[:3]] == ["0", "1", "2"]
    assert "kneading <dough>" in "".join(bars[0].itertext())
    assert html[3] == ""
    assert "baking" in html[4]
    assert capsys.readouterr() == ("", "")


def test_another_cell_has_a_bar_of_its_own(ipython):
    progress.tell("kneading", 0, 3)
    ipython.shell.execution_count = next(CELLS)
    progress.tell("kneading", 0, 3)
    assert [len(handle.shown) for handle in ipython.handles] == [1, 1]


@pytest.mark.parametrize("seconds", [0.001, 0.05])
def test_a_bar_moves_a_few_times_a_second(ipython, monkeypatch, seconds):
    """However many steps there are; its begin and end are always seen."""
    clock(monkeypatch, seconds)
    steps = 400
    for done in range(steps + 1):
        progress.tell("kneading", done, steps)
    (handle,) = ipython.handles
    assert len(handle.shown) <= 3 + steps * seconds / notebook.MOST_OFTEN
    assert re.search('value="0"', handle.shown[0]["text/html"])
    assert handle.shown[-1]["text/html"] == ""


def test_frames_move_the_bar(ipython, monkeypatch):
    clock(monkeypatch, 1.0)
    world = px.World()
    world.add(box())
    for _ in world.play(seconds=0.04, fps=50):
        pass
    shown = [told["text/plain"] for handle in ipython.handles for told in handle.shown]
    assert shown[-3:] == ["playing 1/3", "playing 2/3", ""]


def test_who_listens_hears_in_place_of_the_cell(ipython):
    heard = []
    with progress.heard_by(lambda *told: heard.append(told)):
        progress.tell("kneading", 0, 3)
    assert heard == [("kneading", 0, 3)]
    assert ipython.handles == []


def test_a_terminal_ipython_is_a_terminal(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", FakeIPython(has_kernel=False))
    assert notebook.shell() is None


def test_ipython_is_not_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert notebook.shell() is None
    assert "IPython" not in sys.modules
