"""Modes of vibration, in numbers and pictures."""

import json
import sys

import numpy as np
import pytest
from PIL import Image

import phyxel as px
from phyxel.cli import app as cli

E, NU, RHO = 1e6, 0.3, 1000.0
L, H = 1.0, 0.25


def bar(model: str = "galerkin", **material) -> px.Body:
    """1 × 0.25 × 0.25 m along x, from x = 0 on, in a world."""
    numbers = {"young": E, "poisson": NU, "density": RHO} | material
    body = px.Body(px.load("bar", points=800), material=px.Material(**numbers), nodes=200, model=model)
    px.World().add(body)
    return body


def test_a_clamped_bar_vibrates_as_beam_theory_says():
    """Twisting √(G J / ρ I_p) / 4L with J = 0.1406 h⁴ and I_p = h⁴/6, and stretching √(E/ρ) / 4L (1 % more, for the
    clamp keeps it from thinning), to 2 %. Bending 1.8751² √(EI/ρA) / 2πL², less 3 to 5 % for shear in so thick a bar,
    the same in both directions."""
    body = bar()
    body.fix(px.Box((-1, -1, -1), (1e-3, 1, 1)))
    found = px.modes(body, 6)
    twisting = np.sqrt(E / (2 * (1 + NU)) / RHO * 0.1406 * 6) / (4 * L)
    stretching = np.sqrt(E / RHO) / (4 * L)
    bending = 1.8751**2 * np.sqrt(E * H**2 / 12 / RHO) / (2 * np.pi * L**2)
    assert found.frequencies[2] == pytest.approx(twisting, rel=0.02)
    assert found.frequencies[5] == pytest.approx(stretching, rel=0.02)
    assert found.frequencies[:2] == pytest.approx(0.96 * bending, rel=0.01)
    shapes = found.shapes
    assert np.linalg.norm(shapes, axis=2).max(axis=1) == pytest.approx(1.0)
    assert np.abs(shapes[:, body.birth[:, 0] < 1e-3]).max() < 2e-3, "held, in the mean over the face"
    assert np.abs(shapes[5, :, 0]).max() == pytest.approx(1.0, abs=0.01), "along the bar"


def test_what_a_body_can_do_without_strain_is_no_vibration():
    """Free, hanging by a point, or on a hinge: the lowest is well above 0 Hz, and the less it is held the higher."""
    body = bar()
    free = px.modes(body, 1).frequencies[0]
    body.fix(px.Spot((0.0, 0.125, 0.0)))
    hanging = px.modes(body, 1).frequencies[0]
    body.fix(px.Spot((0.0, -0.125, 0.0)))
    hinged = px.modes(body, 1).frequencies[0]
    assert 0.5 < hinged <= hanging * (1 + 1e-9) and hanging < free


def test_modes_are_those_of_the_elastic_body_whatever_moves_it():
    """A yield changes nothing, and the nodes of phyxels, half a spacing inside, little."""
    free = px.modes(bar(), 4).frequencies
    assert px.modes(bar(yield_strain=0.01), 4).frequencies == pytest.approx(free)
    assert px.modes(bar("phyxel"), 4).frequencies == pytest.approx(free, rel=0.03)


def test_absurd_wishes_for_modes_are_refused():
    with pytest.raises(px.PhyxelError, match="modes = 0"):
        px.modes(bar(), 0)
    with pytest.raises(px.PhyxelError, match="molten"):
        px.modes(bar("phyxel", viscosity=10.0))


SCENE = """
[[body]]
name = "bar"
shape = "bar"
points = 600
nodes = 100
hold = [{ upper = [0.1, inf, inf] }]
[[body]]
name = "ball"
shape = "sphere"
points = 600
nodes = 100
"""


@pytest.fixture
def phyxel(monkeypatch, capsys, tmp_path):
    """`phyxel modes scene.toml ...`: exit code, what it says, what it says of errors."""
    (tmp_path / "scene.toml").write_text(SCENE)
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["phyxel", "modes", "scene.toml", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
            raise SystemExit(0)
        return ended.value.code or 0, *capsys.readouterr()

    return call


def test_the_command_lists_and_draws_modes(phyxel, tmp_path):
    code, output, errors = phyxel("--body", "bar", "--modes", "2", "--json", "--out", "here")
    assert code == 0, errors
    lines = [json.loads(line) for line in output.splitlines()]
    assert [line["mode"] for line in lines] == [1, 2]
    assert all(line["frequency"] * line["period"] == pytest.approx(1) for line in lines)
    with Image.open(tmp_path / "here" / "modes.png") as image:
        pixels = np.asarray(image.convert("RGB")).astype(int)
    one, other = np.split(pixels, 2, axis=1)
    red = one[..., 0] - one[..., 2] > 60
    assert 0.005 < red.mean() < 0.3, "what moves furthest is red"
    assert np.abs(one - other).max(axis=2).mean() > 1, "and each mode another picture"


@pytest.mark.parametrize(
    "arguments, words",
    [
        ([], ["several bodies", "bar, ball"]),
        (["--body", "bll"], ['"bll"', "did you mean"]),
        (["--body", "bar", "--modes", "0"], ["modes = 0"]),
        (["--body", "bar", "--out", "scene.toml"], ["scene.toml", "is a file"]),
    ],
)
def test_the_command_says_what_is_wrong(phyxel, arguments, words):
    code, output, errors = phyxel(*arguments)
    assert code == 1 and output == "" and "Traceback" not in errors
    assert all(word in errors for word in words), errors
