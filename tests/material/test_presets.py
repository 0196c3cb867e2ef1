"""Presets have the numbers that the page on materials has, say whose they are, and do what that page says of them."""

import re
from pathlib import Path

import numpy as np
import pytest

import phyxel as px
from phyxel.material.presets import MEMBRANES, PRESETS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "materials.md"
ROW = re.compile(r"^\| (\w+) \| ([^|]+) \| `(body = [^`]+)` \| ([^|]+) \|$", re.MULTILINE)
ROWS = {name: (numbers, line, does) for name, numbers, line, does in ROW.findall(PAGE.read_text())}
TABLES = PRESETS | MEMBRANES
GROUND = '\ncollider = [{ kind = "ground" }]\n'
SHARES = {"two thirds": 2 / 3, "half": 0.5, "third": 1 / 3, "four tenths": 0.4}
"""of the height that it fell from, within a third: bounces hang on how a ball of 120 nodes lands"""


def world_of(name: str, **other: float) -> px.World:
    line = ROWS[name][1]
    for key, value in other.items():
        line = re.sub(rf"{key} = [\d.]+", f"{key} = {value:g}", line)
    return px.Scene.parse(line + GROUND).world()


def named(word: str) -> list[str]:
    return [name for name, (_, _, does) in ROWS.items() if word in does]


def test_the_page_has_all_presets_and_their_numbers():
    assert list(ROWS) == list(TABLES)
    for name, (written, _, _) in ROWS.items():
        had = [number for field, number in TABLES[name].numbers.items() if field not in ("damping", "drag")]
        flat = [one for number in had for one in (number if isinstance(number, tuple) else (number,))]
        assert sorted(map(float, re.findall(r"[\d.]+(?:e[+-]\d+)?", written))) == sorted(flat), name


@pytest.mark.parametrize("name", TABLES)
def test_calls_say_what_it_is_and_whose_numbers_they_are(name):
    made = getattr(px.Material if name in PRESETS else px.Membrane, name)
    assert made.__doc__.startswith(TABLES[name].about) and TABLES[name].source in made.__doc__
    assert isinstance(made(), px.Material)


@pytest.mark.parametrize("name", named("bounces"))
def test_what_bounces_bounces_so_high(name):
    world = world_of(name)
    share = next(share for word, share in SHARES.items() if word in ROWS[name][2])
    assert abs(rebound(world) / share - 1) < 1 / 3


def rebound(world: px.World) -> float:
    """How high its lowest point comes up again [m]."""
    ball = world.bodies[0]
    heights = []
    while world.time < 1.4:
        world.advance(0.02)
        heights.append(ball.surface.positions[:, 1].min())
    landed = int(np.argmin(heights[:30]))  # within 0.6 s: it falls for 0.45 s
    return max(heights[landed:])


@pytest.mark.parametrize("size", [0.1, 0.4, 1.0])
def test_clay_stays_down_and_is_dented(size):
    """Less than 2 % of the metre that it fell comes back, and it is shorter than it was by what stays in its strain."""
    world = world_of("clay", size=size)
    ball = world.bodies[0]
    tall = np.ptp(ball.surface.positions[:, 1])
    assert rebound(world) < 0.02
    assert np.ptp(ball.surface.positions[:, 1]) < 0.99 * tall
    assert np.linalg.norm(ball.plastic_strain, axis=(1, 2)).max() > 0.02


@pytest.mark.parametrize("name", named("sags"))
def test_bars_sag_as_beams_do(name):
    """Timoshenko: ρgL²(L²/(8 E r²) + 1/(2 κ G)) with r² = h²/12, κ = 5/6; within 6 % of a clamp for the bar's four
    thicknesses, and within a tenth of what the page says."""
    bar = world_of(name).bodies[0]
    world = bar.world
    px.settle(world)
    sag = float((bar.reference - bar.positions)[:, 1].max())
    material, (length, thick) = bar.material, (0.3, 0.075)
    compliance = np.linalg.inv(material.elasticity)
    young, shear = 1 / compliance[0, 0], 1 / compliance[5, 5]
    weight = material.density * 9.81 * length**2
    assert abs(sag / (weight * (1.5 * length**2 / (young * thick**2) + 0.6 / shear)) - 1) < 0.06
    written, unit = re.search(r"sags ([\d.]+) (mm|µm)", ROWS[name][2]).groups()
    assert abs(sag / (float(written) * {"mm": 1e-3, "µm": 1e-6}[unit]) - 1) < 0.12


@pytest.mark.parametrize("name", named("breaks"))
def test_masts_break_by_their_own_weight_if_they_are_long(name):
    """A beam of thickness L/4 bears σ = 3ρgL²/h = 12ρgL at its root: stone of 10 MPa, 32 m, ceramic of 30 MPa, 110 m,
    suddenly let go half of that."""
    world = world_of(name)
    while world.time < 1.0 and len(world.bodies) == 1:
        world.advance(0.02)
    assert len(world.bodies) > 1
    holds = float(re.search(r"at (\d+) m it does not", ROWS[name][2])[1])
    short = px.Scene.parse(
        re.sub(r"size = \d+", f"size = {holds:g}", re.sub(r"-\d+, inf", f"{-0.45 * holds:g}, inf", ROWS[name][1]))
    ).world()
    short.advance(1.0)
    assert len(short.bodies) == 1


@pytest.mark.parametrize("name", MEMBRANES)
def test_sheets_hang_or_stand_out(name):
    world = world_of(name)
    sheet = world.bodies[0]
    far = np.argmax(sheet.reference[:, 0])
    fallen = []
    while world.time < 2.0:  # a swing takes half a second
        world.advance(0.05)
        fallen.append((sheet.reference - sheet.positions)[far, 1] / np.ptp(sheet.reference[:, 0]))
    fallen = np.mean(fallen[20:])
    assert fallen > 0.6 if "hangs" in ROWS[name][2].split(";")[0] else fallen < 0.25
