"""Quantities as people write them."""

import math

import pytest

from phyxel.errors import PhyxelError
from phyxel.units import READ, amount_text, extents_text, in_unit, quantity

SAME = [
    ("2 GPa", "Pa", 2e9), ("2GPa", "Pa", 2e9), ("1.5e3 kPa", "Pa", 1.5e6), ("14.5 psi", "Pa", 99974.0),
    ("3 N/mm^2", "Pa", 3e6), ("1.2 g/cm3", "kg/m³", 1200.0), ("0.9 kg/l", "kg/m³", 900.0), ("12 mm", "m", 0.012),
    ("3 in", "m", 0.0762), (" -2 cm ", "m", -0.02), ("5 um", "m", 5e-6), ("5 μm", "m", 5e-6), ("250 ms", "s", 0.25),
    ("1.5 min", "s", 90.0), ("10 Pa·s", "Pa s", 10.0), ("10 Pa*s", "Pa s", 10.0), ("1 cP", "Pa s", 1e-3),
    ("0.5 rad", "degrees", math.degrees(0.5)), ("90°", "degrees", 90.0), ("1 rpm", "rad/s", math.tau / 60),
    ("36 km/h", "m/s", 10.0), ("2 g", "m/s²", 19.6133), ("40 %", "", 0.4), ("7", "Pa", 7.0), ("inf", "Pa", math.inf),
    (".5 m", "m", 0.5),
]  # fmt: skip


@pytest.mark.parametrize("text, unit, worth", SAME, ids=[text for text, _, _ in SAME])
def test_a_text_with_a_unit_is_its_worth(text, unit, worth):
    assert in_unit(text, unit) == pytest.approx(worth, rel=1e-6)


@pytest.mark.parametrize("value", [2, 2.5, None, math.inf, [1, 2]])
def test_what_is_no_text_stays(value):
    assert in_unit(value, "Pa") is value


def test_the_unit_that_is_counted_in_is_one():
    """And no unit is another's under a different name of the same letters."""
    for unit, (_, units) in READ.items():
        assert not unit or in_unit(f"3 {unit}", unit) == 3
        assert len({in_unit(f"1 {one}", unit) for one in units}) >= len(set(units.values()))


WRONG = [
    ("2 kg/m³", "Pa", ("young = '2 kg/m³'", "a unit of a density", "this is a pressure", "GPa")),
    ("2 gpa", "Pa", ("gpa is not known", '"GPa"')),
    ("2 furlongs", "m", ("furlongs is not known", "km, m, cm")),
    ("1,5 m", "m", ("give a length", "[m]")),
    ("soft", "Pa", ("give a pressure", "[Pa]", "GPa")),
    ("", "s", ("give a time", "[s]")),
    ("3 m", "", ("a unit of a length", "this is a plain number")),
]


@pytest.mark.parametrize("text, unit, words", WRONG, ids=[text for text, _, _ in WRONG])
def test_a_wrong_one_is_refused_in_words(text, unit, words):
    with pytest.raises(PhyxelError) as caught:
        quantity("young", text, unit)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.85, "m", "85.0 cm"),
        (1200.0, "m", "1.20 km"),
        (12.5, "kg", "12.5 kg"),
        (2500.0, "kg", "2.50 t"),
        (3e-5, "kg", "30.0 mg"),
        (2.2e9, "Pa", "2.20 GPa"),
        (0.012, "m³", "12.0 l"),
    ],
)
def test_an_amount_is_written_with_three_digits_in_a_unit_that_fits(value, unit, text):
    assert amount_text(value, unit) == text


@pytest.mark.parametrize(
    ("extents", "text"),
    [
        ((1.0, 2.0, 0.5), "1.00 × 2.00 × 0.50 m"),
        ((0.01, 0.35, 0.0), "1.0 × 35.0 × 0.0 cm"),
        ((0, 0, 0), "0 × 0 × 0 nm"),
    ],
)
def test_extents_share_a_unit(extents, text):
    assert extents_text(extents) == text
