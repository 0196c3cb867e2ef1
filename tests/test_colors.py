"""Colours as people write them."""

import numpy as np
import pytest

import phyxel as px
from phyxel.colors import NAMES, color_of, rgb

SAME = [
    ("blue", (0, 0, 1)),
    ("Sky Blue", (135 / 255, 206 / 255, 235 / 255)),
    ("#FF8000", (1, 128 / 255, 0)),
    ([0.25, 0.5, 1], (0.25, 0.5, 1)),
    (np.array([0, 1, 0]), (0, 1, 0)),
]


@pytest.mark.parametrize("given, wanted", SAME, ids=[str(given) for given, _ in SAME])
def test_a_colour_is_three_shares(given, wanted):
    assert rgb(given) == pytest.approx(wanted)


def test_names_have_colours_of_their_own():
    assert len({rgb(name) for name in NAMES}) == len(NAMES) - 1, "grey and gray are one"


WRONG = [
    ("bleu", ('"bleu"', 'did you mean "blue"?')),
    ("#12345", ("#rrggbb",)),
    ([50, 120, 230], ("0 to 1", "[0.196, 0.471, 0.902]")),
    ([0.5, 0.5], ("red, green and blue",)),
    ([-1, 0, 0], ("0 to 1",)),
    ([float("nan"), 0, 0], ("0 to 1",)),
    (3, ("red, green and blue",)),
]


@pytest.mark.parametrize("given, words", WRONG, ids=[str(given) for given, _ in WRONG])
def test_a_wrong_one_is_refused_with_what_would_do(given, words):
    with pytest.raises(px.PhyxelError) as caught:
        color_of("color", given)
    for word in ("color = ", *words):
        assert word.strip('"') in str(caught.value)


def test_bodies_take_them_wherever_they_take_a_colour():
    box = px.load("box", points=300)
    named, counted = px.Body(box, nodes=64, inside="gold"), px.Body(box, nodes=64, inside=(1, 215 / 255, 0))
    assert named.appearance.inner_color == pytest.approx(counted.appearance.inner_color)
    named.paint(lambda x: x[:, 0] > 0, "#0000ff")
    right = named.cloud.positions[:, 0] > 0
    assert named.cloud.colors[right] == pytest.approx(np.broadcast_to([0, 0, 1], (right.sum(), 3)))
