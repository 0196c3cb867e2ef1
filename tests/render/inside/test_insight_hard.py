"""Wrong questions about what is inside: they are refused in words."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phyxel as px


@pytest.fixture(scope="module")
def world() -> px.World:
    world = px.World()
    world.add(px.Body(px.load("sphere", points=2000), nodes=60, model="galerkin", name="ball"))
    return world


@pytest.mark.parametrize(
    ("field", "said"),
    [
        (lambda X: np.where(X[:, 1] > 0, np.nan, X[:, 0]), "gave nan at .* in ball; give a finite number"),
        (lambda X: np.full(len(X), -np.inf), "gave -inf"),
        (lambda body, X, time: X[:, 0], "a function of 3 arguments; give f"),
    ],
)
def test_fields_that_say_nothing(world: px.World, field: Callable[..., Any], said: str) -> None:
    with pytest.raises(px.PhyxelError, match=said):
        px.stage(world, px.Inside(field, "slice")).draw(world)


def test_a_range_of_words_and_an_empty_world() -> None:
    with pytest.raises(px.PhyxelError, match="range = low: give two different numbers"):
        px.Inside("stress", range="low")  # type: ignore[arg-type]
    with pytest.raises(px.PhyxelError, match="no body to look at"):
        px.stage(px.World(), px.Inside("stress"))
