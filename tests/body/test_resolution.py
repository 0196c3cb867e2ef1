"""Whether a body has enough nodes across it to bend: told of where most of it is too thin, and nowhere else."""

import dataclasses
import re
import warnings

import numpy as np
import pytest

import phyxel as px
import phyxel.movers.kinds  # fills the table
from phyxel.body.resolution import filled_with, nodes_to_bend
from phyxel.errors import PhyxelWarning
from phyxel.models.kind import KINDS, Scheme


def told(make) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make()
    return [str(one.message) for one in caught if issubclass(one.category, PhyxelWarning)]


def scheme(kind: str) -> Scheme:
    """That of a model, or one of phyxels."""
    return KINDS["phyxel"].scheme(kind) if kind in KINDS["phyxel"].schemes else KINDS[kind].scheme()


def layers(across: tuple[int, int, int], kind: str, jitter: float = 0.0):
    """Nodes of a block of so many spacings, as a scheme has them: positions, distances to the surface, volumes."""
    inside = scheme(kind).nodes == "inside"
    cells = [np.arange(n) + 0.5 if inside else np.linspace(0, n - 1, n) for n in across]
    sides = np.array(across, float) - (not inside)
    X = np.stack(np.meshgrid(*cells, indexing="ij"), axis=-1).reshape(-1, 3)
    reach = np.minimum(X, sides - X).min(axis=1)
    halves = 1.0 if inside else np.where((X == 0) | (sides == X), 0.5, 1.0).prod(axis=1)
    X = X + jitter * np.random.default_rng(1).uniform(-1, 1, X.shape)
    return X, np.maximum(reach, 0), np.broadcast_to(halves, len(X)).astype(float)


@pytest.mark.parametrize("kind", ["m04", "consistent", "galerkin", "modal"])
@pytest.mark.parametrize("length", [8, 30])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 70.0])
def test_bars_and_plates_are_told_of_up_to_the_layers_that_they_need(kind, length, scale):
    needed = scheme(kind).across
    for count in range(2, needed + 4):
        for across in ((length, count, count), (length, count, length)):
            X, reach, volumes = layers(across, kind, 0.2)
            enough = nodes_to_bend(scheme(kind), scale * X, scale * reach, scale**3 * volumes)
            assert (enough is None) == (count >= needed), (across, enough)


def test_the_number_that_is_named_is_about_enough():
    """A bar of n layers needs (needed / n)³ as many; the depth of the middle one tells n to ± ½."""
    for count in (2, 3, 4):
        X, reach, volumes = layers((40, count, count), "m04")
        fewest, most = (len(X) * (scheme("m04").across / (count + off)) ** 3 for off in (0.6, -0.6))
        assert fewest < nodes_to_bend(scheme("m04"), X, reach, volumes) < most


def test_a_thin_part_of_a_thick_body_is_not_told_of():
    """A handle on a block: most of the volume is thick enough."""
    block, handle = layers((10, 10, 10), "m04"), layers((40, 2, 2), "m04")
    X, reach, volumes = (
        np.concatenate(pair) for pair in zip(block, (handle[0] + [10, 4, 4], *handle[1:]), strict=True)
    )
    assert nodes_to_bend(scheme("m04"), X, reach, volumes) is None


def test_a_coarse_bar_is_told_of_once_with_what_to_do():
    bar = px.load("bar", points=300)
    (message,) = told(lambda: px.Body(bar, nodes=150, scheme="m04"))
    for word in ("bar: ", "fewer than 5 across", 'model = "phyxel"', "not bend as it should", '"galerkin" or "modal"'):
        assert word in message
    enough = int(re.search(r"nodes = ([\d,]+)", message)[1].replace(",", ""))
    assert told(lambda: px.Body(bar, nodes=2 * enough, scheme="m04")) == []
    assert told(lambda: px.Body(bar, nodes=150, scheme="consistent")) == [], "to the surface, three across are enough"
    (message,) = told(lambda: px.Body(bar, nodes=20, scheme="consistent"))
    assert "fewer than 3 across" in message
    assert told(lambda: px.Body(bar, nodes=150, model="modal")) == []


@pytest.mark.parametrize("shape", ["bear", "box", "sphere", "bust"])
def test_compact_shapes_at_the_usual_number_of_nodes_are_fine(shape):
    assert told(lambda: px.Body(px.load(shape, points=2000))) == []


@pytest.mark.parametrize("model", ["phyxel", "modal"])
def test_auto_takes_as_many_nodes_as_are_enough(model):
    rod = px.load("bar", points=600)
    rod = dataclasses.replace(rod, positions=rod.positions * [1, 0.3, 0.3], shape=None, mesh=None, faces=None)
    made: list[px.Body] = []
    assert told(lambda: made.append(px.Body(rod, nodes="auto", model=model))) == []
    assert len(made[0].reference) > 800 or model == "modal"


def test_auto_leaves_compact_bodies_the_usual_number_and_ends_where_none_is_enough():
    asked: list[int] = []

    def fill(count: int) -> int:
        asked.append(count)
        return count

    assert filled_with("auto", fill, lambda made: None) == 800
    assert filled_with(123, fill, lambda made: 10 * made) == 123
    assert filled_with("auto", fill, lambda made: 5 * made) == 50_000
    assert asked == [800, 123, 800, 4000, 20_000, 50_000]
