"""Whether a body has enough nodes across it to bend: told of where most of it is too thin, and nowhere else."""

import dataclasses
import re
import warnings

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import phyxel as px
import phyxel.movers.kinds  # fills the table
from phyxel.bench.accuracy.boxes import box_mesh
from phyxel.body.resolution import filled_with, nodes_to_bend
from phyxel.errors import PhyxelWarning
from phyxel.models.kind import KINDS, Scheme
from phyxel.solid.solid import Solid


def told(make) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make()
    return [str(one.message) for one in caught if issubclass(one.category, PhyxelWarning)]


def scheme(kind: str) -> Scheme:
    """That of a model, or of phyxels as M04 has them."""
    return KINDS["phyxel"].scheme("m04") if kind == "m04" else KINDS[kind].scheme()


def enough_for(sides: tuple[int, int, int], kind: str, turn: np.ndarray, count: int, size: float = 1.0) -> int | None:
    """What is told of a block of so many spacings that has `count` nodes."""
    laid = scheme(kind)
    solid = Solid(box_mesh(tuple(size * side for side in sides), turn))
    nodes = solid.sample(count, (), laid.nodes == "to the surface", "cells")
    return nodes_to_bend(laid, nodes.thickness, nodes.volumes)


def bar(layers: int, kind: str, length: int = 20) -> tuple[tuple[int, int, int], int]:
    """Sides of a bar of so many layers of nodes, in spacings, and how many nodes it then has."""
    if scheme(kind).nodes == "inside":
        return (length, layers, layers), length * layers**2
    return (length, layers - 1, layers - 1), (length + 1) * layers**2


TURNS = [(0, (1, 0, 0)), (15, (1, 1, 0.5)), (30, (1, 1, 0.5)), (45, (0, 0, 1)), (77, (1, 2, 3))]


@pytest.mark.parametrize(("angle", "axis"), TURNS)
@pytest.mark.parametrize("kind", ["phyxel", "galerkin"])
def test_turned_bars_are_told_of_up_to_the_layers_that_they_need(kind, angle, axis):
    """Of 2, 3, 4 and 5 layers of nodes, whichever way octants lie in them; the number that is named is that of a bar
    with as many layers as it should have, or a little more."""
    needed = scheme(kind).across
    turn = Rotation.from_rotvec(np.radians(angle) * np.array(axis) / np.linalg.norm(axis)).as_matrix()
    for layers in (2, 3, 4, 5):
        enough = enough_for(bar(layers, kind)[0], kind, turn, bar(layers, kind)[1])
        assert (enough is None) == (layers >= needed), (layers, enough)
        if enough is not None:
            assert bar(needed, kind)[1] * 0.9 < enough < 3 * bar(needed, kind)[1]


@pytest.mark.parametrize("scale", [1e-3, 70.0])
def test_what_is_told_does_not_depend_on_size(scale):
    for layers, fine in ((6, False), (7, True)):
        sides, count = bar(layers, "m04")
        assert (enough_for(sides, "m04", np.eye(3), count, scale) is None) == fine


def test_a_plate_is_as_thick_as_a_bar():
    for layers, fine in ((3, False), (4, True)):
        sides = (12, layers - 1, 12)
        assert (enough_for(sides, "phyxel", np.eye(3), 13 * layers * 13) is None) == fine


def test_balls_are_as_thick_as_their_octants_say():
    """A ball of V = π/6 d³: d octants of its middle."""
    nodes = Solid(px.load("sphere", points=2000)).sample(300, (), True, "cells")
    across = np.cbrt(6 / np.pi * nodes.volumes.sum()) / np.median(nodes.octants)
    assert np.median(nodes.thickness) == pytest.approx(across, rel=0.05)


def test_a_thin_part_of_a_thick_body_is_not_told_of():
    """A handle on a block: most of the volume is thick enough."""
    thickness, volumes = np.repeat([8.0, 2.0], [1000, 160]), np.ones(1160)
    assert nodes_to_bend(scheme("m04"), thickness, volumes) is None
    assert nodes_to_bend(scheme("m04"), thickness[900:], volumes[900:]) is not None


def test_a_coarse_bar_is_told_of_once_with_what_to_do():
    bar = px.load("bar", points=300)
    (message,) = told(lambda: px.Body(bar, nodes=150, scheme="m04"))
    for word in ("bar: ", "fewer than 7 across", 'model = "phyxel"', "not bend as it should", '"galerkin" or "modal"'):
        assert word in message
    enough = int(re.search(r"nodes = ([\d,]+)", message)[1].replace(",", ""))
    assert told(lambda: px.Body(bar, nodes=2 * enough, scheme="m04")) == []
    assert told(lambda: px.Body(bar, nodes=250)) == [], "to the surface, four across are enough"
    (message,) = told(lambda: px.Body(bar, nodes=60))
    assert "fewer than 4 across" in message
    assert told(lambda: px.Body(bar, nodes=150, model="modal")) == []


@pytest.mark.parametrize("shape", ["bear", "box", "sphere", "bust"])
def test_compact_shapes_at_the_usual_number_of_nodes_are_fine(shape):
    """With nodes on the surface; half a spacing inside, bears and busts would need some thousand."""
    assert told(lambda: px.Body(px.load(shape, points=2000), scheme="consistent")) == []


@pytest.mark.parametrize(("model", "scheme"), [("phyxel", "m04"), ("phyxel", None), ("modal", None)])
def test_auto_takes_as_many_nodes_as_are_enough(model, scheme):
    rod = px.load("bar", points=600)
    rod = dataclasses.replace(rod, positions=rod.positions * [1, 0.3, 0.3], shape=None, mesh=None, faces=None)
    made: list[px.Body] = []
    assert told(lambda: made.append(px.Body(rod, nodes="auto", model=model, scheme=scheme))) == []
    assert len(made[0].reference) > 800 or scheme is None


def test_auto_leaves_compact_bodies_the_usual_number_and_ends_where_none_is_enough():
    asked: list[int] = []

    def fill(count: int) -> int:
        asked.append(count)
        return count

    assert filled_with("auto", fill, lambda made: None) == 800
    assert filled_with(123, fill, lambda made: 10 * made) == 123
    assert filled_with("auto", fill, lambda made: 5 * made) == 50_000
    assert asked == [800, 123, 800, 4000, 20_000, 50_000]
