"""What the findings on a mesh say is doubtful: the part, by what it is and where, and nothing where all is clear."""

import re

import numpy as np
import pytest

import phyxel as px
from phyxel.points.cloud import PointCloud
from tests.solid.meshes import ball_mesh, box_mesh, opened, pricked, square, together, turned


def doubts(*parts) -> tuple[str, ...]:
    vertices, faces = together(*parts)
    return px.Solid(PointCloud(vertices, faces=faces, name="made")).findings.doubts


def volumes(text: str) -> list[float]:
    """All volumes in a sentence [m³]."""
    found = re.findall(r"([\d.,]+) (m³|l)\b", text)
    return [float(number.replace(",", "")) * (1e-3 if unit == "l" else 1) for number, unit in found]


BALL, OTHER = ball_mesh(), ball_mesh(0.8, (0.9, 0, 0))
CLEAR = {
    "open below": [opened(pricked(BALL, 10), lambda x: x[:, 1] < -0.97), OTHER],
    "closed": [BALL],
    "overlapping": [BALL, OTHER],
    "pricked": [pricked(BALL, 10)],
}


@pytest.mark.parametrize("scale", [0.01, pytest.param(50.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["open below", *(pytest.param(k, marks=pytest.mark.slow) for k in list(CLEAR)[1:])])
def test_what_is_clear_is_not_doubted(kind, scale):
    """Closed, overlapping, with pin holes, or with an opening that is small beside the whole."""
    assert doubts(*((scale * vertices, faces) for vertices, faces in CLEAR[kind])) == ()


@pytest.mark.parametrize("shift", [pytest.param(0.0, marks=pytest.mark.slow), 100.0])
def test_the_part_that_is_open_is_named(shift):
    """A ball beside a box without its lid: how that is closed says much of the volume. The one taken, of both, lies
    between."""
    box = box_mesh((4.0 + shift, 0.0, 0.0), cells=4)
    (doubt,) = doubts(ball_mesh(1.0, (shift, 0, 0)), opened(box, lambda x: x[:, 1] > 0.99))
    assert doubt.startswith("open: of 2 parts part 2 (")
    assert f"around ({4 + shift:.3g}, 0, 0) m" in doubt and "16 open edges" in doubt
    least, most, taken = volumes(doubt)
    assert least < taken < most
    assert taken == pytest.approx(8 + 4 / 3 * np.pi, rel=0.02)


@pytest.mark.slow
def test_one_part_is_called_the_mesh():
    (doubt,) = doubts(opened(box_mesh(cells=4), lambda x: x[:, 1] > 0.99))
    assert doubt.startswith("open: the mesh, 16 open edges")


def test_a_cavity_is_told():
    """Half the radius is an eighth of the volume; a tenth is a thousandth, which is not worth a word."""
    (doubt,) = doubts(ball_mesh(rings=32), turned(ball_mesh(0.5)))
    assert doubt.startswith("hollow: of 2 parts part 2 (")
    cavity, solid = volumes(doubt)
    assert cavity == pytest.approx(np.pi / 6, rel=0.03)
    assert solid == pytest.approx(4 / 3 * np.pi * 7 / 8, rel=0.03)
    assert doubts(ball_mesh(), turned(ball_mesh(0.1))) == ()


def test_sheets_that_are_left_out_are_told():
    (doubt,) = doubts(ball_mesh(), square(2.0, (0, 2, 0)))
    assert doubt.startswith("sheets: of 2 parts part 2 (128 faces around (0, 2, 0) m)")
