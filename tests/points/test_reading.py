"""What files say of their numbers is heard; what nobody said is assumed, and told if it looks odd."""

from pathlib import Path

import numpy as np
import pytest

from phyxel.points.load import load
from phyxel.points.reading import UNITS, Reading, said_in
from tests.solid.meshes import box_mesh

VERTICES, FACES = box_mesh(half=(0.2, 0.9, 0.15))
"""an upright figure of 1.8"""


def written(folder: Path, kind: str, comment: str, vertices: np.ndarray) -> Path:
    """The box as a file with a comment."""
    path = folder / f"scan.{kind}"
    rows = [" ".join(map(str, row)) for row in vertices]
    if kind == "ply":
        head = ["ply", "format ascii 1.0", f"comment {comment}", f"element vertex {len(rows)}"]
        head += [f"property float {axis}" for axis in "xyz"]
        head += [f"element face {len(FACES)}", "property list uchar int vertex_indices", "end_header"]
        lines = [*head, *rows, *(f"3 {a} {b} {c}" for a, b, c in FACES)]
    elif kind == "obj":
        lines = [f"# {comment}", *(f"v {row}" for row in rows), *(f"f {a} {b} {c}" for a, b, c in FACES + 1)]
    else:
        lines = [f"# {comment}", *rows]
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("kind", ["ply", "obj", "xyz"])
@pytest.mark.parametrize(
    ("comment", "units", "up"),
    [
        ("units mm", "mm", None),
        ("Units: centimeters", "cm", None),
        ("unit = inch, up z", "in", "z"),
        ("up_axis: Z", None, "z"),
        ("exported x-up", None, "x"),
        ("units are in feet", "ft", None),
        ("made by hand, backup of zoo; unit normals", None, None),
    ],
)
def test_comments_say_units_and_up(tmp_path, kind, comment, units, up):
    """The same cloud as with the options; options go before comments."""
    path = written(tmp_path, kind, comment, VERTICES)
    (tmp_path / "silent").mkdir()
    silent = written(tmp_path / "silent", kind, "nothing", VERTICES)
    found = load(path)
    np.testing.assert_array_equal(found.positions, load(silent, units=units, up=up).positions)
    assert (found.reading.units, found.reading.up) == (units or "m", up or "y")
    assert (comment in found.reading.units_by) == (units is not None)
    assert (comment in found.reading.up_by) == (up is not None)
    told = load(path, units="km", up="y")
    assert (told.reading.units_by, told.reading.up_by) == ("you", "you")
    np.testing.assert_allclose(told.positions, 1e3 * VERTICES)


def test_the_first_word_counts():
    found = said_in(["units mm", "units cm", "up z"])
    assert (found.units, found.up) == ("mm", "z")


def test_a_reading_in_words():
    assert str(Reading()) == "m (assumed), y up (assumed)"
    assert str(said_in(["up z"]).asked("mm", None)) == 'mm (you), z up (the file says "up z")'


@pytest.mark.parametrize(
    ("unit", "said"), [("mm", 'units="mm"'), ("cm", 'units="cm"'), ("km", 'units="km"'), ("m", None)]
)
def test_a_size_that_no_figure_has_is_told_with_the_unit_it_would_fit(tmp_path, unit, said):
    path = written(tmp_path, "obj", "by hand", VERTICES / UNITS[unit])
    odd = load(path).oddities()
    assert len(odd) == (said is not None)
    if said:
        assert said in odd[0] and "1.80 m" in odd[0]
        assert load(path, units=unit).oddities() == []


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
def test_a_figure_on_its_back_is_told(tmp_path, scale):
    lying = scale * VERTICES[:, [0, 2, 1]] * [1, -1, 1]
    path = written(tmp_path, "ply", "by hand", lying)
    (odd,) = load(path).oddities()
    assert 'up="z"' in odd
    assert load(path, up="z").oddities() == []
    assert load(path, up="y").oddities() == [], "who says so knows"
    assert load(written(tmp_path, "ply", "by hand", scale * VERTICES)).oddities() == []


def test_what_is_built_in_or_made_by_hand_is_not_odd():
    assert load("bar").oddities() == []
    assert load(VERTICES).oddities() == []
