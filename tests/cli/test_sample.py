"""`phyxel sample`: what was understood of a model, as a table and as a picture."""

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from phyxel.units import length_text, volume_text

RADIUS = 0.1
BALL = 4 / 3 * np.pi * RADIUS**3 * 1e6
"""[cm³]"""


@pytest.fixture
def sample(phyxel):
    """Runs `phyxel sample ...` in an empty folder: exit code, the table's rows, stdout, stderr."""

    def call(*arguments: str | Path) -> tuple[int, dict[str, str], str, str]:
        code, output, errors = phyxel("sample", *arguments)
        rows = dict(re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in output.splitlines() if "  " in line)
        return code, rows, output, errors

    return call


def refused(result: tuple[int, dict[str, str], str, str], *words: str) -> None:
    """It ended with code 1, said why in one line, and wrote nothing."""
    code, _, output, errors = result
    assert code == 1, errors
    assert "Traceback" not in errors and output == "" and len(errors.splitlines()) == 1
    for word in words:
        assert word in errors
    assert list(Path.cwd().iterdir()) == []


def ball_points(count: int) -> np.ndarray:
    """Points on a ball, spread evenly."""
    y = 1 - (2 * np.arange(count) + 1) / count
    turn = np.pi * (3 - np.sqrt(5)) * np.arange(count)
    ring = np.sqrt(1 - y * y)
    return RADIUS * np.stack([ring * np.cos(turn), y, ring * np.sin(turn)], axis=1)


def write_bowl(path: Path, rings: int, open_rings: int) -> int:
    """A ball of quadrilaterals without its uppermost rings; returns the number of vertices."""
    columns = 2 * rings
    polar = np.pi * (np.arange(open_rings, rings) + 0.5) / rings
    around = 2 * np.pi * np.arange(columns) / columns
    lines = [
        f"v {RADIUS * np.sin(p) * np.cos(a):.6f} {RADIUS * np.cos(p):.6f} {RADIUS * np.sin(p) * np.sin(a):.6f}"
        for p in polar
        for a in around
    ]
    for row in range(len(polar) - 1):
        for column in range(columns):
            corners = [(row, column), (row, column + 1), (row + 1, column + 1), (row + 1, column)]
            lines.append("f " + " ".join(str(r * columns + c % columns + 1) for r, c in corners))
    path.write_text("\n".join(lines) + "\n")
    return len(polar) * columns


def number(text: str) -> float:
    """The first number of a cell."""
    return float(re.search(r"-?[\d,.]+\d|\d", text)[0].replace(",", ""))


# The table


def test_a_built_in_shape(sample):
    code, rows, _, errors = sample("sphere", "--points", "400", "-n", "200")
    assert code == 0, errors
    assert rows["model"] == "sphere, built-in shape"
    assert rows["points"] == "400"
    assert rows["size"] == "50.0 × 50.0 × 50.0 cm"
    assert rows["corners"] == "(-25.0, -25.0, -25.0) to (25.0, 25.0, 25.0) cm"
    assert rows["volume"].endswith(" l") and number(rows["volume"]) == pytest.approx(65.45, rel=0.005)
    for absent in ("duplicates", "outliers", "buried", "noise", "holes", "picture"):
        assert absent not in rows
    assert all(stage in rows["time"] for stage in ("load", "solid", "nodes"))


def test_the_kinds_of_nodes_add_up(sample):
    _, rows, *_ = sample("sphere", "--points", "400", "-n", "200")
    total, asked, *kinds = (int(n) for n in re.findall(r"\d+", rows["nodes"]))
    assert asked == 200 and total == pytest.approx(200, rel=0.1)
    assert len(kinds) == 3 and sum(kinds) == total
    spacing = (65.45e-3 / total) ** (1 / 3)
    assert rows["spacing"].startswith(length_text(spacing)[:3])
    assert number(rows["quadrature"]) > total


def test_points_with_duplicates_and_an_outlier(sample, tmp_path):
    points = ball_points(1500)
    path = tmp_path / "scan.xyz"
    np.savetxt(path, np.concatenate([points, points[:30], [[0.4, 0.0, 0.0]]]))
    code, rows, _, errors = sample(path, "-n", "100")
    assert code == 0, errors
    assert rows["model"] == f"{path}, points"
    assert rows["points"] == "1,531"
    assert rows["normals"] == "estimated"
    assert rows["duplicates"] == "30, counted once"
    assert rows["outliers"] == "1 left out"
    assert rows["holes"] == "none"
    assert rows["size"] == "20.0 × 20.0 × 20.0 cm"
    assert number(rows["volume"]) == pytest.approx(BALL / 1e3, rel=0.01)


@pytest.mark.slow
def test_an_open_mesh_and_how_much_may_be_made_up(sample, tmp_path):
    path = tmp_path / "bowl.obj"
    vertices = write_bowl(path, rings=24, open_rings=5)
    code, rows, _, errors = sample(path, "-n", "100")
    assert code == 0, errors
    assert rows["model"] == f"{path}, open mesh"
    assert number(rows["points"]) == vertices
    # One cap of 41 degrees, and a speck about the lower pole.
    assert number(rows["holes"]) == 2
    share = float(re.search(r"([\d.]+) % of the surface made up", rows["holes"])[1])
    assert 8 < share < 20
    refused(sample(path, "--closing", "0.02"), "bowl.obj", "closing")


def test_a_scan_in_millimetres_is_suspected(sample, tmp_path):
    path = tmp_path / "scan.xyz"
    np.savetxt(path, 1e3 * ball_points(800))
    code, rows, output, errors = sample(path, "-n", "64")
    assert code == 0, errors
    assert rows["size"] == "200 × 200 × 200 m"
    assert "tip:" in output and "--units cm" in output
    _, rows, output, _ = sample(path, "-n", "64", "--units", "mm")
    assert (
        rows["size"] == "20.0 × 20.0 × 20.0 cm" and "--units" not in output and rows["read as"].startswith("mm (you)")
    )


@pytest.mark.parametrize(
    "metres, text",
    [(0.0033, "3.30 mm"), (0.99999999, "1.00 m"), (0.25, "25.0 cm"), (1234.0, "1.23 km"), (4e-7, "400 nm")],
)
def test_lengths_in_words(metres, text):
    assert length_text(metres) == text


@pytest.mark.parametrize(
    "cubic_metres, text",
    [(2.0, "2.00 m³"), (0.0292, "29.2 l"), (7.55e-4, "755 cm³"), (5e-9, "5.00 mm³"), (7e-10, "0.700 mm³")],
)
def test_volumes_in_words(cubic_metres, text):
    assert volume_text(cubic_metres) == text


# The picture


def test_the_picture_shows_inside_and_outside(sample):
    code, rows, _, errors = sample("sphere", "--points", "400", "-n", "200", "--picture", "cut.png")
    assert code == 0, errors
    assert rows["picture"] == "cut.png" and "picture" in rows["time"]
    picture = Image.open("cut.png")
    assert picture.size == (1280, 960) and picture.mode == "RGB"
    red, green, blue = np.asarray(picture, int).transpose(2, 0, 1)
    seen = slice(150, 850), slice(150, 900)
    warm, cool = (red - blue)[seen] > 60, (blue - red)[seen] > 25
    # The cut through the middle of a ball fills a good part of the picture, the sheet around it less.
    assert 0.15 < warm.mean() < 0.6
    assert 0.02 < cool.mean() < 0.5
    blue_balls = (blue - red)[seen] > 100
    assert 0.002 < blue_balls.mean() < 0.1
    # It is darkest deep inside.
    row, column = np.argwhere(warm).mean(axis=0).astype(int)
    deep = np.s_[row - 30 : row + 30, column - 30 : column + 30]
    assert np.median(green[seen][deep][warm[deep]]) < 100 < 200 < np.quantile(green[seen][warm], 0.8)


@pytest.mark.slow
def test_a_jpeg(sample):
    code, _, _, errors = sample("box", "--points", "300", "-n", "64", "--picture", "new/cut.JPG")
    assert code == 0, errors
    assert Image.open("new/cut.JPG").format == "JPEG"


# Errors


def test_a_suffix_that_is_no_picture_is_refused_before_any_work(sample):
    refused(sample("no-such-file.ply", "--picture", "cut.gif"), "cut.gif", ".png", ".jpg")


def test_a_missing_file(sample):
    refused(sample("nowhere.ply", "--picture", "cut.png"), "nowhere.ply")


@pytest.mark.parametrize(
    "options, word",
    [
        (["--nodes", "3"], "nodes"),
        (["--points", "1"], "points"),
        (["--units", "mm"], "units"),
        (["--up", "w"], "up"),
        (["--opacity", "2"], "opacity"),
        (["--closing", "2"], "closing"),
        (["--device", "abacus"], "abacus"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_absurd_option(sample, options, word):
    refused(sample("sphere", *options), word)
